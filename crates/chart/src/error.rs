//! What can go wrong, with the chart file and line where they are known.
//!
//! Texts follow Helm's where Helm has one, so that people find them.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::Profile;
use crate::render::{LookupKey, Trace};

/// A place in a chart's file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// The file, as Helm names it: `memcached/templates/service.yaml`.
    pub file: String,
    /// Line from 1; 0 where it is unknown.
    pub line: u32,
    /// Byte column from 0 as Go's templates count it; 0 where it is unknown.
    pub column: u32,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        if self.column > 0 {
            write!(f, ":{}", self.column)?;
        }
        Ok(())
    }
}

/// Why a chart could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file system said no.
    #[error("cannot read {}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// There is no Chart.yaml at the top (a `.helmignore` may hide it).
    #[error("Chart.yaml file is missing")]
    NoChartYaml,
    /// A file of the chart's own that must be YAML, or of a known shape, is not.
    #[error("cannot load {file}: {message}")]
    File {
        /// `Chart.yaml`, `values.yaml`, ...
        file: String,
        /// Helm's words.
        message: String,
    },
    /// Chart.yaml breaks a rule.
    #[error("validation: {0}")]
    Invalid(String),
    /// `.helmignore` has a rule that is no glob.
    #[error("{}:{line}: {message}", path.display())]
    Ignore {
        /// The `.helmignore`.
        path: PathBuf,
        /// Line from 1.
        line: usize,
        /// Helm's words.
        message: String,
    },
    /// A socket, device or pipe among the chart's files.
    #[error("cannot load irregular file {} as it has file mode type bits set", .0.display())]
    Irregular(PathBuf),
    /// A file beyond the limit of 5 MiB.
    #[error("chart file {name:?} is larger than the maximum file size {limit}")]
    FileTooLarge {
        /// The file's name in the chart.
        name: String,
        /// Bytes.
        limit: u64,
    },
    /// All files together are beyond the limit of 100 MiB.
    #[error("decompressed chart is larger than the maximum size {limit}")]
    ChartTooLarge {
        /// Bytes.
        limit: u64,
    },
    /// An archive that is packed tighter than any chart: a bomb. Helm has no such limit.
    #[error("the chart is packed too tightly: it unpacks to more than {limit} bytes")]
    Burst {
        /// Bytes that an archive of its size may unpack to.
        limit: u64,
    },
    /// More files and folders than any chart has.
    #[error("the chart has more than {limit} files: is there a symbolic link in a circle?")]
    TooManyFiles {
        /// Files and folders.
        limit: usize,
    },
    /// A symbolic link that points nowhere, or in a circle.
    #[error("error evaluating symlink {}: {fault}", path.display())]
    Link {
        /// The link.
        path: PathBuf,
        /// Go's words.
        fault: String,
    },
    /// Folders nested too deep; most likely a symbolic link to a folder above.
    #[error("{} is nested more than {limit} folders deep: is there a symbolic link in a circle?", path.display())]
    TooDeep {
        /// The folder.
        path: PathBuf,
        /// Levels.
        limit: usize,
    },
    /// Something is wrong with a `.tgz`.
    #[error("{0}")]
    Archive(String),
    /// A folder in `charts/` that is named like an archive.
    #[error("error unpacking subchart tar in {parent}: expected {name}, got {got}")]
    NoArchive {
        /// The chart that holds it.
        parent: String,
        /// Its name.
        name: String,
        /// The first file in it.
        got: String,
    },
    /// Something is wrong with a chart under `charts/`.
    #[error("error unpacking subchart {name} in {parent}: {source}")]
    Subchart {
        /// Its folder or archive.
        name: String,
        /// The chart that holds it.
        parent: String,
        /// What is wrong.
        source: Box<LoadError>,
    },
    /// Chart.yaml names an apiVersion other than `v1` and `v2`, which Helm 4 refuses, and there is
    /// another fault.
    #[error("{otherwise}")]
    ApiVersion {
        /// The apiVersion.
        version: String,
        /// The other fault.
        otherwise: Box<LoadError>,
    },
}

