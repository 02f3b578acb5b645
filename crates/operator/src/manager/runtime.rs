//! A manager at work: from the first watch to the last write.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use catamaran_cluster::mapper::Mapper;
use catamaran_cluster::watch::{Change, Content};
use catamaran_release::{CHART_LABEL, chart_label};
use kube::core::GroupVersionKind;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::admission::Heavy;
use super::crds::CrdInformer;
use super::dependents::{Dependents, KindIndex};
use super::events::Recorder;
use super::initial_snapshot::SnapshotBudget;
use super::isolation;
use super::progress::StallDetector;
use super::queue::{Bound, Key, KindId, Priority, Queue};
use super::reflectors::{Reflectors, Role, WatchSubject};
use super::resource::{LONG_TEXTS, Resource};
use super::signals::Signals;
use super::worker_pool::{Kind, WorkerPool};
use super::workers::Workers;
use super::{Manager, ManagerContext, ManagerError, Registered};
use crate::charts::readiness_watches::ReadinessWatches;
use crate::client::Connections;
use crate::leader_election::{Fence, Leadership, LeaseConfig};
use crate::metrics::Metrics;
use crate::options::Options;
use crate::record_key::KeySecret;
use crate::watches::{KindBackend, Watch, describe};

/// How long work in hand may take to end after SIGTERM. Less than the 10 s that operator-sdk scaffolds
/// as terminationGracePeriodSeconds; what does not end in time is resumed by the next process.
const GRACE: Duration = Duration::from_secs(8);
/// How long it may take where another process waits to lead: after that it ends before its next write,
/// and the other one goes on with it.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(400);
/// How long the last events may take to be written.
const EVENT_FLUSH_TIMEOUT: Duration = Duration::from_millis(300);
/// How many reconciles of a native kind may hang without holding up the others: each costs memory alone.
const HANGING: usize = 1000;
/// How many of a chart kind are worked on at once at least, if no flag says otherwise.
const CHARTS: usize = 8;
/// The same of a chart kind, for each that may work: they hang only where the API server does.
const HANGING_CHARTS: usize = 4;
/// A native reconcile that rests for less is never taken to hang: so long may an answer take once.
const MIN_REQUEUE: Duration = Duration::from_millis(20);
/// The same of chart kinds, which also rest while a chart is rendered.
const MIN_CHART_REQUEUE: Duration = Duration::from_millis(250);

/// A manager at work.
pub(super) struct ManagerRuntime {
    dispatch: Arc<WorkerPool>,
    reflectors: Reflectors,
    fence: Fence,
    metrics: Arc<Metrics>,
    events: CancellationToken,
    event_tasks: TaskTracker,
    /// Only chart kinds have records.
    key_secret: Option<KeySecret>,
    /// Ends what still runs there when the manager has ended.
    _workers: Workers,
}

impl ManagerRuntime {
    /// Starts all reflectors; nothing is worked on yet.
    pub fn start(
        manager: Manager,
        watches: Vec<Watch>,
        connections: &Connections,
        fence: Fence,
        metrics: Arc<Metrics>,
        key_secret: KeySecret,
        workers: Workers,
    ) -> Self {
        let Manager { operator, options, reconcilers, clock, .. } = manager;
        let bounds: Vec<Bound> = watches.iter().map(|watch| bound(watch, &options)).collect();
        let queue = Arc::new(Queue::new(&bounds, options.limits.total(options.concurrency())));
        let client = connections.work.clone();
        let mapper = Mapper::new(client.clone());
        let reflectors = Reflectors {
            client: client.clone(),
            mapper: mapper.clone(),
            namespaces: options.namespaces().into(),
            definitions: Arc::new(CrdInformer::default()),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
            runtime: Handle::current(),
        };
        let index = Arc::new(KindIndex::new(watches.iter().map(|watch| &watch.gvk)));
        let dependents = Arc::new(Dependents::new(reflectors.clone(), queue.clone(), index));
        let (events, event_tasks) = (CancellationToken::new(), TaskTracker::new());
        let recorder = Recorder::start(
            client.clone(),
            &operator,
            metrics.clone(),
            &event_tasks,
            events.clone(),
        );
        let manager = ManagerContext {
            operator,
            client: client.clone(),
            impersonation: connections.impersonation.clone(),
            mapper: mapper.clone(),
            dependents,
            labelled: labelled(&watches).into(),
            readiness_watches: ReadinessWatches::new(reflectors.clone(), queue.clone()),
            record_keys: key_secret.keys(),
            render_limits: options.render_limits,
            status_manifest: options.status_manifest,
            suppress_override_values: options.suppress_override_values,
            clock,
            events: recorder,
            metrics: metrics.clone(),
        };
        let unlimited = isolation::unlimited(&watches);
        if !unlimited.is_empty() {
            let told =
                isolation::log_unlimited(unlimited, mapper.clone(), connections.plain.clone());
            let stop = reflectors.stop.clone();
            tokio::spawn(async move { stop.run_until_cancelled(told).await });
        }
        let has_charts = watches.iter().any(|watch| matches!(watch.backend, KindBackend::Chart(_)));
        let period = Some(options.reconcile_period).filter(|period| !period.is_zero());
        let dispatch = Arc::new(WorkerPool {
            client,
            mapper,
            kinds: kinds(&manager, watches, reconcilers, &reflectors, &queue, period),
            queue,
            deadline: options.limits.reconcile_timeout.max(Duration::from_secs(1)),
            failures: std::sync::Mutex::default(),
            writes: Arc::default(),
            working: AtomicBool::new(false),
            workers: workers.handle().clone(),
            heavy: Heavy::default(),
        });
        metrics.add(dispatch.clone(), options.metrics_resource_names());
        let key_secret = Some(key_secret).filter(|_| has_charts);
        Self {
            dispatch,
            reflectors,
            fence,
            metrics,
            events,
            event_tasks,
            key_secret,
            _workers: workers,
        }
    }

