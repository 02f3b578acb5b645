//! Releases as the Go operators leave them: taken over without a new revision, a restart or an orphan.

use catamaran_localcluster::Request;
use serde_json::{Value, json};

use crate::support::{Stage, field, is};

/// As `helm create` has it, in little: no namespaces, comments, and a cluster-scoped object.
const CHART: &str = "\
# Source of all
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}
  labels: {helm.sh/chart: demo-1.0.0, app.kubernetes.io/managed-by: {{ .Release.Service }}}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: {{ .Release.Name }}}}
  template:
    metadata: {labels: {app: {{ .Release.Name }}}}
    spec:
      containers:
      - {name: web, image: 'nginx:{{ .Values.tag }}'}
---
apiVersion: v1
kind: Service
metadata:
  name: {{ .Release.Name }}
spec:
  selector: {app: {{ .Release.Name }}}
  ports: [{port: 80}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ .Release.Namespace }}-{{ .Release.Name }}
rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]
";

/// A project, and a Shop `web` that a Go operator has carried: its finalizer, its status.
async fn carried(name: &str, finalizer: &str, conditions: Value) -> (Stage, Value) {
    let stage = Stage::of(name, CHART).await;
    stage.write("helm-charts/demo/values.yaml", "replicas: 1\ntag: '1'\n");
    let mut shop = stage.shop("web", &json!({ "replicas": 2 }));
    shop["metadata"]["finalizers"] = json!([finalizer]);
    let shop = stage.apply(&shop);
    let status = json!({ "status": {
        "conditions": conditions,
        "deployedRelease": { "name": "web", "manifest": "---\n# all of it\n" },
    }});
    stage.kubectl(&[
        "patch",
        &stage.kind("shops"),
        "web",
        "--subresource=status",
        "--type=merge",
        "-p",
        &status.to_string(),
    ]);
    (stage, shop)
}

fn reference(shop: &Value) -> Value {
    json!({
        "apiVersion": shop["apiVersion"], "kind": "Shop", "name": "web", "uid": shop["metadata"]["uid"],
        "controller": true, "blockOwnerDeletion": true,
    })
}

