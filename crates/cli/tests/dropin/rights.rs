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

const CHART: &str = r#"
apiVersion: v1
kind: ConfigMap
metadata: {name: '{{ .Release.Name }}'}
data:
  found: '{{ (lookup "v1" "Service" .Release.Namespace "some").spec | default "nothing" }}'
  password: '{{ randAlphaNum 8 | b64enc }}'
---
apiVersion: batch/v1
kind: Job
metadata:
  name: '{{ .Release.Name }}-before'
  annotations: {helm.sh/hook: 'pre-install,pre-delete'}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: job, image: busybox}]
{{- if .Values.more.enabled }}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: '{{ .Release.Name }}'}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: nginx}]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: '{{ .Release.Name }}'}
rules: [{apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, update]}]
{{- end }}
"#;

#[tokio::test]
async fn a_generated_role_is_enough() {
    let stage = Stage::of("generated", CHART).await;
    stage.write("helm-charts/demo/values.yaml", "more: {enabled: false}\n");
    let namespace = stage.namespace.name();
    let program = stage.program();
    let role =
        stage.command(&["generate", "rbac"]).args(["--namespace", namespace]).output().unwrap();
    assert!(role.status.success(), "{}: {role:?}", program.display());
    let role = String::from_utf8(role.stdout).unwrap();
    for line in
        ["resources: [services]", "verbs: [get]", "resources: [deployments]", "resources: [jobs]"]
    {
        assert!(role.contains(line), "{line}:\n{role}");
    }
    stage.write("role.yaml", &role);
    stage.kubectl(&["apply", "-f", "role.yaml"]);
    stage.kubectl(&["create", "serviceaccount", "manager"]);
    let account = format!("--serviceaccount={namespace}:manager");
    stage.kubectl(&["create", "rolebinding", "manager", "--role=manager-role", &account]);
    let kubeconfig = stage.cluster.service_account(&stage.namespace, "manager").await.unwrap();
    let mut command =
        stage.command(&["run", "--health-probe-bind-address=0", "--metrics-bind-address=0"]);
    command.env("KUBECONFIG", kubeconfig);
    let operator = Operator::start(command, stage.folder.path());

    stage.apply(&stage.shop("web", &json!({})));
    stage.shop_becomes("web", "ready", |shop| is(shop, "Ready", "True"));
    stage.apply(&stage.shop("web", &json!({ "more": { "enabled": true } })));
    stage.shop_becomes("web", "all of it", |shop| {
        shop["status"]["deployedRelease"]["version"] == 2 && is(shop, "Ready", "True")
    });
    stage.kubectl(&["delete", "deployment", "web"]);
    operator.says("Reconciled release");
    stage.kubectl(&["delete", &stage.kind("shops"), "web", "--timeout=60s"]);
    let log = operator.log();
    for word in ["forbidden", "no right"] {
        assert!(!log.contains(word) || log.contains("cannot find RESTMapping"), "{log}");
    }
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
    let mut rules = role(&stage.group);
    // Leader election by ConfigMaps, as kubebuilder scaffolded it once.
    let last = rules.as_array_mut().unwrap().last_mut().unwrap();
    assert_eq!(last["resources"][0], "configmaps");
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
    // As the first Helm operators of kubebuilder's layout: their role has ConfigMaps for it.
    command.args(["--enable-leader-election", "--leader-election-id=demo"]);
    command.args(["--leader-election-namespace", stage.namespace.name()]);
    command.env("KUBECONFIG", account);
    let operator = Operator::start(command, stage.folder.path());
    stage.apply(
        &stage.shop("web", &json!({ "objects": [config_map("web", &json!({ "a": "1" }))] })),
    );
    stage.shop_becomes("web", "ready", |shop| is(shop, "Ready", "True"));
    let log = operator.log();
    let told: Vec<_> =
        log.lines().filter(|line| line.contains("bring the chart's definitions")).collect();
    assert_eq!(told.len(), 1, "one line names the right: {log}");
    assert_eq!(log.matches("no right to the lease").count(), 1, "{log}");
    let leader = stage.get("configmap", "demo")["metadata"]["annotations"].clone();
    let leader = leader["control-plane.alpha.kubernetes.io/leader"].as_str().unwrap();
    assert!(leader.contains("\"leaseDurationSeconds\":15"), "led by a ConfigMap: {leader}");
    stage.kubectl(&["delete", &stage.kind("shops"), "web", "--timeout=60s"]);
    assert_eq!(stage.records(), [""; 0]);
}

/// Two replicas without any right to a lock must not both work; with one to ConfigMaps, one works.
#[tokio::test]
async fn of_two_replicas_without_a_lease_at_most_one_works() {
    let stage = Stage::of("leaseless", MIRROR).await;
    let namespace = stage.namespace.name().to_owned();
    let rules = |locks: bool| {
        let mut rules = role(&stage.group);
        let rules = rules.as_array_mut().unwrap();
        if !locks {
            rules.pop();
        }
        json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
            "metadata": { "name": "manager-role" }, "rules": rules })
    };
    stage.apply(&rules(false));
    stage.kubectl(&["create", "serviceaccount", "manager"]);
    let account = format!("--serviceaccount={namespace}:manager");
    stage.kubectl(&["create", "rolebinding", "manager", "--role=manager-role", &account]);
    let kubeconfig = stage.cluster.service_account(&stage.namespace, "manager").await.unwrap();
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let operators = folders.each_ref().map(|folder| {
        let mut command =
            stage.command(&["run", "--health-probe-bind-address=0", "--metrics-bind-address=0"]);
        command.args(["--leader-elect", "--leader-election-id=demo"]);
        command.args(["--leader-election-namespace", &namespace]).env("KUBECONFIG", &kubeconfig);
        Operator::start(command, folder.path())
    });
    stage.apply(&stage.shop("web", &json!({ "objects": [] })));
    for operator in &operators {
        operator.says("nobody leads");
    }
    assert!(stage.shop_now("web")["status"].is_null(), "nobody works");
    // The right comes, and with it one leader.
    stage.apply(&rules(true));
    stage.shop_becomes("web", "ready", |shop| is(shop, "Ready", "True"));
    let leading = operators.iter().filter(|operator| operator.log().contains("\"leading\""));
    assert_eq!(leading.count(), 1);
    // It ends, and the other one goes on.
    let [first, second] = operators;
    let (leader, _other) =
        if first.log().contains("\"leading\"") { (first, second) } else { (second, first) };
    drop(leader);
    stage.apply(&stage.shop("next", &json!({ "objects": [] })));
    stage.shop_becomes("next", "ready", |shop| is(shop, "Ready", "True"));
}
