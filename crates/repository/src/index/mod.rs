//! index.yaml: what a repository has.
//!
//! Read as Helm reads it: strictly (a key that comes twice or that nobody knows is an error), but
//! entries that describe no chart are left out, with a warning.

mod entry;
mod read;

use std::collections::BTreeMap;

use catamaran_sprig::semver::{Constraint, Version};
use catamaran_yaml::{Deserializer, Numbers};
use serde::Deserializer as _;
use serde::de::IgnoredAny;

use crate::IndexError;
pub(crate) use entry::wrong;
use read::{Skipped, Top};

/// The largest index that is read: 100 MiB. Large public ones have 25.
pub const MAX_BYTES: u64 = 100 << 20;
/// What one may take while it is read, in bytes. One of 50 MB takes half of it.
const MAX_ROOM: usize = 1 << 30;

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
            let yaml =
                Deserializer::within(text, Numbers::Exact, MAX_ROOM).map_err(shape)?.strict();
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
