//! The flags that every operator has, whoever's `main` it is.
//!
//! They are those of operator-sdk's Helm operator and of hybrid projects, of all their generations: what
//! a project's manager.yaml says must start. Old spellings are hidden, and told of with what to write
//! instead.

mod arguments;
mod file;
mod limits;
mod log;

use std::path::{Path, PathBuf};
use std::time::Duration;

use catamaran_chart::Budget;
use clap::Args;

use crate::metrics::ResourceNames;
use crate::watches::OverrideTypes;
pub(crate) use arguments::boolean;
pub use arguments::{arguments, normalised};
pub use limits::LimitOptions;
pub use log::{LogFormat, LogOptions};

/// Where Helm operators' images keep a project.
const HOME: &str = "/opt/helm";
const WATCHES_FILE: &str = "watches.yaml";

/// Flags of the manager. Flatten them into a program's own, and read them from [`arguments`], as Go
/// programs take some forms that clap does not.
#[derive(Args, Clone, Debug)]
#[command(args_override_self = true)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct Options {
    /// File that maps each kind to a chart or a reconciler [default: watches.yaml in the working
    /// directory, in $HOME or in /opt/helm]
    #[arg(long, value_name = "FILE")]
    pub watches_file: Option<PathBuf>,

    /// Namespaces to watch, separated by commas; empty means all namespaces
    #[arg(
        long,
        env = "WATCH_NAMESPACE",
        value_name = "NAMES",
        default_value = "",
        hide_default_value = true
    )]
    pub watch_namespace: String,

    /// Kubeconfig file [default: $KUBECONFIG, ~/.kube/config, or the service account of the pod]
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// Address of /healthz and /readyz; 0 turns them off [default: :8081]
    #[arg(long, value_name = "ADDRESS")]
    pub health_probe_bind_address: Option<String>,

    /// Address of /metrics; 0 turns it off [default: 0, and :8080 for `catamaran run`]
    #[arg(long, value_name = "ADDRESS")]
    pub metrics_bind_address: Option<String>,

    /// Serve metrics over TLS [default: true, and false for `catamaran run`]
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true",
        value_parser = arguments::boolean)]
    pub metrics_secure: Option<bool>,

    /// Require a token with the right to get /metrics, which the API server reviews [default: true with
    /// --metrics-secure, and false for `catamaran run`]
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true",
        value_parser = arguments::boolean)]
    pub metrics_require_rbac: Option<bool>,

    /// Include names of resources and namespaces in metrics [default: the value of
    /// --metrics-require-rbac]
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true",
        value_parser = arguments::boolean)]
    pub metrics_resource_names: Option<bool>,

    /// Folder with the certificate for metrics, reloaded when it changes [default: a self-signed
    /// certificate]
    #[arg(long, value_name = "FOLDER")]
    pub metrics_cert_path: Option<PathBuf>,

    /// File name of the certificate in --metrics-cert-path
    #[arg(long, value_name = "FILE", default_value = "tls.crt")]
    pub metrics_cert_name: PathBuf,

    /// File name of the key in --metrics-cert-path
    #[arg(long, value_name = "FILE", default_value = "tls.key")]
    pub metrics_cert_key: PathBuf,

    /// Has no effect, and is accepted for projects of operator-sdk: metrics use HTTP/1.1
    #[arg(long, num_args = 0..=1, require_equals = true, default_value_t = false,
        default_missing_value = "true", value_parser = arguments::boolean)]
    pub enable_http2: bool,

    /// Enable leader election: of several processes, only the leader reconciles
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true",
        value_parser = arguments::boolean)]
    leader_elect: Option<bool>,

    /// Name of the Lease for leader election [default: $OPERATOR_NAME, or the name of the operator]
    #[arg(long, value_name = "NAME")]
    pub leader_election_id: Option<String>,

    /// Namespace of the Lease for leader election [default: the namespace of the operator's pod]
    #[arg(long, value_name = "NAME")]
    pub leader_election_namespace: Option<String>,

    /// Concurrent reconciles of one kind, unless watches.yaml sets them [default: the number of cores,
    /// and at least 8 for a chart kind]
    #[arg(long, env = "MAX_CONCURRENT_RECONCILES", value_name = "N")]
    pub max_concurrent_reconciles: Option<usize>,

    /// Period of reconciles without a change, unless watches.yaml sets it; 0s means never, as watches
    /// report every change
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = duration)]
    pub reconcile_period: Duration,

    /// Types of overrideValues in watches.yaml: all strings, as in helm-operator, or their own [default:
    /// strings for `catamaran run`, typed for an operator of your own]
    #[arg(long, value_name = "HOW")]
    pub override_values: Option<OverrideTypes>,

    /// Limits for one rendering of a chart:
    /// steps=100M,memory=64Mi,output=32Mi,keys=200,depth=1000,time=1m
    #[arg(long, value_name = "LIMITS", default_value = "", hide_default_value = true)]
    pub render_limits: Budget,

    /// Leave the values of overrideValues out of events
    #[arg(long, num_args = 0..=1, require_equals = true, default_value_t = false,
        default_missing_value = "true", value_parser = arguments::boolean)]
    pub suppress_override_values: bool,

    /// Include the manifest of the release in status.deployedRelease, as operator-sdk does. Anybody who
    /// may read the resource can read it, and it may contain Secrets
    #[arg(long, num_args = 0..=1, require_equals = true, default_value_t = false,
        default_missing_value = "true", value_parser = arguments::boolean)]
    pub status_manifest: bool,

    /// Limits.
    #[command(flatten)]
    pub limits: LimitOptions,

    /// Logging.
    #[command(flatten)]
    pub log: LogOptions,

    /// Whether to use the defaults of `helm-operator run`.
    #[arg(skip)]
    as_helm_operator: bool,

    /// Deprecated flags.
    #[command(flatten)]
    old: Old,
}

