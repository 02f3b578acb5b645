//! What asks for nothing: releases of which nothing moved, whatever state they are in.

use std::time::Duration;

use catamaran_localcluster::{AuditLog, Mark};
use serde_json::{Value, json};

use crate::support::{MIRROR, Stage, config_map, field, is};

/// How long is listened: several periods of those that the tests set.
const LISTEN: Duration = Duration::from_secs(12);
const DEADLINE: Duration = Duration::from_secs(90);

/// The operator's requests about a namespace since then; those that go on for long begin anew some day.
fn asked(stage: &Stage, audit: &AuditLog, since: Mark) -> Vec<String> {
    let requests = audit.since(since).unwrap().into_iter();
    let ours = requests.filter(|it| it.namespace == stage.namespace.name() && it.verb != "watch");
    ours.map(|it| format!("{} {} {} {}", it.verb, it.resource, it.subresource, it.uri)).collect()
}

/// What the operator asks for.
pub fn audit(stage: &Stage) -> AuditLog {
    stage.cluster.audit().of_agent("catamaran/")
}

/// Waits until nothing of the namespace was asked for so long.
pub async fn rests(stage: &Stage, audit: &AuditLog) -> Mark {
    let begun = std::time::Instant::now();
    let mut mark = audit.mark().unwrap();
    loop {
        tokio::time::sleep(Duration::from_secs(5)).await;
        let asked = asked(stage, audit, mark);
        mark = audit.mark().unwrap();
        if asked.is_empty() {
            return mark;
        }
        assert!(begun.elapsed() < DEADLINE, "it never rests: {asked:#?}");
    }
}

fn never_ready() -> Value {
    let labels = json!({ "app": "never" });
    let annotations = json!({ "fake.catamaran.test/never-ready": "true" });
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "never" },
        "spec": { "replicas": 1, "selector": { "matchLabels": labels }, "template": {
            "metadata": { "labels": labels, "annotations": annotations },
            "spec": { "containers": [{ "name": "c", "image": "busybox" }] },
        } },
    })
}

fn endless_hook() -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": { "name": "endless", "annotations": { "helm.sh/hook": "pre-install" } },
        "spec": { "template": {
            "metadata": { "annotations": { "fake.catamaran.test/run-for": "1h" } },
            "spec": { "restartPolicy": "Never", "containers": [{ "name": "c", "image": "busybox" }] },
        } },
    })
}

#[tokio::test]
async fn a_release_that_rests_waits_fails_or_was_touched_by_helm_costs_nothing() {
    let stage = Stage::of("quiet", MIRROR).await;
    // The period is a net from memory: it may come as often as it likes.
    let operator = stage.operator_with(&["--reconcile-period=1s"]);
    let refused = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": "refused" },
        "spec": { "ports": [{ "port": 99_999_999 }] },
    });
    for (name, object) in [
        ("steady", config_map("steady", &json!({ "k": "v" }))),
        ("touched", config_map("touched", &json!({ "k": "v" }))),
        ("unready", never_ready()),
        ("hooked", endless_hook()),
        ("failing", refused),
    ] {
        stage.apply(&stage.shop(name, &json!({ "objects": [object] })));
    }
    for name in ["steady", "touched"] {
        stage.shop_becomes(name, "Ready", |shop| is(shop, "Ready", "True"));
    }
    stage.shop_becomes("unready", "told", |shop| {
        field(shop, "Ready", "message").contains("container c runs and is not ready")
    });
    stage.shop_becomes("hooked", "waiting", |shop| {
        field(shop, "Ready", "message").contains("pre-install hook Job endless")
    });
    stage.shop_becomes("failing", "refused", |shop| {
        field(shop, "ReleaseFailed", "reason") == "InstallError"
    });
    // A helm command beside us, with the same values: what it wrote is seen, and that is all.
    stage.helm3(&["upgrade", "touched", "helm-charts/demo", "--reuse-values"]);
    stage.shop_becomes("touched", "noticed", |shop| {
        shop["status"]["deployedRelease"]["version"].as_i64() >= Some(2)
    });
    let audit = audit(&stage);
    let mark = rests(&stage, &audit).await;
    let log = operator.log().len();
    tokio::time::sleep(LISTEN).await;
    assert_eq!(asked(&stage, &audit, mark), [""; 0]);
    let log = operator.log().split_off(log);
    assert!(!log.contains("Upgraded release") && !log.contains("reconcile failed"), "{log}");
}

#[tokio::test]
async fn progress_is_told_once_a_second_at_most() {
    let stage = Stage::of("beat", MIRROR).await;
    let _operator = stage.operator();
    let mut web = never_ready();
    web["spec"]["replicas"] = 12.into();
    web["spec"]["template"]["metadata"]["annotations"] = Value::Null;
    let audit = audit(&stage);
    let begun = (audit.mark().unwrap(), std::time::Instant::now());
    stage.apply(&stage.shop("rel", &json!({ "objects": [web] })));
    stage.shop_becomes("rel", "Ready", |shop| is(shop, "Ready", "True"));
    let took = usize::try_from(begun.1.elapsed().as_secs()).unwrap();
    let asked = asked(&stage, &audit, begun.0);
    let told = asked.iter().filter(|it| it.starts_with("patch shops status")).count();
    // The first at the end of the action, the others a second apart.
    assert!(told <= took + 2, "{told} writes within {took} s: {asked:#?}");
}
