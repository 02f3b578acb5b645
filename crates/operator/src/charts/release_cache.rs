//! The state of each release after its last action, so that an unchanged release costs no request.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use catamaran_cluster::observed::{AppliedState, CATCH_UP, DriftState};
use catamaran_cluster::readiness::Readiness;
use catamaran_cluster::watch::ObjectKey;
use catamaran_release::{Applied, AppliedObject, ObjectDrift, ObjectId};
use kube::core::{DynamicObject, GroupVersionKind};
use serde_json::{Map, Value};

use super::remediation::FailedAttempt;
use super::render_seed::RenderSeed;
use super::status::Deployed;
use crate::manager::dependents::Dependent;
use crate::manager::queue::Key;
use crate::manager::reflectors::Cache;

/// The cached state of releases, by resource.
#[derive(Debug, Default)]
pub(super) struct ReleaseCache {
    releases: HashMap<Key, CachedRelease>,
    /// Releases that wait, by resource.
    waits: HashMap<Key, PendingWait>,
    /// Seeds of renderings, so that random values stay the same.
    seeds: HashMap<Key, RenderSeed>,
    /// Failed attempts that were remediated and are not repeated for a while.
    failed_attempts: HashMap<Key, FailedAttempt>,
}

/// A release that waits for something that a watch reports.
#[derive(Debug)]
struct PendingWait {
    uid: Option<String>,
    generation: Option<i64>,
    annotations: Option<BTreeMap<String, String>>,
    /// When to reconcile it at the latest.
    until: Instant,
}

/// A release after its last action.
#[derive(Debug)]
pub(super) struct CachedRelease {
    pub uid: Option<String>,
    pub generation: Option<i64>,
    /// Namespace and name of the release.
    pub release: (Box<str>, Box<str>),
    pub reported: Deployed,
    /// The rotation of generated values that the resource requests.
    pub rotation: String,
    /// When a certificate has to be renewed.
    pub renew_at: Option<SystemTime>,
    /// The values, if they do not follow from the resource alone.
    pub values: Option<Arc<Map<String, Value>>>,
    pub objects: Vec<AppliedObjectState>,
    /// When the status last reported the readiness of the objects.
    progress_reported_at: Option<Instant>,
}

/// How often a status may report the readiness of objects.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

/// An object after its last apply.
#[derive(Debug)]
pub(super) struct AppliedObjectState {
    pub id: ObjectId,
    gvk: GroupVersionKind,
    uid: String,
    /// The hash of the desired object.
    wanted: u64,
    expected: AppliedState,
    /// Since when it has not been ready.
    unready: Option<Instant>,
    cache: Option<Arc<Cache<Dependent>>>,
}

/// The state of a release by the caches.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Observation {
    /// Objects that somebody changed or deleted.
    pub drifted: Vec<ObjectId>,
    /// Those of them that the watch reports as deleted.
    pub gone: Vec<ObjectId>,
    /// When to reconcile again without a change: a cache has not received own writes yet, or a repair
    /// is delayed.
    pub again: Option<Duration>,
    /// Whether no watch reports some objects: it was not started, or the rights are missing.
    pub blind: bool,
    /// Objects that are not ready.
    pub not_ready: Vec<NotReady>,
}

/// An object that is not ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NotReady {
    pub id: ObjectId,
    pub gvk: GroupVersionKind,
    /// The reason.
    pub readiness: Readiness,
    /// For how long.
    pub lasts: Duration,
}

impl Observation {
    pub fn requeue_within(&mut self, after: Duration) {
        self.again = Some(self.again.map_or(after, |sooner| sooner.min(after)));
    }
}

impl ReleaseCache {
    pub fn forget(&mut self, key: &Key) {
        self.releases.remove(key);
        self.waits.remove(key);
        self.seeds.remove(key);
        self.failed_attempts.remove(key);
    }

    /// The failed attempt of a resource.
    pub fn failed_attempt(&self, key: &Key) -> Option<&FailedAttempt> {
        self.failed_attempts.get(key)
    }

    pub fn set_failed_attempt(&mut self, key: &Key, refused: FailedAttempt) {
        self.failed_attempts.insert(key.clone(), refused);
    }

