use super::*;
use serde_json::json;

/// A Deployment of three replicas that we applied, as somebody left it.
fn deployment(replicas: u32, managers: &[Value]) -> Value {
    let mut entries = vec![json!({
        "manager": "helm", "operation": "Apply", "apiVersion": "apps/v1",
        "fieldsV1": {"f:spec": {"f:paused": {}, "f:template": {"f:metadata": {"f:labels": {"f:a": {}}}}}},
    })];
    entries.extend_from_slice(managers);
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "d", "labels": {"tier": "web"}, "managedFields": entries},
        "spec": {"replicas": replicas, "paused": true, "template": {"metadata": {"labels": {"a": "b"}}}},
    })
}

fn wanted() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {"replicas": 3, "paused": true, "template": {"metadata": {"labels": {"a": "b"}}}},
    })
}

fn told(
    desired: &Value,
    live: &Value,
    rules: &[IgnoreRule],
    autoscaled: bool,
) -> (Vec<String>, Value) {
    let (due, body) = due(desired, live, "helm", rules, autoscaled);
    (field_drifts(&due, desired, live).iter().map(ToString::to_string).collect(), body)
}

#[test]
fn replicas_are_ours_unless_an_autoscaler_sets_them() {
    let live = deployment(9, &[]);
    let (fields, body) = told(&wanted(), &live, &[], false);
    assert_eq!(fields, ["spec.replicas is 9 and should be 3"]);
    assert_eq!(body, wanted());
    let (fields, body) = told(&wanted(), &live, &[], true);
    assert_eq!(fields, [""; 0]);
    assert_eq!(body["spec"].get("replicas"), None, "or the apply would take it back");
}

fn of_tier(tier: &str) -> kube::core::Selector {
    kube::core::Expression::Equal("tier".into(), tier.into()).into()
}

#[test]
fn rules_ignore_what_others_changed_and_keep_what_is_still_ours() {
    let mut desired = wanted();
    desired["spec"]["template"]["metadata"]["annotations"] = json!({"x/y": "z"});
    let live = deployment(9, &[]);
    let rule = |paths: &[&str]| IgnoreRule {
        kind: Some("Deployment".into()),
        paths: paths.iter().map(|path| (*path).to_owned()).collect(),
        ..IgnoreRule::default()
    };
    let both = rule(&["/spec/replicas", "/spec/template", "/spec/paused"]);
    let (fields, body) = told(&desired, &live, std::slice::from_ref(&both), false);
    assert_eq!(fields, [""; 0]);
    assert_eq!(
        body["spec"],
        json!({"paused": true, "template": {"metadata": {"labels": {"a": "b"}}}})
    );
    let when = |text: &str| Some(std::sync::Arc::new(crate::cel::Program::read(text).unwrap()));
    for (paths, expression, ignored) in [
        (&[][..], "path == '/spec/replicas' || path.startsWith('/spec/template/')", true),
        (&[], "object.spec.replicas > desired.spec.replicas", true),
        (&["/spec"], "object.metadata.labels.tier == 'web'", true),
        (&["/spec/paused"], "true", false),
        (&["/spec"], "object.spec.replicas < 5", false),
        (&["/spec"], "object.absent.deep", false),
    ] {
        let rule = IgnoreRule { when: when(expression), ..rule(paths) };
        let (fields, _) = told(&desired, &live, &[rule], false);
        assert_eq!(fields.is_empty(), ignored, "{expression}");
    }
    let elsewhere = [
        IgnoreRule { name: Some("e".into()), ..both.clone() },
        IgnoreRule { group: Some(String::new()), ..both.clone() },
        IgnoreRule { selector: of_tier("db"), ..both.clone() },
        rule(&["/spec/replica", "/spec/template/metadata/annotations/x"]),
    ];
    let (fields, body) = told(&desired, &live, &elsewhere, false);
    assert_eq!(
        fields,
        ["spec.template.metadata.annotations", "spec.replicas is 9 and should be 3"]
    );
    assert_eq!(body, desired);
    let labelled = IgnoreRule { selector: of_tier("web"), ..both };
    assert_eq!(told(&desired, &live, &[labelled], false).0, [""; 0]);
}

#[test]
fn items_are_taken_out_from_behind() {
    let mut object = json!({"a": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10], "b/c": {"d": 1}});
    let pointers = ["/a/2", "/a/10", "/b~1c/d", "/a/99"].map(str::to_owned);
    ignore::take_out(&mut object, &pointers);
    assert_eq!(object, json!({"a": [0, 1, 3, 4, 5, 6, 7, 8, 9], "b/c": {}}));
}

#[test]
fn no_text_is_told() {
    let mut live = deployment(3, &[]);
    live["spec"]["paused"] = "canary".into();
    let mut desired = wanted();
    desired["spec"]["minReadySeconds"] = 5.into();
    live["spec"]["minReadySeconds"] = "canary".into();
    let (fields, _) = told(&desired, &live, &[], false);
    assert_eq!(fields, ["spec.paused", "spec.minReadySeconds", "spec.replicas"]);
}

#[test]
fn a_dry_run_is_compared_without_what_counts_and_times() {
    let entry = |time: &str| json!({"manager": "helm", "operation": "Apply", "time": time, "fieldsV1": {"f:data": {}}});
    let mut before = json!({
        "kind": "X", "metadata": {"name": "a", "generation": 1, "resourceVersion": "5", "managedFields": [entry("1")]},
        "spec": {"items": [{"name": "a", "v": 1}]}, "status": {"a": 1},
    });
    let mut after = before.clone();
    after["metadata"]["managedFields"] = json!([entry("2")]);
    after["metadata"]["resourceVersion"] = "6".into();
    after["metadata"]["generation"] = 2.into();
    after["status"] = json!({});
    let told = |before: &Value, after: &Value| -> Vec<String> {
        changed(before, after).iter().map(ToString::to_string).collect()
    };
    assert_eq!(told(&before, &after), [""; 0]);
    after["spec"]["items"][0]["v"] = 2.into();
    after["metadata"]["labels"] = json!({"a": "b"});
    assert_eq!(told(&before, &after), ["metadata.labels", "spec.items[name=a].v"]);
    before["metadata"]["managedFields"][0]["fieldsV1"] = json!({});
    before["spec"] = after["spec"].clone();
    before["metadata"]["labels"] = after["metadata"]["labels"].clone();
    assert_eq!(told(&before, &after), ["metadata.managedFields"]);
}

#[test]
fn an_object_may_ask_to_be_left_alone() {
    for (name, value, left) in [
        ("helm.toolkit.fluxcd.io/driftDetection", "disabled", true),
        ("helm.toolkit.fluxcd.io/driftDetection", "enabled", false),
        ("catamaran.dev/drift", "ignore", true),
    ] {
        let object = json!({"metadata": {"annotations": {name: value}}});
        assert_eq!(is_left_alone(&object), left, "{name}={value}");
    }
}
