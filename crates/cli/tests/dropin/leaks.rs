//! What a Secret of a release holds is told by nobody: policies, schemas, notes, overrides.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::support::{Operator, Stage, is, until};

const CANARY: &str = "c4n4ry-in-a-secret";

const CHART: &str = r#"
apiVersion: v1
kind: Secret
metadata: {name: '{{ .Release.Name }}', labels: {refused: '{{ .Values.refuse | default "nothing" }}'}}
stringData:
  password: {{ .Values.password | quote }}
{{- with .Values.extra }}
{{ toYaml . | indent 2 }}
{{- end }}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: '{{ .Release.Name }}', labels: {refused: '{{ .Values.refuse | default "nothing" }}'}}
spec:
  replicas: 0
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: nginx, env: [{name: PASSWORD, value: {{ .Values.password | quote }}}]}]
"#;

/// A policy that refuses objects with this label, and quotes them.
fn policy(stage: &Stage, resource: &str, group: &str, quote: &str) -> [Value; 2] {
    let namespace = stage.namespace.name();
    let name = format!("{namespace}-{resource}");
    let api_version = "admissionregistration.k8s.io/v1";
    let policy = json!({
        "apiVersion": api_version, "kind": "ValidatingAdmissionPolicy", "metadata": { "name": name },
        "spec": {
            "matchConstraints": {
                "namespaceSelector": { "matchLabels": { "kubernetes.io/metadata.name": namespace } },
                "resourceRules": [{ "apiGroups": [group], "apiVersions": ["v1"],
                    "operations": ["CREATE", "UPDATE"], "resources": [resource] }],
            },
            "validations": [{
                "expression": format!("!has(object.metadata.labels) || !('refused' in object.metadata.labels) || object.metadata.labels.refused != '{resource}'"),
                "messageExpression": format!("'this is refused: ' + {quote}"),
            }],
        },
    });
    let binding = json!({
        "apiVersion": api_version, "kind": "ValidatingAdmissionPolicyBinding", "metadata": { "name": name },
        "spec": { "policyName": name, "validationActions": ["Deny"] },
    });
    [policy, binding]
}

#[tokio::test]
async fn values_of_secrets_are_in_no_condition_event_log_line_or_record_description() {
    let stage = Stage::of("leaks", CHART).await;
    let notes = "The password is {{ .Values.password }}. The other one is {{ with lookup \"v1\" \"Secret\" .Release.Namespace \"other\" }}{{ .data.password | b64dec }}{{ end }}.{{ with .Values.fail }}{{ fail (printf \"%s %s\" . (lookup \"v1\" \"Secret\" $.Release.Namespace \"other\").data.password) }}{{ end }}";
    stage.write("helm-charts/demo/templates/NOTES.txt", notes);
    stage.apply(&json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "other" },
        "stringData": { "password": CANARY } }));
    stage.watches(
        "- {group: GROUP, version: v1, kind: Shop, chart: helm-charts/demo, overrideValues: {token: $LEAKS_TOKEN}}\n",
    );
    let env = "object.spec.template.spec.containers[0].env[0].value";
    let policies = [
        policy(&stage, "secrets", "", "string(object.data.password)"),
        policy(&stage, "deployments", "apps", env),
    ];
    for object in policies.iter().flatten() {
        stage.apply(object);
    }
    in_effect(&stage);
    let mut command =
        stage.command(&["run", "--health-probe-bind-address=0", "--metrics-bind-address=0"]);
    command.env("LEAKS_TOKEN", CANARY);
    let operator = Operator::start(command, stage.folder.path());

    let password = json!({ "password": CANARY });
    let with = |field: &str, value: Value| {
        let mut spec = password.clone();
        spec[field] = value;
        spec
    };
    let cases = [
        ("secret", with("refuse", "secrets".into())),
        ("deployment", with("refuse", "deployments".into())),
        ("schema", with("extra", json!({ "number": [CANARY] }))),
        ("key", with("extra", json!({ "not a key": "x" }))),
        ("failure", json!({ "password": "another one", "fail": "it failed" })),
    ];
    for (name, spec) in &cases {
        stage.apply(&stage.shop(name, spec));
        stage.shop_becomes(name, "refused", |shop| is(shop, "ReleaseFailed", "True"));
    }
    stage.apply(&stage.shop("notes", &password));
    let notes = stage.shop_becomes("notes", "deployed", |shop| is(shop, "Deployed", "True"));
    assert!(
        notes["status"]
            .to_string()
            .contains("The password is <redacted>. The other one is <redacted>."),
        "{notes:#}"
    );
    // An upgrade that fails is told, too, and rolled back.
    stage.apply(&stage.shop("notes", &with("refuse", "deployments".into())));
    stage.shop_becomes("notes", "refused", |shop| {
        shop["status"].to_string().contains("this is refused: <redacted>")
    });
    until("an event tells of it", || {
        let events = stage.kubectl(&["get", "events", "-o", "json"]);
        if events.contains("this is refused: ") { Ok(()) } else { Err(events) }
    });

    let mut told = vec![
        ("log", operator.log()),
        ("events", stage.kubectl(&["get", "events", "-o", "json"])),
        ("history", stage.helm3(&["history", "notes"])),
    ];
    for name in cases.iter().map(|case| case.0).chain(["notes"]) {
        told.push((name, stage.shop_now(name)["status"].to_string()));
    }
    let encoded = STANDARD.encode(CANARY);
    for (who, text) in &told {
        assert!(!text.contains(CANARY) && !text.contains(&encoded), "{who}: {text}");
    }
    assert!(told[1].1.contains("$LEAKS_TOKEN"), "an override is told by the name of its variable");
    stage.kubectl(&["delete", &stage.kind("shops"), "--all", "--timeout=60s"]);
    for [policy, binding] in &policies {
        for object in [policy, binding] {
            let kind = object["kind"].as_str().unwrap().to_lowercase();
            stage.kubectl(&["delete", &kind, object["metadata"]["name"].as_str().unwrap()]);
        }
    }
}

/// Policies are in force some seconds after they were made.
fn in_effect(stage: &Stage) {
    let refused = |kind: &str, object: Value| {
        stage.write("probe.json", &object.to_string());
        until(&format!("the policy for {kind} is in effect"), || {
            let told = stage.complaint(&["create", "--dry-run=server", "-f", "probe.json"]);
            if told.contains("this is refused") { Ok(()) } else { Err(told) }
        });
    };
    refused(
        "secrets",
        json!({ "apiVersion": "v1", "kind": "Secret",
        "metadata": { "name": "probe", "labels": { "refused": "secrets" } }, "stringData": { "password": "none" } }),
    );
    let labels = json!({ "app": "probe" });
    let container = json!({ "name": "a", "image": "b", "env": [{ "name": "A", "value": "none" }] });
    refused(
        "deployments",
        json!({ "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": "probe", "labels": { "refused": "deployments" } },
        "spec": { "selector": { "matchLabels": labels }, "template": {
            "metadata": { "labels": labels }, "spec": { "containers": [container] } } } }),
    );
}