    /// Delays the next attempt until the time that `until` returns for the number of failures.
    pub fn delay_retry(&mut self, key: &Key, until: impl FnOnce(u32) -> Instant) {
        if let Some(refused) = self.failed_attempts.get_mut(key) {
            refused.until = Some(until(refused.times));
        }
    }

    /// Forgets the failed attempt: the release is as desired.
    pub fn clear_failed_attempt(&mut self, key: &Key) {
        self.failed_attempts.remove(key);
    }

    /// Stores that a release waits, and for how long at most; `None`: that it does not wait.
    pub fn set_wait(&mut self, key: &Key, resource: &DynamicObject, at_most: Option<Duration>) {
        let Some(at_most) = at_most else {
            self.waits.remove(key);
            return;
        };
        let waits = PendingWait {
            uid: resource.metadata.uid.clone(),
            generation: resource.metadata.generation,
            annotations: resource.metadata.annotations.clone(),
            until: Instant::now() + at_most,
        };
        self.waits.insert(key.clone(), waits);
    }

    /// How long a release still waits, if the resource has not changed.
    pub fn remaining_wait(&self, key: &Key, resource: &DynamicObject) -> Option<Duration> {
        let meta = &resource.metadata;
        let waits = self.waits.get(key).filter(|waits| {
            (&waits.uid, waits.generation, &waits.annotations)
                == (&meta.uid, meta.generation, &meta.annotations)
        })?;
        waits.until.checked_duration_since(Instant::now())
    }

    pub fn forget_release(&mut self, key: &Key) {
        self.releases.remove(key);
    }

    /// The seed of a resource for this rotation.
    pub fn seed(&mut self, key: &Key, rotation: &str) -> RenderSeed {
        let known = self.seeds.get(key).filter(|seed| seed.is_of(rotation)).cloned();
        known.unwrap_or_else(|| {
            let fresh = RenderSeed::fresh(rotation);
            self.seeds.insert(key.clone(), fresh.clone());
            fresh
        })
    }

    pub fn put_seed(&mut self, key: &Key, seed: RenderSeed) {
        self.seeds.insert(key.clone(), seed);
    }

    /// Whether the cluster has a seed, as far as is known.
    pub fn is_seed_kept(&self, key: &Key) -> bool {
        self.seeds.get(key).is_some_and(RenderSeed::is_kept)
    }

    pub fn get_mut(&mut self, key: &Key) -> Option<&mut CachedRelease> {
        self.releases.get_mut(key)
    }

    /// Stores a completed action.
    pub fn remember(
        &mut self,
        key: &Key,
        resource: &DynamicObject,
        (rotation, renew_at): (&str, Option<SystemTime>),
        (applied, told): (&Applied, Deployed),
        fresh: Vec<AppliedObjectState>,
    ) {
        let before = self.releases.remove(key);
        let known = before.into_iter().flat_map(|release| release.objects);
        let still: HashSet<&ObjectId> = applied.known.iter().collect();
        let known = known.filter(|left| still.contains(&left.id));
        let left = fresh.into_iter().chain(known).collect();
        let remembered = CachedRelease {
            uid: resource.metadata.uid.clone(),
            generation: resource.metadata.generation,
            release: (applied.history.namespace().into(), applied.history.name().into()),
            reported: told,
            rotation: rotation.to_owned(),
            renew_at,
            values: None,
            objects: left,
            progress_reported_at: Some(Instant::now()),
        };
        self.releases.insert(key.clone(), remembered);
    }
}

impl CachedRelease {
    /// Whether this is the state for the resource as it is now, and nothing has to be generated again.
    pub fn is_current(&self, resource: &DynamicObject, rotation: &str) -> bool {
        self.rotation == rotation
            && self.renew_at.is_none_or(|at| at > SystemTime::now())
            && self.uid == resource.metadata.uid
            && self.generation == resource.metadata.generation
            && self.generation.is_some()
    }

    /// Whether the status may report progress now; otherwise how long to wait.
    pub fn try_progress_update(&mut self, now: Instant) -> Result<(), Duration> {
        let delay = self
            .progress_reported_at
            .map(|last| (last + PROGRESS_INTERVAL).saturating_duration_since(now));
        if let Some(delay) = delay.filter(|delay| !delay.is_zero()) {
            return Err(delay);
        }
        self.progress_reported_at = Some(now);
        Ok(())
    }

