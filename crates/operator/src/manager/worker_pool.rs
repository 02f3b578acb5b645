//! Takes keys from the queue, reconciles each in a task of its own, and requeues it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use catamaran_cluster::items::{self, Refusal};
use catamaran_cluster::mapper::Mapper;
use catamaran_cluster::watch::ObjectKey;
use futures::FutureExt;
use kube::core::{DynamicObject, GroupVersionKind, Selector, SelectorExt};
use kube::{Api, Client, ResourceExt};
use tokio::runtime::Handle;
use tokio::task::JoinError;
use tokio::time::Instant;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};
use tracing::Instrument;

use super::admission::Heavy;
use super::controller::{Controller, Failure, Request, Requeue, Unread};
use super::events::{Recorder, Severity};
use super::progress::{ProgressProbe, StallDetector};
use super::queue::{Item, Key, Priority, Queue};
use super::reflectors::Cache;
use super::refusal;
use super::resource::{Resource, Turn};
use super::writes::Writes;
use crate::client::advised;
use crate::metrics::{self, KindMetrics, KindStats, Source};
use crate::watches::describe;

/// The back-off after the first failure. It doubles with each further one.
const FIRST_BACKOFF: Duration = Duration::from_millis(250);
/// The longest back-off.
const LONGEST_BACKOFF: Duration = Duration::from_mins(5);
/// The reason of a reconcile without a change.
const PERIOD: &str = "reconcile period";
/// The reason of a reconcile after the API server began to serve the kind again.
const SERVED_AGAIN: &str = "its kind is served again";
/// The delay while the cache has not received the manager's own last write.
const FOR_THE_CACHE: Duration = Duration::from_millis(20);
/// The delay of a large resource while others are reconciled.
const FOR_THE_HEAVY: Duration = Duration::from_millis(100);
/// The delay after a conflict: the cache needs time to receive the other write.
const AFTER_CONFLICT: Duration = Duration::from_millis(100);
/// After this time, work that is ready but not started, or not ended after its deadline, is stuck.
const STUCK: Duration = Duration::from_secs(30);

/// A kind, as the workers need it.
pub(super) struct Kind {
    pub gvk: GroupVersionKind,
    pub cache: Arc<Cache<Resource>>,
    pub controller: Arc<dyn Controller>,
    pub period: Option<Duration>,
    /// Another entry of the same kind reconciles the resources that match these selectors.
    pub earlier: Vec<Selector>,
    pub metrics: KindMetrics,
    /// The name of the controller in metrics.
    pub name: String,
    pub pace: StallDetector,
    /// Where failures are published, if the controller does not publish them.
    pub events: Option<Recorder>,
}

/// What all reconciles share.
pub(super) struct WorkerPool {
    pub client: Client,
    pub mapper: Mapper,
    pub queue: Arc<Queue>,
    pub kinds: Vec<Kind>,
    /// The deadline of a reconcile: a request that hangs must not hold its key for ever.
    pub deadline: Duration,
    /// The number of failures in a row, by key.
    pub failures: Mutex<HashMap<Key, u32>>,
    /// The last write to each resource.
    pub writes: Arc<Writes>,
    /// Whether to take keys: only the leader does.
    pub working: AtomicBool,
    /// Where reconciles run.
    pub workers: Handle,
    /// Limits how many large resources are reconciled at once.
    pub heavy: Heavy,
}

/// Returns a key to the queue, also after a panic.
struct ConcurrencySlot<'a>(&'a Queue, &'a Key);

impl Drop for ConcurrencySlot<'_> {
    fn drop(&mut self) {
        self.0.done(self.1);
    }
}

impl WorkerPool {
    /// Runs until the queue is closed. `tasks` then contains the reconciles that still run.
    pub async fn work(self: Arc<Self>, tasks: TaskTracker) {
        self.working.store(true, Ordering::Relaxed);
        while let Some(item) = self.queue.next().await {
            let this = self.clone();
            let work = async move {
                let _held = ConcurrencySlot(&this.queue, &item.key);
                this.run(&item).await;
            };
            tasks.spawn_on(work, &self.workers);
        }
        self.working.store(false, Ordering::Relaxed);
        tasks.close();
    }

