//! What can go wrong on the way to a chart. Texts are Helm's where Helm has one.
//!
//! No text holds a secret: addresses are shown by [`crate::address::shown`].

use std::path::PathBuf;

use catamaran_chart::{LoadError, Profile};
use catamaran_sprig::semver::SemverError;

use crate::ProvenanceError;

/// Why a chart, an index or a file could not be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RepositoryError {
    /// A chart is named by a path, and nothing is there.
    #[error("path {0:?} not found")]
    NoPath(String),
    /// A chart is named by a word that is neither a path nor `repository/chart`.
    #[error("non-absolute URLs should be in form of repo_name/path_to_chart, got: {0}")]
    NotAReference(String),
    /// An address that is none.
    #[error("invalid chart URL format: {0}")]
    Address(String),
    /// An address of a kind that nothing is fetched from.
    #[error("scheme {0:?} not supported")]
    Scheme(String),
    /// The same, of a repository.
    #[error("could not find protocol handler for: {0}")]
    RepositoryScheme(String),
    /// No repository has this name.
    #[error("repo {0} not found")]
    NoRepository(String),
    /// A repository of repositories.yaml has no address.
    #[error("no URL found for repository {0}")]
    NoAddress(String),
    /// repositories.yaml cannot be read.
    #[error("couldn't load repositories file ({}): {message}", path.display())]
    Config {
        /// The file.
        path: PathBuf,
        /// Why.
        message: String,
    },
    /// The index of a repository has not been fetched yet.
    #[error("no cached repo found. (try 'helm repo update'): {0}")]
    NoCachedIndex(Box<RepositoryError>),
    /// An index cannot be used.
    #[error("error loading {place}: {source}")]
    BadIndex {
        /// The file.
        place: String,
        /// Why.
        source: IndexError,
    },
    /// An index from the net cannot be used.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// An index has no such chart, or none in that version.
    #[error(
        "chart {chart:?} matching {version} not found in {repository} index. (try 'helm repo update'): {source}"
    )]
    NoChart {
        /// The chart's name.
        chart: String,
        /// The version that was asked for.
        version: String,
        /// The repository's name.
        repository: String,
        /// What is missing.
        source: IndexError,
    },
    /// The same, of a repository that was named by its address.
    #[error("{chart} not found in {repository} repository")]
    NoChartAt {
        /// `chart "name" version "1"`.
        chart: String,
        /// The repository's address.
        repository: String,
    },
    /// An index entry without an address.
    #[error("{0} has no downloadable URLs")]
    NoDownload(String),
    /// An address that should be a repository's gave no index.
    #[error(
        "looks like {address:?} is not a valid chart repository or cannot be reached: {source}"
    )]
    NotARepository {
        /// The address.
        address: String,
        /// Why.
        source: Box<RepositoryError>,
    },
    /// A server answered with something else than 200.
    #[error("failed to fetch {address} : {status}")]
    Status {
        /// Of what was asked for.
        address: String,
        /// `404 Not Found`.
        status: String,
    },
    /// A server could not be reached, or stopped in the middle.
    #[error("Get {address:?}: {message}")]
    Transport {
        /// Of what was asked for.
        address: String,
        /// Why.
        message: String,
    },
    /// A reply is larger than anything of its kind.
    #[error("{what} of {address} is larger than {limit} bytes")]
    TooLarge {
        /// `index`, `chart`, ...
        what: &'static str,
        /// Where it comes from.
        address: String,
        /// The most that is read.
        limit: u64,
    },
    /// Certificates or keys for TLS cannot be used.
    #[error("can't create TLS config for client: {0}")]
    Tls(String),
    /// The same, before anything is asked for.
    #[error("missing registry client: can't create TLS config for client: {0}")]
    NoClient(String),
    /// The file system said no.
    #[error("{0}")]
    Io(String),
    /// A digest that is none.
    #[error("{0}")]
    Digest(String),
    /// A registry did not give what was asked for.
    #[error("{0}")]
    Registry(String),
    /// Credentials could not be had.
    #[error("{0}")]
    Credentials(String),
    /// A constraint on a version is none.
    #[error(transparent)]
    Version(#[from] SemverError),
    /// A chart that was fetched, or is depended on, cannot be loaded.
    #[error(transparent)]
    Chart(#[from] LoadError),
    /// A chart is not signed as it was asked to be.
    #[error(transparent)]
    Provenance(#[from] ProvenanceError),
    /// The dependencies of a chart cannot be brought together.
    #[error("{0}")]
    Dependency(String),
}

/// Why an index cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IndexError {
    /// It has no content.
    #[error("empty index.yaml file")]
    Empty,
    /// It does not name its version.
    #[error("no API version specified")]
    NoApiVersion,
    /// It is no YAML, or not shaped like an index.
    #[error("{0}")]
    Shape(String),
    /// It has no chart of this name.
    #[error("no chart name found")]
    NoName,
    /// It has the chart, but no version.
    #[error("no chart version found")]
    NoVersions,
    /// It has the chart, but not in this version.
    #[error("no chart version found for {name}-{version}")]
    NoVersion {
        /// The chart.
        name: String,
        /// The version that was asked for.
        version: String,
    },
    /// The version that was asked for is no constraint.
    #[error(transparent)]
    Constraint(#[from] SemverError),
}

impl RepositoryError {
    /// The text as the Helm of a profile has it.
    pub fn text(&self, profile: Profile) -> String {
        let text = self.to_string();
        match text.split_once("improper constraint: \"") {
            Some((before, constraint)) if profile == Profile::Helm318 => {
                format!("{before}improper constraint: {}", constraint.trim_end_matches('"'))
            }
            _ => text,
        }
    }

    /// The error of a file, told as Go tells it: `open x: no such file or directory`.
    pub(crate) fn io(verb: &str, path: &std::path::Path, error: &std::io::Error) -> Self {
        Self::Io(format!("{verb} {}: {}", path.display(), go_reason(error)))
    }
}

/// What the system said, in Go's words.
pub(crate) fn go_reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    let text = text.split_once(" (os error").map_or(text.as_str(), |(text, _)| text);
    let mut chars = text.chars();
    let first = chars.next().map(|c| c.to_ascii_lowercase());
    format!("{}{}", first.map(String::from).unwrap_or_default(), chars.as_str())
}
