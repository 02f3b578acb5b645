//! Whole objects of a kind, typed, in memory: indexed by owner and namespace, and never behind what
//! this process wrote itself.
//!
//! A watch tells of a write some milliseconds after its answer. Who counts objects in between counts
//! wrongly, and makes one too many: so answers of our own writes lie over the watch's cache until the
//! watch has told of them.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use catamaran_cluster::items::Item;
use catamaran_cluster::observed::Observed;
use catamaran_cluster::watch::{Change, Content, ObjectKey};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::{DynamicObject, GroupVersionKind, Selector};

use super::gvk;
use super::index::{ByLabel, Holders, fits};
use super::watches::{Kind, Map, When};
use crate::manager::ManagerContext;
use crate::manager::dependents::{Dependent, KindIndex, is_shared};
use crate::manager::queue::{Key, KindId, Priority, Queue};
use crate::manager::reflectors::{Cache, Role, WatchSubject};

/// How long an answer is believed that the watch says nothing of.
const LAG: Duration = Duration::from_secs(10);

/// What is known of the objects that a child may be among, for deciding whether to write it.
pub(super) trait Known: Send + Sync {
    /// One object.
    fn dependent(&self, key: &ObjectKey) -> Option<Arc<Dependent>>;
    /// When the last complete list of its namespace began.
    fn listed_at(&self, key: &ObjectKey) -> Option<Instant>;
    /// All that belong to a resource.
    fn of(&self, owner: &Key) -> Vec<(ObjectKey, Arc<Dependent>)>;
}

impl Known for Cache<Dependent> {
    fn dependent(&self, key: &ObjectKey) -> Option<Arc<Dependent>> {
        self.get(key)
    }

    fn listed_at(&self, key: &ObjectKey) -> Option<Instant> {
        Cache::listed_at(self, key)
    }

    fn of(&self, owner: &Key) -> Vec<(ObjectKey, Arc<Dependent>)> {
        self.filter(|dependent| dependent.owners.contains(owner))
    }
}

/// The objects of some kind, whichever.
pub(super) trait Stored: Known + Any {
    /// Whether the first list has been read, or there is none to be had.
    fn is_settled(&self) -> bool;
    /// Forgets what a resource held that it did not hold in this reconcile.
    fn end_reconcile(&self, holder: &Key, epoch: u64);
    /// Forgets a resource.
    fn forget(&self, holder: &Key);
    /// An object as the API server answered our write.
    fn wrote(&self, object: &DynamicObject);
    /// An object whose deletion the API server has accepted.
    fn deleted(&self, key: &ObjectKey, uid: &str);
}

/// One object.
pub(super) struct Entry<C> {
    pub meta: ObjectMeta,
    pub dependent: Arc<Dependent>,
    /// The object, or why it does not fit its type.
    pub object: Result<Arc<C>, String>,
}

pub(super) struct Objects<C> {
    gvk: GroupVersionKind,
    kind: KindId,
    queue: Arc<Queue>,
    kinds: Arc<KindIndex>,
    cache: OnceLock<Arc<Cache<Entry<C>>>>,
    when: Option<When<C>>,
    map: Option<Map<C>>,
    state: Mutex<State<C>>,
}

struct State<C> {
    by_owner: HashMap<Key, BTreeSet<ObjectKey>>,
    by_label: ByLabel,
    /// Our own writes that the watch has not told of.
    own: BTreeMap<ObjectKey, Own<C>>,
    holders: Holders,
}

struct Own<C> {
    uid: String,
    at: Instant,
    /// `None`: deleted.
    entry: Option<Arc<Entry<C>>>,
}

/// What a look into the objects finds.
pub(super) struct Found<C> {
    pub entries: Vec<Arc<Entry<C>>>,
    /// Whether some of it is our own word alone: then one looks again.
    pub unconfirmed: bool,
}

impl<C: Kind> Objects<C> {
    pub fn start(
        manager: &ManagerContext,
        kind: KindId,
        selector: String,
        when: Option<When<C>>,
        map: Option<Map<C>>,
    ) -> Arc<Self> {
        let (reflectors, queue, kinds) = manager.dependents.parts();
        let objects = Arc::new(Self {
            gvk: gvk::<C>(),
            kind,
            queue: queue.clone(),
            kinds: kinds.clone(),
            cache: OnceLock::new(),
            when,
            map,
            state: Mutex::new(State {
                by_owner: HashMap::new(),
                by_label: ByLabel::default(),
                own: BTreeMap::new(),
                holders: Holders::default(),
            }),
        });
        let subject = WatchSubject {
            gvk: gvk::<C>(),
            selector: Some(selector).filter(|selector| !selector.is_empty()),
            content: Content::Full,
            role: Role::Secondary,
        };
        let (projecting, told) = (objects.clone(), objects.clone());
        let cache = reflectors.follow(
            subject,
            move |item| projecting.entry(item),
            move |change| told.changed(&change),
        );
        // Cannot be set already: this is the only place that sets it.
        let _ = objects.cache.set(cache);
        objects
    }

