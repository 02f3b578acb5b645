//! A release whose requests are counted, and one of many kinds.

use catamaran_localcluster::{AuditLog, LocalCluster, Mark};
use catamaran_release::{Applied, Driver, ObjectDrift, Owner};
use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

use crate::support::{cluster, config_map, driver, secret, service};

/// A namespace whose requests are counted, and a driver for it.
pub struct Bench {
    pub cluster: LocalCluster,
    pub namespace: catamaran_localcluster::Namespace,
    pub client: Client,
    pub driver: Driver,
    pub log: AuditLog,
}

impl Bench {
    pub async fn new(name: &str) -> Self {
        let cluster = cluster().await;
        let namespace = cluster.namespace(name).await.expect("a namespace");
        let agent = format!("{name}-counted");
        let driver = driver(&cluster.client_called(&agent).expect("a client"));
        let log = cluster.audit().of_agent(&agent);
        Self { client: cluster.client(), cluster, namespace, driver, log }
    }

    /// What was asked for since, without discovery: `get configmaps`, `patch deployments dry`.
    pub fn since(&self, mark: Mark) -> Vec<String> {
        let told = |request: catamaran_localcluster::Request| {
            let dry = if request.uri.contains("dryRun") { " dry" } else { "" };
            format!("{} {}{dry}", request.verb, request.resource)
        };
        let asked = self.log.since(mark).expect("requests");
        asked.into_iter().filter(|request| !request.resource.is_empty()).map(told).collect()
    }

    /// What a restart does to a release that nobody wants changed.
    pub async fn look_anew(&self, name: &str) -> Applied {
        let history = self.driver.history(&self.namespace, name).await.expect("a history");
        self.driver.repair(&history, None::<&Owner>, &[]).await.expect("repaired")
    }

    pub fn api(&self, api_version: &str, kind: &str) -> Api<DynamicObject> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        Api::namespaced_with(self.client.clone(), &self.namespace, &resource)
    }

    /// Changes an object as another program does.
    pub async fn change(&self, api: &Api<DynamicObject>, name: &str, manager: &str, patch: Value) {
        let params =
            PatchParams { field_manager: Some(manager.to_owned()), ..PatchParams::default() };
        api.patch(name, &params, &Patch::Merge(patch)).await.expect("patched");
    }

    /// Scales a Deployment through its subresource.
    pub async fn scale(&self, name: &str, manager: &str, replicas: u32) {
        let params =
            PatchParams { field_manager: Some(manager.to_owned()), ..PatchParams::default() };
        let patch = json!({ "spec": { "replicas": replicas } });
        let api = self.api("apps/v1", "Deployment");
        api.patch_scale(name, &params, &Patch::Merge(patch)).await.expect("scaled");
    }

    pub async fn replicas(&self, name: &str) -> Value {
        let found = self.api("apps/v1", "Deployment").get(name).await.expect("a Deployment");
        found.data["spec"]["replicas"].clone()
    }
}

pub fn found(applied: &Applied) -> Vec<String> {
    let drifted = applied.objects.iter().filter(|object| object.found != ObjectDrift::Same);
    drifted.map(|object| format!("{}: {}", object.id.name, object.found)).collect()
}

pub fn deployment(name: &str, replicas: &Value) -> Value {
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
pub fn of_all_kinds(namespace: &str) -> Vec<Value> {
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
