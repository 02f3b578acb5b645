//! index.yaml: what a repository has.
//!
//! Read as Helm reads it: strictly (a key that comes twice or that nobody knows is an error), but
//! entries that describe no chart are left out, with a warning.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;

use catamaran_chart::{LoadError, Metadata};
use catamaran_sprig::semver::{Constraint, Version};
use catamaran_yaml::{Deserializer, Numbers};
use serde::de::{
    DeserializeSeed, Deserializer as _, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::{Map, Value};

use crate::IndexError;

/// The largest index that is read: 100 MiB. Large public ones have 25.
pub const MAX_BYTES: u64 = 100 << 20;
/// So many entries that are left out are told one by one.
const MAX_WARNINGS: usize = 20;

/// The charts of a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Index {
    entries: BTreeMap<String, Vec<ChartVersion>>,
    /// What was left out, and why.
    pub warnings: Vec<String>,
}

/// One version of a chart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChartVersion {
    /// The version as it is written.
    pub version: String,
    /// Where it lies, seen from the repository; Helm takes the first.
    pub urls: Vec<String>,
    /// SHA-256 of the archive in hexadecimal, perhaps with `sha256:` in front; often empty.
    pub digest: String,
}

/// What was found for a version that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found<'i> {
    /// The entry.
    pub chart: &'i ChartVersion,
    /// Another version than the very one that was asked for, although no range was.
    pub is_other: bool,
}

impl Index {
    /// Reads an index, YAML or JSON. `place` is where it is from, for warnings.
    ///
    /// # Errors
    ///
    /// See [`IndexError`].
    pub fn parse(bytes: &[u8], place: &str) -> Result<Self, IndexError> {
        if bytes.is_empty() {
            return Err(IndexError::Empty);
        }
        let text = std::str::from_utf8(bytes).map_err(|_| {
            IndexError::Shape("error converting YAML to JSON: yaml: invalid UTF-8".into())
        })?;
        let raw = if is_json(text) {
            let mut json = serde_json::Deserializer::from_str(text);
            json.deserialize_map(Top { strict: false, place })
                .map_err(|error| IndexError::Shape(go_text(&error.to_string())))?
        } else {
            let shape =
                |error: catamaran_yaml::Error| IndexError::Shape(go_text(&error.to_string()));
            let yaml = Deserializer::new(text, Numbers::Exact).map_err(shape)?.strict();
            yaml.deserialize_map(Top { strict: true, place }).map_err(shape)?
        };
        if !raw.has_api_version {
            return Err(IndexError::NoApiVersion);
        }
        let Skipped { mut texts, count } = raw.skipped;
        if count > texts.len() {
            texts.push(format!("skipping {} more invalid entries of {place}", count - texts.len()));
        }
        Ok(Self { entries: raw.entries, warnings: texts })
    }

    /// The names of all charts.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// The versions of a chart, the latest first; `None` if there is no such chart.
    pub fn versions(&self, name: &str) -> Option<&[ChartVersion]> {
        self.entries.get(name).map(Vec::as_slice)
    }

    /// The version of a chart that Helm takes: the very one, or else the latest that satisfies the
    /// constraint. An empty `version` is the latest that is no pre-release.
    ///
    /// # Errors
    ///
    /// There is none, or `version` is no constraint.
    pub fn get(&self, name: &str, version: &str) -> Result<Found<'_>, IndexError> {
        let versions = self.versions(name).ok_or(IndexError::NoName)?;
        if versions.is_empty() {
            return Err(IndexError::NoVersions);
        }
        let constraint = Constraint::parse(if version.is_empty() { "*" } else { version })?;
        let same = |chart: &&ChartVersion| !version.is_empty() && chart.version == version;
        if let Some(chart) = versions.iter().find(same) {
            return Ok(Found { chart, is_other: false });
        }
        let fits = |chart: &&ChartVersion| {
            Version::parse(&chart.version).is_ok_and(|version| constraint.check(&version))
        };
        let chart = versions.iter().find(fits).ok_or_else(|| IndexError::NoVersion {
            name: name.to_owned(),
            version: version.to_owned(),
        })?;
        Ok(Found { chart, is_other: !version.is_empty() && !is_range(version) })
    }

    /// Whether some entry lies at this address.
    pub(crate) fn has_address(&self, address: &str) -> bool {
        let mut urls = self.entries.values().flatten().flat_map(|version| &version.urls);
        urls.any(|url| crate::address::same(url, address))
    }
}