    fn entry(&self, item: Item) -> Entry<C> {
        let Item { object, refusal, .. } = item;
        let dependent = Dependent {
            observed: Observed::of(&self.gvk.group, &self.gvk.kind, &object),
            owners: self.kinds.owners(&object.metadata),
            is_shared: is_shared(&object.metadata),
            sight: crate::manager::initial_snapshot::InitialSnapshot::default(),
        };
        let meta = object.metadata.clone();
        if let Some(refusal) = refusal {
            let object = Err(refusal.to_string());
            return Entry { meta, dependent: Arc::new(dependent), object };
        }
        let decoded = contained("decoding", || {
            serde_json::to_value(object).and_then(serde_json::from_value).map(Arc::new)
        });
        let object = match decoded {
            Some(decoded) => decoded.map_err(|error| error.to_string()),
            None => Err("its type panics while it is decoded".to_owned()),
        };
        Entry { meta, dependent: Arc::new(dependent), object }
    }

    fn changed(&self, change: &Change<Entry<C>>) {
        let (key, before, now, word) = match change {
            Change::Seen { key, before, now, .. } => (key, before.as_ref(), Some(now), "changed"),
            Change::Gone { key, last } => (key, Some(last), None, "deleted"),
        };
        let mut woken = {
            let mut state = self.lock();
            state.index(key, before, now);
            state.confirm(key, before, now);
            let metas: Vec<&ObjectMeta> =
                before.into_iter().chain(now).map(|entry| &entry.meta).collect();
            state.holders.concerned(&key.namespace, &metas)
        };
        if !self.matters(before, now) {
            return;
        }
        for entry in before.into_iter().chain(now) {
            woken.extend(entry.dependent.owners.iter().cloned());
            if let (Some(map), Ok(object)) = (&self.map, &entry.object) {
                let named = contained("`maps`", || map(object)).into_iter().flatten();
                woken.extend(named.map(|object| Key { kind: self.kind, object }));
            }
        }
        for key_of_owner in woken {
            let why = format!("{}/{} {word}", self.gvk.kind, key.name);
            self.queue.add(key_of_owner, Priority::Live, &why);
        }
    }

    fn matters(&self, before: Option<&Arc<Entry<C>>>, now: Option<&Arc<Entry<C>>>) -> bool {
        let (Some(when), Some(now)) = (&self.when, now) else { return true };
        let Ok(object) = &now.object else { return true };
        let before = before.and_then(|before| before.object.as_deref().ok());
        contained("`when`", || when(before, object)).unwrap_or(true)
    }

    /// The objects of a namespace that fit a selector; whoever asks is woken when that changes.
    pub fn select(
        &self,
        namespace: Option<&String>,
        selector: &Selector,
        holder: &Key,
        epoch: u64,
    ) -> Found<C> {
        let mut state = self.lock();
        state.holders.hold(holder, selector, epoch);
        let cached = std::cell::OnceCell::new();
        state.by_label.prepare(selector, || {
            let all = self.cache.get().map(|cache| cache.filter(|_| true)).unwrap_or_default();
            cached.get_or_init(|| all).iter().map(|(key, entry)| (key, &entry.meta))
        });
        let namespace = namespace.cloned();
        self.drop_confirmed(&mut state);
        let candidates = state.by_label.candidates(&namespace, selector);
        self.find(&state, candidates, |key, entry| {
            key.namespace == namespace && fits(selector, &entry.meta)
        })
    }

    /// The objects that have a resource as their owner.
    pub fn owned(&self, owner: &Key) -> Found<C> {
        let mut state = self.lock();
        self.drop_confirmed(&mut state);
        let keys = state.by_owner.get(owner).into_iter().flatten();
        self.find(&state, keys, |_, entry| entry.dependent.owners.contains(owner))
    }

    /// One object.
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<Entry<C>>> {
        let state = self.lock();
        let own = state.own.get(key).filter(|own| !self.is_over(key, own));
        match own.map(|own| (&own.entry, &own.uid)) {
            Some((Some(entry), _)) => Some(entry.clone()),
            Some((None, gone)) => self.cached(key).filter(|entry| uid(entry) != *gone),
            None => self.cached(key),
        }
    }

