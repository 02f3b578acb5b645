//! Runs hooks, one after the other, without waiting for any.

use std::time::Duration;

use catamaran_cluster::apply::{ApplyError, FailureKind, Target};
use kube::api::PropagationPolicy;
use serde_json::Value;

use super::Driver;
use super::wait::state_of;
use crate::error::{Error, Waiting};
use crate::objects::{
    ObjectId, Owner, PlannedObject, RawObject, decorate_hook, id_of, make_applicable,
    ownership_problems, parse_manifest,
};
use crate::plan::hooks::{
    Event, HookReason, Look, RUN, Run, Step, failed_to_clear, finish, is_to_be_noted, next, order,
    pause, seen, start,
};
use crate::plan::{History, scope_by_crd, target};
use crate::record::{Hook, Release};

/// How often one call may find that an object changed between looking and acting.
const ROUNDS: usize = 5;

/// A hook that is not done after this time is asked why.
const GRACE: Duration = Duration::from_secs(2);

impl Driver {
    /// Runs what is left of the hooks of an event, for a revision whose record is in the cluster.
    /// Returns those that were skipped because their namespace is on its way out.
    pub(super) async fn hooks(
        &self,
        history: &mut History,
        revision: u32,
        event: Event,
        owner: Option<&Owner>,
    ) -> Result<Vec<ObjectId>, Error> {
        let mut skipped = Vec::new();
        if self.action_options.no_hooks {
            return Ok(skipped);
        }
        // A hook that was begun in this very call has no object yet, as far as we know.
        let mut begun = false;
        loop {
            let Some(record) = history.revision(revision).cloned() else { return Ok(skipped) };
            match next(&record, event) {
                Step::Nothing => return Ok(skipped),
                Step::Clear(which) => {
                    if begun {
                        self.tell_succeeded(&record, &order(&record.hooks, event)).await;
                    }
                    self.clear(&record, event, &which).await?;
                    return Ok(skipped);
                }
                Step::Start(index) => {
                    if let Some(rest) = pause(&record, event, index, self.clock.now())
                        && let Some(hook) = record.hooks.get(index)
                    {
                        return Err(self.resting(&record, hook, event, rest));
                    }
                    self.rewrite(history, revision, |record| {
                        start(record, event, index, self.clock.now());
                    })
                    .await?;
                    begun = true;
                }
                Step::Look(index) => {
                    let attended =
                        self.attend(history, &record, (event, index), owner, begun, None).await;
                    skipped.extend(attended?);
                    begun = true;
                }
            }
        }
    }

    /// What is said while a failed hook waits for its next try.
    fn resting(&self, record: &Release, hook: &Hook, event: Event, rest: Duration) -> Error {
        let run = self.run_of(record, hook, event);
        let RawObject { gvk, object } = match raw_of(hook) {
            Ok(raw) => raw,
            Err(error) => return failure(event, hook, error),
        };
        let id = id_of(&object, &gvk, true, run.release.1);
        let body = Value::Null;
        let object = PlannedObject { id, gvk, target: None, body, warnings: Vec::new() };
        let told =
            ("HookFailed".to_owned(), "it failed, and is run again after a pause".to_owned());
        let mut waiting = waiting(&run, &object, HookReason::Pause, told);
        waiting.at_most = Some(rest);
        Error::Waiting(waiting)
    }

    /// Brings one hook to its end, if it can be; yields it if it was skipped. `then` is begun by the
    /// same write, where the record alone does not tell what follows.
    pub(super) async fn attend(
        &self,
        history: &mut History,
        record: &Release,
        (event, index): (Event, usize),
        owner: Option<&Owner>,
        begun: bool,
        then: Option<usize>,
    ) -> Result<Option<ObjectId>, Error> {
        let Some(hook) = record.hooks.get(index) else { return Ok(None) };
        let run = self.run_of(record, hook, event);
        let object = self.hook_object(&run, &record.manifest, owner).await;
        let object = object.map_err(|error| failure(event, hook, error))?;
        let attended = match self.scope.check(&object.id, run.release.1) {
            // Of a revision from before the scope was set. It must not run, nor hold the deletion up.
            Err(_) if event.is_deletion() => Ok(Pursued::Skipped("out of scope")),
            Err(error) => Err(error),
            Ok(()) => match &object.target {
                None => return Err(Error::NotServedYet { object: object.id }),
                Some(target) => self.run_hook(&run, &object, target, begun).await,
            },
        };
        let (revision, now) = (record.version, self.clock.now());
        let skipped = match attended.map_err(|error| failure(event, hook, error))? {
            Pursued::Waiting(waiting) => {
                if is_to_be_noted(hook) {
                    self.rewrite(history, revision, |record| seen(record, index)).await?;
                }
                return Err(Error::Waiting(waiting));
            }
            Pursued::Restart => {
                self.rewrite(history, revision, |record| start(record, event, index, now)).await?;
                return Ok(None);
            }
            Pursued::Done => None,
            Pursued::Skipped(why) => {
                tracing::warn!(hook = %object.id, %event, "skipped: {why}");
                Some(object.id)
            }
        };
        self.rewrite(history, revision, |record| {
            finish(record, event, index, now);
            if let Some(following) = then {
                start(record, event, following, now);
            }
        })
        .await?;
        Ok(skipped)
    }