/// Whether a version leaves a choice: `^1`, `1.x`, `>=1`.
fn is_range(version: &str) -> bool {
    let numbers = version.split(['-', '+']).next().unwrap_or_default();
    version.contains(['^', '~', '<', '>', '=', '!', '*'])
        || version.contains("||")
        || version.contains(" - ")
        || numbers.contains(['x', 'X'])
}

/// Says of a wrong type what Go says.
fn go_text(text: &str) -> String {
    let Some((before, after)) = text.split_once("invalid type: ") else { return text.to_owned() };
    let Some((found, wanted)) = after.rsplit_once(", expected ") else { return text.to_owned() };
    let kind = match found.split(' ').next().unwrap_or_default() {
        "integer" | "floating" => "number",
        "boolean" => "bool",
        "sequence" => "array",
        "map" => "object",
        "unit" => "null",
        other => other,
    };
    format!("{before}json: cannot unmarshal {kind} into {wanted}")
}

/// Whether all of it is JSON. Most indexes are YAML, which shows in the first character.
fn is_json(text: &str) -> bool {
    text.trim_start().starts_with('{') && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

#[derive(Default)]
struct Raw {
    entries: BTreeMap<String, Vec<ChartVersion>>,
    has_api_version: bool,
    skipped: Skipped,
}

#[derive(Default)]
struct Skipped {
    texts: Vec<String>,
    count: usize,
}

impl Skipped {
    fn add(&mut self, text: String) {
        self.count += 1;
        if self.texts.len() < MAX_WARNINGS {
            self.texts.push(text);
        }
    }
}

/// The top of an index. One entry at a time is held as plain data.
struct Top<'p> {
    /// Whether a field that nobody knows is an error.
    strict: bool,
    place: &'p str,
}

impl<'de> Visitor<'de> for Top<'_> {
    type Value = Raw;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Go value of type repo.IndexFile")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Raw, A::Error> {
        let mut raw = Raw::default();
        while let Some(key) = map.next_key::<String>()? {
            match key.to_ascii_lowercase().as_str() {
                "entries" => {
                    let Raw { entries, skipped, .. } = &mut raw;
                    map.next_value_seed(Entries { into: entries, skipped, top: &self })?;
                }
                "apiversion" => {
                    let version: Value = map.next_value()?;
                    raw.has_api_version = match version {
                        Value::Null => false,
                        Value::String(text) => !text.is_empty(),
                        Value::Number(_) | Value::Bool(_) => true,
                        other => return Err(wrong(&other, "IndexFile.apiVersion", "string")),
                    };
                }
                "generated" => {
                    time(&map.next_value()?, "IndexFile.generated").map_err(A::Error::custom)?;
                }
                "serverinfo" | "publickeys" | "annotations" => {
                    map.next_value::<IgnoredAny>()?;
                }
                _ if self.strict => return Err(unknown(&key)),
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(raw)
    }
}

struct Entries<'r> {
    into: &'r mut BTreeMap<String, Vec<ChartVersion>>,
    skipped: &'r mut Skipped,
    top: &'r Top<'r>,
}

impl<'de> DeserializeSeed<'de> for Entries<'_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Entries<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Go struct field IndexFile.entries of type map[string]repo.ChartVersions")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { into, skipped, top } = self;
        while let Some(name) = map.next_key::<String>()? {
            let mut versions = Vec::new();
            let skipped = &mut *skipped;
            map.next_value_seed(Versions { name: &name, into: &mut versions, skipped, top })?;
            versions.sort_by(|(a, _), (b, _)| newest_first(a.as_ref(), b.as_ref()));
            into.insert(name, versions.into_iter().map(|(_, chart)| chart).collect());
        }
        Ok(())
    }
}

fn newest_first(a: Option<&Version>, b: Option<&Version>) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => b.compare(a),
        (a, b) => b.is_some().cmp(&a.is_some()),
    }
}

struct Versions<'r> {
    name: &'r str,
    into: &'r mut Vec<(Option<Version>, ChartVersion)>,
    skipped: &'r mut Skipped,
    top: &'r Top<'r>,
}

impl<'de> DeserializeSeed<'de> for Versions<'_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Versions<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Go struct field IndexFile.entries of type repo.ChartVersions")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let Self { name, into, skipped, top: Top { strict, place } } = self;
        while let Some(item) = items.next_element::<Value>()? {
            let object = match item {
                Value::Null => {
                    skipped.add(format!(
                        "skipping loading invalid entry for chart: empty entry name={name} source={place}"
                    ));
                    continue;
                }
                Value::Object(object) => object,
                other => return Err(wrong(&other, "IndexFile.entries", "repo.ChartVersion")),
            };
            let (chart, mut metadata) = entry(&object, *strict).map_err(A::Error::custom)?;
            if metadata.api_version.is_empty() {
                "v1".clone_into(&mut metadata.api_version);
            }
            if let Some(why) = fault(&mut metadata) {
                let version = &chart.version;
                skipped.add(format!(
                    "skipping loading invalid entry for chart name={name} version={version} source={place} error={why:?}"
                ));
                continue;
            }
            into.push((Version::parse(&chart.version).ok(), chart));
        }
        Ok(())
    }
}

