//! What an apply would change is known beforehand, and what others did is told from what is theirs.

use catamaran_cluster::drift::IgnoreRule;
use catamaran_localcluster::{AuditLog, LocalCluster, Mark};
use catamaran_release::{Applied, Done, Driver, Found, Owner};
use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

use crate::support::{Helm, Wish, cluster, config_map, driver, secret, service};

/// A namespace whose requests are counted, and a driver for it.
struct Bench {
    cluster: LocalCluster,
    namespace: catamaran_localcluster::Namespace,
    client: Client,
    driver: Driver,
    log: AuditLog,
}

impl Bench {
    async fn new(name: &str) -> Self {
        let cluster = cluster().await;
        let namespace = cluster.namespace(name).await.expect("a namespace");
        let agent = format!("{name}-counted");
        let driver = driver(&cluster.client_called(&agent).expect("a client"));
        let log = cluster.audit().of_agent(&agent);
        Self { client: cluster.client(), cluster, namespace, driver, log }
    }

    /// What was asked for since, without discovery: `get configmaps`, `patch deployments dry`.
    fn since(&self, mark: Mark) -> Vec<String> {
        let told = |request: catamaran_localcluster::Request| {
            let dry = if request.uri.contains("dryRun") { " dry" } else { "" };
            format!("{} {}{dry}", request.verb, request.resource)
        };
        let asked = self.log.since(mark).expect("requests");
        asked.into_iter().filter(|request| !request.resource.is_empty()).map(told).collect()
    }

    /// What a restart does to a release that nobody wants changed.
    async fn look_anew(&self, name: &str) -> Applied {
        let history = self.driver.history(&self.namespace, name).await.expect("a history");
        self.driver.repair(&history, None::<&Owner>, &[]).await.expect("repaired")
    }

    fn api(&self, api_version: &str, kind: &str) -> Api<DynamicObject> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        Api::namespaced_with(self.client.clone(), &self.namespace, &resource)
    }

    /// Changes an object as another program does.
    async fn change(&self, api: &Api<DynamicObject>, name: &str, manager: &str, patch: Value) {
        let params =
            PatchParams { field_manager: Some(manager.to_owned()), ..PatchParams::default() };
        api.patch(name, &params, &Patch::Merge(patch)).await.expect("patched");
    }

    /// Scales a Deployment through its subresource.
    async fn scale(&self, name: &str, manager: &str, replicas: u32) {
        let params =
            PatchParams { field_manager: Some(manager.to_owned()), ..PatchParams::default() };
        let patch = json!({ "spec": { "replicas": replicas } });
        let api = self.api("apps/v1", "Deployment");
        api.patch_scale(name, &params, &Patch::Merge(patch)).await.expect("scaled");
    }

    async fn replicas(&self, name: &str) -> Value {
        let found = self.api("apps/v1", "Deployment").get(name).await.expect("a Deployment");
        found.data["spec"]["replicas"].clone()
    }
}

fn found(applied: &Applied) -> Vec<String> {
    let drifted = applied.objects.iter().filter(|object| object.found != Found::Same);
    drifted.map(|object| format!("{}: {}", object.id.name, object.found)).collect()
}

fn deployment(name: &str, replicas: &Value) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": {
            "metadata": {"labels": {"app": name}, "annotations": null},
            "spec": {"containers": [{
                "name": "c", "image": "busybox", "args": [], "env": [{"name": "A", "value": ""}],
                "resources": {"limits": {"cpu": "1000m", "memory": "1024Mi"}, "requests": {"cpu": 0.5}},
                "ports": [{"containerPort": 53}, {"containerPort": 53, "protocol": "UDP"}],
                "securityContext": {}, "livenessProbe": {"httpGet": {"path": "/", "port": 53}},
            }], "hostNetwork": false, "tolerations": [], "affinity": null, "nodeSelector": {}, "volumes": [
                {"name": "v", "emptyDir": {}}, {"name": "w", "configMap": {"name": "x"}},
            ]},
        }},
    })
}

