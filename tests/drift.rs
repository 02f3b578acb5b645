//! What others change is put back and told, unless it is left to them.

#![allow(clippy::unwrap_used)] // helpers of tests fail as tests do

mod support;

use serde_json::{Value, json};
use support::{Bench, becomes, condition, create, eventually, mirror, patch};

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
