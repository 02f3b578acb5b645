//! watches.yaml as it is written: every field of both Go engines, none of them checked.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::OverrideTypes;

/// One entry of watches.yaml, as typed.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RawWatch {
    #[serde(deserialize_with = "text")]
    pub group: Option<String>,
    #[serde(deserialize_with = "text")]
    pub version: Option<String>,
    #[serde(deserialize_with = "text")]
    pub kind: Option<String>,
    #[serde(deserialize_with = "text")]
    pub chart: Option<String>,
    pub reconciler: Option<String>,
    #[serde(deserialize_with = "boolean")]
    pub watch_dependent_resources: Option<bool>,
    pub override_values: Option<BTreeMap<String, Value>>,
    pub override_value_types: Option<OverrideTypes>,
    #[serde(deserialize_with = "selector")]
    pub selector: Option<LabelSelector>,
    pub reconcile_period: Option<String>,
    pub max_concurrent_reconciles: Option<i64>,
    pub ignore_drift: Option<Vec<RawIgnore>>,
    pub crds: Option<String>,
    pub record: Option<String>,
    pub storage_namespace: Option<String>,
    pub scope: Option<String>,
    pub service_account_name: Option<String>,
    #[serde(deserialize_with = "boolean")]
    pub failure_rollbacks: Option<bool>,
    /// How operator-sdk compares with what is there. Here nothing is compared by a dry run, and
    /// `lookup` always sees the cluster, as with `server`.
    #[serde(deserialize_with = "text")]
    pub dry_run_option: Option<String>,
}

/// All fields of [`RawWatch`].
const FIELDS: [&str; 19] = [
    "group",
    "version",
    "kind",
    "chart",
    "reconciler",
    "watchDependentResources",
    "overrideValues",
    "overrideValueTypes",
    "selector",
    "reconcilePeriod",
    "maxConcurrentReconciles",
    "ignoreDrift",
    "crds",
    "record",
    "storageNamespace",
    "scope",
    "serviceAccountName",
    "failureRollbacks",
    "dryRunOption",
];

impl RawWatch {
    /// Reads an entry, and names the keys in it that are no fields. As in Go the case of a key does not
    /// matter, and the exact one wins.
    ///
    /// # Errors
    /// Why a field cannot be read, with its name.
    pub fn read(entry: Map<String, Value>) -> Result<(Self, Vec<String>), String> {
        let mut known = Map::new();
        let mut unknown = Vec::new();
        for (key, value) in entry {
            match FIELDS.iter().find(|field| field.eq_ignore_ascii_case(&key)) {
                Some(field) if *field == key || !known.contains_key(*field) => {
                    known.insert((*field).to_owned(), value);
                }
                Some(_) => {}
                None => unknown.push(key),
            }
        }
        // One by one, so that what is wrong can be named.
        for (field, value) in &known {
            let alone = Map::from_iter([(field.clone(), value.clone())]);
            serde_json::from_value::<Self>(Value::Object(alone))
                .map_err(|error| format!("invalid {field}: {error}"))?;
        }
        let read = serde_json::from_value(Value::Object(known)).map_err(|e| e.to_string())?;
        Ok((read, unknown))
    }
}

/// A text; as with Go's YAML library it may be written as a number or a boolean.
fn text<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    match Value::deserialize(from)? {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text)),
        scalar @ (Value::Bool(_) | Value::Number(_)) => Ok(Some(scalar.to_string())),
        Value::Array(_) | Value::Object(_) => Err(serde::de::Error::custom("it must be a text")),
    }
}

/// A boolean in the spellings of YAML 1.1.
fn boolean<'de, D: Deserializer<'de>>(from: D) -> Result<Option<bool>, D::Error> {
    let told = match Value::deserialize(from)? {
        Value::Null => return Ok(None),
        Value::Bool(told) => return Ok(Some(told)),
        Value::String(text) => text.to_ascii_lowercase(),
        _ => String::new(),
    };
    match told.as_str() {
        "y" | "yes" | "on" | "true" => Ok(Some(true)),
        "n" | "no" | "off" | "false" => Ok(Some(false)),
        _ => Err(serde::de::Error::custom("it must be true or false")),
    }
}

/// A label selector; a label's value may be written as a number or a boolean.
fn selector<'de, D: Deserializer<'de>>(from: D) -> Result<Option<LabelSelector>, D::Error> {
    let mut raw = Value::deserialize(from)?;
    if let Some(labels) = raw.get_mut("matchLabels").and_then(Value::as_object_mut) {
        labels.values_mut().for_each(spell);
    }
    let expressions = raw.get_mut("matchExpressions").and_then(Value::as_array_mut);
    for expression in expressions.into_iter().flatten() {
        if let Some(values) = expression.get_mut("values").and_then(Value::as_array_mut) {
            values.iter_mut().for_each(spell);
        }
    }
    serde_json::from_value(raw).map_err(serde::de::Error::custom)
}

fn spell(value: &mut Value) {
    if value.is_number() || value.is_boolean() {
        *value = Value::String(value.to_string());
    }
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
    pub when: Option<String>,
}
