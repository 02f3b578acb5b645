//! Under the rights that projects give.

use serde_json::json;

use crate::support::{MIRROR, Operator, Stage, config_map, is};

/// What operator-sdk scaffolds for a chart of ConfigMaps, without a wildcard: neither events, pods nor
/// definitions.
fn role(group: &str) -> serde_json::Value {
    let all = ["create", "delete", "get", "list", "patch", "update", "watch"];
    json!([
        { "apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"] },
        { "apiGroups": [""], "resources": ["secrets"], "verbs": ["*"] },
        { "apiGroups": [group], "resources": ["shops", "shops/status", "shops/finalizers"], "verbs": all },
        { "apiGroups": [""], "resources": ["configmaps"], "verbs": all },
    ])
}

#[tokio::test]
async fn what_is_not_allowed_is_done_without_and_named() {
    let crd = r"apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.never.dropin.test}
spec:
  group: never.dropin.test
  scope: Namespaced
  names: {kind: Thing, plural: things}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
";
    let stage = Stage::of("rights", MIRROR).await;
    stage.write("helm-charts/demo/crds/thing.yaml", crd);
    let rules = role(&stage.group);
    let named = |kind: &str, more: serde_json::Value| {
        let mut object = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind,
            "metadata": { "name": "manager-role", "namespace": stage.namespace.name() },
        });
        object.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        stage.apply(&object);
    };
    named("Role", json!({ "rules": rules }));
    stage.kubectl(&["create", "serviceaccount", "manager"]);
    named(
        "RoleBinding",
        json!({
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "manager-role" },
            "subjects": [{ "kind": "ServiceAccount", "name": "manager", "namespace": stage.namespace.name() }],
        }),
    );
    let account = stage.cluster.service_account(&stage.namespace, "manager").await.unwrap();
    let mut command =
        stage.command(&["run", "--health-probe-bind-address=0", "--metrics-bind-address=0"]);
    command.env("KUBECONFIG", account);
    let operator = Operator::start(command, stage.folder.path());
    stage.apply(
        &stage.shop("web", &json!({ "objects": [config_map("web", &json!({ "a": "1" }))] })),
    );
    stage.shop_becomes("web", "ready", |shop| is(shop, "Ready", "True"));
    let log = operator.log();
    let told: Vec<_> =
        log.lines().filter(|line| line.contains("customresourcedefinitions")).collect();
    assert_eq!(told.len(), 1, "one line names the right: {log}");
    stage.kubectl(&["delete", &stage.kind("shops"), "web", "--timeout=60s"]);
    assert_eq!(stage.records(), [""; 0]);
}