    /// The objects that are wanted among these, and among our own writes.
    fn find<'a>(
        &self,
        state: &State<C>,
        keys: impl Iterator<Item = &'a ObjectKey>,
        want: impl Fn(&ObjectKey, &Entry<C>) -> bool,
    ) -> Found<C> {
        let cached = keys.filter_map(|key| Some((key.clone(), self.cached(key)?)));
        let mut found: BTreeMap<ObjectKey, Arc<Entry<C>>> =
            cached.filter(|(key, entry)| want(key, entry)).collect();
        let mut unconfirmed = false;
        for (key, own) in &state.own {
            match &own.entry {
                Some(entry) if want(key, entry) => {
                    found.insert(key.clone(), entry.clone());
                    unconfirmed = true;
                }
                None if found.get(key).is_some_and(|entry| uid(entry) != own.uid) => {
                    unconfirmed = true;
                }
                _ => _ = found.remove(key),
            }
        }
        Found { entries: found.into_values().collect(), unconfirmed }
    }

    /// Forgets our own writes that a list has confirmed, or that nobody ever will.
    fn drop_confirmed(&self, state: &mut State<C>) {
        state.own.retain(|key, own| !self.is_over(key, own));
    }

    fn is_over(&self, key: &ObjectKey, own: &Own<C>) -> bool {
        own.at.elapsed() >= LAG || self.listed(key).is_some_and(|listed| listed > own.at)
    }

    fn cached(&self, key: &ObjectKey) -> Option<Arc<Entry<C>>> {
        self.cache.get()?.get(key)
    }

    fn listed(&self, key: &ObjectKey) -> Option<Instant> {
        self.cache.get()?.listed_at(key)
    }

    fn lock(&self) -> MutexGuard<'_, State<C>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<C> State<C> {
    fn index(
        &mut self,
        key: &ObjectKey,
        before: Option<&Arc<Entry<C>>>,
        now: Option<&Arc<Entry<C>>>,
    ) {
        for owner in before.into_iter().flat_map(|entry| &entry.dependent.owners) {
            if let Some(owned) = self.by_owner.get_mut(owner) {
                owned.remove(key);
                if owned.is_empty() {
                    self.by_owner.remove(owner);
                }
            }
        }
        for owner in now.into_iter().flat_map(|entry| &entry.dependent.owners) {
            self.by_owner.entry(owner.clone()).or_default().insert(key.clone());
        }
        self.by_label.change(key, before.map(|entry| &entry.meta), now.map(|entry| &entry.meta));
    }

    /// The watch has told of our own write, or of what came after it.
    fn confirm(
        &mut self,
        key: &ObjectKey,
        before: Option<&Arc<Entry<C>>>,
        now: Option<&Arc<Entry<C>>>,
    ) {
        let Some(own) = self.own.get(key) else { return };
        let told = match (now, &own.entry) {
            (Some(now), Some(written)) => version(now) >= version(written),
            (Some(now), None) => uid(now) != own.uid,
            (None, _) => before.is_some_and(|last| uid(last) == own.uid),
        };
        if told {
            self.own.remove(key);
        }
    }
}

impl<C: Kind> Known for Objects<C> {
    fn dependent(&self, key: &ObjectKey) -> Option<Arc<Dependent>> {
        Some(self.cached(key)?.dependent.clone())
    }

    fn listed_at(&self, key: &ObjectKey) -> Option<Instant> {
        self.listed(key)
    }

    fn of(&self, owner: &Key) -> Vec<(ObjectKey, Arc<Dependent>)> {
        let entries = self.owned(owner).entries.into_iter();
        entries.map(|entry| (ObjectKey::of(&entry.meta), entry.dependent.clone())).collect()
    }
}

impl<C: Kind> Stored for Objects<C> {
    fn is_settled(&self) -> bool {
        self.cache.get().is_some_and(|cache| cache.is_settled())
    }

    fn end_reconcile(&self, holder: &Key, epoch: u64) {
        self.lock().holders.release(holder, |held_in| held_in == epoch);
    }

    fn forget(&self, holder: &Key) {
        self.lock().holders.release(holder, |_| false);
    }

    fn wrote(&self, object: &DynamicObject) {
        let key = ObjectKey::of(&object.metadata);
        let mut object = object.clone();
        object.metadata.managed_fields = None;
        let entry = Arc::new(self.entry(object.into()));
        let mut state = self.lock();
        // The watch may have been faster than the answer.
        if self.cached(&key).is_none_or(|cached| version(&cached) < version(&entry)) {
            let own = Own { uid: uid(&entry), at: Instant::now(), entry: Some(entry) };
            state.own.insert(key, own);
        }
    }

    fn deleted(&self, key: &ObjectKey, uid: &str) {
        let own = Own { uid: uid.to_owned(), at: Instant::now(), entry: None };
        self.lock().own.insert(key.clone(), own);
    }
}

/// Runs what a user wrote where a panic would end a watch.
fn contained<T>(what: &str, run: impl FnOnce() -> T) -> Option<T> {
    let outcome = std::panic::catch_unwind(AssertUnwindSafe(run));
    if outcome.is_err() {
        tracing::error!("{what} of a watched object panicked: it is passed over");
    }
    outcome.ok()
}

fn version<C>(entry: &Entry<C>) -> u64 {
    entry.dependent.observed.version
}

fn uid<C>(entry: &Entry<C>) -> String {
    entry.meta.uid.clone().unwrap_or_default()
}
