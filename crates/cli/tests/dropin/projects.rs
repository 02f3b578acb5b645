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

/// Without the right to a kind of the chart: no objects of it, so nothing to wait for at the end.
#[tokio::test]
async fn a_chart_beyond_the_rights_is_told_and_its_resource_can_be_deleted() {
    let stage = Stage::of("beyond", MIRROR).await;
    let all = ["create", "delete", "get", "list", "patch", "update", "watch"];
    let rules = json!([
        { "apiGroups": [""], "resources": ["secrets"], "verbs": ["*"] },
        { "apiGroups": [stage.group], "resources": ["shops", "shops/status", "shops/finalizers"], "verbs": all },
        { "apiGroups": [""], "resources": ["configmaps"], "verbs": all },
    ]);
    stage.apply(&json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": { "name": "manager-role" }, "rules": rules }));
    stage.kubectl(&["create", "serviceaccount", "manager"]);
    let account = format!("--serviceaccount={}:manager", stage.namespace.name());
    stage.kubectl(&["create", "rolebinding", "manager", "--role=manager-role", &account]);
    let mut command =
        stage.command(&["run", "--health-probe-bind-address=0", "--metrics-bind-address=0"]);
    command.env(
        "KUBECONFIG",
        stage.cluster.service_account(&stage.namespace, "manager").await.unwrap(),
    );
    let _operator = Operator::start(command, stage.folder.path());
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