/// Why a chart could not be rendered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RenderError {
    /// The rendering asked for objects that are not in [`crate::Lookups`]. Not
    /// a fault: fetch them, add them (an object that does not exist is `{}`),
    /// and render again with the same clock and seed.
    #[error("the chart looks up objects that have not been fetched: {}", list(.0))]
    Needs(Vec<LookupKey>),
    /// The chart does not accept this version of Kubernetes.
    #[error(
        "chart requires kubeVersion: {constraint} which is incompatible with Kubernetes {version}"
    )]
    KubeVersion {
        /// Chart.yaml's `kubeVersion`.
        constraint: String,
        /// The cluster's version.
        version: String,
    },
    /// Chart.yaml names an apiVersion other than `v1` and `v2`, which Helm 4 refuses.
    #[error("{}", if .0 == "v3" { "invalid chart apiVersion" } else { "unsupported chart version" })]
    ApiVersion(String),
    /// A library chart cannot be installed.
    #[error("{0} charts are not installable")]
    NotInstallable(String),
    /// Chart.yaml names dependencies that are not under `charts/`.
    #[error(
        "an error occurred while checking for chart dependencies. You may need to run 'helm dependency build' to fetch missing dependencies: found in Chart.yaml, but missing in charts/ directory: {}",
        .0.join(", ")
    )]
    MissingDependencies(Vec<String>),
    /// The values cannot be merged with the chart's.
    #[error("{0}")]
    Values(String),
    /// The values break the chart's `values.schema.json`; Helm's text.
    #[error(
        "values don't meet the specifications of the schema(s) in the following chart(s):\n{0}"
    )]
    Schema(String),
    /// Chart.yaml says something of ours that means nothing.
    #[error("annotation {name} of chart {chart} must be {expected}, not {value:?}")]
    Annotation {
        /// The chart.
        chart: String,
        /// The annotation.
        name: &'static str,
        /// Its value.
        value: String,
        /// What it may be.
        expected: &'static str,
    },
    /// A template does not parse.
    #[error("{text}")]
    Parse {
        /// Helm's text, `parse error at (file:line): ...`.
        text: String,
        /// Where.
        at: Position,
        /// The same for people, with the source.
        trace: Box<Trace>,
    },
    /// A template failed while it ran, or it called `fail` or `required`.
    #[error("{text}")]
    Execute {
        /// Helm's text in the profile's layout.
        text: String,
        /// Where; the outermost position.
        at: Position,
        /// What was wrong, without the positions.
        message: String,
        /// The same for people, with the source and the value that is not there.
        trace: Box<Trace>,
    },
    /// The rendering went beyond its [`crate::Budget`].
    #[error("{at}: {text}")]
    Budget {
        /// Which limit.
        text: String,
        /// Where.
        at: Position,
    },
    /// A rendered document is not YAML, or not shaped like an object.
    #[error("{0}")]
    Manifest(#[from] ManifestError),
    /// A post-renderer failed.
    #[error("error while running post render on files: {0}")]
    PostRender(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// What a post-renderer gave back is no manifest.
    #[error("error while parsing post rendered output: {0}")]
    PostRendered(String),
    /// A file of the chart that was left unread cannot be read any more.
    #[error("{0}")]
    Unread(#[source] LoadError),
    /// A feature this crate does not have yet. Refused rather than skipped.
    #[error("{what} is not supported yet ({file})")]
    Unsupported {
        /// The feature.
        what: String,
        /// The file that uses it.
        file: String,
    },
}

const BASE_VALUE: &str = "Go value of type loader.chartBase";
const API_VERSION: &str = "field Metadata.apiVersion";
const BASE_API_VERSION: &str = "field chartBase.apiVersion";
pub(crate) const NO_CHART_YAML: &str = "Chart.yaml file is missing";

impl LoadError {
    /// The text where a chart is only looked at ([`crate::Chart::inspect`]): there Helm 4, too, reads
    /// Chart.yaml at once.
    pub fn text_of_look(&self, profile: Profile) -> String {
        match (self, profile) {
            (Self::File { file, .. }, Profile::Helm43) if file == "Chart.yaml" => self.to_string(),
            _ => self.text(profile),
        }
    }

    /// The text as the Helm of a profile has it.
    pub fn text(&self, profile: Profile) -> String {
        match (self, profile) {
            // Helm 3 calls the package of these types another name.
            (Self::File { file, message }, Profile::Helm318) if file != "values.yaml" => {
                let message = message.replace(" type v2.", " type chart.");
                format!("cannot load {file}: {}", message.replace("[]*v2.", "[]*chart."))
            }
            (Self::File { file, message }, Profile::Helm43) if file == "values.yaml" => {
                format!("cannot load {file}: cannot unmarshal yaml document: {message}")
            }
            (Self::File { file, message }, Profile::Helm318) => {
                format!("cannot load {file}: {}", in_helm_3(message))
            }
            (Self::Subchart { name, parent, source }, profile) => {
                let inner = match (&**source, profile) {
                    // Only of the outermost archive Helm 4 hides what is wrong.
                    (archive @ Self::Archive(_), _) => archive.to_string(),
                    (Self::File { file, .. }, Profile::Helm43) if file == "Chart.yaml" => {
                        source.to_string()
                    }
                    (other, profile) => other.text(profile),
                };
                format!("error unpacking subchart {name} in {parent}: {inner}")
            }
            // Before it reads a chart, Helm 4 looks for its apiVersion alone.
            (Self::File { file, message }, Profile::Helm43) if file == "Chart.yaml" => {
                let message = message.replace("Go value of type v2.Metadata", BASE_VALUE);
                format!("cannot load {file}: {}", message.replace(API_VERSION, BASE_API_VERSION))
            }
            (Self::Ignore { message, .. }, _) => message.clone(),
            (Self::Archive(message), Profile::Helm43) if message == NO_CHART_YAML => {
                "unable to detect chart version, no Chart.yaml found".to_owned()
            }
            (Self::Archive(message), Profile::Helm43) if !message.starts_with("file '") => {
                "unable to load chart archive".to_owned()
            }
            (Self::ApiVersion { version, .. }, Profile::Helm43) => {
                RenderError::ApiVersion(version.clone()).to_string()
            }
            (Self::ApiVersion { otherwise, .. }, profile) => otherwise.text(profile),
            (other, _) => other.to_string(),
        }
    }
}

impl RenderError {
    /// The text as the Helm of a profile has it; `Display` is that of 4.3 where
    /// the profile of the rendering is not in the error already.
    pub fn text(&self, profile: Profile) -> String {
        let text = self.to_string();
        match (self, profile) {
            (Self::MissingDependencies(_), Profile::Helm318) => text
                .replacen("an error", "An error", 1)
                .replacen("'helm dependency build'", "`helm dependency build`", 1),
            _ => text,
        }
    }
}

/// The types of a chart's model, as Helm 3 calls them in its errors.
pub(crate) fn in_helm_3(message: &str) -> String {
    message.replace("of type v2.", "of type chart.").replace("of type []*v2.", "of type []*chart.")
}

fn list(keys: &[LookupKey]) -> String {
    keys.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// A rendered document is not YAML, or not shaped like a Kubernetes object.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
#[error("YAML parse error on {file}: {message}")]
pub struct ManifestError {
    /// The template: `memcached/templates/service.yaml`.
    pub file: String,
    /// Helm's words; lines in it count from the start of the document.
    pub message: String,
    /// The document's text; empty where it is not known.
    pub document: Arc<str>,
    /// All rendered files by their names, for people who look for the mistake; empty where the
    /// error does not come from a rendering.
    pub rendered: Arc<BTreeMap<String, String>>,
}

impl ManifestError {
    /// Where in the document the mistake is, line and column from 1: the true place, which Helm's
    /// text often misses by a line. `None` if the document is YAML but no object.
    pub fn place(&self) -> Option<(usize, usize)> {
        let numbers = catamaran_yaml::Numbers::Exact;
        let error = catamaran_yaml::from_str::<serde_json::Value>(&self.document, numbers).err()?;
        (error.line() > 0).then(|| (error.line(), error.column()))
    }
}
