//! Waiting for objects: as everywhere, nobody sleeps here. What is waited for is said, and the record
//! says that the objects were applied, so that the next call only looks.

use catamaran_cluster::apply::{Applier, metadata, metadata_str};
use catamaran_cluster::readiness::{self, Completion, Readiness};
use serde_json::Value;

use super::objects::Sent;
use super::{AppliedObject, Driver, ObjectDrift, Progress, WaitStrategy};
use crate::error::{Error, Waiting};
use crate::objects::ObjectId;
use crate::plan::hooks::HookReason;
use crate::plan::{DESCRIPTION_PREFIX, History, Plan, Removal, resolve, target};
use crate::record::Release;

/// How the description of a record ends whose objects were applied and are not ready yet.
const FOR_OBJECTS: &str = "waiting for objects";

impl Driver {
    /// Whether a revision's objects were applied, and all that is left to do with them is to wait.
    pub(super) fn only_waits(&self, record: &Release) -> bool {
        self.action_options.wait != WaitStrategy::No && says(record, FOR_OBJECTS)
    }

    /// The objects as they are, those that were applied by an earlier call.
    pub(super) async fn look_at(&self, plan: &Plan) -> Result<Progress, Error> {
        let release = (plan.record.name.as_str(), plan.record.namespace.as_str());
        let (mut objects, mut known) = (Vec::with_capacity(plan.steps.len()), Vec::new());
        for (how, object) in &plan.steps {
            let live = match &object.target {
                Some(target) => self.applier.get(target).await?,
                None => None,
            };
            match live {
                Some(live) => objects.push(AppliedObject::new(object, live, ObjectDrift::Same)),
                None => match self.send(*how, object, release).await? {
                    Sent::Applied(applied) => objects.push(*applied),
                    Sent::Known(_) => known.push(object.id.clone()),
                },
            }
        }
        Ok(Progress { objects, known, removed: Vec::new(), kept: Vec::new() })
    }

    /// Ends well if all objects do their work.
    pub(super) async fn wait_for(
        &self,
        history: &mut History,
        revision: u32,
        objects: &[AppliedObject],
    ) -> Result<(), Error> {
        let unready: Vec<(&AppliedObject, Readiness)> = objects
            .iter()
            .map(|object| (object, self.judge(&object.live)))
            .filter(|(_, readiness)| !readiness.is_ready())
            .collect();
        let failed = unready.iter().find(|(_, it)| matches!(it, Readiness::Failed { .. }));
        let Some((object, readiness)) = failed.or(unready.first()) else { return Ok(()) };
        let Some(mut told) = told(object, readiness) else { return Ok(()) };
        told.at_most = self.time_left();
        let is_over = failed.is_some() || told.at_most.is_some_and(|left| left.is_zero());
        let waits = history.revision(revision).is_some_and(|record| says(record, FOR_OBJECTS));
        if is_over || waits {
            self.name_culprit(&mut told, &object.live).await;
        }
        if is_over {
            return Err(not_ready(&told));
        }
        if let Some(others) = unready.len().checked_sub(1).filter(|others| *others > 0) {
            told.message = format!("{} ({others} more are not ready)", told.message);
        }
        if !waits {
            self.rewrite(history, revision, |record| {
                record.info.description = format!("{DESCRIPTION_PREFIX}{FOR_OBJECTS}");
            })
            .await?;
        }
        Err(Error::Waiting(Box::new(told)))
    }

    /// Says what keeps an object from being ready, if its pods or events tell.
    async fn name_culprit(&self, told: &mut Waiting, live: &Value) {
        let Ok(kinds) = resolve(&self.mapper, [&told.gvk].into()).await else { return };
        let Some(Some(mapping)) = kinds.get(&told.gvk) else { return };
        if let Some(cause) = self.applier.cause(&target(mapping, &told.object), live).await {
            told.message = cause.to_string();
            told.reason = cause.reason;
        }
    }

