//! The objects that native resources own: applied when they must be, left alone when they are right.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use catamaran_cluster::apply::{Applier, Deletion, FailureKind, Target};
use catamaran_cluster::drift::Inspection;
use catamaran_cluster::observed::{AppliedState, CATCH_UP, DriftState};
use catamaran_cluster::watch::ObjectKey;
use kube::api::PropagationPolicy;
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use serde_json::Value;

use super::causes::Cause;
use super::objects::Known;
use super::{ComponentProgress, Error};
use crate::manager::dependents::{Dependent, PRIMARY_RESOURCE, PRIMARY_RESOURCE_TYPE};
use crate::manager::queue::Key;
use crate::names::beginning;

/// The end of the name of an object that is only asked about.
const PROBE: &str = "-probe";
/// How long the name of an object may be.
const MOST_CHARACTERS: usize = 253;

/// What is remembered of every child, for as long as its owner lives.
#[derive(Default)]
pub(super) struct Children(Mutex<HashMap<Key, HashMap<ChildKey, Child>>>);

pub(super) type ChildKey = (GroupVersionKind, ObjectKey);

pub(super) struct Child {
    /// Hash of the object as it was asked for.
    desired: u64,
    expected: AppliedState,
    pub(super) target: Target,
    known: Arc<dyn Known>,
    pub(super) cause: Cause,
}

/// What became of a child.
pub(super) struct Applied {
    pub progress: ComponentProgress,
    /// When to look at it again although nothing happens.
    pub again: Option<Duration>,
}

/// A child as it shall be.
pub(super) struct Desired<'a> {
    pub owner: &'a Key,
    pub owner_uid: &'a str,
    pub gvk: &'a GroupVersionKind,
    pub target: Target,
    pub object: Value,
    /// Whether to delete it, and make it anew, where the API server does not let it be changed.
    pub recreate: bool,
}

impl Desired<'_> {
    fn key(&self) -> ChildKey {
        let Target { namespace, name, .. } = &self.target;
        (self.gvk.clone(), ObjectKey { namespace: namespace.clone(), name: name.clone() })
    }

    /// Whether the object that is there belongs to our resource.
    fn has(&self, live: &Value) -> bool {
        let owners = live.pointer("/metadata/ownerReferences").and_then(Value::as_array);
        let is_us =
            |owner: &Value| owner.get("uid").and_then(Value::as_str) == Some(self.owner_uid);
        owners.is_some_and(|owners| owners.iter().any(is_us)) || self.is_annotated_as(live)
    }

    /// Where no owner reference can be: by the annotations that we put there.
    fn is_annotated_as(&self, live: &Value) -> bool {
        let of = |object: &Value, name: &str| {
            let annotations = object.get("metadata").and_then(|meta| meta.get("annotations"));
            annotations.and_then(|all| all.get(name)).and_then(Value::as_str).map(str::to_owned)
        };
        [PRIMARY_RESOURCE, PRIMARY_RESOURCE_TYPE].iter().all(|name| {
            let ours = of(&self.object, name);
            ours.is_some() && ours == of(live, name)
        })
    }
}

impl Children {
    /// Deletes the children of a resource that is gone. The garbage collector would do so, too, but it
    /// takes up to 30 s to hear of a new CRD. A child that was orphaned on purpose stays: taking the
    /// owner reference off has changed it; and one that has another owner, too.
    pub async fn gone(&self, applier: &Applier, owner: &Key) {
        let children = self.lock().remove(owner);
        for (_, Child { target, known, .. }) in children.into_iter().flatten() {
            let key = ObjectKey { namespace: target.namespace.clone(), name: target.name.clone() };
            let ours = |cached: &Arc<Dependent>| cached.owners.contains(owner) && !cached.is_shared;
            let Some(cached) = known.dependent(&key).filter(ours) else {
                continue;
            };
            if let Err(error) = delete_as_seen(applier, &target, &cached).await {
                tracing::debug!(%error, "left to the garbage collector");
            }
        }
    }

