//! A watch of release records, which notices helm commands without polling.
//!
//! It reads the metadata of the revisions that matter: `owner=helm,status!=superseded`. The operator knows
//! its own writes by their resourceVersion; they cause no reconcile.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use catamaran_cluster::watch::{Change, Content, ObjectKey};
use catamaran_release::History;
use kube::core::{DynamicObject, GroupVersionKind};

use crate::manager::queue::{Key, Priority, Queue};
use crate::manager::reflectors::{Cache, Reflectors, Role, WatchSubject};

/// The records that are watched.
const SELECTOR: &str = "owner=helm,status!=superseded";
/// A watch may report a write before its response arrives: for this long, it counts as own.
const ANSWERS: Duration = Duration::from_millis(300);

/// Namespace and name of a release.
type Id = (String, String);

/// The releases whose records are watched, and their resources.
#[derive(Default)]
struct Followed {
    releases: HashMap<Id, Release>,
    /// The releases of each resource, so that removing a resource does not search all releases.
    by_resource: HashMap<Key, HashSet<Id>>,
}

/// Tracks the records of releases, and who wrote them.
#[derive(Clone)]
pub(crate) struct ReleaseSecretInformer {
    releases: Arc<Mutex<Followed>>,
    /// The number of records of each release.
    counts: Arc<Mutex<HashMap<Id, u32>>>,
    queue: Arc<Queue>,
    cache: Arc<OnceLock<Arc<Cache<Record>>>>,
    /// The namespace of all records; `None`: that of each release.
    place: Option<Arc<str>>,
}

#[derive(Debug, Default)]
struct Release {
    /// The resources of the release.
    keys: Vec<Key>,
    /// The known version of the record of each revision; [`u64::MAX`] if the operator deleted it.
    known: HashMap<u32, u64>,
    /// Whether somebody else has written a record since the operator read the history.
    stale: bool,
    /// Whether the watch has been trusted once that there is no record.
    assumed: bool,
}

/// The cached part of a record.
#[derive(Debug)]
struct Record {
    release: Box<str>,
    revision: u32,
    version: u64,
}

impl Record {
    fn of(object: &DynamicObject) -> Self {
        let label = |name: &str| object.metadata.labels.as_ref().and_then(|all| all.get(name));
        Self {
            release: label("name").map(String::as_str).unwrap_or_default().into(),
            revision: label("version").and_then(|it| it.parse().ok()).unwrap_or_default(),
            version: number(object.metadata.resource_version.as_deref()),
        }
    }
}

/// A resourceVersion as a number, which it is if the API server uses etcd.
fn number(version: Option<&str>) -> u64 {
    version.and_then(|version| version.parse().ok()).unwrap_or_default()
}

/// The release of a record.
fn id_of(key: &ObjectKey, record: &Record) -> Id {
    (key.namespace.clone().unwrap_or_default(), record.release.to_string())
}

impl ReleaseSecretInformer {
    /// Does not watch yet.
    pub fn new(queue: Arc<Queue>) -> Self {
        let (releases, counts, cache) = (Arc::default(), Arc::default(), Arc::default());
        Self { releases, counts, queue, cache, place: None }
    }

    /// The same for releases with all records in one namespace. Starts to watch that namespace if it is not
    /// watched anyway.
    pub fn stored_in(&self, place: &str, watched: &[Option<String>]) -> Self {
        let is_watched = watched.iter().any(|it| it.as_deref().is_none_or(|it| it == place));
        let mut records = Self { place: Some(place.into()), ..self.clone() };
        if !is_watched {
            records.cache = Arc::default();
        }
        records
    }

    /// The namespace of the records of a release, and its name.
    fn id(&self, namespace: &str, name: &str) -> Id {
        (self.place.as_deref().unwrap_or(namespace).to_owned(), name.to_owned())
    }

    /// From now on, reconciles a resource when somebody else writes a record of its release.
    pub fn follow(&self, reflectors: &Reflectors, key: &Key, namespace: &str, name: &str) {
        let id = self.id(namespace, name);
        let mut followed = self.lock();
        let release = followed.releases.entry(id.clone()).or_default();
        if !release.keys.contains(key) {
            release.keys.push(key.clone());
        }
        followed.by_resource.entry(key.clone()).or_default().insert(id);
        drop(followed);
        self.begin(reflectors);
    }

    /// Starts the watch, once.
    pub fn begin(&self, reflectors: &Reflectors) {
        self.cache.get_or_init(|| self.start(reflectors));
    }