    /// Why the queue makes no progress, if it does not.
    pub fn stuck(&self) -> Option<String> {
        if !self.working.load(Ordering::Relaxed) {
            return None;
        }
        let untaken = self.queue.untaken();
        if untaken > STUCK {
            return Some(format!("work has been waiting for {untaken:?} and nobody takes it"));
        }
        let stats = self.queue.stats();
        let longest = self.kinds.iter().zip(&stats).filter_map(|(kind, stats)| {
            stats.working.iter().max().map(|longest| (longest, &kind.gvk.kind))
        });
        let (longest, kind) = longest.max()?;
        (*longest > self.deadline.saturating_add(STUCK)).then(|| {
            format!("a reconcile of a {kind} goes on {longest:?} after it began: it never yields")
        })
    }

    async fn run(&self, item: &Item) {
        let Some(kind) = self.kinds.get(item.key.kind) else { return };
        kind.metrics.queued.observe(item.waited.as_secs_f64());
        kind.metrics.took("queue", item.waited);
        let Some(resource) = kind.cache.get(&item.key.object) else {
            // After the deadline nothing uses what it leaves unfinished.
            let _ = tokio::time::timeout(self.deadline, kind.controller.forget(&item.key)).await;
            self.writes.forget(&item.key);
            self.succeeded(&item.key);
            return;
        };
        let (queue, key) = (self.queue.clone(), item.key.clone());
        let again = move || queue.add(key, Priority::Listed, SERVED_AGAIN);
        if kind.cache.when_served(&item.key.object, again) {
            return; // neither read nor written by anybody till then
        }
        let Some(_admitted) = self.heavy.admit(resource.size) else {
            self.queue.add_after(item.key.clone(), FOR_THE_HEAVY, &item.reasons);
            return;
        };
        let (object, refusal) = match self.read(kind, &item.key, resource.turn()).await {
            Ok(Some((object, refusal))) => (Arc::new(object), refusal),
            Ok(None) => return, // the watch tells of its end
            Err(failure) => {
                let took = (Duration::ZERO, Duration::ZERO);
                return self.schedule(kind, &item.key, Err(failure), took);
            }
        };
        if kind.earlier.iter().any(|selector| selector.matches(object.labels())) {
            return;
        }
        if self.writes.is_behind(&item.key, &object) {
            self.queue.add_after(item.key.clone(), FOR_THE_CACHE, &item.reasons);
            return;
        }
        let span = tracing::info_span!(
            "reconcile",
            kind = kind.gvk.kind,
            resource = %item.key.object,
            why = item.reasons,
        );
        let begun = Instant::now();
        let (outcome, wait) = match Self::refused(kind, &object, refusal) {
            Some((refusal, stuck)) => {
                let told = self.report_refusal(kind, item, (&object, &refusal), stuck);
                (told.instrument(span.clone()).await, Duration::ZERO)
            }
            None => self.supervise(kind, item, object.clone()).instrument(span.clone()).await,
        };
        let took = begun.elapsed();
        for histogram in [&kind.metrics.time, &kind.metrics.worked] {
            histogram.observe(took.as_secs_f64());
        }
        match &outcome {
            Ok(_) | Err(Failure::Conflict) => {}
            Err(failure) => log_failure(kind, &object, failure),
        }
        span.in_scope(|| self.schedule(kind, &item.key, outcome, (took, wait)));
    }

    /// The resource of a key, or its metadata and the reason why it is not decoded.
    async fn read(
        &self,
        kind: &Kind,
        key: &Key,
        turn: Turn,
    ) -> Result<Option<(DynamicObject, Option<Refusal>)>, Failure> {
        match turn {
            Turn::Object(object) => Ok(Some((object, None))),
            Turn::Refused(object, refusal) => Ok(Some((object, Some(refusal)))),
            Turn::Unread => {
                let api = self.api(kind, key).await?;
                match items::get(&api, &key.object.name).await {
                    Ok(item) => Ok(Some((item.object, item.refusal))),
                    Err(kube::Error::Api(status)) if status.is_not_found() => Ok(None),
                    Err(error) => {
                        Err(Failure::Transient(format!("cannot read the resource: {error}")))
                    }
                }
            }
        }
    }

    async fn api(&self, kind: &Kind, key: &Key) -> Result<Api<DynamicObject>, Failure> {
        api(&self.mapper, self.client.clone(), &kind.gvk, key).await
    }

