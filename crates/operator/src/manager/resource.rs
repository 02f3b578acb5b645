//! A resource of a watched kind as it waits for its turn: as text, an object only when it has come.
//!
//! A decoded object takes four times the room of its text, and of thousands a few are worked on at once.

use std::hash::{DefaultHasher, Hash, Hasher};

use kube::core::DynamicObject;

/// One resource.
#[derive(Debug)]
pub struct Resource {
    text: Box<[u8]>,
    marks: Marks,
    /// When it was made, in seconds since 1970.
    pub created: Option<i64>,
}

/// What a reconcile looks at, by hashes: all of it but the status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Marks {
    uid: u64,
    deleting: bool,
    /// The generation, or the spec where there is none.
    spec: u64,
    annotations: u64,
    labels: u64,
    finalizers: u64,
}

impl Resource {
    /// What is kept of an object.
    pub fn of(object: &DynamicObject) -> Self {
        let meta = &object.metadata;
        let spec = match meta.generation {
            Some(generation) => hash(generation),
            None => hash(object.data.get("spec")),
        };
        let marks = Marks {
            uid: hash(&meta.uid),
            deleting: meta.deletion_timestamp.is_some(),
            spec,
            annotations: hash(&meta.annotations),
            labels: hash(&meta.labels),
            finalizers: hash(&meta.finalizers),
        };
        let created = meta.creation_timestamp.as_ref().map(|time| time.0.as_second());
        // What was read as JSON can be written as JSON; if not, `object` tells that there is nothing.
        let text = serde_json::to_vec(object).unwrap_or_default().into();
        Self { text, marks, created }
    }

    /// The object.
    ///
    /// # Errors
    /// None that can be thought of, as the text was made from an object.
    pub fn object(&self) -> Result<DynamicObject, serde_json::Error> {
        serde_json::from_slice(&self.text)
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
        Resource::of(&serde_json::from_value(object).unwrap())
    }

    #[test]
    fn a_resource_comes_back_as_it_was() {
        let status = json!({ "x": [1, null, { "y": -7 }] });
        let object = resource(&[("/status", status.clone())]).object().unwrap();
        assert_eq!(object.data, json!({ "spec": { "a": 1.0, "b": "ü" }, "status": status }));
        assert_eq!(object.types.unwrap().kind, "K");
        assert_eq!(object.metadata.resource_version.unwrap(), "1");
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
