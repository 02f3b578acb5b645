//! Behaviour that the suites of both engines check and no other file here does; SUITES.md has the list.

use serde_json::{Value, json};

use crate::support::{MIRROR, Stage, config_map, field, is, until};

const PREFIX: &str = "helm.sdk.operatorframework.io";

fn web(value: &str) -> Value {
    json!({ "objects": [config_map("web", &json!({ "a": value }))] })
}

/// The same, and an object that the API server refuses.
fn broken(value: &str) -> Value {
    let service = json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": "broken" },
        "spec": { "ports": [{ "port": -1 }] } });
    json!({ "objects": [config_map("web", &json!({ "a": value })), service] })
}

/// Whether an event of this reason says so.
fn event(stage: &Stage, reason: &str, note: &str) -> Result<(), String> {
    let told = stage.kubectl(&[
        "get",
        "events",
        "-o=jsonpath={range .items[*]}{.type} {.reason} {.message}{\"\\n\"}{end}",
    ]);
    let wanted = format!("Warning {reason} {note}");
    if told.lines().any(|line| line == wanted) { Ok(()) } else { Err(told) }
}

#[tokio::test]
async fn overrides_are_told_by_events_and_reach_charts_as_asked() {
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Release.Name }}'}\ndata:\n  loud: '{{ if .Values.loud }}yes{{ end }}'\n  type: '{{ kindOf .Values.loud }}'\n";
    let stage = Stage::of("overrides", template).await;
    let table = [
        // As operator-sdk: strings, and the words of its event.
        ("", "", "string", "OverrideValuesInUse", "\"false\" by operator's watches.yaml"),
        (
            "",
            "--suppress-override-values",
            "string",
            "OverrideValuesInUse",
            "\"****\" by operator's watches.yaml",
        ),
        // As helm-operator-plugins: types. By a flag, and by a key of the entry.
        ("", "--override-values=typed", "bool", "ValueOverridden", "\"false\" by operator"),
        (
            ", overrideValueTypes: typed",
            "--override-values=strings",
            "bool",
            "ValueOverridden",
            "\"false\" by operator",
        ),
        (
            ", overrideValueTypes: strings",
            "--override-values=typed",
            "string",
            "OverrideValuesInUse",
            "\"false\" by operator's watches.yaml",
        ),
    ];
    for (number, (key, flag, type_, reason, note)) in table.into_iter().enumerate() {
        stage.watches(&format!(
            "- {{group: GROUP, version: v1, kind: Shop, chart: helm-charts/demo, overrideValues: {{loud: false}}{key}}}\n"
        ));
        let more: Vec<&str> = Some(flag).filter(|flag| !flag.is_empty()).into_iter().collect();
        let _operator = stage.operator_with(&more);
        let name = format!("shop-{number}");
        stage.apply(&stage.shop(&name, &json!({ "loud": true })));
        stage.shop_becomes(&name, "ready", |shop| is(shop, "Ready", "True"));
        let data = stage.get("configmap", &name)["data"].clone();
        let loud = if type_ == "string" { "yes" } else { "" };
        assert_eq!(data, json!({ "loud": loud, "type": type_ }), "{key} {flag}");
        until("the event", || {
            event(&stage, reason, &format!("Chart value \"loud\" overridden to {note}"))
        });
        stage.kubectl(&["delete", &stage.kind("shops"), &name, "--timeout=60s"]);
    }
}

#[tokio::test]
async fn a_failed_upgrade_is_told_in_the_manner_of_each_engine() {
    let stage = Stage::of("manners", MIRROR).await;
    // A resource of helm-operator-plugins says what is false.
    stage.apply(&stage.shop("hybrid", &json!({ "objects": [config_map("hybrid", &json!({}))] })));
    let says = |type_: &str| json!({ "type": type_, "status": "False", "lastTransitionTime": "2020-01-01T00:00:00Z" });
    let status =
        json!({ "status": { "conditions": [says("Irreconcilable"), says("ReleaseFailed")] } });
    stage.kubectl(&[
        "patch",
        &stage.kind("shops"),
        "hybrid",
        "--subresource=status",
        "--type=merge",
        "-p",
        &status.to_string(),
    ]);
    let operator = stage.operator();
    stage.apply(&stage.shop("web", &web("1")));
    for (name, false_) in [("web", ""), ("hybrid", "False")] {
        let shop = stage.shop_becomes(name, "ready", |shop| is(shop, "Ready", "True"));
        for type_ in ["ReleaseFailed", "Irreconcilable"] {
            assert_eq!(field(&shop, type_, "status"), false_, "{name} {type_}");
        }
    }
    for (name, other, irreconcilable) in [("web", "web", ""), ("hybrid", "other", "True")] {
        let mut spec = broken("2");
        spec["objects"][0]["metadata"]["name"] = other.into();
        stage.apply(&stage.shop(name, &spec));
        let shop = stage.shop_becomes(name, "failed", |shop| is(shop, "ReleaseFailed", "True"));
        assert_eq!(field(&shop, "ReleaseFailed", "reason"), "UpgradeError");
        assert_eq!(field(&shop, "Irreconcilable", "status"), irreconcilable, "{name}");
        assert_eq!(field(&shop, "Deployed", "reason"), "InstallSuccessful", "what was before");
        assert_eq!(shop["status"]["deployedRelease"]["version"], 3, "rolled back");
    }
    operator.says("Rolled back release");
    for (name, other, false_) in [("web", "web", ""), ("hybrid", "other", "False")] {
        stage.apply(
            &stage.shop(name, &json!({ "objects": [config_map(other, &json!({ "a": "3" }))] })),
        );
        let shop = stage.shop_becomes(name, "well again", |shop| {
            field(shop, "Deployed", "reason") == "UpgradeSuccessful" && is(shop, "Ready", "True")
        });
        for type_ in ["ReleaseFailed", "Irreconcilable"] {
            assert_eq!(field(&shop, type_, "status"), false_, "{name} {type_}");
        }
    }
}