    /// Why a resource is not reconciled, and the conditions for that.
    fn refused(
        kind: &Kind,
        object: &DynamicObject,
        refusal: Option<Refusal>,
    ) -> Option<(Refusal, Option<&'static str>)> {
        match (refusal?, kind.controller.unread()) {
            (_, Unread::Ends(_)) if object.metadata.deletion_timestamp.is_some() => None,
            (refusal, Unread::Ends(stuck)) => Some((refusal, Some(stuck))),
            (refusal, Unread::Waits) => Some((refusal, None)),
        }
    }

    async fn report_refusal(
        &self,
        kind: &Kind,
        item: &Item,
        (object, refusal): (&DynamicObject, &Refusal),
        stuck: Option<&str>,
    ) -> Result<Requeue, Failure> {
        let api = self.api(kind, &item.key).await?;
        refusal::report_refusal((&item.key, &self.writes), &api, object, refusal, stuck.as_slice())
            .await
    }

    /// Runs a reconcile so that neither a panic nor a hang affects others. Also returns for how long the
    /// API server asked to wait.
    async fn supervise(
        &self,
        kind: &Kind,
        item: &Item,
        object: Arc<DynamicObject>,
    ) -> (Result<Requeue, Failure>, Duration) {
        let key = &item.key;
        let pulse = ProgressProbe::new();
        let work = advised(self.reconcile(kind, item, object));
        let task = pulse.of(work.boxed()).in_current_span();
        let mut task = AbortOnDropHandle::new(tokio::spawn(task));
        tokio::select! {
            ended = &mut task => {
                if let Ok((Ok(_), _)) = &ended {
                    kind.pace.record_idle(pulse.longest_idle());
                }
                return ended.unwrap_or_else(|error| (panicked(kind, &error), Duration::ZERO));
            }
            () = tokio::time::sleep(self.deadline) => {}
            () = self.suspend_slot_while_idle(kind, key, &pulse) => {}
        }
        kind.metrics.timeouts.inc();
        task.abort();
        // A reconcile that waits ends here. One that computes without end does not: its key stays
        // taken, because it must not run twice, and `stuck` reports it.
        let _ = (&mut task).await;
        (Err(Failure::Transient(format!("no end after {:?}", self.deadline))), Duration::ZERO)
    }

    /// Suspends the slot of a reconcile while it waits for longer than is usual for its kind, and resumes
    /// it when the reconcile continues. Never returns.
    async fn suspend_slot_while_idle(&self, kind: &Kind, key: &Key, pulse: &ProgressProbe) {
        loop {
            let patience = kind.pace.stall_threshold();
            let rests = pulse.idle();
            if rests < patience {
                tokio::time::sleep(patience.saturating_sub(rests)).await;
            } else if self.queue.suspend_slot(key) {
                kind.pace.record_stall();
                tracing::debug!(resource = %key.object, ?patience, "nothing happens: others go on meanwhile");
                while pulse.idle() >= patience {
                    pulse.moves().await;
                }
                self.queue.resume_slot(key);
            } else {
                // Too many are suspended already: this one keeps its slot for now.
                tokio::time::sleep(patience).await;
            }
        }
    }

    fn reconcile(
        &self,
        kind: &Kind,
        item: &Item,
        object: Arc<DynamicObject>,
    ) -> impl Future<Output = Result<Requeue, Failure>> + Send + use<> {
        let (mapper, client, gvk) = (self.mapper.clone(), self.client.clone(), kind.gvk.clone());
        let (controller, writes) = (kind.controller.clone(), self.writes.clone());
        let (key, periodic) = (item.key.clone(), item.reasons == PERIOD);
        async move {
            let api = api(&mapper, client, &gvk, &key).await?;
            controller.reconcile(Request { key, object, api, writes, periodic }).await
        }
    }

