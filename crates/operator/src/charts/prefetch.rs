//! Reads histories of several releases at once.
//!
//! At a start, thousands of resources need the records of their releases. One LIST for the next resources in
//! the queue, as many as fit into a limit, replaces one for each. The watch reports records that change
//! between the LIST and the reconcile; these are read again.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use catamaran_release::{Driver, History, Packed};
use tokio::sync::Mutex as Turn;

use super::ChartController;
use super::release_key::ReleaseKey;
use super::revision::FIRST_LIST;
use crate::manager::queue::{Key, Queue};

/// The approximate size in bytes of the records that one LIST returns.
const BYTES: usize = 1024 * 1024;
/// The number of releases of the first LIST, before the size of records is known.
const FIRST: usize = 4;
/// The largest number of releases: their names are part of the URL.
const MOST: usize = 200;

/// Histories that were read, and the resources that wait for one.
pub(super) struct HistoryPrefetcher {
    queue: Arc<Queue>,
    read: Mutex<HashMap<Key, Packed>>,
    /// Resources whose reconcile began while a LIST is running.
    wanted: Mutex<HashSet<Key>>,
    /// One LIST at a time; the number of releases for the next one.
    size: Turn<usize>,
}

impl HistoryPrefetcher {
    pub fn new(queue: &Arc<Queue>) -> Self {
        let (read, wanted) = (Mutex::default(), Mutex::default());
        Self { queue: queue.clone(), read, wanted, size: Turn::new(FIRST) }
    }

    /// Drops the history of a resource.
    pub fn forget(&self, key: &Key) {
        self.read().remove(key);
    }

    fn take(&self, key: &Key, name: &str) -> Option<Packed> {
        self.read().remove(key).filter(|packed| packed.name() == name)
    }

    /// The next resources without a history: first those that wait already.
    fn next(&self, key: &Key, most: usize) -> Vec<Key> {
        let wanted: Vec<Key> = self.wanted().iter().filter(|it| *it != key).cloned().collect();
        let read = self.read();
        let upcoming = self.queue.upcoming(key.kind, most.saturating_add(read.len()));
        let upcoming = upcoming.into_iter().filter(|key| !read.contains_key(key));
        wanted.into_iter().chain(upcoming).take(most).collect()
    }

    fn read(&self) -> MutexGuard<'_, HashMap<Key, Packed>> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wanted(&self) -> MutexGuard<'_, HashSet<Key>> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the wait of a resource when it is dropped.
struct Wanted<'a>(&'a HistoryPrefetcher, &'a Key);

impl Drop for Wanted<'_> {
    fn drop(&mut self) {
        self.0.wanted().remove(self.1);
    }
}

/// The releases of one LIST: each with its resource and the namespace of its records.
struct Batch {
    /// `None` means all namespaces.
    namespace: Option<String>,
    releases: HashMap<(String, String), Key>,
}

impl ChartController {
    /// The history of a release, read before or now, together with those of the next resources. `None` if
    /// there are no next resources, or no watch reports changes meanwhile.
    pub(super) async fn prefetched(
        &self,
        driver: &Driver,
        key: &Key,
        site: &ReleaseKey,
        name: &str,
    ) -> Option<History> {
        let packed = match self.prefetcher.take(key, name) {
            Some(packed) => packed,
            None if self.prefetcher.queue.upcoming(key.kind, 1).is_empty() => return None,
            None => {
                self.records.wait_for_sync(FIRST_LIST).await;
                if !self.records.is_watching() || !self.records.has_record(&site.namespace, name) {
                    return None;
                }
                self.prefetch(key, site, name).await?
            }
        };
        if self.records.is_stale(&site.namespace, name) {
            return None;
        }
        Some(driver.unpack(&packed, &site.namespace))
    }

    async fn prefetch(&self, key: &Key, site: &ReleaseKey, name: &str) -> Option<Packed> {
        self.prefetcher.wanted().insert(key.clone());
        let _wanted = Wanted(&self.prefetcher, key);
        let mut size = self.prefetcher.size.lock().await;
        if let Some(packed) = self.prefetcher.take(key, name) {
            return Some(packed); // somebody else has read it meanwhile
        }
        let batch = self.batch(key, site, name, *size);
        if batch.releases.len() < 2 {
            return None;
        }
        let names: Vec<&str> = batch.releases.keys().map(|(_, name)| name.as_str()).collect();
        // It may return records of other namespaces, which no service account may read.
        let driver = &self.requester.own().driver;
        let read = driver.histories(batch.namespace.as_deref(), &names).await;
        // The LIST for this release alone reports the error.
        let read = read.inspect_err(|error| tracing::debug!(%error, "cannot read ahead")).ok()?;
        let bytes: usize = read.iter().map(Packed::size).sum();
        *size = (BYTES * read.len().max(1) / bytes.max(1)).clamp(2, MOST);
        tracing::debug!(releases = names.len(), found = read.len(), bytes, "read ahead");
        for packed in read {
            let of = (packed.namespace().to_owned(), packed.name().to_owned());
            let Some(key) = batch.releases.get(&of) else { continue };
            for (revision, version) in packed.versions() {
                self.records.wrote(packed.namespace(), packed.name(), revision, Some(version));
            }
            self.prefetcher.read().insert(key.clone(), packed);
        }
        self.prefetcher.take(key, name)
    }

    /// A release and the next ones: of its namespace if there are enough, else of all namespaces if all are
    /// watched. No two have the same name, or the LIST would return records of others.
    fn batch(&self, key: &Key, site: &ReleaseKey, name: &str, most: usize) -> Batch {
        let place = |namespace: &str| self.storage.as_deref().unwrap_or(namespace).to_owned();
        let own = (place(&site.namespace), name.to_owned());
        let next: Vec<(Key, ReleaseKey)> = self
            .prefetcher
            .next(key, most.saturating_sub(1))
            .into_iter()
            .map(|key| (key.clone(), self.release_key_of(&key.object)))
            .collect();
        let beside = next.iter().filter(|(_, site)| place(&site.namespace) == own.0).count();
        let everywhere = self.storage.is_none() && self.reflectors.namespaces.contains(&None);
        let namespace = (beside * 2 >= next.len() || !everywhere).then(|| own.0.clone());
        let mut taken = HashSet::from([name.to_owned()]);
        let mut releases = HashMap::from([(own, key.clone())]);
        for (key, site) in next {
            let name = site.preferred_name();
            let at = place(&site.namespace);
            if namespace.as_ref().is_some_and(|only| *only != at)
                || !self.records.has_record(&site.namespace, name)
                || !taken.insert(name.to_owned())
            {
                continue;
            }
            self.records.follow(&self.reflectors, &key, &site.namespace, name);
            self.records.reading(&site.namespace, name);
            releases.insert((at, name.to_owned()), key);
        }
        self.records.reading(&site.namespace, name);
        Batch { namespace, releases }
    }
}
