//! An index, read entry by entry: only one of them is held as plain data.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;

use catamaran_sprig::semver::Version;
use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::{ChartVersion, entry};

/// So many entries that are left out are told one by one.
const MAX_WARNINGS: usize = 20;

#[derive(Default)]
pub(super) struct Raw {
    pub entries: BTreeMap<String, Vec<ChartVersion>>,
    pub has_api_version: bool,
    pub skipped: Skipped,
}

#[derive(Default)]
pub(super) struct Skipped {
    pub texts: Vec<String>,
    pub count: usize,
}

impl Skipped {
    /// Names and versions are as the index has them: what controls a terminal is not shown.
    fn add(&mut self, text: &str) {
        self.count += 1;
        if self.texts.len() < MAX_WARNINGS {
            self.texts.push(text.replace(char::is_control, "\u{fffd}"));
        }
    }
}

/// The top of an index. One entry at a time is held as plain data.
pub(super) struct Top<'p> {
    /// Whether a field that nobody knows is an error.
    pub strict: bool,
    pub place: &'p str,
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
                        other => {
                            return Err(A::Error::custom(entry::wrong(
                                &other,
                                "IndexFile.apiVersion",
                                "string",
                            )));
                        }
                    };
                }
                "generated" => {
                    entry::time(&map.next_value()?, "IndexFile.generated")
                        .map_err(A::Error::custom)?;
                }
                "serverinfo" | "publickeys" | "annotations" => {
                    map.next_value::<IgnoredAny>()?;
                }
                _ if self.strict => return Err(A::Error::custom(entry::unknown(&key))),
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
                    skipped.add(&format!(
                        "skipping loading invalid entry for chart: empty entry name={name} source={place}"
                    ));
                    continue;
                }
                Value::Object(object) => object,
                other => {
                    return Err(A::Error::custom(entry::wrong(
                        &other,
                        "IndexFile.entries",
                        "repo.ChartVersion",
                    )));
                }
            };
            let (chart, fault) = entry::read(&object, *strict).map_err(A::Error::custom)?;
            if let Some(why) = fault {
                let version = &chart.version;
                skipped.add(&format!(
                    "skipping loading invalid entry for chart name={name} version={version} source={place} error={why:?}"
                ));
                continue;
            }
            into.push((Version::parse(&chart.version).ok(), chart));
        }
        Ok(())
    }
}
