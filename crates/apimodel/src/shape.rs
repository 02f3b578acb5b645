//! How values are merged: what the API server's schemas say, for the fields that matter here.

use serde_json::{Map, Value};

use crate::sets::Set;

/// How a list or a map is owned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// As a whole.
    Whole,
    /// By its members.
    Members,
    /// A list whose items are told apart by these fields.
    Keyed(&'static [&'static str]),
}

/// The shape of what lies in a field, by its name and that of the field around it.
pub(crate) fn shape(around: &str, field: &str, value: &Value) -> Shape {
    match (value, field) {
        (Value::Object(_), "selector" | "nodeSelector" | "matchLabels" | "scaleTargetRef") => {
            Shape::Whole
        }
        (Value::Object(_), _) | (Value::Array(_), "finalizers") => Shape::Members,
        (Value::Array(_), "ownerReferences") => Shape::Keyed(&["uid"]),
        (Value::Array(_), "containers" | "initContainers" | "volumes" | "env") => {
            Shape::Keyed(&["name"])
        }
        (Value::Array(_), "ports") if around == "spec" => Shape::Keyed(&["port", "protocol"]),
        (Value::Array(_), "ports") => Shape::Keyed(&["containerPort", "protocol"]),
        _ => Shape::Whole,
    }
}

/// The key of an item, such as `k:{"name":"a"}`.
pub(crate) fn item_key(names: &[&str], item: &Value) -> String {
    let mut key = Map::new();
    for name in names {
        let own = item.get(*name).cloned();
        let value = own.or_else(|| (*name == "protocol").then(|| "TCP".into()));
        key.extend(value.map(|value| ((*name).to_owned(), value)));
    }
    format!("k:{}", Value::Object(key))
}

/// Fields that nobody owns.
pub(crate) fn is_unowned(path: &[&str]) -> bool {
    match path {
        ["apiVersion" | "kind" | "status"] => true,
        ["metadata", field] => matches!(
            *field,
            "name"
                | "namespace"
                | "uid"
                | "resourceVersion"
                | "creationTimestamp"
                | "generation"
                | "managedFields"
                | "selfLink"
                | "deletionTimestamp"
                | "deletionGracePeriodSeconds"
        ),
        _ => false,
    }
}

/// The fields of an object that is applied.
pub(crate) fn fields_of(object: &Value) -> Set {
    let mut set = Set::default();
    walk(&mut Vec::new(), object, &mut set);
    set.member = false;
    set
}

fn walk<'a>(path: &mut Vec<&'a str>, value: &'a Value, set: &mut Set) {
    let field = path.last().copied().unwrap_or_default();
    let around = path.len().checked_sub(2).and_then(|at| path.get(at)).copied().unwrap_or_default();
    match (shape(around, field, value), value) {
        (Shape::Members, Value::Object(fields)) if !fields.is_empty() => {
            for (name, below) in fields {
                path.push(name);
                if !is_unowned(path) {
                    walk(path, below, set.at(&format!("f:{name}")));
                }
                path.pop();
            }
            set.below.retain(|_, below| !below.is_empty());
        }
        (Shape::Members, Value::Array(items)) => {
            for item in items {
                set.at(&format!("v:{item}")).member = true;
            }
        }
        (Shape::Keyed(names), Value::Array(items)) => {
            for item in items {
                let below = set.at(&item_key(names, item));
                path.push("");
                walk(path, item, below);
                path.pop();
                below.member = true;
            }
        }
        _ => set.member = true,
    }
}
