//! The few fields of an object that are read even where the object is not decoded.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::DynamicObject;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::bounds::Limits;

/// A field that is kept apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    Name,
    Namespace,
    Uid,
    ResourceVersion,
    Generation,
    CreationTimestamp,
    DeletionTimestamp,
    Finalizers,
    OwnerReferences,
    Labels,
    Annotations,
    Conditions,
}

impl Field {
    /// All of them: their name, and how many bytes of JSON are kept; a longer value is not kept at all.
    const ALL: [(Self, &'static str, usize); 12] = [
        (Self::Name, "name", 4 << 10),
        (Self::Namespace, "namespace", 1 << 10),
        (Self::Uid, "uid", 1 << 10),
        (Self::ResourceVersion, "resourceVersion", 1 << 10),
        (Self::Generation, "generation", 1 << 10),
        (Self::CreationTimestamp, "creationTimestamp", 1 << 10),
        (Self::DeletionTimestamp, "deletionTimestamp", 1 << 10),
        (Self::Finalizers, "finalizers", 64 << 10),
        (Self::OwnerReferences, "ownerReferences", 64 << 10),
        (Self::Labels, "labels", 64 << 10),
        // The API server bounds them to 256 KiB, before they are escaped.
        (Self::Annotations, "annotations", 512 << 10),
        (Self::Conditions, "conditions", 128 << 10),
    ];

    /// The field of `metadata` with this name.
    pub fn of_metadata(name: &[u8]) -> Option<Self> {
        let mut all = Self::ALL.into_iter().filter(|(field, ..)| *field != Self::Conditions);
        all.find(|(_, known, _)| known.as_bytes() == name).map(|(field, ..)| field)
    }
}

/// The texts of these fields, of one object.
#[derive(Debug, Default)]
pub(crate) struct Fields([Kept; Field::ALL.len()]);

#[derive(Debug, Default)]
struct Kept {
    text: Vec<u8>,
    is_too_long: bool,
}

impl Fields {
    /// Appends to the text of a field.
    pub fn add(&mut self, field: Field, bytes: &[u8]) {
        let at = field as usize;
        if let (Some(kept), Some((.., bound))) = (self.0.get_mut(at), Field::ALL.get(at)) {
            kept.is_too_long |= kept.text.len().saturating_add(bytes.len()) > *bound;
            if kept.is_too_long {
                kept.text = Vec::new();
            } else {
                kept.text.extend_from_slice(bytes);
            }
        }
    }

    /// The object as far as its fields can be read: each that cannot is left out.
    pub fn object(&self) -> DynamicObject {
        let metadata = ObjectMeta {
            name: self.read(Field::Name),
            namespace: self.read(Field::Namespace),
            uid: self.read(Field::Uid),
            resource_version: self.read(Field::ResourceVersion),
            generation: self.read(Field::Generation),
            creation_timestamp: self.read(Field::CreationTimestamp),
            deletion_timestamp: self.read(Field::DeletionTimestamp),
            finalizers: self.read(Field::Finalizers),
            owner_references: self.read(Field::OwnerReferences),
            labels: self.read(Field::Labels),
            annotations: self.read(Field::Annotations),
            ..ObjectMeta::default()
        };
        let data = match self.read::<Vec<Value>>(Field::Conditions) {
            Some(conditions) => json!({ "status": { "conditions": conditions } }),
            None => Value::Null,
        };
        DynamicObject { types: None, metadata, data }
    }

    fn read<T: DeserializeOwned>(&self, field: Field) -> Option<T> {
        let text = &self.0.get(field as usize)?.text;
        Limits::RESOURCE.check(text).ok()?;
        serde_json::from_slice(text).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_field_lies_at_its_own_place() {
        for (at, (field, name, _)) in Field::ALL.into_iter().enumerate() {
            assert_eq!(field as usize, at, "{name}");
        }
    }
}
