//! The operator's own life: killed, ended, restarted.

#![allow(clippy::unwrap_used)] // helpers of tests fail as tests do

mod support;

use std::time::Duration;

use serde_json::json;
use support::{
    Bench, Operator, apply_file, becomes, condition, create, delete, number, patch, vanishes,
};

const CHART: &str = "memcached-sample";
const NATIVE: &str = "memcachedbackup-sample";

#[tokio::test]
async fn killed_and_started_again_it_goes_on_where_it_was() {
    let bench = Bench::shared("killed").await;
    let mut operator = bench.operator();
    apply_file(&bench, "tests/fixtures/cache_v1alpha1_memcached.yaml");
    apply_file(&bench, "tests/fixtures/cache_v1_memcachedbackup.yaml");
    let ready = |object: &_| condition(object, "Ready") == "True";
    // At any moment: before the record, between two objects, before the status. It converges.
    for pause in [150, 250, 400, 700] {
        tokio::time::sleep(Duration::from_millis(pause)).await;
        operator.kill();
        operator = bench.operator();
    }
    let memcached = becomes(&bench.memcacheds(), CHART, "Ready", ready).await;
    becomes(&bench.backups(), NATIVE, "Ready", ready).await;
    assert_eq!(
        number(&memcached, "/status/deployedRelease/version"),
        Some(1),
        "one install, one revision"
    );

    // What happened while nobody watched is made good.
    operator.kill();
    bench.kubectl(&["scale", "deployment", CHART, NATIVE, "--replicas=9"]);
    patch(&bench.backups(), NATIVE, json!({ "spec": { "size": 4 } })).await;
    let _operator = bench.operator();
    becomes(&bench.deployments(), CHART, "scaled back", |d| number(d, "/spec/replicas") == Some(3))
        .await;
    becomes(&bench.deployments(), NATIVE, "scaled", |d| number(d, "/spec/replicas") == Some(4))
        .await;
    let memcached = bench.memcacheds().get(CHART).await.unwrap();
    assert_eq!(
        number(&memcached, "/status/deployedRelease/version"),
        Some(1),
        "a restart is no revision"
    );
}

#[tokio::test]
async fn a_resource_deleted_while_it_was_down_is_cleaned_up_at_its_start() {
    let bench = Bench::shared("down").await;
    let mut operator = bench.operator();
    apply_file(&bench, "tests/fixtures/cache_v1alpha1_memcached.yaml");
    becomes(&bench.memcacheds(), CHART, "Ready", |object| condition(object, "Ready") == "True")
        .await;
    operator.kill();
    delete(&bench.memcacheds(), CHART).await;
    let _operator = bench.operator();
    vanishes(&bench.memcacheds(), CHART).await;
    vanishes(&bench.deployments(), CHART).await;
}

#[tokio::test]
async fn sigterm_and_sigint_end_it_with_success_in_time() {
    let bench = Bench::shared("sigterm").await;
    for signal in ["-TERM", "-INT"] {
        let mut operator = bench.operator();
        apply_file(&bench, "tests/fixtures/cache_v1alpha1_memcached.yaml");
        becomes(&bench.memcacheds(), CHART, "Ready", |object| condition(object, "Ready") == "True")
            .await;
        operator.signal(signal);
        let status = operator.ended(Duration::from_secs(10)).await;
        assert_eq!(status.code(), Some(0), "{}", operator.log());
    }
}

/// A chart that makes a password, and a watches.yaml that serves Memcacheds with it.
fn drawing_chart() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let chart = folder.path().join("drawn");
    std::fs::create_dir_all(chart.join("templates")).unwrap();
    let secret = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: {{ .Release.Name }}\n\
                  data:\n  password: {{ randAlphaNum 16 | b64enc }}\n  made: {{ now | toString | b64enc }}\n";
    std::fs::write(chart.join("templates/secret.yaml"), secret).unwrap();
    std::fs::write(chart.join("Chart.yaml"), "apiVersion: v2\nname: drawn\nversion: 1.0.0\n")
        .unwrap();
    let entry = format!(
        "- group: cache.my.domain\n  version: v1alpha1\n  kind: Memcached\n  chart: {}\n",
        chart.display()
    );
    std::fs::write(folder.path().join("watches.yaml"), entry).unwrap();
    folder
}

#[tokio::test]
async fn a_reconciler_that_watches_yaml_does_not_name_runs_with_defaults_and_it_says_so() {
    let bench = Bench::shared("unnamed").await;
    let folder = drawing_chart();
    let operator = bench.operator_of(&folder);
    create(&bench.backups(), "cache.my.domain/v1", "MemcachedBackup", NATIVE, json!({ "size": 1 }))
        .await;
    let ready = |object: &_| condition(object, "Ready") == "True";
    becomes(&bench.backups(), NATIVE, "Ready", ready).await;
    let log = operator.log();
    let told = log.lines().find(|line| line.contains("not in watches.yaml: runs with defaults"));
    assert!(told.is_some_and(|told| told.contains("MemcachedBackup")), "{log}");
}

#[tokio::test]
async fn a_password_that_was_drawn_stays_through_restart_and_repair() {
    let bench = Bench::shared("drawn").await;
    let folder = drawing_chart();
    let start = || {
        let mut command = Operator::command(bench.cluster.kubeconfig());
        command.arg("--watches-file").arg(folder.path().join("watches.yaml"));
        command.env("WATCH_NAMESPACE", bench.namespace.name());
        Operator::start(command)
    };
    let mut operator = start();
    let (memcacheds, secrets) = (bench.memcacheds(), bench.api("v1", "Secret"));
    create(&memcacheds, "cache.my.domain/v1alpha1", "Memcached", "drawn", json!({})).await;
    let drawn = becomes(&secrets, "drawn", "there", |_| true).await;
    let ready = |object: &_| condition(object, "Ready") == "True";
    becomes(&memcacheds, "drawn", "Ready", ready).await;

    for down in [false, true] {
        let before = secrets.get("drawn").await.unwrap().metadata.uid;
        if down {
            operator.kill();
        }
        delete(&secrets, "drawn").await;
        if down {
            operator = start();
        }
        let again = becomes(&secrets, "drawn", "there again", |s| s.metadata.uid != before).await;
        assert_eq!(again.data["data"], drawn.data["data"], "the same password and time");
    }
    let memcached = becomes(&memcacheds, "drawn", "Ready", ready).await;
    assert_eq!(number(&memcached, "/status/deployedRelease/version"), Some(1));
    drop(operator);
}
