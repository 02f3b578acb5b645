//! Reflectors: list and watch objects, and keep caches and the queue up to date.
//!
//! Each watch is a task with a back-off of its own. For a kind that the API server does not serve, it
//! tries again once a minute, or when a CRD of its group changes ([`super::crds`]). A kind that is missing
//! or forbidden delays no other.

use std::collections::HashMap;
use std::fmt::{self, Debug, Formatter};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use catamaran_cluster::bounds::Limits;
use catamaran_cluster::items::Item;
use catamaran_cluster::mapper::{Mapper, Mapping};
use catamaran_cluster::watch::{self, Change, Content, ObjectKey, Store, Target, WatchFailure};
use kube::Client;
use kube::core::{ApiResource, GroupVersionKind};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::crds::CrdInformer;
use crate::watches::describe;

/// How often to try a kind that is missing, if no watch reports its CRD.
pub const MISSING: Duration = Duration::from_mins(1);
/// The first back-off after discovery failed. It doubles up to [`MISSING`].
const UNKNOWN: Duration = Duration::from_secs(1);

/// A watched namespace (`None` means all, or a cluster-scoped kind) and its objects.
type NamespaceStore<P> = (Option<String>, Arc<Store<P>>);

/// The caches of a watched kind, one for each watched namespace.
#[derive(Debug)]
pub struct Cache<P> {
    /// Empty until discovery has found the kind, because its scope is unknown before.
    stores: RwLock<Vec<NamespaceStore<P>>>,
    /// Set if the API server does not serve the kind, or forbids it.
    refused: AtomicBool,
    absence: Mutex<UnservedKind>,
}

/// A kind that the API server does not serve, or did not serve for a while.
#[derive(Default)]
struct UnservedKind {
    /// Whether it is not served, by the last attempt.
    lasts: bool,
    /// When it was served again: objects that were read before may not exist any more.
    ended: Option<Instant>,
    /// Callbacks for resources, once their namespace has been read again.
    waiting: HashMap<ObjectKey, Box<dyn FnOnce() + Send>>,
}

impl Debug for UnservedKind {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Absence").field("lasts", &self.lasts).finish_non_exhaustive()
    }
}

impl<P> Default for Cache<P> {
    fn default() -> Self {
        Self {
            stores: RwLock::default(),
            refused: AtomicBool::new(false),
            absence: Mutex::default(),
        }
    }
}

impl<P> Cache<P> {
    /// The projection of one object.
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<P>> {
        self.first_of(key, |store| store.get(key))
    }

    /// When the last complete list of the key's namespace began, see [`Store::listed_at`].
    pub fn listed_at(&self, key: &ObjectKey) -> Option<Instant> {
        self.first_of(key, Store::listed_at)
    }

    /// All projections that `keep` likes, with their keys.
    pub fn filter(&self, keep: impl Fn(&P) -> bool) -> Vec<(ObjectKey, Arc<P>)> {
        let stores = self.stores.read().unwrap_or_else(PoisonError::into_inner);
        stores.iter().flat_map(|(_, store)| store.filter(&keep)).collect()
    }

    /// Whether all first lists have been read.
    pub fn is_synced(&self) -> bool {
        let stores = self.stores.read().unwrap_or_else(PoisonError::into_inner);
        !stores.is_empty() && stores.iter().all(|(_, store)| store.listed_at().is_some())
    }

    /// Whether all first lists have been read, or the kind is known to be missing or forbidden for now.
    pub fn is_settled(&self) -> bool {
        self.refused.load(Ordering::Relaxed) || self.is_synced()
    }

    /// False, unless the API server does not serve the kind (any more), as far as it was asked: then
    /// what the cache has is of before, and `wake` is called once it is served again and the resource's
    /// namespace has been read. Of one resource the last `wake` counts.
    pub fn when_served(&self, key: &ObjectKey, wake: impl FnOnce() + Send + 'static) -> bool {
        let mut absence = self.absence();
        let is_stale = self.is_stale(&absence, key);
        if is_stale {
            absence.waiting.insert(key.clone(), Box::new(wake));
        }
        is_stale
    }

