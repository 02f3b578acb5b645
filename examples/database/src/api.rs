//! `stable.imaginedata.com/v1`.

#![allow(clippy::duplicated_attributes)] // columns have the same arguments, each its own

use catamaran_operator::native::Status;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{CustomResource, CustomResourceExt, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The definition of the kind; `make manifests-examples` writes it to config/crd.
pub fn definitions() -> Vec<CustomResourceDefinition> {
    vec![Database::crd()]
}

/// The status of a [`Database`].
pub type DatabaseStatus = Status<DatabaseFields>;

/// A PostgreSQL server with a database.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "stable.imaginedata.com",
    version = "v1",
    kind = "Database",
    doc = "A PostgreSQL server with a database, its backups and its upgrades.",
    namespaced,
    shortname = "db",
    status = "DatabaseStatus",
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].status",
        priority = 1
    ),
    printcolumn(
        name = "Backup",
        type_ = "date",
        json_path = ".status.lastBackup.finishedAt",
        priority = 1
    )
)]
#[serde(rename_all = "kebab-case")]
pub struct DatabaseSpec {
    /// What the database is called on the server. It cannot be changed.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// The port of the server and its Service.
    #[serde(default = "port")]
    #[schemars(range(min = 1024, max = 65535))]
    pub port: i32,
    /// The size of each pod's volume. It cannot be changed.
    #[serde(default = "storage_size")]
    pub storage_size: String,
    /// An image of PostgreSQL. Another one is an upgrade: by a dump and a restore, with the Service closed
    /// meanwhile. An older major version is refused.
    #[schemars(length(min = 1))]
    pub image: String,
    /// How many servers: one is the primary, the others follow it and can be read from.
    #[serde(default = "one")]
    #[schemars(range(min = 1))]
    pub replicas: i32,
    /// How long the primary may be down, in seconds, before a standby takes over.
    #[serde(default = "half_a_minute")]
    #[schemars(range(min = 1))]
    pub failover_seconds: i32,
    /// Writes the database to a volume, regularly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backup: Option<BackupSpec>,
    /// Has the database be what a backup holds. Every change of it has it done once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restore: Option<RestoreSpec>,
    /// Whether the database is written to the volume of backups before it is deleted. The volume stays.
    #[serde(default = "yes")]
    pub snapshot: bool,
}

fn port() -> i32 {
    5432
}

fn storage_size() -> String {
    "1Gi".to_owned()
}

fn one() -> i32 {
    1
}

fn half_a_minute() -> i32 {
    30
}

fn yes() -> bool {
    true
}

/// When backups are written.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BackupSpec {
    /// As in a CronJob.
    #[schemars(length(min = 1))]
    pub schedule: String,
    /// How many are kept.
    #[serde(default = "week")]
    #[schemars(range(min = 1))]
    pub keep: i32,
}

fn week() -> i32 {
    7
}

/// Which backup is restored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RestoreSpec {
    /// The name of a backup, as the status tells it, or latest.
    #[serde(default = "latest")]
    pub backup: String,
    /// Whatever was not said before has the same done again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
}

fn latest() -> String {
    "latest".to_owned()
}

/// What the status of a [`Database`] tells besides its conditions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DatabaseFields {
    /// What the database is called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The image that runs: another than the spec's while an upgrade is prepared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// The size of the volumes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_size: Option<String>,
    /// The pod that is written to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub primary: Option<String>,
    /// What the loss of the primary with its volume may lose: copies are asynchronous.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_risk: Option<String>,
    /// How often it was decided who that is.
    pub term: i64,
    /// The term in which the primary was made one: while it is not the last there is none.
    pub promoted: i64,
    /// While a standby is chosen: the pod that was the primary before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deposed: Option<String>,
    /// Since when the primary is down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub down_since: Option<Time>,
    /// How many servers there were, each with a folder of its own: an upgrade begins another one.
    pub server: i64,
    /// The image with which the database was set up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set_up: Option<String>,
    /// While an upgrade goes on: the image whose server has yet to load what the old one held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loads: Option<String>,
    /// The last restore that is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restored: Option<String>,
    /// While the database is deleted: the backup that was taken before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<String>,
    /// The backup that ended last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_backup: Option<LastBackup>,
}

/// What came of a backup.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LastBackup {
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Time>,
    /// Whether it went well.
    pub succeeded: bool,
    /// The name of the backup.
    pub file: String,
    /// How large it is.
    pub bytes: i64,
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    #[test]
    fn the_crds_are_up_to_date() {
        let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/config/crd"));
        catamaran_testkit::check_crds(folder, &super::definitions());
    }
}
