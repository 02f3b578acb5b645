//! What people may do with a kind's resources who have no rights besides: `scope` and `serviceAccountName`.

use serde_json::{Value, json};

use crate::support::{Operator, Stage, config_map, field, is, until};

/// A chart that trusts its values: objects and hooks of any kind, and templates.
const TRUSTING: &str = r#"
apiVersion: v1
kind: ConfigMap
metadata: {name: '{{ .Release.Name }}'}
data: {text: {{ tpl (.Values.text | default "nothing") . | quote }}}
{{- range .Values.objects }}
---
{{ toYaml . }}
{{- end }}
"#;

/// What `lookup` finds, and how much of it.
fn lookup(arguments: &str) -> Value {
    json!({ "text": format!("{{{{ lookup {arguments} | toJson }}}}") })
}

fn objects(objects: &[&Value]) -> Value {
    json!({ "objects": objects })
}

fn in_kube_system(mut object: Value) -> Value {
    object["metadata"]["namespace"] = "kube-system".into();
    object
}

fn hook(mut object: Value, event: &str) -> Value {
    object["metadata"]["annotations"] = json!({ "helm.sh/hook": event });
    object
}

/// All that the conditions of a Shop say.
fn messages(shop: &Value) -> String {
    let conditions = shop["status"]["conditions"].as_array().into_iter().flatten();
    conditions.filter_map(|condition| condition["message"].as_str()).collect::<Vec<_>>().join("\n")
}

/// A Shop with this spec, whose conditions say all of this; nothing of it is deployed.
fn is_refused(stage: &Stage, name: &str, spec: &Value, says: &[&str]) {
    stage.apply(&stage.shop(name, spec));
    let shop = stage.shop_becomes(name, "refused", |shop| {
        says.iter().all(|part| messages(shop).contains(part))
    });
    assert!(!is(&shop, "Deployed", "True"), "{:#}", shop["status"]);
}

fn watches(stage: &Stage, more: &str) {
    stage.watches(&format!(
        "- {{group: GROUP, version: v1, kind: Shop, chart: helm-charts/demo, {more}}}\n"
    ));
}

