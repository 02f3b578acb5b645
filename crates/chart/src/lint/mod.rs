//! What may be wrong with a chart: the rules of `helm lint`, in its order and its words.
//!
//! Chart.yaml, values.yaml, the templates, the dependencies, the CRDs. A rule that finds something
//! leaves a [`Message`]; a chart that does not load is a message as well.

mod address;
mod chartfile;
mod crds;
mod decoder;
mod dependencies;
mod deprecations;
mod folder;
mod names;
mod templates;
mod values;

use std::fmt;
use std::time::SystemTime;

use serde_json::{Map, Value};

use crate::{Budget, KubeVersion, Profile, RandomSeed};
use folder::Folder;
pub use names::is_subdomain;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Worth knowing.
    Info,
    /// Against the conventions.
    Warning,
    /// The chart is likely not to install.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Info => "INFO",
            Self::Warning => "WARNING",
            Self::Error => "ERROR",
        })
    }
}

/// What a rule has found. `Display` prints Helm's line: `[ERROR] Chart.yaml: name is required`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// How bad it is.
    pub severity: Severity,
    /// The file or folder in the chart; the chart's own path for its dependencies, and empty where
    /// the chart as a whole does not load.
    pub path: String,
    /// What is wrong; may have several lines.
    pub text: String,
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}] {}: {}", self.severity, self.path, self.text)
    }
}

/// What decides how a chart is linted.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// `.Release.Namespace`.
    pub namespace: &'a str,
    /// The cluster's version: for the templates, and for what is deprecated. `None` is the one
    /// that Helm renders for without a cluster.
    pub kube_version: Option<&'a KubeVersion>,
    /// Leaves `values.schema.json` out of account.
    pub skip_schema_validation: bool,
    /// The Helm whose rules apply.
    pub profile: Profile,
    /// The time `now` tells.
    pub clock: SystemTime,
    /// Where random values come from.
    pub seed: RandomSeed,
    /// How far the rendering may go.
    pub budget: Budget,
}

/// What was found in a chart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// In the order of the rules.
    pub messages: Vec<Message>,
    /// What `fail` and `required` said, which is no fault here: Helm logs it.
    pub notes: Vec<String>,
}

impl Report {
    /// Leaves a message if a rule failed; tells whether it did not.
    fn check(&mut self, severity: Severity, path: &str, rule: Result<(), String>) -> bool {
        match rule {
            Ok(()) => true,
            Err(text) => {
                self.messages.push(Message { severity, path: path.to_owned(), text });
                false
            }
        }
    }
}

/// Whether a file's name says that it is a packaged chart.
pub fn is_package(name: &str) -> bool {
    [".tgz", ".tar.gz"].iter().any(|end| name.ends_with(end))
}

/// Lints a chart: a folder, or a packaged chart whose name ends in `.tgz` or `.tar.gz`.
///
/// As in Helm, what values.yaml says of a table that the user's `values` have is put into it, and is
/// there for the chart that is linted next.
///
/// # Errors
/// There is no chart; Helm's text.
pub fn lint(
    place: &str,
    values: &mut Map<String, Value>,
    options: &Options<'_>,
) -> Result<Report, String> {
    let folder = Folder::open(place)?;
    let chart = folder.load();
    let mut report = Report::default();
    chartfile::check(&mut report, &folder, options.profile);
    values::check(&mut report, &folder, values, options);
    templates::check(&mut report, &folder, &chart, values, options);
    dependencies::check(&mut report, &folder, &chart, options.profile);
    if options.profile == Profile::Helm43 {
        crds::check(&mut report, &folder, &chart);
    }
    Ok(report)
}
