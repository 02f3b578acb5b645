//! The context of a reconcile.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use catamaran_cluster::conditions::{Condition, reasons, types};
use catamaran_cluster::observed::CATCH_UP;
use catamaran_cluster::watch::ObjectKey;
use jiff::Timestamp;
use kube::core::DynamicObject;
use kube::{Client, Resource};
use serde_json::Value;

use super::children::ChildKey;
use super::controller::Shared;
use super::{Action, ComponentProgress, Error, Managed, Status, finalizer, gvk};
use crate::manager::dependents::{PRIMARY_RESOURCE, PRIMARY_RESOURCE_TYPE};
use crate::manager::events::Severity;
use crate::manager::queue::Key;
use crate::manager::status::StatusPatch;
use crate::manager::writes::Writes;

/// Label of the objects of native kinds; the value is the name of the operator.
pub(super) const MANAGED_BY: &str = "app.kubernetes.io/managed-by";

/// One reconcile of one resource. Dereferences to the resource.
pub struct Context<'a, K: Managed> {
    object: K,
    key: &'a Key,
    shared: &'a Arc<Shared>,
    writes: &'a Writes,
    /// The number of this reconcile, to distinguish its references from older ones.
    epoch: u64,
    work: Mutex<Work<K::Fields>>,
    /// A lock for adding the finalizer.
    finalizing: tokio::sync::Mutex<()>,
}

struct Work<F> {
    /// The resource as last read, own writes included.
    live: Arc<DynamicObject>,
    status_patch: StatusPatch,
    /// The status fields of the kind, once they are changed.
    fields: Option<F>,
    components: Vec<Component>,
    finished: bool,
    applied: HashSet<ChildKey>,
    /// When a cache, or a child, has to be read again.
    again: Option<Duration>,
    /// When the reconciler asked to run again, by the manager's clock.
    requeue: Option<Duration>,
    without_cleanup: bool,
}

#[derive(Debug)]
struct Component {
    name: &'static str,
    outcome: Result<ComponentProgress, Error>,
}

/// The result of a reconcile.
pub(super) struct Left {
    pub status_patch: StatusPatch,
    pub live: Arc<DynamicObject>,
    pub again: Option<Duration>,
    pub requeue: Option<Duration>,
}

impl<K: Managed> Deref for Context<'_, K> {
    type Target = K;

    fn deref(&self) -> &K {
        &self.object
    }
}

impl<K: Managed> fmt::Debug for Context<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("key", &self.key).finish_non_exhaustive()
    }
}

impl<'a, K: Managed> Context<'a, K> {
    pub(super) fn new(
        (object, live): (K, Arc<DynamicObject>),
        key: &'a Key,
        shared: &'a Arc<Shared>,
        writes: &'a Writes,
        epoch: u64,
    ) -> Self {
        let work = Work {
            status_patch: StatusPatch::of(&live),
            live,
            fields: None,
            components: Vec::new(),
            finished: false,
            applied: HashSet::new(),
            again: None,
            requeue: None,
            without_cleanup: false,
        };
        let (work, finalizing) = (Mutex::new(work), tokio::sync::Mutex::default());
        Self { object, key, shared, writes, epoch, work, finalizing }
    }

    /// The client, for what the context does not cover.
    pub fn client(&self) -> &Client {
        &self.shared.client
    }

    /// The resource, to which the context dereferences.
    pub fn resource(&self) -> &K {
        &self.object
    }

    /// The current time, by the manager's clock: the system's, or that of a test.
    pub fn now(&self) -> Timestamp {
        self.shared.clock.now()
    }

    /// Annotations that connect an object with this resource where an owner reference cannot, such as the pod
    /// template of a Deployment whose pods are [`super::Watches::related`].
    pub fn annotations(&self) -> BTreeMap<String, String> {
        let of = format!("{}.{}", K::kind(&()), K::group(&()));
        [(PRIMARY_RESOURCE, self.key.object.to_string()), (PRIMARY_RESOURCE_TYPE, of)]
            .map(|(name, value)| (name.to_owned(), value))
            .into()
    }

