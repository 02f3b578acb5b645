//! Watches for a resource that waits for something that no other watch reports: the pods of a workload
//! that is not ready, a CRD that is not established, an object that is being deleted. They end with the wait.
//!
//! Each watch needs a connection, so only some resources have one at a time. For the others, and without
//! the right to watch, the operator makes requests from time to time.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use catamaran_cluster::bounds::Limits;
use catamaran_cluster::diagnosis::{FailureCause, core};
use catamaran_cluster::missing_permissions::MissingPermissions;
use catamaran_cluster::watch::{self, Change, Content, Store, Target, WatchFailure};
use kube::core::{ApiResource, DynamicObject};
use tokio_util::task::AbortOnDropHandle;

use crate::manager::queue::{Key, Queue};
use crate::manager::reflectors::Reflectors;

/// How many resources have watches at a time.
const MOST: usize = 64;
/// Changes within this time cause one reconcile.
const BEAT: Duration = Duration::from_secs(1);

/// The readiness watches of a manager; clones share them.
#[derive(Clone)]
pub(crate) struct ReadinessWatches {
    reflectors: Reflectors,
    queue: Arc<Queue>,
    open: Arc<Mutex<HashMap<Key, ReleaseWatches>>>,
    rights: Arc<MissingPermissions>,
}

/// The watches of one resource.
struct ReleaseWatches {
    watches: HashMap<WatchTarget, Watch>,
    answer: Option<CachedDiagnosis>,
    /// Whether something changed since the last diagnosis.
    news: Arc<AtomicBool>,
    /// When the watch started, or reported the last change.
    since: Arc<Mutex<Instant>>,
}

/// One watch; ends when it is dropped.
struct Watch {
    store: Arc<Store<u64>>,
    troubled: Arc<AtomicBool>,
    _task: AbortOnDropHandle<()>,
}

/// The result of a diagnosis, and its inputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CachedDiagnosis {
    /// Identifies the inputs.
    pub question: u64,
    pub cause: Option<FailureCause>,
}

/// What to watch: objects of a kind in one place.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct WatchTarget {
    pub resource: ApiResource,
    pub namespace: Option<String>,
    pub labels: Option<String>,
    pub fields: Option<String>,
}

impl WatchTarget {
    /// The pods that match these labels.
    pub fn pods(namespace: &str, labels: &str) -> Self {
        let namespace = Some(namespace.to_owned());
        Self {
            resource: core("Pod", "pods"),
            namespace,
            labels: Some(labels.to_owned()),
            fields: None,
        }
    }

    /// The events that match these fields.
    pub fn events(namespace: &str, fields: &str) -> Self {
        let namespace = Some(namespace.to_owned());
        Self {
            resource: core("Event", "events"),
            namespace,
            labels: None,
            fields: Some(fields.to_owned()),
        }
    }

    /// One object, by its name.
    pub fn object(resource: ApiResource, namespace: Option<&str>, name: &str) -> Self {
        let (namespace, fields) =
            (namespace.map(str::to_owned), Some(format!("metadata.name={name}")));
        Self { resource, namespace, labels: None, fields }
    }
}

impl ReadinessWatches {
    /// No watches yet.
    pub fn new(reflectors: Reflectors, queue: Arc<Queue>) -> Self {
        Self { reflectors, queue, open: Arc::default(), rights: Arc::default() }
    }

    /// Watches these targets, and no others, for a resource; a change causes a reconcile. Whether all watches work.
    pub fn watch(&self, key: &Key, subjects: impl IntoIterator<Item = WatchTarget>) -> bool {
        let mut open = self.open();
        let watched =
            open.values().filter(|release_watches| !release_watches.watches.is_empty()).count();
        if watched >= MOST && !open.contains_key(key) {
            return false;
        }
        let release_watches = open.entry(key.clone()).or_insert_with(|| ReleaseWatches {
            watches: HashMap::new(),
            answer: None,
            news: Arc::default(),
            since: Arc::new(Mutex::new(Instant::now())),
        });
        let mut before = std::mem::take(&mut release_watches.watches);
        for subject in subjects {
            let watch = before.remove(&subject);
            let watch =
                watch.unwrap_or_else(|| self.start(key, &subject, release_watches.change_signal()));
            release_watches.watches.insert(subject, watch);
        }
        release_watches.delivers()
    }