#[tokio::test]
async fn scope_namespace_keeps_objects_hooks_and_lookups_in_the_namespace_of_the_resource() {
    let stage = Stage::of("scope", TRUSTING).await;
    watches(&stage, "scope: namespace");
    let secret = json!({ "apiVersion": "v1", "kind": "Secret",
        "metadata": { "name": "mine" }, "stringData": { "color": "blue" } });
    stage.apply(&secret);
    let namespace = stage.namespace.name().to_owned();
    // The name is the namespace's, so that no other test makes or looks for it.
    let stray = in_kube_system(config_map(&namespace, &json!({})));
    let role = json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": { "name": namespace }, "rules": [] });
    let operator = stage.operator();

    let scope = "`scope: namespace`";
    let cases = [
        ("object", objects(&[&stray]), "in namespace \"kube-system\""),
        ("cluster", objects(&[&role]), "ClusterRole"),
        (
            "list",
            objects(&[&json!({ "apiVersion": "v1", "kind": "List", "items": [stray] })]),
            "kube-system",
        ),
        ("hook", objects(&[&hook(stray.clone(), "pre-install")]), "in namespace \"kube-system\""),
        (
            "farewell",
            objects(&[&hook(stray.clone(), "pre-delete")]),
            "in namespace \"kube-system\"",
        ),
        ("secret", lookup(r#""v1" "Secret" "kube-system" "some""#), "lookup"),
        ("secrets", lookup(r#""v1" "Secret" "kube-system" """#), "lookup"),
        ("everywhere", lookup(r#""v1" "Secret" "" """#), "lookup"),
        ("namespaces", lookup(r#""v1" "Namespace" "" """#), "lookup"),
    ];
    for (name, spec, says) in &cases {
        is_refused(&stage, name, spec, &[scope, says]);
    }
    // Nothing of a refused release is written, not even its ConfigMap.
    let maps = stage.names("configmaps", "app.kubernetes.io/managed-by=Helm");
    assert_eq!(maps, [""; 0]);
    assert!(stage.complaint(&["get", "cm", &namespace, "-n", "kube-system"]).contains("NotFound"));
    assert!(stage.complaint(&["get", "clusterrole", &namespace]).contains("NotFound"));

    // What lies in the namespace works, whether it is named or not.
    let mut named = config_map("named", &json!({}));
    named["metadata"]["namespace"] = namespace.as_str().into();
    let found = format!(r#""v1" "Secret" "{namespace}" "mine""#);
    let mut spec = lookup(&found);
    spec["objects"] = json!([named, hook(config_map("hooked", &json!({})), "pre-install")]);
    stage.apply(&stage.shop("good", &spec));
    stage.shop_becomes("good", "ready", |shop| is(shop, "Ready", "True"));
    let text = stage.get("configmap", "good")["data"]["text"].to_string();
    assert!(text.contains("color"), "{text}");
    assert!(!stage.get("configmap", "named").is_null());

    // A release that is deployed stays as it is while a later spec is refused.
    stage.apply(&stage.shop("good", &objects(&[&role])));
    stage.shop_becomes("good", "refused", |shop| messages(shop).contains("ClusterRole"));
    assert!(!stage.get("configmap", "named").is_null());
    for shop in cases.iter().map(|case| case.0).chain(["good"]) {
        stage.kubectl(&["delete", &stage.kind("shops"), shop, "--timeout=60s"]);
    }
    assert_eq!(stage.records(), [""; 0]);
    drop(operator);
}

/// What was deployed before the scope was set: objects elsewhere go with the release, hooks elsewhere do
/// not run any more.
#[tokio::test]
async fn scope_namespace_uninstalls_what_was_deployed_elsewhere_and_runs_no_hook_there() {
    let stage = Stage::of("rescoped", TRUSTING).await;
    let namespace = stage.namespace.name().to_owned();
    let stray = in_kube_system(config_map(&namespace, &json!({})));
    let mut farewell = hook(stray.clone(), "pre-delete");
    farewell["metadata"]["name"] = format!("{namespace}-hook").into();
    let operator = stage.operator();
    stage.apply(&stage.shop("old", &objects(&[&stray, &farewell])));
    stage.shop_becomes("old", "ready", |shop| is(shop, "Ready", "True"));
    drop(operator);

    watches(&stage, "scope: namespace");
    let operator = stage.operator();
    stage.kubectl(&["delete", &stage.kind("shops"), "old", "--timeout=60s"]);
    operator.says("out of scope");
    for name in [namespace.clone(), format!("{namespace}-hook")] {
        let told = stage.complaint(&["get", "cm", &name, "-n", "kube-system"]);
        assert!(told.contains("NotFound"), "{told}");
    }
}

/// The operator under the roles that `generate rbac` prints, with the account `deployer` for releases.
async fn with_account(stage: &Stage) -> Operator {
    let namespace = stage.namespace.name();
    watches(stage, "serviceAccountName: deployer");
    let (_, command) = stage.under_the_printed_role().await;
    // Where the key is kept that records are signed with; it is in the operator's namespace.
    let (verbs, account) =
        ("--verb=get,create,update", format!("--serviceaccount={namespace}:manager"));
    stage.kubectl(&["create", "role", "record-key", verbs, "--resource=secrets"]);
    stage.kubectl(&["create", "rolebinding", "record-key", "--role=record-key", &account]);
    Operator::start(command, stage.folder.path())
}

#[tokio::test]
async fn all_requests_of_a_release_are_made_as_its_service_account() {
    let stage = Stage::of("account", TRUSTING).await;
    let namespace = stage.namespace.name().to_owned();
    let operator = with_account(&stage).await;

    // Without the account there is a condition, and nothing is written.
    stage.apply(&stage.shop("web", &json!({})));
    stage.shop_becomes("web", "refused", |shop| {
        field(shop, "Irreconcilable", "reason") == "ErrorGettingClient"
            && messages(shop).contains("service account \"deployer\" does not exist")
    });
    assert_eq!(stage.records(), [""; 0]);

    // Without rights as well.
    stage.kubectl(&["create", "serviceaccount", "deployer"]);
    let user = format!("system:serviceaccount:{namespace}:deployer");
    stage.shop_becomes("web", "forbidden", |shop| {
        messages(shop).contains(&user) && messages(shop).contains("cannot")
    });

    // With the role that `generate rbac` prints for it, it works.
    let account = format!("--serviceaccount={namespace}:deployer");
    stage.kubectl(&["create", "rolebinding", "deployer", "--role=deployer", &account]);
    stage.shop_becomes("web", "ready", |shop| is(shop, "Ready", "True"));
    let manager = format!("system:serviceaccount:{namespace}:manager");
    let requests = stage.cluster.audit().of_user(&manager).requests().unwrap();
    let writes: Vec<_> = requests
        .iter()
        .filter(|request| ["configmaps", "secrets"].contains(&request.resource.as_str()))
        .filter(|request| ["create", "patch", "update", "delete"].contains(&request.verb.as_str()))
        .collect();
    let (as_account, own): (Vec<_>, Vec<_>) =
        writes.into_iter().partition(|request| request.impersonated == user);
    assert!(as_account.len() >= 3, "a record, its update, an object: {as_account:#?}");
    // The Secret of the key that records are signed with is the operator's.
    assert!(own.len() == 1 && own[0].verb == "create" && own[0].resource == "secrets", "{own:#?}");

    // Beyond its rights nothing is done, and nothing is found out.
    let stray = in_kube_system(config_map(&namespace, &json!({})));
    is_refused(&stage, "object", &objects(&[&stray]), &[&user, "kube-system"]);
    is_refused(&stage, "lookup", &lookup(r#""v1" "Secret" "kube-system" "some""#), &[&user]);
    is_refused(&stage, "lookups", &lookup(r#""v1" "Secret" "" """#), &[&user]);

    // An account that is deleted while its role binding stays is not used any more.
    stage.kubectl(&["delete", "serviceaccount", "deployer"]);
    drop(operator);
    let operator = Operator::start(stage.as_manager().await, stage.folder.path());
    stage.apply(&stage.shop("web", &json!({ "text": "changed" })));
    stage.shop_becomes("web", "refused", |shop| messages(shop).contains("does not exist"));
    assert_eq!(stage.get("configmap", "web")["data"]["text"], "nothing");
    stage.kubectl(&["create", "serviceaccount", "deployer"]);
    until("changed", || match stage.get("configmap", "web")["data"]["text"].as_str() {
        Some("changed") => Ok(()),
        other => Err(format!("{other:?}")),
    });
    stage.kubectl(&["delete", &stage.kind("shops"), "--all", "--timeout=60s"]);
    assert_eq!(stage.records(), [""; 0]);
    drop(operator);
}
