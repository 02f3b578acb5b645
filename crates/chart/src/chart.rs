//! The model of a chart, as Helm's records hold it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::values::accepted_elsewhere;

/// A file of a chart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// The name inside its chart, with slashes: `templates/service.yaml`.
    pub name: String,
    /// The bytes, a leading byte order mark cut; shared with whoever shows them.
    pub data: Arc<[u8]>,
}

/// A chart as it lies on disk: loaded and validated, nothing processed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chart {
    /// Chart.yaml (and requirements.yaml, for charts of apiVersion v1).
    pub metadata: Metadata,
    /// The defaults: values.yaml's first document. Every number is a float, as
    /// Helm reads them.
    pub values: Map<String, Value>,
    /// Further documents of values.yaml. Helm 4 merges them over the first;
    /// Helm 3 never looks at them.
    pub more_values: Vec<Result<Map<String, Value>, String>>,
    /// values.yaml as it is, comments included; `None` if the chart has none.
    pub values_text: Option<Arc<[u8]>>,
    /// Everything under `templates/`, in name order.
    pub templates: Vec<File>,
    /// Everything else that templates see as `.Files`; `crds/` is among them.
    pub files: Vec<File>,
    /// Which of `files` have been left unread, by [`Chart::load_without_crds`] alone.
    pub unread: Vec<crate::load::Unread>,
    /// `values.schema.json` as it is.
    pub schema: Option<Arc<[u8]>>,
    /// The charts under `charts/`, in name order.
    pub dependencies: Vec<Chart>,
    /// Chart.lock or requirements.lock.
    pub lock: Option<Lock>,
}

/// A file of `crds/`. Never templated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crd {
    /// `crds/crontab.yaml`.
    pub name: String,
    /// With the chart's path: `memcached/charts/sub/crds/crontab.yaml`.
    pub source: String,
    /// The bytes; may hold several documents.
    pub data: Arc<[u8]>,
}

impl Chart {
    /// The chart's name (for an aliased dependency, the alias).
    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    /// Whether it only lends templates. Helm compares without regard to case.
    pub fn is_library(&self) -> bool {
        self.metadata.kind.eq_ignore_ascii_case("library")
    }

    /// The same chart, and those in it, without `values.schema.json`: whatever the values, they
    /// are accepted (`--skip-schema-validation`).
    #[must_use]
    pub fn without_schemas(mut self) -> Self {
        self.schema = None;
        self.dependencies = self.dependencies.into_iter().map(Self::without_schemas).collect();
        self
    }

    /// The same chart, and those in it, accepting any value where `values.schema.json` refers to a
    /// document on another server: none is fetched, and without this a rendering is refused. Which
    /// documents those are goes into `found`.
    #[must_use]
    pub fn without_schemas_elsewhere(mut self, found: &mut BTreeSet<String>) -> Self {
        if let Some((schema, elsewhere)) = self.schema.as_deref().and_then(accepted_elsewhere) {
            self.schema = Some(schema.into());
            found.extend(elsewhere);
        }
        let charts = self.dependencies.into_iter();
        self.dependencies = charts.map(|chart| chart.without_schemas_elsewhere(found)).collect();
        self
    }

    /// The defaults of all documents of values.yaml, laid over each other, as Helm 4 has them. A
    /// document that is no table ends it.
    pub fn all_values(&self) -> Map<String, Value> {
        let mut values = self.values.clone();
        for document in self.more_values.iter().map_while(|document| document.as_ref().ok()) {
            crate::values::merge(&mut values, document.clone());
        }
        values
    }

    /// The files of `crds/` of this chart and of all charts in it, parents first.
    pub fn crds(&self) -> Vec<Crd> {
        let mut found = Vec::new();
        self.collect_crds(self.name(), &mut found);
        found
    }

