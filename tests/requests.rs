//! What the operator asks of the API server, told by the API server's own audit log.

#![allow(clippy::unwrap_used)] // helpers of tests fail as tests do

mod support;

use std::time::Duration;

use catamaran_localcluster::{AuditLog, Mark, Request};
use serde_json::json;
use support::{Bench, DEADLINE, apply_file, becomes, condition, eventually, patch};

const CHART: &str = "memcached-sample";
const NATIVE: &str = "memcachedbackup-sample";

fn ours(bench: &Bench, audit: &AuditLog, since: Mark) -> Vec<String> {
    let in_namespace = |request: &Request| request.namespace == *bench.namespace.name();
    // What begins the watch on records, whose selector nobody else has.
    let of_the_watch =
        |request: &Request| request.verb == "list" && request.uri.contains("superseded");
    let told = |request: Request| {
        let sub = if request.subresource.is_empty() { "" } else { "/" };
        format!(
            "{} {}{sub}{} {}",
            request.verb, request.resource, request.subresource, request.code
        )
    };
    let requests = audit.since(since).unwrap().into_iter();
    requests.filter(in_namespace).filter(|it| !of_the_watch(it)).map(told).collect()
}

async fn quiet(audit: &AuditLog) -> Mark {
    audit.until_quiet(Duration::from_secs(3), DEADLINE).await.unwrap()
}

#[tokio::test]
async fn an_install_costs_its_writes_and_an_idle_release_nothing() {
    let bench = Bench::shared("requests").await;
    let audit = bench.cluster.audit().of_agent("memcached-operator/");
    let start = audit.mark().unwrap();
    let _operator = bench.operator();
    let ready = |object: &_| condition(object, "Ready") == "True";
    apply_file(&bench, "tests/fixtures/cache_v1alpha1_memcached.yaml");
    becomes(&bench.memcacheds(), CHART, "Ready", ready).await;
    let before = quiet(&audit).await;
    let install = ours(&bench, &audit, start);
    // A watch begins with a list, and the status follows the pods: how often is theirs to decide.
    let told_by_others =
        ["memcacheds/status 200", "list memcacheds", "list deployments", "list services"];
    let told_by_others = |request: &&String| {
        request.starts_with("watch ")
            || ["list pods", "list memcachedbackups", "list serviceaccounts"]
                .iter()
                .chain(&["list jobs", "list cronjobs", "list persistentvolumeclaims"])
                .chain(&told_by_others)
                .any(|of| request.contains(of))
    };
    let own: Vec<&String> = install.iter().filter(|request| !told_by_others(request)).collect();
    let expected = [
        "patch memcacheds 200", // the finalizer
        "create secrets 201",
        "patch serviceaccounts 201",
        "patch services 201",
        "patch deployments 201",
        "update secrets 200",
    ];
    assert_eq!(own, expected);

    apply_file(&bench, "tests/fixtures/cache_v1_memcachedbackup.yaml");
    becomes(&bench.backups(), NATIVE, "Ready", ready).await;
    let after = quiet(&audit).await;
    let backup = ours(&bench, &audit, before);
    let applies: Vec<_> =
        backup.iter().filter(|request| !request.contains("/status 200")).collect();
    assert_eq!(applies, ["patch deployments 201"]);

    // Changes that are none: foreign metadata, a status that others write, a spec that says the same.
    patch(&bench.memcacheds(), CHART, json!({ "metadata": { "labels": { "a": "b" } } })).await;
    bench.kubectl(&["annotate", "memcachedbackup", NATIVE, "a=b"]);
    tokio::time::sleep(Duration::from_secs(3)).await;
    let idle = ours(&bench, &audit, after);
    assert_eq!(idle, [""; 0], "nothing moved that matters");
}

#[tokio::test]
async fn a_restart_over_an_existing_release_writes_nothing_and_an_upgrade_only_what_it_changes() {
    let bench = Bench::shared("restarted").await;
    let audit = bench.cluster.audit().of_agent("memcached-operator/");
    let mut operator = bench.operator();
    apply_file(&bench, "tests/fixtures/cache_v1alpha1_memcached.yaml");
    let ready = |object: &_| condition(object, "Ready") == "True";
    becomes(&bench.memcacheds(), CHART, "Ready", ready).await;
    quiet(&audit).await;
    operator.kill();
    let restarted = audit.mark().unwrap();
    let _operator = bench.operator();
    // What it lists last: the objects, of which it knows nothing.
    eventually("the objects are listed", async || {
        let asked = ours(&bench, &audit, restarted);
        if asked.iter().any(|asked| asked.starts_with("watch deployments")) {
            Ok(())
        } else {
            Err(asked.join(", "))
        }
    })
    .await;
    let after = quiet(&audit).await;
    let is_write = |request: &&String| {
        ["create", "update", "patch", "delete"].iter().any(|verb| request.starts_with(verb))
    };
    let asked = ours(&bench, &audit, restarted);
    assert_eq!(asked.iter().filter(is_write).collect::<Vec<_>>(), [""; 0]);
    // Nothing is read by itself: the lists that the watches begin with have told it, also of kinds of
    // which only metadata is watched.
    let reads = asked.iter().filter(|read| read.starts_with("get ")).collect::<Vec<_>>();
    assert_eq!(reads, [""; 0]);

    // What the watches told is not read: only the Deployment is another one now.
    patch(&bench.memcacheds(), CHART, json!({ "spec": { "replicaCount": 2 } })).await;
    becomes(&bench.memcacheds(), CHART, "upgraded", |object| {
        support::number(object, "/status/deployedRelease/version") == Some(2)
    })
    .await;
    quiet(&audit).await;
    let asked = ours(&bench, &audit, after);
    let about_objects: Vec<&String> = asked
        .iter()
        .filter(|request| !request.contains("memcacheds") && !request.starts_with("watch "))
        .collect();
    let expected = [
        "list secrets 200",
        "create secrets 201",
        "get deployments 200", // whose replicas may be an autoscaler's
        "patch deployments 200",
        "update secrets 200",
        "update secrets 200",
        "create events 201", // that it was upgraded
    ];
    assert_eq!(about_objects, expected);
}
