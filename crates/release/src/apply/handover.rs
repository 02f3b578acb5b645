//! Replicas that a chart leaves to an autoscaler from now on.

use std::collections::HashSet;

use catamaran_cluster::drift::ScaleTarget;
use serde_json::{Value, json};

use super::Driver;
use super::objects::check_ours;
use crate::Error;
use crate::objects::PlannedObject;
use crate::plan::{ApplyMode, Plan};

/// Who has the number of replicas from the moment that the chart drops it until the autoscaler sets it.
const IN_BETWEEN: &str = "catamaran-handover";

impl Driver {
    /// Sees to it that the number of replicas stays what it is when the chart drops it for an autoscaler:
    /// the apply would take it away, and the API server put a 1 in its place.
    ///
    /// Somebody else, in name, applies the number as it is; it is his after ours is gone, and the
    /// autoscaler's with its first write.
    ///
    /// `brought` is what autoscalers of the plan refer to.
    pub(super) async fn hand_over_replicas(
        &self,
        plan: &Plan,
        (how, object): (ApplyMode, &PlannedObject),
        brought: &HashSet<ScaleTarget>,
    ) -> Result<(), Error> {
        let number = |it: &Value| it.pointer("/spec/replicas").filter(|it| it.is_number()).cloned();
        let drops = number(&object.body).is_none()
            && plan.before(&object.id).iter().any(|before| number(before).is_some());
        let Some(target) = object.target.as_ref().filter(|_| drops) else { return Ok(()) };
        let is_brought = brought.contains(&ScaleTarget::of(target));
        if !is_brought && !self.applier.has_autoscaler(target).await? {
            return Ok(());
        }
        let live = self.applier.get(target).await?;
        let Some(live) = live else { return Ok(()) };
        if how == ApplyMode::ApplyIfOurs {
            check_ours(&live, object, (&plan.record.name, &plan.record.namespace))?;
        }
        let Some(replicas) = number(&live) else { return Ok(()) };
        let body = json!({
            "apiVersion": object.body["apiVersion"], "kind": object.body["kind"],
            "metadata": { "name": target.name, "namespace": target.namespace },
            "spec": { "replicas": replicas },
        });
        self.applier.called(IN_BETWEEN).apply(target, &body).await?;
        Ok(())
    }
}

/// What the autoscalers of a plan refer to.
pub(super) fn scaled_by(plan: &Plan) -> HashSet<ScaleTarget> {
    let autoscalers =
        plan.steps.iter().filter(|(_, object)| object.gvk.kind == "HorizontalPodAutoscaler");
    autoscalers.map(|(_, object)| ScaleTarget::of_autoscaler(&object.body)).collect()
}
