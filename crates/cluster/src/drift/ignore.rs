//! What is left to others although it differs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kube::core::{Selector, SelectorExt as _};
use serde_json::Value;

use crate::apply::metadata;
use crate::budget::Budget;
use crate::cel::Program;

/// Annotations by which an object asks to be left as it is once it is there, with the value that asks
/// so: ours, and those of Flux's two controllers. Argo has none on objects: what it ignores stands in
/// its Applications.
const LEFT_ALONE: [(&str, &str); 5] = [
    ("catamaran.dev/drift", "ignore"),
    ("helm.toolkit.fluxcd.io/driftDetection", "disabled"),
    ("kustomize.toolkit.fluxcd.io/reconcile", "disabled"),
    ("kustomize.toolkit.fluxcd.io/ssa", "IfNotPresent"),
    ("kustomize.toolkit.fluxcd.io/ssa", "Ignore"),
];

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
    /// With [`when`](Self::when), none means all fields.
    pub paths: Vec<String>,
    /// Asked for each field that differs, with the variables `object` (as it is), `desired` (as the
    /// chart has it) and `path` (the field's JSON pointer): only where it is true, the field is left
    /// to others. Where it has no answer, it is not.
    pub when: Option<Arc<Program>>,
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

    /// Whether the rule leaves a field to others: it is at or below one of its paths, and the
    /// expression, if there is one, holds. Where that costs more than is left, it does not.
    pub fn covers(
        &self,
        pointer: &str,
        (desired, live): (&Value, &Value),
        budget: &mut Budget,
    ) -> bool {
        let within = self.paths.iter().any(|path| {
            pointer
                .strip_prefix(path.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        });
        let Some(when) = &self.when else { return within };
        let path = Value::from(pointer);
        let variables = [("object", live), ("desired", desired), ("path", &path)];
        (within || self.paths.is_empty()) && when.holds(&variables, budget) == Ok(true)
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

/// Takes the fields at these pointers out of an object.
///
/// An item is marked first and taken out once all of its list are known: each by itself would move
/// all items behind it.
pub(super) fn take_out(object: &mut Value, pointers: &[String]) {
    let mut items: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
    let mut fields = Vec::new();
    for (parent, last) in pointers.iter().filter_map(|pointer| pointer.rsplit_once('/')) {
        match object.pointer(parent) {
            Some(Value::Array(_)) => {
                items.entry(parent).or_default().extend(last.parse::<usize>().ok());
            }
            Some(Value::Object(_)) => fields.push((parent, last)),
            _ => {}
        }
    }
    for (parent, last) in fields {
        if let Some(Value::Object(fields)) = object.pointer_mut(parent) {
            fields.remove(&last.replace("~1", "/").replace("~0", "~"));
        }
    }
    // What lies below an item comes before it.
    for (parent, taken) in items.into_iter().rev() {
        if let Some(Value::Array(items)) = object.pointer_mut(parent) {
            let mut at = 0_usize..;
            items.retain(|_| at.next().is_none_or(|at| !taken.contains(&at)));
        }
    }
}
