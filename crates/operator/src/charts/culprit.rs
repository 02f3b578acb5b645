//! Why a release is not ready, looked for where its own watches do not reach: at pods, and at events.

use std::hash::{DefaultHasher, Hash, Hasher};

use catamaran_cluster::apply::Target;
use catamaran_cluster::culprit::{Culprit, Pace, is_worth_asking, pace};
use catamaran_cluster::readiness::Readiness;

use super::ChartController;
use super::memory::{Findings, NotReady};
use super::vigil::{Answer, Subject};
use crate::manager::queue::Key;

/// Said of an object that its controller has not looked at: its pods cannot tell more.
const UNSEEN: &str = "LatestGenerationNotObserved";

impl ChartController {
    /// Puts what matters most first among what is not ready, and says of that what the cause is. Its
    /// pods are watched until it is ready; where that cannot be, it is asked again after a while.
    pub(super) async fn name_culprit(&self, key: &Key, findings: &mut Findings) {
        // The order is that of the installation: what comes first, later ones may be waiting for.
        findings.not_ready.sort_by_key(|it| !matches!(it.readiness, Readiness::Failed { .. }));
        let worst = findings.not_ready.first().filter(|worst| {
            is_worth_asking(&worst.gvk.group, &worst.gvk.kind) && !says(&worst.readiness, UNSEEN)
        });
        let Some(worst) = worst else { return self.vigils.end(key) };
        let again = match pace(worst.lasts) {
            Pace::Later(rest) => return findings.look_again(rest),
            Pace::Now(again) => again,
        };
        let question = question(worst);
        let found = if let Some(known) = self.vigils.answer(key, question) {
            known.culprit
        } else {
            let (culprit, watched) = self.ask(key, worst, question).await;
            if !watched {
                findings.look_again(again);
            }
            culprit
        };
        if let (Some(found), Some(worst)) = (found, findings.not_ready.first_mut()) {
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
    async fn ask(&self, key: &Key, not_ready: &NotReady, question: u64) -> (Option<Culprit>, bool) {
        let NotReady { id, gvk, .. } = not_ready;
        let Ok(mapping) = self.mapper.resolve(gvk).await else { return (None, false) };
        let (namespace, name) = (id.namespace.clone(), id.name.clone());
        let target = Target { resource: mapping.resource, namespace, name };
        self.vigils.asking(key);
        let reader = &self.requester.of(&self.site_of(&key.object).namespace).reader;
        let Ok(Some(live)) = reader.get(&target).await else { return (None, false) };
        let found = reader.inquire(&target, &live).await;
        let namespace = id.namespace.as_deref().unwrap_or_default();
        let pods = found.pods.iter().map(|labels| Subject::pods(namespace, labels));
        let events = found.events.iter().map(|fields| Subject::events(namespace, fields));
        // What the object says itself, the watch on its kind tells.
        let watched = self.vigils.keep(key, pods.chain(events));
        self.vigils.answered(key, Answer { question, culprit: found.culprit.clone() });
        (found.culprit, watched)
    }
}

fn says(readiness: &Readiness, why: &str) -> bool {
    match readiness {
        Readiness::Pending { reason, .. } | Readiness::Failed { reason, .. } => reason == why,
        Readiness::Ready => false,
    }
}

/// Which object it is about, and what that says itself.
fn question(about: &NotReady) -> u64 {
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
