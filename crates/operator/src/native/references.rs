//! References: objects that a resource names and somebody else makes.
//!
//! A kind that is referred to is watched as metadata; the objects themselves are read when they are
//! referred to and have changed since, and kept for as long as somebody refers to them. So a reference
//! to one Secret does not bring all Secrets of a cluster into memory.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use catamaran_cluster::apply::{Applier, Target};
use catamaran_cluster::mapper::Mapper;
use catamaran_cluster::readiness::{self, Readiness};
use catamaran_cluster::watch::{Change, Content, ObjectKey};
use kube::core::GroupVersionKind;
use serde_json::Value;

use super::context::Context;
use super::watches::Kind;
use super::{Error, Managed, gvk};
use crate::manager::ManagerContext;
use crate::manager::queue::{Key, Priority, Queue};
use crate::manager::reflectors::{Cache, Reflectors, Role, WatchSubject};

/// How long an object that was read is believed to be there although the watch does not tell of it.
const LAG: Duration = Duration::from_secs(10);

/// What became of a reference.
#[derive(Clone, Debug)]
pub enum Reference<C> {
    /// There is no such object, or not even its kind. The resource is woken when it appears.
    Missing {
        /// Which one, for people.
        target: String,
    },
    /// It is there and not ready yet. The resource is woken when it changes.
    NotReady {
        /// The object.
        object: Arc<C>,
        /// Which one, for people.
        target: String,
        /// What it waits for.
        message: String,
    },
    /// It is there, and does what it is for as far as Kubernetes can tell.
    Ready(Arc<C>),
}

impl<C> Reference<C> {
    /// The object, if it is there and ready.
    ///
    /// # Errors
    /// [`Error::Waiting`], with the reason `MissingDependency` or `WaitingForDependency`.
    pub fn ready(self) -> Result<Arc<C>, Error> {
        match self {
            Self::NotReady { target, message, .. } => Err(Error::Waiting {
                reason: "WaitingForDependency".to_owned(),
                message: format!("{target} is not ready: {message}"),
            }),
            found => found.found(),
        }
    }

    /// The object, if it is there, ready or not.
    ///
    /// # Errors
    /// [`Error::Waiting`], with the reason `MissingDependency`.
    pub fn found(self) -> Result<Arc<C>, Error> {
        match self {
            Self::Ready(object) | Self::NotReady { object, .. } => Ok(object),
            Self::Missing { target } => Err(Error::Waiting {
                reason: "MissingDependency".to_owned(),
                message: format!("{target} does not exist"),
            }),
        }
    }
}

impl<K: Managed> Context<'_, K> {
    /// An object that this resource refers to, in any namespace (`None` for its own, or for none where
    /// the kind has none): whether it is missing, not ready or ready. For as long as the resource refers
    /// to it in every reconcile, each change of it wakes the resource. No request is made unless it
    /// changed since.
    ///
    /// # Errors
    /// What the API server refuses; an object that does not fit its kind.
    pub async fn reference<C: Kind>(
        &self,
        namespace: impl Into<Option<&str>>,
        name: &str,
    ) -> Result<Reference<C>, Error> {
        self.reference_to(self.key().beside(namespace.into(), name)).await
    }

    /// Not generic in how the namespace is given, so that it is compiled once per kind.
    pub(super) async fn reference_to<C: Kind>(
        &self,
        key: ObjectKey,
    ) -> Result<Reference<C>, Error> {
        let by = (&self.shared().mapper, &self.shared().applier);
        let holder = (self.key(), self.epoch());
        self.shared().references.find(by, key, holder).await
    }
}

/// An object of a kind.
type Referred = (GroupVersionKind, ObjectKey);
/// A kind in one namespace, or in all that are watched.
type Place = (GroupVersionKind, Option<String>);

/// All references of the resources of one kind.
pub(crate) struct References {
    reflectors: Reflectors,
    queue: Arc<Queue>,
    watched: Mutex<HashMap<Place, Arc<Cache<Seen>>>>,
    held: Arc<Mutex<HashMap<Referred, Held>>>,
}