    fn schedule(
        &self,
        kind: &Kind,
        key: &Key,
        outcome: Result<Requeue, Failure>,
        (took, wait): (Duration, Duration),
    ) {
        let metrics = &kind.metrics;
        match outcome {
            Ok(Requeue::After(delay)) => {
                tracing::debug!(?took, again_in = ?delay, "reconciled");
                metrics.requeue_after.inc();
                self.succeeded(key);
                match kind.period.map(jittered).filter(|period| *period < delay) {
                    Some(period) => self.queue.add_after(key.clone(), period, PERIOD),
                    None => self.queue.add_after(key.clone(), delay, "asked to look again"),
                }
            }
            Ok(Requeue::Period(period)) => {
                self.succeeded(key);
                if !period.is_zero() {
                    self.queue.add_after(key.clone(), jittered(period), PERIOD);
                }
            }
            Ok(Requeue::Never) => {
                tracing::debug!(?took, "reconciled");
                metrics.success.inc();
                self.succeeded(key);
                self.again_after_period(kind, key);
            }
            Err(Failure::Conflict) => {
                tracing::debug!("somebody else wrote meanwhile, again with what they wrote");
                metrics.requeue.inc();
                self.queue.add_after(key.clone(), AFTER_CONFLICT, "conflict");
            }
            Err(Failure::Permanent(message)) => {
                tracing::error!(error = message, "cannot be reconciled until the resource changes");
                metrics.error.inc();
                metrics.errors.inc();
                metrics.terminal.inc();
                self.succeeded(key);
                // Only a change of the resource can fix it.
                if let Some(period) = kind.period {
                    self.queue.add_after(key.clone(), period.max(LONGEST_BACKOFF), PERIOD);
                }
            }
            Err(Failure::Transient(message)) => {
                let pause = self.failed(key).max(wait.min(LONGEST_BACKOFF));
                tracing::warn!(error = message, retry_in = ?pause, "reconcile failed");
                metrics.error.inc();
                metrics.errors.inc();
                metrics.retries.inc();
                self.queue.add_after(key.clone(), pause, "retry after a failure");
            }
        }
    }

    fn again_after_period(&self, kind: &Kind, key: &Key) {
        if let Some(period) = kind.period {
            self.queue.add_after(key.clone(), jittered(period), PERIOD);
        }
    }

    fn succeeded(&self, key: &Key) {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }

    fn failed(&self, key: &Key) -> Duration {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let count = failures.entry(key.clone()).or_default();
        let pause = FIRST_BACKOFF.saturating_mul(1 << (*count).min(16)).min(LONGEST_BACKOFF);
        *count = count.saturating_add(1);
        pause
    }
}

/// The API of a kind, in the namespace of a resource.
async fn api(
    mapper: &Mapper,
    client: Client,
    gvk: &GroupVersionKind,
    key: &Key,
) -> Result<Api<DynamicObject>, Failure> {
    let mapping = mapper.resolve(gvk).await;
    let mapping = mapping.map_err(|error| Failure::Transient(error.to_string()))?;
    Ok(match &key.object.namespace {
        Some(namespace) => Api::namespaced_with(client, namespace, &mapping.resource),
        None => Api::all_with(client, &mapping.resource),
    })
}

/// A period, randomized by a tenth, so that resources that were created together spread out.
fn jittered(period: Duration) -> Duration {
    let part = u32::try_from(crate::client::fresh() % 201).unwrap_or_default();
    (period / 1000).saturating_mul(900 + part)
}

fn log_failure(kind: &Kind, resource: &DynamicObject, failure: &Failure) {
    if let Some(events) = &kind.events {
        let why = ("ReconcileError", "Reconcile");
        events.about(&kind.gvk, resource, Severity::Warning, why, &failure.to_string());
    }
}

fn panicked(kind: &Kind, error: &JoinError) -> Result<Requeue, Failure> {
    kind.metrics.panics.inc();
    Err(Failure::Transient(format!("the reconciler panicked: {error}")))
}

impl Source for Arc<WorkerPool> {
    fn kinds(&self) -> Vec<KindStats> {
        let stats = self.kinds.iter().zip(self.queue.stats());
        let told = stats.map(|(kind, stats)| KindStats {
            controller: kind.name.clone(),
            depth: stats.depth,
            adds: stats.adds,
            running: stats.running,
            bound: stats.bound,
            unfinished: stats.working.iter().sum(),
            longest: stats.working.into_iter().max().unwrap_or_default(),
        });
        told.collect()
    }

    fn resources(&self) -> Vec<(metrics::Resource, i64)> {
        let of_kind = |kind: &Kind| {
            let GroupVersionKind { group, version, kind: name } = kind.gvk.clone();
            let told = move |(key, resource): (ObjectKey, Arc<Resource>)| {
                let (group, version, kind) = (group.clone(), version.clone(), name.clone());
                let namespace = key.namespace.unwrap_or_default();
                let of = metrics::Resource { name: key.name, namespace, group, version, kind };
                Some((of, resource.created?))
            };
            kind.cache.filter(|_| true).into_iter().filter_map(told).collect::<Vec<_>>()
        };
        self.kinds.iter().flat_map(of_kind).collect()
    }
}

impl std::fmt::Debug for WorkerPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dispatch").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&describe(&self.gvk))
    }
}
