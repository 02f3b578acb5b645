//! What may be said of an object in errors, logs, events and diffs.
//!
//! The rule: always who it is, never what a Secret holds. The API server's own messages may quote
//! the value that it refuses, so for Secrets they are reduced to the fields that are at fault.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, MatchKind};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
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

/// A shorter value of a Secret would be found everywhere.
const SHORTEST_SENSITIVE: usize = 4;
/// More bytes of Secrets are not looked for: what finds them takes some 30 times their room.
const MOST_SENSITIVE: usize = 256 * 1024;

/// What Secrets hold, to be found in texts: in one pass over each.
#[derive(Debug, Clone, Default)]
pub struct Sensitive(Known);

#[derive(Clone, Default)]
enum Known {
    #[default]
    Nothing,
    Values(Arc<[Box<str>]>),
    /// The Secrets hold more than can be looked for.
    TooLarge,
}

/// Without the values.
impl fmt::Debug for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nothing => "Nothing",
            Self::Values(_) => "Values",
            Self::TooLarge => "TooLarge",
        })
    }
}

impl Sensitive {
    /// What those of these objects hold that are Secrets: their values, line by line, as they are and in
    /// base64. Values of less than 4 bytes are not looked for.
    pub fn of<'a>(objects: impl Iterator<Item = &'a Value>) -> Self {
        let mut values = BTreeSet::new();
        for secret in objects.filter(|object| is_secret(object)) {
            collect(secret, &mut values);
        }
        values.retain(|value| value.len() >= SHORTEST_SENSITIVE);
        if values.is_empty() {
            return Self::default();
        }
        if values.iter().map(String::len).sum::<usize>() > MOST_SENSITIVE {
            return Self(Known::TooLarge);
        }
        Self(Known::Values(values.into_iter().map(String::into_boxed_str).collect()))
    }

    /// The text without what the Secrets hold.
    pub fn hide(&self, text: &str) -> String {
        let too_large =
            || format!("{REDACTED}: the Secrets of the release are too large to look for");
        match &self.0 {
            Known::Nothing => text.to_owned(),
            Known::TooLarge => too_large(),
            Known::Values(values) => {
                let mut builder = AhoCorasick::builder();
                let built = builder
                    .match_kind(MatchKind::LeftmostLongest)
                    .build(values.iter().map(|value| value.as_bytes()));
                let Ok(found) = built else { return too_large() };
                let mut shown = String::with_capacity(text.len());
                found.replace_all_with(text, &mut shown, |_, _, shown| {
                    shown.push_str(REDACTED);
                    true
                });
                shown
            }
        }
    }
}

/// [`is_confidential`] of an object.
fn is_secret(object: &Value) -> bool {
    let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
    let group = object
        .get("apiVersion")
        .and_then(Value::as_str)
        .and_then(|v| v.split_once('/'))
        .map_or("", |(g, _)| g);
    is_confidential(group, kind)
}

/// Whatever a Secret holds, line by line.
fn collect(secret: &Value, values: &mut BTreeSet<String>) {
    let fields = |field| secret.get(field).and_then(Value::as_object).into_iter().flatten();
    let plain = fields("stringData").filter_map(|(_, value)| Some(value.as_str()?.to_owned()));
    let encoded = fields("data").filter_map(|(_, value)| {
        let bytes = STANDARD.decode(value.as_str()?).ok()?;
        String::from_utf8(bytes).ok()
    });
    for value in plain.chain(encoded) {
        values.insert(STANDARD.encode(&value));
        // As Go and JSON write it between quotes.
        let quoted = Value::from(value.as_str()).to_string();
        values.insert(quoted.trim_matches('"').to_owned());
        values.extend(value.lines().map(|line| line.trim().to_owned()));
    }
}

/// The text without control characters, which a terminal would obey, and without those that
/// change the direction of writing. Line ends and tabs stay.
pub fn printable(text: &str) -> String {
    let is_harmless = |c: &char| {
        let turns = matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        matches!(c, '\n' | '\t') || !(c.is_control() || turns)
    };
    text.chars().filter(is_harmless).collect()
}

