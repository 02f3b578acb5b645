//! The flags that every operator has, whoever's `main` it is.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

use catamaran_chart::Budget;
use clap::{Args, ValueEnum};

use crate::watches::OverrideTypes;

/// Where kinds are mapped, if no flag says otherwise.
pub(crate) const DEFAULT_WATCHES: &str = "watches.yaml";

/// Flags of the manager. Flatten them into a program's own.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Which kind is carried by which chart or reconciler
    #[arg(
        long,
        value_name = "FILE",
        default_value = DEFAULT_WATCHES,
        overrides_with = "watches_file"
    )]
    pub watches_file: PathBuf,

    /// Namespaces to watch, separated by commas; empty is all of them
    #[arg(
        long,
        env = "WATCH_NAMESPACE",
        value_name = "NAMES",
        default_value = "",
        hide_default_value = true
    )]
    pub watch_namespace: String,

    /// Kubeconfig; without it $KUBECONFIG, ~/.kube/config, or the service account of the pod
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// Where /healthz and /readyz are served; 0 for nowhere
    #[arg(long, value_name = "ADDRESS", default_value = ":8081")]
    pub health_probe_bind_address: String,

    /// Work only while this process holds the lease: of several, one at a time
    #[arg(long, num_args = 0..=1, default_value_t = false, default_missing_value = "true")]
    pub leader_elect: bool,

    /// The lease's name; without it the operator's name
    #[arg(long, value_name = "NAME")]
    pub leader_election_id: Option<String>,

    /// The lease's namespace; without it the namespace of the operator's pod
    #[arg(long, value_name = "NAME")]
    pub leader_election_namespace: Option<String>,

    /// How many resources of one kind are worked on at once, unless watches.yaml says otherwise
    #[arg(long, value_name = "N", default_value_t = default_concurrency(), hide_default_value = true)]
    pub max_concurrent_reconciles: usize,

    /// Look at every resource this often even if nothing moved, unless watches.yaml says otherwise; 0s
    /// is never: watches tell of every change
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = duration)]
    pub reconcile_period: Duration,

    /// How overrideValues of watches.yaml reach charts: as strings, as helm-operator had them, or with
    /// their types; the default is strings for `catamaran run`, and types for an operator of your own
    #[arg(long, value_name = "HOW")]
    pub override_values: Option<OverrideTypes>,

    /// How much one rendering of a chart may use, where the defaults are not right:
    /// steps=100M,memory=64Mi,output=32Mi,keys=200,depth=1000,time=1m
    #[arg(long, value_name = "LIMITS", default_value = "", hide_default_value = true)]
    pub render_limits: Budget,

    /// How log lines look; the default is human on a terminal and json elsewhere
    #[arg(long, value_name = "FORMAT")]
    pub log_format: Option<LogFormat>,

    /// How much is logged: error, warn, info, debug, trace, or directives such as info,kube=debug
    #[arg(long, env = "RUST_LOG", value_name = "LEVEL", default_value = "info")]
    pub log_level: String,
}

/// How log lines look.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum LogFormat {
    /// One line of text.
    Human,
    /// One JSON object.
    Json,
}

impl Options {
    /// Sends log lines to stderr, as the flags say. A second call changes nothing.
    ///
    /// # Errors
    /// Directives of `--log-level` that cannot be understood.
    pub fn init_logging(&self) -> Result<(), String> {
        // kube reports every answer of the API server that is not a success as an error of its own;
        // whoever made the request reports it, with what it means.
        let filter =
            tracing_subscriber::EnvFilter::try_new(format!("kube_client=off,{}", self.log_level))
                .map_err(|error| format!("--log-level {:?}: {error}", self.log_level))?;
        let lines = tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_writer(std::io::stderr)
            .with_target(false);
        let human = std::io::stderr().is_terminal();
        // An error means that the program set up logging itself: that is its right.
        let _ = match self.log_format {
            Some(LogFormat::Json) => {
                lines.json().flatten_event(true).with_span_list(false).try_init()
            }
            None if !human => lines.json().flatten_event(true).with_span_list(false).try_init(),
            Some(LogFormat::Human) | None => lines.with_ansi(human).try_init(),
        };
        Ok(())
    }

    /// The watched namespaces; `[None]` is all of them.
    pub(crate) fn namespaces(&self) -> Vec<Option<String>> {
        let mut names: Vec<Option<String>> = self
            .watch_namespace
            .split(',')
            .map(str::trim)
            .filter(|name| !name.is_empty())
            .map(|name| Some(name.to_owned()))
            .collect();
        names.sort();
        names.dedup();
        if names.is_empty() { vec![None] } else { names }
    }
}

fn default_concurrency() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// A duration as Go writes it: `30s`, `1m0s`, `1h30m`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let duration = text.parse::<jiff::SignedDuration>().ok();
    duration
        .and_then(|duration| Duration::try_from(duration).ok())
        .ok_or_else(|| format!("{text:?} is not a duration such as 30s, 1m0s or 1h30m"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        options: Options,
    }

    fn namespaces(list: &str) -> Vec<Option<String>> {
        Program::parse_from(["operator", "--watch-namespace", list]).options.namespaces()
    }

    #[test]
    fn watch_namespace_is_a_list() {
        let named =
            |names: &[&str]| names.iter().map(|name| Some((*name).to_owned())).collect::<Vec<_>>();
        assert_eq!(namespaces(""), [None]);
        assert_eq!(namespaces(" , "), [None]);
        assert_eq!(namespaces("b, a,b,"), named(&["a", "b"]));
    }

    #[test]
    fn durations_are_gos() {
        for (text, seconds) in [("30s", 30), ("1m0s", 60), ("1h30m", 5400), ("0s", 0)] {
            assert_eq!(duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        assert!(duration("-1s").is_err());
        assert!(duration("often").is_err());
    }
}
