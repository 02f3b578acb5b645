//! Objects of the first list of a watch, kept until somebody reads them: after a restart they need not
//! be requested again.
//!
//! They are whole objects with `managedFields`, so they are compressed, and the memory for them is limited.
//! Objects beyond the limit are requested when they are needed.

use std::io::{Read, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use kube::core::DynamicObject;
use serde_json::Value;

/// The limit in bytes for all kinds together: the objects of about ten thousand releases.
const ROOM: usize = 40 * 1024 * 1024;

/// A budget in bytes, by default for objects that nobody has read yet; clones share it.
#[derive(Clone, Debug)]
pub struct SnapshotBudget(Arc<AtomicUsize>);

/// A part of a [`SnapshotBudget`], returned when it is dropped.
#[derive(Debug)]
pub struct SnapshotSlot {
    bytes: usize,
    room: Arc<AtomicUsize>,
}

impl Default for SnapshotBudget {
    fn default() -> Self {
        Self::of(ROOM)
    }
}

impl SnapshotBudget {
    /// A budget of this many bytes.
    pub fn of(bytes: usize) -> Self {
        Self(Arc::new(AtomicUsize::new(bytes)))
    }

    /// Takes this many bytes, if they are left.
    pub fn take(&self, bytes: usize) -> Option<SnapshotSlot> {
        let take = |left: usize| left.checked_sub(bytes);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).ok()?;
        Some(SnapshotSlot { bytes, room: self.0.clone() })
    }

    /// Keeps an object, if the budget allows it.
    pub fn keep(&self, object: &DynamicObject) -> InitialSnapshot {
        let Some(packed) = pack(object) else { return InitialSnapshot::default() };
        let kept = self.take(packed.len()).map(|place| Kept { packed, _place: place });
        InitialSnapshot(Mutex::new(kept))
    }
}

fn pack(object: &DynamicObject) -> Option<Box<[u8]>> {
    let text = serde_json::to_vec(object).ok()?;
    let mut packer = DeflateEncoder::new(Vec::new(), Compression::fast());
    packer.write_all(&text).ok()?;
    Some(packer.finish().ok()?.into())
}

/// An object of the first list. It can be read once, because later somebody may have changed it.
#[derive(Debug, Default)]
pub struct InitialSnapshot(Mutex<Option<Kept>>);

impl InitialSnapshot {
    /// The object, if it was kept and not read yet.
    pub fn take(&self) -> Option<Value> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        let mut text = Vec::new();
        DeflateDecoder::new(&*kept.packed).read_to_end(&mut text).ok()?;
        serde_json::from_slice(&text).ok()
    }
}

struct Kept {
    packed: Box<[u8]>,
    _place: SnapshotSlot,
}

/// Without the object, which may be a Secret.
impl std::fmt::Debug for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kept").field("bytes", &self.packed.len()).finish_non_exhaustive()
    }
}

impl Drop for SnapshotSlot {
    fn drop(&mut self) {
        self.room.fetch_add(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_object_is_there_once_and_its_room_is_given_back() {
        let object: DynamicObject =
            serde_json::from_value(json!({"metadata": {"name": "a"}, "data": "text"})).unwrap();
        let size = pack(&object).unwrap().len();
        let room = SnapshotBudget::of(size * 2 - 1);
        let (one, other) = (room.keep(&object), room.keep(&object));
        assert!(other.take().is_none(), "no room");
        assert_eq!(one.take().unwrap()["metadata"]["name"], "a");
        assert!(one.take().is_none());
        assert!(room.keep(&object).take().is_some());
        drop(room.keep(&object));
        assert!(room.keep(&object).take().is_some());
    }
}
