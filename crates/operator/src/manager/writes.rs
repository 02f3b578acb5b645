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
    /// Remembers the resource as the API server answered our write.
    pub fn note(&self, key: &Key, written: &DynamicObject) {
        if let Some(version) = version(written) {
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