/// Installs with helm 3, under the name that operator-sdk's program gives to its fields.
fn install(stage: &Stage, more: &[&str]) {
    let program = stage.folder.path().join("go/helm-operator");
    std::fs::create_dir_all(program.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(stage.cluster.tools().unwrap().helm3(), &program).unwrap();
    let fixed = ["install", "web", "helm-charts/demo", "--set", "replicas=2"];
    stage.succeed(&program, &[&fixed[..], more].concat());
}

/// What must not change, of each object.
fn marks(stage: &Stage) -> Vec<(Value, Value)> {
    let role = format!("{}-web", stage.namespace.name());
    [("deployment", "web"), ("service", "web"), ("clusterrole", role.as_str())]
        .into_iter()
        .map(|(kind, name)| {
            let object = stage.get(kind, name);
            (object["metadata"]["uid"].clone(), object["metadata"]["generation"].clone())
        })
        .collect()
}

/// At most one write to each object of the release: that of the label and the owner.
fn written_once(stage: &Stage, asked: &[Request]) {
    let role = format!("{}-web", stage.namespace.name());
    let role = role.as_str();
    for (resource, name) in [("deployments", "web"), ("services", "web"), ("clusterroles", role)] {
        let is_write = |it: &&Request| {
            let read = ["get", "list", "watch"].contains(&it.verb.as_str());
            (it.resource.as_str(), it.name.as_str()) == (resource, name) && !read
        };
        let in_place =
            |it: &&Request| it.namespace.is_empty() || it.namespace == stage.namespace.name();
        let writes: Vec<_> = asked.iter().filter(is_write).filter(in_place).collect();
        assert!(writes.len() <= 1, "{resource} {name}: {writes:#?}");
        let live = stage.get(resource, name);
        assert_eq!(live["metadata"]["labels"]["helm.sdk.operatorframework.io/chart"], "demo");
    }
}

/// Takes over, upgrades once, and uninstalls.
fn take_over(stage: &Stage, conditions: &dyn Fn(&Value)) {
    stage.kubectl(&["rollout", "status", "deployment/web", "--timeout=60s"]);
    let (before, template) = (marks(stage), stage.get("deployment", "web")["spec"].clone());
    let pods = stage.names("pods", "app=web");
    let records = stage.records();
    let audit = stage.cluster.audit().of_agent("catamaran/");
    let begun = audit.mark().unwrap();
    let _operator = stage.operator();
    let shop = stage.shop_becomes("web", "taken over", |shop| {
        is(shop, "Ready", "True") && shop["status"]["observedGeneration"] == 1
    });
    assert_eq!(shop["status"]["deployedRelease"], json!({ "name": "web", "version": 1 }));
    conditions(&shop);
    assert_eq!(stage.records(), records, "no new revision");
    assert_eq!(marks(stage), before, "nothing was made anew or changed");
    assert_eq!(stage.get("deployment", "web")["spec"], template);
    assert_eq!(stage.names("pods", "app=web"), pods, "no restart");
    written_once(stage, &audit.since(begun).unwrap());
    let record = stage.get("secret", "sh.helm.release.v1.web.v1");
    assert!(record["metadata"]["ownerReferences"].is_null(), "it outlives the resource");

    stage.apply(&stage.shop("web", &json!({ "replicas": 2, "tag": "2" })));
    stage.shop_becomes("web", "upgraded", |shop| {
        shop["status"]["deployedRelease"]["version"] == 2 && is(shop, "Ready", "True")
    });
    // In the foreground: the garbage collector is faster than any operator.
    stage.kubectl(&[
        "delete",
        &stage.kind("shops"),
        "web",
        "--cascade=foreground",
        "--timeout=60s",
    ]);
    let role = format!("{}-web", stage.namespace.name());
    assert!(stage.get("clusterrole", &role).is_null(), "no orphan");
    assert!(stage.get("service", "web").is_null());
    assert_eq!(stage.records(), [""; 0]);
}

#[tokio::test]
async fn from_operator_sdk() {
    let at = "2024-01-01T00:00:00Z";
    let conditions = json!([
        { "type": "Initialized", "status": "True", "lastTransitionTime": at },
        { "type": "Deployed", "status": "True", "reason": "InstallSuccessful", "message": "notes", "lastTransitionTime": at },
    ]);
    let finalizer = "helm.sdk.operatorframework.io/uninstall-release";
    let (stage, shop) = carried("from-sdk", finalizer, conditions).await;
    install(&stage, &[]);
    // Owners and the label go on objects as they are sent, not into the record.
    let labels = json!({ "helm.sdk.operatorframework.io/chart": "demo" });
    let owned = json!({ "metadata": { "labels": labels, "ownerReferences": [reference(&shop)] } });
    let annotated = json!({ "metadata": { "labels": labels, "annotations": {
        "operator-sdk/primary-resource": format!("{}/web", stage.namespace.name()),
        "operator-sdk/primary-resource-type": format!("Shop.{}", stage.group),
    }}});
    let role = format!("{}-web", stage.namespace.name());
    for (kind, name, patch) in [
        ("deployment", "web", &owned),
        ("service", "web", &owned),
        ("clusterrole", &role, &annotated),
    ] {
        let patch = patch.to_string();
        stage.kubectl(&[
            "patch",
            kind,
            name,
            "--field-manager=helm-operator",
            "--type=merge",
            "-p",
            &patch,
        ]);
    }
    let record = json!({ "metadata": { "ownerReferences": [reference(&shop)] } }).to_string();
    stage.kubectl(&["patch", "secret", "sh.helm.release.v1.web.v1", "--type=merge", "-p", &record]);
    take_over(&stage, &|shop| {
        assert_eq!(
            field(shop, "Deployed", "lastTransitionTime"),
            at,
            "it was deployed all the time"
        );
        assert_eq!(field(shop, "ReleaseFailed", "status"), "");
    });
}

#[tokio::test]
async fn from_helm_operator_plugins() {
    let at = "2024-01-01T00:00:00Z";
    let condition = |type_: &str, status: &str| json!({ "type": type_, "status": status, "lastTransitionTime": at });
    let conditions = json!([
        condition("Deployed", "True"),
        condition("Initialized", "True"),
        condition("Irreconcilable", "False"),
        condition("Paused", "False"),
        condition("ReleaseFailed", "False"),
    ]);
    let (stage, shop) = carried("from-plugins", "uninstall-helm-release", conditions).await;
    // The record holds the namespace and the owner of every object, and all values of the chart.
    let namespace = stage.namespace.name().to_owned();
    let owner = reference(&shop).to_string();
    let annotations = format!(
        "{{operator-sdk/primary-resource: {namespace}/web, operator-sdk/primary-resource-type: Shop.{}}}",
        stage.group
    );
    let script = format!(
        "#!/bin/sh\nawk '/^kind: ClusterRole/ {{ role = 1 }} {{ print }} /^metadata:/ {{ \
         if (role) print \"  annotations: {annotations}\"; \
         else print \"  namespace: {namespace}\\n  ownerReferences: [{}]\" }}' | grep -v '^#'\n",
        owner.replace('"', "\\\"")
    );
    stage.write("post-render", &script);
    let path = stage.folder.path().join("post-render");
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    install(&stage, &["--set-string", "tag=1", "--post-renderer", path.to_str().unwrap()]);
    let record = json!({ "metadata": { "ownerReferences": [reference(&shop)] } }).to_string();
    stage.kubectl(&["patch", "secret", "sh.helm.release.v1.web.v1", "--type=merge", "-p", &record]);
    take_over(&stage, &|shop| {
        for fine in ["ReleaseFailed", "Irreconcilable"] {
            assert_eq!(field(shop, fine, "status"), "False", "{fine} stays said");
            assert_eq!(field(shop, fine, "lastTransitionTime"), at);
        }
    });
}

#[tokio::test]
async fn from_the_helm_cli() {
    let stage = Stage::of("from-helm", CHART).await;
    stage.write("helm-charts/demo/values.yaml", "replicas: 1\ntag: '1'\n");
    stage.helm3(&["install", "web", "helm-charts/demo", "--set", "replicas=2"]);
    // A person's release does not become a resource's by its name alone.
    let mut shop = stage.shop("web", &json!({ "replicas": 2 }));
    shop["metadata"]["annotations"] = json!({ "catamaran.dev/adopt-release": "web" });
    stage.apply(&shop);
    take_over(&stage, &|shop| assert!(is(shop, "Deployed", "True")));
}
