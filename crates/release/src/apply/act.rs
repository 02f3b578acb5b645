//! Install, upgrade and rollback: from the pending record to the deployed one.

use std::collections::HashSet;
use std::sync::Arc;

use super::handover::scaled_by;
use super::{
    ActionResult, Applied, AppliedObject, Cascade, Driver, RetainedObject, Sent, WaitStrategy,
    unchanged,
};
use crate::Error;
use crate::objects::{ObjectId, Owner, RawObject};
use crate::plan::hooks::{at, give_up};
use crate::plan::{
    Action, ActionKind, ApplyMode, DesiredState, History, Manifests, Plan, TargetRevision, resolve,
};
use crate::record::model::full_chart;
use crate::record::{Release, Status, Stored, codec};

/// The objects that were applied, known, deleted and kept.
pub(super) struct Progress {
    pub objects: Vec<AppliedObject>,
    pub known: Vec<ObjectId>,
    pub removed: Vec<ObjectId>,
    pub kept: Vec<RetainedObject>,
}

impl Driver {
    /// Executes the decision of [`History::decide`].
    ///
    /// An install or upgrade creates missing CRDs of `crds/`, then the record as pending. It runs the pre hooks,
    /// applies the objects in install order, deletes the objects that only earlier revisions have, runs the post
    /// hooks, and marks the record as deployed. Resume continues after the last of these steps that was done.
    ///
    /// Does not wait: [`Error::Waiting`] says what has to change before the next call can continue.
    ///
    /// # Errors
    ///
    /// [`Error::WrongFacts`] and [`Error::Busy`] where `decide` returns [`Action::RenderAgain`] and
    /// [`Action::Wait`]. After a transient error the record is still pending. After another error, if there is a
    /// record, its status is `failed`, with the reason.
    pub async fn apply(
        &self,
        history: &History,
        desired: &DesiredState<'_>,
    ) -> Result<Applied, Error> {
        let action = history.decide(desired)?;
        match &action {
            Action::Unchanged => return unchanged(history),
            Action::RenderAgain(facts) => {
                return Err(Error::WrongFacts {
                    rendered: desired.release.revision,
                    due: facts.revision,
                });
            }
            Action::Wait { revision, status, retry_after } => {
                let (revision, status) = (*revision, status.to_string());
                return Err(Error::Busy { revision, status, retry_after: *retry_after });
            }
            Action::Install | Action::Upgrade | Action::Resume => {}
        }
        self.carry_out(history, desired, &action).await
    }

    /// Completes a revision that [`History::interrupted`] returns from its record, whatever the rendering is:
    /// for charts that generate other values each time.
    ///
    /// # Errors
    ///
    /// As [`Driver::apply`]; [`Error::WrongFacts`] if there is none.
    pub async fn resume(
        &self,
        history: &History,
        desired: &DesiredState<'_>,
    ) -> Result<Applied, Error> {
        let rendered = desired.release.revision;
        match history.interrupted() {
            Some(newest) if newest.version == rendered => {
                self.carry_out(history, desired, &Action::Resume).await
            }
            _ => Err(Error::WrongFacts { rendered, due: history.current_facts().revision }),
        }
    }

    /// Applies an earlier revision again, from its record: renders nothing. Without `to`, the one before the
    /// newest. Runs the hooks of that revision.
    ///
    /// Continues a rollback that was interrupted. Replaces another action that was interrupted.
    ///
    /// # Errors
    ///
    /// [`Error::NoRevision`], [`Error::Unauthenticated`], [`Error::Busy`]; as [`Driver::apply`] once it is under way.
    pub async fn rollback(
        &self,
        history: &History,
        to: Option<u32>,
        owner: Option<&Owner>,
    ) -> Result<Applied, Error> {
        let goal = TargetRevision::rollback(history, to, owner, self.clock.now())?;
        self.pursue_goal(history, goal, Vec::new()).await
    }

