//! Who an object is.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use catamaran_cluster::apply::{Target, metadata_str};
use kube::core::GroupVersionKind;
use serde_json::Value;

use crate::Error;

/// An object apart from its version: the same object under `apps/v1beta1` and `apps/v1` is one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectId {
    /// API group, empty for the core group.
    pub group: String,
    /// The kind.
    pub kind: String,
    /// The namespace; `None` for cluster-scoped objects.
    pub namespace: Option<String>,
    /// The name.
    pub name: String,
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} \"{}\"", self.kind, self.name)?;
        match &self.namespace {
            Some(namespace) => write!(f, " in namespace \"{namespace}\""),
            None => Ok(()),
        }
    }
}

/// An object of the desired manifest, ready to be sent.
#[derive(Clone)]
pub struct PlannedObject {
    /// Who it is.
    pub id: ObjectId,
    /// Its kind as the manifest has it, with the version.
    pub gvk: GroupVersionKind,
    /// Where requests go; `None` while its CRD, part of the same manifest, is not there yet.
    pub target: Option<Target>,
    /// What is sent: with namespace, ownership labels and annotations, and the owner.
    pub body: Value,
    /// What was left out of it because server-side apply would refuse it, in words for people.
    pub warnings: Vec<String>,
}

impl PlannedObject {
    /// A hash of what is sent. Compare hashes of one process only.
    pub fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.body.hash(&mut hasher);
        hasher.finish()
    }
}

/// Without the object, which may be a Secret.
impl fmt::Debug for PlannedObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlannedObject").field("id", &self.id).finish_non_exhaustive()
    }
}

/// The kind of a manifest's object; an error if it lacks apiVersion, kind or name.
pub(crate) fn gvk_of(object: &Value) -> Result<GroupVersionKind, Error> {
    let field = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind, name) =
        (field("apiVersion"), field("kind"), metadata_str(object, "name"));
    let lacks = [("apiVersion", api_version), ("kind", kind), ("metadata.name", name)];
    if let Some((missing, _)) = lacks.iter().find(|(_, value)| value.is_empty()) {
        let who = format!("{} {name:?}", if kind.is_empty() { "object" } else { kind });
        return Err(Error::Object { message: format!("{who} has no {missing}") });
    }
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    Ok(GroupVersionKind::gvk(group, version, kind))
}

/// Who a manifest's object is, given whether its kind lives in namespaces.
pub(crate) fn id_of(
    object: &Value,
    gvk: &GroupVersionKind,
    namespaced: bool,
    release_namespace: &str,
) -> ObjectId {
    let own = metadata_str(object, "namespace");
    let namespace = if own.is_empty() { release_namespace } else { own };
    ObjectId {
        group: gvk.group.clone(),
        kind: gvk.kind.clone(),
        namespace: namespaced.then(|| namespace.to_owned()),
        name: metadata_str(object, "name").to_owned(),
    }
}

/// An object as it stands in a manifest, with its kind told.
#[derive(Clone)]
pub struct RawObject {
    /// Its kind with the version.
    pub gvk: GroupVersionKind,
    /// The object.
    pub object: Value,
}

/// Without the object, which may be a Secret.
impl fmt::Debug for RawObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawObject").field("gvk", &self.gvk).finish_non_exhaustive()
    }
}

/// The objects of a manifest's text, each with apiVersion, kind and name.
pub fn parse_manifest(text: &str) -> Result<Vec<RawObject>, Error> {
    let objects = catamaran_chart::manifest::parse_objects(text)?;
    objects.into_iter().map(|object| Ok(RawObject { gvk: gvk_of(&object)?, object })).collect()
}

/// An object without what operators and Helm's generations add to a stored manifest, for telling
/// whether two manifests ask for the same.
pub(crate) fn normalised(mut object: Value, release_namespace: &str) -> Value {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
        return object;
    };
    metadata.remove("ownerReferences");
    if metadata.get("namespace").and_then(Value::as_str) == Some(release_namespace) {
        metadata.remove("namespace");
    }
    for (map, prefix) in [
        ("annotations", "operator-sdk/primary-resource"),
        ("labels", "helm.sdk.operatorframework.io/"),
    ] {
        if let Some(entries) = metadata.get_mut(map).and_then(Value::as_object_mut) {
            entries.retain(|key, _| !key.starts_with(prefix));
        }
    }
    metadata
        .retain(|_, value| !value.is_null() && value.as_object().is_none_or(|map| !map.is_empty()));
    object
}
