//! From the manager's queue to a user's reconciler and back.

use std::any::{Any, TypeId};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use catamaran_cluster::apply::Applier;
use catamaran_cluster::conditions::{Condition, types};
use catamaran_cluster::mapper::{Mapper, Mapping};
use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use kube::core::{DynamicObject, GroupVersionKind};
use kube::{Client, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::OnceCell;

use super::children::Children;
use super::clock::Clock;
use super::context::{Context, Left, MANAGED_BY};
use super::objects::{Known, Objects, Stored};
use super::references::References;
use super::watches::Kind;
use super::{
    Action, ComponentProgress, Error, Reconciler, Watches, finalizer, gvk, unowned_children,
};
use crate::manager::ManagerContext;
use crate::manager::controller::{Controller, Failure, Request, Requeue, Unread};
use crate::manager::dependents::{Dependent, Dependents};
use crate::manager::events::Recorder;
use crate::manager::queue::{Key, Priority};
use crate::manager::reflectors::Cache;
use crate::manager::status::Written;
use crate::metrics::KindMetrics;

/// Carries one [`Reconciler`].
pub(crate) struct NativeController<R> {
    reconciler: R,
    shared: Arc<Shared>,
    /// The caches of what the reconciler declares.
    caches: Vec<Arc<Cache<Dependent>>>,
    /// Set once they have been filled.
    filled: OnceCell<()>,
    period: Option<Duration>,
    metrics: KindMetrics,
}

/// How long the first reconcile waits for the caches: without them it would take what it does not see
/// for missing.
const FILLING: Duration = Duration::from_secs(10);

/// How long news of missing kinds is waited for before they are asked for again.
const LISTENING: Duration = Duration::from_mins(1);

/// What all reconciles of a kind share.
pub(super) struct Shared {
    pub client: Client,
    pub mapper: Mapper,
    pub applier: Applier,
    /// The operator's name: field manager, and the label of what it owns.
    pub operator: String,
    pub clock: Clock,
    pub events: Recorder,
    pub children: Children,
    pub references: References,
    pub related: Vec<(GroupVersionKind, Arc<Cache<Dependent>>)>,
    /// The kinds of children, each with where they are watched; `None` is everywhere.
    pub owned: HashMap<GroupVersionKind, HashSet<Option<String>>>,
    /// Whether children have no owner references, wherever they are.
    pub outlast: bool,
    stored: Vec<StoredKind>,
    dependents: Arc<Dependents>,
    epochs: AtomicU64,
    /// Who waits for which kind to be installed.
    awaited: Mutex<HashMap<GroupVersionKind, HashSet<Key>>>,
}

/// The objects of one kind, by their type and without.
struct StoredKind {
    type_id: TypeId,
    gvk: GroupVersionKind,
    /// Whether all children of this kind are among them.
    owned: bool,
    objects: Arc<dyn Stored>,
    typed: Arc<dyn Any + Send + Sync>,
}

impl Shared {
    fn new(manager: &ManagerContext, watches: Watches, kind: usize) -> Self {
        let related = watches.related.into_iter();
        let related = related
            .map(|(gvk, selector)| (gvk.clone(), manager.dependents.watch(&gvk, &selector, None)))
            .collect();
        let (reflectors, ..) = manager.dependents.parts();
        let mut owned: HashMap<_, HashSet<_>> = HashMap::new();
        let listed = watches.listed.iter().filter(|listed| listed.owned);
        let listed = listed.map(|listed| (listed.gvk.clone(), None));
        for (gvk, namespace) in watches.owned.into_iter().chain(listed) {
            let namespaces = owned.entry(gvk).or_default();
            namespaces.extend(reflectors.namespaces.iter().cloned());
            if !namespaces.contains(&None) {
                namespaces.extend(namespace.map(Some));
            }
        }
        let outlast = watches.outlast;
        let stored = watches.listed.into_iter().map(|listed| {
            let (objects, typed) = (listed.start)(manager, kind);
            StoredKind {
                type_id: listed.type_id,
                gvk: listed.gvk,
                owned: listed.owned,
                objects,
                typed,
            }
        });
        let references = References::new(manager);
        watches.required.iter().for_each(|gvk| references.require(gvk));
        Self {
            client: manager.client.clone(),
            mapper: manager.mapper.clone(),
            applier: Applier::new(manager.client.clone(), &manager.operator),
            operator: manager.operator.clone(),
            clock: manager.clock.clone(),
            events: manager.events.clone(),
            children: Children::default(),
            references,
            related,
            owned,
            outlast,
            stored: stored.collect(),
            dependents: manager.dependents.clone(),
            epochs: AtomicU64::new(1),
            awaited: Mutex::default(),
        }
    }

    /// What is known of the children of a kind in a namespace; a watch is started if there is none.
    pub fn known(&self, gvk: &GroupVersionKind, namespace: Option<&String>) -> Arc<dyn Known> {
        let stored = self.stored.iter().find(|stored| stored.owned && stored.gvk == *gvk);
        match stored {
            Some(stored) => stored.objects.clone(),
            None => self.owned_in(gvk, namespace),
        }
    }

    fn owned_in(
        &self,
        gvk: &GroupVersionKind,
        namespace: Option<&String>,
    ) -> Arc<Cache<Dependent>> {
        let watched = self.dependents.parts().0.namespaces.iter();
        let beyond = namespace.filter(|_| {
            !watched.clone().any(|watched| watched.is_none() || watched.as_ref() == namespace)
        });
        self.dependents.watch(gvk, &format!("{MANAGED_BY}={}", self.operator), beyond)
    }

    /// What is known of the children of a kind, wherever they are.
    pub fn all_known(&self, gvk: &GroupVersionKind) -> Vec<Arc<dyn Known>> {
        let mut known = vec![self.known(gvk, None)];
        let watched = &self.dependents.parts().0.namespaces;
        let places = self.owned.get(gvk).into_iter().flatten();
        for beyond in places.flatten().filter(|place| !watched.contains(&Some((*place).clone()))) {
            known.push(self.known(gvk, Some(beyond)));
        }
        known
    }

    /// Whether children of a kind in that namespace are found again after a restart.
    pub fn is_declared(
        &self,
        gvk: &GroupVersionKind,
        namespace: Option<&String>,
    ) -> Result<(), Error> {
        let places = self.owned.get(gvk);
        let here = |places: &HashSet<Option<String>>| {
            namespace.is_none() || places.contains(&None) || places.contains(&namespace.cloned())
        };
        if places.is_some_and(here) {
            return Ok(());
        }
        let kind = &gvk.kind;
        Err(Error::Permanent(match namespace {
            Some(namespace) => format!(
                "a {kind} in namespace {namespace} must be declared, to be deleted in the end: \
                 `watches.owns_in::<{kind}>(\"{namespace}\")`"
            ),
            None => format!(
                "a cluster-scoped {kind} must be declared, to be deleted in the end: \
                 `watches.owns::<{kind}>()`"
            ),
        }))
    }

    /// The objects in memory of a type.
    pub fn objects<C: Kind>(&self) -> Option<Arc<Objects<C>>> {
        let of_type = self.stored.iter().find(|stored| stored.type_id == TypeId::of::<C>())?;
        of_type.typed.clone().downcast().ok()
    }

    /// The same, without their type.
    pub fn stored<C: Kind>(&self) -> Option<&Arc<dyn Stored>> {
        let of_type = self.stored.iter().find(|stored| stored.type_id == TypeId::of::<C>())?;
        Some(&of_type.objects)
    }

    /// Which resource serves a kind. Where none does the resource waits, and is woken when a definition
    /// of the kind's group comes.
    pub async fn resolve(
        self: &Arc<Self>,
        gvk: &GroupVersionKind,
        key: &Key,
    ) -> Result<Mapping, Error> {
        match self.mapper.resolve(gvk).await {
            Err(error) if error.is_no_match() => {
                self.await_kind(gvk, key);
                Err(Error::waiting("KindNotInstalled", error.to_string()))
            }
            mapping => Ok(mapping?),
        }
    }

    /// Has a resource woken when a kind comes. One task waits for each kind, whoever wants it.
    fn await_kind(self: &Arc<Self>, gvk: &GroupVersionKind, key: &Key) {
        let mut awaited = self.awaited.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(waiting) = awaited.get_mut(gvk) {
            waiting.insert(key.clone());
            return;
        }
        awaited.insert(gvk.clone(), [key.clone()].into());
        let (reflectors, ..) = self.dependents.parts();
        let mut news = reflectors.definitions.of_group(&gvk.group);
        reflectors.definitions.follow(reflectors);
        let (this, gvk) = (self.clone(), gvk.clone());
        self.spawn(async move {
            let found = async {
                // It may have come before we listened.
                while !this.has_come(&gvk).await {
                    news.next().await;
                }
            };
            // Without the right to watch definitions there is no news: then once a minute.
            let _ = tokio::time::timeout(LISTENING, found).await;
            this.wake_waiting(&gvk);
        });
    }

    async fn has_come(&self, gvk: &GroupVersionKind) -> bool {
        self.mapper.forget(gvk);
        self.mapper.resolve(gvk).await.is_ok()
    }

    fn wake_waiting(&self, gvk: &GroupVersionKind) {
        let waiting = self.awaited.lock().unwrap_or_else(PoisonError::into_inner).remove(gvk);
        let (_, queue, _) = self.dependents.parts();
        for key in waiting.into_iter().flatten() {
            queue.add(key, Priority::Live, &format!("{} may have come", gvk.kind));
        }
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let (reflectors, ..) = self.dependents.parts();
        let stop = reflectors.stop.clone();
        reflectors.spawn(async move {
            stop.run_until_cancelled(task).await;
        });
    }

    fn forget(&self, key: &Key) {
        self.references.forget(key);
        self.stored.iter().for_each(|stored| stored.objects.forget(key));
    }

    fn end_reconcile(&self, key: &Key, epoch: u64) {
        self.references.end_reconcile(key, epoch);
        self.stored.iter().for_each(|stored| stored.objects.end_reconcile(key, epoch));
    }

    /// When a resource comes next. The queue waits by the system's clock; by another one we do.
    fn next(&self, key: &Key, again: Option<Duration>, requeue: Option<Duration>) -> Requeue {
        let waits = requeue.and_then(|after| self.clock.sleep(after));
        let by_queue = requeue.filter(|_| waits.is_none());
        if let Some(waits) = waits {
            let (_, queue, _) = self.dependents.parts();
            let (queue, key) = (queue.clone(), key.clone());
            self.spawn(async move {
                waits.await;
                queue.add(key, Priority::Live, "asked to look again");
            });
        }
        match again.into_iter().chain(by_queue).min() {
            Some(after) => Requeue::After(after),
            None => Requeue::Never,
        }
    }
}

impl<R: Reconciler> NativeController<R> {
    /// Starts the watches that the reconciler declares.
    pub fn new(reconciler: R, manager: &ManagerContext, metrics: KindMetrics) -> Self {
        let mut watches = Watches::default();
        reconciler.watches(&mut watches);
        let (_, queue, kinds) = manager.dependents.parts();
        let kind = kinds.id(&gvk::<R::Object>()).unwrap_or_default();
        watches.wakes.iter().for_each(|wake| wake.connect(queue, kind));
        let period = watches.period;
        let shared = Arc::new(Shared::new(manager, watches, kind));
        let mut caches: Vec<_> = shared.related.iter().map(|(_, cache)| cache.clone()).collect();
        for (gvk, places) in &shared.owned {
            if !shared.stored.iter().any(|stored| stored.owned && stored.gvk == *gvk) {
                let places = places.iter().map(Option::as_ref);
                caches.extend(places.map(|place| shared.owned_in(gvk, place)));
            }
        }
        Self { reconciler, shared, caches, filled: OnceCell::new(), period, metrics }
    }

    async fn run(&self, request: Request) -> Result<Requeue, Failure> {
        let Request { key, object, api, writes, periodic } = request;
        let is_leaving = object.metadata.deletion_timestamp.is_some();
        if is_leaving && !finalizer::is_set(&object, &finalizer::name(&R::Object::group(&()))) {
            return Ok(Requeue::Never); // what it owns is collected with it
        }
        self.filled.get_or_init(|| self.fill()).await;
        let decoded = match decode::<R::Object>(&object) {
            Ok(decoded) => decoded,
            Err(message) => {
                return self.refuse(&Request { key, object, api, writes, periodic }, message).await;
            }
        };
        let epoch = self.shared.epochs.fetch_add(1, Ordering::Relaxed);
        let ctx = Context::new((decoded, object), &key, &self.shared, &writes, epoch);
        let outcome = if is_leaving { self.leave(&ctx).await } else { self.stay(&ctx).await };
        let left = ctx.into_left(outcome.as_ref().err());
        let (outcome, left) = match (outcome, left) {
            (Err(Error::Conflict), _) => return Err(Failure::Conflict),
            (Ok(Outcome::Gone), _) => return Ok(Requeue::Never),
            (_, Err(error)) => return Err(Failure::Permanent(error.to_string())),
            (Ok(Outcome::Acted(action)), Ok(left)) => (Ok(action), left),
            (Err(error), Ok(left)) => (Err(error), left),
        };
        let Left { status_patch, live, again, requeue } = left;
        let written = {
            let _status = self.metrics.phase("status");
            status_patch.write(&api, &live).await
        };
        match written {
            Ok(Written::Conflict) => return Err(Failure::Conflict),
            Ok(Written::Changed(written)) => writes.note(&key, &written),
            Ok(Written::Unchanged | Written::Gone) => {}
            Err(error) => {
                return Err(Failure::Transient(format!("cannot write the status: {error}")));
            }
        }
        if outcome.is_ok() {
            self.shared.end_reconcile(&key, epoch);
        }
        let asked = match outcome {
            Ok(Action::AwaitChange) | Err(Error::Waiting { .. }) => None,
            Ok(Action::Requeue(after)) => Some(after),
            Err(Error::Permanent(message)) => return Err(Failure::Permanent(message)),
            Err(Error::Transient(error)) => return Err(Failure::Transient(error.to_string())),
            Err(Error::Conflict) => return Err(Failure::Conflict),
        };
        let requeue = asked.into_iter().chain(requeue).chain(self.period).min();
        Ok(self.shared.next(&key, again, requeue))
    }

    async fn fill(&self) {
        join_all(self.caches.iter().map(|cache| cache.wait_for_sync(FILLING))).await;
        let stored = async {
            while !self.shared.stored.iter().all(|stored| stored.objects.is_settled()) {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        // As with caches: a right that is missing has been said, and work goes on.
        let _ = tokio::time::timeout(FILLING, stored).await;
    }

    async fn stay(&self, ctx: &Context<'_, R::Object>) -> Result<Outcome, Error> {
        if self.has_cleanup(ctx) {
            ctx.finalize().await?;
        }
        let _reconcile = self.metrics.phase("reconcile");
        Ok(Outcome::Acted(self.reconciler.reconcile(ctx).await?))
    }

    /// What a resource in deletion comes to: first the user's cleanup, then what owner references do not
    /// take along, then the finalizer goes.
    async fn leave(&self, ctx: &Context<'_, R::Object>) -> Result<Outcome, Error> {
        let mut progress = ComponentProgress::Ready;
        if self.has_cleanup(ctx) {
            let _cleanup = self.metrics.phase("cleanup");
            progress = self.reconciler.cleanup(ctx).await?;
        }
        if progress == ComponentProgress::Ready {
            let uid = ctx.meta().uid.clone().unwrap_or_default();
            progress = unowned_children::remove(&self.shared, &uid).await?;
        }
        match progress {
            ComponentProgress::Ready => {
                ctx.unfinalize().await?;
                Ok(Outcome::Gone)
            }
            ComponentProgress::Pending { reason, message } => {
                let message = format!("being deleted: {message}");
                ctx.condition(Condition::new(types::READY, false, reason, message));
                Ok(Outcome::Acted(Action::AwaitChange))
            }
        }
    }

    /// Whether the reconciler implements `cleanup`: the default one says so as soon as it is called, an
    /// implementation does nothing before its future is polled.
    fn has_cleanup(&self, ctx: &Context<'_, R::Object>) -> bool {
        drop(self.reconciler.cleanup(ctx));
        ctx.has_cleanup()
    }

    /// An object that does not fit its kind is the trouble of this one resource.
    async fn refuse(&self, request: &Request, message: String) -> Result<Requeue, Failure> {
        let mut status_patch = crate::manager::status::StatusPatch::of(&request.object);
        status_patch.condition(Condition::new(types::READY, false, "InvalidSpec", message.clone()));
        match status_patch.write(&request.api, &request.object).await {
            Ok(Written::Conflict) => Err(Failure::Conflict),
            Ok(Written::Changed(written)) => {
                request.writes.note(&request.key, &written);
                Err(Failure::Permanent(message))
            }
            Ok(Written::Unchanged | Written::Gone) => Err(Failure::Permanent(message)),
            Err(error) => Err(Failure::Transient(format!("cannot write the status: {error}"))),
        }
    }
}

enum Outcome {
    /// The reconciler has done something, and wants this next.
    Acted(Action),
    /// The finalizer is off.
    Gone,
}

impl<R: Reconciler> Controller for NativeController<R> {
    fn reconcile(&self, request: Request) -> BoxFuture<'_, Result<Requeue, Failure>> {
        self.run(request).boxed()
    }

    /// The reconciler's own cleanup is handed the resource.
    fn unread(&self) -> Unread {
        Unread::Waits
    }

    fn forget<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, ()> {
        self.shared.forget(key);
        self.shared.children.gone(&self.shared.applier, key).boxed()
    }
}

/// Objects are decoded when their turn comes, so that one that cannot be is no one else's trouble. A status
/// that does not fit is left out: it is ours, somebody else has been at it, and it is written anew.
fn decode<K: DeserializeOwned>(object: &DynamicObject) -> Result<K, String> {
    let mut value = serde_json::to_value(object).map_err(|error| error.to_string())?;
    let decoded = K::deserialize(&value).or_else(|error| {
        let status = value.as_object_mut().and_then(|fields| fields.remove("status"));
        status.map_or(Err(error), |_| serde_json::from_value(value))
    });
    decoded.map_err(|error| format!("the resource does not fit its kind: {error}"))
}