    /// Works while it leads, until a signal comes or leadership is lost.
    pub async fn lead(
        self,
        connections: &Connections,
        lease_config: Option<LeaseConfig>,
        signals: &mut Signals,
    ) -> Result<(), ManagerError> {
        let leadership = match lease_config {
            None => None,
            Some(lease_config) => {
                let client = connections.plain.clone();
                tokio::select! {
                    leadership = Leadership::acquire(client, lease_config, &self.fence, self.metrics.clone()) => Some(leadership),
                    () = signals.next() => {
                        self.stop_reflectors().await;
                        return Ok(());
                    }
                }
            }
        };
        let tasks = TaskTracker::new();
        let (dispatch, key_secret) = (self.dispatch.clone(), self.key_secret.clone());
        let (stop, worked) = (self.reflectors.stop.clone(), tasks.clone());
        let ending = CancellationToken::new();
        let end_of_work = ending.clone();
        let working = tokio::spawn(async move {
            // Before the first record is read. What cannot be had at once is had later.
            let loaded = end_of_work.run_until_cancelled(async { key_secret?.load().await }).await;
            if let Some(later) = loaded.flatten() {
                tokio::spawn(stop.run_until_cancelled_owned(later));
            }
            dispatch.work(worked).await;
        });
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
        let end = async {
            ending.cancel();
            self.dispatch.queue.close();
            let _ = working.await;
            let all = self.finish(&tasks, leadership.is_some()).await;
            match leadership {
                // What may still write must not meet another leader: then the lease runs out instead.
                Some(leadership) if all => leadership.release().await,
                _ => {}
            }
            self.stop_reflectors().await;
        };
        tokio::select! {
            () = end => Ok(()),
            () = signals.next() => Err(ManagerError::Interrupted),
        }
    }

    /// Lets work in hand come to its end, or to its next write; whether all of it did.
    async fn finish(&self, tasks: &TaskTracker, led: bool) -> bool {
        let begun = tokio::time::Instant::now();
        if led && tokio::time::timeout(DRAIN_TIMEOUT, tasks.wait()).await.is_err() {
            tracing::info!("some work goes on: it stops before its next write");
            self.fence.seal();
        }
        let left = GRACE.saturating_sub(begun.elapsed());
        let all = tokio::time::timeout(left, tasks.wait()).await.is_ok();
        if !all {
            tracing::warn!(grace = ?GRACE, "some work did not end in time; it is resumed at the next start");
        }
        self.events.cancel();
        self.event_tasks.close();
        let _ = tokio::time::timeout(EVENT_FLUSH_TIMEOUT, self.event_tasks.wait()).await;
        self.fence.seal();
        all
    }

    /// Ready once the first list of every kind has been read, or the kind is known to be missing or
    /// forbidden.
    pub fn readiness(&self) -> Arc<dyn Fn() -> Result<(), String> + Send + Sync> {
        let dispatch = self.dispatch.clone();
        Arc::new(move || {
            let unread = dispatch.kinds.iter().filter(|kind| !kind.cache.is_settled());
            let unread: Vec<&str> = unread.map(|kind| kind.gvk.kind.as_str()).collect();
            if unread.is_empty() {
                return Ok(());
            }
            Err(format!("the first lists have not been read yet: {}", unread.join(", ")))
        })
    }

    /// Healthy as long as the queue moves.
    pub fn health(&self) -> Arc<dyn Fn() -> Result<(), String> + Send + Sync> {
        let dispatch = self.dispatch.clone();
        Arc::new(move || dispatch.stuck().map_or(Ok(()), Err))
    }