    fn start(&self, reflectors: &Reflectors) -> Arc<Cache<Record>> {
        let subject = WatchSubject {
            gvk: GroupVersionKind::gvk("", "v1", "Secret"),
            selector: Some(SELECTOR.to_owned()),
            content: Content::Metadata,
            role: Role::Secondary,
        };
        // The watch knows the namespace of a record, whoever started it.
        let records = Self { place: None, ..self.clone() };
        let beyond = self.place.as_ref().filter(|place| {
            let holds = |it: &Option<String>| it.as_deref().is_none_or(|it| it == &***place);
            !reflectors.namespaces.iter().any(holds)
        });
        let reflectors = match beyond {
            None => reflectors.clone(),
            Some(place) => {
                Reflectors { namespaces: [Some(place.to_string())].into(), ..reflectors.clone() }
            }
        };
        reflectors.follow(
            subject,
            |item| Record::of(&item.object),
            move |change| match change {
                Change::Seen { key, before, now, .. } => {
                    if before.is_none() {
                        records.count(&id_of(&key, &now), 1);
                    }
                    records.on_change(&key, &now, false);
                }
                Change::Gone { key, last } => {
                    records.count(&id_of(&key, &last), -1);
                    records.on_change(&key, &last, true);
                }
            },
        )
    }