/// What earlier generations called their flags.
#[derive(Args, Clone, Debug, Default)]
struct Old {
    #[arg(long, hide = true)]
    metrics_addr: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true,
        default_missing_value = "true", value_parser = arguments::boolean)]
    enable_leader_election: Option<bool>,
    #[arg(long, hide = true)]
    max_workers: Option<usize>,
    /// A file of controller-runtime's componentconfig.
    #[arg(long, hide = true)]
    config: Option<PathBuf>,
}

impl Options {
    /// Sends log lines to stderr, as the flags say. A second call changes nothing.
    ///
    /// # Errors
    /// Directives of `--log-level` that cannot be understood.
    pub fn init_logging(&self) -> Result<(), String> {
        self.log.init()
    }

    /// The watches.yaml to be read: the one that is named; or else the first that is there of the
    /// working directory's, `$HOME`'s and that of Helm operators' images.
    pub fn watches_path(&self) -> PathBuf {
        let home = std::env::var_os("HOME").map(PathBuf::from);
        self.watches_path_of(home.as_deref().unwrap_or(Path::new(HOME)))
    }

    fn watches_path_of(&self, home: &Path) -> PathBuf {
        if let Some(named) = &self.watches_file {
            return named.clone();
        }
        let here = PathBuf::from(WATCHES_FILE);
        let elsewhere = [home, Path::new(HOME)].map(|folder| folder.join(WATCHES_FILE));
        let mut places = [here.clone()].into_iter().chain(elsewhere);
        places.find(|place| place.exists()).unwrap_or(here)
    }

    /// Where metrics are served, in Go's form; `0` is nowhere.
    pub fn metrics_address(&self) -> &str {
        let default = if self.as_helm_operator { ":8080" } else { "0" };
        self.metrics_bind_address.as_deref().unwrap_or(default)
    }

    /// Whether metrics are served over TLS.
    pub(crate) fn metrics_over_tls(&self) -> bool {
        self.metrics_secure.unwrap_or(!self.as_helm_operator)
    }

    /// Whether who reads metrics must prove the right to.
    pub(crate) fn metrics_authorized(&self) -> bool {
        let default = || self.metrics_over_tls() && !self.as_helm_operator;
        self.metrics_require_rbac.unwrap_or_else(default)
    }

    /// Whether metrics tell the names of resources.
    pub(crate) fn metrics_resource_names(&self) -> ResourceNames {
        if self.metrics_resource_names.unwrap_or_else(|| self.metrics_authorized()) {
            ResourceNames::Included
        } else {
            ResourceNames::Omitted
        }
    }