    /// Looks at a hook's object, and acts, until there is nothing more to do at once.
    async fn run_hook(
        &self,
        run: &Run<'_>,
        object: &PlannedObject,
        target: &Target,
        begun: bool,
    ) -> Result<Pursued, Error> {
        let mut live = if begun { None } else { self.applier.get(target).await? };
        for _ in 0..ROUNDS {
            match run.look(live.as_ref()) {
                Look::Done => return Ok(Pursued::Done),
                Look::Restart => return Ok(Pursued::Restart),
                Look::Create => match self.create_hook(target, &object.body).await {
                    Err(error) if run.event.is_deletion() && is_leaving(&error) => {
                        return Ok(Pursued::Skipped("its namespace is on its way out"));
                    }
                    created => live = created?,
                },
                Look::Delete { uid } => {
                    self.applier.delete(target, &uid, PropagationPolicy::Background).await?;
                    // Whether it is gone shows when its successor is created.
                    live = None;
                }
                Look::Apply => live = Some(self.applier.apply(target, &object.body).await?),
                Look::Wait { why, reason, message } => {
                    let mut told = (reason, message);
                    let is_late = run.timeout.saturating_sub(run.remaining()) >= GRACE;
                    if why == HookReason::End && is_late {
                        told = self.with_culprit(target, live.as_ref(), told, false).await;
                    }
                    let mut waiting = waiting(run, object, why, told);
                    waiting.seen = live.as_ref().map(state_of);
                    return Ok(Pursued::Waiting(waiting));
                }
                Look::Failed { reason, message } => {
                    let told = (reason, message);
                    let (reason, message) =
                        self.with_culprit(target, live.as_ref(), told, true).await;
                    let (event, object) = (run.event, object.id.to_string());
                    return Err(Error::Hook { event, object, reason, message });
                }
                Look::Foreign(problems) => {
                    return Err(Error::Ownership { object: object.id.to_string(), problems });
                }
            }
        }
        let message = "its object changes all the time".to_owned();
        let reason = "Unstable".to_owned();
        Ok(Pursued::Waiting(waiting(run, object, HookReason::Gone, (reason, message))))
    }

    /// What is said of a hook, with what its pods or events tell.
    async fn with_culprit(
        &self,
        target: &Target,
        live: Option<&Value>,
        (reason, message): (String, String),
        ended: bool,
    ) -> (String, String) {
        let Some(live) = live else { return (reason, message) };
        match self.applier.cause(target, live).await {
            None => (reason, message),
            // A pod that ended has said it itself.
            Some(_) if ended && target.resource.kind == "Pod" => (reason, message),
            Some(cause) if ended => (reason, format!("{message}; {cause}")),
            Some(cause) => (cause.reason.clone(), cause.to_string()),
        }
    }

    /// Creates a hook's object; if there is one, that.
    async fn create_hook(
        &self,
        target: &Target,
        body: &Value,
    ) -> Result<Option<Value>, ApplyError> {
        match self.applier.claim(target, body).await {
            Ok(live) => Ok(Some(live)),
            Err(error) if error.kind == FailureKind::AlreadyExists => {
                match self.applier.get(target).await? {
                    Some(live) => Ok(Some(live)),
                    None => Err(ApplyError { kind: FailureKind::Conflict, ..error }),
                }
            }
            Err(error) => Err(error),
        }
    }

    /// Deletes the objects of hooks that are done, in this order.
    pub(super) async fn clear(
        &self,
        record: &Release,
        event: Event,
        which: &[usize],
    ) -> Result<(), Error> {
        for hook in which.iter().filter_map(|index| record.hooks.get(*index)) {
            if hook.kind == "CustomResourceDefinition" {
                continue; // all its objects would go with it
            }
            let run = self.run_of(record, hook, event);
            let object = self.hook_object(&run, &record.manifest, None).await?;
            let Some(target) = &object.target else { continue };
            let Some(live) = self.applier.get(target).await? else { continue };
            if run.is_of(&live) && ownership_problems(&live, run.release).is_none() {
                let uid = catamaran_cluster::apply::metadata_str(&live, "uid");
                self.applier.delete(target, uid, PropagationPolicy::Background).await?;
            }
        }
        Ok(())
    }

