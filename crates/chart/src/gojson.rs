//! Reads YAML into fields as Helm does: through JSON, with Go's leniency.
//!
//! Keys match without regard to case, null leaves a field empty, and where a
//! text is wanted numbers and booleans are turned into one
//! (`appVersion: 1.10` reads as `1.1`).

use std::collections::BTreeMap;

use catamaran_yaml::{Deserializer, Numbers};
use serde::Deserialize as _;
use serde_json::{Map, Value};

/// Parses YAML of a chart's own file into plain data.
pub(crate) fn parse(data: &[u8], numbers: Numbers) -> Result<Value, String> {
    let mut room = catamaran_yaml::MAX_SIZE;
    parse_within(data, numbers, &mut room)
}

/// As [`parse`], and takes what the document needs from what there is room for, in bytes.
pub(crate) fn parse_within(
    data: &[u8],
    numbers: Numbers,
    room: &mut usize,
) -> Result<Value, String> {
    let text = utf8(data)?;
    let read = Deserializer::within(text, numbers, *room).and_then(|reader| {
        *room = room.saturating_sub(reader.size());
        Value::deserialize(reader)
    });
    read.map_err(|error| error.to_string())
}

/// Bytes as text, or what the YAML reader of Helm has against them.
pub(crate) fn utf8(data: &[u8]) -> Result<&str, String> {
    catamaran_yaml::text_of(data)
        .map_err(|fault| format!("error converting YAML to JSON: yaml: {fault}"))
}

/// The top of a document that must be an object or nothing.
pub(crate) fn object(value: Value, go_type: &str) -> Result<Map<String, Value>, String> {
    match value {
        Value::Null => Ok(Map::new()),
        Value::Object(map) => Ok(map),
        other => Err(decoding(&format!("{} into Go value of type {go_type}", kind(&other)))),
    }
}

/// The fields of one Go struct.
#[derive(Clone, Copy)]
pub(crate) struct Fields<'v> {
    object: &'v Map<String, Value>,
    /// The struct's name, for errors.
    go_name: &'static str,
    /// Where the struct hangs below the root, for errors: `maintainers.`
    prefix: &'static str,
}

impl<'v> Fields<'v> {
    pub(crate) fn new(
        object: &'v Map<String, Value>,
        go_name: &'static str,
        prefix: &'static str,
    ) -> Self {
        Self { object, go_name, prefix }
    }

    /// A key that fits exactly comes last in byte order (lower case), and wins.
    pub(crate) fn get(self, name: &str) -> Option<&'v Value> {
        let mut found = self.object.iter().filter(|(key, _)| key.eq_ignore_ascii_case(name));
        found.rfind(|(_, value)| !value.is_null()).map(|(_, value)| value)
    }

    pub(crate) fn text(self, name: &str) -> Result<Option<String>, String> {
        self.get(name).map(|value| self.as_text(name, value)).transpose()
    }

    pub(crate) fn flag(self, name: &str) -> Result<Option<bool>, String> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(other) => Err(self.wrong(name, other, "bool")),
        }
    }

    pub(crate) fn list(self, name: &str, go_type: &str) -> Result<Option<&'v [Value]>, String> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Array(items)) => Ok(Some(items)),
            Some(other) => Err(self.wrong(name, other, go_type)),
        }
    }

    pub(crate) fn texts(self, name: &str) -> Result<Option<Vec<String>>, String> {
        let Some(items) = self.list(name, "[]string")? else { return Ok(None) };
        items.iter().map(|item| self.as_text(name, item)).collect::<Result<_, _>>().map(Some)
    }

    pub(crate) fn object(
        self,
        name: &str,
        go_type: &str,
    ) -> Result<Option<&'v Map<String, Value>>, String> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::Object(map)) => Ok(Some(map)),
            Some(other) => Err(self.wrong(name, other, go_type)),
        }
    }

    pub(crate) fn text_map(self, name: &str) -> Result<Option<BTreeMap<String, String>>, String> {
        let Some(map) = self.object(name, "map[string]string")? else { return Ok(None) };
        let entry = |(key, value): (&String, &Value)| {
            self.as_text(name, value).map(|value| (key.clone(), value))
        };
        map.iter().map(entry).collect::<Result<_, _>>().map(Some)
    }

    fn as_text(self, name: &str, value: &Value) -> Result<String, String> {
        match value {
            Value::Null => Ok(String::new()),
            Value::String(text) => Ok(text.clone()),
            Value::Bool(flag) => Ok(flag.to_string()),
            Value::Number(number) => Ok(number_text(number)),
            other => Err(self.wrong(name, other, "string")),
        }
    }

    pub(crate) fn wrong(self, name: &str, value: &Value, go_type: &str) -> String {
        let Self { go_name, prefix, .. } = self;
        let kind = kind(value);
        decoding(&format!("{kind} into Go struct field {go_name}.{prefix}{name} of type {go_type}"))
    }
}

fn decoding(what: &str) -> String {
    format!("error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {what}")
}

/// What Go's errors of `encoding/json` call a value.
pub fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// A number as Go's `strconv` writes it: integers plain, floats with their
/// shortest digits, in exponent form below 1e-4 and from 1e6 (`'g'`, -1).
fn number_text(number: &serde_json::Number) -> String {
    match (number.as_i64(), number.as_u64(), number.as_f64()) {
        (Some(n), _, _) => n.to_string(),
        (None, Some(n), _) => n.to_string(),
        (None, None, Some(n)) => catamaran_gotemplate::fmt::float(n),
        _ => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn texts_are_made_of_scalars() {
        let object = json!({"a": 1, "B": 1.5, "c": true, "d": null, "e": [], "f": 1e25});
        let object = object.as_object().unwrap();
        let fields = Fields::new(object, "T", "x.");
        assert_eq!(fields.text("a").unwrap().as_deref(), Some("1"));
        assert_eq!(fields.text("b").unwrap().as_deref(), Some("1.5"));
        assert_eq!(fields.text("c").unwrap().as_deref(), Some("true"));
        assert_eq!(fields.text("d").unwrap(), None);
        assert_eq!(fields.text("f").unwrap().as_deref(), Some("1e+25"));
        assert_eq!(
            fields.text("e").unwrap_err(),
            "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal array into Go struct field T.x.e of type string"
        );
    }
}
