//! Which of our own writes to a resource its cache must have seen before it is reconciled again.
//!
//! A reconcile on what the resource was before our last write would work against itself: its status
//! write is refused as a conflict, and all has to be done once more.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use kube::ResourceExt;
use kube::core::DynamicObject;

use super::queue::Key;

/// After this time a cache that does not catch up is believed: what it lacks may never come.
const PATIENCE: Duration = Duration::from_secs(5);

/// The last write to each resource, as a resourceVersion, while its cache may not know it.
#[derive(Debug, Default)]
pub struct Writes(Mutex<HashMap<Key, (u64, Instant)>>);

impl Writes {
    /// Remembers the resource as the API server answered our write. Taking the last finalizer off deletes
    /// it, and the answer then has the version from before: what is cached under that one is behind, too.
    pub fn note(&self, key: &Key, written: &DynamicObject) {
        let meta = &written.metadata;
        let is_gone =
            meta.deletion_timestamp.is_some() && meta.finalizers.as_ref().is_none_or(Vec::is_empty);
        if let Some(version) = version(written) {
            let version = version.saturating_add(is_gone.into());
            let mut writes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            writes.insert(key.clone(), (version, Instant::now()));
        }
    }

    /// Whether a cached resource is older than our last write to it.
    pub fn is_behind(&self, key: &Key, cached: &DynamicObject) -> bool {
        let mut writes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((written, at)) = writes.get(key) else { return false };
        let behind =
            version(cached).is_some_and(|version| version < *written) && at.elapsed() < PATIENCE;
        if !behind {
            writes.remove(key);
        }
        behind
    }

    /// Forgets a resource that is gone.
    pub fn forget(&self, key: &Key) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}

fn version(object: &DynamicObject) -> Option<u64> {
    object.resource_version()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use catamaran_cluster::watch::ObjectKey;
    use serde_json::{Value, json};

    use super::*;

    fn resource(version: &str, metadata: &Value) -> DynamicObject {
        let mut object: DynamicObject =
            serde_json::from_value(json!({ "metadata": metadata })).unwrap();
        object.metadata.resource_version = Some(version.to_owned());
        object
    }

    #[test]
    fn what_was_deleted_by_our_write_is_behind_at_its_old_version_and_its_successor_is_not() {
        let key = Key { kind: 0, object: ObjectKey { namespace: None, name: "w".to_owned() } };
        let writes = Writes::default();
        let held = json!({ "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a/b"] });
        writes.note(&key, &resource("5", &held));
        assert!(writes.is_behind(&key, &resource("4", &held)));
        assert!(!writes.is_behind(&key, &resource("5", &held)));
        let ended = json!({ "deletionTimestamp": "2026-01-01T00:00:00Z" });
        writes.note(&key, &resource("5", &ended));
        assert!(writes.is_behind(&key, &resource("5", &held)));
        assert!(!writes.is_behind(&key, &resource("6", &json!({}))));
    }
}
