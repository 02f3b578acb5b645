//! The cached state of an object: enough to tell, without a request, whether it has changed since the
//! last apply.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::time::{Duration, Instant};

use kube::core::DynamicObject;
use serde_json::Value;

use crate::readiness::{self, Completion, Readiness};
use crate::watch::Content;

/// How long a cache may lag behind a write before a missing object counts as deleted.
const LAG: Duration = Duration::from_secs(10);

/// When to compare again after [`DriftState::Behind`]: by then the cache has received the write, or the
/// object counts as deleted.
pub const CATCH_UP: Duration = Duration::from_secs(11);

/// Repairs of one object within this time of each other are a conflict with another writer.
const FIGHT: Duration = Duration::from_mins(1);
/// The number of repairs in a row without delay; each further one waits longer.
const PATIENCE: u32 = 3;

/// Kinds whose content no readiness rule reads: only their metadata is watched.
const PLAIN: &[(&str, &str)] = &[
    ("", "ConfigMap"),
    ("", "Secret"),
    ("", "ServiceAccount"),
    ("", "LimitRange"),
    ("rbac.authorization.k8s.io", "Role"),
    ("rbac.authorization.k8s.io", "RoleBinding"),
    ("rbac.authorization.k8s.io", "ClusterRole"),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
    ("networking.k8s.io", "NetworkPolicy"),
    ("networking.k8s.io", "IngressClass"),
    ("storage.k8s.io", "StorageClass"),
    ("scheduling.k8s.io", "PriorityClass"),
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
];

/// Annotations that Kubernetes' controllers write on objects of others: a change is no drift.
const CONTROLLERS_OWN: &[&str] =
    &["deployment.kubernetes.io/", "control-plane.alpha.kubernetes.io/"];

/// How much of a kind's objects to watch.
pub fn content_of(group: &str, kind: &str) -> Content {
    if PLAIN.contains(&(group, kind)) { Content::Metadata } else { Content::Full }
}

/// A fingerprint of the fields that others may not change: an object with the same fingerprint is unchanged.
///
/// It consists of the uid, labels, annotations and generation. For a kind without generation, of everything
/// but the status. If only metadata is watched, of the resourceVersion. Valid in one process only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectFingerprint(u64);

impl ObjectFingerprint {
    /// The fingerprint of a live object of this kind.
    pub fn of(group: &str, kind: &str, object: &DynamicObject) -> Self {
        let meta = &object.metadata;
        let mut hasher = DefaultHasher::new();
        meta.uid.hash(&mut hasher);
        meta.labels.hash(&mut hasher);
        for (key, value) in meta.annotations.iter().flatten() {
            if !CONTROLLERS_OWN.iter().any(|prefix| key.starts_with(prefix)) {
                (key, value).hash(&mut hasher);
            }
        }
        match (meta.generation, content_of(group, kind)) {
            (Some(generation), _) => generation.hash(&mut hasher),
            (None, Content::Metadata | Content::OwnedThenMetadata) => {
                meta.resource_version.hash(&mut hasher);
            }
            (None, Content::Full | Content::Owned) => {
                for (field, value) in object.data.as_object().into_iter().flatten() {
                    if field != "status" {
                        (field, value).hash(&mut hasher);
                    }
                }
            }
        }
        Self(hasher.finish())
    }
}

/// An object by the last event of a watch.
#[derive(Clone, Debug)]
pub struct Observed {
    /// Its uid.
    pub uid: String,
    /// See [`ObjectFingerprint`].
    pub mark: ObjectFingerprint,
    /// resourceVersion as a number, which it is if the API server uses etcd.
    pub version: u64,
    /// Its readiness.
    pub readiness: Readiness,
    /// Whether it is a Job or Pod that has ended.
    pub ended: bool,
    /// Whether its deletion has begun.
    pub deleting: bool,
}

impl Observed {
    /// The cached state of a live object of this kind.
    pub fn of(group: &str, kind: &str, object: &DynamicObject) -> Self {
        let (readiness, ended) = assess(group, kind, object);
        Self {
            uid: object.metadata.uid.clone().unwrap_or_default(),
            mark: ObjectFingerprint::of(group, kind, object),
            version: version(object),
            readiness,
            ended,
            deleting: object.metadata.deletion_timestamp.is_some(),
        }
    }
}

