//! Scalars, and how texts are shown in errors.

use catamaran_gotemplate::fmt::quote;
use serde_json::Value;

/// A leading zero keeps a number a text (a fraction is one anyway).
pub(super) fn typed(text: String) -> Value {
    for (word, value) in
        [("true", Value::Bool(true)), ("false", Value::Bool(false)), ("null", Value::Null)]
    {
        if text.eq_ignore_ascii_case(word) {
            return value;
        }
    }
    match text.parse::<i64>() {
        Ok(number) if text == "0" || !text.starts_with('0') => Value::from(number),
        _ => Value::from(text),
    }
}

/// JSON on the command line has no integers, as values files have none.
pub(in crate::values) fn floats(value: Value) -> Value {
    match value {
        Value::Number(number) => number.as_f64().map_or(Value::Null, Value::from),
        Value::Array(items) => Value::Array(items.into_iter().map(floats).collect()),
        Value::Object(map) => {
            Value::Object(map.into_iter().map(|(key, value)| (key, floats(value))).collect())
        }
        other => other,
    }
}

pub(super) fn quoted(text: &str) -> String {
    quote(&text.into())
}

/// Go's `%q` of a list of characters.
pub(super) fn runes(text: &str) -> String {
    let quoted = |c: char| match c {
        '\'' => r"'\''".to_owned(),
        '"' => "'\"'".to_owned(),
        c => format!("'{}'", quote(&c.to_string().as_str().into()).trim_matches('"')),
    };
    let all: Vec<_> = text.chars().map(quoted).collect();
    format!("[{}]", all.join(" "))
}