    async fn carry_out(
        &self,
        history: &History,
        desired: &DesiredState<'_>,
        action: &Action,
    ) -> Result<Applied, Error> {
        let mut goal = TargetRevision::new(history, desired, action, self.clock.now());
        if goal.create && self.action_options.full_record {
            goal.record.chart = full_chart(desired.chart);
        }
        // The CRDs in `crds/` belong to the chart of today, not to an earlier revision.
        let definitions = match goal.doing {
            ActionKind::Install | ActionKind::Upgrade => self.definitions(desired.chart).await?,
            ActionKind::Rollback => Vec::new(),
        };
        self.pursue_goal(history, goal, definitions).await
    }

    async fn pursue_goal(
        &self,
        history: &History,
        mut goal: TargetRevision<'_>,
        definitions: Vec<RawObject>,
    ) -> Result<Applied, Error> {
        goal.adopt = self.action_options.take_ownership;
        if goal.create {
            self.action_options.method.as_str().clone_into(&mut goal.record.apply_method);
        }
        if let Some(description) = &self.action_options.description {
            goal.complete.clone_from(description);
        }
        let manifests = Manifests { definitions, ..Manifests::read(history, &goal)? };
        let kinds = resolve(&self.mapper, manifests.kinds()).await?;
        let owner = goal.owner;
        let plan = Plan::new(history, goal, &manifests, &kinds, self.history_max)?;
        self.check_scope(&plan).await?;
        Box::pin(self.run(history.clone(), plan, owner)).await
    }

    async fn run(
        &self,
        mut history: History,
        plan: Plan,
        owner: Option<&Owner>,
    ) -> Result<Applied, Error> {
        let revision = plan.record.version;
        self.begin(&mut history, &plan).await?;
        let reached = match self.stages(&mut history, &plan, owner).await {
            Ok(reached) => reached,
            Err(error) => {
                let error = error.redacted(&plan.record.sensitive());
                self.fail(&mut history, revision, plan.doing, &error).await;
                return Err(error);
            }
        };
        for old in &plan.supersede {
            self.rewrite(&mut history, *old, |release| release.info.status = Status::Superseded)
                .await?;
        }
        let release = self
            .rewrite(&mut history, revision, |release| {
                release.info.status = Status::Deployed;
                release.info.description.clone_from(&plan.complete);
            })
            .await?;
        let done = match plan.doing {
            ActionKind::Install => ActionResult::Installed,
            ActionKind::Upgrade => ActionResult::Upgraded,
            ActionKind::Rollback => ActionResult::RolledBack,
        };
        let Progress { objects, known, removed, kept } = reached;
        Ok(Applied { done, release, history, objects, known, removed, kept })
    }

    /// Writes the record of a new revision. In this order a history never exceeds its limit, and a revision that
    /// is given up never looks like one to resume.
    async fn begin(&self, history: &mut History, plan: &Plan) -> Result<(), Error> {
        let next = plan.record.version;
        // Fails before any write if the record is too large.
        let packed = plan.create.then(|| codec::pack(&plan.record)).transpose();
        let packed = packed.map_err(Error::Encode)?;
        for revision in &plan.give_up {
            self.rewrite(history, *revision, |release| {
                release.info.status = Status::Failed;
                release.info.description =
                    format!("given up for revision {next} before it was complete");
            })
            .await?;
        }
        let Some(packed) = packed else { return Ok(()) };
        let failed = history.newest().filter(|it| it.info.status == Status::Failed);
        if let Some(newest) = failed.filter(|_| history.is_newest_trusted()) {
            self.clear_after_failure(newest).await?;
        }
        for revision in &plan.forget {
            if let Some(at) =
                history.records.iter().position(|old| old.release.version == *revision)
            {
                let old = history.records.remove(at);
                self.store.delete(&old).await?;
            }
        }
        self.store.sweep(history, false).await?;
        let stored = self.store.create(plan.record.clone(), &packed).await?;
        history.put(stored);
        Ok(())
    }

