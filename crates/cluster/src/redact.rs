//! What may be said of an object in errors, logs, events and diffs.
//!
//! The rule: always who it is, never what a Secret holds. The API server's own messages may quote
//! the value that it refuses, so for Secrets they are reduced to the fields that are at fault.

use kube::core::Status;
use serde_json::Value;

/// What stands in the place of a value that must not be shown.
pub const REDACTED: &str = "<redacted>";

/// Longest message of the API server that is passed on, in bytes; status and events have limits.
const LONGEST_MESSAGE: usize = 2048;

/// Whether an object's content is confidential.
pub fn is_confidential(group: &str, kind: &str) -> bool {
    group.is_empty() && kind == "Secret"
}

/// The API server's refusal in words that may be shown.
///
/// For Secrets only the reason, the fields at fault and their causes' reasons remain, apart from
/// field conflicts and missing rights, whose texts name managers, users and fields, but no values.
pub fn server_message(group: &str, kind: &str, status: &Status) -> String {
    let quotes_no_values =
        matches!(status.reason.as_str(), "Conflict" | "NotFound" | "AlreadyExists")
            || (status.reason == "Forbidden" && !status.message.contains("admission webhook"));
    if !is_confidential(group, kind) || quotes_no_values {
        return shortened(&status.message);
    }
    let mut text = match status.reason.as_str() {
        "" if is_schema_mismatch(status) => "it does not fit the schema of its kind".to_owned(),
        "" => format!("HTTP {}", status.code),
        reason => reason.to_owned(),
    };
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let causes = causes.map(|cause| format!("{} {}", cause.field, cause.reason));
    let at_fault: Vec<String> = causes.chain(mismatched_field(status).map(str::to_owned)).collect();
    if !at_fault.is_empty() {
        text = format!("{text}: {}", at_fault.join(", "));
    }
    shortened(&text)
}

/// How the API server begins to tell that an applied object does not fit its kind's schema; it
/// gives no reason for machines, and the status 500.
const SCHEMA_MISMATCHES: [&str; 2] =
    ["failed to create typed patch object", "failed to convert new object"];

/// Whether a server-side apply was refused because the object does not fit its kind's schema.
pub fn is_schema_mismatch(status: &Status) -> bool {
    SCHEMA_MISMATCHES.iter().any(|beginning| status.message.starts_with(beginning))
}

/// The field in such a message, which goes on with what it found there.
fn mismatched_field(status: &Status) -> Option<&str> {
    let (_, after) = status.message.split_once("): ").filter(|_| is_schema_mismatch(status))?;
    let (field, _) = after.split_once(": ")?;
    field.starts_with('.').then_some(field)
}

/// A copy of an object in which nothing confidential is left: `data`, `stringData` of a Secret, and
/// kubectl's copy of them in an annotation.
pub fn redacted(object: &Value) -> Value {
    let mut copy = object.clone();
    let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
    let group = object
        .get("apiVersion")
        .and_then(Value::as_str)
        .and_then(|v| v.split_once('/'))
        .map_or("", |(g, _)| g);
    if !is_confidential(group, kind) {
        return copy;
    }
    for field in ["data", "stringData"] {
        match copy.get_mut(field) {
            Some(Value::Object(entries)) => {
                for value in entries.values_mut() {
                    *value = REDACTED.into();
                }
            }
            Some(other) => *other = REDACTED.into(),
            None => {}
        }
    }
    if let Some(applied) =
        copy.pointer_mut("/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration")
    {
        *applied = REDACTED.into();
    }
    copy
}

fn shortened(text: &str) -> String {
    if text.len() <= LONGEST_MESSAGE {
        return text.to_owned();
    }
    let end = (0..=LONGEST_MESSAGE).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    format!("{} …", text.get(..end).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_secret_keeps_its_keys_and_loses_its_values() {
        let shown = redacted(&json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "s", "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "canary"}},
            "data": {"password": "canary"}, "stringData": "canary",
        }));
        assert!(!shown.to_string().contains("canary"));
        assert_eq!(shown["data"]["password"], REDACTED);
    }

    #[test]
    fn other_kinds_are_left_alone() {
        let object = json!({"apiVersion": "example.dev/v1", "kind": "Secret", "data": {"a": "b"}});
        assert_eq!(redacted(&object), object);
    }

    #[test]
    fn a_refused_secret_is_told_by_field_and_not_by_value() {
        let status: Status = serde_json::from_value(json!({
            "status": "Failure", "code": 422, "reason": "Invalid",
            "message": "Secret \"s\" is invalid: data[a b]: Invalid value: \"canary\"",
            "details": {"causes": [{"reason": "FieldValueInvalid", "message": "Invalid value: \"canary\"", "field": "data[a b]"}]},
        }))
        .expect("a Status");
        assert_eq!(server_message("", "Secret", &status), "Invalid: data[a b] FieldValueInvalid");
        assert!(server_message("", "ConfigMap", &status).contains("canary"));
        let status: Status = serde_json::from_value(json!({
            "code": 500,
            "message": "failed to create typed patch object (ns/s; /v1, Kind=Secret): .stringData: expected map, got &{canary}",
        }))
        .expect("a Status");
        let told = "it does not fit the schema of its kind: .stringData";
        assert_eq!(server_message("", "Secret", &status), told);
    }
}