    /// With the defaults of `helm-operator run` where ours are others: metrics on :8080, for everybody.
    #[must_use]
    pub fn with_helm_operators_defaults(mut self) -> Self {
        self.as_helm_operator = true;
        self.override_values.get_or_insert(OverrideTypes::Strings);
        self
    }

    /// Whether a lease has to be held.
    pub fn leader_elect(&self) -> bool {
        self.leader_elect.unwrap_or(false)
    }

    /// Puts what old spellings, `--config` and the environment say in the place of flags that are not
    /// there, and tells of it in the log.
    ///
    /// # Errors
    /// Flags that contradict each other, in operator-sdk's words; a `--config` that cannot be read.
    pub fn resolved(mut self) -> Result<Self, String> {
        let old = std::mem::take(&mut self.old);
        self.set_deprecated(&old)?;
        if let Some(path) = &old.config {
            tracing::warn!(file = %path.display(), "--config is deprecated, use flags instead");
            self.set_from(file::read(path)?);
        }
        let named = std::env::var("OPERATOR_NAME").ok().filter(|name| !name.is_empty());
        if let Some(name) = named {
            tracing::warn!("OPERATOR_NAME is deprecated, use --leader-election-id instead");
            self.leader_election_id.get_or_insert(name);
        }
        if self.metrics_require_rbac == Some(true) && !self.metrics_over_tls() {
            let told = "--metrics-secure flag is required when --metrics-require-rbac is present";
            return Err(told.to_owned());
        }
        Ok(self)
    }

    fn set_deprecated(&mut self, old: &Old) -> Result<(), String> {
        let both =
            |one: &str, other: &str| Err(format!("only one of {one} and {other} may be set"));
        if let Some(address) = &old.metrics_addr {
            if self.metrics_bind_address.is_some() {
                return both("--metrics-addr", "--metrics-bind-address");
            }
            tracing::warn!("--metrics-addr is deprecated, use --metrics-bind-address instead");
            self.metrics_bind_address = Some(address.clone());
        }
        if let Some(elect) = old.enable_leader_election {
            if self.leader_elect.is_some() {
                return both("--leader-elect", "--enable-leader-election");
            }
            tracing::warn!("--enable-leader-election is deprecated, use --leader-elect instead");
            self.leader_elect = Some(elect);
        }
        if let Some(workers) = old.max_workers {
            tracing::warn!("--max-workers is deprecated, use --max-concurrent-reconciles instead");
            self.max_concurrent_reconciles.get_or_insert(workers);
        }
        Ok(())
    }

    /// A flag wins over the file.
    fn set_from(&mut self, file: file::Settings) {
        let file::Settings { probes, metrics, elect, lease, lease_namespace } = file;
        self.health_probe_bind_address = self.health_probe_bind_address.take().or(probes);
        self.metrics_bind_address = self.metrics_bind_address.take().or(metrics);
        self.leader_elect = self.leader_elect.or(elect);
        self.leader_election_id = self.leader_election_id.take().or(lease);
        self.leader_election_namespace = self.leader_election_namespace.take().or(lease_namespace);
    }

    /// How many resources of a kind are worked on at once where watches.yaml does not say.
    pub fn concurrency(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        self.max_concurrent_reconciles.unwrap_or_else(cores).max(1)
    }

