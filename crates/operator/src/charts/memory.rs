//! What is remembered of each release, so that nothing has to be asked again.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use catamaran_cluster::observed::{CATCH_UP, Expected, Verdict};
use catamaran_cluster::readiness::Readiness;
use catamaran_cluster::watch::ObjectKey;
use catamaran_release::{Applied, AppliedObject, Found, ObjectId};
use kube::core::{DynamicObject, GroupVersionKind};
use serde_json::{Map, Value};

use super::report::Deployed;
use super::seeds::Seed;
use super::takeback::Refused;
use crate::manager::dependents::Dependent;
use crate::manager::feeds::Cache;
use crate::manager::queue::Key;

/// Releases by resource.
#[derive(Debug, Default)]
pub(super) struct Memory {
    releases: HashMap<Key, Remembered>,
    /// Releases that wait, by resource.
    waits: HashMap<Key, Waits>,
    /// Seeds of renderings: random values stay the same from one rendering to the next.
    seeds: HashMap<Key, Seed>,
    /// What was taken back, and is not tried again for a while.
    refused: HashMap<Key, Refused>,
}

/// A release that waits for something that a watch will tell.
#[derive(Debug)]
struct Waits {
    uid: Option<String>,
    generation: Option<i64>,
    annotations: Option<BTreeMap<String, String>>,
    /// When it is to be looked at again at the latest.
    until: Instant,
}

/// A release as we left it.
#[derive(Debug)]
pub(super) struct Remembered {
    pub uid: Option<String>,
    pub generation: Option<i64>,
    /// Namespace and name of the release.
    pub release: (Box<str>, Box<str>),
    pub told: Deployed,
    /// Which rotation of what was drawn was asked for.
    pub rotation: String,
    /// When a certificate is to be made anew.
    pub renew_at: Option<SystemTime>,
    /// The values, where they do not follow from the resource alone.
    pub mapped: Option<Arc<Map<String, Value>>>,
    pub objects: Vec<Left>,
    /// When the status last told how its objects are.
    progress: Option<Instant>,
}

/// How often the status follows the objects at most.
const BEAT: Duration = Duration::from_secs(1);

/// An object as we left it.
#[derive(Debug)]
pub(super) struct Left {
    pub id: ObjectId,
    gvk: GroupVersionKind,
    uid: String,
    /// The hash of what was wanted of it.
    wanted: u64,
    expected: Expected,
    /// Since when it has not been ready.
    unready: Option<Instant>,
    cache: Option<Arc<Cache<Dependent>>>,
}

/// What the caches say of a release.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Findings {
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

impl Findings {
    pub fn look_again(&mut self, after: Duration) {
        self.again = Some(self.again.map_or(after, |sooner| sooner.min(after)));
    }
}

impl Memory {
    pub fn forget(&mut self, key: &Key) {
        self.releases.remove(key);
        self.waits.remove(key);
        self.seeds.remove(key);
        self.refused.remove(key);
    }

    /// What was taken back for a resource.
    pub fn refused(&self, key: &Key) -> Option<&Refused> {
        self.refused.get(key)
    }

    pub fn refuse(&mut self, key: &Key, refused: Refused) {
        self.refused.insert(key.clone(), refused);
    }

    /// What was taken back rests until `until` says, given how often it failed.
    pub fn rest(&mut self, key: &Key, until: impl FnOnce(u32) -> Instant) {
        if let Some(refused) = self.refused.get_mut(key) {
            refused.until = Some(until(refused.times));
        }
    }

    /// Its release is as it shall be.
    pub fn accept(&mut self, key: &Key) {
        self.refused.remove(key);
    }

    /// Remembers that a release waits, and for how long at most; or that it does not.
    pub fn waits(&mut self, key: &Key, resource: &DynamicObject, at_most: Option<Duration>) {
        let Some(at_most) = at_most else {
            self.waits.remove(key);
            return;
        };
        let waits = Waits {
            uid: resource.metadata.uid.clone(),
            generation: resource.metadata.generation,
            annotations: resource.metadata.annotations.clone(),
            until: Instant::now() + at_most,
        };
        self.waits.insert(key.clone(), waits);
    }