    /// Tells what failed hooks have printed, and deletes their objects, those that ask for it. What
    /// cannot be deleted now is deleted before the next try.
    pub(super) async fn clear_failed(&self, record: &Release, event: Event) {
        self.tell_failed(record, event).await;
        let which = failed_to_clear(record, event);
        if let Err(error) = self.clear(record, event, &which).await {
            tracing::warn!(release = record.name, %event, %error, "a failed hook is left behind");
        }
    }

    /// The same of a revision that another one follows: whoever failed may have ended before that.
    pub(super) async fn clear_after_failure(&self, record: &Release) -> Result<(), Error> {
        for event in Event::ALL {
            let which = failed_to_clear(record, event);
            match self.clear(record, event, &which).await {
                Err(error) if error.is_transient() => return Err(error),
                Err(error) => {
                    tracing::warn!(release = record.name, %event, %error, "a failed hook is left behind");
                }
                Ok(()) => {}
            }
        }
        Ok(())
    }

    fn run_of<'a>(&self, record: &'a Release, hook: &'a Hook, event: Event) -> Run<'a> {
        let release = (record.name.as_str(), record.namespace.as_str());
        let (revision, now) = (record.version, self.clock.now());
        let (timeout, until) = (self.hook_timeout, self.action_options.until);
        Run { hook, event, release, revision, now, timeout, until }
    }

    /// A hook's object as it is sent.
    async fn hook_object(
        &self,
        run: &Run<'_>,
        manifest: &str,
        owner: Option<&Owner>,
    ) -> Result<PlannedObject, Error> {
        let is_ours = |gvk: &_| {
            parse_manifest(manifest).is_ok_and(|objects| scope_by_crd(gvk, &objects).is_some())
        };
        let RawObject { gvk, object } = raw_of(run.hook)?;
        let mapping = self.mapper.resolve(&gvk).await.map_err(|source| {
            let object = format!("{} {:?}", run.hook.kind, run.hook.name);
            Error::Mapping { object, source }
        });
        let mapping = match mapping {
            // Its CRD is one of the release's own objects: it will be served in a moment.
            Err(Error::Mapping { source, .. }) if source.is_no_match() && is_ours(&gvk) => {
                self.mapper.forget(&gvk);
                let id = id_of(&object, &gvk, false, run.release.1);
                return Err(Error::NotServedYet { object: id });
            }
            mapping => mapping?,
        };
        let id = id_of(&object, &gvk, mapping.namespaced, run.release.1);
        let mut body = object;
        let warnings = make_applicable(&gvk, &mut body);
        decorate_hook(&mut body, &id, run.release, owner, (RUN, &run.id()));
        let target = Some(target(&mapping, &id));
        Ok(PlannedObject { id, gvk, target, body, warnings })
    }
}

/// A hook's object as its record has it.
pub(super) fn raw_of(hook: &Hook) -> Result<RawObject, Error> {
    let raw = parse_manifest(&hook.manifest)?.into_iter().next();
    raw.ok_or_else(|| Error::Object { message: format!("hook {:?} is empty", hook.name) })
}

/// What became of a hook.
enum Pursued {
    Done,
    Restart,
    /// It is not run, for this reason.
    Skipped(&'static str),
    Waiting(Box<Waiting>),
}

fn waiting(
    run: &Run<'_>,
    object: &PlannedObject,
    why: HookReason,
    (reason, message): (String, String),
) -> Box<Waiting> {
    Box::new(Waiting {
        role: format!("{} hook", run.event),
        object: object.id.clone(),
        gvk: object.gvk.clone(),
        why,
        reason,
        message,
        at_most: Some(run.remaining()),
        seen: None,
    })
}

/// Whether nothing can be created any more where the object would be.
fn is_leaving(error: &ApplyError) -> bool {
    matches!(error.kind, FailureKind::NamespaceTerminating | FailureKind::NamespaceNotFound)
}

/// What cannot succeed without a change is the hook's failure, so that the record tells at which
/// event it happened.
fn failure(event: Event, hook: &Hook, error: Error) -> Error {
    if error.is_transient() || matches!(error, Error::Hook { .. }) {
        return error;
    }
    let object = format!("{} \"{}\"", hook.kind, hook.name);
    Error::Hook { event, object, reason: "NotCreated".to_owned(), message: error.to_string() }
}
