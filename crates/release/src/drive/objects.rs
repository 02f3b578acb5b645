//! Sending one object.

use catamaran_cluster::apply::{ApplyError, FailureKind, Target, metadata};
use serde_json::Value;

use super::{AppliedObject, Driver};
use crate::Error;
use crate::objects::{ObjectId, PlannedObject, ownership_problems};
use crate::plan::{How, target};

impl Driver {
    /// Sends an object and yields it as it is then.
    pub(super) async fn send(
        &self,
        how: How,
        object: &PlannedObject,
        release: (&str, &str),
    ) -> Result<AppliedObject, Error> {
        let target = self.target_of(object).await?;
        let live = match how {
            How::Apply => self.applier.apply(&target, &object.body).await,
            How::Claim => self.applier.claim(&target, &object.body).await,
        };
        let live = match live {
            Err(error) if error.kind == FailureKind::AlreadyExists => {
                self.take_own(&target, object, release, error).await?
            }
            Err(error) => {
                if error.kind == FailureKind::NotFound {
                    // The path itself is not served: the kind's CRD was deleted or moved.
                    self.mapper.forget(&object.gvk);
                }
                return Err(error.into());
            }
            Ok(live) => live,
        };
        not_terminating(&live, &object.id)?;
        Ok(AppliedObject::new(object, live))
    }

    /// An object that could not be claimed is read, and applied if it proves to be ours, e.g. by
    /// a claim whose answer was lost.
    async fn take_own(
        &self,
        target: &Target,
        object: &PlannedObject,
        release: (&str, &str),
        refused: ApplyError,
    ) -> Result<Value, Error> {
        let Some(live) = self.applier.get(target).await? else {
            // Gone between the two requests, or it was another conflict, such as two that count
            // against one quota at once: the next call tries again.
            return Err(Error::Request(ApplyError { kind: FailureKind::Conflict, ..refused }));
        };
        if let Some(problems) = ownership_problems(&live, release) {
            let id = &object.id;
            let namespace = id.namespace.as_deref().unwrap_or_default();
            let object = format!("{} \"{}\" in namespace \"{namespace}\"", id.kind, id.name);
            return Err(Error::Ownership { object, problems });
        }
        not_terminating(&live, &object.id)?;
        Ok(self.applier.apply(target, &object.body).await?)
    }

    /// Where an object goes; asked for again if its CRD was part of the same manifest.
    async fn target_of(&self, object: &PlannedObject) -> Result<Target, Error> {
        if let Some(target) = &object.target {
            return Ok(target.clone());
        }
        self.mapper.forget(&object.gvk);
        match self.mapper.resolve(&object.gvk).await {
            Ok(mapping) => Ok(target(&mapping, &object.id)),
            Err(error) if error.is_no_match() => {
                Err(Error::NotServedYet { object: object.id.clone() })
            }
            Err(source) => Err(Error::Mapping { object: object.id.to_string(), source }),
        }
    }
}

/// What is applied to an object that is being deleted is lost with it.
fn not_terminating(live: &Value, id: &ObjectId) -> Result<(), Error> {
    match metadata(live).get("deletionTimestamp") {
        Some(_) => Err(Error::Terminating { object: id.clone() }),
        None => Ok(()),
    }
}
