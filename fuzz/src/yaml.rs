//! What is printed as YAML reads back.

use std::time::Duration;

use catamaran_yaml::{Error, Numbers, from_str, to_string, to_string_pretty};
use serde_json::Value;

use crate::limits::{Limits, within};

/// What one reading or printing may take.
pub const LIMITS: Limits = Limits { time: Duration::from_secs(1), bytes: 64 << 20 };

/// Prints a value in both ways and asserts that it reads back, where it does in Helm: a key `<<` is
/// not quoted, a line end of Unicode becomes a space on the way through JSON, and `toYamlPretty`
/// starts a block with a tab, which the reader refuses.
pub fn round_trip(value: &Value) {
    let plain = |text: &str| !text.contains(['\u{85}', '\u{2028}', '\u{2029}']);
    if !all_texts(value, &|text| text != "<<" && plain(text)) {
        return;
    }
    check(value, to_string::<Value>);
    let starts_with_tab = |line: &str| line.starts_with('\t');
    if all_texts(value, &|text| !text.contains('\n') || !text.lines().any(starts_with_tab)) {
        check(value, to_string_pretty::<Value>);
    }
}

fn check(value: &Value, print: fn(&Value) -> Result<String, Error>) {
    let Ok(text) = within(LIMITS, || print(value)) else { return };
    match within(LIMITS, || from_str::<Value>(&text, Numbers::Exact)) {
        Ok(back) => assert!(same(value, &back), "{value:?} reads back as {back:?}: {text:?}"),
        Err(error) => panic!("{value:?} does not read back: {error}: {text:?}"),
    }
}

/// Equal; but a whole float may come back as an integer.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        (a, b) => a == b,
    }
}

fn all_texts(value: &Value, holds: &dyn Fn(&str) -> bool) -> bool {
    match value {
        Value::String(text) => holds(text),
        Value::Array(items) => items.iter().all(|item| all_texts(item, holds)),
        Value::Object(map) => map.iter().all(|(key, value)| holds(key) && all_texts(value, holds)),
        _ => true,
    }
}
