//! Which kinds are served, and discovery.

use serde_json::{Value, json};

/// Where an object lies: group, resource, namespace, name.
pub(crate) type Place = (String, String, String, String);

/// A kind that is served.
#[allow(clippy::struct_field_names)] // it is Kubernetes' name
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kind {
    pub group: String,
    pub version: String,
    pub kind: String,
    pub plural: String,
    pub namespaced: bool,
    /// Whether it is defined by an object of the cluster.
    pub custom: bool,
}

/// Group, version, kind, plural, and whether it lives in namespaces.
const BUILT_IN: [(&str, &str, &str, &str, bool); 18] = [
    ("", "v1", "Namespace", "namespaces", false),
    ("", "v1", "ConfigMap", "configmaps", true),
    ("", "v1", "Secret", "secrets", true),
    ("", "v1", "Service", "services", true),
    ("", "v1", "ServiceAccount", "serviceaccounts", true),
    ("", "v1", "Pod", "pods", true),
    ("", "v1", "Event", "events", true),
    ("apps", "v1", "Deployment", "deployments", true),
    ("apps", "v1", "ReplicaSet", "replicasets", true),
    ("apps", "v1", "StatefulSet", "statefulsets", true),
    ("batch", "v1", "Job", "jobs", true),
    ("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", true),
    ("rbac.authorization.k8s.io", "v1", "Role", "roles", true),
    ("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings", true),
    ("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", false),
    ("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", false),
    ("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", false),
    ("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", true),
];

impl Kind {
    /// `deployments.apps`, as messages have it.
    pub fn qualified(&self) -> String {
        if self.group.is_empty() {
            self.plural.clone()
        } else {
            format!("{}.{}", self.plural, self.group)
        }
    }

    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// Whether the API server counts changes of its spec.
    pub fn has_generation(&self) -> bool {
        self.custom
            || matches!(
                self.kind.as_str(),
                "Deployment" | "ReplicaSet" | "StatefulSet" | "Job" | "CustomResourceDefinition"
            )
    }
}

/// Those that are always there.
pub(crate) fn built_in() -> Vec<Kind> {
    let kind = |(group, version, kind, plural, namespaced): (&str, &str, &str, &str, bool)| Kind {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
        namespaced,
        custom: false,
    };
    BUILT_IN.into_iter().map(kind).collect()
}

/// Those that a definition has served.
pub(crate) fn defined(definition: &Value) -> Vec<Kind> {
    let text = |path: &str| {
        definition.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array);
    let served = versions.into_iter().flatten().filter(|version| version["served"] == true);
    served
        .map(|version| Kind {
            group: text("/spec/group"),
            version: version["name"].as_str().unwrap_or_default().to_owned(),
            kind: text("/spec/names/kind"),
            plural: text("/spec/names/plural"),
            namespaced: text("/spec/scope") == "Namespaced",
            custom: true,
        })
        .collect()
}

/// The answer to a question for discovery: `/version`, `/api`, `/apis`, or one group version.
pub(crate) fn discovery(path: &str, kinds: &[Kind]) -> Option<Value> {
    match path {
        "/version" => Some(json!({
            "major": "1", "minor": "37", "gitVersion": "v1.37.0", "gitCommit": "", "gitTreeState": "clean",
            "buildDate": "", "goVersion": "", "compiler": "gc", "platform": "linux/amd64",
        })),
        "/api" => Some(aggregated(kinds.iter().filter(|kind| kind.group.is_empty()))),
        "/apis" => Some(aggregated(kinds.iter().filter(|kind| !kind.group.is_empty()))),
        path => {
            let version = path.strip_prefix("/apis/").or_else(|| path.strip_prefix("/api/"))?;
            let served: Vec<Value> = kinds
                .iter()
                .filter(|kind| kind.api_version() == version)
                .map(|kind| {
                    json!({
                        "name": kind.plural, "singularName": "", "namespaced": kind.namespaced,
                        "kind": kind.kind, "verbs": [],
                    })
                })
                .collect();
            (!served.is_empty()).then(|| {
                json!({
                    "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version,
                    "resources": served,
                })
            })
        }
    }
}

fn aggregated<'a>(kinds: impl Iterator<Item = &'a Kind>) -> Value {
    let groups: Vec<Value> = kinds
        .map(|kind| {
            let scope = if kind.namespaced { "Namespaced" } else { "Cluster" };
            let response =
                json!({ "group": kind.group, "version": kind.version, "kind": kind.kind });
            json!({ "metadata": { "name": kind.group }, "versions": [{ "version": kind.version, "resources": [
                { "resource": kind.plural, "scope": scope, "responseKind": response },
            ]}]})
        })
        .collect();
    json!({ "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": groups })
}
