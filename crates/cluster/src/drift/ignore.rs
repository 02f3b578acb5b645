//! What is left to others although it differs.

use std::collections::BTreeMap;

use kube::core::{Selector, SelectorExt as _};
use serde_json::Value;

use crate::apply::metadata;

/// Annotations by which an object asks to be left as it is once it is there, with the value that asks
/// so: Flux's, and ours.
const LEFT_ALONE: [(&str, &str); 2] =
    [("helm.toolkit.fluxcd.io/driftDetection", "disabled"), ("catamaran.dev/drift", "ignore")];

/// Fields that are not put back when others change them.
#[derive(Clone, Debug, Default)]
pub struct IgnoreRule {
    /// Of which API group; `None` is any.
    pub group: Option<String>,
    /// Of which kind; `None` is any.
    pub kind: Option<String>,
    /// Of which name; `None` is any.
    pub name: Option<String>,
    /// Which labels an object must have.
    pub selector: Selector,
    /// JSON pointers (RFC 6901); what lies below is ignored, too. An empty one is the whole object.
    pub paths: Vec<String>,
}

impl IgnoreRule {
    /// Whether the rule is about an object.
    pub fn is_about(&self, object: &Value) -> bool {
        let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
        let group = text("apiVersion").rsplit_once('/').map_or("", |(group, _)| group);
        let name = metadata(object).get("name").and_then(Value::as_str).unwrap_or_default();
        let labels = metadata(object).get("labels").and_then(Value::as_object);
        let text_of = |(key, value): (&String, &Value)| (key.clone(), plain(value));
        let labels: BTreeMap<String, String> = labels.into_iter().flatten().map(text_of).collect();
        self.group.as_deref().is_none_or(|wanted| wanted == group)
            && self.kind.as_deref().is_none_or(|wanted| wanted == text("kind"))
            && self.name.as_deref().is_none_or(|wanted| wanted == name)
            && self.selector.matches(&labels)
    }

    /// Whether the field at a pointer is one of the rule's, or below one.
    pub fn covers(&self, pointer: &str) -> bool {
        self.paths.iter().any(|path| {
            pointer
                .strip_prefix(path.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }
}

fn plain(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Whether a live object asks by an annotation to be left as it is.
pub fn is_left_alone(live: &Value) -> bool {
    let annotations = metadata(live).get("annotations");
    annotations.is_some_and(|annotations| {
        LEFT_ALONE.iter().any(|(name, value)| annotations[*name] == *value)
    })
}

/// A pointer's steps, such that a list's items are in their order.
pub(super) fn order(pointer: &str) -> Vec<(Option<usize>, String)> {
    pointer.split('/').map(|step| (step.parse().ok(), step.to_owned())).collect()
}

/// Takes the field at a pointer out of an object.
pub(super) fn take_out(object: &mut Value, pointer: &str) {
    let Some((parent, last)) = pointer.rsplit_once('/') else { return };
    match object.pointer_mut(parent) {
        Some(Value::Object(fields)) => {
            fields.remove(&last.replace("~1", "/").replace("~0", "~"));
        }
        Some(Value::Array(items)) => {
            if let Some(at) = last.parse().ok().filter(|at| *at < items.len()) {
                items.remove(at);
            }
        }
        _ => {}
    }
}
