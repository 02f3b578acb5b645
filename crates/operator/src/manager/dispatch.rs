//! Workers: take a key, reconcile it in a task of its own, decide when it comes back.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use catamaran_cluster::mapper::Mapper;
use kube::core::{DynamicObject, GroupVersionKind, Selector, SelectorExt};
use kube::{Api, Client, ResourceExt};
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument;

use super::controller::{Controller, Failure, Next, Request};
use super::feeds::Cache;
use super::queue::{Item, Key, Queue};
use super::writes::Writes;
use crate::watches::describe;

/// No reconcile runs longer: a hung call must not hold a worker for ever.
const DEADLINE: Duration = Duration::from_mins(5);
/// The first pause after a failure; it doubles with every failure in a row.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// The longest pause after a failure.
const LONGEST_PAUSE: Duration = Duration::from_mins(5);
/// The pause while a cache has not seen our own last write.
const FOR_THE_CACHE: Duration = Duration::from_millis(20);
/// The pause after a conflict: time for the cache to hear what the other one wrote.
const AFTER_CONFLICT: Duration = Duration::from_millis(100);

/// One kind as the workers need it.
pub(super) struct Kind {
    pub gvk: GroupVersionKind,
    pub cache: Arc<Cache<DynamicObject>>,
    pub controller: Arc<dyn Controller>,
    pub period: Option<Duration>,
    /// What these match is carried by another entry of the same kind.
    pub earlier: Vec<Selector>,
}

/// What all workers share.
pub(super) struct Dispatch {
    pub client: Client,
    pub mapper: Mapper,
    pub queue: Arc<Queue>,
    pub kinds: Vec<Kind>,
    /// Failures in a row.
    pub failures: Mutex<HashMap<Key, u32>>,
    /// Our last write to each resource.
    pub writes: Arc<Writes>,
}

impl Dispatch {
    /// Works until the queue is closed and the item in hand is done.
    pub async fn work(&self) {
        while let Some(item) = self.queue.next().await {
            self.run(&item).await;
            self.queue.done(&item.key);
        }
    }

    async fn run(&self, item: &Item) {
        let Some(kind) = self.kinds.get(item.key.kind) else { return };
        let Some(object) = kind.cache.get(&item.key.object) else {
            kind.controller.gone(&item.key).await;
            self.writes.forget(&item.key);
            self.succeeded(&item.key);
            return;
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
        let outcome = self.supervise(kind, &item.key, object).instrument(span.clone()).await;
        span.in_scope(|| self.schedule(kind, &item.key, outcome));
    }

    /// Runs a reconcile where neither a panic nor a hang can hurt anybody else.
    async fn supervise(
        &self,
        kind: &Kind,
        key: &Key,
        object: Arc<DynamicObject>,
    ) -> Result<Next, Failure> {
        let mapping =
            self.mapper.resolve(&kind.gvk).await.map_err(|e| Failure::Transient(e.to_string()))?;
        let api = match &key.object.namespace {
            Some(namespace) => {
                Api::namespaced_with(self.client.clone(), namespace, &mapping.resource)
            }
            None => Api::all_with(self.client.clone(), &mapping.resource),
        };
        let request = Request { key: key.clone(), object, api, writes: self.writes.clone() };
        let controller = kind.controller.clone();
        let task = async move { controller.reconcile(request).await };
        let task = AbortOnDropHandle::new(tokio::spawn(task.in_current_span()));
        match tokio::time::timeout(DEADLINE, task).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(panic)) => Err(Failure::Transient(format!("the reconciler panicked: {panic}"))),
            Err(_) => Err(Failure::Transient(format!("no end after {} s", DEADLINE.as_secs()))),
        }
    }

    fn schedule(&self, kind: &Kind, key: &Key, outcome: Result<Next, Failure>) {
        match outcome {
            Ok(Next::After(delay)) => {
                self.succeeded(key);
                let delay = kind.period.map_or(delay, |period| period.min(delay));
                self.queue.add_after(key.clone(), delay, "asked to look again");
            }
            Ok(Next::Period(period)) => {
                self.succeeded(key);
                if !period.is_zero() {
                    self.queue.add_after(key.clone(), period, "reconcile period");
                }
            }
            Ok(Next::Rest) => {
                self.succeeded(key);
                self.again_after_period(kind, key);
            }
            Err(Failure::Conflict) => {
                tracing::debug!("somebody else wrote meanwhile, again with what they wrote");
                self.queue.add_after(key.clone(), AFTER_CONFLICT, "conflict");
            }
            Err(Failure::Permanent(message)) => {
                tracing::error!(error = message, "cannot be reconciled until the resource changes");
                self.succeeded(key);
                self.again_after_period(kind, key);
            }
            Err(Failure::Transient(message)) => {
                let pause = self.failed(key);
                tracing::warn!(error = message, retry_in = ?pause, "reconcile failed");
                self.queue.add_after(key.clone(), pause, "retry after a failure");
            }
        }
    }

    fn again_after_period(&self, kind: &Kind, key: &Key) {
        if let Some(period) = kind.period {
            self.queue.add_after(key.clone(), period, "reconcile period");
        }
    }

    fn succeeded(&self, key: &Key) {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }

    fn failed(&self, key: &Key) -> Duration {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let count = failures.entry(key.clone()).or_default();
        let pause = FIRST_PAUSE.saturating_mul(1 << (*count).min(16)).min(LONGEST_PAUSE);
        *count = count.saturating_add(1);
        pause
    }
}

impl std::fmt::Debug for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&describe(&self.gvk))
    }
}
