//! Records that others write: a helm command beside the operator is noticed without asking, told, and
//! brought back by the rules; a forger gets nothing done.

#![allow(clippy::unwrap_used)] // helpers of tests fail as tests do

mod forged;
#[path = "../support/mod.rs"]
mod support;

use std::time::Duration;

use kube::core::DynamicObject;
use serde_json::{Value, json};
use support::{Bench, DEADLINE, becomes, condition, create, eventually, mirror, number};

fn map(value: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "map" }, "data": { "k": value } })
}

#[tokio::test]
async fn what_helm_does_beside_us_is_noticed_by_a_watch() {
    let bench = Bench::shared("records").await;
    let folder = mirror("");
    let chart = folder.path().join("mirror").display().to_string();
    let operator = bench.operator_of(&folder);
    let (memcacheds, maps) = (bench.memcacheds(), bench.api("v1", "ConfigMap"));
    let spec = json!({ "objects": [map("ours")] });
    create(&memcacheds, "cache.my.domain/v1alpha1", "Memcached", "rel", spec).await;
    let at = |version: i64| {
        move |object: &DynamicObject| {
            number(object, "/status/deployedRelease/version") == Some(version)
                && condition(object, "Ready") == "True"
        }
    };
    becomes(&memcacheds, "rel", "installed", at(1)).await;

    // Something else: brought back by a revision of ours.
    let theirs = format!("objects=[{}]", map("theirs"));
    bench.helm(&["upgrade", "rel", &chart, "--set-json", &theirs]);
    becomes(&memcacheds, "rel", "brought back", at(3)).await;
    becomes(&maps, "map", "ours", |map| map.data["data"]["k"] == "ours").await;

    // The same: that revision is told of, and is no reason for another.
    bench.helm(&["rollback", "rel", "1"]);
    becomes(&memcacheds, "rel", "rolled back", at(4)).await;
    bench.helm3(&["rollback", "rel", "3"]);
    becomes(&memcacheds, "rel", "rolled back by helm 3", at(5)).await;

    // After that nobody asks for anything.
    let audit = bench.cluster.audit().of_agent("memcached-operator/");
    let mark = audit.until_quiet(Duration::from_secs(3), DEADLINE).await.unwrap();
    tokio::time::sleep(Duration::from_secs(12)).await; // longer than anything looks again
    let asked: Vec<_> = audit.since(mark).unwrap();
    let asked: Vec<_> =
        asked.iter().filter(|it| it.namespace == *bench.namespace && it.verb != "watch").collect();
    assert!(asked.is_empty(), "{asked:?}");

    // Gone: as long as the resource is there, so is its release.
    bench.helm(&["uninstall", "rel"]);
    becomes(&memcacheds, "rel", "installed anew", at(1)).await;
    becomes(&maps, "map", "there again", |map| map.data["data"]["k"] == "ours").await;
    drop(operator);
}

#[tokio::test]
async fn without_the_right_to_watch_records_it_works_and_says_so_once() {
    let bench = Bench::shared("unheard").await;
    let folder = mirror("");
    let kubeconfig = limited(&bench).await;
    let mut command = support::Operator::command(&kubeconfig);
    command.arg("--watches-file").arg(folder.path().join("watches.yaml"));
    command.env("WATCH_NAMESPACE", bench.namespace.name());
    let operator = support::Operator::start(command);
    let memcacheds = bench.memcacheds();
    for name in ["one", "two"] {
        let mut object = map("ours");
        object["metadata"]["name"] = name.into();
        let spec = json!({ "objects": [object] });
        create(&memcacheds, "cache.my.domain/v1alpha1", "Memcached", name, spec).await;
    }
    for name in ["one", "two"] {
        becomes(&memcacheds, name, "Ready", |it| condition(it, "Ready") == "True").await;
    }
    eventually("the log tells of the missing right, once", async || {
        let log = operator.log();
        let told = log
            .lines()
            .filter(|line| line.contains("no right to list and watch") && line.contains("Secret"));
        match told.count() {
            1 => Ok(()),
            _ => Err(log),
        }
    })
    .await;
}

/// A service account that may do all but watch Secrets.
async fn limited(bench: &Bench) -> std::path::PathBuf {
    let namespace = bench.namespace.name();
    let rule = |groups: &[&str], resources: &[&str], verbs: &[&str]| json!({ "apiGroups": groups, "resources": resources, "verbs": verbs });
    let objects = json!({ "apiVersion": "v1", "kind": "List", "items": [
        { "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": "limited" } },
        { "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": { "name": "limited" }, "rules": [
            rule(&["cache.my.domain"], &["*"], &["*"]),
            rule(&[""], &["configmaps", "pods", "events"], &["*"]),
            rule(&["apps"], &["deployments"], &["*"]),
            rule(&[""], &["secrets"], &["list", "get", "create", "update", "delete"]),
        ]},
        { "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": { "name": "limited" },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "limited" },
            "subjects": [{ "kind": "ServiceAccount", "name": "limited", "namespace": namespace }] },
    ]});
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), objects.to_string()).unwrap();
    bench.kubectl(&["apply", "-f", file.path().to_str().unwrap()]);
    bench.cluster.service_account(namespace, "limited").await.unwrap()
}
