//! Sending one object merged on our side, as Helm 3 does: `--server-side=false`.

use catamaran_cluster::apply::{ApplyError, FailureKind, Target, metadata_str};
use serde_json::{Value, json};

use super::objects::{Sent, check_ours, check_own, not_terminating};
use super::{AppliedObject, Driver, ObjectDrift};
use crate::Error;
use crate::objects::{PlannedObject, changed, is_built_in, merged, patched};
use crate::plan::ApplyMode;

impl Driver {
    /// Creates an object, or brings the one that is there from what earlier revisions wanted (`before`)
    /// to what this one does. Writes nothing if that changes nothing; never over a change that was made
    /// since it looked.
    pub(super) async fn send_merged(
        &self,
        how: ApplyMode,
        object: &PlannedObject,
        before: &[Value],
        release: (&str, &str),
    ) -> Result<Sent, Error> {
        let target = self.target_of(object).await?;
        let created =
            |live| Sent::Applied(Box::new(AppliedObject::new(object, live, ObjectDrift::Missing)));
        let live = if how == ApplyMode::Claim { None } else { self.applier.get(&target).await? };
        let live = match live {
            Some(live) => live,
            None => match self.applier.create(&target, &object.body).await {
                Ok(live) => return Ok(created(live)),
                Err(error) if error.kind == FailureKind::AlreadyExists => {
                    let live = self.applier.get(&target).await?;
                    let live = live.ok_or(ApplyError { kind: FailureKind::Conflict, ..error })?;
                    check_own(&live, &object.id, release)?;
                    live
                }
                Err(error) => return Err(error.into()),
            },
        };
        if matches!(how, ApplyMode::ApplyIfOurs | ApplyMode::VerifyIfOurs) {
            check_ours(&live, object, release)?;
        }
        not_terminating(&live, &object.id)?;
        let sent = self.bring(&target, object, before, live).await?;
        Ok(Sent::Applied(Box::new(sent)))
    }

    async fn bring(
        &self,
        target: &Target,
        object: &PlannedObject,
        before: &[Value],
        live: Value,
    ) -> Result<AppliedObject, Error> {
        let before: Vec<&Value> = before.iter().collect();
        let is_merged = is_built_in(&object.gvk) || object.gvk.group == "apiextensions.k8s.io";
        let mut patch = if is_merged {
            changed(&live, &merged(&live, &before, &object.body))
        } else {
            patched(&live, &before, &object.body)
        };
        if patch == json!({}) {
            return Ok(AppliedObject::new(object, live, ObjectDrift::Same));
        }
        patch["metadata"]["resourceVersion"] = metadata_str(&live, "resourceVersion").into();
        let live = self.applier.merge(target, &patch).await?;
        Ok(AppliedObject::new(object, live, ObjectDrift::Unseen))
    }
}