/// Why Helm would leave the entry out.
fn fault(metadata: &mut Metadata) -> Option<String> {
    match metadata.validate() {
        Ok(()) | Err(LoadError::ApiVersion(_)) => None,
        // Some servers lose the alias.
        Err(LoadError::Invalid(why))
            if why.starts_with("more than one dependency with name or alias") =>
        {
            None
        }
        Err(error) => Some(error.to_string()),
    }
}

fn entry(object: &Map<String, Value>, strict: bool) -> Result<(ChartVersion, Metadata), String> {
    if strict {
        known(object, &METADATA)?;
        nested(object, "maintainers", &["name", "email", "url"])?;
        nested(object, "dependencies", &DEPENDENCY)?;
    }
    let metadata = Metadata::from_object(object).map_err(|text| {
        text.trim_start_matches("error unmarshaling JSON: while decoding JSON: ").to_owned()
    })?;
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
        Some((_, other)) => return Err(wrong_text(other, "ChartVersion.urls", "[]string")),
    };
    if let Some((_, created)) = get("created") {
        time(created, "ChartVersion.created")?;
    }
    if let Some((_, removed)) = get("removed")
        && !removed.is_boolean()
    {
        return Err(wrong_text(removed, "ChartVersion.removed", "bool"));
    }
    for name in ["checksum", "engine", "tillerVersion", "url"] {
        text(name)?;
    }
    Ok((
        ChartVersion { version: metadata.version.clone(), urls, digest: text("digest")? },
        metadata,
    ))
}

/// The fields of an entry, in lower case.
const METADATA: [&str; 25] = [
    "name",
    "home",
    "sources",
    "version",
    "description",
    "keywords",
    "maintainers",
    "icon",
    "apiversion",
    "condition",
    "tags",
    "appversion",
    "deprecated",
    "annotations",
    "kubeversion",
    "dependencies",
    "type",
    "urls",
    "created",
    "removed",
    "digest",
    "checksum",
    "engine",
    "tillerversion",
    "url",
];

const DEPENDENCY: [&str; 8] =
    ["name", "version", "repository", "condition", "tags", "enabled", "import-values", "alias"];

fn known(object: &Map<String, Value>, fields: &[&str]) -> Result<(), String> {
    let is_known = |key: &str| fields.iter().any(|field| key.eq_ignore_ascii_case(field));
    match object.keys().find(|key| !is_known(key)) {
        Some(key) => Err(unknown_text(key)),
        None => Ok(()),
    }
}

fn nested(object: &Map<String, Value>, list: &str, fields: &[&str]) -> Result<(), String> {
    let items = object.get(list).and_then(Value::as_array).into_iter().flatten();
    items.filter_map(Value::as_object).try_for_each(|item| known(item, fields))
}

fn scalar(value: &Value, name: &str) -> Result<String, String> {
    match value {
        Value::Null => Ok(String::new()),
        Value::String(text) => Ok(text.clone()),
        Value::Bool(flag) => Ok(flag.to_string()),
        Value::Number(number) => Ok(number.to_string()),
        other => Err(wrong_text(other, &format!("ChartVersion.{name}"), "string")),
    }
}

/// Helm refuses an index for a date that is none.
fn time(value: &Value, field: &str) -> Result<(), String> {
    match value {
        Value::Null => Ok(()),
        Value::String(text) if text.parse::<jiff::Timestamp>().is_ok() => Ok(()),
        Value::String(text) => Err(format!(
            "parsing time {text:?} as \"2006-01-02T15:04:05Z07:00\": cannot parse {text:?}"
        )),
        other => Err(wrong_text(other, field, "time.Time")),
    }
}

fn unknown_text(key: &str) -> String {
    format!("json: unknown field {key:?}")
}

fn unknown<E: serde::de::Error>(key: &str) -> E {
    E::custom(unknown_text(key))
}

fn wrong_text(value: &Value, field: &str, go_type: &str) -> String {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    format!("json: cannot unmarshal {kind} into Go struct field {field} of type {go_type}")
}

fn wrong<E: serde::de::Error>(value: &Value, field: &str, go_type: &str) -> E {
    E::custom(wrong_text(value, field, go_type))
}
