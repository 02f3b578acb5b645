//! Charts with hooks, from the resource's side: what is waited for is said, and no hook is lost.

#![allow(clippy::unwrap_used)] // a helper of tests fails as a test does

mod support;

use std::time::Duration;

use kube::core::DynamicObject;
use serde_json::json;
use support::{Bench, Operator, becomes, condition, create, delete, field, number, vanishes};

/// A chart with Jobs around its one object, and a watches.yaml that serves Memcacheds with it. The
/// spec says how the first Job ends, and how long it takes.
fn chart_with_hooks() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let chart = folder.path().join("hooked");
    std::fs::create_dir_all(chart.join("templates")).unwrap();
    let job = |event: &str, annotations: &str| {
        format!(
            "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: {{{{ .Release.Name }}}}-{event}\n  \
             annotations: {{helm.sh/hook: {event}}}\nspec:\n  backoffLimit: 0\n  template:\n    \
             metadata:\n      annotations: {{{annotations}}}\n    spec:\n      restartPolicy: Never\n      \
             containers: [{{name: c, image: busybox}}]\n"
        )
    };
    let steered = r#"fake.catamaran.test/exit-code: "{{ .Values.code }}", fake.catamaran.test/run-for: {{ .Values.time }}"#;
    let leaving = r#"fake.catamaran.test/exit-code: "{{ .Values.farewell }}""#;
    let object = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\n";
    for (file, text) in [
        ("Chart.yaml", "apiVersion: v2\nname: hooked\nversion: 1.0.0\n".to_owned()),
        ("values.yaml", "code: 0\nfarewell: 0\ntime: 0s\n".to_owned()),
        ("templates/before.yaml", job("pre-install", steered)),
        ("templates/after.yaml", job("post-install", "")),
        ("templates/leave.yaml", job("pre-delete", leaving)),
        ("templates/object.yaml", object.to_owned()),
    ] {
        std::fs::write(chart.join(file), text).unwrap();
    }
    let entry = format!(
        "- group: cache.my.domain\n  version: v1alpha1\n  kind: Memcached\n  chart: {}\n",
        chart.display()
    );
    std::fs::write(folder.path().join("watches.yaml"), entry).unwrap();
    folder
}

fn operator(bench: &Bench, folder: &tempfile::TempDir) -> Operator {
    let mut command = Operator::command(bench.cluster.kubeconfig());
    command.arg("--watches-file").arg(folder.path().join("watches.yaml"));
    command.env("WATCH_NAMESPACE", bench.namespace.name());
    Operator::start(command)
}

fn ended(job: &DynamicObject) -> bool {
    number(job, "/status/succeeded") == Some(1)
}

#[tokio::test]
async fn hooks_run_around_a_release_while_the_resource_says_what_it_waits_for() {
    let bench = Bench::shared("hooks").await;
    let folder = chart_with_hooks();
    let mut running = operator(&bench, &folder);
    let (memcacheds, jobs, maps) =
        (bench.memcacheds(), bench.api("batch/v1", "Job"), bench.api("v1", "ConfigMap"));
    let kind = ("cache.my.domain/v1alpha1", "Memcached");
    create(&memcacheds, kind.0, kind.1, "slow", json!({ "time": "4s" })).await;
    let waits = |object: &DynamicObject| {
        field(object, "Ready", "message").starts_with("pre-install hook Job slow-pre-install")
    };
    becomes(&memcacheds, "slow", "waiting for its hook", waits).await;
    assert!(maps.get_opt("slow").await.unwrap().is_none(), "before its hook is done");

    // A hook that takes its time holds up nobody, and survives the operator.
    create(&memcacheds, kind.0, kind.1, "quick", json!({})).await;
    let ready = |object: &DynamicObject| condition(object, "Ready") == "True";
    becomes(&memcacheds, "quick", "Ready", ready).await;
    let job = jobs.get("slow-pre-install").await.unwrap();
    running.kill();
    let running = operator(&bench, &folder);
    let slow = becomes(&memcacheds, "slow", "Ready", ready).await;
    assert_eq!(number(&slow, "/status/deployedRelease/version"), Some(1));
    let again = jobs.get("slow-pre-install").await.unwrap();
    assert_eq!(again.metadata.uid, job.metadata.uid, "run once");
    assert!(ended(&again) && ended(&jobs.get("slow-post-install").await.unwrap()));
    assert!(maps.get_opt("slow").await.unwrap().is_some());

    delete(&memcacheds, "slow").await;
    vanishes(&memcacheds, "slow").await;
    assert!(ended(&jobs.get("slow-pre-delete").await.unwrap()), "hooks outlive their release");
    vanishes(&maps, "slow").await;
    drop(running);
}

