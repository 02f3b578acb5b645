//! What others change is put back and told, unless it is left to them.

#![allow(clippy::unwrap_used)] // helpers of tests fail as tests do

mod support;

use std::time::{Duration, Instant};

use catamaran_testkit::Probes;
use serde_json::{Value, json};
use support::{Bench, Operator, becomes, condition, create, eventually, field, mirror, patch};

const RULES: &str = "  ignoreDrift:\n  - kind: ConfigMap\n    selector: {matchLabels: {shared: \"yes\"}}\n    paths: [/data/theirs]\n";

fn map(name: &str, extra: &Value) -> Value {
    let mut metadata = json!({ "name": name });
    metadata.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    let data = json!({ "ours": "canary-of-ours", "theirs": "canary-of-ours" });
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data })
}

#[tokio::test]
async fn fields_are_put_back_and_told_by_their_paths_and_some_are_left_to_others() {
    let bench = Bench::shared("drift").await;
    let folder = mirror(RULES);
    let operator = bench.operator_of(&folder);
    let objects = json!([
        map("plain", &json!({})),
        map("shared", &json!({ "labels": { "shared": "yes" } })),
        map("alone", &json!({ "annotations": { "catamaran.dev/drift": "ignore" } })),
        { "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "secret" }, "stringData": { "key": "canary-of-ours" } },
    ]);
    let memcacheds = bench.memcacheds();
    create(
        &memcacheds,
        "cache.my.domain/v1alpha1",
        "Memcached",
        "drift",
        json!({ "objects": objects }),
    )
    .await;
    becomes(&memcacheds, "drift", "Ready", |object| condition(object, "Ready") == "True").await;

    let (maps, secrets) = (bench.api("v1", "ConfigMap"), bench.api("v1", "Secret"));
    let change = json!({ "data": { "ours": "canary-of-others", "theirs": "canary-of-others" } });
    for name in ["alone", "shared", "plain"] {
        patch(&maps, name, change.clone()).await;
    }
    patch(&secrets, "secret", json!({ "data": { "key": "Y2FuYXJ5" } })).await;
    let is = async |name: &str, ours: &str, theirs: &str| {
        let all =
            json!({ "ours": format!("canary-of-{ours}"), "theirs": format!("canary-of-{theirs}") });
        becomes(&maps, name, &format!("{ours} and {theirs}"), |map| map.data["data"] == all).await
    };
    is("plain", "ours", "ours").await;
    is("shared", "ours", "others").await;
    let told = [
        ("ConfigMap \\\"plain\\\"", "data.ours, data.theirs\""),
        ("ConfigMap \\\"shared\\\"", "data.ours\""),
        ("Secret \\\"secret\\\"", "data.key\""),
    ];
    eventually("the log tells of three repairs", async || {
        let log = operator.log();
        let tells = |(object, fields): &(&str, &str)| {
            log.lines().any(|line| {
                line.contains("Repaired drift") && line.contains(object) && line.contains(fields)
            })
        };
        if told.iter().all(tells) { Ok(()) } else { Err(log) }
    })
    .await;
    is("alone", "others", "others").await;
    assert!(!operator.log().contains("canary"), "no content is told");

    // A key that nobody ignores comes back after the next change by others, too.
    patch(&maps, "shared", json!({ "data": { "ours": null, "theirs": "canary-of-nobody" } })).await;
    is("shared", "ours", "nobody").await;
}

/// Does some work, and asks `/healthz` every 100 ms meanwhile. Each answer must come within the
/// deadline; the slowest is returned.
async fn while_probed(probes: &Probes, work: impl Future<Output = ()>) -> Duration {
    const DEADLINE: Duration = Duration::from_secs(10);
    let mut slowest = Duration::ZERO;
    let asking = async {
        loop {
            let begun = Instant::now();
            let answer = tokio::time::timeout(DEADLINE, probes.answer("/healthz")).await;
            assert_eq!(answer, Ok(Some(200)), "after {:?}", begun.elapsed());
            slowest = slowest.max(begun.elapsed());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::select! {
        () = asking => unreachable!("it asks for ever"),
        () = work => {}
    }
    slowest
}

/// What a tenant with the role `edit` can write: lists of thousands of items, and rules for each of
/// them.
#[tokio::test]
async fn probes_are_answered_while_objects_with_thousands_of_items_are_looked_at() {
    let bench = Bench::shared("items").await;
    let (folder, probes) = (mirror(""), Probes::free());
    let mut command = Operator::command(bench.cluster.kubeconfig());
    command.arg("--watches-file").arg(folder.path().join("watches.yaml"));
    command.args(["--health-probe-bind-address", probes.address()]);
    // As on one core.
    command.env("WATCH_NAMESPACE", bench.namespace.name()).env("TOKIO_WORKER_THREADS", "1");
    let _operator = Operator::start(command);
    probes.answers("/healthz", 200).await;

    let secrets = |from: usize| -> Value {
        (from..from + 8_000).map(|number| json!({ "name": format!("s{number}") })).collect()
    };
    let labels = json!({ "app": "many" });
    let deployment = |from: usize| {
        let containers = json!([{ "name": "c", "image": "none.invalid/none" }]);
        let pod = json!({ "containers": containers, "imagePullSecrets": secrets(from) });
        json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "many" },
            "spec": { "replicas": 0, "selector": { "matchLabels": labels },
                "template": { "metadata": { "labels": labels }, "spec": pod } } })
    };
    let rules: Vec<Value> =
        (0..2_000).map(|number| json!({ "host": format!("h{number}.example") })).collect();
    let backend = json!({ "service": { "name": "s", "port": { "number": 80 } } });
    let failing = vec!["{.spec.rules[*].host}=x"; 10_000].join("\n");
    let ingress = json!({ "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
        "metadata": { "name": "rules", "annotations": { "catamaran.dev/failed-when": failing } },
        "spec": { "defaultBackend": backend, "rules": rules } });

    let (memcacheds, deployments) = (bench.memcacheds(), bench.deployments());
    let ingresses = bench.api("networking.k8s.io/v1", "Ingress");
    let api_version = "cache.my.domain/v1alpha1";
    let slowest = while_probed(&probes, async {
        let spec = json!({ "objects": [deployment(0)] });
        create(&memcacheds, api_version, "Memcached", "lists", spec).await;
        becomes(&memcacheds, "lists", "Ready", |it| condition(it, "Ready") == "True").await;
        // An edit by the tenant, and one by somebody else that is put back.
        patch(&memcacheds, "lists", json!({ "spec": { "objects": [deployment(4_000)] } })).await;
        let has_last = |it: &kube::core::DynamicObject| {
            let secrets = it.data.pointer("/spec/template/spec/imagePullSecrets");
            let names = secrets.and_then(Value::as_array).into_iter().flatten();
            names.into_iter().any(|secret| secret["name"] == "s11999")
        };
        becomes(&deployments, "many", "as edited", has_last).await;
        let theirs = json!({ "spec": { "imagePullSecrets": [{ "name": "theirs" }] } });
        patch(&deployments, "many", json!({ "spec": { "template": theirs } })).await;
        becomes(&deployments, "many", "put back", has_last).await;

        create(&memcacheds, api_version, "Memcached", "rules", json!({ "objects": [ingress] })).await;
        becomes(&memcacheds, "rules", "TooManyRules", |it| {
            field(it, "Ready", "reason") == "TooManyRules"
        })
        .await;
        for number in 0..20 {
            let touched = json!({ "metadata": { "labels": { "touched": number.to_string() } } });
            patch(&ingresses, "rules", touched).await;
        }
        let annotations = json!({ "catamaran.dev/failed-when": "{.spec.rules[*].host}=none" });
        let mut few = json!({ "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
            "metadata": { "name": "rules" }, "spec": { "defaultBackend": backend, "rules": rules } });
        few["metadata"]["annotations"] = annotations;
        patch(&memcacheds, "rules", json!({ "spec": { "objects": [few] } })).await;
        becomes(&memcacheds, "rules", "Ready", |it| condition(it, "Ready") == "True").await;
    })
    .await;
    println!("the slowest probe took {slowest:?}");
}