#[tokio::test]
async fn a_rollback_replaces_objects_if_that_is_asked_for() {
    let stage = Stage::of("rollback-force", MIRROR).await;
    let _operator = stage.operator();
    for (force, theirs) in [("false", json!("x")), ("true", Value::Null)] {
        let name = format!("web-{force}");
        let spec = |value: &str, mut spec: Value| {
            spec["objects"][0] = config_map(&name, &json!({ "a": value }));
            spec
        };
        let mut shop = stage.shop(&name, &spec("1", web("1")));
        shop["metadata"]["annotations"] = json!({ format!("{PREFIX}/rollback-force"): force });
        stage.apply(&shop);
        stage.shop_becomes(&name, "ready", |shop| is(shop, "Ready", "True"));
        let patch = r#"{"data":{"theirs":"x"}}"#;
        stage.kubectl(&["patch", "configmap", &name, "--type=merge", "-p", patch]);
        shop["spec"] = spec("2", broken("2"));
        stage.apply(&shop);
        stage.shop_becomes(&name, "rolled back", |shop| {
            shop["status"]["deployedRelease"]["version"] == 3
        });
        let data = stage.get("configmap", &name)["data"].clone();
        assert_eq!((&data["a"], &data["theirs"]), (&json!("1"), &theirs), "{force}");
    }
}

#[tokio::test]
async fn taking_back_is_switched_off_in_watches_yaml() {
    let stage = Stage::of("forward", MIRROR).await;
    stage.watches("- {group: GROUP, version: v1, kind: Shop, chart: helm-charts/demo, failureRollbacks: false}\n");
    let _operator = stage.operator();
    stage.apply(&stage.shop("web", &broken("1")));
    let shop = stage.shop_becomes("web", "failed", |shop| is(shop, "ReleaseFailed", "True"));
    assert_eq!(field(&shop, "ReleaseFailed", "reason"), "InstallError");
    assert!(is(&shop, "Deployed", "False"));
    assert_eq!(stage.get("configmap", "web")["data"]["a"], "1", "what came before stays");
    assert_eq!(stage.records(), ["sh.helm.release.v1.web.v1"]);
    stage.apply(&stage.shop("web", &web("2")));
    stage.shop_becomes("web", "ready", |shop| is(shop, "Ready", "True"));
}

/// Where a process ends between the failure and what takes it back, the next one takes it back: an upgrade
/// to what was deployed, an install altogether.
#[tokio::test]
async fn a_failure_that_nobody_took_back_is_taken_back_by_the_next_process() {
    let stage = Stage::of("between", MIRROR).await;
    let entry = |more: &str| {
        stage.watches(&format!(
            "- {{group: GROUP, version: v1, kind: Shop, chart: helm-charts/demo{more}}}\n"
        ));
    };
    // What it leaves is what a crash leaves: the newest revision failed, nothing began.
    entry(", failureRollbacks: false");
    let operator = stage.operator();
    stage.apply(&stage.shop("web", &web("1")));
    stage.shop_becomes("web", "ready", |shop| is(shop, "Ready", "True"));
    stage.apply(&stage.shop("web", &broken("2")));
    let mut never = broken("1");
    never["objects"][0]["metadata"]["name"] = json!("never");
    stage.apply(&stage.shop("never", &never));
    for name in ["web", "never"] {
        stage.shop_becomes(name, "failed", |shop| is(shop, "ReleaseFailed", "True"));
    }
    assert!(!stage.get("configmap", "never").is_null(), "what came before stays");
    drop(operator);
    entry("");
    let _operator = stage.operator();
    until("the upgrade is taken back", || {
        let told = stage.helm3(&["history", "web", "--max=1", "-o", "json"]);
        if told.contains("Rollback to") { Ok(()) } else { Err(told) }
    });
    let shop = stage.shop_becomes("web", "told", |shop| is(shop, "ReleaseFailed", "True"));
    assert!(is(&shop, "Deployed", "True"));
    assert_eq!(stage.get("configmap", "web")["data"], json!({ "a": "1" }));
    until("the install is taken back", || {
        let told = stage.helm3(&["list", "--all", "-q"]);
        if told.contains("never") { Err(told) } else { Ok(()) }
    });
    let shop = stage.shop_becomes("never", "told", |shop| is(shop, "ReleaseFailed", "True"));
    assert!(is(&shop, "Deployed", "False"));
    assert!(stage.get("configmap", "never").is_null());
}

