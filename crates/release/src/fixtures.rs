//! Charts, renderings and histories for unit tests.

use std::sync::Arc;
use std::time::Duration;

use catamaran_chart::{Chart, Hook, Manifest, ReleaseFacts, Rendered};
use catamaran_cluster::mapper::Mapping;
use jiff::Timestamp;
use kube::api::ApiResource;
use kube::core::GroupVersionKind;
use serde_json::{Map, Value, json};

use crate::plan::{DesiredState, History, Kinds};
use crate::record::model::slim_chart;
use crate::record::{Info, Release, Status, Stored};

/// The moment at which all histories are read.
pub const NOW: i64 = 1_800_000_000;

pub fn now() -> Timestamp {
    Timestamp::from_second(NOW).expect("a time")
}

pub fn facts(revision: u32, is_install: bool) -> ReleaseFacts {
    ReleaseFacts { name: "rel".into(), namespace: "ns".into(), revision, is_install }
}

pub fn chart() -> Chart {
    let metadata =
        serde_json::from_value(json!({"name": "demo", "version": "1.0.0", "apiVersion": "v2"}));
    Chart { metadata: metadata.expect("metadata"), ..Chart::default() }
}

pub fn config_map(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": value}})
}

pub fn rendered(objects: &[Value]) -> Rendered {
    let manifest = |object: &Value| Manifest {
        source: "demo/templates/all.yaml".into(),
        content: object.to_string(),
        api_version: object["apiVersion"].as_str().unwrap_or_default().into(),
        kind: object["kind"].as_str().unwrap_or_default().into(),
        name: object["metadata"]["name"].as_str().unwrap_or_default().into(),
    };
    Rendered { manifests: objects.iter().map(manifest).collect(), ..Rendered::default() }
}

pub fn hook(event: &str) -> Hook {
    Hook {
        name: "h".into(),
        kind: "Pod".into(),
        path: "demo/templates/tests/h.yaml".into(),
        manifest: json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "h"}}).to_string(),
        events: vec![event.into()],
        weight: 0,
        delete_policies: vec![],
        output_log_policies: vec![],
    }
}

/// A record whose objects are ConfigMaps of these names, begun `age` before [`now`].
pub fn record(
    version: u32,
    status: Status,
    names: &[&str],
    age: Duration,
    description: &str,
) -> Release {
    let objects: Vec<Value> = names.iter().map(|name| config_map(name, "v")).collect();
    let at = now().checked_sub(age).expect("a time");
    let first =
        if version == 1 { at } else { Timestamp::from_second(NOW - 100_000).expect("a time") };
    Release {
        name: "rel".into(),
        namespace: "ns".into(),
        version,
        info: Info {
            first_deployed: first.into(),
            last_deployed: at.into(),
            description: description.into(),
            status,
            ..Info::default()
        },
        chart: slim_chart(&chart()),
        manifest: rendered(&objects).manifest_text(),
        apply_method: "ssa".into(),
        ..Release::default()
    }
}

pub fn history(records: impl IntoIterator<Item = Release>) -> History {
    let mut history = History::empty("ns", "rel", now());
    for release in records {
        history.put(Stored::unsaved(Arc::new(release)));
    }
    history
}

/// What all tests here ask of a chart.
pub struct DesiredRelease {
    pub chart: Chart,
    pub config: Map<String, Value>,
    pub rendered: Rendered,
    pub facts: ReleaseFacts,
}

impl DesiredRelease {
    pub fn new(facts: ReleaseFacts, names: &[&str]) -> Self {
        let objects: Vec<Value> = names.iter().map(|name| config_map(name, "v")).collect();
        Self { chart: chart(), config: Map::new(), rendered: rendered(&objects), facts }
    }

    pub fn desired(&self) -> DesiredState<'_> {
        DesiredState::new(&self.chart, &self.config, &self.rendered, &self.facts)
    }
}

/// A cluster that serves ConfigMaps, Deployments and ClusterRoles.
pub fn kinds() -> Kinds {
    let kind = |group: &str, version: &str, kind: &str, plural: &str, namespaced: bool| {
        let gvk = GroupVersionKind::gvk(group, version, kind);
        let resource = ApiResource::from_gvk_with_plural(&gvk, plural);
        (gvk, Some(Mapping { resource, namespaced }))
    };
    Kinds::from([
        kind("", "v1", "ConfigMap", "configmaps", true),
        kind("apps", "v1", "Deployment", "deployments", true),
        kind(
            "apiextensions.k8s.io",
            "v1",
            "CustomResourceDefinition",
            "customresourcedefinitions",
            false,
        ),
        kind("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", false),
    ])
}
