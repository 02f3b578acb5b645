//! A watch: one task that follows it for ever, with a back-off of its own.
//!
//! kube's `Controller` joins all watches behind one back-off, so that one missing kind delays every other;
//! its shared streams lose deletes. Here each watch is a future that the caller spawns. Errors stay inside
//! of it; objects go into a [`Store`], and each [`Change`] to the caller. Objects are decoded one by one as
//! they arrive ([`crate::items`]), reduced to a projection, and dropped. One that cannot be decoded reaches
//! the caller as well, with the reason.

mod requests;

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use kube::Client;
use kube::core::{ApiResource, ObjectMeta};
use kube::runtime::watcher::Event;
use serde_json::Value;
use tokio::sync::watch::Sender;

use crate::bounds::Limits;
use crate::items::Item;
use requests::{Error, Page, Requests};

/// Namespace (absent for cluster-scoped objects) and name: identifies an object of a kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectKey {
    /// The namespace; `None` for a cluster-scoped object.
    pub namespace: Option<String>,
    /// The name.
    pub name: String,
}

impl ObjectKey {
    /// The key of the object with this metadata.
    pub fn of(meta: &ObjectMeta) -> Self {
        Self { namespace: meta.namespace.clone(), name: meta.name.clone().unwrap_or_default() }
    }
}

impl std::fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{namespace}/{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// What the API server should send.
#[derive(Clone, Debug)]
pub struct Target {
    /// The resource, from discovery.
    pub resource: ApiResource,
    /// One namespace, or all.
    pub namespace: Option<String>,
    /// A label selector in the form of `kubectl -l`; `None` is everything.
    pub selector: Option<String>,
    /// A field selector, such as `metadata.name=a`.
    pub fields: Option<String>,
    /// Whole objects or their metadata alone.
    pub content: Content,
    /// The limits for decoding an object.
    pub limits: Limits,
}

/// How much of each object is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// The whole object.
    Full,
    /// The same, and in the first list `managedFields`, too, which are left out otherwise.
    Owned,
    /// Metadata: [`DynamicObject::data`] is null.
    Metadata,
    /// The same, after a list of whole objects with `managedFields`: one more request, in pages, instead of one
    /// for each object. Changes between the two are metadata only.
    OwnedThenMetadata,
}

/// The size of the first page of the list with which a watch begins. The size of further pages follows from
/// the bytes of the pages before.
pub const PAGE: u32 = 50;

/// A change of an object, as far as its projection shows it.
#[derive(Debug)]
pub enum Change<P> {
    /// The object exists, new or with another resourceVersion.
    Seen {
        /// Which object.
        key: ObjectKey,
        /// Its projection before, if it was known.
        before: Option<Arc<P>>,
        /// Its projection now.
        now: Arc<P>,
        /// True during a (re)list: such work may wait behind live changes.
        listed: bool,
    },
    /// The object does not exist any more; also if it was deleted while the watch was down.
    Gone {
        /// Which object.
        key: ObjectKey,
        /// Its last known projection.
        last: Arc<P>,
    },
}

/// Why a watch delivers nothing at present.
#[derive(Clone, Debug)]
pub struct WatchFailure {
    /// HTTP status of the API server's answer, if it gave one.
    pub code: Option<u16>,
    /// The error, for logs.
    pub message: String,
    /// When the next attempt will be made.
    pub retry_in: Duration,
}

/// The projections of all objects of a watch, shared between the watch and its readers.
#[derive(Debug)]
pub struct Store<P> {
    objects: RwLock<HashMap<ObjectKey, Entry<P>>>,
    listed: Sender<Option<Instant>>,
}

#[derive(Debug)]
struct Entry<P> {
    version: String,
    value: Arc<P>,
}

impl<P> Default for Store<P> {
    fn default() -> Self {
        Self { objects: RwLock::default(), listed: Sender::new(None) }
    }
}

impl<P> Store<P> {
    /// The projection of one object.
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<P>> {
        let objects = self.objects.read().unwrap_or_else(PoisonError::into_inner);
        objects.get(key).map(|entry| entry.value.clone())
    }

    /// All projections for which `keep` returns true, with their keys.
    pub fn filter(&self, keep: impl Fn(&P) -> bool) -> Vec<(ObjectKey, Arc<P>)> {
        let objects = self.objects.read().unwrap_or_else(PoisonError::into_inner);
        objects
            .iter()
            .filter(|(_, entry)| keep(&entry.value))
            .map(|(key, entry)| (key.clone(), entry.value.clone()))
            .collect()
    }

    /// When the last complete list began; `None` before the first one. An object that was written before and is
    /// not here does not exist any more.
    pub fn listed_at(&self) -> Option<Instant> {
        *self.listed.borrow()
    }

    /// Returns once a list is complete that began at `begun` or later.
    pub async fn listed_since(&self, begun: Instant) {
        let is_listed = |at: &Option<Instant>| at.is_some_and(|at| at >= begun);
        // The watch lives as long as this borrow: there is no error.
        let _ = self.listed.subscribe().wait_for(is_listed).await;
    }

