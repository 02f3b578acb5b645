//! One entry of an index.

use catamaran_chart::{LoadError, Metadata};
use serde_json::{Map, Value};

use super::ChartVersion;

/// What stands before the reader's own words already.
const DECODING: &str = "error unmarshaling JSON: while decoding JSON: ";

/// Why Helm would leave the entry out.
fn fault(checked: Result<(), LoadError>) -> Option<String> {
    match checked {
        Ok(()) => None,
        // Some servers lose the alias.
        Err(LoadError::Invalid(why))
            if why.starts_with("more than one dependency with name or alias") =>
        {
            None
        }
        Err(error) => Some(error.to_string()),
    }
}

/// Addresses and digests are shown to people in messages. Control characters there would write what
/// they like on a terminal.
fn shown_fault(urls: &[String], digest: &str) -> Option<String> {
    let is_odd = |text: &str| text.contains(char::is_control);
    let odd = urls.iter().any(|url| is_odd(url)) || is_odd(digest);
    odd.then(|| "urls and digest must not contain control characters".to_owned())
}

/// Reads an entry; with it, why it is to be left out.
pub(super) fn read(
    object: &Map<String, Value>,
    strict: bool,
) -> Result<(ChartVersion, Option<String>), String> {
    if strict && let Some(key) = Metadata::unknown_field(object, &OF_INDEX) {
        return Err(unknown(key));
    }
    let (metadata, checked) = Metadata::from_object(object)
        .map_err(|text| text.trim_start_matches(DECODING).to_owned())?;
    let get = |name: &str| {
        object.iter().find(|(key, value)| key.eq_ignore_ascii_case(name) && !value.is_null())
    };
    let text = |name: &str| match get(name) {
        None => Ok(String::new()),
        Some((_, value)) => scalar(value, name),
    };
    let urls = match get("urls") {
        None => Vec::new(),
        Some((_, Value::Array(urls))) => {
            urls.iter().map(|url| scalar(url, "urls")).collect::<Result<_, _>>()?
        }
        Some((_, other)) => return Err(wrong(other, "ChartVersion.urls", "[]string")),
    };
    if let Some((_, created)) = get("created") {
        time(created, "ChartVersion.created")?;
    }
    if let Some((_, removed)) = get("removed")
        && !removed.is_boolean()
    {
        return Err(wrong(removed, "ChartVersion.removed", "bool"));
    }
    for name in ["checksum", "engine", "tillerVersion", "url"] {
        text(name)?;
    }
    let digest = text("digest")?;
    let fault = fault(checked).or_else(|| shown_fault(&urls, &digest));
    Ok((ChartVersion { version: metadata.version, urls, digest }, fault))
}

/// The fields of an entry that Chart.yaml has not.
const OF_INDEX: [&str; 8] =
    ["urls", "created", "removed", "digest", "checksum", "engine", "tillerVersion", "url"];

fn scalar(value: &Value, name: &str) -> Result<String, String> {
    match value {
        Value::Null => Ok(String::new()),
        Value::String(text) => Ok(text.clone()),
        Value::Bool(flag) => Ok(flag.to_string()),
        Value::Number(number) => Ok(number.to_string()),
        other => Err(wrong(other, &format!("ChartVersion.{name}"), "string")),
    }
}

/// Helm refuses an index for a date that is none.
pub(super) fn time(value: &Value, field: &str) -> Result<(), String> {
    match value {
        Value::Null => Ok(()),
        Value::String(text) => catamaran_sprig::check_time("2006-01-02T15:04:05Z07:00", text),
        other => Err(wrong(other, field, "time.Time")),
    }
}

pub(super) fn unknown(key: &str) -> String {
    format!("json: unknown field {key:?}")
}

pub(crate) fn wrong(value: &Value, field: &str, go_type: &str) -> String {
    let kind = catamaran_chart::json_kind(value);
    format!("json: cannot unmarshal {kind} into Go struct field {field} of type {go_type}")
}
