//! The manager: carries the resources of all kinds, chart and native, through one queue.
//!
//! It knows no Helm. Start: watches.yaml and charts are checked before anything touches the network;
//! then the probes, the feeds, the workers. End: no new work is taken, work in hand is finished within
//! [`GRACE`], the probes go last.

pub(crate) mod controller;
pub(crate) mod dependents;
mod dispatch;
pub(crate) mod feeds;
pub(crate) mod queue;
pub(crate) mod status;
pub(crate) mod writes;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use catamaran_chart::Budget;
use catamaran_chart::{PostRender, PostRenderers};
use catamaran_cluster::mapper::Mapper;
use catamaran_cluster::watch::{Change, Content};
use kube::Client;
use kube::core::{DynamicObject, GroupVersionKind};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::charts::ChartController;
use crate::lead::{Leadership, Seat};
use crate::native::{NativeController, Reconciler, gvk};
use crate::options::Options;
use crate::watches::{self, Hull, OverrideTypes, Watch, WatchesError, describe};
use crate::{client, serve};
use controller::Controller;
use dependents::{Dependents, KindIndex};
use dispatch::{Dispatch, Kind};
use feeds::{Feeds, Subject};
use queue::{Key, KindId, Queue, Urgency};

/// How long work in hand may take to end after SIGTERM. Less than the 10 s that operator-sdk scaffolds
/// as terminationGracePeriodSeconds; what does not end in time is resumed by the next process.
const GRACE: Duration = Duration::from_secs(8);

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
    /// A flag cannot be followed.
    #[error("{0}")]
    Flag(String),
    /// Somebody else may lead now; the process must end, and start anew as a standby.
    #[error("leadership was lost: the lease could not be renewed in time")]
    LeadershipLost,
    /// A second signal came before the end.
    #[error("ended at once by a second signal; what was under way is resumed at the next start")]
    Interrupted,
}

/// What controllers share; handed to them when they are made.
pub(crate) struct Hub {
    pub operator: String,
    pub client: Client,
    pub mapper: Mapper,
    pub dependents: Arc<Dependents>,
    /// How much a rendering may use.
    pub render_limits: Budget,
    /// Whether the status of chart kinds shows manifests.
    pub status_manifest: bool,
}

type Make = Box<dyn FnOnce(&Hub) -> Arc<dyn Controller> + Send>;

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
    /// Each with the kind that it is for; without one, for all.
    post_renderers: Vec<(Option<String>, Arc<dyn PostRender>)>,
}

impl Manager {
    /// A manager for the operator of this name. The name is the field manager of native objects, the
    /// value of their `app.kubernetes.io/managed-by` label, and the user agent: choose it once.
    pub fn new(operator: &str, options: Options) -> Self {
        Self {
            operator: operator.to_owned(),
            options,
            reconcilers: Vec::new(),
            post_renderers: Vec::new(),
        }
    }

    /// Registers a reconciler under the name that `reconciler:` in watches.yaml uses. Without an entry
    /// there it runs with defaults.
    #[must_use]
    pub fn reconciler<R: Reconciler>(mut self, name: &'static str, reconciler: R) -> Self {
        let make: Make = Box::new(move |hub| Arc::new(NativeController::new(reconciler, hub)));
        self.reconcilers.push(Registered { name, gvk: gvk::<R::Object>(), make });
        self
    }

    /// Lets a step change what all charts render, after the steps that were added before. Another
    /// step in a new version of the operator changes a release when its values or its chart do.
    #[must_use]
    pub fn post_renderer(mut self, step: impl PostRender + 'static) -> Self {
        self.post_renderers.push((None, Arc::new(step)));
        self
    }

    /// The same for the charts of one kind (`Memcached`).
    #[must_use]
    pub fn post_renderer_of(mut self, kind: &str, step: impl PostRender + 'static) -> Self {
        self.post_renderers.push((Some(kind.to_owned()), Arc::new(step)));
        self
    }

