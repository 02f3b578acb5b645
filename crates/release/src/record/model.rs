//! Helm's release object, field by field.
//!
//! What helm writes and we do not know is kept (`extra`), as we write its records back when they
//! are superseded or uninstalled.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use catamaran_chart::{Chart, File};
use jiff::Timestamp;
use serde::de::Deserializer;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value, json};

/// The greatest revision that a record of an unknown writer may claim: whoever writes the next ones does
/// not run out of numbers.
pub const LARGEST_REVISION: u32 = 1 << 30;

/// A point in time as Helm writes it: RFC 3339 with nanoseconds. "Never" is left out, as by Helm 4;
/// Helm 3 writes `""` for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Time(pub Option<Timestamp>);

impl Time {
    #[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
    fn is_never(&self) -> bool {
        self.0.is_none()
    }
}

impl From<Timestamp> for Time {
    fn from(at: Timestamp) -> Self {
        Self(Some(at))
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Some(at) => serializer.collect_str(&at),
            None => serializer.serialize_str(""),
        }
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // No decision hangs on these times but the age of a pending record, for which an
        // unreadable one counts as old: never a reason to lose a whole record.
        let text = Option::<String>::deserialize(deserializer)?;
        Ok(Self(text.and_then(|text| text.parse().ok())))
    }
}

/// The status of a release.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub enum Status {
    /// Helm does not know.
    #[default]
    Unknown,
    /// Installed; at most one revision is.
    Deployed,
    /// Uninstalled with its history kept.
    Uninstalled,
    /// A later revision took its place.
    Superseded,
    /// It did not come to its end.
    Failed,
    /// Being uninstalled.
    Uninstalling,
    /// Being installed.
    PendingInstall,
    /// Being upgraded to.
    PendingUpgrade,
    /// Being rolled back to.
    PendingRollback,
    /// One that no Helm known to us writes.
    Other(String),
}

impl Status {
    /// As Helm spells it.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Unknown => "unknown",
            Self::Deployed => "deployed",
            Self::Uninstalled => "uninstalled",
            Self::Superseded => "superseded",
            Self::Failed => "failed",
            Self::Uninstalling => "uninstalling",
            Self::PendingInstall => "pending-install",
            Self::PendingUpgrade => "pending-upgrade",
            Self::PendingRollback => "pending-rollback",
            Self::Other(other) => other,
        }
    }

    /// Whether an action was begun and not ended: the statuses in which Helm refuses to go on.
    pub fn is_pending(&self) -> bool {
        matches!(self, Self::PendingInstall | Self::PendingUpgrade | Self::PendingRollback)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl From<&str> for Status {
    fn from(word: &str) -> Self {
        match word {
            "unknown" | "" => Self::Unknown,
            "deployed" => Self::Deployed,
            "uninstalled" => Self::Uninstalled,
            "superseded" => Self::Superseded,
            "failed" => Self::Failed,
            "uninstalling" => Self::Uninstalling,
            "pending-install" => Self::PendingInstall,
            "pending-upgrade" => Self::PendingUpgrade,
            "pending-rollback" => Self::PendingRollback,
            other => Self::Other(other.to_owned()),
        }
    }
}

impl Serialize for Status {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Status {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::from(String::deserialize(deserializer)?.as_str()))
    }
}

/// What happened to a release.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Info {
    /// When the first revision was installed.
    #[serde(skip_serializing_if = "Time::is_never")]
    pub first_deployed: Time,
    /// When this revision was begun.
    #[serde(skip_serializing_if = "Time::is_never")]
    pub last_deployed: Time,
    /// When it was uninstalled.
    #[serde(skip_serializing_if = "Time::is_never")]
    pub deleted: Time,
    /// A sentence about the outcome, such as `Install complete`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Where it stands.
    pub status: Status,
    /// The rendered NOTES.txt.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub notes: String,
    /// The revision that this one is a copy of, after a rollback by Helm 4 or ours; else 0.
    #[serde(skip_serializing_if = "is_none")]
    pub rollback_revision: u32,
    /// What else Helm keeps here.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Without the notes, in which there may be secrets.
impl fmt::Debug for Info {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Info")
            .field("first_deployed", &self.first_deployed)
            .field("last_deployed", &self.last_deployed)
            .field("deleted", &self.deleted)
            .field("description", &self.description)
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}

/// The last run of a hook.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HookRun {
    /// When it began.
    #[serde(skip_serializing_if = "Time::is_never")]
    pub started_at: Time,
    /// When it ended.
    #[serde(skip_serializing_if = "Time::is_never")]
    pub completed_at: Time,
    /// `Running`, `Succeeded`, `Failed`; empty if it never ran.
    pub phase: String,
}

