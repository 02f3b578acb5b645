//! `overrideValues`: what watches.yaml sets over every resource's spec.
//!
//! As in the Go operators: the environment is expanded first (`$NAME`, `${NAME}`), then the value is a
//! template, then key and value are a line of `helm --set`.

use std::collections::BTreeMap;
use std::time::SystemTime;

use catamaran_chart::render::{fresh_seed, standalone};
use catamaran_chart::values::{merge, strvals};
use clap::ValueEnum;
use serde::Deserialize;
use serde_json::{Map, Value};

/// How a value of `overrideValues` reaches the chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OverrideTypes {
    /// `false` is a boolean, `3` a number: what a project whose main.rs builds the manager expects.
    Typed,
    /// Always a string, as operator-sdk's `helm-operator run` has it: `false` is true in an `if`.
    Strings,
}

/// Values that win over the spec.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overrides {
    values: Map<String, Value>,
    told: Vec<Override>,
}

/// One entry of `overrideValues`, as users are told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// The path.
    pub key: String,
    /// What is set there.
    pub value: String,
    /// In whose manner it is told.
    pub types: OverrideTypes,
}

impl Overrides {
    /// The values that a resource's spec and these make together.
    pub fn apply_to(&self, mut spec: Map<String, Value>) -> Map<String, Value> {
        merge(&mut spec, self.values.clone());
        spec
    }

    /// Each of them.
    pub fn expanded(&self) -> &[Override] {
        &self.told
    }

    /// Reads `overrideValues`; `environment` tells the operator's variables.
    ///
    /// # Errors
    /// A message for people that names the key.
    pub(super) fn read(
        raw: &BTreeMap<String, Value>,
        types: OverrideTypes,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, String> {
        let mut overrides = Self::default();
        overrides.add(raw, types, environment).map(|()| overrides)
    }

    /// Adds more; they win over those that are there.
    ///
    /// # Errors
    /// As [`Overrides::read`].
    pub(crate) fn add(
        &mut self,
        raw: &BTreeMap<String, Value>,
        types: OverrideTypes,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<(), String> {
        for (key, value) in raw {
            let written = scalar(value).ok_or_else(|| {
                format!("failed to expand override values: {key:?} must be a scalar, not a list or a map")
            })?;
            let text = expand(&written, &environment);
            let text = standalone("overrideValues", &text, SystemTime::now(), fresh_seed())
                .map_err(|error| format!("failed to expand override values: {key:?}: {error}"))?;
            let parse = match types {
                OverrideTypes::Typed => strvals::parse_into,
                OverrideTypes::Strings => strvals::parse_into_text,
            };
            parse(&format!("{key}={text}"), &mut self.values)
                .map_err(|error| format!("failed to parse override value {key:?}: {error}"))?;
            // Variables of the operator may be sensitive: they are told by name.
            let value = if written.contains('$') { written } else { text };
            self.told.push(Override { key: key.clone(), value, types });
        }
        Ok(())
    }
}

/// A scalar as Go's YAML library reads it into a string.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::Null => Some(String::new()),
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        Value::Array(_) | Value::Object(_) => None,
    }
}

/// Replaces `$NAME` and `${NAME}`; a variable that is not set is empty, as with Go's `os.ExpandEnv`.
fn expand(text: &str, environment: &impl Fn(&str) -> Option<String>) -> String {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        expanded.push_str(before);
        let (name, tail) = variable(after);
        match name {
            Some(name) => expanded.push_str(&environment(name).unwrap_or_default()),
            // A dollar that begins nothing stays, one before a brace that does not either is lost.
            None if tail == after => expanded.push('$'),
            None => {}
        }
        rest = tail;
    }
    expanded.push_str(rest);
    expanded
}

/// The name behind a `$`, if one begins there, and what follows it. A digit, and one of a shell's own
/// marks, are names by themselves.
fn variable(after: &str) -> (Option<&str>, &str) {
    if let Some(braced) = after.strip_prefix('{') {
        return match braced.split_once('}') {
            Some(("", tail)) => (None, tail),
            Some((name, tail)) => (Some(name), tail),
            None => (None, braced),
        };
    }
    let is_mark = |c: char| c.is_ascii_digit() || "*#$@!?-".contains(c);
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let end = match after.chars().next() {
        Some(first) if is_mark(first) => first.len_utf8(),
        _ => after.find(|c| !is_part(c)).unwrap_or(after.len()),
    };
    let (name, tail) = after.split_at(end);
    (Some(name).filter(|name| !name.is_empty()), tail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(raw: Value, types: OverrideTypes) -> Result<Value, String> {
        let environment = |name: &str| (name == "RELATED_IMAGE").then(|| "registry/x:1".to_owned());
        let raw = serde_json::from_value(raw).unwrap();
        Overrides::read(&raw, types, environment).map(|overrides| Value::Object(overrides.values))
    }

    #[test]
    fn types_are_kept_or_not_as_asked() {
        let raw = json!({ "a.b": false, "n": 3, "s": "x", "list[0].name": "y" });
        let list = json!([{ "name": "y" }]);
        assert_eq!(
            read(raw.clone(), OverrideTypes::Typed),
            Ok(json!({ "a": { "b": false }, "n": 3, "s": "x", "list": list }))
        );
        assert_eq!(
            read(raw, OverrideTypes::Strings),
            Ok(json!({ "a": { "b": "false" }, "n": "3", "s": "x", "list": list }))
        );
    }

    #[test]
    fn the_environment_and_templates_are_expanded() {
        let table = [
            ("$RELATED_IMAGE", "registry/x:1"),
            ("pre-${RELATED_IMAGE}-post", "pre-registry/x:1-post"),
            ("$MISSING", ""),
            ("100$", "100$"),
            ("a $ b $.x", "a $ b $.x"),
            ("$$RELATED_IMAGE", "RELATED_IMAGE"),
            ("$1RELATED_IMAGE", "RELATED_IMAGE"),
            ("${}x${", "x"),
            ("${RELATED_IMAGE", "RELATED_IMAGE"),
            ("{{ upper \"a\" }}{{ 1 | add 1 }}", "A2"),
        ];
        for (text, expected) in table {
            assert_eq!(
                read(json!({ "v": text }), OverrideTypes::Strings),
                Ok(json!({ "v": expected })),
                "{text}"
            );
        }
    }

    #[test]
    fn what_cannot_be_set_is_told_with_its_key() {
        for raw in [json!({ "r[": 1 }), json!({ "k": { "a": 1 } }), json!({ "k": "{{ nosuch }}" })]
        {
            let key = raw.as_object().unwrap().keys().next().unwrap().clone();
            match read(raw, OverrideTypes::Typed) {
                Err(told) => assert!(told.contains(&format!("{key:?}")), "{told}"),
                // Helm lets a line pass that ends inside an index; it sets nothing.
                Ok(set) => assert_eq!((key.as_str(), set), ("r[", json!({}))),
            }
        }
    }

    #[test]
    fn overrides_win_over_the_spec_and_lists_are_replaced() {
        let values = json!({ "a": { "x": 1 }, "l": [1] }).as_object().unwrap().clone();
        let overrides = Overrides { values, ..Overrides::default() };
        let spec = json!({ "a": { "x": 0, "y": 2 }, "l": [5, 6] });
        let values = overrides.apply_to(spec.as_object().unwrap().clone());
        assert_eq!(Value::Object(values), json!({ "a": { "x": 1, "y": 2 }, "l": [1] }));
    }
}
