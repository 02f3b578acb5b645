//! What is remembered of each release, so that nothing has to be asked again.

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

/// Releases by resource.
#[derive(Debug, Default)]
pub(super) struct ReleaseCache {
    releases: HashMap<Key, CachedRelease>,
    /// Releases that wait, by resource.
    waits: HashMap<Key, PendingWait>,
    /// Seeds of renderings: random values stay the same from one rendering to the next.
    seeds: HashMap<Key, RenderSeed>,
    /// What was remediated, and is not tried again for a while.
    failed_attempts: HashMap<Key, FailedAttempt>,
}

/// A release that waits for something that a watch will tell.
#[derive(Debug)]
struct PendingWait {
    uid: Option<String>,
    generation: Option<i64>,
    annotations: Option<BTreeMap<String, String>>,
    /// When it is to be looked at again at the latest.
    until: Instant,
}

/// A release as we left it.
#[derive(Debug)]
pub(super) struct CachedRelease {
    pub uid: Option<String>,
    pub generation: Option<i64>,
    /// Namespace and name of the release.
    pub release: (Box<str>, Box<str>),
    pub reported: Deployed,
    /// Which rotation of what was drawn was asked for.
    pub rotation: String,
    /// When a certificate is to be made anew.
    pub renew_at: Option<SystemTime>,
    /// The values, where they do not follow from the resource alone.
    pub values: Option<Arc<Map<String, Value>>>,
    pub objects: Vec<AppliedObjectState>,
    /// When the status last told how its objects are.
    progress_reported_at: Option<Instant>,
}

/// How often the status follows the objects at most.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

/// An object as we left it.
#[derive(Debug)]
pub(super) struct AppliedObjectState {
    pub id: ObjectId,
    gvk: GroupVersionKind,
    uid: String,
    /// The hash of what was wanted of it.
    wanted: u64,
    expected: AppliedState,
    /// Since when it has not been ready.
    unready: Option<Instant>,
    cache: Option<Arc<Cache<Dependent>>>,
}

/// What the caches say of a release.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Observation {
    /// Objects that somebody changed or deleted.
    pub drifted: Vec<ObjectId>,
    /// Those of them that are not there any more, by what the watch tells.
    pub gone: Vec<ObjectId>,
    /// When to look again although nothing happens: a cache has not caught up with our own writes yet,
    /// or a repair rests.
    pub again: Option<Duration>,
    /// Whether there are objects that no watch tells of: nobody asked for it, or the rights are missing.
    pub blind: bool,
    /// Objects that do not do their work (yet).
    pub not_ready: Vec<NotReady>,
}

/// An object that does not do its work (yet).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NotReady {
    pub id: ObjectId,
    pub gvk: GroupVersionKind,
    /// Why.
    pub readiness: Readiness,
    /// For how long it has been so.
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

    /// What was remediated for a resource.
    pub fn failed_attempt(&self, key: &Key) -> Option<&FailedAttempt> {
        self.failed_attempts.get(key)
    }

    pub fn set_failed_attempt(&mut self, key: &Key, refused: FailedAttempt) {
        self.failed_attempts.insert(key.clone(), refused);
    }

    /// What was remediated rests until `until` says, given how often it failed.
    pub fn delay_retry(&mut self, key: &Key, until: impl FnOnce(u32) -> Instant) {
        if let Some(refused) = self.failed_attempts.get_mut(key) {
            refused.until = Some(until(refused.times));
        }
    }

    /// Its release is as it shall be.
    pub fn clear_failed_attempt(&mut self, key: &Key) {
        self.failed_attempts.remove(key);
    }

    /// Remembers that a release waits, and for how long at most; or that it does not.
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

    /// How long a release still has to wait if nothing happens, the resource being as it was.
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

    /// The seed of a resource that asks for this rotation.
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

    /// Whether there is a seed in the cluster, as far as is known.
    pub fn is_seed_kept(&self, key: &Key) -> bool {
        self.seeds.get(key).is_some_and(RenderSeed::is_kept)
    }

    pub fn get_mut(&mut self, key: &Key) -> Option<&mut CachedRelease> {
        self.releases.get_mut(key)
    }

    /// Remembers an action that went to its end.
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
    /// Whether this is about the resource as it is now, and nothing that was drawn is to be drawn anew.
    pub fn is_current(&self, resource: &DynamicObject, rotation: &str) -> bool {
        self.rotation == rotation
            && self.renew_at.is_none_or(|at| at > SystemTime::now())
            && self.uid == resource.metadata.uid
            && self.generation == resource.metadata.generation
            && self.generation.is_some()
    }

    /// Whether the status may follow the objects now; else how long it has to wait.
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

    /// Looks at the objects through the caches.
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

    /// The objects that nobody touched since they were left, each with its uid and the hash of what was
    /// wanted of it then.
    pub fn untouched(&mut self, now: Instant) -> HashMap<ObjectId, (u64, String)> {
        let untouched = self.objects.iter_mut().filter_map(|left| {
            let told = (left.id.clone(), (left.wanted, left.uid.clone()));
            (left.drift_state(now) == DriftState::Same).then_some(told)
        });
        untouched.collect()
    }

    /// Takes in objects that were looked at, or applied again, and how they were found.
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
    /// What is remembered of an object. It costs time that grows with the object: not to be called
    /// while the memory is locked.
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

    /// What the cache says of the object.
    fn drift_state(&mut self, now: Instant) -> DriftState {
        let Some(cache) = self.cache.as_ref().filter(|cache| cache.is_synced()) else {
            return DriftState::Behind;
        };
        let listed_at = cache.listed_at(&self.key());
        let cached = self.cached();
        let observed = cached.as_deref().map(|dependent| &dependent.observed);
        self.expected.compare(observed, listed_at, now)
    }

    /// Whether no watch tells of the object: nobody asked for one, or it cannot start.
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
