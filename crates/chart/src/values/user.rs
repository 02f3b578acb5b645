//! The user's values: files, and lines over them.

use serde_json::{Map, Value};

use crate::{Profile, load};

/// Reads a values file (`-f`). Of several documents Helm 4 lays the later over the earlier, Helm 3
/// takes the first.
///
/// # Errors
/// The text is no YAML, or no table; Helm's text.
pub fn read_file(data: &[u8], profile: Profile) -> Result<Map<String, Value>, String> {
    if profile == Profile::Helm318 {
        return load::read_values(data);
    }
    let fault = |message: String| format!("cannot unmarshal yaml document: {message}");
    let Ok(text) = std::str::from_utf8(data) else { return load::read_values(data).map_err(fault) };
    let mut values = Map::new();
    for document in load::documents(text) {
        merge(&mut values, load::read_values(document.as_bytes()).map_err(fault)?);
    }
    Ok(values)
}

/// Reads a whole JSON object of the command line; its numbers are floats. `None` if it is none.
pub fn read_json(text: &str) -> Option<Map<String, Value>> {
    match super::strvals::floats(serde_json::from_str(text).ok()?) {
        Value::Object(object) => Some(object),
        _ => None,
    }
}

/// Lays values over others: tables merge, everything else is replaced. Nulls stay; they delete
/// defaults of the chart later.
pub fn merge(under: &mut Map<String, Value>, over: Map<String, Value>) {
    for (key, value) in over {
        match (under.get_mut(&key), value) {
            (Some(Value::Object(under)), Value::Object(over)) => merge(under, over),
            (_, value) => {
                under.insert(key, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn documents_of_a_file_merge_in_helm_4_only() {
        let text = b"a: {x: 1, z: 2}\n---\na: {z: null}\nb: [1]\n";
        let read = |profile| Value::Object(read_file(text, profile).unwrap());
        assert_eq!(read(Profile::Helm43), json!({"a": {"x": 1.0, "z": null}, "b": [1.0]}));
        assert_eq!(read(Profile::Helm318), json!({"a": {"x": 1.0, "z": 2.0}}));
        assert_eq!(read_file(b"", Profile::Helm43), Ok(Map::new()));
        assert!(read_file(b"- 1\n", Profile::Helm43).unwrap_err().starts_with(
            "cannot unmarshal yaml document: error unmarshaling JSON: while decoding JSON: json: "
        ));
    }
}