/// One of many kinds, written as charts write them: with values that the API server spells otherwise,
/// drops or fills in.
fn of_all_kinds(namespace: &str) -> Vec<Value> {
    let labels = json!({"app": "x"});
    let pod = json!({"metadata": {"labels": labels}, "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox"}]}});
    vec![
        config_map("map", "v"),
        secret("secret", "s"),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "sa"}, "automountServiceAccountToken": false}),
        json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "pvc"}, "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": null, "resources": {"requests": {"storage": "1024Mi"}},
        }}),
        json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "quota"}, "spec": {"hard": {"pods": 100, "limits.cpu": "100000m"}}}),
        json!({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "limits"}, "spec": {"limits": [{"type": "Container", "max": {"cpu": "4000m"}}]}}),
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "role"}, "rules": [
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"], "resourceNames": []},
        ]}),
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "binding"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "role"},
            "subjects": [{"kind": "ServiceAccount", "name": "sa", "namespace": namespace}],
        }),
        service("service"),
        deployment("web", &json!(1)),
        deployment("free", &Value::Null),
        json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"}, "spec": {
            "serviceName": "service", "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels},
            "spec": {"containers": [{"name": "c", "image": "busybox", "volumeMounts": [{"name": "d", "mountPath": "/d"}]}]}},
            "volumeClaimTemplates": [{"metadata": {"name": "d", "creationTimestamp": null}, "spec": {
                "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "0.5Gi"}},
            }}],
        }}),
        json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "job"}, "spec": {"template": pod}}),
        json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "cron"}, "spec": {
            "schedule": "* * 1 1 *", "suspend": false, "jobTemplate": {"spec": {"template": pod}},
        }}),
        json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "hpa"}, "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "free"}, "maxReplicas": 3,
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}],
        }}),
        json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "pdb"}, "spec": {"maxUnavailable": 1, "selector": {"matchLabels": labels}}}),
        json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "np"}, "spec": {
            "podSelector": {}, "ingress": [{"ports": [{"port": 80}], "from": [{"podSelector": {"matchLabels": labels}}]}], "policyTypes": ["Ingress"],
        }}),
        json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "ing"}, "spec": {"tls": [], "rules": [{
            "host": "a.test", "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "service", "port": {"number": 80}}}}]},
        }]}}),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_reads_each_object_once_and_writes_nothing() {
    let bench = Bench::new("restart").await;
    let wish = Wish::new(&bench.namespace, "rel", of_all_kinds(&bench.namespace));
    let count = wish.objects.len();
    wish.reconcile(&bench.driver).await.expect("installed");

    let mark = bench.log.mark().expect("a mark");
    let applied = bench.look_anew("rel").await;
    assert_eq!(found(&applied), [""; 0]);
    assert_eq!((applied.done, applied.objects.len()), (Done::Unchanged, count));
    let asked = bench.since(mark);
    let reads = asked.iter().filter(|asked| asked.starts_with("get ")).count();
    let others: Vec<_> = asked.iter().filter(|asked| !asked.starts_with("get ")).collect();
    assert_eq!(reads, count);
    assert_eq!(others, ["list secrets"], "not even a dry run");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_object_does_not_tell_costs_a_dry_run_and_no_write() {
    let bench = Bench::new("doubtful").await;
    let mut spelled = secret("spelled", "");
    spelled["stringData"] = Value::Null;
    spelled["data"] = json!({"k": "dg==\n"}); // the API server leaves the line's end out
    let wish = Wish::new(&bench.namespace, "rel", vec![spelled]);
    wish.reconcile(&bench.driver).await.expect("installed");
    let mark = bench.log.mark().expect("a mark");
    assert_eq!(found(&bench.look_anew("rel").await), [""; 0]);
    assert_eq!(bench.since(mark), ["list secrets", "get secrets", "patch secrets dry"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_applies_what_is_new_and_looks_at_the_rest() {
    let bench = Bench::new("upgrade").await;
    let objects = vec![config_map("a", "1"), config_map("b", "1"), config_map("c", "1")];
    let mut wish = Wish::new(&bench.namespace, "rel", objects);
    wish.reconcile(&bench.driver).await.expect("installed");
    wish.objects[1] = config_map("b", "2");
    let mark = bench.log.mark().expect("a mark");
    let applied = wish.reconcile(&bench.driver).await.expect("upgraded");
    let expected = [
        "list secrets",
        "create secrets",
        "get configmaps",
        "patch configmaps",
        "get configmaps",
        "update secrets",
        "update secrets",
    ];
    assert_eq!(bench.since(mark), expected);

    // What somebody else knows of an object needs no look.
    let known: std::collections::HashMap<_, _> = applied
        .objects
        .iter()
        .map(|object| (object.id.clone(), (object.wanted, object.uid.clone())))
        .collect();
    let knowing = bench.driver.clone().knowing(std::sync::Arc::new(move |id, hash| {
        let (_, uid) = known.get(id).filter(|(wanted, _)| *wanted == hash)?;
        Some(uid.clone())
    }));
    wish.objects[0] = config_map("a", "2");
    let mark = bench.log.mark().expect("a mark");
    let applied = wish.reconcile(&knowing).await.expect("upgraded");
    assert_eq!((applied.objects.len(), applied.known.len()), (1, 2));
    let asked = bench.since(mark);
    let about_maps: Vec<_> = asked.iter().filter(|asked| asked.contains("configmaps")).collect();
    assert_eq!(about_maps, ["patch configmaps"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_changed_is_put_back_and_told_and_what_they_added_stays() {
    let bench = Bench::new("changed").await;
    let objects =
        vec![secret("secret", "canary"), deployment("web", &json!(2)), config_map("map", "v")];
    let wish = Wish::new(&bench.namespace, "rel", objects);
    wish.reconcile(&bench.driver).await.expect("installed");

    let deployments = bench.api("apps/v1", "Deployment");
    let added = json!({
        "metadata": {"annotations": {"theirs": "stays"}},
        "spec": {"template": {"spec": {"containers": [{"name": "c"}], "schedulerName": "theirs"}}},
    });
    let params = PatchParams::default();
    deployments.patch("web", &params, &Patch::Strategic(added)).await.expect("patched");
    assert_eq!(found(&bench.look_anew("rel").await), [""; 0], "nothing of ours");

    bench.scale("web", "kubectl", 9).await;
    let change = json!({"data": {"k": "dGhlaXJz", "x": "dGhlaXJz"}});
    bench.change(&bench.api("v1", "Secret"), "secret", "kubectl-edit", change).await;
    let change =
        json!({"metadata": {"labels": {"app.kubernetes.io/managed-by": "me"}}, "data": null});
    bench.change(&bench.api("v1", "ConfigMap"), "map", "kubectl-edit", change).await;
    let applied = bench.look_anew("rel").await;
    assert_eq!(applied.done, Done::Repaired);
    let expected = [
        "secret: data.k",
        "web: spec.replicas is 9 and should be 2",
        "map: metadata.labels[app.kubernetes.io/managed-by], data",
    ];
    assert_eq!(found(&applied), expected);
    assert_eq!(bench.replicas("web").await, 2);
    let secret = bench.api("v1", "Secret").get("secret").await.expect("a Secret");
    assert_eq!(secret.data["data"], json!({"k": "Y2FuYXJ5", "x": "dGhlaXJz"}));
    let web = deployments.get("web").await.expect("a Deployment");
    assert_eq!(web.metadata.annotations.unwrap_or_default()["theirs"], "stays");
    assert_eq!(found(&bench.look_anew("rel").await), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_are_an_autoscalers_as_long_as_there_is_one() {
    let bench = Bench::new("autoscaled").await;
    let mut wish = Wish::new(&bench.namespace, "rel", vec![deployment("web", &json!(2))]);
    wish.reconcile(&bench.driver).await.expect("installed");
    let autoscaler = json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "hpa"},
        "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, "minReplicas": 1, "maxReplicas": 9},
    });
    let autoscalers = bench.api("autoscaling/v2", "HorizontalPodAutoscaler");
    let object = serde_json::from_value(autoscaler).expect("an object");
    autoscalers.create(&PostParams::default(), &object).await.expect("created");

    bench.scale("web", "kube-controller-manager", 5).await;
    assert_eq!(found(&bench.look_anew("rel").await), [""; 0]);
    // An upgrade leaves them, too.
    wish.objects[0]["metadata"]["labels"] = json!({"new": "label"});
    wish.reconcile(&bench.driver).await.expect("upgraded");
    assert_eq!(bench.replicas("web").await, 5);
    // A person is no autoscaler.
    bench.scale("web", "kubectl", 7).await;
    assert_eq!(found(&bench.look_anew("rel").await), ["web: spec.replicas is 7 and should be 2"]);

    bench.scale("web", "kube-controller-manager", 4).await;
    autoscalers.delete("hpa", &kube::api::DeleteParams::default()).await.expect("deleted");
    assert_eq!(found(&bench.look_anew("rel").await), ["web: spec.replicas is 4 and should be 2"]);
}

/// A webhook of the API server's own.
fn meddler(namespace: &str) -> [Value; 2] {
    let api_version = "admissionregistration.k8s.io/v1";
    let expression = r#"[JSONPatch{op: "replace", path: "/data/k", value: "forced"}, JSONPatch{op: "add", path: "/data/more", value: "injected"}]"#;
    [
        json!({
            "apiVersion": api_version, "kind": "MutatingAdmissionPolicy", "metadata": {"name": namespace},
            "spec": {
                "reinvocationPolicy": "Never", "failurePolicy": "Fail",
                "matchConstraints": {
                    "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                    "resourceRules": [{
                        "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"],
                        "resources": ["configmaps"], "resourceNames": ["meddled"],
                    }],
                },
                "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}],
            },
        }),
        json!({
            "apiVersion": api_version, "kind": "MutatingAdmissionPolicyBinding", "metadata": {"name": namespace},
            "spec": {"policyName": namespace},
        }),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn what_admission_injects_and_overrides_is_no_drift() {
    let bench = Bench::new("meddled").await;
    let mut made = Vec::new();
    for object in meddler(&bench.namespace) {
        let kind = object["kind"].as_str().unwrap_or_default().to_owned();
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(
            "admissionregistration.k8s.io",
            "v1",
            &kind,
        ));
        let api = Api::<DynamicObject>::all_with(bench.client.clone(), &resource);
        let object = serde_json::from_value(object).expect("an object");
        api.create(&PostParams::default(), &object).await.expect("created");
        made.push(api);
    }
    // It takes the API server a moment to heed a policy.
    let wish = Wish::new(&bench.namespace, "rel", vec![config_map("meddled", "v")]);
    let maps = bench.api("v1", "ConfigMap");
    let begun = std::time::Instant::now();
    let meddled = json!({"k": "forced", "more": "injected"});
    loop {
        wish.reconcile(&bench.driver).await.expect("installed");
        if maps.get("meddled").await.expect("a map").data["data"] == meddled {
            break;
        }
        assert!(begun.elapsed() < std::time::Duration::from_secs(30), "the policy is not heeded");
        maps.delete("meddled", &kube::api::DeleteParams::default()).await.expect("deleted");
        let history = bench.driver.history(&bench.namespace, "rel").await.expect("a history");
        bench.driver.repair(&history, None, &[]).await.expect("repaired");
    }
    let before = maps.get("meddled").await.expect("a map").metadata.resource_version;
    let mark = bench.log.mark().expect("a mark");
    assert_eq!(found(&bench.look_anew("rel").await), [""; 0]);
    assert_eq!(bench.since(mark), ["list secrets", "get configmaps", "patch configmaps dry"]);
    assert_eq!(maps.get("meddled").await.expect("a map").metadata.resource_version, before);
    for api in made {
        api.delete(&bench.namespace, &kube::api::DeleteParams::default()).await.expect("deleted");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_leave_fields_to_others_in_repairs_and_in_upgrades() {
    let bench = Bench::new("ignored").await;
    let mut map = config_map("map", "v");
    map["data"]["l"] = "w".into();
    let wish = Wish::new(&bench.namespace, "rel", vec![map]);
    wish.reconcile(&bench.driver).await.expect("installed");
    let maps = bench.api("v1", "ConfigMap");
    bench.change(&maps, "map", "theirs", json!({"data": {"k": "theirs", "l": "theirs"}})).await;

    let rule = IgnoreRule {
        kind: Some("ConfigMap".into()),
        paths: vec!["/data/k".into()],
        ..IgnoreRule::default()
    };
    let ignoring = bench.driver.clone().ignoring(vec![rule]);
    let history = ignoring.history(&bench.namespace, "rel").await.expect("a history");
    let applied = ignoring.repair(&history, None, &[]).await.expect("repaired");
    assert_eq!(found(&applied), ["map: data.l"]);
    assert_eq!(
        maps.get("map").await.expect("a map").data["data"],
        json!({"k": "theirs", "l": "w"})
    );
    let applied = ignoring.repair(&history, None, &[]).await.expect("repaired");
    assert_eq!(found(&applied), [""; 0]);
    let mut wish = wish;
    wish.objects[0]["data"]["l"] = "x".into();
    wish.reconcile(&ignoring).await.expect("upgraded");
    assert_eq!(
        maps.get("map").await.expect("a map").data["data"],
        json!({"k": "theirs", "l": "x"})
    );
    // An object may ask for it itself.
    let alone = json!({"metadata": {"annotations": {"catamaran.dev/drift": "ignore"}}});
    bench.change(&maps, "map", "theirs", alone).await;
    assert_eq!(found(&bench.look_anew("rel").await), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_client_side_helm_set_is_ours_and_goes_when_the_chart_drops_it() {
    let bench = Bench::new("takeover").await;
    let chart = tempfile_chart();
    let [helm4, helm3] = Helm::both(&bench.cluster, &bench.namespace);
    let path = chart.path().to_str().expect("a path").to_owned();
    for (name, helm, arguments) in
        [("three", &helm3, &["--timeout=1m"][..]), ("four", &helm4, &["--server-side=false"][..])]
    {
        helm.say(&[&["install", name, &path][..], arguments].concat());
        let map = format!("{name}-map");
        let mut ours = config_map(&map, "v");
        ours["data"] = json!({"stays": "1"});
        let mut wish = Wish::new(&bench.namespace, name, vec![ours]);
        wish.chart.metadata.name = "old".into();
        wish.reconcile(&bench.driver).await.expect("upgraded");
        let live = bench.api("v1", "ConfigMap").get(&map).await.expect("a map");
        assert_eq!(live.data["data"], json!({"stays": "1"}), "{name}");
        let entries = live.metadata.managed_fields.unwrap_or_default();
        let told: Vec<_> = entries
            .iter()
            .map(|entry| (entry.manager.as_deref(), entry.operation.as_deref()))
            .collect();
        assert_eq!(told, [(Some("helm"), Some("Apply"))], "{name}");
        assert_eq!(found(&bench.look_anew(name).await), [""; 0]);
    }
}

/// A chart with a key that a later version does not have.
fn tempfile_chart() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("templates")).expect("a folder");
    let write = |file: &str, text: &str| {
        std::fs::write(folder.path().join(file), text).expect("written");
    };
    write("Chart.yaml", "apiVersion: v2\nname: old\nversion: 0.1.0\n");
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}-map\n\
               data:\n  stays: \"1\"\n  goes: \"2\"\n";
    write("templates/map.yaml", map);
    folder
}

#[tokio::test(flavor = "multi_thread")]
async fn charts_that_apply_refuses_and_helm_three_installs_are_installed() {
    let bench = Bench::new("refused").await;
    let mut object = deployment("web", &Value::Null);
    let container = &mut object["spec"]["template"]["spec"]["containers"][0];
    container["env"] = json!([{"name": "A", "value": "1"}, {"name": "B", "value": "$(A)"}, {"name": "A", "value": "2"}]);
    container["ports"] =
        json!([{"containerPort": 80, "name": "a"}, {"containerPort": 80, "name": "b"}]);
    let mut wish = Wish::new(&bench.namespace, "rel", vec![secret("secret", "one"), object]);
    wish.objects[0]["stringData"]["gone"] = "soon".into();
    wish.reconcile(&bench.driver).await.expect("installed");
    let web = bench.api("apps/v1", "Deployment").get("web").await.expect("a Deployment");
    let container = &web.data["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(
        container["env"],
        json!([{"name": "A", "value": "2"}, {"name": "B", "value": "$(A)"}])
    );
    assert_eq!(container["ports"][0]["name"], "b");
    // A number that nobody wants to set is left to those who do.
    bench.scale("web", "kubectl", 3).await;
    assert_eq!(found(&bench.look_anew("rel").await), [""; 0]);
    assert_eq!(bench.replicas("web").await, 3);
    // A text of a Secret that is not wanted any more goes.
    wish.objects[0] = secret("secret", "two");
    wish.reconcile(&bench.driver).await.expect("upgraded");
    let secret = bench.api("v1", "Secret").get("secret").await.expect("a Secret");
    assert_eq!(secret.data["data"], json!({"k": "dHdv"}));
    assert_eq!(bench.replicas("web").await, 3);
}
