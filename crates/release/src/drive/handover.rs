//! Replicas that a chart leaves to an autoscaler from now on.

use catamaran_cluster::drift::scales;
use serde_json::{Value, json};

use super::Driver;
use crate::Error;
use crate::objects::PlannedObject;
use crate::plan::Plan;

/// Who has the number of replicas from the moment that the chart drops it until the autoscaler sets it.
const IN_BETWEEN: &str = "catamaran-handover";

impl Driver {
    /// Sees to it that the number of replicas stays what it is when the chart drops it for an autoscaler:
    /// the apply would take it away, and the API server put a 1 in its place.
    ///
    /// Somebody else, in name, applies the number as it is; it is his after ours is gone, and the
    /// autoscaler's with its first write.
    pub(super) async fn leave_replicas(
        &self,
        plan: &Plan,
        object: &PlannedObject,
    ) -> Result<(), Error> {
        let number = |it: &Value| it.pointer("/spec/replicas").filter(|it| it.is_number()).cloned();
        let drops = number(&object.body).is_none()
            && plan.before(&object.id).iter().any(|before| number(before).is_some());
        let Some(target) = object.target.as_ref().filter(|_| drops) else { return Ok(()) };
        let brought = plan.steps.iter().any(|(_, other)| {
            other.gvk.kind == "HorizontalPodAutoscaler" && scales(&other.body, target)
        });
        if !brought && !self.applier.has_autoscaler(target).await? {
            return Ok(());
        }
        let live = self.applier.get(target).await?;
        let Some(replicas) = live.as_ref().and_then(number) else { return Ok(()) };
        let body = json!({
            "apiVersion": object.body["apiVersion"], "kind": object.body["kind"],
            "metadata": { "name": target.name, "namespace": target.namespace },
            "spec": { "replicas": replicas },
        });
        self.applier.called(IN_BETWEEN).apply(target, &body).await?;
        Ok(())
    }
}
