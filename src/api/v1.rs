//! `cache.my.domain/v1`.

use catamaran_operator::native::Status;
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
}

/// What the status of a [`MemcachedBackup`] tells besides its conditions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct MemcachedBackupNodes {
    /// The names of the pods, sorted.
    pub nodes: Vec<String>,
}
