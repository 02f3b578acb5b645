//! Feeds: what the API server tells, turned into caches and keys of the queue.
//!
//! Each watch is a task with a back-off of its own. A kind that the API server does not serve (yet) is
//! asked for again, ever more rarely, and delays no other.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use catamaran_cluster::mapper::{Mapper, Mapping};
use catamaran_cluster::watch::{self, Change, Content, ObjectKey, Store, Target, Trouble};
use kube::Client;
use kube::core::{DynamicObject, GroupVersionKind};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::watches::describe;

/// A watched namespace (`None` is all of them, or a kind without namespaces) and what is in it.
type NamespaceStore<P> = (Option<String>, Arc<Store<P>>);

/// The caches of one watched kind, one for each namespace that is watched.
#[derive(Debug)]
pub struct Cache<P> {
    /// Set once the kind is known to the API server: only then it is clear whether it has namespaces.
    stores: OnceLock<Vec<NamespaceStore<P>>>,
    /// Whether the API server said that it does not serve the kind.
    missing: AtomicBool,
}

impl<P> Default for Cache<P> {
    fn default() -> Self {
        Self { stores: OnceLock::new(), missing: AtomicBool::new(false) }
    }
}

impl<P> Cache<P> {
    /// The projection of one object.
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<P>> {
        self.stores_of(key).find_map(|store| store.get(key))
    }

    /// When the last complete list of the key's namespace began, see [`Store::listed_at`].
    pub fn listed_at(&self, key: &ObjectKey) -> Option<Instant> {
        self.stores_of(key).find_map(|store| store.listed_at())
    }

    /// All projections that `keep` likes, with their keys.
    pub fn filter(&self, keep: impl Fn(&P) -> bool) -> Vec<(ObjectKey, Arc<P>)> {
        self.stores().iter().flat_map(|(_, store)| store.filter(&keep)).collect()
    }

    /// Whether all first lists have been read.
    pub fn is_synced(&self) -> bool {
        self.stores
            .get()
            .is_some_and(|stores| stores.iter().all(|(_, store)| store.listed_at().is_some()))
    }

    /// Whether all first lists have been read, or the kind is known to be missing for now.
    pub fn is_settled(&self) -> bool {
        self.missing.load(Ordering::Relaxed) || self.is_synced()
    }

    /// Returns once [`Cache::is_settled`], or when the time is over.
    pub async fn settled(&self, within: Duration) {
        let settled = async {
            while !self.is_settled() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        // A right that is missing keeps a cache empty for ever; that has been said, work goes on.
        let _ = tokio::time::timeout(within, settled).await;
    }

    fn stores_of<'a>(&'a self, key: &'a ObjectKey) -> impl Iterator<Item = &'a Arc<Store<P>>> {
        let holds = |namespace: &Option<String>| namespace.is_none() || *namespace == key.namespace;
        self.stores().iter().filter(move |(namespace, _)| holds(namespace)).map(|(_, store)| store)
    }

    fn stores(&self) -> &[NamespaceStore<P>] {
        self.stores.get().map_or(&[], Vec::as_slice)
    }
}

/// What all feeds of a manager share.
#[derive(Clone)]
pub struct Feeds {
    /// The connection.
    pub client: Client,
    /// Which resource serves a kind.
    pub mapper: Mapper,
    /// The watched namespaces; `[None]` is all of them.
    pub namespaces: Arc<[Option<String>]>,
    /// Ends every feed.
    pub stop: CancellationToken,
    /// Keeps count of the feeds' tasks.
    pub tasks: TaskTracker,
}

/// What one feed watches.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The kind.
    pub gvk: GroupVersionKind,
    /// Label selector; `None` is everything.
    pub selector: Option<String>,
    /// Whole objects or metadata.
    pub content: Content,
}

