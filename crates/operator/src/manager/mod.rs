//! The manager: one queue for the resources of all kinds, chart kinds and native kinds.
//!
//! Start: it checks watches.yaml and the charts before it makes a request, then starts the probes, the
//! reflectors and the workers. End: it takes no new work, finishes the work in hand, releases the lease,
//! and stops the probes last.

mod admission;
pub(crate) mod controller;
mod crds;
pub(crate) mod dependents;
pub(crate) mod events;
pub(crate) mod initial_snapshot;
mod isolation;
mod progress;
pub(crate) mod queue;
pub(crate) mod reflectors;
mod refusal;
mod resource;
mod runtime;
mod signals;
pub(crate) mod status;
mod worker_pool;
mod workers;
pub(crate) mod writes;

use std::collections::HashSet;
use std::sync::Arc;

use catamaran_chart::{Budget, PostRender};
use catamaran_cluster::mapper::Mapper;
use catamaran_release::RecordKeys;
use kube::Client;
use kube::core::GroupVersionKind;
use tokio_util::sync::CancellationToken;

use crate::charts::readiness_watches::ReadinessWatches;
use crate::charts::{ChartController, ChartKind};
use crate::client::{self, Impersonation};
use crate::leader_election::{Fence, LeaseConfig};
use crate::metrics::{KindMetrics, Metrics};
use crate::native::{Clock, NativeController, Reconciler, gvk};
use crate::options::Options;
use crate::record_key::KeySecret;
use crate::serve;
use crate::watches::{self, KindBackend, OverrideTypes, Watch, WatchesError, describe};
use controller::Controller;
use dependents::Dependents;
use events::Recorder;
use runtime::ManagerRuntime;
use signals::Signals;
use workers::Workers;