#[tokio::test]
async fn a_release_that_helm_left_failed_or_superseded_is_brought_on() {
    let stage = Stage::of("left", MIRROR).await;
    let values = |spec: &Value| {
        stage.write("values.json", &spec.to_string());
        ["--values", "values.json"]
    };
    let given = values(&web("1"));
    stage.helm3(&[&["install", "web", "helm-charts/demo"], &given[..]].concat());
    let given = values(&broken("2"));
    let program = stage.cluster.tools().unwrap().helm3();
    let failed = std::process::Command::new(program)
        .args(["--namespace", stage.namespace.name(), "upgrade", "web", "helm-charts/demo"])
        .args(given)
        .env("KUBECONFIG", stage.cluster.kubeconfig())
        .current_dir(stage.folder.path())
        .output()
        .unwrap();
    assert!(!failed.status.success());
    let _operator = stage.operator();
    let mut shop = stage.shop("web", &web("3"));
    shop["metadata"]["annotations"] = json!({ "catamaran.dev/adopt-release": "web" });
    stage.apply(&shop);
    let shop = stage.shop_becomes("web", "ready", |shop| is(shop, "Ready", "True"));
    assert_eq!(field(&shop, "Deployed", "reason"), "UpgradeSuccessful");
    assert_eq!(shop["status"]["deployedRelease"]["version"], 3);
    assert_eq!(stage.get("configmap", "web")["data"], json!({ "a": "3" }));
}

#[tokio::test]
async fn what_cannot_be_reconciled_says_why() {
    let table = "{{ required \"a is needed\" .Values.a }}";
    let template = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: '{{{{ .Release.Name }}}}'}}\ndata: {{a: '{table}'}}\n"
    );
    let stage = Stage::of("irreconcilable", &template).await;
    let operator = stage.operator();
    stage.apply(&stage.shop("web", &json!({})));
    // To operator-sdk, rendering is a step of the first install.
    let shop = stage.shop_becomes("web", "failed", |shop| is(shop, "ReleaseFailed", "True"));
    assert_eq!(field(&shop, "ReleaseFailed", "reason"), "InstallError");
    assert!(field(&shop, "ReleaseFailed", "message").contains("a is needed"));
    assert_eq!(field(&shop, "Irreconcilable", "status"), "");
    assert!(is(&shop, "Deployed", "False") && is(&shop, "Initialized", "True"));
    stage.apply(&stage.shop("web", &json!({ "a": "1" })));
    stage.shop_becomes("web", "ready", |shop| is(shop, "Ready", "True"));
    // A later spec that does not render leaves what is there, and says so beside it.
    stage.apply(&stage.shop("web", &json!({ "a": null })));
    let shop = stage.shop_becomes("web", "stuck", |shop| is(shop, "Irreconcilable", "True"));
    assert_eq!(field(&shop, "Irreconcilable", "reason"), "ReconcileError");
    assert!(is(&shop, "Deployed", "True"));
    assert_eq!(stage.get("configmap", "web")["data"]["a"], "1");
    // Deleted, it is uninstalled all the same.
    stage.kubectl(&["delete", &stage.kind("shops"), "web", "--timeout=60s"]);
    operator.says("Removing finalizer");
    assert_eq!(stage.records(), [""; 0]);
}

#[tokio::test]
async fn what_a_chart_wants_kept_stays() {
    let stage = Stage::of("keep", MIRROR).await;
    let _operator = stage.operator();
    let policies = [
        ("plain", None),
        ("keep", Some("keep")),
        ("loud", Some("  Keep ")),
        ("odd", Some("delete")),
    ];
    let objects: Vec<Value> = policies
        .iter()
        .map(|(name, policy)| {
            let mut map = config_map(name, &json!({}));
            if let Some(policy) = policy {
                map["metadata"]["annotations"] = json!({ "helm.sh/resource-policy": policy });
            }
            map
        })
        .collect();
    stage.apply(&stage.shop("web", &json!({ "objects": objects })));
    stage.shop_becomes("web", "ready", |shop| is(shop, "Ready", "True"));
    stage.kubectl(&["delete", &stage.kind("shops"), "web", "--timeout=60s"]);
    stage.shop_vanishes("web");
    until("what is not kept goes", || {
        let names = stage.names("configmaps", "app.kubernetes.io/managed-by=Helm");
        // Another policy than keep is left by the uninstall, and collected with its owner.
        if names == ["keep", "loud"] { Ok(()) } else { Err(format!("{names:?}")) }
    });
}
