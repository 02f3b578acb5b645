//! Under the rights that projects give.

use serde_json::json;

use crate::support::{MIRROR, Operator, Stage, config_map, is, until};

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
  annotations: {helm.sh/hook: 'pre-install,pre-delete', helm.sh/hook-output-log-policy: hook-succeeded}
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
    let (role, command) = stage.under_the_printed_role().await;
    for line in [
        "resources: [pods/log, services]",
        "verbs: [get]",
        "resources: [deployments]",
        "resources: [jobs]",
    ] {
        assert!(role.contains(line), "{line}:\n{role}");
    }
    admission_knows(&stage, "shops", &stage.shop("web", &json!({})));
    let operator = Operator::start(command, stage.folder.path());

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
        assert!(!log.contains(word), "{log}");
    }
    nothing_was_forbidden(&stage);
}

/// Admission hears of a new kind up to 30 s late, and until then refuses objects with an owner of it.
fn admission_knows(stage: &Stage, plural: &str, owner: &serde_json::Value) {
    stage.apply(owner);
    let name = owner["metadata"]["name"].as_str().unwrap();
    let uid = stage.get(&stage.kind(plural), name)["metadata"]["uid"].clone();
    let mut owned = config_map("probe", &json!({}));
    owned["metadata"]["ownerReferences"] = json!([{
        "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": name, "uid": uid,
        "blockOwnerDeletion": true,
    }]);
    stage.write("probe.json", &owned.to_string());
    let account = format!("--as=system:serviceaccount:{}:manager", stage.namespace.name());
    let arguments = ["create", &account, "--dry-run=server", "-f", "probe.json"];
    until("admission", || match stage.complaint(&arguments) {
        told if told.contains("RESTMapping") => Err(told),
        _ => Ok(()),
    });
}

/// Of all that the account `manager` asked for.
fn nothing_was_forbidden(stage: &Stage) {
    let account = format!("system:serviceaccount:{}:manager", stage.namespace.name());
    let requests = stage.cluster.audit().of_user(&account).requests().unwrap();
    assert!(requests.len() > 20, "the audit log tells of it");
    let forbidden: Vec<_> = requests.iter().filter(|request| request.code == 403).collect();
    assert!(forbidden.is_empty(), "{forbidden:#?}");
}