impl fmt::Debug for References {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("References").finish_non_exhaustive()
    }
}

/// What the watch tells of an object.
#[derive(Clone, Copy, Debug)]
struct Seen {
    version: u64,
}

#[derive(Debug, Default)]
struct Held {
    /// Who refers to it, and in which reconcile it last did.
    holders: HashMap<Key, u64>,
    read: Option<Read>,
}

#[derive(Clone, Debug)]
struct Read {
    version: u64,
    at: Instant,
    object: Arc<Value>,
}

/// An object that is referred to, as it was read.
pub(super) struct Referent {
    pub object: Arc<Value>,
    pub readiness: Readiness,
}

impl References {
    pub fn new(manager: &ManagerContext) -> Self {
        let (reflectors, queue, _) = manager.dependents.parts();
        Self {
            reflectors: reflectors.clone(),
            queue: queue.clone(),
            watched: Mutex::default(),
            held: Arc::default(),
        }
    }

    /// Watches a kind wherever the operator watches at all.
    pub fn require(&self, gvk: &GroupVersionKind) {
        for namespace in self.reflectors.namespaces.iter() {
            self.watch(gvk, namespace.as_ref());
        }
    }

    /// An object by its type, see [`Context::reference`].
    pub async fn find<C: Kind>(
        &self,
        by: (&Mapper, &Applier),
        key: ObjectKey,
        holder: (&Key, u64),
    ) -> Result<Reference<C>, Error> {
        let gvk = gvk::<C>();
        let target = format!("{} \"{key}\"", gvk.kind);
        let Some(found) = self.get(by, &gvk, key, holder).await? else {
            return Ok(Reference::Missing { target });
        };
        let object = C::deserialize(&*found.object).map_err(|error| {
            Error::waiting("InvalidObject", format!("{target} does not fit its kind: {error}"))
        })?;
        let object = Arc::new(object);
        Ok(match found.readiness {
            Readiness::Ready => Reference::Ready(object),
            Readiness::Pending { message, .. } | Readiness::Failed { message, .. } => {
                Reference::NotReady { object, target, message }
            }
        })
    }

    /// The object, without a request if the watch has told of no change since it was read.
    pub(super) async fn get(
        &self,
        (mapper, applier): (&Mapper, &Applier),
        gvk: &GroupVersionKind,
        key: ObjectKey,
        (holder, epoch): (&Key, u64),
    ) -> Result<Option<Referent>, Error> {
        let mapping = match mapper.resolve(gvk).await {
            Ok(mapping) => Some(mapping),
            Err(error) if error.is_no_match() => None,
            Err(error) => return Err(error.into()),
        };
        let has_none = mapping.as_ref().is_some_and(|mapping| !mapping.namespaced);
        let key = ObjectKey { namespace: key.namespace.filter(|_| !has_none), ..key };
        let cache = self.watch(gvk, key.namespace.as_ref());
        let referred = (gvk.clone(), key);
        // Held before looking: a change from here on wakes the holder.
        self.held().entry(referred.clone()).or_default().holders.insert(holder.clone(), epoch);
        let Some(mapping) = mapping else { return Ok(None) };
        let object = match self.known(&cache, &referred) {
            Known::Is(object) => object,
            Known::Missing => return Ok(None),
            Known::Unknown => {
                let ObjectKey { namespace, name } = referred.1.clone();
                let target = Target { resource: mapping.resource, namespace, name };
                let Some(object) = applier.get(&target).await? else { return Ok(None) };
                self.remember(&referred, object)
            }
        };
        let readiness = readiness::assess(&object);
        Ok(Some(Referent { object, readiness }))
    }