    /// Applies a child unless it is known to be as desired; then no request is made.
    pub async fn apply(
        &self,
        applier: &Applier,
        known: &Arc<dyn Known>,
        desired: Desired<'_>,
    ) -> Result<Applied, Error> {
        let hash = hash(&desired.object);
        let key = desired.key();
        let cached = known.dependent(&key.1);
        if let Some(applied) = self.unchanged(desired.owner, &key, hash, cached.as_deref()) {
            return Ok(applied);
        }
        let ours = cached.filter(|dependent| dependent.owners.contains(desired.owner));
        if ours.as_ref().is_some_and(|ours| ours.observed.deleting) {
            return Ok(Applied { progress: ending(&desired.target), again: None });
        }
        let applied = match &ours {
            Some(_) if !self.remembers(desired.owner, &key) => resume(applier, &desired).await,
            Some(_) => applier.apply(&desired.target, &desired.object).await.map_err(Error::from),
            None => claim(applier, &desired).await,
        };
        let live = match applied {
            Err(Error::Permanent(why)) if desired.recreate => {
                return remove(applier, &desired, why).await;
            }
            live => live?,
        };
        let live: DynamicObject = serde_json::from_value(live).map_err(Error::transient)?;
        Ok(self.remember(known, desired, hash, key, &live))
    }

    fn remember(
        &self,
        known: &Arc<dyn Known>,
        desired: Desired<'_>,
        hash: u64,
        key: ChildKey,
        live: &DynamicObject,
    ) -> Applied {
        let mut expected = AppliedState::of(&desired.gvk.group, &desired.gvk.kind, live);
        let progress = expected.readiness(None).clone().into();
        let mut owners = self.lock();
        let siblings = owners.entry(desired.owner.clone()).or_default();
        if let Some(before) = siblings.get(&key).filter(|before| before.desired == hash) {
            expected = expected.repaired(&before.expected);
        }
        let cause = siblings.get(&key).map(|before| before.cause.clone()).unwrap_or_default();
        let (target, known) = (desired.target, known.clone());
        let child = Child { desired: hash, expected, target, known, cause };
        siblings.insert(key, child);
        Applied { progress, again: None }
    }

    /// Deletes what belongs to a resource and is not among what it wants. How many are on their way.
    pub async fn prune(
        &self,
        applier: &Applier,
        (gvk, resource): (&GroupVersionKind, &ApiResource),
        known: &dyn Known,
        owner: &Key,
        keep: &HashSet<ChildKey>,
    ) -> Result<usize, Error> {
        let mut ending = 0;
        for (key, dependent) in known.of(owner) {
            let child = (gvk.clone(), key);
            if keep.contains(&child) {
                continue;
            }
            ending += 1;
            if !dependent.observed.deleting {
                let ObjectKey { namespace, name } = child.1.clone();
                let target = Target { resource: resource.clone(), namespace, name };
                if delete_as_seen(applier, &target, &dependent).await? == Deletion::Replaced {
                    return Err(Error::Conflict);
                }
            }
            if let Some(children) = self.lock().get_mut(owner) {
                children.remove(&child);
            }
        }
        Ok(ending)
    }

    pub(super) fn with<T>(
        &self,
        owner: &Key,
        key: &ChildKey,
        work: impl FnOnce(&mut Child) -> T,
    ) -> Option<T> {
        self.lock().get_mut(owner)?.get_mut(key).map(work)
    }

    fn remembers(&self, owner: &Key, key: &ChildKey) -> bool {
        self.lock().get(owner).is_some_and(|children| children.contains_key(key))
    }