/// The API server's refusal in words that may be shown.
///
/// For Secrets only the reason, the fields at fault and their causes' reasons remain, apart from
/// conflicts of field managers and missing permissions, whose texts name managers, users and fields, but no
/// values. Whatever else is free text, which admission may have made of the object.
pub fn server_message(group: &str, kind: &str, status: &Status) -> String {
    if !is_confidential(group, kind) || quotes_no_values(status) {
        return printable(&shortened(&status.message));
    }
    let mut text = match status.reason.as_str() {
        "" if is_schema_mismatch(status) => "it does not fit the schema of its kind".to_owned(),
        "" => format!("HTTP {}", status.code),
        reason => reason.to_owned(),
    };
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let causes = causes.filter(|cause| !cause.field.is_empty());
    let causes = causes.map(|cause| format!("{} {}", cause.field, cause.reason));
    let at_fault: Vec<String> = causes.chain(mismatched_field(status).map(str::to_owned)).collect();
    if !at_fault.is_empty() {
        text = format!("{text}: {}", at_fault.join(", "));
    }
    shortened(&text)
}

/// Whether a refusal is in the words of the API server itself, and not in those of admission.
fn quotes_no_values(status: &Status) -> bool {
    let message = status.message.as_str();
    match status.reason.as_str() {
        "NotFound" | "AlreadyExists" => !message.contains('\n') && message.len() <= 512,
        "Conflict" => {
            message.starts_with("Apply failed with ")
                || message.starts_with("Operation cannot be fulfilled on secrets ")
        }
        "Forbidden" => message.split_once("forbidden: ").is_some_and(|(object, reason)| {
            let is_builtin = [
                "cannot set blockOwnerDeletion",
                "exceeded quota: ",
                "unable to create new content in namespace ",
            ]
            .iter()
            .any(|beginning| reason.starts_with(beginning));
            object.starts_with("secrets") && (is_builtin || lacks_permission(message))
        }),
        _ => false,
    }
}

/// Whether a 403 is the word of authorization and not of admission, by the texts of kube-apiserver
/// (`responsewriters.Forbidden`) and of its check against the escalation of rights, which looks into the
/// same caches. Admission says `forbidden: ` as well, or lets others speak after it: their words are
/// theirs.
pub(crate) fn lacks_permission(message: &str) -> bool {
    let Some((object, reason)) = message.split_once("forbidden: ") else { return false };
    let is_authorization = reason.starts_with("User \"") && reason.contains("\" cannot ");
    let is_escalation = reason.starts_with("user \"")
        && reason.contains(" is attempting to grant RBAC permissions not currently held");
    !object.starts_with("admission webhook") && (is_authorization || is_escalation)
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
    if !is_secret(object) {
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
    fn free_text_about_a_secret_is_not_told_whatever_its_reason() {
        let told = |reason: &str, message: &str| {
            let status = json!({ "code": 403, "reason": reason, "message": message });
            server_message("", "Secret", &serde_json::from_value(status).expect("a Status"))
        };
        for (reason, message) in [
            (
                "Forbidden",
                "secrets \"s\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: canary",
            ),
            (
                "Forbidden",
                "admission webhook \"w\" denied the request: forbidden: User \"canary\" cannot",
            ),
            ("Conflict", "canary is taken"),
            ("Invalid", "canary"),
        ] {
            assert_eq!(told(reason, message), reason, "{message}");
        }
        for (reason, message) in [
            (
                "Forbidden",
                "secrets \"s\" is forbidden: User \"o\" cannot patch resource \"secrets\" in API group \"\" in the namespace \"n\"",
            ),
            (
                "Conflict",
                "Apply failed with 1 conflict: conflict with \"kubectl\" using v1: .data.a",
            ),
            ("AlreadyExists", "secrets \"s\" already exists"),
        ] {
            assert_eq!(told(reason, message), message);
        }
    }

    #[test]
    fn what_secrets_hold_is_found_in_any_form() {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "stringData": { "a": "first \"one\"\nsecond", "b": "abc" },
        });
        let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { "a": "public" } });
        let sensitive = Sensitive::of([&secret, &map].into_iter());
        for (text, shown) in [
            ("it is first \"one\" here", "it is <redacted> here"),
            ("quoted: first \\\"one\\\"\\nsecond", "quoted: <redacted>"),
            ("and second", "and <redacted>"),
            ("abc and public", "abc and public"),
        ] {
            assert_eq!(sensitive.hide(text), shown);
        }
        assert_eq!(Sensitive::default().hide("anything"), "anything");
    }

    #[test]
    fn control_characters_and_turns_of_direction_do_not_reach_a_terminal() {
        assert_eq!(printable("a\u{1b}[2Jb\u{202e}c\r\n\td\u{9b}\u{7f}ü"), "a[2Jbc\n\tdü");
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
