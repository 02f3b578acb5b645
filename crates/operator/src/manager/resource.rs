//! A resource of a watched kind as it waits for its turn: as text, an object only when it has come.
//!
//! A decoded object takes four times the room of its text, and of thousands a few are worked on at once.
//! Of long texts not even the text is kept where there are many: they are read when their turn comes.

use std::hash::{DefaultHasher, Hash, Hasher};

use catamaran_cluster::bounds::Size;
use catamaran_cluster::items::{Item, Refusal};
use kube::core::DynamicObject;

use super::initial_snapshot::{SnapshotBudget, SnapshotSlot};

/// From this length on a text takes part of the room for long texts.
const LONG: usize = 16 << 10;
/// How many bytes of long texts one kind keeps.
pub const LONG_TEXTS: usize = 12 << 20;

/// One resource.
#[derive(Debug)]
pub struct Resource {
    content: Content,
    /// How large its text is.
    pub size: Size,
    marks: Fingerprint,
    /// When it was made, in seconds since 1970.
    pub created: Option<i64>,
}

#[derive(Debug)]
enum Content {
    Text {
        text: Box<[u8]>,
        _place: Option<SnapshotSlot>,
    },
    /// There was no room for its text.
    Unkept,
    Refused(Box<(DynamicObject, Refusal)>),
}

/// A resource whose turn has come.
#[derive(Debug)]
pub enum Turn {
    /// It is decoded.
    Object(DynamicObject),
    /// It is to be read from the API server.
    Unread,
    /// It cannot be decoded: its metadata, and why.
    Refused(DynamicObject, Refusal),
}

/// What a reconcile looks at, by hashes: all of it but the status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fingerprint {
    uid: u64,
    deleting: bool,
    /// The generation, or the spec where there is none.
    spec: u64,
    annotations: u64,
    labels: u64,
    finalizers: u64,
}

impl Resource {
    /// What is kept of an object; its text if it is short, or if there is room for it.
    pub fn of(item: Item, room: &SnapshotBudget) -> Self {
        let Item { object, size, refusal } = item;
        let meta = &object.metadata;
        let spec = match meta.generation {
            Some(generation) => hash(generation),
            None => hash(object.data.get("spec")),
        };
        let marks = Fingerprint {
            uid: hash(&meta.uid),
            deleting: meta.deletion_timestamp.is_some(),
            spec,
            annotations: hash(&meta.annotations),
            labels: hash(&meta.labels),
            finalizers: hash(&meta.finalizers),
        };
        let created = meta.creation_timestamp.as_ref().map(|time| time.0.as_second());
        let content = match refusal {
            Some(refusal) => Content::Refused(Box::new((object, refusal))),
            None => Content::of(&object, size, room),
        };
        Self { content, size, marks, created }
    }

    /// The object, as far as it is kept.
    pub fn turn(&self) -> Turn {
        match &self.content {
            // What cannot be decoded though the text was made from an object is read anew.
            Content::Text { text, .. } => {
                serde_json::from_slice(text).map_or(Turn::Unread, Turn::Object)
            }
            Content::Unkept => Turn::Unread,
            Content::Refused(refused) => Turn::Refused(refused.0.clone(), refused.1.clone()),
        }
    }

    /// What changed that a reconcile looks at: anything but the status.
    pub fn moved_since(&self, before: &Self) -> Option<&'static str> {
        let (old, new) = (&before.marks, &self.marks);
        if old.uid != new.uid {
            Some("created anew")
        } else if old.deleting != new.deleting {
            Some("to be deleted")
        } else if old.spec != new.spec {
            Some("spec changed")
        } else if old.annotations != new.annotations {
            Some("annotations changed")
        } else if old.labels != new.labels {
            Some("labels changed")
        } else if old.finalizers != new.finalizers {
            Some("finalizers changed")
        } else {
            None
        }
    }
}

impl Content {
    fn of(object: &DynamicObject, size: Size, room: &SnapshotBudget) -> Self {
        let place = if size.bytes < LONG {
            None
        } else if let Some(place) = room.take(size.bytes) {
            Some(place)
        } else {
            return Self::Unkept;
        };
        match serde_json::to_vec(object) {
            Ok(text) => Self::Text { text: text.into(), _place: place },
            Err(_) => Self::Unkept,
        }
    }
}

fn hash(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn resource(parts: &[(&str, Value)]) -> Resource {
        let mut object = json!({
            "apiVersion": "g/v1", "kind": "K", "spec": { "a": 1.0, "b": "ü" }, "status": {},
            "metadata": { "name": "n", "uid": "u", "resourceVersion": "1" },
        });
        for (path, value) in parts {
            let (parent, name) = path.rsplit_once('/').unwrap();
            object.pointer_mut(parent).unwrap()[name] = value.clone();
        }
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        Resource::of(object.into(), &SnapshotBudget::of(LONG_TEXTS))
    }

    #[test]
    fn a_resource_comes_back_as_it_was() {
        let status = json!({ "x": [1, null, { "y": -7 }] });
        let Turn::Object(object) = resource(&[("/status", status.clone())]).turn() else {
            panic!()
        };
        assert_eq!(object.data, json!({ "spec": { "a": 1.0, "b": "ü" }, "status": status }));
        assert_eq!(object.types.unwrap().kind, "K");
        assert_eq!(object.metadata.resource_version.unwrap(), "1");
    }

    #[test]
    fn a_long_text_without_room_is_read_when_its_turn_comes() {
        let room = SnapshotBudget::of(LONG * 3 / 2);
        let of = |bytes| {
            let object: DynamicObject = serde_json::from_value(json!({ "metadata": {} })).unwrap();
            Resource::of(Item { size: Size { bytes, ..Size::default() }, ..object.into() }, &room)
        };
        let (first, second, short) = (of(LONG), of(LONG), of(LONG - 1));
        let is_kept = |resource: &Resource| matches!(resource.turn(), Turn::Object(_));
        assert_eq!([&first, &second, &short].map(is_kept), [true, false, true]);
        drop(first);
        assert!(is_kept(&of(LONG)));
    }

    #[test]
    fn a_reconcile_looks_at_everything_but_the_status() {
        let moved = |parts: &[_]| resource(parts).moved_since(&resource(&[]));
        let status = [("/status", json!({ "a": 1 })), ("/metadata/resourceVersion", json!("2"))];
        assert_eq!(moved(&status), None);
        for (path, value, told) in [
            ("/metadata/uid", json!("v"), "created anew"),
            ("/metadata/deletionTimestamp", json!("2026-01-01T00:00:00Z"), "to be deleted"),
            ("/spec", json!({ "a": 2 }), "spec changed"),
            ("/metadata/annotations", json!({ "a": "" }), "annotations changed"),
            ("/metadata/labels", json!({ "a": "" }), "labels changed"),
            ("/metadata/finalizers", json!(["f"]), "finalizers changed"),
        ] {
            assert_eq!(moved(&[(path, value)]), Some(told));
        }
        let of = |generation: i64, spec: i64| {
            resource(&[("/metadata/generation", json!(generation)), ("/spec", json!(spec))])
        };
        assert_eq!(of(1, 2).moved_since(&of(1, 1)), None, "the generation tells");
        assert_eq!(of(2, 1).moved_since(&of(1, 1)), Some("spec changed"));
    }
}
