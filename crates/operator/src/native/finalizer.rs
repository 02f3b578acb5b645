//! The finalizer of a native kind: on a resource while there is something to clean up after it.

use kube::ResourceExt;
use kube::core::DynamicObject;
use serde_json::{Value, json};

/// Its name for a kind of this group, as kubebuilder's projects have it.
pub(super) fn name(group: &str) -> String {
    format!("{group}/finalizer")
}

pub(super) fn is_set(resource: &DynamicObject, name: &str) -> bool {
    resource.finalizers().iter().any(|set| set == name)
}

/// The merge patch that puts it on. The list is replaced as a whole, hence the resourceVersion that the
/// caller adds as a precondition.
pub(super) fn added(resource: &DynamicObject, name: &str) -> Value {
    let mut finalizers = resource.finalizers().to_vec();
    finalizers.push(name.to_owned());
    json!({ "metadata": { "finalizers": finalizers } })
}

/// The merge patch that takes it off.
pub(super) fn removed(resource: &DynamicObject, name: &str) -> Value {
    let finalizers: Vec<_> = resource.finalizers().iter().filter(|set| *set != name).collect();
    json!({ "metadata": { "finalizers": finalizers } })
}
