//! The records of many releases by one request: what an operator asks for when it starts.

use std::collections::HashMap;
use std::fmt;

use catamaran_cluster::apply::metadata_str;
use kube::api::ListParams;
use serde_json::Value;

use super::store::{SECRET_TYPE, Store, secrets, type_of};
use crate::Error;
use crate::plan::History;

/// How many records a page of a list has.
const PAGE: u32 = 250;

/// More bytes than these in one answer, or pages, are not read ahead: whoever may create Secrets may label any
/// number of them with the names of releases. Then each release is read by itself.
const MOST_BYTES: usize = 8 * 1024 * 1024;
const MOST_PAGES: usize = 8;

/// The records of a release are kept for later unless they have more bytes than this.
const LARGEST: usize = 4 * 1024 * 1024;

/// The records of one release as they were read, in little room: as text, and compressed as they lie in
/// the cluster.
pub struct Packed {
    namespace: Box<str>,
    name: Box<str>,
    records: Vec<Box<[u8]>>,
    versions: Vec<(u32, Box<str>)>,
}

/// Without the records, in which there may be secrets.
impl fmt::Debug for Packed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Packed")
            .field("namespace", &self.namespace)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Packed {
    /// The namespace that the records lie in.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The release's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The resourceVersion of each revision's record.
    pub fn versions(&self) -> impl Iterator<Item = (u32, &str)> {
        self.versions.iter().map(|(revision, version)| (*revision, &**version))
    }

    /// How many bytes it takes.
    pub fn size(&self) -> usize {
        self.records.iter().map(|record| record.len()).sum()
    }

    /// Takes a record in; false if it is none that stands for itself, or if there are too many to keep.
    fn add(&mut self, mut record: Value) -> bool {
        if type_of(&record) != SECRET_TYPE || self.size() > LARGEST {
            return false;
        }
        let revision = label(&record, "version").parse().unwrap_or_default();
        self.versions.push((revision, metadata_str(&record, "resourceVersion").into()));
        if let Some(metadata) = record.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
        self.records.push(record.to_string().into_bytes().into());
        true
    }
}

fn label<'a>(record: &'a Value, name: &str) -> &'a str {
    let labels = record.get("metadata").and_then(|metadata| metadata.get("labels"));
    labels.and_then(|labels| labels.get(name)).and_then(Value::as_str).unwrap_or_default()
}

impl Store {
    /// The records of several releases, of one namespace or of all. A release that has none, or of whose
    /// records one lies in several Secrets, is left out.
    pub async fn histories(
        &self,
        namespace: Option<&str>,
        names: &[&str],
    ) -> Result<Vec<Packed>, Error> {
        let labels = format!("name in ({}),owner,status,version", names.join(","));
        let mut params = ListParams::default().labels(&labels).limit(PAGE);
        // `None` for a release that is to be read by itself.
        let mut found: HashMap<(String, String), Option<Packed>> = HashMap::new();
        let applier = self.applier.clone().lists_within(MOST_BYTES);
        for _ in 0..MOST_PAGES {
            let (records, more) = applier.page(&secrets(), namespace, &params).await?;
            for record in records {
                let (at, name) = (metadata_str(&record, "namespace"), label(&record, "name"));
                let packed = found.entry((at.to_owned(), name.to_owned())).or_insert_with(|| {
                    let (namespace, name) = (at.into(), name.into());
                    Some(Packed { namespace, name, records: Vec::new(), versions: Vec::new() })
                });
                if packed.as_mut().is_some_and(|packed| !packed.add(record)) {
                    *packed = None;
                }
            }
            match more {
                Some(token) => params = params.continue_token(&token),
                None => return Ok(found.into_values().flatten().collect()),
            }
        }
        Err(Error::TooManyRecords { name: names.join(", ") })
    }

    /// A history out of what [`Store::histories`] found.
    pub fn unpack(&self, packed: &Packed, namespace: &str) -> History {
        let mut history = History::empty(namespace, &packed.name, self.clock.now());
        for record in &packed.records {
            // What was written as JSON can be read as JSON.
            let record = serde_json::from_slice(record).unwrap_or_default();
            self.take_in(&mut history, &record, &[]);
        }
        history
    }
}