    /// How long a release still has to wait if nothing happens, the resource being as it was.
    pub fn still_waits(&self, key: &Key, resource: &DynamicObject) -> Option<Duration> {
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
    pub fn seed(&mut self, key: &Key, rotation: &str) -> Seed {
        let known = self.seeds.get(key).filter(|seed| seed.is_of(rotation)).cloned();
        known.unwrap_or_else(|| {
            let fresh = Seed::fresh(rotation);
            self.seeds.insert(key.clone(), fresh.clone());
            fresh
        })
    }

    pub fn put_seed(&mut self, key: &Key, seed: Seed) {
        self.seeds.insert(key.clone(), seed);
    }

    /// Whether there is a seed in the cluster, as far as is known.
    pub fn is_seed_kept(&self, key: &Key) -> bool {
        self.seeds.get(key).is_some_and(Seed::is_kept)
    }

    pub fn get_mut(&mut self, key: &Key) -> Option<&mut Remembered> {
        self.releases.get_mut(key)
    }

    /// Remembers an action that went to its end.
    pub fn remember(
        &mut self,
        key: &Key,
        resource: &DynamicObject,
        (rotation, renew_at): (&str, Option<SystemTime>),
        (applied, told): (&Applied, Deployed),
        fresh: Vec<Left>,
    ) {
        let before = self.releases.remove(key);
        let known = before.into_iter().flat_map(|release| release.objects);
        let still: HashSet<&ObjectId> = applied.known.iter().collect();
        let known = known.filter(|left| still.contains(&left.id));
        let left = fresh.into_iter().chain(known).collect();
        let remembered = Remembered {
            uid: resource.metadata.uid.clone(),
            generation: resource.metadata.generation,
            release: (applied.history.namespace().into(), applied.history.name().into()),
            told,
            rotation: rotation.to_owned(),
            renew_at,
            mapped: None,
            objects: left,
            progress: Some(Instant::now()),
        };
        self.releases.insert(key.clone(), remembered);
    }
}

impl Remembered {
    /// Whether this is about the resource as it is now, and nothing that was drawn is to be drawn anew.
    pub fn is_about(&self, resource: &DynamicObject, rotation: &str) -> bool {
        self.rotation == rotation
            && self.renew_at.is_none_or(|at| at > SystemTime::now())
            && self.uid == resource.metadata.uid
            && self.generation == resource.metadata.generation
            && self.generation.is_some()
    }

    /// Whether the status may follow the objects now; else how long it has to wait.
    pub fn beat(&mut self, now: Instant) -> Result<(), Duration> {
        let rest = self.progress.map(|last| (last + BEAT).saturating_duration_since(now));
        if let Some(rest) = rest.filter(|rest| !rest.is_zero()) {
            return Err(rest);
        }
        self.progress = Some(now);
        Ok(())
    }

    /// Looks at the objects through the caches.
    pub fn look(&mut self, now: Instant) -> Findings {
        let mut findings = Findings::default();
        for object in &mut self.objects {
            if object.is_blind(now) {
                findings.blind = true;
            } else {
                match object.verdict(now) {
                    verdict @ (Verdict::Drifted | Verdict::Gone) => {
                        if verdict == Verdict::Gone && object.cached().is_none() {
                            findings.gone.push(object.id.clone());
                        }
                        findings.drifted.push(object.id.clone());
                    }
                    Verdict::Behind => findings.look_again(CATCH_UP),
                    Verdict::Rest(pause) => findings.look_again(pause),
                    Verdict::Same => {}
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
                findings.not_ready.push(NotReady { id, gvk, readiness, lasts });
            }
        }
        findings
    }

    /// The objects that nobody touched since they were left, each with its uid and the hash of what was
    /// wanted of it then.
    pub fn untouched(&mut self, now: Instant) -> HashMap<ObjectId, (u64, String)> {
        let untouched = self.objects.iter_mut().filter_map(|left| {
            let told = (left.id.clone(), (left.wanted, left.uid.clone()));
            (left.verdict(now) == Verdict::Same).then_some(told)
        });
        untouched.collect()
    }

    /// Takes in objects that were looked at, or applied again, and how they were found.
    pub fn repaired(&mut self, looked_at: Vec<(Left, &Found)>) {
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

impl Left {
    /// What is remembered of an object. It costs time that grows with the object: not to be called
    /// while the memory is locked.
    pub fn new(
        applied: &AppliedObject,
        cache: impl Fn(&GroupVersionKind) -> Option<Arc<Cache<Dependent>>>,
    ) -> Option<Self> {
        let live: DynamicObject = serde_json::from_value(applied.live.clone()).ok()?;
        let expected = Expected::of(&applied.gvk.group, &applied.gvk.kind, &live);
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
    fn verdict(&mut self, now: Instant) -> Verdict {
        let Some(cache) = self.cache.as_ref().filter(|cache| cache.is_synced()) else {
            return Verdict::Behind;
        };
        let listed_at = cache.listed_at(&self.key());
        let cached = self.cached();
        let observed = cached.as_deref().map(|dependent| &dependent.observed);
        self.expected.compare(observed, listed_at, now)
    }

    /// Whether no watch tells of the object: nobody asked for one, or it cannot start.
    fn is_blind(&self, now: Instant) -> bool {
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