    /// Where the probes are served, in Go's form.
    pub fn health_probe_address(&self) -> &str {
        self.health_probe_bind_address.as_deref().unwrap_or(":8081")
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

/// A duration as Go writes it: `30s`, `1m0s`, `1h30m`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    catamaran_sprig::parse_duration(text)
        .map_err(|_| format!("{text:?} is not a duration such as 30s, 1m0s or 1h30m"))
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

    /// What a command line comes to.
    fn settled(line: &str) -> Result<Options, String> {
        let words = std::iter::once("operator").chain(line.split_whitespace());
        let words = arguments::normalised(words.map(Into::into));
        let program = Program::try_parse_from(words).map_err(|error| error.to_string())?;
        program.options.with_helm_operators_defaults().resolved()
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
        assert_eq!(duration("1.5s"), Ok(Duration::from_millis(1500)));
        for wrong in ["-1s", "often", "5", "5 minutes", "1d", "PT5M"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn command_lines_of_all_generations_start() {
        // As they stand in the manager.yaml of public projects.
        let table = [
            ("", ":8080", false, None),
            ("--enable-leader-election --leader-election-id=a", ":8080", true, Some("a")),
            (
                "--metrics-addr=127.0.0.1:8080 --enable-leader-election --leader-election-id=b",
                "127.0.0.1:8080",
                true,
                Some("b"),
            ),
            (
                "--health-probe-bind-address=:8081 --metrics-bind-address=127.0.0.1:8080 --leader-elect --leader-election-id=c",
                "127.0.0.1:8080",
                true,
                Some("c"),
            ),
            (
                "--metrics-require-rbac --metrics-secure --metrics-bind-address=:8443 --leader-elect --leader-election-id d",
                ":8443",
                true,
                Some("d"),
            ),
            ("-leader-elect -metrics-bind-address=:1 -leader-election-id e", ":1", true, Some("e")),
            ("--leader-elect=false --leader-elect=T --max-workers 3", ":8080", true, None),
            (
                "--leader-elect=0 --enable-http2=false --suppress-override-values",
                ":8080",
                false,
                None,
            ),
            (
                "--zap-devel --zap-encoder=console --zap-log-level=2 --zap-stacktrace-level=error --zap-time-encoding=rfc3339",
                ":8080",
                false,
                None,
            ),
            ("--zap-level=debug --zap-sample=false --zap-devel=false", ":8080", false, None),
        ];
        for (line, metrics, elect, id) in table {
            let options = settled(line).unwrap();
            let found = (
                options.metrics_address(),
                options.leader_elect(),
                options.leader_election_id.as_deref(),
            );
            assert_eq!(found, (metrics, elect, id), "{line}");
        }
    }

    #[test]
    fn what_contradicts_itself_is_refused_in_the_words_of_operator_sdk() {
        let table = [
            (
                "--metrics-addr=:1 --metrics-bind-address=:2",
                "only one of --metrics-addr and --metrics-bind-address may be set",
            ),
            (
                "--leader-elect --enable-leader-election",
                "only one of --leader-elect and --enable-leader-election may be set",
            ),
            (
                "--metrics-require-rbac",
                "--metrics-secure flag is required when --metrics-require-rbac is present",
            ),
        ];
        for (line, told) in table {
            assert_eq!(settled(line).map(drop), Err(told.to_owned()), "{line}");
        }
        assert!(settled("--leader-elect=perhaps").is_err());
        assert!(settled("--nosuch").is_err());
    }

    #[test]
    fn a_flag_wins_over_a_file_of_settings() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("controller_manager_config.yaml");
        let text = "apiVersion: controller-runtime.sigs.k8s.io/v1alpha1\nkind: ControllerManagerConfig\nhealth:\n  healthProbeBindAddress: :8081\nmetrics:\n  bindAddress: 127.0.0.1:8080\nleaderElection:\n  leaderElect: true\n  resourceName: 86f835c3.example.com\n";
        std::fs::write(&path, text).unwrap();
        let options = settled(&format!("--config={} --metrics-bind-address=:9", path.display()));
        let options = options.unwrap();
        assert_eq!((options.metrics_address(), options.leader_elect()), (":9", true));
        assert_eq!(options.leader_election_id.as_deref(), Some("86f835c3.example.com"));
        let none = settled("--config=/nowhere/at/all.yaml").unwrap_err();
        assert!(none.contains("/nowhere/at/all.yaml"), "{none}");
    }

    #[test]
    fn watches_are_found_where_images_keep_them() {
        let home = tempfile::tempdir().unwrap();
        let options = settled("").unwrap();
        assert_eq!(options.watches_path_of(home.path()), Path::new("watches.yaml"));
        let file = home.path().join("watches.yaml");
        std::fs::write(&file, "").unwrap();
        assert_eq!(options.watches_path_of(home.path()), file);
        let named = settled("--watches-file=./x.yaml").unwrap();
        assert_eq!(named.watches_path_of(home.path()), Path::new("./x.yaml"));
    }
}
