//! Where a chart lies that is not on this machine: at a server, or in a registry.

use std::path::Path;

use crate::RepositoryError;
use crate::address::{self, is_http};
use crate::cache::{self, Digest};
use crate::http::{Http, Kind};
use crate::oci::{Layer, Registry};
use crate::provenance::{self, ProvenanceError};

/// What archives of charts are asked for as.
const ARCHIVE: &str = "application/gzip,application/octet-stream";
const CHART: Kind = Kind { what: "chart", limit: cache::MAX_CHART_BYTES };
const PROVENANCE: Kind = Kind { what: "provenance", limit: provenance::MAX_BYTES };

/// An archive of a chart.
#[derive(Clone, Debug)]
pub(crate) struct Archive {
    pub bytes: Vec<u8>,
    /// The name of the file at its server.
    pub name: String,
}

/// A place that a chart is fetched from, and who may.
#[derive(Debug)]
pub(crate) enum Origin {
    /// An address at a server.
    Server {
        http: Http,
        place: String,
        /// The address that the credentials are for.
        owner: String,
        /// What the index says of the archive; may be empty.
        digest: String,
    },
    /// A chart's full name in a registry.
    Registry { registry: Registry, place: String },
}

impl Origin {
    /// Fetches the archive, unless the cache has it.
    pub async fn archive(
        &self,
        cache: &Path,
        messages: &mut Vec<String>,
    ) -> Result<Archive, RepositoryError> {
        match self {
            Self::Server { http, place, owner, digest } => {
                let name = file_name(place);
                let claimed = Digest::parse(digest)?;
                let cached = claimed.and_then(|digest| cache::find_chart(cache, digest));
                if let Some(bytes) = cached {
                    return Ok(Archive { bytes, name });
                }
                if !is_http(place) {
                    let scheme = address::scheme(place).unwrap_or_default();
                    return Err(RepositoryError::Scheme(scheme));
                }
                let bytes = http.get(place, owner, Some(ARCHIVE), CHART).await?;
                let actual = Digest::of(&bytes);
                if let Some(claimed) = claimed.filter(|claimed| *claimed != actual) {
                    messages.push(format!(
                        "level=WARN msg=\"the chart is not the one that its repository's index tells of\" chart={} digest={actual} index={claimed}",
                        address::shown(place)
                    ));
                }
                Ok(Archive { bytes, name })
            }
            Self::Registry { registry, place } => {
                registry.pull(place, Layer::Chart, messages).await
            }
        }
    }

    /// Fetches what is signed of an archive, unless the cache has it.
    pub async fn provenance(
        &self,
        cache: &Path,
        archive: &[u8],
        messages: &mut Vec<String>,
    ) -> Result<Vec<u8>, RepositoryError> {
        let digest = Digest::of(archive);
        if let Some(bytes) = cache::find_provenance(cache, digest) {
            return Ok(bytes);
        }
        let bytes = match self {
            Self::Server { http, place, owner, .. } => {
                http.get(&format!("{place}.prov"), owner, None, PROVENANCE).await?
            }
            Self::Registry { registry, place } => {
                registry.pull(place, Layer::Provenance, messages).await?.bytes
            }
        };
        cache::put_provenance(cache, digest, &bytes)?;
        Ok(bytes)
    }

    /// Fetches an archive that a key of the keyring has signed.
    pub async fn signed_archive(
        &self,
        cache: &Path,
        keyring: &Path,
        messages: &mut Vec<String>,
    ) -> Result<Archive, RepositoryError> {
        let archive = self.archive(cache, messages).await?;
        let Ok(provenance) = self.provenance(cache, &archive.bytes, messages).await else {
            return Err(self.without_provenance());
        };
        provenance::check(&archive.name, &archive.bytes, &provenance, keyring)?;
        Ok(archive)
    }

    /// That there is no provenance, whatever the reason: Helm tells none.
    pub fn without_provenance(&self) -> RepositoryError {
        ProvenanceError::NotFetched(format!("{}.prov", self.address())).into()
    }

    /// The address to tell people.
    fn address(&self) -> String {
        match self {
            Self::Server { place, .. } => address::shown(place),
            Self::Registry { place, .. } => {
                let place = place.strip_prefix("oci://").unwrap_or(place);
                match place.rsplit_once(':') {
                    Some((name, tag)) => format!("oci://{name}:{}", tag.replace('_', "+")),
                    None => format!("oci://{place}"),
                }
            }
        }
    }
}

/// The last part of an address's path.
fn file_name(place: &str) -> String {
    let path = place.split(['?', '#']).next().unwrap_or_default();
    path.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_owned()
}
