//! Values as the API server keeps them.

use serde_json::Value;

use super::quantity::same_quantity;

/// Whether the API server may leave a value out as if it had not been given.
pub(super) fn is_blank(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) => false,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(is_blank),
    }
}

/// Whether there is nothing in it: the API server does not count it as given everywhere.
pub(super) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(is_empty),
        _ => false,
    }
}

/// Whether what is there is what is wanted, but for its spelling and for what was added to it.
pub(super) fn same_value(wanted: &Value, there: Option<&Value>) -> bool {
    let Some(there) = there.filter(|there| !there.is_null()) else { return is_blank(wanted) };
    match (wanted, there) {
        (Value::Null, _) => true,
        (Value::Object(wanted), Value::Object(there)) => {
            wanted.iter().all(|(name, wanted)| same_value(wanted, there.get(name)))
        }
        (Value::Array(wanted), Value::Array(there)) => {
            wanted.len() == there.len()
                && wanted.iter().zip(there).all(|(wanted, there)| same_value(wanted, Some(there)))
        }
        (Value::Number(wanted), Value::Number(there)) => {
            wanted == there || wanted.as_f64() == there.as_f64()
        }
        _ => wanted == there || same_quantity(wanted, there),
    }
}