    /// Returns once [`Cache::is_settled`], or when the time is over.
    pub async fn wait_for_sync(&self, within: Duration) {
        let settled = async {
            while !self.is_settled() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        // A right that is missing keeps a cache empty for ever; that has been said, work goes on.
        let _ = tokio::time::timeout(within, settled).await;
    }

    fn first_of<T>(&self, key: &ObjectKey, look: impl Fn(&Store<P>) -> Option<T>) -> Option<T> {
        let stores = self.stores.read().unwrap_or_else(PoisonError::into_inner);
        let holds = |namespace: &Option<String>| namespace.is_none() || *namespace == key.namespace;
        stores.iter().filter(|(namespace, _)| holds(namespace)).find_map(|(_, store)| look(store))
    }

    /// The stores of these namespaces; those that are there keep what they have.
    fn open(&self, namespaces: &[Option<String>]) -> Vec<NamespaceStore<P>> {
        let mut stores = self.stores.write().unwrap_or_else(PoisonError::into_inner);
        let store = |namespace: &Option<String>| {
            let known = stores.iter().find(|(of, _)| of == namespace);
            known.cloned().unwrap_or_else(|| (namespace.clone(), Arc::default()))
        };
        *stores = namespaces.iter().map(store).collect();
        stores.clone()
    }

    fn refuse(&self, refused: bool) {
        self.refused.store(refused, Ordering::Relaxed);
    }

    fn miss(&self, missing: bool) {
        let mut absence = self.absence();
        if absence.lasts && !missing {
            absence.ended = Some(Instant::now());
        }
        absence.lasts = missing;
        self.refuse(missing);
    }

    /// Wakes what waited for a list that has been read.
    fn listed(&self) {
        let mut absence = self.absence();
        let waiting = std::mem::take(&mut absence.waiting);
        let (waiting, read): (HashMap<_, _>, HashMap<_, _>) =
            waiting.into_iter().partition(|(key, _)| self.is_stale(&absence, key));
        absence.waiting = waiting;
        drop(absence);
        for wake in read.into_values() {
            wake();
        }
    }

    fn is_stale(&self, absence: &UnservedKind, key: &ObjectKey) -> bool {
        let unread = |since| self.listed_at(key).is_none_or(|at| at < since);
        absence.lasts || absence.ended.is_some_and(unread)
    }

    fn absence(&self) -> MutexGuard<'_, UnservedKind> {
        // Nothing panics while it is held.
        self.absence.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What all reflectors of a manager share.
#[derive(Clone)]
pub struct Reflectors {
    /// The connection.
    pub client: Client,
    /// Maps kinds to resources of the API.
    pub mapper: Mapper,
    /// The watched namespaces; `[None]` means all.
    pub namespaces: Arc<[Option<String>]>,
    /// Reports CRDs that may define a missing kind.
    pub definitions: Arc<CrdInformer>,
    /// Stops all reflectors.
    pub stop: CancellationToken,
    /// Tracks the tasks of reflectors.
    pub tasks: TaskTracker,
    /// The runtime for reflectors, apart from that of reconciles, which may compute for a long time.
    pub runtime: Handle,
}

/// What a reflector watches.
#[derive(Clone, Debug)]
pub struct WatchSubject {
    /// The kind.
    pub gvk: GroupVersionKind,
    /// Label selector; `None` selects everything.
    pub selector: Option<String>,
    /// Whole objects or metadata.
    pub content: Content,
    /// The role of the objects.
    pub role: Role,
}

/// The role of the objects of a kind for the manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Resources to reconcile: without them the manager does nothing.
    Primary,
    /// Objects that a resource owns, refers to, or is recorded in.
    Secondary,
}

impl Reflectors {
    /// Runs a task beside the reflectors. A manager that stops waits for it.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn_on(task, &self.runtime);
    }

    /// Starts to watch a kind, in a task that ends with the manager.
    pub fn follow<P, Project, OnChange>(
        &self,
        subject: WatchSubject,
        project: Project,
        on_change: OnChange,
    ) -> Arc<Cache<P>>
    where
        P: Send + Sync + 'static,
        Project: Fn(Item) -> P + Clone + Send + Sync + 'static,
        OnChange: Fn(Change<P>) + Clone + Send + Sync + 'static,
    {
        let cache = Arc::new(Cache::default());
        let (reflectors, filled) = (self.clone(), cache.clone());
        self.spawn(async move {
            let stop = reflectors.stop.clone();
            stop.run_until_cancelled(reflectors.run(subject, &filled, project, on_change)).await;
        });
        cache
    }