    fn insert(&self, key: ObjectKey, version: &str, value: P, listed: bool) -> Option<Change<P>> {
        let now = Arc::new(value);
        let mut objects = self.objects.write().unwrap_or_else(PoisonError::into_inner);
        let before =
            objects.insert(key.clone(), Entry { version: version.to_owned(), value: now.clone() });
        if before.as_ref().is_some_and(|entry| entry.version == version) {
            return None; // a relist told what was known already
        }
        Some(Change::Seen { key, before: before.map(|entry| entry.value), now, listed })
    }

    fn remove(&self, key: &ObjectKey) -> Option<Change<P>> {
        let mut objects = self.objects.write().unwrap_or_else(PoisonError::into_inner);
        let last = objects.remove(key)?;
        Some(Change::Gone { key: key.clone(), last: last.value })
    }

    fn keys(&self) -> HashSet<ObjectKey> {
        let objects = self.objects.read().unwrap_or_else(PoisonError::into_inner);
        objects.keys().cloned().collect()
    }
}

/// Follows a watch until the returned future is dropped, or the API server does not serve the kind (any
/// more): then it returns, and the store keeps its objects.
///
/// `project` reduces each object. `on_change` receives every change after the store has it, and must not
/// block. `on_trouble` receives errors. The watch is retried after 0.8 s, doubling up to 30 s; after 2 s,
/// 8 s, 32 s and then a minute if the kind is forbidden, because no event reports a right that was granted.
pub async fn follow<P>(
    client: Client,
    target: Target,
    store: Arc<Store<P>>,
    project: impl Fn(Item) -> P,
    on_change: impl Fn(Change<P>),
    on_trouble: impl Fn(&WatchFailure),
) {
    let content = target.content;
    let requests = Requests::new(client, target);
    let first = match content {
        Content::OwnedThenMetadata => Box::pin(whole(&requests, &project)).await,
        _ => HashMap::new(),
    };
    let mut follower = Follower { store: &store, project, on_change, listed: None, content, first };
    let mut backoff = Backoff::default();
    let mut version = None;
    loop {
        let outcome = match &mut version {
            None => Box::pin(list(&requests, &mut follower, &mut backoff)).await.map(Some),
            Some(version) => {
                let on = |event| follower.event(event, &mut backoff);
                requests.events(version, on).await.map(|()| None)
            }
        };
        match outcome {
            Ok(Some(listed)) => version = Some(listed),
            Ok(None) => {} // the API server ends every watch after some minutes
            Err(error) => match error.code() {
                Some(404) => return,
                code => {
                    if error.is_desynced() {
                        version = None;
                    }
                    backoff.pause(code, &error, &on_trouble).await;
                }
            },
        }
    }
}

/// Reads a whole list; returns the resourceVersion from which to watch.
async fn list<P, Project, OnChange>(
    requests: &Requests,
    follower: &mut Follower<'_, P, Project, OnChange>,
    backoff: &mut Backoff,
) -> Result<String, Error>
where
    Project: Fn(Item) -> P,
    OnChange: Fn(Change<P>),
{
    follower.event(Event::Init, backoff);
    let owned = follower.content == Content::Owned && follower.store.listed_at().is_none();
    let mut pages = requests.pages(owned);
    loop {
        let page = pages.next(|item| follower.event(Event::InitApply(item), backoff)).await?;
        if let Page::Last(version) = page {
            follower.event(Event::InitDone, backoff);
            return Ok(version);
        }
    }
}

/// The projections of whole objects, and their versions. Objects that cannot be listed are read later, one
/// by one.
async fn whole<P>(
    requests: &Requests,
    project: &impl Fn(Item) -> P,
) -> HashMap<ObjectKey, (String, P)> {
    let mut found = HashMap::new();
    let mut pages = requests.whole();
    let mut keep = |item: Item| {
        let version = item.object.metadata.resource_version.clone().unwrap_or_default();
        found.insert(ObjectKey::of(&item.object.metadata), (version, project(item)));
    };
    while let Ok(Page::More) = pages.next(&mut keep).await {}
    found
}

struct Follower<'a, P, Project, OnChange> {
    store: &'a Store<P>,
    project: Project,
    on_change: OnChange,
    /// During a list: the keys that it has not confirmed yet.
    listed: Option<(Instant, HashSet<ObjectKey>)>,
    content: Content,
    /// The objects before the first list, with their versions.
    first: HashMap<ObjectKey, (String, P)>,
}

