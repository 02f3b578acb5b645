//! watches.yaml as it is written: every field of both Go engines, none of them checked.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde::Deserialize;
use serde_json::Value;

/// One entry of watches.yaml, as typed.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RawWatch {
    pub group: Option<String>,
    pub version: Option<String>,
    pub kind: Option<String>,
    pub chart: Option<String>,
    pub reconciler: Option<String>,
    pub watch_dependent_resources: Option<bool>,
    pub override_values: Option<BTreeMap<String, Value>>,
    pub selector: Option<LabelSelector>,
    pub reconcile_period: Option<String>,
    pub max_concurrent_reconciles: Option<usize>,
    pub ignore_drift: Option<Vec<RawIgnore>>,
    pub crds: Option<String>,
    /// Read so that old files load; rendering here needs no dry run.
    #[serde(rename = "dryRunOption")]
    pub _dry_run_option: Option<Value>,
    /// Everything else: told, not refused, as the Go operators ignore it.
    #[serde(flatten)]
    pub unknown: BTreeMap<String, Value>,
}

/// A rule of `ignoreDrift`, as typed.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(super) struct RawIgnore {
    pub group: Option<String>,
    pub kind: Option<String>,
    pub name: Option<String>,
    pub selector: Option<LabelSelector>,
    pub paths: Vec<String>,
}