/// Why a manager did not run, or ended.
#[derive(Debug, thiserror::Error)]
pub enum ManagerError {
    /// watches.yaml is wrong; every problem has its line.
    #[error(transparent)]
    Watches(#[from] WatchesError),
    /// watches.yaml is empty and no reconciler is registered.
    #[error("{0}: there is nothing to watch: add an entry with group, version, kind and chart")]
    NothingToWatch(String),
    /// The cluster cannot be reached as configured.
    #[error("cannot reach a cluster: {0}")]
    Client(String),
    /// A chart kind that is configured in code cannot be served so.
    #[error("{0}")]
    Kind(String),
    /// A flag cannot be followed.
    #[error("{0}")]
    Flag(String),
    /// The threads that reconcile cannot be started.
    #[error("cannot start the threads that reconcile: {0}")]
    Threads(#[source] std::io::Error),
    /// Somebody else may lead now; the process must end, and start anew as a standby.
    #[error("leadership was lost: the lease could not be renewed in time")]
    LeadershipLost,
    /// A second signal came before the end.
    #[error("ended at once by a second signal; what was under way is resumed at the next start")]
    Interrupted,
}

/// What controllers share; handed to them when they are made.
pub(crate) struct ManagerContext {
    pub operator: String,
    pub client: Client,
    /// For chart kinds whose requests are made as a service account.
    pub impersonation: Impersonation,
    pub mapper: Mapper,
    pub dependents: Arc<Dependents>,
    /// The label selector of the objects of all chart kinds.
    pub labelled: Arc<str>,
    /// Watches that last while a chart kind waits.
    pub readiness_watches: ReadinessWatches,
    /// What records of releases are signed with.
    pub record_keys: RecordKeys,
    /// How much a rendering may use.
    pub render_limits: Budget,
    /// Where events are handed in.
    pub events: Recorder,
    pub metrics: Arc<Metrics>,
    /// Whether the status of chart kinds shows manifests.
    pub status_manifest: bool,
    /// Whether events keep override values to themselves.
    pub suppress_override_values: bool,
    /// What native reconcilers tell the time by.
    pub clock: Clock,
}

type Make = Box<dyn FnOnce(&ManagerContext, &KindMetrics) -> Arc<dyn Controller> + Send>;

struct Registered {
    name: &'static str,
    gvk: GroupVersionKind,
    make: Make,
}

/// Builds and runs a manager.
///
/// ```no_run
/// # use catamaran_operator::{Manager, Options};
/// # async fn run(options: Options) -> Result<(), catamaran_operator::ManagerError> {
/// Manager::new("my-operator", options).run().await
/// # }
/// ```
pub struct Manager {
    operator: String,
    options: Options,
    reconcilers: Vec<Registered>,
    /// Chart kinds that are configured in code.
    charts: Vec<ChartKind>,
    /// Those for all charts.
    post_renderers: Vec<Arc<dyn PostRender>>,
    clock: Clock,
    /// Whether it does without watches.yaml, unless a flag names one.
    native_only: bool,
    /// What watches.yaml says, once it was read.
    entries: Option<Vec<Watch>>,
}

impl Manager {
    /// A manager for the operator of this name. The name is the field manager of native objects, the
    /// value of their `app.kubernetes.io/managed-by` label, and the user agent: choose it once.
    pub fn new(operator: &str, options: Options) -> Self {
        Self {
            operator: operator.to_owned(),
            options,
            reconcilers: Vec::new(),
            charts: Vec::new(),
            post_renderers: Vec::new(),
            clock: Clock::system(),
            native_only: false,
            entries: None,
        }
    }

    /// A manager for an operator all of whose kinds are written in Rust: it reads a watches.yaml only
    /// if `--watches-file` names one.
    pub fn native(operator: &str, options: Options) -> Self {
        Self { native_only: true, ..Self::new(operator, options) }
    }

    /// Another clock than the system's, for tests: native reconcilers read it and wait by it.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Registers a reconciler under the name that `reconciler:` in watches.yaml uses. Without an entry
    /// there it runs with defaults.
    #[must_use]
    pub fn reconciler<R: Reconciler>(mut self, name: &'static str, reconciler: R) -> Self {
        let make: Make = Box::new(move |manager, metrics| {
            Arc::new(NativeController::new(reconciler, manager, metrics.clone()))
        });
        self.reconcilers.push(Registered { name, gvk: gvk::<R::Object>(), make });
        self
    }

    /// The entries of watches.yaml, e.g. to configure some of their kinds by [`Manager::chart`]. Those
    /// of which nothing is said in code are carried as they are.
    ///
    /// # Errors
    /// [`ManagerError`]: flags and a file that keep it from starting.
    pub fn watches(&mut self) -> Result<Vec<Watch>, ManagerError> {
        if self.entries.is_none() {
            self.options = self.options.clone().resolved().map_err(ManagerError::Flag)?;
            self.entries = Some(self.read_entries()?);
        }
        Ok(self.entries.clone().unwrap_or_default())
    }

    /// Carries a chart kind as it is configured in code; an entry of watches.yaml for the same group,
    /// version and kind gives way to it.
    #[must_use]
    pub fn chart(mut self, kind: ChartKind) -> Self {
        self.charts.push(kind);
        self
    }

    /// Lets a step change what all charts render, after the steps that were added before and before those
    /// of a kind ([`ChartKind::post_renderer`]). Another step in a new version of the operator changes a
    /// release when its values or its chart do.
    #[must_use]
    pub fn post_renderer(mut self, step: impl PostRender + 'static) -> Self {
        self.post_renderers.push(Arc::new(step));
        self
    }

    /// Runs until SIGTERM or SIGINT; then ends gracefully.
    ///
    /// # Errors
    /// [`ManagerError`]: what keeps it from starting, or a second signal.
    pub async fn run(self) -> Result<(), ManagerError> {
        let signals = Signals::new().map_err(|error| ManagerError::Flag(error.to_string()))?;
        self.run_by(signals).await
    }

    /// The same inside of another program, such as a test: until `stop` is cancelled.
    ///
    /// # Errors
    /// [`ManagerError`]: what keeps it from starting.
    pub async fn run_until(self, stop: CancellationToken) -> Result<(), ManagerError> {
        self.run_by(Signals::of(stop)).await
    }

    async fn run_by(mut self, mut signals: Signals) -> Result<(), ManagerError> {
        let watches = self.registered_backends()?;
        let options = &self.options;
        let metrics = Arc::new(Metrics::new(&self.operator));
        let fence = if options.leader_elect() { Fence::closed() } else { Fence::open() };
        let kubeconfig = options.kubeconfig.as_deref();
        let limit = options.limits.requests();
        let connections = client::connect(kubeconfig, &self.operator, &fence, limit, &metrics)
            .await
            .map_err(ManagerError::Client)?;
        let probes = serve::bind(options.health_probe_address(), "--health-probe-bind-address");
        let probes = probes.await.map_err(ManagerError::Flag)?;
        let scrapes = serve::Scrapes::open(options, &connections.plain, &metrics);
        let scrapes = scrapes.await.map_err(ManagerError::Flag)?;
        let lease_config = self.lease_config(&connections.plain)?;
        let key_secret = self.key_secret(&connections)?;
        let workers = Workers::start().map_err(ManagerError::Threads)?;
        let running =
            ManagerRuntime::start(self, watches, &connections, fence, metrics, key_secret, workers);
        let serving = CancellationToken::new();
        if let Some(listener) = probes {
            let probes = serve::Probes { healthy: running.health(), ready: running.readiness() };
            tokio::spawn(probes.serve(listener, serving.clone()));
        }
        if let Some(scrapes) = scrapes {
            tokio::spawn(scrapes.serve(serving.clone()));
        }
        let ended = running.lead(&connections, lease_config, &mut signals).await;
        serving.cancel();
        ended
    }

    /// The Secret of the keys of records: beside the lease, where a flag says where that is; else in the
    /// operator's own namespace, which outside of a cluster is that of the kubeconfig.
    fn key_secret(&self, connections: &client::Connections) -> Result<KeySecret, ManagerError> {
        let client = connections.work.clone();
        let namespace = match &self.options.leader_election_namespace {
            Some(namespace) => namespace.clone(),
            None => client.default_namespace().to_owned(),
        };
        KeySecret::new(client, &self.operator, &namespace).map_err(ManagerError::Client)
    }

    /// The lease to be held, if leaders are to be elected.
    fn lease_config(&self, client: &Client) -> Result<Option<LeaseConfig>, ManagerError> {
        let Options { leader_election_id, leader_election_namespace, .. } = &self.options;
        if !self.options.leader_elect() {
            return Ok(None);
        }
        let in_pod = || client::in_cluster().then(|| client.default_namespace().to_owned());
        let namespace = leader_election_namespace.clone().or_else(in_pod).ok_or_else(|| {
            let told = "--leader-elect outside of a cluster needs --leader-election-namespace";
            ManagerError::Flag(told.to_owned())
        })?;
        let host = std::env::var("HOSTNAME").unwrap_or_else(|_| self.operator.clone());
        let identity = format!("{host}_{:016x}", client::fresh());
        let name = leader_election_id.clone().unwrap_or_else(|| self.operator.clone());
        Ok(Some(LeaseConfig { namespace, name, identity }))
    }

    fn read_entries(&self) -> Result<Vec<Watch>, ManagerError> {
        let options = &self.options;
        if self.native_only && options.watches_file.is_none() {
            return Ok(Vec::new());
        }
        let known: Vec<_> = self.reconcilers.iter().map(|r| (r.name, r.gvk.clone())).collect();
        let types = options.override_values.unwrap_or(OverrideTypes::Typed);
        Ok(watches::load(&options.watches_path(), &known, types)?)
    }

    /// All that is carried: watches.yaml, and what code says of it.
    fn registered_backends(&mut self) -> Result<Vec<Watch>, ManagerError> {
        let mut watches = match self.watches() {
            // Whoever names each kind in code needs no file.
            Err(ManagerError::Watches(WatchesError::Read { .. }))
                if !self.charts.is_empty() && self.options.watches_file.is_none() =>
            {
                Vec::new()
            }
            entries => entries?,
        };
        for watch in &mut watches {
            watch.post_render(self.post_renderers.iter().cloned().collect());
        }
        let charts = std::mem::take(&mut self.charts).into_iter();
        let charts = charts.map(|kind| kind.finish(&self.post_renderers));
        let charts = charts.collect::<Result<Vec<_>, _>>().map_err(ManagerError::Kind)?;
        let mut replaced = HashSet::new();
        for chart in charts {
            let is_new = replaced.insert(chart.gvk.clone());
            match watches.iter_mut().find(|watch| is_new && watch.gvk == chart.gvk) {
                Some(entry) => *entry = chart,
                None => watches.push(chart),
            }
        }
        watches::share_kinds(&mut watches);
        for Registered { name, gvk, .. } in &self.reconcilers {
            let mentioned =
                |watch: &Watch| matches!(&watch.backend, KindBackend::Reconciler(of) if of == name);
            if !watches.iter().any(mentioned) {
                tracing::info!(
                    reconciler = name,
                    gvk = describe(gvk),
                    "not in watches.yaml: runs with defaults"
                );
                watches.push(Watch::new(gvk.clone(), KindBackend::Reconciler((*name).to_owned())));
            }
        }
        if watches.is_empty() {
            let file = self.options.watches_path();
            return Err(ManagerError::NothingToWatch(file.display().to_string()));
        }
        Ok(watches)
    }
}

impl ManagerContext {
    fn controller(
        &self,
        watch: &Watch,
        native: &mut Vec<Registered>,
        metrics: &KindMetrics,
    ) -> Option<Arc<dyn Controller>> {
        match &watch.backend {
            KindBackend::Chart(chart) => {
                Some(Arc::new(ChartController::new(self, watch, chart.clone(), metrics.clone())))
            }
            KindBackend::Reconciler(name) => {
                // Loading has made sure that the name is registered, and kinds are unique.
                let at = native.iter().position(|registered| registered.name == name)?;
                Some((native.swap_remove(at).make)(self, metrics))
            }
        }
    }
}