    /// The sorted names of the [`super::Watches::related`] objects of this resource, from the cache.
    pub fn related<C: Resource<DynamicType = ()>>(&self) -> Vec<String> {
        let gvk = gvk::<C>();
        let related = self.shared.related.iter().filter(|(of, _)| *of == gvk);
        let mine =
            related.flat_map(|(_, cache)| cache.filter(|object| object.owners.contains(self.key)));
        let mut names: Vec<String> = mine.map(|(ObjectKey { name, .. }, _)| name).collect();
        names.sort();
        names
    }

    /// Runs a component of the reconcile. Its result becomes the condition `name`; an error does not prevent
    /// other components from running.
    // Not an `async fn`: components are large, and reconciles have many.
    pub fn component<F>(&self, name: &'static str, part: F) -> impl Future<Output = ()>
    where
        F: Future<Output = Result<ComponentProgress, Error>>,
    {
        let part = Box::pin(part);
        async move {
            let outcome = part.await;
            let mut work = self.work();
            work.status_patch.condition(condition(name, &outcome));
            work.components.push(Component { name, outcome });
        }
    }

    /// Publishes an event for `kubectl describe`: a CamelCase word and a sentence. It is written in the
    /// background, and must not contain a secret.
    pub fn event(&self, reason: &str, note: &str) {
        self.publish_event(Severity::Normal, reason, note);
    }

    /// The same, as a warning.
    pub fn warn(&self, reason: &str, note: &str) {
        self.publish_event(Severity::Warning, reason, note);
    }

    fn publish_event(&self, severity: Severity, reason: &str, note: &str) {
        let (live, words) = (self.live(), (reason, "Reconcile"));
        self.shared.events.about(&gvk::<K>(), &live, severity, words, note);
    }

    /// The status fields of the kind, as they will be written.
    pub fn fields(&self) -> K::Fields {
        let before =
            || self.object.status().map(|status: &Status<K::Fields>| status.fields.clone());
        self.work().fields.clone().or_else(before).unwrap_or_default()
    }

    /// Changes the status fields of the kind. They are written once, at the end, if they differ.
    pub fn status(&self, change: impl FnOnce(&mut K::Fields)) {
        let mut fields = self.fields();
        change(&mut fields);
        self.work().fields = Some(fields);
    }

    /// Requeues the resource after this time at the latest, by the manager's clock.
    pub fn requeue(&self, after: Duration) {
        sooner(&mut self.work().requeue, after);
    }

    /// Completes the reconcile: the resource is Ready if all components are.
    ///
    /// # Errors
    /// The first error of a component that needs a retry or a change of the resource.
    pub fn finish(&self) -> Result<Action, Error> {
        let mut work = self.work();
        let components = std::mem::take(&mut work.components);
        work.status_patch.condition(summary(&components));
        work.finished = true;
        let mut failed: Vec<Error> =
            components.into_iter().filter_map(|component| component.outcome.err()).collect();
        failed.retain(|error| !matches!(error, Error::Waiting { .. }));
        // The next reconcile follows at once, and reports what else failed.
        let conflict = failed.iter().position(|error| matches!(error, Error::Conflict));
        if failed.is_empty() {
            return Ok(work.requeue.map_or(Action::AwaitChange, Action::Requeue));
        }
        Err(failed.swap_remove(conflict.unwrap_or(0)))
    }

    /// Set by the default [`super::Reconciler::cleanup`].
    pub(super) fn without_cleanup(&self) {
        self.work().without_cleanup = true;
    }

    pub(super) fn has_cleanup(&self) -> bool {
        !self.work().without_cleanup
    }

    /// Adds the finalizer, if it is missing.
    pub(super) async fn finalize(&self) -> Result<(), Error> {
        let name = finalizer::name(&K::group(&()));
        let _one = self.finalizing.lock().await;
        let live = self.live();
        if finalizer::is_set(&live, &name) {
            return Ok(());
        }
        self.patch(&self.object, finalizer::added(&live, &name)).await.map(|_| ())
    }

    /// Removes the finalizer, so that the resource is deleted.
    pub(super) async fn unfinalize(&self) -> Result<(), Error> {
        let live = self.live();
        let name = finalizer::name(&K::group(&()));
        self.patch(&self.object, finalizer::removed(&live, &name)).await.map(|_| ())
    }

    pub(super) fn key(&self) -> &Key {
        self.key
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        self.shared
    }

    pub(super) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Records a decision by an own write, which the watch may never confirm.
    pub(super) fn look_again(&self) {
        self.look_again_in(CATCH_UP);
    }

    pub(super) fn look_again_in(&self, after: Duration) {
        sooner(&mut self.work().again, after);
    }

    /// Records a desired child.
    pub(super) fn applied(&self, child: ChildKey) {
        self.work().applied.insert(child);
    }

    /// The desired children so far, and whether a component failed.
    pub(super) fn applied_so_far(&self) -> (HashSet<ChildKey>, bool) {
        let work = self.work();
        (work.applied.clone(), work.components.iter().any(|part| part.outcome.is_err()))
    }

    /// The resource as last read.
    pub(super) fn live(&self) -> Arc<DynamicObject> {
        self.work().live.clone()
    }

    pub(super) fn version(&self) -> Option<String> {
        self.work().live.metadata.resource_version.clone()
    }

    pub(super) fn wrote_self(&self, written: &DynamicObject) {
        self.writes.note(self.key, written);
        self.work().live = Arc::new(written.clone());
    }

    pub(super) fn condition(&self, condition: Condition) {
        self.work().status_patch.condition(condition);
    }

    /// The result. A reconcile that failed before [`Context::finish`] is not Ready.
    pub(super) fn into_left(self, failed: Option<&Error>) -> Result<Left, Error> {
        let work = self.work.into_inner().unwrap_or_else(PoisonError::into_inner);
        let Work { live, mut status_patch, fields, finished, again, requeue, .. } = work;
        if let Some(fields) = fields {
            let before = self.object.status().map(|status: &Status<K::Fields>| &status.fields);
            let before = before.map(serde_json::to_value).transpose().map_err(Error::transient)?;
            let after = serde_json::to_value(fields).map_err(Error::transient)?;
            for name in before.iter().filter_map(Value::as_object).flat_map(serde_json::Map::keys) {
                status_patch.set(name, Value::Null); // what the new fields leave out is taken away
            }
            if let Value::Object(after) = after {
                after.into_iter().for_each(|(name, value)| status_patch.set(&name, value));
            }
        }
        if let Some(error) = failed.filter(|_| !finished) {
            let (reason, message) = cause(error);
            status_patch.condition(Condition::new(types::READY, false, reason, message));
        }
        Ok(Left { status_patch, live, again, requeue })
    }

    fn work(&self) -> MutexGuard<'_, Work<K::Fields>> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn sooner(when: &mut Option<Duration>, after: Duration) {
    *when = Some(when.map_or(after, |known| known.min(after)));
}

fn condition(name: &str, outcome: &Result<ComponentProgress, Error>) -> Condition {
    match outcome {
        Ok(ComponentProgress::Ready) => {
            Condition::new(name, true, "Ready", format!("{name} is ready"))
        }
        Ok(ComponentProgress::Pending { reason, message }) => {
            Condition::new(name, false, reason.clone(), message.clone())
        }
        Err(error) => {
            let (reason, message) = cause(error);
            Condition::new(name, false, reason, message)
        }
    }
}

/// Reason and message of the condition for an error.
fn cause(error: &Error) -> (String, String) {
    match error {
        Error::Waiting { reason, message } => (reason.clone(), message.clone()),
        Error::Permanent(_) | Error::Transient(_) | Error::Conflict => {
            (reasons::RECONCILE_ERROR.to_owned(), error.to_string())
        }
    }
}

/// Ready: all components are, or the reason of the first one that is not.
fn summary(components: &[Component]) -> Condition {
    let not_ready =
        |component: &&Component| component.outcome.as_ref().ok() != Some(&ComponentProgress::Ready);
    match components.iter().find(not_ready) {
        None => Condition::new(types::READY, true, "Ready", "all components are ready"),
        Some(Component { name, outcome }) => {
            let cause = condition(name, outcome);
            Condition::new(types::READY, false, cause.reason, format!("{name}: {}", cause.message))
        }
    }
}
