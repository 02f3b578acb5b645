//! Sending one object.

use catamaran_cluster::apply::{ApplyError, FailureKind, Target, metadata};
use catamaran_cluster::drift::{Inspection, is_left_alone};
use kube::core::GroupVersionKind;
use serde_json::Value;

use super::wait::finalizers;
use super::{AppliedObject, Driver, ObjectDrift};
use crate::Error;
use crate::objects::{
    ObjectId, PlannedObject, change_of_strategy, has_owner_of, ownership_problems,
};
use crate::plan::{ApplyMode, target};

/// What is known of an object without asking: its uid, if nobody touched it since an apply of what has
/// this hash (see [`PlannedObject::hash`]).
pub type Knowledge = dyn Fn(&ObjectId, u64) -> Option<String> + Send + Sync;

/// An object that was seen not long ago, e.g. in the list that a watch begins with. Asked for once per
/// object: what it answers stands in the place of a read.
pub type Snapshots = dyn Fn(&ObjectId, &GroupVersionKind) -> Option<Value> + Send + Sync;

/// What became of one object.
pub(super) enum Sent {
    /// It was looked at or applied.
    Applied(Box<AppliedObject>),
    /// It is known to be as it shall be; this is its uid.
    Known(String),
}

/// The right that `blockOwnerDeletion` asks for.
pub(super) const BLOCK: &str = "block the owner's deletion";

/// What becomes of fields that were once set by updates, see [`Applier::with_former_managers`].
///
/// [`Applier::with_former_managers`]: catamaran_cluster::apply::Applier::with_former_managers
#[derive(Clone, Copy, PartialEq, Eq)]
enum Former {
    /// They are taken over: what is not wanted any more goes.
    TakenOver,
    /// They stay as they are. Nothing else is wanted than what set them, and whoever takes a whole
    /// fleet over writes no object more than once.
    Left,
}

/// What shows that a live object is the release's.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Proof {
    /// Helm's label and annotations, or its owner.
    Marks,
    /// The same, or fields that we have set: whoever takes the marks off an object of ours does not take
    /// the object from the release.
    MarksOrFields,
}

impl Driver {
    /// Sends an object if it is not known to be as it shall be; once more if it was refused for the
    /// right that `blockOwnerDeletion` asks for.
    pub(super) async fn send(
        &self,
        how: ApplyMode,
        object: &PlannedObject,
        release: (&str, &str),
    ) -> Result<Sent, Error> {
        match self.send_once(how, object, release).await {
            Err(Error::Request(refused)) if may_not_block(&refused) => {
                let id = &object.id;
                let so = format!(
                    "going on without, as with {id}; it takes the right to update the owner kind's finalizers"
                );
                self.rights.warn_once(BLOCK, &so);
                self.send_once(how, &unblocked(object), release).await
            }
            sent => sent,
        }
    }

    /// Whether objects were refused for the right that `blockOwnerDeletion` asks for: owners shall not
    /// ask for it from then on.
    pub fn may_not_block(&self) -> bool {
        self.rights.has(BLOCK)
    }

    async fn send_once(
        &self,
        how: ApplyMode,
        object: &PlannedObject,
        release: (&str, &str),
    ) -> Result<Sent, Error> {
        self.scope.check(&object.id, release.1)?;
        let known = self.known.as_ref().filter(|_| how != ApplyMode::Claim);
        if let Some(uid) = known.and_then(|known| known(&object.id, object.hash())) {
            return Ok(Sent::Known(uid));
        }
        let is_news = !matches!(how, ApplyMode::Verify | ApplyMode::VerifyIfOurs);
        for warning in object.warnings.iter().filter(|_| is_news) {
            tracing::warn!(release = release.0, object = %object.id, "{warning}");
        }
        let target = self.target_of(object).await?;
        let sent = match how {
            ApplyMode::Claim => self.claim(&target, object, release).await,
            ApplyMode::Apply => self.change(&target, object, self.doubted(release)).await,
            ApplyMode::Verify => self.look(&target, object, release, Proof::MarksOrFields).await,
            ApplyMode::ApplyIfOurs => self.change_if_ours(&target, object, release).await,
            ApplyMode::VerifyIfOurs => self.look(&target, object, release, Proof::Marks).await,
        };
        if let Err(Error::Request(ApplyError { kind: FailureKind::NotFound, .. })) = &sent {
            // The path itself is not served: the kind's CRD was deleted or moved.
            self.mapper.forget(&object.gvk);
        }
        let sent = sent?;
        not_terminating(&sent.live, &object.id)?;
        Ok(Sent::Applied(Box::new(sent)))
    }