/// The readiness of the object, and whether it has ended.
fn assess(group: &str, kind: &str, object: &DynamicObject) -> (Readiness, bool) {
    if object.data.is_null() && object.metadata.deletion_timestamp.is_none() {
        return (Readiness::Ready, false); // metadata alone was asked for: there is no rule for this kind
    }
    // The rules read kind, metadata and the rest in the shape of the API; items of lists have no kind.
    let mut whole = serde_json::to_value(object).unwrap_or(Value::Null);
    if let Some(fields) = whole.as_object_mut() {
        fields.entry("kind").or_insert_with(|| kind.into());
        // Rules go by the group, for any watched version.
        let api_version = if group.is_empty() { "v1".to_owned() } else { format!("{group}/v1") };
        fields.entry("apiVersion").or_insert(api_version.into());
    }
    let ended = readiness::completion(&whole).is_some_and(|it| it != Completion::Running);
    (readiness::assess(&whole), ended)
}

fn version(object: &DynamicObject) -> u64 {
    object
        .metadata
        .resource_version
        .as_deref()
        .and_then(|version| version.parse().ok())
        .unwrap_or(0)
}

/// An object after its last apply, to be compared with later events.
#[derive(Clone, Debug)]
pub struct AppliedState {
    mark: ObjectFingerprint,
    version: u64,
    readiness: Readiness,
    left_at: Instant,
    /// Whether the watch has reported it since.
    confirmed: bool,
    /// The number of repairs in a row.
    repairs: u32,
}

/// What happened to an object since the last apply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DriftState {
    /// Nothing.
    Same,
    /// The cache has not received the own write yet.
    Behind,
    /// Somebody changed a field of the release, or replaced the object.
    Drifted,
    /// Somebody deleted it, or is deleting it.
    Gone,
    /// Drifted or deleted, but somebody reverts every repair: wait for this time.
    Rest(Duration),
}

impl AppliedState {
    /// The state from the API server's response to an own write.
    pub fn of(group: &str, kind: &str, object: &DynamicObject) -> Self {
        let observed = Observed::of(group, kind, object);
        Self {
            mark: observed.mark,
            version: observed.version,
            readiness: observed.readiness,
            left_at: Instant::now(),
            confirmed: false,
            repairs: 0,
        }
    }