impl<P, Project, OnChange> Follower<'_, P, Project, OnChange>
where
    Project: Fn(Item) -> P,
    OnChange: Fn(Change<P>),
{
    fn event(&mut self, event: Event<Item>, backoff: &mut Backoff) {
        match event {
            Event::Init => self.listed = Some((Instant::now(), self.store.keys())),
            Event::InitApply(item) => self.seen(item, true),
            Event::InitDone => {
                backoff.reset();
                self.first = HashMap::new();
                // Objects that were deleted while the watch was down are reported as deleted: kube drops them.
                if let Some((began, unconfirmed)) = self.listed.take() {
                    for key in unconfirmed {
                        self.gone(&key);
                    }
                    self.store.listed.send_replace(Some(began));
                }
            }
            Event::Apply(item) => {
                backoff.reset();
                self.seen(item, false);
            }
            Event::Delete(item) => {
                backoff.reset();
                self.gone(&ObjectKey::of(&item.object.metadata));
            }
        }
    }

    fn seen(&mut self, mut item: Item, listed: bool) {
        let key = ObjectKey::of(&item.object.metadata);
        if key.name.is_empty() {
            let refusal = item.refusal.map(|refusal| refusal.to_string());
            tracing::warn!(refusal, "an object has no name that can be read: it is left out");
            return;
        }
        if let Some((_, unconfirmed)) = &mut self.listed {
            unconfirmed.remove(&key);
        }
        let version = item.object.metadata.resource_version.clone().unwrap_or_default();
        if matches!(self.content, Content::Metadata | Content::OwnedThenMetadata) {
            item.object.data = Value::Null;
        }
        let value = match self.first.remove(&key) {
            Some((of, value)) if of == version => value,
            _ => (self.project)(item),
        };
        if let Some(change) = self.store.insert(key, &version, value, listed) {
            (self.on_change)(change);
        }
    }

    fn gone(&self, key: &ObjectKey) {
        if let Some(change) = self.store.remove(key) {
            (self.on_change)(change);
        }
    }
}

/// Attempts since the last success.
#[derive(Default)]
struct Backoff {
    attempts: u32,
}

impl Backoff {
    const FIRST: Duration = Duration::from_millis(800);
    const MOST: Duration = Duration::from_secs(30);
    const FIRST_REFUSED: Duration = Duration::from_secs(2);
    const REFUSED: Duration = Duration::from_mins(1);

    fn reset(&mut self) {
        self.attempts = 0;
    }

    async fn pause(
        &mut self,
        code: Option<u16>,
        error: &Error,
        on_trouble: &impl Fn(&WatchFailure),
    ) {
        // Gone means "list again": that is no error.
        if code == Some(410) && self.attempts == 0 {
            self.attempts = 1;
            return;
        }
        let retry_in = match code {
            // A role may be created right after the manager.
            Some(403 | 405) => Self::FIRST_REFUSED
                .saturating_mul(1 << (2 * self.attempts.min(5)))
                .min(Self::REFUSED),
            _ => Self::FIRST.saturating_mul(1 << self.attempts.min(7)).min(Self::MOST),
        };
        self.attempts = self.attempts.saturating_add(1);
        on_trouble(&WatchFailure { code, message: error.to_string(), retry_in });
        tokio::time::sleep(retry_in).await;
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use kube::core::DynamicObject;

    use super::*;

    fn object(name: &str, version: &str) -> Item {
        let metadata = ObjectMeta {
            name: Some(name.to_owned()),
            resource_version: Some(version.to_owned()),
            ..ObjectMeta::default()
        };
        DynamicObject { types: None, metadata, data: Value::Null }.into()
    }

    /// The effect of these events.
    fn told(events: Vec<Event<Item>>) -> Vec<String> {
        let told = RefCell::new(Vec::new());
        let on_change = |change: Change<()>| {
            told.borrow_mut().push(match change {
                Change::Seen { key, listed: true, .. } => format!("listed {key}"),
                Change::Seen { key, .. } => format!("seen {key}"),
                Change::Gone { key, .. } => format!("gone {key}"),
            });
        };
        let store = Store::default();
        let (listed, content, first) = (None, Content::Full, HashMap::new());
        let project = |_| ();
        let mut follower = Follower { store: &store, project, on_change, listed, content, first };
        for event in events {
            follower.event(event, &mut Backoff::default());
        }
        told.into_inner()
    }

    #[test]
    fn what_vanished_while_nobody_watched_is_told_after_the_next_list() {
        let first = [
            Event::Init,
            Event::InitApply(object("a", "1")),
            Event::InitApply(object("b", "2")),
            Event::InitApply(object("c", "3")),
            Event::InitDone,
            Event::Delete(object("c", "4")),
        ];
        // An incomplete list proves nothing; the next one does.
        let again = [
            Event::Init,
            Event::InitApply(object("a", "1")),
            Event::Init,
            Event::InitApply(object("a", "1")),
            Event::InitApply(object("d", "9")),
            Event::InitDone,
        ];
        let told = told(first.into_iter().chain(again).collect());
        assert_eq!(told, ["listed a", "listed b", "listed c", "gone c", "listed d", "gone b"]);
    }

    #[test]
    fn an_object_that_came_anew_under_its_name_is_told() {
        let events = [
            Event::Init,
            Event::InitApply(object("a", "1")),
            Event::InitDone,
            Event::Init,
            Event::InitApply(object("a", "7")),
            Event::InitDone,
            Event::Apply(object("a", "8")),
        ];
        assert_eq!(told(events.into()), ["listed a", "listed a", "seen a"]);
    }
}