/// A hook of the chart.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Hook {
    /// metadata.name.
    pub name: String,
    /// The kind.
    pub kind: String,
    /// The template it came from.
    pub path: String,
    /// Its text.
    pub manifest: String,
    /// When it runs.
    #[serde(deserialize_with = "null_as_default")]
    pub events: Vec<String>,
    /// Its last run.
    #[serde(deserialize_with = "null_as_default")]
    pub last_run: HookRun,
    /// Smaller runs first.
    #[serde(skip_serializing_if = "is_zero")]
    pub weight: i64,
    /// When its object is deleted.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub delete_policies: Vec<String>,
    /// When its logs are shown.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub output_log_policies: Vec<String>,
    /// What else Helm keeps here.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Without its manifest, in which there may be secrets.
impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hook")
            .field("name", &self.name)
            .field("kind", &self.kind)
            .field("events", &self.events)
            .finish_non_exhaustive()
    }
}

impl Hook {
    /// Whether it runs only when a person says `helm test`.
    pub fn is_test(&self) -> bool {
        self.events.iter().all(|event| matches!(event.as_str(), "test" | "test-success"))
    }
}

impl From<&catamaran_chart::Hook> for Hook {
    fn from(hook: &catamaran_chart::Hook) -> Self {
        Self {
            name: hook.name.clone(),
            kind: hook.kind.clone(),
            path: hook.path.clone(),
            manifest: hook.manifest.clone(),
            events: hook.events.clone(),
            last_run: HookRun::default(),
            weight: hook.weight,
            delete_policies: hook.delete_policies.clone(),
            output_log_policies: hook.output_log_policies.clone(),
            extra: Map::new(),
        }
    }
}

/// One revision of a release.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Release {
    /// The release's name.
    pub name: String,
    /// What happened to it.
    pub info: Info,
    /// The chart as helm stores it; see [`slim_chart`].
    pub chart: Value,
    /// The user's values.
    #[serde(skip_serializing_if = "Map::is_empty", deserialize_with = "null_as_default")]
    pub config: Map<String, Value>,
    /// All objects of the release as text, without hooks and CRDs of `crds/`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub manifest: String,
    /// The hooks.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
    pub hooks: Vec<Hook>,
    /// The revision, from 1.
    pub version: u32,
    /// The namespace that the record lives in, and the objects that name none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// `ssa`, or `csa` (absent means the latter).
    #[serde(skip_serializing_if = "String::is_empty")]
    pub apply_method: String,
    /// What else Helm keeps here.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
    /// Labels that a user put on the record. They live on the Secret alone.
    #[serde(skip)]
    pub labels: BTreeMap<String, String>,
}

/// Without values, manifests and notes, in which there may be secrets.
impl fmt::Debug for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Release")
            .field("name", &self.name)
            .field("namespace", &self.namespace)
            .field("version", &self.version)
            .field("info", &self.info)
            .finish_non_exhaustive()
    }
}

impl Release {
    /// The chart's name; empty if the record has none.
    pub fn chart_name(&self) -> &str {
        self.chart_field("name")
    }

    /// The chart's version; empty if the record has none.
    pub fn chart_version(&self) -> &str {
        self.chart_field("version")
    }

    fn chart_field(&self, field: &str) -> &str {
        let metadata = self.chart.get("metadata");
        metadata
            .and_then(|metadata| metadata.get(field))
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    /// The name of the Secret that holds this revision.
    pub fn secret_name(&self) -> String {
        secret_name(&self.name, self.version)
    }
}

/// The name of the Secret that holds a revision.
pub fn secret_name(release: &str, revision: u32) -> String {
    format!("sh.helm.release.v1.{release}.v{revision}")
}

/// A chart as a record needs it: Chart.yaml and the default values. Templates, files, schema and
/// lock are left out, with which a record is 5 to 20 times as large, and which no command of either
/// helm CLI needs from a record.
pub fn slim_chart(chart: &Chart) -> Value {
    json!({
        "metadata": chart.metadata,
        "lock": null,
        "templates": [],
        "values": chart.values,
        "schema": null,
        "files": [],
    })
}

/// A chart as Helm stores it, with templates, files, schema and lock, but for the times of its files.
/// Charts inside it are no part of a record.
pub fn full_chart(chart: &Chart) -> Value {
    let files = |files: &[File]| -> Vec<Value> {
        let file = |file: &File| json!({ "name": file.name, "data": STANDARD.encode(&file.data) });
        files.iter().map(file).collect()
    };
    let mut full = slim_chart(chart);
    full["lock"] = json!(chart.lock);
    full["templates"] = files(&chart.templates).into();
    full["files"] = files(&chart.files).into();
    full["schema"] = chart.schema.as_ref().map(|schema| STANDARD.encode(schema)).into();
    full
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
fn is_none(revision: &u32) -> bool {
    *revision == 0
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
fn is_zero(number: &i64) -> bool {
    *number == 0
}

/// Go writes an empty list or map as `null` where the field has no `omitempty`.
fn null_as_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}
