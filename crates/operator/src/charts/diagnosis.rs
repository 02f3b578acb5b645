//! Why a release is not ready, looked for where its own watches do not reach: at pods, and at events.

use std::hash::{DefaultHasher, Hash, Hasher};

use catamaran_cluster::apply::Target;
use catamaran_cluster::diagnosis::{FailureCause, Pace, is_worth_asking, pace};
use catamaran_cluster::readiness::Readiness;

use super::ChartController;
use super::readiness_watches::{CachedDiagnosis, WatchTarget};
use super::release_cache::{NotReady, Observation};
use crate::manager::queue::Key;

/// Said of an object that its controller has not looked at: its pods cannot tell more.
const UNSEEN: &str = "LatestGenerationNotObserved";

impl ChartController {
    /// Puts what matters most first among what is not ready, and says of that what the cause is. Its
    /// pods are watched until it is ready; where that cannot be, it is asked again after a while.
    pub(super) async fn diagnose(&self, key: &Key, observation: &mut Observation) {
        // The order is that of the installation: what comes first, later ones may be waiting for.
        observation.not_ready.sort_by_key(|it| !matches!(it.readiness, Readiness::Failed { .. }));
        let worst = observation.not_ready.first().filter(|worst| {
            is_worth_asking(&worst.gvk.group, &worst.gvk.kind) && !states(&worst.readiness, UNSEEN)
        });
        let Some(worst) = worst else { return self.readiness_watches.end(key) };
        let again = match pace(worst.lasts) {
            Pace::Later(delay) => return observation.requeue_within(delay),
            Pace::Now(again) => again,
        };
        let question = diagnosis_key(worst);
        let found = if let Some(known) = self.readiness_watches.cached_diagnosis(key, question) {
            known.cause
        } else {
            let (cause, watched) = self.query_cause(key, worst, question).await;
            if !watched {
                observation.requeue_within(again);
            }
            cause
        };
        if let (Some(found), Some(worst)) = (found, observation.not_ready.first_mut()) {
            match &mut worst.readiness {
                Readiness::Pending { reason, message } | Readiness::Failed { reason, message } => {
                    *message = found.to_string();
                    *reason = found.reason;
                }
                Readiness::Ready => {}
            }
        }
    }

    /// Looks for the cause, and watches where it was looked for; whether that tells of all changes.
    async fn query_cause(
        &self,
        key: &Key,
        not_ready: &NotReady,
        question: u64,
    ) -> (Option<FailureCause>, bool) {
        let NotReady { id, gvk, .. } = not_ready;
        let Ok(mapping) = self.mapper.resolve(gvk).await else { return (None, false) };
        let (namespace, name) = (id.namespace.clone(), id.name.clone());
        let target = Target { resource: mapping.resource, namespace, name };
        self.readiness_watches.start_diagnosis(key);
        let reader = &self.requester.of(&self.release_key_of(&key.object).namespace).reader;
        let Ok(Some(live)) = reader.get(&target).await else { return (None, false) };
        let found = reader.inquire(&target, &live).await;
        let namespace = id.namespace.as_deref().unwrap_or_default();
        let pods = found.pods.iter().map(|labels| WatchTarget::pods(namespace, labels));
        let events = found.events.iter().map(|fields| WatchTarget::events(namespace, fields));
        // What the object says itself, the watch on its kind tells.
        let watched = self.readiness_watches.watch(key, pods.chain(events));
        self.readiness_watches
            .store_diagnosis(key, CachedDiagnosis { question, cause: found.cause.clone() });
        (found.cause, watched)
    }
}

fn states(readiness: &Readiness, why: &str) -> bool {
    match readiness {
        Readiness::Pending { reason, .. } | Readiness::Failed { reason, .. } => reason == why,
        Readiness::Ready => false,
    }
}

/// Which object it is about, and what that says itself.
fn diagnosis_key(about: &NotReady) -> u64 {
    let mut hasher = DefaultHasher::new();
    about.id.hash(&mut hasher);
    match &about.readiness {
        Readiness::Pending { reason, message } | Readiness::Failed { reason, message } => {
            (reason, message).hash(&mut hasher);
        }
        Readiness::Ready => {}
    }
    hasher.finish()
}