    /// The release, if its objects may have been replaced since they were applied.
    fn doubted<'a>(&self, release: (&'a str, &'a str)) -> Option<(&'a str, &'a str)> {
        Some(release).filter(|_| self.unwatched && !self.action_options.take_ownership)
    }

    /// Applies an object of which something else is wanted than before. It is read first only where a
    /// part of it may be left to others: how many replicas there are is perhaps an autoscaler's to say; or
    /// where it has to prove to be of a release.
    async fn change(
        &self,
        target: &Target,
        object: &PlannedObject,
        of: Option<(&str, &str)>,
    ) -> Result<AppliedObject, Error> {
        let body = &object.body;
        let shared = !self.ignored.is_empty()
            || body.pointer("/spec/replicas").is_some_and(Value::is_number);
        let live = if shared || of.is_some() { self.applier.get(target).await? } else { None };
        let live = match live {
            Some(live) => {
                if let Some(release) = of.filter(|_| !self.applier.has_written(&live)) {
                    check_ours(&live, object, release)?;
                }
                not_terminating(&live, &object.id)?;
                let ours = self.applier.without_others(target, body, &live, &self.ignored).await?;
                self.apply_object(target, object, &ours, Former::TakenOver).await?
            }
            None => self.apply_object(target, object, body, Former::TakenOver).await?,
        };
        Ok(AppliedObject::new(object, live, ObjectDrift::Unseen))
    }

    /// The same, if what is there proves to be ours.
    async fn change_if_ours(
        &self,
        target: &Target,
        object: &PlannedObject,
        release: (&str, &str),
    ) -> Result<AppliedObject, Error> {
        match self.applier.get(target).await? {
            Some(live) => {
                check_ours(&live, object, release)?;
                self.converge(target, object, live, Former::TakenOver).await
            }
            None => self.claim(target, object, release).await,
        }
    }

    /// Applies an object; once more if it was refused for what is left of another strategy.
    async fn apply_object(
        &self,
        target: &Target,
        object: &PlannedObject,
        body: &Value,
        former: Former,
    ) -> Result<Value, ApplyError> {
        let applied = match former {
            Former::TakenOver => self.applier.apply(target, body).await,
            Former::Left => self.applier.reapply(target, body).await,
        };
        let refused = match applied {
            Err(error) if error.kind == FailureKind::Invalid => error,
            done => return done,
        };
        let Some(patch) = change_of_strategy(&object.gvk, body) else { return Err(refused) };
        if self.applier.merge(target, &patch).await.is_err() {
            return Err(refused);
        }
        self.applier.apply(target, body).await
    }

    /// Reads an object, and applies it unless that would change nothing. An object that does not prove to
    /// be the release's is an error: it was made under the name of ours when ours was gone.
    async fn look(
        &self,
        target: &Target,
        object: &PlannedObject,
        release: (&str, &str),
        proof: Proof,
    ) -> Result<AppliedObject, Error> {
        if self.lacking.contains(&object.id) {
            match self.applier.claim(target, &object.body).await {
                Ok(live) => return Ok(AppliedObject::new(object, live, ObjectDrift::Missing)),
                // Somebody was quicker.
                Err(error) if error.kind == FailureKind::AlreadyExists => {}
                Err(error) => return Err(error.into()),
            }
        }
        let live = self.see(target, object).await?;
        if let Some(live) = &live
            && !(proof == Proof::MarksOrFields && self.applier.has_written(live))
        {
            check_ours(live, object, release)?;
        }
        match live {
            Some(live) if is_left_alone(&live) => {
                return Ok(AppliedObject::new(object, live, ObjectDrift::Same));
            }
            Some(live) => return self.converge(target, object, live, Former::Left).await,
            None => {}
        }
        if proof == Proof::Marks {
            return self.claim(target, object, release).await;
        }
        let live = self.applier.apply(target, &object.body).await?;
        Ok(AppliedObject::new(object, live, ObjectDrift::Missing))
    }

    /// An object as it is, or was seen not long ago.
    pub(super) async fn see(
        &self,
        target: &Target,
        object: &PlannedObject,
    ) -> Result<Option<Value>, ApplyError> {
        match self.glimpse.as_ref().and_then(|seen| seen(&object.id, &object.gvk)) {
            Some(live) => Ok(Some(live)),
            None => self.applier.get(target).await,
        }
    }

    async fn converge(
        &self,
        target: &Target,
        object: &PlannedObject,
        live: Value,
        former: Former,
    ) -> Result<AppliedObject, Error> {
        not_terminating(&live, &object.id)?;
        match self.applier.inspect(target, &object.body, &live, &self.ignored).await? {
            Inspection::Same
                if former == Former::TakenOver && self.applier.is_to_be_taken_over(&live) =>
            {
                self.change(target, object, None).await
            }
            Inspection::Same => Ok(AppliedObject::new(object, live, ObjectDrift::Same)),
            Inspection::Changed(drift) => {
                let live = self.apply_object(target, object, &drift.body, former).await?;
                Ok(AppliedObject::new(object, live, ObjectDrift::Changed(drift.fields)))
            }
        }
    }

    /// Creates an object. One that is there already is read, and brought to what is wanted if it
    /// proves to be ours, e.g. by a claim whose answer was lost.
    pub(super) async fn claim(
        &self,
        target: &Target,
        object: &PlannedObject,
        release: (&str, &str),
    ) -> Result<AppliedObject, Error> {
        let refused = match self.applier.claim(target, &object.body).await {
            Ok(live) => return Ok(AppliedObject::new(object, live, ObjectDrift::Missing)),
            Err(error) if error.kind == FailureKind::AlreadyExists => error,
            Err(error) => return Err(error.into()),
        };
        let Some(live) = self.applier.get(target).await? else {
            // Gone between the two requests, or it was another conflict, such as two that count
            // against one quota at once: the next call tries again.
            return Err(Error::Request(ApplyError { kind: FailureKind::Conflict, ..refused }));
        };
        check_own(&live, &object.id, release)?;
        self.converge(target, object, live, Former::TakenOver).await
    }

    /// Where an object goes; asked for again if its CRD was part of the same manifest.
    pub(super) async fn target_of(&self, object: &PlannedObject) -> Result<Target, Error> {
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

/// What admission says of an owner whose `finalizers` may not be updated.
pub(super) fn may_not_block(refused: &ApplyError) -> bool {
    refused.kind.is_forbidden() && refused.message.contains("cannot set blockOwnerDeletion if")
}

pub(super) fn unblocked(object: &PlannedObject) -> PlannedObject {
    let mut object = object.clone();
    let owners = object.body.pointer_mut("/metadata/ownerReferences");
    for owner in owners.and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(block) = owner.get_mut("blockOwnerDeletion") {
            *block = false.into();
        }
    }
    object
}

/// An object that is there already is ours only if Helm's labels and annotations say so.
pub(super) fn check_own(live: &Value, id: &ObjectId, release: (&str, &str)) -> Result<(), Error> {
    match ownership_problems(live, release) {
        None => Ok(()),
        Some(problems) => Err(Error::ownership(id, problems)),
    }
}

/// The same for what a record that is not trusted shows as ours: the owner of the release counts, too, as
/// the Go operators have left it on objects.
pub(super) fn check_ours(
    live: &Value,
    object: &PlannedObject,
    release: (&str, &str),
) -> Result<(), Error> {
    match check_own(live, &object.id, release) {
        Err(_) if has_owner_of(live, &object.body) => Ok(()),
        checked => checked,
    }
}

/// What is applied to an object that is being deleted is lost with it.
pub(super) fn not_terminating(live: &Value, id: &ObjectId) -> Result<(), Error> {
    match metadata(live).get("deletionTimestamp") {
        Some(_) => Err(Error::Terminating { object: id.clone(), finalizers: finalizers(live) }),
        None => Ok(()),
    }
}