    /// For how long no watch has reported a change.
    pub fn idle_time(&self, key: &Key) -> Duration {
        let open = self.open();
        let since = open.get(key).map(|release_watches| *lock(&release_watches.since));
        since.map(|since| since.elapsed()).unwrap_or_default()
    }

    /// The last diagnosis, if its inputs are the same and nothing changed since. The watches continue.
    pub fn cached_diagnosis(&self, key: &Key, question: u64) -> Option<CachedDiagnosis> {
        let open = self.open();
        let release_watches = open.get(key).filter(|release_watches| release_watches.delivers())?;
        let answer =
            release_watches.answer.as_ref().filter(|answer| answer.question == question)?;
        (!release_watches.news.load(Ordering::Relaxed)).then(|| answer.clone())
    }

    /// Starts a diagnosis: later changes invalidate it.
    pub fn start_diagnosis(&self, key: &Key) {
        if let Some(release_watches) = self.open().get(key) {
            release_watches.news.store(false, Ordering::Relaxed);
        }
    }

    /// Stores a diagnosis.
    pub fn store_diagnosis(&self, key: &Key, answer: CachedDiagnosis) {
        if let Some(release_watches) = self.open().get_mut(key) {
            release_watches.answer = Some(answer);
        }
    }

    /// Ends the watches of a resource.
    pub fn end(&self, key: &Key) {
        let ended = self.open().remove(key);
        drop(ended);
    }

    fn start(&self, key: &Key, subject: &WatchTarget, (news, since): ChangeSignal) -> Watch {
        let target = Target {
            resource: subject.resource.clone(),
            namespace: subject.namespace.clone(),
            selector: subject.labels.clone(),
            fields: subject.fields.clone(),
            content: Content::Full,
            limits: Limits::OBJECT,
        };
        let (store, troubled): (Arc<Store<u64>>, Arc<AtomicBool>) = Default::default();
        let (queue, key, kind) = (self.queue.clone(), key.clone(), subject.resource.kind.clone());
        let wake = move |change: Change<u64>| {
            let name = match change {
                Change::Seen { before: Some(before), now, .. } if before == now => return,
                Change::Seen { key, .. } | Change::Gone { key, .. } => key.name,
            };
            news.store(true, Ordering::Relaxed);
            *lock(&since) = Instant::now();
            queue.add_after(key.clone(), BEAT, &format!("{kind}/{name} changed"));
        };
        let complain = self.error_handler(&subject.resource.plural, troubled.clone());
        let client = self.reflectors.client.clone();
        let followed =
            watch::follow(client, target, store.clone(), |it| digest(&it.object), wake, complain);
        let stop = self.reflectors.stop.clone();
        let task = self.reflectors.runtime.spawn(async move {
            stop.run_until_cancelled(followed).await;
        });
        Watch { store, troubled, _task: AbortOnDropHandle::new(task) }
    }

    fn error_handler(
        &self,
        plural: &str,
        troubled: Arc<AtomicBool>,
    ) -> impl Fn(&WatchFailure) + use<> {
        let (rights, to) = (self.rights.clone(), format!("list and watch {plural}"));
        move |trouble| {
            troubled.store(true, Ordering::Relaxed);
            if trouble.code == Some(403) {
                rights.warn_once(&to, "what a release waits for is asked for");
            }
        }
    }

    fn open(&self) -> MutexGuard<'_, HashMap<Key, ReleaseWatches>> {
        lock(&self.open)
    }
}

/// Where a watch reports changes.
type ChangeSignal = (Arc<AtomicBool>, Arc<Mutex<Instant>>);

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ReleaseWatches {
    fn change_signal(&self) -> ChangeSignal {
        (self.news.clone(), self.since.clone())
    }

    fn delivers(&self) -> bool {
        self.watches.values().all(|watch| {
            watch.store.listed_at().is_some() && !watch.troubled.load(Ordering::Relaxed)
        })
    }
}

/// A hash of the fields that matter: of an event its message, of other objects all but counters.
fn digest(object: &DynamicObject) -> u64 {
    let mut hasher = DefaultHasher::new();
    object.metadata.uid.hash(&mut hasher);
    object.metadata.generation.hash(&mut hasher);
    object.metadata.finalizers.hash(&mut hasher);
    object.metadata.deletion_timestamp.is_some().hash(&mut hasher);
    for field in ["reason", "message", "status"] {
        object.data.get(field).hash(&mut hasher);
    }
    hasher.finish()
}
