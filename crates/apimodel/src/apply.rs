//! Server-side apply.

use serde_json::{Map, Value};

use crate::sets::Set;
use crate::shape::{Shape, item_key, shape};

/// What is applied, laid over what is there.
pub(crate) fn merge(around: &str, field: &str, live: &Value, wanted: &Value) -> Value {
    match (shape(around, field, wanted), live, wanted) {
        (Shape::Members, Value::Object(live), Value::Object(wanted)) => {
            let mut merged = live.clone();
            for (name, value) in wanted {
                let below = live.get(name).unwrap_or(&Value::Null);
                let value = merge(field, name, below, value);
                if value.is_null() {
                    merged.remove(name);
                } else {
                    merged.insert(name.clone(), value);
                }
            }
            Value::Object(merged)
        }
        (Shape::Members, Value::Array(live), Value::Array(wanted)) => {
            let new = wanted.iter().filter(|item| !live.contains(item));
            live.iter().chain(new).cloned().collect()
        }
        (Shape::Keyed(names), Value::Array(live), Value::Array(wanted)) => {
            let find = |items: &[Value], item: &Value| {
                let key = item_key(names, item);
                items.iter().position(|other| item_key(names, other) == key)
            };
            let mut merged = live.clone();
            for item in wanted {
                match find(&merged, item).and_then(|at| merged.get_mut(at)) {
                    Some(below) => *below = merge(field, "", below, item),
                    None => merged.push(item.clone()),
                }
            }
            Value::Array(merged)
        }
        (_, _, wanted) => wanted.clone(),
    }
}

/// Takes fields out of a value; `stay` are those of others, which must not go with them. Maps that
/// are empty then go, too.
pub(crate) fn remove(value: &mut Value, gone: &Set, stay: &Set) {
    match value {
        Value::Object(fields) => remove_fields(fields, gone, stay),
        Value::Array(items) => {
            for (key, below) in &gone.below {
                let others = stay.below.get(key).cloned().unwrap_or_default();
                if below.member && others.is_empty() {
                    items.retain(|item| !is_called(item, key));
                } else if let Some(item) = items.iter_mut().find(|item| is_called(item, key)) {
                    remove(item, below, &others);
                }
            }
        }
        _ => {}
    }
}

fn remove_fields(fields: &mut Map<String, Value>, gone: &Set, stay: &Set) {
    for (key, below) in &gone.below {
        let Some(name) = key.strip_prefix("f:") else { continue };
        let others = stay.below.get(key).cloned().unwrap_or_default();
        if below.member && others.is_empty() {
            fields.remove(name);
        } else if let Some(value) = fields.get_mut(name) {
            remove(value, below, &others);
            let is_bare = value.as_object().is_some_and(Map::is_empty)
                || value.as_array().is_some_and(Vec::is_empty);
            if is_bare {
                fields.remove(name);
            }
        }
    }
}

/// Whether an item has the key that `managedFields` knows it by.
fn is_called(item: &Value, key: &str) -> bool {
    match key.split_once(':') {
        Some(("v", value)) => serde_json::from_str(value).is_ok_and(|own: Value| own == *item),
        Some(("k", fields)) => {
            let fields: Value = serde_json::from_str(fields).unwrap_or_default();
            fields.as_object().is_some_and(|fields| {
                let names: Vec<&str> = fields.keys().map(String::as_str).collect();
                item_key(&names, item) == key
            })
        }
        _ => false,
    }
}

/// What is at a field of an object.
pub(crate) fn value_at<'a>(object: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter().try_fold(object, |value, key| match value {
        Value::Array(items) => items.iter().find(|item| is_called(item, key)),
        value => value.get(key.strip_prefix("f:")?),
    })
}
