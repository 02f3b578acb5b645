//! What annotations of both engines do.

use serde_json::json;

use crate::support::{MIRROR, Stage, config_map, field, is, until};

const PREFIX: &str = "helm.sdk.operatorframework.io";

#[tokio::test]
async fn a_paused_resource_is_left_alone_even_where_it_goes() {
    let stage = Stage::of("pause", MIRROR).await;
    let operator = stage.operator();
    let objects = |value: &str| json!({ "objects": [config_map("web", &json!({ "a": value }))] });
    stage.apply(&stage.shop("web", &objects("1")));
    stage.shop_becomes("web", "deployed", |shop| is(shop, "Deployed", "True"));

    stage.annotate("web", &format!("{PREFIX}/pause-reconcile=true"));
    let paused = stage.shop_becomes("web", "paused", |shop| is(shop, "Paused", "True"));
    assert_eq!(field(&paused, "Paused", "reason"), "PauseReconcileAnnotationTrue");
    for unknown in ["Deployed", "Initialized", "Irreconcilable", "ReleaseFailed"] {
        assert!(is(&paused, unknown, "Unknown"), "{unknown}");
    }
    assert!(paused["status"]["deployedRelease"].is_null());
    // Neither a change nor the deletion moves it, nor drift.
    stage.kubectl(&[
        "patch",
        &stage.kind("shops"),
        "web",
        "--type=merge",
        "-p",
        &json!({ "spec": objects("2") }).to_string(),
    ]);
    stage.kubectl(&[
        "patch",
        "configmap",
        "web",
        "--type=merge",
        "-p",
        r#"{"data":{"a":"by hand"}}"#,
    ]);
    stage.kubectl(&["delete", &stage.kind("shops"), "web", "--wait=false"]);
    stage.shop_becomes("web", "seen to be leaving", |shop| {
        shop["status"]["observedGeneration"] == shop["metadata"]["generation"]
    });
    assert_eq!(stage.get("configmap", "web")["data"]["a"], "by hand");
    assert!(!operator.log().contains("Uninstalled release"));

    stage.annotate("web", &format!("{PREFIX}/pause-reconcile=false"));
    stage.shop_vanishes("web");
    assert!(stage.get("configmap", "web").is_null());
    operator.says("Uninstalled release");
}

#[tokio::test]
async fn after_a_pause_all_is_as_before() {
    let stage = Stage::of("unpause", MIRROR).await;
    let _operator = stage.operator();
    let objects = json!({ "objects": [config_map("web", &json!({ "a": "1" }))] });
    let mut shop = stage.shop("web", &objects);
    shop["metadata"]["annotations"] = json!({ format!("{PREFIX}/pause-reconcile"): "true" });
    stage.apply(&shop);
    stage.shop_becomes("web", "paused", |shop| is(shop, "Paused", "True"));
    assert!(stage.get("configmap", "web").is_null(), "nothing was installed");
    // kubectl takes an annotation off by a trailing dash of its key.
    stage.kubectl(&[
        "annotate",
        &stage.kind("shops"),
        "web",
        &format!("{PREFIX}/pause-reconcile-"),
    ]);
    let shop = stage.shop_becomes("web", "deployed", |shop| is(shop, "Ready", "True"));
    assert!(is(&shop, "Paused", "False") && is(&shop, "Deployed", "True"));
    assert!(is(&shop, "ReleaseFailed", "False") && is(&shop, "Irreconcilable", "False"));
    assert_eq!(shop["status"]["deployedRelease"]["name"], "web");
}

#[tokio::test]
async fn uninstall_wait_holds_the_resource_until_all_is_gone() {
    let stage = Stage::of("wait", MIRROR).await;
    let operator = stage.operator();
    let objects =
        json!({ "objects": [config_map("web", &json!({})), config_map("other", &json!({}))] });
    let mut shop = stage.shop("web", &objects);
    shop["metadata"]["annotations"] = json!({ format!("{PREFIX}/uninstall-wait"): "true" });
    stage.apply(&shop);
    stage.shop_becomes("web", "deployed", |shop| is(shop, "Deployed", "True"));
    let held = r#"{"metadata":{"finalizers":["dropin.test/held"]}}"#;
    stage.kubectl(&["patch", "configmap", "web", "--type=merge", "-p", held]);
    stage.kubectl(&["delete", &stage.kind("shops"), "web", "--wait=false"]);
    let waiting = stage.shop_becomes("web", "waiting", |shop| is(shop, "Deployed", "False"));
    assert_eq!(field(&waiting, "Deployed", "reason"), "UninstallSuccessful");
    assert_eq!(field(&waiting, "Deployed", "message"), "Waiting until all resources are deleted.");
    operator.says("Uninstall wait");
    until("the other one is gone", || {
        if stage.get("configmap", "other").is_null() { Ok(()) } else { Err(String::new()) }
    });
    assert!(!stage.shop_now("web").is_null(), "it waits");
    let freed = r#"{"metadata":{"finalizers":null}}"#;
    stage.kubectl(&["patch", "configmap", "web", "--type=merge", "-p", freed]);
    stage.shop_vanishes("web");
    assert_eq!(stage.records(), [""; 0]);
}

#[tokio::test]
async fn descriptions_and_hooks_of_each_action_are_asked_for_by_annotation() {
    let hook = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: hook-{{ .Release.Revision }}\n  annotations: {helm.sh/hook: 'pre-install,pre-upgrade'}\n---\n";
    let stage = Stage::of("described", &format!("{hook}{MIRROR}")).await;
    let _operator = stage.operator();
    let objects = |value: &str| json!({ "objects": [config_map("web", &json!({ "a": value }))] });
    let mut shop = stage.shop("web", &objects("1"));
    shop["metadata"]["annotations"] = json!({
        format!("{PREFIX}/install-description"): "as the shop wishes",
        format!("{PREFIX}/install-disable-hooks"): "true",
        // The name before operator-sdk 1.0.
        "helm.operator-sdk/upgrade-force": "True",
    });
    stage.apply(&shop);
    stage.shop_becomes("web", "deployed", |shop| is(shop, "Deployed", "True"));
    assert!(stage.helm3(&["history", "web"]).contains("as the shop wishes"));
    assert!(stage.get("configmap", "hook-1").is_null(), "no hook ran");

    // What others added is gone after a forced upgrade.
    stage.kubectl(&[
        "patch",
        "configmap",
        "web",
        "--type=merge",
        "-p",
        r#"{"data":{"theirs":"x"}}"#,
    ]);
    shop["spec"] = objects("2");
    stage.apply(&shop);
    until("upgraded", || {
        let data = stage.get("configmap", "web")["data"].clone();
        if data == json!({ "a": "2" }) { Ok(()) } else { Err(data.to_string()) }
    });
    assert!(!stage.get("configmap", "hook-2").is_null(), "hooks of upgrades run");
}

#[tokio::test]
async fn a_period_that_is_none_is_said() {
    let stage = Stage::of("period", MIRROR).await;
    let _operator = stage.operator();
    let mut shop = stage.shop("web", &json!({ "objects": [] }));
    shop["metadata"]["annotations"] = json!({ format!("{PREFIX}/reconcile-period"): "soon" });
    stage.apply(&shop);
    let stuck = stage.shop_becomes("web", "stuck", |shop| is(shop, "Irreconcilable", "True"));
    assert!(field(&stuck, "Irreconcilable", "message").contains("reconcile-period"), "{stuck:#}");
    stage.annotate("web", &format!("{PREFIX}/reconcile-period=1h"));
    stage.shop_becomes("web", "deployed", |shop| is(shop, "Deployed", "True"));
}