    /// How long ago the last apply was.
    pub fn age(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.left_at)
    }

    /// The same after a repair: counts repairs, so that two writers slow down.
    #[must_use]
    pub fn repaired(mut self, before: &Self) -> Self {
        if self.left_at.duration_since(before.left_at) < FIGHT {
            self.repairs = before.repairs.saturating_add(1);
        }
        self
    }

    /// Compares with the cache at the time `now`; `listed_at` is when its last complete list began.
    pub fn compare(
        &mut self,
        observed: Option<&Observed>,
        listed_at: Option<Instant>,
        now: Instant,
    ) -> DriftState {
        let listed_since = listed_at.is_some_and(|listed_at| listed_at > self.left_at);
        let verdict = self.judge(observed, listed_since, now);
        let pause = match self.repairs.checked_sub(PATIENCE) {
            Some(more) => Duration::from_secs(1 << more.min(5)),
            None => Duration::ZERO,
        };
        let rest = (self.left_at + pause).saturating_duration_since(now);
        match verdict {
            DriftState::Drifted | DriftState::Gone if !rest.is_zero() => DriftState::Rest(rest),
            verdict => verdict,
        }
    }

    fn judge(
        &mut self,
        observed: Option<&Observed>,
        listed_since: bool,
        now: Instant,
    ) -> DriftState {
        match observed {
            Some(observed) if observed.deleting => DriftState::Gone,
            Some(observed) if observed.mark == self.mark => {
                self.confirmed = true;
                DriftState::Same
            }
            Some(observed) if observed.version > self.version => DriftState::Drifted,
            None if self.confirmed || listed_since || self.age(now) > LAG => DriftState::Gone,
            Some(_) | None => DriftState::Behind,
        }
    }

    /// The readiness as far as it is known: from the cache, or from the response to the own write.
    pub fn readiness<'a>(&'a self, observed: Option<&'a Observed>) -> &'a Readiness {
        match observed {
            Some(observed) if observed.version >= self.version => &observed.readiness,
            _ => &self.readiness,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn deployment(version: u32, generation: Option<u32>, extra: &Value) -> DynamicObject {
        let mut object = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": { "name": "a", "uid": "u", "resourceVersion": version.to_string(), "generation": generation },
            "spec": { "replicas": 3 },
        });
        for (pointer, value) in extra.as_object().unwrap() {
            *object.pointer_mut(pointer).unwrap() = value.clone();
        }
        serde_json::from_value(object).unwrap()
    }

    fn verdict(before: &DynamicObject, after: &DynamicObject) -> DriftState {
        let observed = Observed::of("apps", "Deployment", after);
        AppliedState::of("apps", "Deployment", before).compare(
            Some(&observed),
            None,
            Instant::now(),
        )
    }

    #[test]
    fn a_new_generation_is_drift_and_a_new_status_is_not() {
        let ours = deployment(5, Some(1), &json!({}));
        assert_eq!(verdict(&ours, &deployment(9, Some(1), &json!({}))), DriftState::Same);
        assert_eq!(verdict(&ours, &deployment(9, Some(2), &json!({}))), DriftState::Drifted);
        assert_eq!(verdict(&ours, &deployment(4, Some(0), &json!({}))), DriftState::Behind);
    }

    #[test]
    fn without_a_generation_the_content_counts() {
        let ours = deployment(5, None, &json!({}));
        assert_eq!(verdict(&ours, &deployment(9, None, &json!({}))), DriftState::Same);
        assert_eq!(
            verdict(&ours, &deployment(9, None, &json!({ "/spec/replicas": 4 }))),
            DriftState::Drifted
        );
    }

    #[test]
    fn a_job_that_ends_is_told_apart_also_from_a_list_without_kinds() {
        let job = |condition: &str| {
            let object = json!({
                "metadata": { "name": "a" },
                "status": { "startTime": "now", "conditions": [{ "type": condition, "status": "True" }] },
            });
            let object: DynamicObject = serde_json::from_value(object).unwrap();
            let observed = Observed::of("batch", "Job", &object);
            (observed.ended, observed.readiness.is_ready())
        };
        assert_eq!(job("Suspended"), (false, true));
        assert_eq!(job("Complete"), (true, true));
        assert_eq!(job("Failed"), (true, false));
    }

    #[test]
    fn labels_are_drift_and_the_deployment_controllers_annotation_is_not() {
        let ours = deployment(5, Some(1), &json!({}));
        let mut relabelled = deployment(9, Some(1), &json!({}));
        relabelled.metadata.labels = Some([("a".to_owned(), "b".to_owned())].into());
        assert_eq!(verdict(&ours, &relabelled), DriftState::Drifted);
        let mut rolled = deployment(9, Some(1), &json!({}));
        let revision = ("deployment.kubernetes.io/revision".to_owned(), "1".to_owned());
        rolled.metadata.annotations = Some([revision].into());
        assert_eq!(verdict(&ours, &rolled), DriftState::Same);
    }

    #[test]
    fn who_undoes_every_repair_meets_longer_and_longer_pauses() {
        let ours = deployment(5, Some(1), &json!({}));
        let theirs = Observed::of("apps", "Deployment", &deployment(9, Some(2), &json!({})));
        let mut expected = AppliedState::of("apps", "Deployment", &ours);
        let mut pauses = Vec::new();
        for _ in 0..6 {
            pauses.push(match expected.compare(Some(&theirs), None, expected.left_at) {
                DriftState::Rest(pause) => pause.as_secs(),
                verdict => {
                    assert_eq!(verdict, DriftState::Drifted);
                    0
                }
            });
            expected = AppliedState::of("apps", "Deployment", &ours).repaired(&expected);
        }
        assert_eq!(pauses, [0, 0, 0, 1, 2, 4]);
        let later = expected.left_at + Duration::from_secs(9);
        assert_eq!(expected.compare(Some(&theirs), None, later), DriftState::Drifted);
    }

    #[test]
    fn a_missing_object_is_gone_only_after_the_cache_had_it_or_had_the_time() {
        let ours = deployment(5, Some(1), &json!({}));
        let mut expected = AppliedState::of("apps", "Deployment", &ours);
        assert_eq!(expected.compare(None, None, Instant::now()), DriftState::Behind);
        assert_eq!(expected.compare(None, None, Instant::now() + LAG * 2), DriftState::Gone);
        let listed = Some(Instant::now());
        assert_eq!(expected.compare(None, listed, Instant::now()), DriftState::Gone);
        let observed = Observed::of("apps", "Deployment", &ours);
        assert_eq!(expected.compare(Some(&observed), None, Instant::now()), DriftState::Same);
        assert_eq!(expected.compare(None, None, Instant::now()), DriftState::Gone);
    }
}