    /// Keeps an object as it was just read, or as the API server answered a write.
    pub fn remember(&self, referred: &Referred, mut object: Value) -> Arc<Value> {
        let version = object.pointer("/metadata/resourceVersion").and_then(Value::as_str);
        let version = version.and_then(|version| version.parse().ok()).unwrap_or(0);
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
        let object = Arc::new(object);
        if let Some(held) = self.held().get_mut(referred) {
            held.read = Some(Read { version, at: Instant::now(), object: object.clone() });
        }
        object
    }

    /// Forgets what a resource does not refer to any more.
    pub fn end_reconcile(&self, holder: &Key, epoch: u64) {
        self.release(holder, |held_in| held_in == epoch);
    }

    /// Forgets a resource.
    pub fn forget(&self, holder: &Key) {
        self.release(holder, |_| false);
    }

    fn release(&self, holder: &Key, keep: impl Fn(u64) -> bool) {
        self.held().retain(|_, held| {
            if held.holders.get(holder).is_some_and(|held_in| !keep(*held_in)) {
                held.holders.remove(holder);
            }
            !held.holders.is_empty()
        });
    }

    fn known(&self, cache: &Cache<Seen>, referred: &Referred) -> Known {
        let mut all = self.held();
        let Some(held) = all.get_mut(referred) else { return Known::Unknown };
        if !cache.is_synced() {
            return Known::Unknown;
        }
        match (cache.get(&referred.1), &held.read) {
            (Some(seen), Some(read)) if read.version >= seen.version => {
                Known::Is(read.object.clone())
            }
            (Some(_), _) => Known::Unknown,
            (None, Some(read))
                if read.at.elapsed() < LAG
                    && cache.listed_at(&referred.1).is_none_or(|listed| listed < read.at) =>
            {
                // Perhaps the watch has not told of it yet, perhaps it has told of its end.
                Known::Unknown
            }
            (None, _) => {
                held.read = None;
                Known::Missing
            }
        }
    }

    fn watch(&self, gvk: &GroupVersionKind, namespace: Option<&String>) -> Arc<Cache<Seen>> {
        // Where all namespaces are watched, one watch does for all of a kind.
        let everywhere = self.reflectors.namespaces.iter().any(Option::is_none);
        let place = (gvk.clone(), namespace.filter(|_| !everywhere).cloned());
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        watched
            .entry(place)
            .or_insert_with_key(|(_, namespace)| self.start(gvk, namespace.as_ref()))
            .clone()
    }

    fn start(&self, gvk: &GroupVersionKind, namespace: Option<&String>) -> Arc<Cache<Seen>> {
        let reflectors = match namespace {
            None => self.reflectors.clone(),
            some => Reflectors { namespaces: [some.cloned()].into(), ..self.reflectors.clone() },
        };
        let subject = WatchSubject {
            gvk: gvk.clone(),
            selector: None,
            content: Content::Metadata,
            role: Role::Secondary,
        };
        let (queue, held, gvk) = (self.queue.clone(), self.held.clone(), gvk.clone());
        reflectors.follow(
            subject,
            |item| {
                let version = item.object.metadata.resource_version.unwrap_or_default();
                Seen { version: version.parse().unwrap_or(u64::MAX) }
            },
            move |change| wake(&queue, &held, &gvk, &change),
        )
    }

    fn held(&self) -> MutexGuard<'_, HashMap<Referred, Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

enum Known {
    Is(Arc<Value>),
    Missing,
    Unknown,
}

fn wake(
    queue: &Queue,
    held: &Mutex<HashMap<Referred, Held>>,
    gvk: &GroupVersionKind,
    change: &Change<Seen>,
) {
    let (key, version, word) = match change {
        Change::Seen { key, now, .. } => (key, now.version, "changed"),
        Change::Gone { key, .. } => (key, u64::MAX, "deleted"),
    };
    let held = held.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(held) = held.get(&(gvk.clone(), key.clone())) else { return };
    // What was read already is no news.
    if held.read.as_ref().is_some_and(|read| read.version >= version) {
        return;
    }
    for holder in held.holders.keys() {
        queue.add(holder.clone(), Priority::Live, &format!("{}/{} {word}", gvk.kind, key.name));
    }
}
