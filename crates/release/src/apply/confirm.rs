//! Looking after a deployed revision whose record is not trusted: what is sent is what is rendered.

use std::collections::HashSet;
use std::sync::Arc;

use catamaran_cluster::apply::ApplyError;
use serde_json::Value;

use super::objects::{BLOCK, Sent, check_ours, may_not_block, not_terminating, unblocked};
use super::{ActionResult, Applied, AppliedObject, Driver, ObjectDrift, unchanged};
use crate::Error;
use crate::objects::{PlannedObject, missing_marks, normalised, parse_manifest};
use crate::plan::{ApplyMode, DesiredState, History, claimed};

impl Driver {
    /// As [`Driver::repair`], where the record of the deployed revision is not to be acted on, but tells
    /// the same as what is desired, except for what the chart draws anew in each rendering.
    ///
    /// Looks at the objects as they are rendered now. Those that the record has the same are applied
    /// where they are not as they shall be. Those that differ hold something drawn: they stay as they
    /// are, and get the marks that they lack. An object that does not prove to be the release's is an
    /// error. Writes no record.
    ///
    /// # Errors
    ///
    /// [`Error::Ownership`]; as any request.
    pub async fn confirm(
        &self,
        history: &History,
        desired: &DesiredState<'_>,
    ) -> Result<Applied, Error> {
        let mut applied = unchanged(history)?;
        let (release, namespace) = (desired.id(), history.namespace());
        let text = |object: Value| normalised(object, namespace).to_string();
        let recorded: HashSet<String> = claimed(history, &applied.release)?
            .into_iter()
            .map(|recorded| text(recorded.object))
            .collect();
        let manifest = desired.rendered.manifest_text();
        let objects = self.planned(release, desired.owner, &manifest).await?;
        for (object, raw) in objects.iter().zip(parse_manifest(&manifest)?) {
            if !recorded.contains(&text(raw.object)) {
                applied.objects.push(self.mark(object, release).await?);
                continue;
            }
            let sent = self.send(ApplyMode::VerifyIfOurs, object, release).await;
            match sent.map_err(|error| error.redacted(&applied.release.sensitive()))? {
                Sent::Applied(looked) => applied.objects.push(*looked),
                Sent::Known(_) => applied.known.push(object.id.clone()),
            }
        }
        if applied.objects.iter().any(|object| object.found.is_drift()) {
            applied.done = ActionResult::Repaired;
        }
        applied.release = Arc::new(desired.with_rendered_content(&applied.release));
        Ok(applied)
    }

    /// Leaves an object as it is, but for the marks of the release; makes it if there is none.
    async fn mark(
        &self,
        object: &PlannedObject,
        release: (&str, &str),
    ) -> Result<AppliedObject, Error> {
        let target = self.target_of(object).await?;
        let Some(mut live) = self.see(&target, object).await? else {
            return self.claim(&target, object, release).await;
        };
        check_ours(&live, object, release)?;
        not_terminating(&live, &object.id)?;
        if let Some(patch) = missing_marks(&live, &object.body) {
            live = match self.applier.merge(&target, &patch).await {
                Err(refused) if may_not_block(&refused) => {
                    self.mark_unblocked(object, &live, &refused).await?
                }
                marked => marked?,
            };
        }
        // Nothing is known of what would have been wanted: the next revision sends it.
        Ok(AppliedObject { wanted: 0, ..AppliedObject::new(object, live, ObjectDrift::Same) })
    }

    async fn mark_unblocked(
        &self,
        object: &PlannedObject,
        live: &Value,
        refused: &ApplyError,
    ) -> Result<Value, Error> {
        self.rights
            .warn_once(BLOCK, &format!("going on without, as with {}: {refused}", object.id));
        let target = self.target_of(object).await?;
        match missing_marks(live, &unblocked(object).body) {
            Some(patch) => Ok(self.applier.merge(&target, &patch).await?),
            None => Ok(live.clone()),
        }
    }
}
