//! Writing an object where an apply is not enough, because somebody asked for that.

use catamaran_cluster::apply::{ApplyError, FailureKind, metadata_str};
use kube::api::PropagationPolicy;
use serde_json::Value;

use super::objects::{Sent, check_ours, check_own, not_terminating};
use super::{AppliedObject, ApplyMethod, Driver, Force, ObjectDrift};
use crate::Error;
use crate::objects::PlannedObject;
use crate::plan::ApplyMode;

impl Driver {
    /// Sends an object in the way that is asked for.
    pub(super) async fn send_forced(
        &self,
        how: ApplyMode,
        object: &PlannedObject,
        before: &[Value],
        release: (&str, &str),
    ) -> Result<Sent, Error> {
        match self.action_options.force {
            Force::No => self.send_by(how, object, before, release).await,
            Force::Replace => self.replace(how, object, release).await,
            Force::Recreate => match self.send_by(how, object, before, release).await {
                Err(Error::Request(refused)) if is_immutable(&refused) => {
                    self.recreate(object, release, refused).await
                }
                sent => sent,
            },
        }
    }

    async fn send_by(
        &self,
        how: ApplyMode,
        object: &PlannedObject,
        before: &[Value],
        release: (&str, &str),
    ) -> Result<Sent, Error> {
        match self.action_options.method {
            ApplyMethod::Server => self.send(how, object, release).await,
            ApplyMethod::Client => self.send_merged(how, object, before, release).await,
        }
    }

    /// Puts the object in the place of the one that is there: what the manifest does not say is gone.
    /// Then applies it, where objects are applied, so that our fields are known as ours to the next.
    async fn replace(
        &self,
        how: ApplyMode,
        object: &PlannedObject,
        release: (&str, &str),
    ) -> Result<Sent, Error> {
        let Some(target) = &object.target else { return self.send(how, object, release).await };
        let Some(live) = self.applier.get(target).await? else {
            return self.send_by(ApplyMode::Claim, object, &[], release).await;
        };
        match how {
            ApplyMode::Claim => check_own(&live, &object.id, release)?,
            ApplyMode::ApplyIfOurs | ApplyMode::VerifyIfOurs => check_ours(&live, object, release)?,
            ApplyMode::Apply | ApplyMode::Verify => {}
        }
        not_terminating(&live, &object.id)?;
        let mut body = object.body.clone();
        if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
            let version = metadata_str(&live, "resourceVersion");
            metadata.insert("resourceVersion".to_owned(), version.into());
        }
        let live = self.applier.replace(target, &body).await?;
        match self.action_options.method {
            ApplyMethod::Server => self.send(ApplyMode::Apply, object, release).await,
            ApplyMethod::Client => {
                Ok(Sent::Applied(Box::new(AppliedObject::new(object, live, ObjectDrift::Unseen))))
            }
        }
    }

    /// Deletes an object that cannot be changed as is wished, by its uid, and creates it anew.
    async fn recreate(
        &self,
        object: &PlannedObject,
        release: (&str, &str),
        refused: ApplyError,
    ) -> Result<Sent, Error> {
        let Some(target) = &object.target else { return Err(refused.into()) };
        if let Some(live) = self.applier.get(target).await? {
            check_own(&live, &object.id, release)?;
            not_terminating(&live, &object.id)?;
            let uid = metadata_str(&live, "uid");
            tracing::info!(object = %object.id, "deleted, to be created anew: {}", refused.message);
            self.applier.delete(target, uid, PropagationPolicy::Background).await?;
        }
        self.send_by(ApplyMode::Claim, object, &[], release).await
    }
}

/// Whether the API server refused a change because such a field never changes. It has no reason of its
/// own for that, only words; those of all built-in kinds have one of these.
fn is_immutable(refused: &ApplyError) -> bool {
    let says = |words: &str| refused.message.contains(words);
    refused.kind == FailureKind::Invalid && (says("immutable") || says("Forbidden: updates to"))
}
