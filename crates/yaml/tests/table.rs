//! The table: texts and values, each with what Go's libraries make of it.
//!
//! `tests/fixtures/cases.jsonl` was made by `tests/fixtures/generate.py` (our own cases) and
//! `tests/fixtures/oracle` (a small Go program over the libraries that Helm uses). Never edit the
//! expectations by hand. `CATAMARAN_YAML_CASES` names another file of the same form.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

use std::fmt::Write as _;

use catamaran_yaml::{Numbers, from_str, to_string, to_string_pretty};
use serde_json::Value;

fn cases() -> Vec<Value> {
    let path = std::env::var("CATAMARAN_YAML_CASES").unwrap_or_else(|_| {
        concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/cases.jsonl").into()
    });
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The outcome of reading, in the form of the table: `{"json": ...}` or `{"error": "..."}`.
fn read(text: &str) -> Value {
    match from_str::<Value>(text, Numbers::Float64) {
        Ok(value) => serde_json::json!({ "json": value }),
        Err(error) => serde_json::json!({ "error": error.to_string() }),
    }
}

/// Every number a float, as Go's JSON decoder has it.
fn floats(value: &Value) -> Value {
    match value {
        Value::Number(number) => number.as_f64().into(),
        Value::Array(items) => items.iter().map(floats).collect(),
        Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), floats(value))).collect(),
        other => other.clone(),
    }
}

fn printed(result: Result<String, catamaran_yaml::Error>) -> Value {
    result.map_or(Value::Null, Value::String)
}

#[test]
fn reads_and_prints_as_go_does() {
    let cases = cases();
    let mut wrong = String::new();
    let mut count = 0;
    for case in &cases {
        let pairs = if let Some(text) = case["read"].as_str() {
            vec![("read", read(text), floats(&case["is"]))]
        } else {
            let value = &floats(&case["print"]);
            vec![
                ("toYaml", printed(to_string(value)), case["v2"].clone()),
                ("toYamlPretty", printed(to_string_pretty(value)), case["v3"].clone()),
            ]
        };
        for (what, ours, go) in pairs {
            if ours != go {
                count += 1;
                if count <= 40 {
                    writeln!(wrong, "{what} of {case}\n  ours {ours}\n  go   {go}").unwrap();
                }
            }
        }
    }
    assert!(cases.len() >= 300, "the table has shrunk to {}", cases.len());
    assert!(wrong.is_empty(), "{count} of {} differ:\n{wrong}", cases.len());
}