/// The sample project's chart with all that it can make, a failure that is taken back, hooks, overrides and
/// several kinds in one watches.yaml: under the printed role alone.
#[tokio::test]
async fn a_role_for_several_charts_is_enough_for_all_their_ways() {
    let mut stage = Stage::of("several", CHART).await;
    stage.write("helm-charts/demo/values.yaml", "more: {enabled: false}\n");
    stage.define("Cache", "Namespaced", &["v1"]);
    stage.define("Mirror", "Namespaced", &["v1"]);
    let chart = concat!(env!("CARGO_MANIFEST_DIR"), "/../../helm-charts/memcached");
    stage.chart("mirror", &[
        ("values.yaml", "broken: false\n"),
        ("templates/all.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Release.Name }}'}\ndata: {a: '{{ .Values.a }}'}\n{{ if .Values.broken }}\n---\napiVersion: v1\nkind: Service\nmetadata: {name: broken}\nspec: {ports: [{port: -1}]}\n{{ end }}\n"),
    ]);
    stage.watches(&format!(
        "- {{group: GROUP, version: v1, kind: Shop, chart: helm-charts/demo}}\n\
         - {{group: GROUP, version: v1, kind: Cache, chart: {chart}, overrideValues: {{httpRoute.enabled: \"\"}}}}\n\
         - {{group: GROUP, version: v1, kind: Mirror, chart: helm-charts/mirror}}\n"
    ));
    let (_, command) = stage.under_the_printed_role().await;
    let all = json!({ "ingress": { "enabled": true },
        "autoscaling": { "enabled": true, "minReplicas": 1, "maxReplicas": 2 } });
    let shop = stage.shop("web", &json!({ "more": { "enabled": true } }));
    admission_knows(&stage, "caches", &stage.resource("Cache", "cache", &all));
    admission_knows(&stage, "mirrors", &stage.resource("Mirror", "mirror", &json!({ "a": "1" })));
    admission_knows(&stage, "shops", &shop);
    let _operator = Operator::start(command, stage.folder.path());
    let becomes = |kind: &str, name: &str, want: &dyn Fn(&serde_json::Value) -> bool| {
        until(name, || {
            let now = stage.get(&stage.kind(kind), name);
            if want(&now) { Ok(()) } else { Err(format!("{:#}", now["status"])) }
        });
    };
    for (kind, name) in [("caches", "cache"), ("mirrors", "mirror"), ("shops", "web")] {
        becomes(kind, name, &|now| is(now, "Deployed", "True"));
    }
    stage.apply(&stage.resource("Mirror", "mirror", &json!({ "a": "2", "broken": true })));
    becomes("mirrors", "mirror", &|now| now["status"]["deployedRelease"]["version"] == 3);
    stage.apply(&stage.resource("Mirror", "mirror", &json!({ "a": "3" })));
    becomes("mirrors", "mirror", &|now| is(now, "Ready", "True"));
    stage.apply(&stage.resource("Cache", "cache", &json!({})));
    stage.kubectl(&["delete", "deployment", "cache-memcached"]);
    until("made anew", || {
        let deployment = stage.get("deployment", "cache-memcached");
        if deployment.is_null() { Err(String::new()) } else { Ok(()) }
    });
    for kind in ["caches", "mirrors", "shops"] {
        stage.kubectl(&["delete", &stage.kind(kind), "--all", "--timeout=60s"]);
    }
    assert_eq!(stage.records(), [""; 0]);
    nothing_was_forbidden(&stage);
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
    let mut command = stage.under(&role(&stage.group)).await;
    // As the first Helm operators of kubebuilder's layout: their role has ConfigMaps for it.
    command.args(["--enable-leader-election", "--leader-election-id=demo"]);
    command.args(["--leader-election-namespace", stage.namespace.name()]);
    let operator = Operator::start(command, stage.folder.path());
    stage.apply(
        &stage.shop("web", &json!({ "objects": [config_map("web", &json!({ "a": "1" }))] })),
    );
    stage.shop_becomes("web", "ready", |shop| is(shop, "Ready", "True"));
    let log = operator.log();
    let told = log.matches("no right to create and patch customresourcedefinitions").count();
    assert_eq!(told, 1, "one line names the right: {log}");
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

/// A kind that may not be read at all is named with the rule that would do, and once.
#[tokio::test]
async fn a_role_without_the_own_kind_is_told_with_what_it_lacks() {
    let stage = Stage::of("unread", MIRROR).await;
    stage.kubectl(&["create", "serviceaccount", "manager"]);
    let command = stage.as_manager().await;
    let operator = Operator::start(command, stage.folder.path());
    let told = "no right to list and watch the operator's own kind";
    operator.says(told);
    let log = operator.log();
    let line = log.lines().find(|line| line.contains(told)).unwrap();
    let line: serde_json::Value = serde_json::from_str(line).unwrap();
    assert_eq!(line["level"].as_str().map(str::to_lowercase).as_deref(), Some("error"));
    assert!(line["gvk"].as_str().unwrap().contains("Shop"), "{line}");
    assert_eq!(line["scope"], stage.namespace.name());
    // What it says is YAML of a role, and enough.
    let group = &stage.group;
    let rule = format!(
        "{{apiGroups: [\"{group}\"], resources: [shops], verbs: [get, list, watch, patch]}}"
    );
    assert!(line["rules"].as_str().unwrap().starts_with(&rule), "{line}");
    let more = "{apiGroups: [\"\"], resources: [secrets, configmaps], verbs: [\"*\"]}";
    let role = format!(
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {{name: manager-role}}\nrules: [{}, {more}]\n",
        line["rules"].as_str().unwrap()
    );
    stage.write("role.yaml", &role);
    stage.kubectl(&["apply", "-f", "role.yaml"]);
    let account = format!("--serviceaccount={}:manager", stage.namespace.name());
    stage.kubectl(&["create", "rolebinding", "manager", "--role=manager-role", &account]);
    stage.apply(&stage.shop("web", &json!({ "objects": [config_map("web", &json!({}))] })));
    stage.shop_becomes("web", "ready", |shop| is(shop, "Ready", "True"));
    assert_eq!(operator.log().matches(told).count(), 1, "{}", operator.log());
}

/// An operator of before Leases holds a ConfigMap; whoever comes waits for it, with a right to Leases or
/// without, and leads soon after it was let go.
#[tokio::test]
async fn who_holds_the_config_map_is_waited_for() {
    const LEADER: &str = "control-plane.alpha.kubernetes.io/leader";
    for leases in [false, true] {
        let stage = Stage::of("before-leases", MIRROR).await;
        let mut rules = role(&stage.group);
        if leases {
            rules.as_array_mut().unwrap().push(json!({
                "apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["*"] }));
        }
        let mut command = stage.under(&rules).await;
        let held = |holder: &str| {
            let leader = json!({ "holderIdentity": holder, "leaseDurationSeconds": 600,
                "acquireTime": "2024-01-02T03:04:05Z", "renewTime": "2024-01-02T03:04:05Z",
                "leaderTransitions": 1 });
            let annotations = json!({ LEADER: leader.to_string() });
            stage.apply(&json!({ "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": { "name": "demo", "annotations": annotations } }));
        };
        held("old-operator-0_1");
        command.args(["--leader-elect", "--leader-election-id=demo"]);
        command.args(["--leader-election-namespace", stage.namespace.name()]);
        let operator = Operator::start(command, stage.folder.path());
        stage.apply(&stage.shop("web", &json!({ "objects": [] })));
        operator.says("standing by");
        let log = operator.log();
        assert!(log.contains("old-operator-0_1") && !log.contains("\"leading\""), "{log}");
        assert!(stage.get("lease", "demo").is_null());
        held("");
        stage.shop_becomes("web", "ready", |shop| is(shop, "Ready", "True"));
        assert_eq!(stage.get("lease", "demo").is_null(), !leases);
    }
}

/// Hooks that leave a trace each time they run: their objects are not deleted before another run.
const HOOKED: &str = r#"
apiVersion: v1
kind: ConfigMap
metadata: {name: '{{ .Release.Name }}'}
data: {size: '{{ .Values.size }}'}
{{- range list "pre-install" "pre-upgrade" "pre-delete" }}
---
apiVersion: batch/v1
kind: Job
metadata:
  name: '{{ . }}'
  annotations: {helm.sh/hook: '{{ . }}', helm.sh/hook-delete-policy: never}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: job, image: busybox}]
{{- end }}
"#;

/// RBAC takes a right away in the midst of an install, an upgrade and an uninstall, and gives it back:
/// the release goes on where it was. Nothing is rolled back, and no hook runs a second time.
#[tokio::test]
async fn a_right_that_is_missing_for_a_while_takes_nothing_back_and_runs_no_hook_again() {
    let stage = Stage::of("while", HOOKED).await;
    stage.write("helm-charts/demo/values.yaml", "size: 1\n");
    let (role, command) = stage.under_the_printed_role().await;
    let without = role.replace("resources: [configmaps]", "resources: [nothing]");
    assert_ne!(role, without, "{role}");
    stage.write("without.yaml", &without);
    let take = || stage.kubectl(&["apply", "-f", "without.yaml"]);
    let give = || stage.kubectl(&["apply", "-f", "role.yaml"]);
    let uids = |job: &str| {
        let path = "jsonpath={.items[?(@.metadata.name=='";
        stage.kubectl(&["get", "jobs", "-o", &format!("{path}{job}')].metadata.uid}}")])
    };
    admission_knows(&stage, "shops", &stage.shop("web", &json!({})));
    stage.kubectl(&["delete", &stage.kind("shops"), "web"]);
    let _operator = Operator::start(command, stage.folder.path());

    take();
    stage.apply(&stage.shop("web", &json!({})));
    let refused = |shop: &serde_json::Value| {
        shop["status"]["conditions"].as_array().into_iter().flatten().any(|condition| {
            condition["message"].as_str().is_some_and(|message| message.contains("forbidden: User"))
        })
    };
    stage.shop_becomes("web", "refused", |shop| refused(shop));
    let installed = uids("pre-install");
    give();
    stage.shop_becomes("web", "installed", |shop| is(shop, "Ready", "True"));
    assert_eq!(uids("pre-install"), installed, "the hook of the install has run once");

    take();
    stage.apply(&stage.shop("web", &json!({ "size": 2 })));
    stage.shop_becomes("web", "refused", |shop| refused(shop));
    let upgraded = uids("pre-upgrade");
    give();
    stage.shop_becomes("web", "upgraded", |shop| is(shop, "Ready", "True"));
    assert_eq!(uids("pre-upgrade"), upgraded, "the hook of the upgrade has run once");
    let shop = stage.get(&stage.kind("shops"), "web");
    assert_eq!(shop["status"]["deployedRelease"]["version"], 2, "nothing was rolled back");

    take();
    stage.kubectl(&["delete", &stage.kind("shops"), "web", "--wait=false"]);
    stage.shop_becomes("web", "refused", |shop| refused(shop));
    give();
    stage.shop_vanishes("web");
    assert!(!uids("pre-delete").is_empty(), "the hook of the deletion has run");
    assert!(stage.kubectl(&["get", "configmaps"]).lines().all(|line| !line.starts_with("web")));
}