    fn collect_crds(&self, path: &str, found: &mut Vec<Crd>) {
        self.own_crds(path, found);
        for child in &self.dependencies {
            child.collect_crds(&format!("{path}/charts/{}", child.name()), found);
        }
    }
    /// Those of this chart alone, which lies at `path`.
    pub(crate) fn own_crds(&self, path: &str, found: &mut Vec<Crd>) {
        let own = self.files.iter().filter(|f| f.name.starts_with("crds/") && is_manifest(&f.name));
        found.extend(own.map(|f| Crd {
            name: f.name.clone(),
            source: format!("{path}/{}", f.name),
            data: f.data.clone(),
        }));
    }
}

/// Chart.yaml as `helm show chart` prints it: what Helm has understood, in the order of the keys.
///
/// # Errors
/// A text holds a control character that YAML cannot carry.
pub fn chart_yaml(metadata: &Metadata) -> Result<String, catamaran_yaml::Error> {
    catamaran_yaml::to_string(metadata)
}

#[allow(clippy::ref_option, reason = "serde asks so")]
fn has_no_entries(annotations: &Option<BTreeMap<String, String>>) -> bool {
    annotations.as_ref().is_none_or(BTreeMap::is_empty)
}

#[allow(clippy::ref_option, reason = "serde asks so")]
fn has_no_items<T>(list: &Option<Vec<T>>) -> bool {
    list.as_ref().is_none_or(Vec::is_empty)
}

fn is_manifest(name: &str) -> bool {
    let Some((_, extension)) = name.rsplit_once('.') else { return false };
    ["yaml", "yml", "json"].iter().any(|e| extension.eq_ignore_ascii_case(e))
}

/// Chart.yaml. Serialises as Helm stores it in a release: empty fields left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Metadata {
    /// The chart's name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The project's home page.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub home: String,
    /// Where its source code lies. Of this list, and those below, templates of Helm 3 see whether
    /// there is none, or one without items.
    #[serde(skip_serializing_if = "has_no_items")]
    pub sources: Option<Vec<String>>,
    /// The chart's version, a semantic one (Helm is lenient: `1.2`, `v1`).
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// One sentence.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// For searching.
    #[serde(skip_serializing_if = "has_no_items")]
    pub keywords: Option<Vec<String>>,
    /// Who looks after it.
    #[serde(skip_serializing_if = "has_no_items")]
    pub maintainers: Option<Vec<Maintainer>>,
    /// The URL of an icon.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub icon: String,
    /// `v1` or `v2`; an absent one reads as `v1`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// Of Helm 2's time, unused.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub condition: String,
    /// Of Helm 2's time, unused.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub tags: String,
    /// The version of what the chart runs; any text.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub app_version: String,
    /// Whether people should leave it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub deprecated: bool,
    /// Free. Templates see whether there are none or no entries.
    #[serde(skip_serializing_if = "has_no_entries")]
    pub annotations: Option<BTreeMap<String, String>>,
    /// A constraint on the cluster's version.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kube_version: String,
    /// The charts this one needs under `charts/`. A chart that has the list, be it without items, has
    /// a say in what its subcharts need.
    #[serde(skip_serializing_if = "has_no_items")]
    pub dependencies: Option<Vec<Dependency>>,
    /// `application` (also when empty) or `library`; Chart.yaml's `type`.
    #[serde(rename = "type", skip_serializing_if = "String::is_empty")]
    pub kind: String,
}

/// Who looks after a chart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Maintainer {
    /// A person or an organisation.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Where to write.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub email: String,
    /// Where to read.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub url: String,
}

/// A chart that another one needs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Dependency {
    /// The needed chart's name.
    pub name: String,
    /// A constraint on its version.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// Where it comes from; empty means it lies under `charts/`.
    pub repository: String,
    /// Comma list of values paths; the first that is a boolean decides.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub condition: String,
    /// Names under the values' `tags`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// What conditions and tags came to; only in stored releases.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub enabled: bool,
    /// Values taken over from it: texts, or maps of `child` and `parent`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub import_values: Vec<Value>,
    /// The name it has here.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub alias: String,
}

/// Chart.lock.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Lock {
    /// When, RFC 3339.
    pub generated: String,
    /// `sha256:` over the requested and the locked dependencies.
    pub digest: String,
    /// The versions that were chosen.
    pub dependencies: Vec<Dependency>,
}
