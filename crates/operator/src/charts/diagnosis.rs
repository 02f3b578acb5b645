//! Finds out why a release is not ready, from pods and events.

use std::hash::{DefaultHasher, Hash, Hasher};

use catamaran_cluster::apply::Target;
use catamaran_cluster::diagnosis::{FailureCause, Pace, is_worth_asking, pace};
use catamaran_cluster::readiness::Readiness;

use super::ChartController;
use super::readiness_watches::{CachedDiagnosis, WatchTarget};
use super::release_cache::{NotReady, Observation};
use crate::manager::queue::Key;

/// The reason of an object that its controller has not processed: its pods show nothing more.
const UNSEEN: &str = "LatestGenerationNotObserved";

impl ChartController {
    /// Moves the most important of the objects that are not ready to the front, and diagnoses it. Watches its
    /// pods until it is ready; if that does not work, the next diagnosis follows after a while.
    pub(super) async fn diagnose(&self, key: &Key, observation: &mut Observation) {
        // In the order of installation: later objects may wait for earlier ones.
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

    /// Diagnoses an object, and watches what the diagnosis has read. Whether the watches report all changes.
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
        // The watch of the kind reports what the object itself shows.
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

/// A key for the object and its own message.
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
