//! What cannot be done is said, where and why, and hurts nobody else.

#![allow(clippy::unwrap_used)] // helpers of tests fail as tests do

mod support;

use std::process::Command;

use serde_json::json;
use support::{Bench, becomes, condition, create, delete, field, patch, root, vanishes};

/// Runs the operator with a watches.yaml; its exit code and what it prints.
fn with_watches(text: &str) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("watches.yaml");
    std::fs::write(&file, text).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_memcached-operator"))
        .arg("--watches-file")
        .arg(&file)
        .env("KUBECONFIG", "/nonexistent") // it must not come so far
        .current_dir(root())
        .output()
        .unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    (output.status.code(), told.replace(&file.display().to_string(), "watches.yaml"))
}

#[test]
fn an_invalid_watches_file_is_refused_with_file_and_line() {
    let chart = "chart: helm-charts/memcached";
    let table = [
        (
            format!("- version: v1\n  kind: A\n  {chart}\n- version: v1\n  kind: A\n  {chart}\n"),
            "watches.yaml:4: duplicate GVK: /v1, Kind=A",
        ),
        (
            "- version: v1\n  kind: A\n  chart: missing\n".to_owned(),
            "watches.yaml:1: invalid chart directory missing",
        ),
        (
            format!("\n- version: v1\n  {chart}\n"),
            "watches.yaml:2: invalid GVK: /v1, Kind=: kind must not be empty",
        ),
        (format!("version: v1\nkind: A\n{chart}\n"), "watches.yaml:1: watches must be a list"),
        (
            "- version: v1\n  kind: A\n".to_owned(),
            "watches.yaml:1: an entry needs chart or reconciler",
        ),
        (
            format!("- version: v1\n  kind: A\n  {chart}\n  reconciler: MemcachedBackup\n"),
            "watches.yaml:1: an entry has either chart or reconciler",
        ),
        (
            "- version: v1\n  kind: A\n  reconciler: Nobody\n".to_owned(),
            "watches.yaml:1: unknown reconciler \"Nobody\": main.rs registers MemcachedBackup",
        ),
    ];
    for (text, expected) in table {
        let (code, told) = with_watches(&text);
        assert_eq!(code, Some(1), "{text}: {told}");
        assert!(told.contains(expected), "{text}: {told}");
    }
}

#[tokio::test]
async fn a_value_of_the_wrong_type_is_a_condition_and_not_a_crash() {
    let bench = Bench::shared("wrong").await;
    let operator = bench.operator();
    let memcacheds = bench.memcacheds();
    let spec = json!({ "replicaCount": "many" });
    create(&memcacheds, "cache.my.domain/v1alpha1", "Memcached", "wrong", spec).await;
    let wrong = becomes(&memcacheds, "wrong", "told", |object| {
        condition(object, "ReleaseFailed") == "True"
    })
    .await;
    assert_eq!(field(&wrong, "ReleaseFailed", "reason"), "InstallError");
    assert!(
        field(&wrong, "ReleaseFailed", "message").contains("Deployment \"wrong-memcached\""),
        "{:#}",
        wrong.data
    );
    assert_eq!(condition(&wrong, "Ready"), "False");

    create(
        &memcacheds,
        "cache.my.domain/v1alpha1",
        "Memcached",
        "template",
        json!({ "image": "nginx" }),
    )
    .await;
    let template = becomes(&memcacheds, "template", "told", |object| {
        condition(object, "ReleaseFailed") == "True"
    })
    .await;
    let message = field(&template, "ReleaseFailed", "message");
    assert!(
        message.contains("memcached/templates/deployment.yaml"),
        "names the template: {message}"
    );

    // The others go on, and a mistake that is mended is forgotten.
    create(&memcacheds, "cache.my.domain/v1alpha1", "Memcached", "right", json!({})).await;
    becomes(&memcacheds, "right", "Ready", |object| condition(object, "Ready") == "True").await;
    patch(&memcacheds, "wrong", json!({ "spec": { "replicaCount": 1 } })).await;
    let mended =
        becomes(&memcacheds, "wrong", "Ready", |object| condition(object, "Ready") == "True").await;
    assert_eq!(condition(&mended, "ReleaseFailed"), "", "no longer told");
    for name in ["wrong", "template", "right"] {
        delete(&memcacheds, name).await;
        vanishes(&memcacheds, name).await;
    }
    assert!(!operator.log().contains("panicked"), "{}", operator.log());
}

#[tokio::test]
async fn an_object_of_somebody_else_is_left_alone() {
    let bench = Bench::shared("foreign").await;
    // The name that the chart's Deployment would have, and the native kind's.
    for name in ["taken-memcached", "taken"] {
        bench.kubectl(&["create", "deployment", name, "--image=theirs:1"]);
    }
    let _operator = bench.operator();
    create(&bench.memcacheds(), "cache.my.domain/v1alpha1", "Memcached", "taken", json!({})).await;
    let told = becomes(&bench.memcacheds(), "taken", "told", |object| {
        condition(object, "ReleaseFailed") == "True"
    })
    .await;
    let message = field(&told, "ReleaseFailed", "message");
    assert!(
        message.contains("exists and cannot be imported into the current release"),
        "{message}"
    );
    delete(&bench.memcacheds(), "taken").await;
    vanishes(&bench.memcacheds(), "taken").await;

    create(
        &bench.backups(),
        "cache.my.domain/v1",
        "MemcachedBackup",
        "taken",
        json!({ "size": 1 }),
    )
    .await;
    let told =
        becomes(&bench.backups(), "taken", "told", |object| condition(object, "Ready") == "False")
            .await;
    assert!(
        field(&told, "Ready", "message").contains("does not belong to this resource"),
        "{:#}",
        told.data
    );
    delete(&bench.backups(), "taken").await;
    vanishes(&bench.backups(), "taken").await;

    for name in ["taken-memcached", "taken"] {
        let theirs = bench.deployments().get(name).await.unwrap();
        let image = theirs.data.pointer("/spec/template/spec/containers/0/image").unwrap();
        assert_eq!(image, "theirs:1", "untouched, and still there");
    }
}

#[tokio::test]
async fn a_name_that_no_release_can_have_is_not_refused_but_another_derived() {
    let bench = Bench::shared("names").await;
    let _operator = bench.operator();
    let memcacheds = bench.memcacheds();
    for name in ["m".repeat(54), "m".repeat(80), format!("a.{}", "b".repeat(60))] {
        create(&memcacheds, "cache.my.domain/v1alpha1", "Memcached", &name, json!({})).await;
        let deployed = becomes(&memcacheds, &name, "deployed", |object| {
            condition(object, "Deployed") == "True"
        })
        .await;
        let release = deployed.data.pointer("/status/deployedRelease/name");
        let release = release.and_then(|name| name.as_str()).unwrap_or_default();
        assert!((1..=53).contains(&release.len()), "{:#}", deployed.data);
        delete(&memcacheds, &name).await;
        vanishes(&memcacheds, &name).await;
    }
}
