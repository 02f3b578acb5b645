//! The objects that native resources own: applied when they must be, left alone when they are right.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use catamaran_cluster::apply::{Applier, FailureKind, Target};
use catamaran_cluster::observed::{CATCH_UP, Expected, Verdict};
use catamaran_cluster::watch::ObjectKey;
use kube::api::PropagationPolicy;
use kube::core::{DynamicObject, GroupVersionKind};
use serde_json::Value;

use super::{Error, Progress};
use crate::manager::dependents::Dependent;
use crate::manager::feeds::Cache;
use crate::manager::queue::Key;

/// What is remembered of every child, for as long as its owner lives.
#[derive(Debug, Default)]
pub(super) struct Children(Mutex<HashMap<Key, HashMap<ChildKey, Child>>>);

type ChildKey = (GroupVersionKind, ObjectKey);

#[derive(Debug)]
struct Child {
    /// Hash of the object as it was asked for.
    desired: u64,
    expected: Expected,
    target: Target,
    cache: Arc<Cache<Dependent>>,
}

/// What became of a child.
pub(super) struct Applied {
    pub progress: Progress,
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
}

impl Children {
    /// Deletes the children of a resource that is gone. The garbage collector would do so, too, but it
    /// takes up to 30 s to hear of a new CRD. A child that was orphaned on purpose stays: taking the
    /// owner reference off has changed it.
    pub async fn gone(&self, applier: &Applier, owner: &Key) {
        let children = self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(owner);
        for (_, Child { target, cache, .. }) in children.into_iter().flatten() {
            let key = ObjectKey { namespace: target.namespace.clone(), name: target.name.clone() };
            let Some(cached) = cache.get(&key).filter(|cached| cached.owners.contains(owner))
            else {
                continue;
            };
            let (uid, version) = (&cached.observed.uid, cached.observed.version.to_string());
            let deleted = applier
                .delete_untouched(&target, uid, &version, PropagationPolicy::Background)
                .await;
            if let Err(error) = deleted {
                tracing::debug!(%error, "left to the garbage collector");
            }
        }
    }

    /// Applies a child unless it is known to be as desired; then no request is made.
    pub async fn apply(
        &self,
        applier: &Applier,
        cache: &Arc<Cache<Dependent>>,
        desired: Desired<'_>,
    ) -> Result<Applied, Error> {
        let hash = hash(&desired.object);
        let object = ObjectKey {
            namespace: desired.target.namespace.clone(),
            name: desired.target.name.clone(),
        };
        let key = (desired.gvk.clone(), object);
        let cached = cache.get(&key.1);
        if let Some(applied) = self.unchanged(desired.owner, &key, hash, cached.as_deref()) {
            return Ok(applied);
        }
        let ours = cached.is_some_and(|dependent| dependent.owners.contains(desired.owner));
        let live = if ours {
            applier.apply(&desired.target, &desired.object).await?
        } else {
            claim(applier, &desired).await?
        };
        let live: DynamicObject =
            serde_json::from_value(live).map_err(|e| Error::Transient(Box::new(e)))?;
        let mut expected = Expected::of(&desired.gvk.group, &desired.gvk.kind, &live);
        let progress = expected.readiness(None).clone().into();
        let mut owners = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let siblings = owners.entry(desired.owner.clone()).or_default();
        if let Some(before) = siblings.get(&key).filter(|before| before.desired == hash) {
            expected = expected.repaired(&before.expected);
        }
        let child = Child { desired: hash, expected, target: desired.target, cache: cache.clone() };
        siblings.insert(key, child);
        Ok(Applied { progress, again: None })
    }

    fn unchanged(
        &self,
        owner: &Key,
        key: &ChildKey,
        hash: u64,
        cached: Option<&Dependent>,
    ) -> Option<Applied> {
        let mut owners = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let child = owners.get_mut(owner)?.get_mut(key)?;
        if child.desired != hash {
            return None;
        }
        let observed = cached.map(|dependent| &dependent.observed);
        let again =
            match child.expected.compare(observed, child.cache.listed_at(&key.1), Instant::now()) {
                Verdict::Same => None,
                Verdict::Behind => Some(CATCH_UP),
                Verdict::Rest(pause) => Some(pause),
                Verdict::Drifted | Verdict::Gone => return None,
            };
        let progress = child.expected.readiness(observed).clone().into();
        Some(Applied { progress, again })
    }
}

/// Makes an object ours that is not known as ours: creates it, or takes it back where it has us as its
/// owner already (our cache is behind). An object of somebody else is left alone.
async fn claim(applier: &Applier, desired: &Desired<'_>) -> Result<Value, Error> {
    match applier.claim(&desired.target, &desired.object).await {
        Err(error) if error.kind == FailureKind::AlreadyExists => {}
        Err(error) if error.kind == FailureKind::NamespaceTerminating => {
            return Err(Error::Waiting {
                reason: "NamespaceTerminating".into(),
                message: error.to_string(),
            });
        }
        claimed => return Ok(claimed?),
    }
    let live = applier.get(&desired.target).await?.unwrap_or_default();
    let owners = live.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    let is_us = |owner: &Value| owner.get("uid").and_then(Value::as_str) == Some(desired.owner_uid);
    if owners.is_some_and(|owners| owners.iter().any(is_us)) {
        return Ok(applier.apply(&desired.target, &desired.object).await?);
    }
    Err(Error::Permanent(format!(
        "{} exists and does not belong to this resource: delete or rename one of the two",
        desired.target
    )))
}

fn hash(object: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    object.hash(&mut hasher);
    hasher.finish()
}