    fn count(&self, id: &Id, more: i32) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(id.clone()).or_default();
        *count = count.saturating_add_signed(more);
        if *count == 0 {
            counts.remove(id);
        }
    }

    /// Whether the watch shows that a release has no record, so that no request is needed. Trusted once: if
    /// there is a record after all, creating one fails, and it is read.
    pub fn has_no_record(&self, namespace: &str, name: &str) -> bool {
        let at = ObjectKey { namespace: Some(namespace.to_owned()), name: String::new() };
        let is_seen = self.cache.get().is_some_and(|cache| cache.listed_at(&at).is_some());
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let none = is_seen && !counts.contains_key(&(namespace.to_owned(), name.to_owned()));
        drop(counts);
        let believed = |release: &mut Release| {
            !std::mem::replace(&mut release.assumed, true) && release.known.is_empty()
        };
        none && self.with(namespace, name, believed).unwrap_or_default()
    }

    /// Whether the watch shows that a release has a record.
    pub fn has_record(&self, namespace: &str, name: &str) -> bool {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.contains_key(&self.id(namespace, name))
    }

    /// Whether records are watched, so that no polling is needed.
    pub fn is_watching(&self) -> bool {
        self.cache.get().is_some_and(|cache| cache.is_synced())
    }

    /// Returns once records are watched, or it is known that they cannot be, or after this time.
    pub async fn wait_for_sync(&self, within: Duration) {
        if let Some(cache) = self.cache.get() {
            cache.wait_for_sync(within).await;
        }
    }

    /// Whether somebody else has written a record since the history was read.
    pub fn is_stale(&self, namespace: &str, name: &str) -> bool {
        self.with(namespace, name, |release| release.stale).unwrap_or_default()
    }

    /// Call before reading the history: later writes are changes.
    pub fn reading(&self, namespace: &str, name: &str) {
        self.with(namespace, name, |release| release.stale = false);
    }

    /// Stores the versions of a history.
    pub fn read(&self, history: &History) {
        self.with(history.namespace(), history.name(), |release| {
            for (revision, version) in history.versions() {
                release.knows(revision, number(Some(version)));
            }
        });
    }

    /// Stores an own write, or an own deletion if there is no version.
    pub fn wrote(&self, namespace: &str, name: &str, revision: u32, version: Option<&str>) {
        self.with(namespace, name, |release| match version {
            Some(version) => drop(release.known.insert(revision, number(Some(version)))),
            None => drop(release.known.insert(revision, u64::MAX)),
        });
    }

    /// Forgets a resource.
    pub fn forget(&self, key: &Key) {
        let mut followed = self.lock();
        for id in followed.by_resource.remove(key).unwrap_or_default() {
            let Some(release) = followed.releases.get_mut(&id) else { continue };
            release.keys.retain(|own| own != key);
            if release.keys.is_empty() {
                followed.releases.remove(&id);
            }
        }
    }

    fn on_change(&self, key: &ObjectKey, record: &Record, gone: bool) {
        let id = id_of(key, record);
        let (revision, version) = (record.revision, record.version);
        if !self.is_foreign_change(&id, revision, version, gone) {
            return;
        }
        let (records, name) = (self.clone(), key.name.clone());
        // Ends within a moment; a manager that stops does not wait for it.
        tokio::spawn(async move {
            tokio::time::sleep(ANSWERS).await;
            if records.is_foreign_change(&id, revision, version, gone) {
                records.requeue(&id, &name);
            }
        });
    }

    fn is_foreign_change(
        &self,
        (namespace, name): &Id,
        revision: u32,
        version: u64,
        gone: bool,
    ) -> bool {
        let is_news = |release: &mut Release| {
            let known = release.known.get(&revision).copied().unwrap_or_default();
            known < version || (gone && known == version)
        };
        self.with(namespace, name, is_news).unwrap_or_default()
    }

    fn requeue(&self, id: &Id, record: &str) {
        let keys = self.with(&id.0, &id.1, |release| {
            release.stale = true;
            release.keys.clone()
        });
        for key in keys.into_iter().flatten() {
            tracing::debug!(record, "somebody else wrote a record of the release");
            self.queue.add(key, Priority::Live, &format!("Secret/{record} changed"));
        }
    }

    fn with<T>(
        &self,
        namespace: &str,
        name: &str,
        of: impl FnOnce(&mut Release) -> T,
    ) -> Option<T> {
        let id = self.id(namespace, name);
        self.lock().releases.get_mut(&id).map(of)
    }

    fn lock(&self) -> MutexGuard<'_, Followed> {
        self.releases.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Release {
    fn knows(&mut self, revision: u32, version: u64) {
        let known = self.known.entry(revision).or_default();
        // A revision that the operator deleted may exist again.
        *known = if *known == u64::MAX { version } else { version.max(*known) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manager::queue::Bound;

    fn records() -> (ReleaseSecretInformer, Arc<Queue>, Id) {
        let queue = Arc::new(Queue::new(&[Bound { running: 1, lent: 0 }], 1));
        let records = ReleaseSecretInformer::new(queue.clone());
        let id = ("ns".to_owned(), "rel".to_owned());
        let object = ObjectKey { namespace: Some("ns".into()), name: "rel".into() };
        let release = Release { keys: vec![Key { kind: 0, object }], ..Release::default() };
        records.lock().releases.insert(id.clone(), release);
        (records, queue, id)
    }

    #[test]
    fn what_we_wrote_or_read_is_no_news() {
        let (records, _, id) = records();
        assert!(records.is_foreign_change(&id, 1, 10, false), "nobody has read it yet");
        records.wrote("ns", "rel", 1, Some("10"));
        assert!(!records.is_foreign_change(&id, 1, 10, false));
        assert!(!records.is_foreign_change(&id, 1, 9, false), "an earlier write of ours");
        assert!(records.is_foreign_change(&id, 1, 11, false), "written after us");
        assert!(records.is_foreign_change(&id, 2, 5, false), "another revision");
        assert!(records.is_foreign_change(&id, 1, 10, true), "deleted by somebody else");
        records.wrote("ns", "rel", 1, Some("12"));
        assert!(
            !records.is_foreign_change(&id, 1, 10, true),
            "it left the selection when we superseded it"
        );
        records.wrote("ns", "rel", 1, None);
        assert!(!records.is_foreign_change(&id, 1, 12, true), "deleted by us");
        records.wrote("ns", "rel", 1, Some("20"));
        assert!(records.is_foreign_change(&id, 1, 21, false), "it is there again, and changed");
        let other = ("ns".to_owned(), "other".to_owned());
        assert!(!records.is_foreign_change(&other, 1, 99, false), "a release that is none of ours");
    }

    #[test]
    fn records_that_lie_elsewhere_are_heard_there() {
        let (records, _, id) = records();
        let stored = records.stored_in("ns", &[None]);
        let news = |version| records.is_foreign_change(&id, 1, version, false);
        stored.wrote("team", "rel", 1, Some("10"));
        assert!(!news(10) && news(11), "written by us, whatever the release's namespace");
        assert!(Arc::ptr_eq(&records.cache, &stored.cache), "that namespace is watched anyway");
        let other = records.stored_in("ns", &[Some("team".into())]);
        assert!(!Arc::ptr_eq(&records.cache, &other.cache), "a watch of its own");
    }

    #[tokio::test(start_paused = true)]
    async fn news_wakes_the_resource_unless_its_answer_comes_in_a_moment() {
        let (records, queue, _) = records();
        let key =
            ObjectKey { namespace: Some("ns".into()), name: "sh.helm.release.v1.rel.v1".into() };
        let record = |version| Record { release: "rel".into(), revision: 1, version };
        records.on_change(&key, &record(10), false);
        records.wrote("ns", "rel", 1, Some("10"));
        tokio::time::sleep(ANSWERS * 2).await;
        assert!(!records.is_stale("ns", "rel"));
        records.on_change(&key, &record(11), false);
        let item = queue.next().await.expect("an item");
        assert_eq!(item.reasons, "Secret/sh.helm.release.v1.rel.v1 changed");
        assert!(records.is_stale("ns", "rel"));
        records.reading("ns", "rel");
        assert!(!records.is_stale("ns", "rel"));
    }
}
