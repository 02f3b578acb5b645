//! Waits of a release: which watch reports their end.

use std::time::Duration;

use catamaran_chart::Rendered;
use catamaran_cluster::diagnosis::{GRACE, is_worth_asking};
use catamaran_cluster::mapper::Mapping;
use catamaran_release::{HookReason, ObjectId, Waiting};
use kube::core::GroupVersionKind;

use super::ChartController;
use super::readiness_watches::WatchTarget;
use super::reconcile::{Interruption, RECHECK};
use crate::manager::queue::Key;

/// The reason while the API server does not serve a kind whose CRD is part of the release.
pub(super) const NOT_SERVED: &str = "KindNotServedYet";
/// The longest wait if a watch reports the end; only a safety net.
const LONG: Duration = Duration::from_mins(5);
/// For this long after the last change, the operator looks for causes that none of its watches reports.
const YOUNG: Duration = Duration::from_secs(5);

/// A wait for a change of an object.
pub(super) struct WaitCondition {
    pub reason: String,
    pub message: String,
    object: ObjectId,
    /// The version of its kind, if it is known.
    version: Option<String>,
    why: HookReason,
    at_most: Option<Duration>,
}

impl WaitCondition {
    /// The wait that a release reports.
    pub fn told(waiting: Waiting) -> Self {
        let Waiting { role, object, gvk, why, reason, message, at_most, .. } = waiting;
        let message = format!("{role} {} {}: {message}", object.kind, object.name);
        Self { reason, message, object, version: Some(gvk.version), why, at_most }
    }

    /// A wait until an object exists, or does not exist any more.
    pub fn of(reason: &str, message: String, object: ObjectId) -> Self {
        let reason = reason.to_owned();
        Self { reason, message, object, version: None, why: HookReason::Gone, at_most: None }
    }

    /// The same for the CRD of the object's kind, if that is what is missing: it is part of the
    /// rendering.
    pub fn defined_by(self, rendered: &Rendered) -> Self {
        if self.reason != NOT_SERVED {
            return self;
        }
        let found = catamaran_release::objects::parse_manifest(&rendered.manifest_text());
        let field = |object: &serde_json::Value, path: &str, is: &str| {
            object.pointer(path).and_then(serde_json::Value::as_str) == Some(is)
        };
        let definition = found.into_iter().flatten().find(|raw| {
            raw.gvk.kind == "CustomResourceDefinition"
                && field(&raw.object, "/spec/group", &self.object.group)
                && field(&raw.object, "/spec/names/kind", &self.object.kind)
        });
        let Some(definition) = definition else { return self };
        let name = catamaran_cluster::apply::metadata_str(&definition.object, "name").to_owned();
        let GroupVersionKind { group, version, kind } = definition.gvk;
        let object = ObjectId { group, kind, namespace: None, name };
        Self { object, version: Some(version), ..self }
    }
}

impl ChartController {
    /// Makes changes of the object cause a reconcile: by the watch of its kind, or by one of its own. If
    /// neither works, the reconcile runs again soon.
    pub(super) async fn wait_for(&self, key: &Key, until: WaitCondition) -> Interruption {
        let at_most = until.at_most.unwrap_or(LONG).max(RECHECK);
        let after = if until.why == HookReason::Pause {
            self.readiness_watches.end(key);
            at_most
        } else {
            let tellers = self.watch_targets(&until).await;
            let told = tellers.is_some_and(|tellers| self.readiness_watches.watch(key, tellers));
            let ObjectId { group, kind, .. } = &until.object;
            let silence = self.readiness_watches.idle_time(key);
            // Only events may show that its pod cannot start.
            let more =
                until.why == HookReason::End && is_worth_asking(group, kind) && silence < YOUNG;
            match (told, more) {
                (true, false) => at_most,
                (true, true) => at_most.min(GRACE + RECHECK),
                (false, _) => RECHECK,
            }
        };
        Interruption::Wait { reason: until.reason, message: until.message, after }
    }

    /// What to watch for it; `None` if that is not known.
    async fn watch_targets(&self, until: &WaitCondition) -> Option<Vec<WatchTarget>> {
        let ObjectId { group, kind, namespace, name } = &until.object;
        let mut tellers = Vec::new();
        let gvk = until.version.as_ref().map(|version| GroupVersionKind::gvk(group, version, kind));
        let is_cached = gvk.as_ref().is_some_and(|gvk| {
            until.why == HookReason::End && self.cache(gvk).is_some_and(|cache| cache.is_synced())
        });
        // The watch of the kind reports a Job or a pod. An object that is deleted may lack the label.
        if namespace.is_none() || !is_cached {
            let Mapping { resource, .. } = match &gvk {
                Some(gvk) => self.mapper.resolve(gvk).await.ok()?,
                None => self.mapper.resolve_any_version(group, kind).await.ok()??,
            };
            tellers.push(WatchTarget::object(resource, namespace.as_deref(), name));
        }
        if let (Some(namespace), "batch", "Job") = (namespace, group.as_str(), kind.as_str()) {
            let labels = format!("batch.kubernetes.io/job-name={name}");
            tellers.push(WatchTarget::pods(namespace, &labels));
        }
        Some(tellers)
    }
}