#[tokio::test]
async fn a_period_of_a_nanosecond_is_ten_seconds_and_a_condition_says_so() {
    let bench = Bench::shared("period").await;
    let folder = mirror("");
    let operator = bench.operator_of(&folder);
    let memcacheds = bench.memcacheds();
    let object = json!({ "apiVersion": "cache.my.domain/v1alpha1", "kind": "Memcached",
        "metadata": { "name": "busy", "annotations": {
            "helm.sdk.operatorframework.io/reconcile-period": "1ns" } },
        "spec": { "objects": [map("a", &json!({}))] } });
    memcacheds
        .create(&kube::api::PostParams::default(), &serde_json::from_value(object).unwrap())
        .await
        .unwrap();
    let told = "the annotation reconcile-period asks for 1ns: the bound 10s is used";
    becomes(&memcacheds, "busy", "bounded", |it| {
        field(it, "AnnotationOutOfRange", "message") == told && condition(it, "Ready") == "True"
    })
    .await;
    let annotation = json!({ "helm.sdk.operatorframework.io/reconcile-period": "1h" });
    patch(&memcacheds, "busy", json!({ "metadata": { "annotations": annotation } })).await;
    becomes(&memcacheds, "busy", "not bounded", |it| {
        field(it, "AnnotationOutOfRange", "message").is_empty()
    })
    .await;
    drop(operator);
}

