//! Objects as the first list of a watch showed them, until somebody looks: after a restart what a
//! watch told is not read once more.
//!
//! They are whole objects, with `managedFields`, so there is room for few of them: what does not fit
//! is read when its turn comes.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use kube::core::DynamicObject;
use serde_json::Value;

/// How many bytes of objects are kept at once, of all kinds together.
const ROOM: usize = 16 * 1024 * 1024;

/// The room for objects that nobody has looked at yet; clones share it.
#[derive(Clone, Debug)]
pub struct Room(Arc<AtomicUsize>);

impl Default for Room {
    fn default() -> Self {
        Self(Arc::new(AtomicUsize::new(ROOM)))
    }
}

impl Room {
    /// Keeps an object, if there is room for it.
    pub fn keep(&self, object: &DynamicObject) -> Sight {
        let Ok(text) = serde_json::to_vec(object) else { return Sight::default() };
        let size = text.len();
        let taken = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(size));
        let kept = taken.ok().map(|_| Kept { text: text.into(), room: self.0.clone() });
        Sight(Mutex::new(kept))
    }
}

/// An object as it was listed; there to be looked at once, as later somebody may have written it.
#[derive(Debug, Default)]
pub struct Sight(Mutex<Option<Kept>>);

impl Sight {
    /// The object, if it was kept and nobody has taken it yet.
    pub fn take(&self) -> Option<Value> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        serde_json::from_slice(&kept.text).ok()
    }
}

struct Kept {
    text: Box<[u8]>,
    room: Arc<AtomicUsize>,
}

/// Without the object, which may hold what nobody may see.
impl std::fmt::Debug for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kept").field("bytes", &self.text.len()).finish_non_exhaustive()
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.room.fetch_add(self.text.len(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_object_is_there_once_and_its_room_is_given_back() {
        let room = Room::default();
        let object = |size: usize| -> DynamicObject {
            let text = "x".repeat(size);
            serde_json::from_value(json!({"metadata": {"name": "a"}, "data": text})).unwrap()
        };
        let (one, other) = (room.keep(&object(ROOM / 2)), room.keep(&object(ROOM / 2)));
        assert!(other.take().is_none(), "no room");
        assert_eq!(one.take().unwrap()["metadata"]["name"], "a");
        assert!(one.take().is_none());
        assert!(room.keep(&object(ROOM / 2)).take().is_some());
        drop(room.keep(&object(ROOM / 2)));
        assert!(room.keep(&object(ROOM / 2)).take().is_some());
    }
}