impl Feeds {
    /// Starts to follow a kind, in a task that ends with the manager.
    pub fn follow<P, Project, OnChange>(
        &self,
        subject: Subject,
        project: Project,
        on_change: OnChange,
    ) -> Arc<Cache<P>>
    where
        P: Send + Sync + 'static,
        Project: Fn(DynamicObject) -> P + Clone + Send + Sync + 'static,
        OnChange: Fn(Change<P>) + Clone + Send + Sync + 'static,
    {
        let cache = Arc::new(Cache::default());
        let (feeds, filled) = (self.clone(), cache.clone());
        self.tasks.spawn(async move {
            let stop = feeds.stop.clone();
            stop.run_until_cancelled(feeds.run(subject, &filled, project, on_change)).await;
        });
        cache
    }

    async fn run<P, Project, OnChange>(
        self,
        subject: Subject,
        cache: &Cache<P>,
        project: Project,
        on_change: OnChange,
    ) where
        P: Send + Sync + 'static,
        Project: Fn(DynamicObject) -> P + Clone + Send + Sync + 'static,
        OnChange: Fn(Change<P>) + Clone + Send + Sync + 'static,
    {
        let mapping = self.resolve(&subject.gvk, &cache.missing).await;
        cache.missing.store(false, Ordering::Relaxed);
        let namespaces: &[Option<String>] =
            if mapping.namespaced { &self.namespaces } else { &[None] };
        let stores: Vec<NamespaceStore<P>> =
            namespaces.iter().map(|namespace| (namespace.clone(), Arc::default())).collect();
        let follow = |namespace: &Option<String>, store: &Arc<Store<P>>| {
            let target = Target {
                resource: mapping.resource.clone(),
                namespace: namespace.clone(),
                selector: subject.selector.clone(),
                content: subject.content,
            };
            let complain = complaint(&subject.gvk, namespace.as_deref());
            watch::follow(
                self.client.clone(),
                target,
                store.clone(),
                project.clone(),
                on_change.clone(),
                complain,
            )
        };
        let watches: Vec<_> =
            stores.iter().map(|(namespace, store)| follow(namespace, store)).collect();
        // Cannot be set already: this is the only place that sets it, and it runs once per cache.
        let _ = cache.stores.set(stores);
        futures::future::join_all(watches).await;
    }

    async fn resolve(&self, gvk: &GroupVersionKind, missing: &AtomicBool) -> Mapping {
        let mut pause = Duration::from_secs(1);
        loop {
            match self.mapper.resolve(gvk).await {
                Ok(mapping) => return mapping,
                Err(error) => {
                    missing.store(error.is_no_match(), Ordering::Relaxed);
                    let hint = if error.is_no_match() {
                        "; install its CRD, e.g. by `make install`"
                    } else {
                        ""
                    };
                    tracing::warn!(gvk = describe(gvk), %error, retry_in = ?pause, "kind cannot be watched yet{hint}");
                }
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_mins(1));
        }
    }
}

/// Says once what is wrong with a watch, and what it takes, until the trouble is another.
fn complaint(gvk: &GroupVersionKind, namespace: Option<&str>) -> impl Fn(&Trouble) + use<> {
    let (gvk, scope) = (describe(gvk), namespace.unwrap_or("all namespaces").to_owned());
    let told = std::sync::Mutex::new(None);
    move |trouble| {
        let known = told.lock().map(|mut told| told.replace(trouble.code)).unwrap_or_default();
        let retry_in = trouble.retry_in;
        match trouble.code {
            code if known == Some(code) => {
                tracing::debug!(gvk, scope, message = trouble.message, "watch fails still");
            }
            Some(403) => tracing::warn!(
                gvk,
                scope,
                "no right to list and watch this kind: its changes go unnoticed"
            ),
            Some(404) => tracing::warn!(
                gvk,
                scope,
                ?retry_in,
                "kind is not served (any more); if its CRD is missing, install it"
            ),
            _ => {
                let message = trouble.message.as_str();
                tracing::warn!(gvk, scope, message, ?retry_in, "watch failed");
            }
        }
    }
}