    fn unchanged(
        &self,
        owner: &Key,
        key: &ChildKey,
        hash: u64,
        cached: Option<&Dependent>,
    ) -> Option<Applied> {
        let mut owners = self.lock();
        let child = owners.get_mut(owner)?.get_mut(key)?;
        if child.desired != hash {
            return None;
        }
        let observed = cached.map(|dependent| &dependent.observed);
        let again =
            match child.expected.compare(observed, child.known.listed_at(&key.1), Instant::now()) {
                DriftState::Same => None,
                DriftState::Behind => Some(CATCH_UP),
                DriftState::Rest(pause) => Some(pause),
                DriftState::Drifted | DriftState::Gone => return None,
            };
        let progress = child.expected.readiness(observed).clone().into();
        Some(Applied { progress, again })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, HashMap<ChildKey, Child>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Deletes an object if nobody touched it since the watch told of it.
async fn delete_as_seen(
    applier: &Applier,
    target: &Target,
    seen: &Dependent,
) -> Result<Deletion, Error> {
    let (uid, version) = (&seen.observed.uid, seen.observed.version.to_string());
    Ok(applier.delete_untouched(target, uid, &version, PropagationPolicy::Background).await?)
}

/// A child of which another process knew: one read tells whether there is anything to do.
async fn resume(applier: &Applier, desired: &Desired<'_>) -> Result<Value, Error> {
    let (target, object) = (&desired.target, &desired.object);
    if let Some(live) = applier.get(target).await?
        && desired.has(&live)
        && let Inspection::Same = applier.inspect(target, object, &live, &[]).await?
    {
        return Ok(live);
    }
    Ok(applier.apply(target, object).await?)
}

/// Makes an object ours that is not known as ours: creates it, or takes it back where it has us as its
/// owner already (our cache is behind). An object of somebody else is left alone.
async fn claim(applier: &Applier, desired: &Desired<'_>) -> Result<Value, Error> {
    match applier.claim(&desired.target, &desired.object).await {
        Err(error) if error.kind == FailureKind::AlreadyExists => {}
        Err(error) if error.kind == FailureKind::NamespaceTerminating => {
            return Err(Error::waiting("NamespaceTerminating", error.to_string()));
        }
        claimed => return Ok(claimed?),
    }
    let live = applier.get(&desired.target).await?.unwrap_or_default();
    if desired.has(&live) {
        return Ok(applier.apply(&desired.target, &desired.object).await?);
    }
    Err(Error::Permanent(format!(
        "{} exists and does not belong to this resource: delete or rename one of the two",
        desired.target
    )))
}

/// Deletes a child that cannot become what it shall be; its end wakes the resource, which makes it anew.
async fn remove(applier: &Applier, desired: &Desired<'_>, why: String) -> Result<Applied, Error> {
    let live = applier.get(&desired.target).await?.unwrap_or_default();
    let uid = live.pointer("/metadata/uid").and_then(Value::as_str);
    // What is not there, or not ours, was refused for another reason than that it cannot be changed.
    let Some(uid) = uid.filter(|_| desired.has(&live)) else { return Err(Error::Permanent(why)) };
    probe(applier, desired).await?;
    applier.delete(&desired.target, uid, PropagationPolicy::Background).await?;
    tracing::info!(child = %desired.target, why, "cannot be changed, is made anew");
    Ok(Applied { progress: ending(&desired.target), again: Some(CATCH_UP) })
}

/// Whether the API server would take the child if there were none: what is not valid at all is no reason
/// to delete what works.
async fn probe(applier: &Applier, desired: &Desired<'_>) -> Result<(), Error> {
    let name = format!("{}{PROBE}", beginning(&desired.target.name, MOST_CHARACTERS - PROBE.len()));
    let mut object = desired.object.clone();
    object["metadata"]["name"] = name.as_str().into();
    let target = Target { name, ..desired.target.clone() };
    applier.dry_run(&target, &object).await?;
    Ok(())
}

fn ending(target: &Target) -> ComponentProgress {
    ComponentProgress::pending(
        "Terminating",
        format!("{target} is being deleted, and is made anew then"),
    )
}

fn hash(object: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    object.hash(&mut hasher);
    hasher.finish()
}
