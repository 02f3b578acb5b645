//! Status as both engines have it, and as it was left by them.

use serde_json::{Value, json};

use crate::support::{MIRROR, Stage, config_map, field, is};

fn objects(value: &str) -> Value {
    json!({ "objects": [config_map("web", &json!({ "a": value }))] })
}

#[tokio::test]
async fn it_says_what_is_deployed_and_leaves_to_others_what_is_theirs() {
    let stage = Stage::of("status", MIRROR).await;
    let created = stage.apply(&stage.shop("web", &objects("1")));
    let status = json!({ "status": {
        "conditions": [{ "type": "Theirs", "status": "True", "lastTransitionTime": "2020-01-01T00:00:00Z" }],
        "deployedRelease": { "name": "web", "manifest": "apiVersion: v1\nkind: Secret\n" },
        "theirs": { "a": 1 },
    }});
    let shops = stage.kind("shops");
    stage.kubectl(&[
        "patch",
        &shops,
        "web",
        "--subresource=status",
        "--type=merge",
        "-p",
        &status.to_string(),
    ]);
    let _operator = stage.operator();
    let shop = stage.shop_becomes("web", "ready", |shop| is(shop, "Ready", "True"));
    assert!(is(&shop, "Theirs", "True") && shop["status"]["theirs"]["a"] == 1);
    assert!(is(&shop, "Initialized", "True") && is(&shop, "Deployed", "True"));
    assert_eq!(field(&shop, "Deployed", "reason"), "InstallSuccessful");
    for absent in ["ReleaseFailed", "Irreconcilable", "Paused"] {
        assert_eq!(field(&shop, absent, "status"), "", "{absent}: operator-sdk takes them away");
    }
    assert_eq!(shop["status"]["deployedRelease"], json!({ "name": "web", "version": 1 }));
    assert_eq!(shop["status"]["observedGeneration"], created["metadata"]["generation"]);

    stage.apply(&stage.shop("web", &objects("2")));
    let shop = stage.shop_becomes("web", "upgraded", |shop| {
        field(shop, "Deployed", "reason") == "UpgradeSuccessful"
    });
    let history: Vec<_> = shop["status"]["history"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| (entry["version"].clone(), entry["status"].clone(), entry["chart"].clone()))
        .collect();
    let entry = |version: u32, status: &str| (json!(version), json!(status), json!("demo-1.0.0"));
    assert_eq!(history, [entry(2, "deployed"), entry(1, "superseded")]);
}

#[tokio::test]
async fn the_manifest_is_shown_where_that_is_asked_for() {
    let stage = Stage::of("manifest", MIRROR).await;
    let _operator = stage.operator_with(&["--status-manifest"]);
    stage.apply(&stage.shop("web", &objects("1")));
    let shop = stage.shop_becomes("web", "deployed", |shop| is(shop, "Deployed", "True"));
    let shown = shop["status"]["deployedRelease"]["manifest"].as_str().unwrap();
    assert_eq!(shown.trim(), stage.helm3(&["get", "manifest", "web"]).trim());
}

#[tokio::test]
async fn what_cannot_be_is_said_in_the_words_of_both_engines() {
    let stage = Stage::of(
        "wrong",
        &format!("{{{{ if .Values.fail }}}}{{{{ fail .Values.fail }}}}{{{{ end }}}}{MIRROR}"),
    )
    .await;
    let operator = stage.operator();
    stage.apply(&stage.shop("web", &json!({ "fail": "it must not be" })));
    let stuck = stage.shop_becomes("web", "stuck", |shop| is(shop, "ReleaseFailed", "True"));
    assert_eq!(field(&stuck, "ReleaseFailed", "reason"), "InstallError");
    assert!(field(&stuck, "ReleaseFailed", "message").contains("it must not be"));
    assert!(is(&stuck, "Deployed", "False") && is(&stuck, "Ready", "False"));
    // An object that belongs to somebody else.
    stage.apply(&config_map("web", &json!({ "whose": "theirs" })));
    stage.apply(&stage.shop("web", &objects("1")));
    let failed = stage.shop_becomes("web", "failed", |shop| is(shop, "ReleaseFailed", "True"));
    assert_eq!(field(&failed, "ReleaseFailed", "reason"), "InstallError");
    assert_eq!(stage.get("configmap", "web")["data"]["whose"], "theirs");
    stage.kubectl(&["delete", "configmap", "web"]);
    let shop = stage.shop_becomes("web", "deployed", |shop| is(shop, "Deployed", "True"));
    assert_eq!(
        (field(&shop, "ReleaseFailed", "status"), field(&shop, "Irreconcilable", "status")),
        ("", "")
    );
    operator.says("Installed release");
    stage.kubectl(&["patch", "configmap", "web", "--type=merge", "-p", r#"{"data":{"a":"9"}}"#]);
    operator.says("Reconciled release");
    stage.apply(&stage.shop("web", &objects("2")));
    operator.says("Upgraded release");
    stage.kubectl(&["delete", &stage.kind("shops"), "web", "--timeout=60s"]);
    operator.says("Uninstalled release");
    operator.says("Removing finalizer");
}