    /// Hooks, objects, hooks. While the post hooks run, call after call, the objects are not applied again; the
    /// last call applies them once more, to know their current state.
    async fn stages(
        &self,
        history: &mut History,
        plan: &Plan,
        owner: Option<&Owner>,
    ) -> Result<Progress, Error> {
        let (before, after) = plan.doing.events();
        let revision = plan.record.version;
        let waits = history.revision(revision).is_some_and(|record| self.only_waits(record));
        if !waits {
            self.hooks(history, revision, before, owner).await?;
        }
        let begun = history.revision(revision).is_some_and(|record| at(record) == Some(after));
        let reached = if begun {
            None
        } else {
            let reached =
                if waits { self.look_at(plan).await? } else { self.objects_of(plan).await? };
            if self.action_options.wait != WaitStrategy::No {
                self.wait_for(history, revision, &reached.objects).await?;
            }
            Some(reached)
        };
        self.hooks(history, revision, after, owner).await?;
        match reached {
            Some(reached) => Ok(reached),
            None => self.objects_of(plan).await,
        }
    }

    async fn objects_of(&self, plan: &Plan) -> Result<Progress, Error> {
        let release = (plan.record.name.as_str(), plan.record.namespace.as_str());
        let (mut objects, mut known) = (Vec::with_capacity(plan.steps.len()), Vec::new());
        // An object that moved to another API group is still the same object, by its uid.
        let mut alive = HashSet::new();
        let scaled = scaled_by(plan);
        for (how, object) in &plan.steps {
            if matches!(how, ApplyMode::Apply | ApplyMode::ApplyIfOurs) {
                self.hand_over_replicas(plan, (*how, object), &scaled).await?;
            }
            match self.send_forced(*how, object, plan.before(&object.id), release).await? {
                Sent::Applied(applied) => {
                    alive.insert(applied.uid.clone());
                    objects.push(*applied);
                }
                Sent::Known(uid) => {
                    alive.insert(uid);
                    known.push(object.id.clone());
                }
            }
        }
        let (removed, kept) =
            self.remove(&plan.removals, release, &alive, Cascade::Background).await?;
        Ok(Progress { objects, known, removed, kept })
    }

    /// Marks the record as failed, unless a retry may help: then it stays pending, and the next call resumes
    /// it. Does not write a record that is failed already.
    async fn fail(&self, history: &mut History, revision: u32, doing: ActionKind, error: &Error) {
        if error.is_transient() {
            return;
        }
        let description = format!("{} \"{}\" failed: {error}", doing.failed(), history.name());
        let same = |release: &Release| {
            release.info.status == Status::Failed && release.info.description == description
        };
        if history.releases().any(|release| release.version == revision && same(release)) {
            return;
        }
        let written = self
            .rewrite(history, revision, |release| {
                release.info.status = Status::Failed;
                release.info.description.clone_from(&description);
                give_up(release, self.clock.now());
            })
            .await;
        match (written, error) {
            (Ok(record), Error::Hook { event, .. }) => self.clear_failed(&record, *event).await,
            (Ok(_), _) => {}
            // It stays pending: the next call resumes it, and fails in the same way.
            (Err(error), _) => {
                tracing::warn!(release = history.name(), revision, %error, "cannot record a failure");
            }
        }
    }

    /// Changes a record in the cluster and in the history.
    pub(super) async fn rewrite(
        &self,
        history: &mut History,
        revision: u32,
        change: impl FnOnce(&mut Release),
    ) -> Result<Arc<Release>, Error> {
        let found =
            history.records.iter().find(|stored| stored.release.version == revision).cloned();
        let Some(old) = found else {
            return Err(Error::Raced { name: history.name().to_owned(), revision });
        };
        let mut release = Release::clone(&old.release);
        change(&mut release);
        let stored: Stored = self.store.update(&old, release).await?;
        let release = Arc::clone(&stored.release);
        history.put(stored);
        Ok(release)
    }
}