    async fn stop_reflectors(&self) {
        self.reflectors.stop.cancel();
        self.reflectors.tasks.close();
        self.reflectors.tasks.wait().await;
    }
}

/// What selects the objects of all chart kinds: the label that operator-sdk's Helm operator writes, too.
fn labelled(watches: &[Watch]) -> String {
    let charts = watches.iter().filter_map(|watch| match &watch.backend {
        KindBackend::Chart(chart) => Some(chart_label(&chart.metadata().name)),
        KindBackend::Reconciler(_) => None,
    });
    let charts: BTreeSet<String> = charts.collect();
    format!("{CHART_LABEL} in ({})", charts.into_iter().collect::<Vec<_>>().join(","))
}

/// How many resources of a kind may be worked on at once.
fn bound(watch: &Watch, options: &Options) -> Bound {
    let default = match (&watch.backend, options.max_concurrent_reconciles) {
        // Mostly they wait for the API server: a core carries several.
        (KindBackend::Chart(_), None) => options.concurrency().max(CHARTS),
        _ => options.concurrency(),
    };
    let running = watch.max_concurrent_reconciles.unwrap_or(default).max(1);
    let lent = match &watch.backend {
        KindBackend::Chart(_) => running.saturating_mul(HANGING_CHARTS),
        KindBackend::Reconciler(_) => HANGING,
    };
    Bound { running, lent }
}

/// Starts to follow every kind.
fn kinds(
    manager: &ManagerContext,
    watches: Vec<Watch>,
    mut native: Vec<Registered>,
    reflectors: &Reflectors,
    queue: &Arc<Queue>,
    period: Option<Duration>,
) -> Vec<Kind> {
    let names = names(&watches);
    let mut kinds = Vec::new();
    for (id, (watch, name)) in watches.into_iter().zip(names).enumerate() {
        let metrics = manager.metrics.kind(&name);
        let Some(controller) = manager.controller(&watch, &mut native, &metrics) else { continue };
        tracing::info!(gvk = describe(&watch.gvk), by = ?watch.backend, "configured watch");
        let is_native = matches!(watch.backend, KindBackend::Reconciler(_));
        let room = SnapshotBudget::of(LONG_TEXTS);
        kinds.push(Kind {
            cache: reflectors.follow(
                primary(&watch),
                move |item| Resource::of(item, &room),
                enqueue(queue, manager.dependents.kinds(), id),
            ),
            period: watch.reconcile_period.or(period),
            earlier: watch.earlier,
            gvk: watch.gvk,
            controller,
            metrics,
            name,
            pace: StallDetector::new(if is_native { MIN_REQUEUE } else { MIN_CHART_REQUEUE }),
            events: is_native.then(|| manager.events.clone()),
        });
    }
    kinds
}

/// The names of the kinds in metrics, as Helm operators have them; the group tells apart those that
/// share one.
fn names(watches: &[Watch]) -> Vec<String> {
    let is_alone = |gvk: &GroupVersionKind| {
        watches.iter().filter(|watch| watch.gvk.kind.eq_ignore_ascii_case(&gvk.kind)).count() == 1
    };
    let name = |Watch { gvk, .. }: &Watch| {
        let kind = gvk.kind.to_lowercase();
        if is_alone(gvk) {
            format!("{kind}-controller")
        } else {
            format!("{kind}.{}.{}-controller", gvk.version, gvk.group)
        }
    };
    watches.iter().map(name).collect()
}

fn primary(watch: &Watch) -> WatchSubject {
    WatchSubject {
        gvk: watch.gvk.clone(),
        selector: watch.selector.clone(),
        content: Content::Full,
        role: Role::Primary,
    }
}

/// Puts a resource into the queue when something changed that a reconcile looks at.
fn enqueue(
    queue: &Arc<Queue>,
    kinds: &Arc<KindIndex>,
    kind: KindId,
) -> impl Fn(Change<Resource>) + Clone + use<> {
    let (queue, kinds) = (queue.clone(), kinds.clone());
    move |change| {
        let (object, urgency, why) = match change {
            Change::Seen { key, before: Some(before), now, .. } => match now.moved_since(&before) {
                Some(why) => (key, Priority::Live, why),
                None => return,
            },
            Change::Seen { key, before: None, listed: true, .. } => {
                (key, Priority::Listed, "first list")
            }
            Change::Seen { key, before: None, .. } => (key, Priority::Live, "created"),
            Change::Gone { key, .. } => (key, Priority::Live, "deleted"),
        };
        if object.namespace.is_none() {
            kinds.is_cluster_scoped(kind);
        }
        queue.add(Key { kind, object }, urgency, why);
    }
}