    async fn run<P, Project, OnChange>(
        self,
        subject: WatchSubject,
        cache: &Cache<P>,
        project: Project,
        on_change: OnChange,
    ) where
        P: Send + Sync + 'static,
        Project: Fn(Item) -> P + Clone + Send + Sync + 'static,
        OnChange: Fn(Change<P>) + Clone + Send + Sync + 'static,
    {
        let mut pause = UNKNOWN;
        loop {
            let mapping = self.resolve(&subject.gvk, cache).await;
            let begun = Instant::now();
            let namespaces: &[Option<String>] =
                if mapping.namespaced { &self.namespaces } else { &[None] };
            let watches = cache.open(namespaces).into_iter().map(|(namespace, store)| {
                let complain = error_handler(&subject, &mapping.resource, namespace.as_deref());
                let target = Target {
                    resource: mapping.resource.clone(),
                    namespace,
                    selector: subject.selector.clone(),
                    fields: None,
                    content: subject.content,
                    limits: match subject.role {
                        Role::Primary => Limits::RESOURCE,
                        Role::Secondary => Limits::OBJECT,
                    },
                };
                let trouble = move |trouble: &WatchFailure| {
                    cache.refuse(trouble.code == Some(403));
                    complain(trouble);
                };
                let (client, on_change) = (self.client.clone(), on_change.clone());
                let (project, gvk) = (project.clone(), describe(&subject.gvk));
                let project = move |item: Item| {
                    if let Some(refusal) = &item.refusal {
                        let object = ObjectKey::of(&item.object.metadata);
                        tracing::warn!(gvk, %object, %refusal, "only its metadata is read");
                    }
                    project(item)
                };
                Box::pin(async move {
                    let read = async {
                        store.listed_since(begun).await;
                        cache.listed();
                        std::future::pending::<()>().await;
                    };
                    let (of, store) = (target, store.clone());
                    tokio::select! {
                        () = watch::follow(client, of, store, project, on_change, trouble) => {}
                        () = read => {}
                    }
                })
            });
            // Each goes on until its path is not found: then it is not there for the others either.
            futures::future::select_all(watches).await;
            let mut news = self.definitions.of_group(&subject.gvk.group);
            self.definitions.follow(&self);
            cache.miss(true);
            tracing::warn!(gvk = describe(&subject.gvk), "kind is not served any more");
            if begun.elapsed() > MISSING {
                pause = UNKNOWN;
            }
            // Discovery learns of it a little later, and must not be asked without a pause till then.
            if tokio::time::timeout(pause, news.next()).await.is_err() {
                pause = (pause * 2).min(MISSING);
            }
            self.mapper.forget(&subject.gvk);
        }
    }

    /// Waits for a kind until the API server serves it.
    async fn resolve<P>(&self, gvk: &GroupVersionKind, cache: &Cache<P>) -> Mapping {
        let mut told = false;
        let mut pause = UNKNOWN;
        loop {
            // Before it is asked for, so that nothing that comes in between is missed.
            let mut news = self.definitions.of_group(&gvk.group);
            match self.mapper.resolve(gvk).await {
                Ok(mapping) => {
                    cache.miss(false);
                    return mapping;
                }
                Err(error) if error.is_no_match() => {
                    cache.miss(true);
                    if !told {
                        tracing::warn!(gvk = describe(gvk), %error, "kind cannot be watched yet; install its CRD, e.g. by `make install`");
                    }
                    told = true;
                    self.definitions.follow(self);
                    if tokio::time::timeout(MISSING, news.next()).await.is_ok() {
                        self.mapper.forget(gvk);
                    }
                }
                Err(error) => {
                    tracing::warn!(gvk = describe(gvk), %error, retry_in = ?pause, "kind cannot be watched yet");
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(MISSING);
                }
            }
        }
    }
}

/// The rules of a role that would do, in YAML on one line.
fn rules(role: Role, group: &str, plural: &str) -> String {
    let rule = |resource: &str, verbs: &str| {
        format!("{{apiGroups: [\"{group}\"], resources: [{plural}{resource}], verbs: [{verbs}]}}")
    };
    match role {
        Role::Primary => [
            rule("", "get, list, watch, patch"),
            rule("/status", "patch"),
            rule("/finalizers", "update"),
        ]
        .join(", "),
        Role::Secondary => rule("", "list, watch"),
    }
}

/// Says once what is wrong with a watch, and what it takes, until the trouble is another.
fn error_handler(
    subject: &WatchSubject,
    resource: &ApiResource,
    namespace: Option<&str>,
) -> impl Fn(&WatchFailure) + use<> {
    let (gvk, role) = (describe(&subject.gvk), subject.role);
    let scope = namespace.unwrap_or("all namespaces").to_owned();
    let rules = rules(role, &resource.group, &resource.plural);
    let told = std::sync::Mutex::new(None);
    move |trouble| {
        let known = told.lock().map(|mut told| told.replace(trouble.code)).unwrap_or_default();
        let retry_in = trouble.retry_in;
        match trouble.code {
            code if known == Some(code) => {
                tracing::debug!(gvk, scope, message = trouble.message, "watch fails still");
            }
            Some(403) if role == Role::Primary => tracing::error!(
                gvk,
                scope,
                rules,
                "no right to list and watch the operator's own kind: nothing is done for its resources; its role lacks these rules"
            ),
            Some(403) => tracing::warn!(
                gvk,
                scope,
                rules,
                "no right to list and watch this kind: its changes go unnoticed"
            ),
            _ => {
                let message = trouble.message.as_str();
                tracing::warn!(gvk, scope, message, ?retry_in, "watch failed");
            }
        }
    }
}
