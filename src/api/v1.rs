//! `cache.my.domain/v1`.

use catamaran_operator::native::Status;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The status of a [`MemcachedBackup`].
pub type MemcachedBackupStatus = Status<MemcachedBackupNodes>;

/// A set of memcached instances that stand by as a backup.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "cache.my.domain",
    version = "v1",
    kind = "MemcachedBackup",
    doc = "A set of memcached instances that stand by as a backup.",
    namespaced,
    status = "MemcachedBackupStatus",
    printcolumn(name = "Size", type_ = "integer", json_path = ".spec.size"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].status"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct MemcachedBackupSpec {
    /// How many instances there shall be.
    #[schemars(range(min = 0))]
    pub size: i32,

    /// Writes what a memcached server holds to a volume, as far as its protocol lets one read it. Without
    /// it nothing is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backup: Option<BackupSpec>,
}

/// What is backed up, and when.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackupSpec {
    /// The server: the name of a Service, for instance.
    #[schemars(length(min = 1))]
    pub host: String,
    /// Its port.
    #[serde(default = "memcached_port")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: i32,
    /// When, as in a CronJob.
    #[schemars(length(min = 1))]
    pub schedule: String,
    /// How many backups are kept.
    #[serde(default = "keep")]
    #[schemars(range(min = 1))]
    pub keep: i32,
    /// An image with the operator; by default that of the operator itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Where they are kept.
    #[serde(default)]
    pub storage: BackupStorage,
    /// Stores what a backup holds in the server, once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restore: Option<RestoreSpec>,
}

fn memcached_port() -> i32 {
    11211
}

fn keep() -> i32 {
    7
}

/// The volume of backups.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct BackupStorage {
    /// A PersistentVolumeClaim that is there. Without one the resource has its own, which is deleted with
    /// it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim: Option<String>,
    /// The size of its own.
    pub size: String,
    /// The class of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_class_name: Option<String>,
}

impl Default for BackupStorage {
    fn default() -> Self {
        Self { claim: None, size: "1Gi".to_owned(), storage_class_name: None }
    }
}

/// Which backup is restored. Every change of it has one restored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RestoreSpec {
    /// The name of a backup, as the status tells it, or latest.
    #[serde(default = "latest")]
    pub backup: String,
    /// Whether values that the server has are replaced by older ones.
    #[serde(default)]
    pub overwrite: bool,
    /// Whatever was not said before has the same done again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
}

fn latest() -> String {
    "latest".to_owned()
}

/// What the status of a [`MemcachedBackup`] tells besides its conditions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct MemcachedBackupNodes {
    /// The names of the pods, sorted.
    pub nodes: Vec<String>,

    /// The backup that ended last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_backup: Option<BackupRun>,

    /// The restore that ended last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_restore: Option<BackupRun>,
}

/// What came of a backup or a restore.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct BackupRun {
    /// The Job.
    pub job: String,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Time>,
    /// Whether it went well.
    pub succeeded: bool,
    /// The name of the backup.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub file: String,
    /// How many items were written, or stored.
    pub items: i64,
    /// How many bytes their values have.
    pub bytes: i64,
    /// How many were not: gone or expired meanwhile, or there already.
    pub skipped: i64,
    /// What went wrong.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}