    fn judge(&self, live: &Value) -> Readiness {
        match readiness::completion(live) {
            Some(Completion::Running)
                if self.action_options.wait == WaitStrategy::Jobs
                    && live.get("kind").and_then(Value::as_str) == Some("Job") =>
            {
                let (reason, message) = ("JobNotComplete".into(), "it has not ended yet".into());
                Readiness::Pending { reason, message }
            }
            _ => readiness::assess(live),
        }
    }

    /// Ends well if none of these objects is there any more, where that is to be waited for.
    pub(super) async fn wait_for_end(
        &self,
        removals: &[Removal],
        deleted: &[ObjectId],
    ) -> Result<(), Error> {
        if self.action_options.wait == WaitStrategy::No {
            return Ok(());
        }
        for removal in removals.iter().filter(|removal| deleted.contains(&removal.id)) {
            let Some(target) = &removal.target else { continue };
            let Some(live) = self.applier.get(target).await? else { continue };
            if !metadata(&live).contains_key("deletionTimestamp") {
                continue; // another object of that name
            }
            let told = Waiting {
                role: "the end of".to_owned(),
                object: removal.id.clone(),
                gvk: removal.gvk.clone(),
                why: HookReason::Gone,
                reason: "Terminating".to_owned(),
                message: leaving(&live),
                at_most: self.time_left(),
                seen: Some(state_of(&live)),
            };
            return Err(match told.at_most {
                Some(left) if left.is_zero() => not_ready(&told),
                _ => Error::Waiting(Box::new(told)),
            });
        }
        Ok(())
    }

    pub(super) fn time_left(&self) -> Option<std::time::Duration> {
        let until = self.action_options.until?;
        // Negative once it has passed.
        Some(until.duration_since(self.clock.now()).try_into().unwrap_or_default())
    }

    /// What tells one state of an object that is waited for from another; `None` while it is not
    /// there. One read.
    ///
    /// # Errors
    ///
    /// As those of any request.
    pub async fn object_state(&self, waiting: &Waiting) -> Result<Option<String>, Error> {
        let kinds = resolve(&self.mapper, [&waiting.gvk].into()).await?;
        let Some(Some(mapping)) = kinds.get(&waiting.gvk) else { return Ok(None) };
        let live = self.applier.get(&target(mapping, &waiting.object)).await?;
        Ok(live.as_ref().map(state_of))
    }

    /// What sends the requests, for who looks at the objects of a release.
    pub fn applier(&self) -> &Applier {
        &self.applier
    }
}

/// What tells one state of an object from another.
pub(super) fn state_of(live: &Value) -> String {
    format!("{}.{}", metadata_str(live, "uid"), metadata_str(live, "resourceVersion"))
}

fn says(record: &Release, what: &str) -> bool {
    record.info.description.strip_prefix(DESCRIPTION_PREFIX) == Some(what)
}

fn told(object: &AppliedObject, readiness: &Readiness) -> Option<Waiting> {
    let (reason, message) = match readiness {
        Readiness::Ready => return None,
        Readiness::Pending { reason, message } | Readiness::Failed { reason, message } => {
            (reason.clone(), message.clone())
        }
    };
    Some(Waiting {
        role: "object".to_owned(),
        object: object.id.clone(),
        gvk: object.gvk.clone(),
        why: HookReason::End,
        reason,
        message,
        at_most: None,
        seen: Some(state_of(&object.live)),
    })
}

fn not_ready(told: &Waiting) -> Error {
    Error::NotReady {
        object: told.object.to_string(),
        state: if told.why == HookReason::Gone { "gone" } else { "ready" },
        reason: told.reason.clone(),
        message: told.message.clone(),
    }
}

/// What has to be done before an object is gone.
pub(super) fn finalizers(live: &Value) -> Vec<String> {
    let all = metadata(live).get("finalizers").and_then(Value::as_array);
    all.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Why an object that is being deleted is still there.
fn leaving(live: &Value) -> String {
    match finalizers(live).as_slice() {
        [] => "it is being deleted".to_owned(),
        names => format!("it is being deleted, and waits for finalizers: {}", names.join(", ")),
    }
}