    /// Runs until SIGTERM or SIGINT; then ends gracefully.
    ///
    /// # Errors
    /// [`ManagerError`]: what keeps it from starting, or a second signal.
    pub async fn run(mut self) -> Result<(), ManagerError> {
        self.options = self.options.settled().map_err(ManagerError::Flag)?;
        let watches = self.watches()?;
        let mut signals = Signals::new().map_err(|error| ManagerError::Flag(error.to_string()))?;
        let client = client::connect(self.options.kubeconfig.as_deref(), &self.operator)
            .await
            .map_err(ManagerError::Client)?;
        let probes =
            serve::bind(self.options.health_probe_address()).await.map_err(ManagerError::Flag)?;
        let seat = self.seat(&client)?;
        let running = Running::start(self, watches, client.clone());
        let serving = CancellationToken::new();
        let probes = probes.map(|listener| {
            if let Ok(address) = listener.local_addr() {
                tracing::info!(%address, "serving health probes");
            }
            let ready = running.readiness();
            tokio::spawn(serve::probes(listener, ready, serving.clone()))
        });
        let ended = running.lead(client, seat, &mut signals).await;
        serving.cancel();
        if let Some(probes) = probes {
            probes.abort();
        }
        ended
    }

    /// The lease to be held, if leaders are to be elected.
    fn seat(&self, client: &Client) -> Result<Option<Seat>, ManagerError> {
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
        Ok(Some(Seat { namespace, name, identity }))
    }

    fn watches(&self) -> Result<Vec<Watch>, ManagerError> {
        let file: &Path = &self.options.watches_path();
        let known: Vec<_> = self.reconcilers.iter().map(|r| (r.name, r.gvk.clone())).collect();
        let types = self.options.override_values.unwrap_or(OverrideTypes::Typed);
        let mut watches = watches::load(file, &known, types)?;
        for watch in &mut watches {
            let is_its =
                |kind: &Option<String>| kind.as_ref().is_none_or(|kind| *kind == watch.gvk.kind);
            let steps = self.post_renderers.iter().filter(|(kind, _)| is_its(kind));
            let steps: PostRenderers = steps.map(|(_, step)| step.clone()).collect();
            if let Hull::Chart(chart) = &mut watch.hull {
                *chart = Arc::new(chart.as_ref().clone().with_post_renderers(steps));
            }
        }
        for Registered { name, gvk, .. } in &self.reconcilers {
            let mentioned =
                |watch: &Watch| matches!(&watch.hull, Hull::Reconciler(of) if of == name);
            if !watches.iter().any(mentioned) {
                tracing::info!(
                    reconciler = name,
                    gvk = describe(gvk),
                    "not in watches.yaml: runs with defaults"
                );
                watches.push(Watch::native(gvk.clone(), name));
            }
        }
        if watches.is_empty() {
            return Err(ManagerError::NothingToWatch(file.display().to_string()));
        }
        Ok(watches)
    }
}

/// SIGTERM and SIGINT, one after the other.
struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// A manager at work.
struct Running {
    dispatch: Arc<Dispatch>,
    workers: usize,
    feeds: Feeds,
}

impl Running {
    fn start(manager: Manager, watches: Vec<Watch>, client: Client) -> Self {
        let Manager { operator, options, reconcilers, .. } = manager;
        let bound = |watch: &Watch| {
            watch.max_concurrent_reconciles.unwrap_or_else(|| options.concurrency())
        };
        let bounds: Vec<usize> = watches.iter().map(bound).collect();
        let queue = Arc::new(Queue::new(&bounds));
        let mapper = Mapper::new(client.clone());
        let feeds = Feeds {
            client: client.clone(),
            mapper: mapper.clone(),
            namespaces: options.namespaces().into(),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
        };
        let index = Arc::new(KindIndex::new(watches.iter().map(|watch| &watch.gvk)));
        let dependents = Arc::new(Dependents::new(feeds.clone(), queue.clone(), index.clone()));
        let hub = Hub {
            operator,
            client: client.clone(),
            mapper: mapper.clone(),
            dependents,
            render_limits: options.render_limits,
            status_manifest: options.status_manifest,
        };
        let mut native: Vec<Registered> = reconcilers;
        let controllers: Vec<_> =
            watches.iter().map(|watch| hub.controller(watch, &mut native)).collect();
        let period = Some(options.reconcile_period).filter(|period| !period.is_zero());
        let kinds = watches
            .into_iter()
            .zip(controllers)
            .enumerate()
            .filter_map(|(id, (watch, controller))| Some((id, watch, controller?)))
            .map(|(id, watch, controller)| {
                tracing::info!(gvk = describe(&watch.gvk), by = ?watch.hull, "configured watch");
                Kind {
                    cache: feeds.follow(
                        primary(&watch),
                        |object| object,
                        enqueue(&queue, &index, id),
                    ),
                    period: watch.reconcile_period.or(period),
                    earlier: watch.earlier,
                    gvk: watch.gvk,
                    controller,
                }
            })
            .collect();
        let dispatch = Arc::new(Dispatch {
            client,
            mapper,
            queue,
            kinds,
            failures: std::sync::Mutex::default(),
            writes: Arc::default(),
        });
        let workers = bounds.iter().map(|bound| (*bound).max(1)).sum();
        Self { dispatch, workers, feeds }
    }

