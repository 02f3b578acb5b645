//! References of schemas to documents that lie on other servers.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::bounds;

/// The schemas of the drafts themselves; the validator has them.
const DRAFTS: [&str; 2] = ["http://json-schema.org/", "https://json-schema.org/"];

/// The schema, accepting anything where it refers to a document on another server, and those documents;
/// none if there are no such references, or the text is no schema that could be read.
pub(crate) fn accepted(text: &[u8]) -> Option<(Vec<u8>, BTreeSet<String>)> {
    bounds::check_text(text).ok()?;
    let mut schema: Value = serde_json::from_slice(text).ok()?;
    let mut own = BTreeSet::new();
    identities(&schema, &mut own);
    let mut found = BTreeSet::new();
    // Up to draft 7 nothing beside a reference counts.
    let dialect = schema.get("$schema").and_then(Value::as_str).unwrap_or_default();
    let alone = ["draft-04", "draft-06", "draft-07"].iter().any(|draft| dialect.contains(draft));
    accept(&mut schema, &own, alone, &mut found);
    let text = serde_json::to_vec(&schema).ok()?;
    (!found.is_empty()).then_some((text, found))
}

/// The documents that lie in this one.
fn identities(schema: &Value, own: &mut BTreeSet<String>) {
    match schema {
        Value::Array(items) => items.iter().for_each(|item| identities(item, own)),
        Value::Object(object) => {
            for key in ["$id", "id"] {
                own.extend(
                    object.get(key).and_then(Value::as_str).map(document).map(str::to_owned),
                );
            }
            object.values().for_each(|value| identities(value, own));
        }
        _ => {}
    }
}

fn accept(schema: &mut Value, own: &BTreeSet<String>, alone: bool, found: &mut BTreeSet<String>) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(|item| accept(item, own, alone, found)),
        Value::Object(object) => {
            if let Some(foreign) = foreign(object, own) {
                found.insert(foreign);
                object.remove("$ref");
                if alone {
                    object.clear();
                }
            }
            object.values_mut().for_each(|value| accept(value, own, alone, found));
        }
        _ => {}
    }
}

fn foreign(object: &Map<String, Value>, own: &BTreeSet<String>) -> Option<String> {
    let document = document(object.get("$ref")?.as_str()?);
    let is_elsewhere = ["http://", "https://"].iter().any(|scheme| document.starts_with(scheme));
    let is_known =
        own.contains(document) || DRAFTS.iter().any(|drafts| document.starts_with(drafts));
    (is_elsewhere && !is_known).then(|| document.to_owned())
}

fn document(reference: &str) -> &str {
    reference.split_once('#').map_or(reference, |(document, _)| document)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn accepted_of(schema: &Value) -> Option<Value> {
        let (text, _) = accepted(schema.to_string().as_bytes())?;
        Some(serde_json::from_slice(&text).unwrap())
    }

    #[test]
    fn what_lies_elsewhere_is_accepted_and_the_rest_stays() {
        let away = "https://example.com/definitions.json#/definitions/affinity";
        let schema = |dialect: &str| {
            json!({ "$schema": dialect, "type": "object", "properties": {
                "affinity": { "$ref": away, "type": "string" }, "replicas": { "type": "integer" } } })
        };
        let old = schema("http://json-schema.org/draft-07/schema#");
        let (text, found) = accepted(old.to_string().as_bytes()).unwrap();
        let told: Value = serde_json::from_slice(&text).unwrap();
        assert_eq!(
            told["properties"],
            json!({ "affinity": {}, "replicas": { "type": "integer" } })
        );
        assert_eq!(found.into_iter().collect::<Vec<_>>(), ["https://example.com/definitions.json"]);
        let new = accepted_of(&schema("https://json-schema.org/draft/2020-12/schema")).unwrap();
        assert_eq!(new["properties"]["affinity"], json!({ "type": "string" }));
    }

    #[test]
    fn what_is_at_hand_is_left_alone() {
        for reference in [
            "#/definitions/a",
            "http://json-schema.org/draft-07/schema#",
            "https://example.com/own.json#/definitions/a",
            "file://./helm-charts/a/b.json",
        ] {
            let schema = json!({ "$id": "https://example.com/own.json", "$ref": reference });
            assert_eq!(accepted_of(&schema), None, "{reference}");
        }
        assert_eq!(accepted(b"no schema"), None);
    }
}