    /// Observes the objects by the caches.
    pub fn observe(&mut self, now: Instant) -> Observation {
        let mut observation = Observation::default();
        for object in &mut self.objects {
            if object.is_unwatched(now) {
                observation.blind = true;
            } else {
                match object.drift_state(now) {
                    verdict @ (DriftState::Drifted | DriftState::Gone) => {
                        if verdict == DriftState::Gone && object.cached().is_none() {
                            observation.gone.push(object.id.clone());
                        }
                        observation.drifted.push(object.id.clone());
                    }
                    DriftState::Behind => observation.requeue_within(CATCH_UP),
                    DriftState::Rest(pause) => observation.requeue_within(pause),
                    DriftState::Same => {}
                }
            }
            let cached = object.cached();
            let observed = cached.as_deref().map(|dependent| &dependent.observed);
            let readiness = object.expected.readiness(observed).clone();
            if readiness == Readiness::Ready {
                object.unready = None;
            } else {
                let since = *object.unready.get_or_insert(now);
                let lasts = now.saturating_duration_since(since);
                let (id, gvk) = (object.id.clone(), object.gvk.clone());
                observation.not_ready.push(NotReady { id, gvk, readiness, lasts });
            }
        }
        observation
    }

    /// The objects that have not changed since the last apply, each with its uid and the hash of the
    /// desired object.
    pub fn untouched(&mut self, now: Instant) -> HashMap<ObjectId, (u64, String)> {
        let untouched = self.objects.iter_mut().filter_map(|left| {
            let told = (left.id.clone(), (left.wanted, left.uid.clone()));
            (left.drift_state(now) == DriftState::Same).then_some(told)
        });
        untouched.collect()
    }

    /// Updates the state of objects that were compared or applied again.
    pub fn repaired(&mut self, looked_at: Vec<(AppliedObjectState, &ObjectDrift)>) {
        let places = self.objects.iter().enumerate().map(|(at, known)| (known.id.clone(), at));
        let places: HashMap<ObjectId, usize> = places.collect();
        for (mut left, found) in looked_at {
            match places.get(&left.id).and_then(|at| self.objects.get_mut(*at)) {
                Some(known) => {
                    left.unready = known.unready;
                    if found.is_drift() {
                        left.expected = left.expected.repaired(&known.expected);
                    }
                    *known = left;
                }
                None => self.objects.push(left),
            }
        }
    }
}

impl AppliedObjectState {
    /// The state of an object after an apply. The time grows with the object: do not call it while the
    /// lock is held.
    pub fn new(
        applied: &AppliedObject,
        cache: impl Fn(&GroupVersionKind) -> Option<Arc<Cache<Dependent>>>,
    ) -> Option<Self> {
        let live: DynamicObject = serde_json::from_value(applied.live.clone()).ok()?;
        let expected = AppliedState::of(&applied.gvk.group, &applied.gvk.kind, &live);
        Some(Self {
            id: applied.id.clone(),
            gvk: applied.gvk.clone(),
            uid: applied.uid.clone(),
            wanted: applied.wanted,
            expected,
            unready: None,
            cache: cache(&applied.gvk),
        })
    }

    /// The state of the object by the cache.
    fn drift_state(&mut self, now: Instant) -> DriftState {
        let Some(cache) = self.cache.as_ref().filter(|cache| cache.is_synced()) else {
            return DriftState::Behind;
        };
        let listed_at = cache.listed_at(&self.key());
        let cached = self.cached();
        let observed = cached.as_deref().map(|dependent| &dependent.observed);
        self.expected.compare(observed, listed_at, now)
    }

    /// Whether no watch reports the object: it was not started, or cannot start.
    fn is_unwatched(&self, now: Instant) -> bool {
        let late = self.expected.age(now) > CATCH_UP;
        self.cache.as_ref().is_none_or(|cache| late && !cache.is_synced())
    }

    fn cached(&self) -> Option<Arc<Dependent>> {
        self.cache.as_ref()?.get(&self.key())
    }

    fn key(&self) -> ObjectKey {
        ObjectKey { namespace: self.id.namespace.clone(), name: self.id.name.clone() }
    }
}