    /// Works while it leads, until a signal comes or leadership is lost.
    async fn lead(
        self,
        client: Client,
        seat: Option<Seat>,
        signals: &mut Signals,
    ) -> Result<(), ManagerError> {
        let leadership = match seat {
            None => None,
            Some(seat) => tokio::select! {
                leadership = Leadership::acquire(client, seat) => Some(leadership),
                () = signals.next() => {
                    self.end(JoinSet::new()).await;
                    return Ok(());
                }
            },
        };
        let mut work = JoinSet::new();
        for _ in 0..self.workers {
            let dispatch = self.dispatch.clone();
            work.spawn(async move { dispatch.work().await });
        }
        let lost = async {
            match &leadership {
                Some(leadership) => leadership.lost().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = signals.next() => {}
            // At once: from now on another one may write.
            () = lost => return Err(ManagerError::LeadershipLost),
        }
        tracing::info!("ending: finishing what is under way");
        tokio::select! {
            () = self.end(work) => {}
            () = signals.next() => return Err(ManagerError::Interrupted),
        }
        if let Some(leadership) = leadership {
            leadership.release().await;
        }
        Ok(())
    }

    /// Ready once the first list of every kind has been read, or the kind is known to be missing.
    fn readiness(&self) -> Arc<dyn Fn() -> bool + Send + Sync> {
        let dispatch = self.dispatch.clone();
        Arc::new(move || dispatch.kinds.iter().all(|kind| kind.cache.is_settled()))
    }

    async fn end(&self, mut work: JoinSet<()>) {
        self.dispatch.queue.close();
        let finish = async { while work.join_next().await.is_some() {} };
        if tokio::time::timeout(GRACE, finish).await.is_err() {
            tracing::warn!(grace = ?GRACE, "some work did not end in time; it is resumed at the next start");
        }
        work.shutdown().await;
        self.feeds.stop.cancel();
        self.feeds.tasks.close();
        self.feeds.tasks.wait().await;
    }
}

impl Hub {
    fn controller(
        &self,
        watch: &Watch,
        native: &mut Vec<Registered>,
    ) -> Option<Arc<dyn Controller>> {
        match &watch.hull {
            Hull::Chart(chart) => Some(Arc::new(ChartController::new(self, watch, chart.clone()))),
            Hull::Reconciler(name) => {
                // Loading has made sure that the name is registered, and kinds are unique.
                let at = native.iter().position(|registered| registered.name == name)?;
                Some((native.swap_remove(at).make)(self))
            }
        }
    }
}

fn primary(watch: &Watch) -> Subject {
    Subject { gvk: watch.gvk.clone(), selector: watch.selector.clone(), content: Content::Full }
}

/// Puts a resource into the queue when something changed that a reconcile looks at.
fn enqueue(
    queue: &Arc<Queue>,
    index: &Arc<KindIndex>,
    kind: KindId,
) -> impl Fn(Change<DynamicObject>) + Clone + use<> {
    let (queue, index) = (queue.clone(), index.clone());
    move |change| {
        let (object, urgency, why) = match change {
            Change::Seen { before: Some(before), now, .. } if !moved(&before, &now) => return,
            Change::Seen { key, before: None, listed: true, .. } => {
                (key, Urgency::Listed, "first list")
            }
            Change::Seen { key, before: None, .. } => (key, Urgency::Live, "created"),
            Change::Seen { key, .. } => (key, Urgency::Live, "changed"),
            Change::Gone { key, .. } => (key, Urgency::Live, "deleted"),
        };
        if object.namespace.is_none() {
            index.is_cluster_scoped(kind);
        }
        queue.add(Key { kind, object }, urgency, why);
    }
}

/// Whether more than the status changed.
fn moved(before: &DynamicObject, now: &DynamicObject) -> bool {
    let facts = |object: &DynamicObject| {
        let meta = &object.metadata;
        (
            meta.uid.clone(),
            meta.generation,
            meta.deletion_timestamp.clone(),
            meta.finalizers.clone(),
            meta.labels.clone(),
            meta.annotations.clone(),
        )
    };
    facts(before) != facts(now)
        || (now.metadata.generation.is_none() && before.data.get("spec") != now.data.get("spec"))
}
