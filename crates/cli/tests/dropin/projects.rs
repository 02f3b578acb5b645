//! What public projects showed, each with a project of our own that has the same.

use serde_json::json;

use crate::support::{MIRROR, Operator, Stage, config_map, field, is, until};

/// An API that was removed, and one of another vendor's cluster.
const REMOVED: &str = r"
apiVersion: v1
kind: ConfigMap
metadata: {name: '{{ .Release.Name }}'}
---
apiVersion: extensions/v1beta1
kind: Ingress
metadata: {name: '{{ .Release.Name }}'}
---
apiVersion: never.dropin.test/v1
kind: Route
metadata: {name: '{{ .Release.Name }}'}
";

#[tokio::test]
async fn a_chart_of_removed_apis_is_told_and_its_resource_can_be_deleted() {
    let stage = Stage::of("removed", REMOVED).await;
    let operator = stage.operator();
    stage.apply(&stage.shop("web", &json!({})));
    let shop = stage.shop_becomes("web", "told", |shop| is(shop, "ReleaseFailed", "True"));
    let message = field(&shop, "ReleaseFailed", "message");
    let words = r#"no matches for kind "Ingress" in version "extensions/v1beta1""#;
    assert!(message.contains(words), "{message}");
    assert!(stage.get("configmap", "web").is_null(), "nothing is made before all kinds are known");
    stage.kubectl(&["delete", &stage.kind("shops"), "web", "--timeout=30s"]);
    assert!(operator.log().contains("Removing finalizer"));
    assert_eq!(stage.records(), [""; 0]);
}

/// Of a manifest that is no list of objects nothing is ever sent, and nothing holds the resource.
#[tokio::test]
async fn a_chart_of_broken_objects_is_told_and_its_resource_can_be_deleted() {
    let broken = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n---\n# a comment that swallows it: apiVersion: v1\nkind: Service\nmetadata: {name: web}\n";
    let stage = Stage::of("broken", broken).await;
    let _operator = stage.operator();
    stage.apply(&stage.shop("web", &json!({})));
    let shop = stage.shop_becomes("web", "told", |shop| is(shop, "ReleaseFailed", "True"));
    let message = field(&shop, "ReleaseFailed", "message");
    assert!(message.contains("Service \"web\" has no apiVersion"), "{message}");
    assert!(stage.get("configmap", "web").is_null());
    stage.kubectl(&["delete", &stage.kind("shops"), "web", "--timeout=30s"]);
}

const ALL: [&str; 7] = ["create", "delete", "get", "list", "patch", "update", "watch"];

/// As operator-sdk 1.1 scaffolded it: without the right to `finalizers`, which admission asks for where
/// an owner's deletion is to be blocked.
#[tokio::test]
async fn without_the_right_to_finalizers_no_deletion_is_blocked() {
    let stage = Stage::of("unblocked", MIRROR).await;
    let rules = json!([
        { "apiGroups": [""], "resources": ["secrets", "configmaps"], "verbs": ["*"] },
        { "apiGroups": [stage.group], "resources": ["shops", "shops/status"], "verbs": ALL },
    ]);
    let operator = Operator::start(stage.under(&rules).await, stage.folder.path());
    let objects = |a: &str| json!({ "objects": [config_map("web", &json!({ "a": a })), config_map("more", &json!({}))] });
    stage.apply(&stage.shop("web", &objects("1")));
    stage.shop_becomes("web", "ready", |shop| is(shop, "Ready", "True"));
    stage.apply(&stage.shop("web", &objects("2")));
    stage.shop_becomes("web", "upgraded", |shop| {
        shop["status"]["deployedRelease"]["version"] == 2 && is(shop, "Ready", "True")
    });
    let owner = &stage.get("configmap", "web")["metadata"]["ownerReferences"][0];
    assert_eq!((&owner["kind"], &owner["blockOwnerDeletion"]), (&json!("Shop"), &json!(false)));
    let told = operator.log().matches("no right to block the owner's deletion").count();
    assert_eq!(told, 1, "{}", operator.log());
    stage.kubectl(&["delete", &stage.kind("shops"), "web", "--timeout=30s"]);
    assert_eq!(stage.records(), [""; 0]);
}

/// Without the right to a kind of the chart: no objects of it, so nothing to wait for at the end.
#[tokio::test]
async fn a_chart_beyond_the_rights_is_told_and_its_resource_can_be_deleted() {
    let stage = Stage::of("beyond", MIRROR).await;
    let rules = json!([
        { "apiGroups": [""], "resources": ["secrets", "configmaps"], "verbs": ["*"] },
        { "apiGroups": [stage.group], "resources": ["shops", "shops/status", "shops/finalizers"], "verbs": ALL },
    ]);
    let _operator = Operator::start(stage.under(&rules).await, stage.folder.path());
    let sealed = json!({ "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": { "name": "web" }, "spec": { "minAvailable": 1 } });
    let objects = json!({ "objects": [config_map("web", &json!({})), sealed] });
    stage.apply(&stage.shop("web", &objects));
    let shop = stage.shop_becomes("web", "told", |shop| {
        is(shop, "ReleaseFailed", "True")
            && field(shop, "ReleaseFailed", "message").contains("cannot")
            && field(shop, "ReleaseFailed", "message").contains("poddisruptionbudgets")
    });
    let message = field(&shop, "ReleaseFailed", "message");
    assert!(message.contains("poddisruptionbudgets.policy"), "{message}");
    stage.kubectl(&["delete", &stage.kind("shops"), "web", "--timeout=30s"]);
    assert_eq!(stage.records(), [""; 0]);
    until("nothing is left", || match stage.get("configmap", "web") {
        object if object.is_null() => Ok(()),
        object => Err(object.to_string()),
    });
}

#[tokio::test]
async fn a_chart_without_a_dependency_is_installed_without_it() {
    let stage = Stage::of("incomplete", MIRROR).await;
    let chart = "apiVersion: v2\nname: demo\nversion: 1.0.0\n\
        dependencies: [{name: gone, version: 1.x, repository: 'https://charts.invalid', condition: gone.enabled}]\n";
    stage.write("helm-charts/demo/Chart.yaml", chart);
    let operator = stage.operator();
    stage.apply(&stage.shop("web", &json!({ "objects": [config_map("web", &json!({}))] })));
    stage.shop_becomes("web", "ready", |shop| is(shop, "Ready", "True"));
    operator.says("dependencies of Chart.yaml are not in charts/");
    assert!(operator.log().contains("\"gone\""), "{}", operator.log());
}

/// A chart that refuses until another operator's definitions are there.
#[tokio::test]
async fn a_chart_that_asks_for_an_api_goes_on_once_that_is_there() {
    let mut stage = Stage::of("late", MIRROR).await;
    let late = format!("{}/v1/Late", stage.group);
    let template = format!(
        "{{{{ if not (.Capabilities.APIVersions.Has {late:?}) }}}}{{{{ fail \"not there yet\" }}}}{{{{ end }}}}{MIRROR}"
    );
    stage.chart("demo", &[("templates/all.yaml", &template)]);
    let _operator = stage.operator();
    stage.apply(&stage.shop("web", &json!({ "objects": [config_map("web", &json!({}))] })));
    let shop = stage.shop_becomes("web", "told", |shop| is(shop, "ReleaseFailed", "True"));
    assert!(field(&shop, "ReleaseFailed", "message").contains("not there yet"), "{shop:#}");
    stage.define("Late", "Namespaced", &["v1"]);
    stage.shop_becomes("web", "ready", |shop| is(shop, "Ready", "True"));
}