/// An object of a release is deleted, and somebody else makes one under its name: while the operator is
/// down, and while it is up.
#[tokio::test]
async fn a_strangers_object_under_the_name_of_ours_is_a_conflict_and_stays() {
    let bench = Bench::shared("stranger").await;
    let folder = mirror("");
    let mut operator = bench.operator_of(&folder);
    let (memcacheds, maps) = (bench.memcacheds(), bench.api("v1", "ConfigMap"));
    let objects = json!([map("down", &json!({})), map("up", &json!({}))]);
    let spec = json!({ "objects": &objects });
    create(&memcacheds, "cache.my.domain/v1alpha1", "Memcached", "theirs", spec).await;
    let is_ready = |object: &_| condition(object, "Ready") == "True";
    becomes(&memcacheds, "theirs", "Ready", is_ready).await;

    operator.kill();
    replace_by_strangers(&bench, "down");
    let mut operator = bench.operator_of(&folder);
    let conflict = |name: &'static str| {
        move |object: &_| {
            let message = field(object, "Ready", "message").to_owned();
            message.contains(&format!("ConfigMap \"{name}\"")) && message.contains("managed-by")
        }
    };
    becomes(&memcacheds, "theirs", "conflict", conflict("down")).await;
    // The release is whole again once they are gone.
    bench.kubectl(&["delete", "configmap", "down"]);
    becomes(&memcacheds, "theirs", "Ready", is_ready).await;
    becomes(&maps, "down", "ours again", |map| map.data["data"]["ours"] == "canary-of-ours").await;

    // Nor is one overwritten that the release shall change, if the operator has not seen it replaced.
    operator.kill();
    replace_by_strangers(&bench, "down");
    let changed =
        json!([map("down", &json!({ "labels": { "more": "labels" } })), map("up", &json!({}))]);
    patch(&memcacheds, "theirs", json!({ "spec": { "objects": changed } })).await;
    let _operator = bench.operator_of(&folder);
    becomes(&memcacheds, "theirs", "conflict", |object: &_| {
        field(object, "Ready", "message").contains("ConfigMap \"down\"")
    })
    .await;
    assert_eq!(maps.get("down").await.unwrap().data["data"], json!({ "whose": "theirs" }));
    patch(&memcacheds, "theirs", json!({ "spec": { "objects": objects } })).await;
    bench.kubectl(&["delete", "configmap", "down"]);
    becomes(&memcacheds, "theirs", "Ready", is_ready).await;

    replace_by_strangers(&bench, "down");
    bench.kubectl(&["delete", "memcached", "theirs"]);
    let left = maps.get("down").await.unwrap();
    assert_eq!(left.data["data"], json!({ "whose": "theirs" }));
    assert!(maps.get_opt("up").await.unwrap().is_none());
}

/// Deletes a ConfigMap and makes another, until the other is the one that stays: the operator may be
/// quicker.
fn replace_by_strangers(bench: &Bench, name: &str) {
    let replaced = (0..100).any(|_| {
        bench.kubectl(&["delete", "configmap", name, "--ignore-not-found"]);
        let mut command = std::process::Command::new("kubectl");
        command.arg("--kubeconfig").arg(bench.cluster.kubeconfig());
        command.args(["--namespace", bench.namespace.name(), "create", "configmap", name]);
        command.arg("--from-literal=whose=theirs").output().unwrap().status.success()
    });
    assert!(replaced, "the operator was quicker a hundred times");
}