#[tokio::test]
async fn a_hook_that_fails_is_the_condition_of_the_resource() {
    let bench = Bench::shared("hook-fails").await;
    let folder = chart_with_hooks();
    let _operator = operator(&bench, &folder);
    let memcacheds = bench.memcacheds();
    let (api_version, kind) = ("cache.my.domain/v1alpha1", "Memcached");
    create(&memcacheds, api_version, kind, "broken", json!({ "code": 7 })).await;
    let failed = |object: &DynamicObject| condition(object, "ReleaseFailed") == "True";
    let broken = becomes(&memcacheds, "broken", "failed", failed).await;
    let told = field(&broken, "ReleaseFailed", "message");
    assert_eq!(field(&broken, "ReleaseFailed", "reason"), "InstallError");
    for word in ["failed pre-install", "broken-pre-install", "BackoffLimitExceeded"] {
        assert!(told.contains(word), "{told}");
    }
    // It is tried again, but not in a circle. What is seen of it may be late, so no longer than this.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let jobs = bench.cluster.audit().requests().unwrap();
    let runs = jobs.iter().filter(|request| {
        request.namespace == bench.namespace.name()
            && (request.resource.as_str(), request.code) == ("jobs", 201)
            && request.name == "broken-pre-install" // the failed install is uninstalled, by another hook
    });
    assert_eq!(runs.count(), 1, "a pause of at least five seconds");
    support::patch(&memcacheds, "broken", json!({ "spec": { "code": 0 } })).await;
    let mended = |object: &DynamicObject| condition(object, "Ready") == "True";
    let mended = becomes(&memcacheds, "broken", "mended", mended).await;
    assert_eq!(condition(&mended, "ReleaseFailed"), "");
}

#[tokio::test]
async fn a_hook_that_fails_at_the_end_keeps_the_resource() {
    let bench = Bench::shared("hook-keeps").await;
    let folder = chart_with_hooks();
    let _operator = operator(&bench, &folder);
    let (memcacheds, maps) = (bench.memcacheds(), bench.api("v1", "ConfigMap"));
    let (api_version, kind) = ("cache.my.domain/v1alpha1", "Memcached");
    create(&memcacheds, api_version, kind, "stays", json!({ "farewell": 1 })).await;
    let ready = |object: &DynamicObject| condition(object, "Ready") == "True";
    becomes(&memcacheds, "stays", "Ready", ready).await;
    delete(&memcacheds, "stays").await;
    let failed = |object: &DynamicObject| condition(object, "ReleaseFailed") == "True";
    let stays = becomes(&memcacheds, "stays", "failed", failed).await;
    assert_eq!(field(&stays, "ReleaseFailed", "reason"), "UninstallError");
    let told = field(&stays, "ReleaseFailed", "message");
    assert!(told.starts_with("pre-delete hooks failed: Job \"stays-pre-delete\""), "{told}");
    assert!(maps.get_opt("stays").await.unwrap().is_some(), "nothing was deleted");

    // The way out for a person: without a record there is nothing left to do.
    bench.kubectl(&["delete", "secrets", "-l", "owner=helm,name=stays"]);
    vanishes(&memcacheds, "stays").await;
    vanishes(&maps, "stays").await;
}
