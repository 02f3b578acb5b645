//! From the history of a release to its next revision: renders, plans, applies.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use catamaran_chart::{Drawn, ReleaseFacts, Rendered, fresh_seed};
use catamaran_cluster::conditions::reasons;
use catamaran_cluster::watch::ObjectKey;
use catamaran_release::plan::{is_same_but_generated, kept_random_texts};
use catamaran_release::{
    Action, ActionOptions, Applied, CrdPolicy, DesiredState, Driver, Error as ReleaseError,
    History, PlannedObject, Release, Snapshots, Status,
};
use futures::future::join_all;
use jiff::Timestamp;
use kube::core::GroupVersionKind;

use super::reconcile::{Interruption, ReconcileContext};
use super::release_cache::{AppliedObjectState, Observation};
use super::release_key::FoundHistory;
use super::render::RenderEntropy;
use super::render_seed::{DRAWN, Mark};
use super::status::{self, FailureCondition};
use super::{Action as LogicAction, ChartController, PendingAction};

/// How long to wait for the first list of a kind before reading its objects one by one.
pub(super) const FIRST_LIST: Duration = Duration::from_secs(5);

/// The right that applying the CRDs of `crds/` needs.
const DEFINE: &str = "create and patch customresourcedefinitions.apiextensions.k8s.io";
/// The right that reading a single record needs.
const READ: &str = "get secrets";

impl ChartController {
    /// Renders the chart. If it generates random values, they come from the seed in the cluster, and the
    /// random texts of the newest revision stay.
    async fn render_with_kept_values(
        &self,
        work: &mut ReconcileContext<'_>,
        history: &History,
        facts: &ReleaseFacts,
    ) -> Result<(Rendered, RenderEntropy), Interruption> {
        let cached = self.release_cache().seed(work.key, &work.reconcile_options.rotation);
        let bits = cached.bits;
        let mut entropy = RenderEntropy::of(&cached);
        let mut rendered = self.rendered(work, facts, &entropy).await?;
        let Some(mut drawn) = rendered.drawn else { return Ok((rendered, entropy)) };
        let seed = self.keep_seed(work.key, &work.resource, &work.site, cached).await;
        let seed = seed.map_err(|error| Interruption::Failed {
            failure: FailureCondition::Irreconcilable(reasons::RECONCILE_ERROR),
            message: error.to_string(),
            transient: true,
        })?;
        if seed.bits != bits {
            entropy = RenderEntropy::of(&seed);
            rendered = self.rendered(work, facts, &entropy).await?;
            drawn = rendered.drawn.unwrap_or(drawn);
        }
        let mark = Mark::new(&seed, drawn);
        if let Some(newest) = history.newest()
            && Mark::of(newest).is_none_or(|newest| newest.is_of_rotation(&mark))
        {
            let kept = kept_random_texts(newest, &rendered, fresh_seed());
            if !kept.is_empty() {
                entropy = entropy.with_overrides(kept);
                rendered = self.rendered(work, facts, &entropy).await?;
            }
        }
        work.labels.insert(DRAWN.to_owned(), Some(mark.to_string()));
        work.mark = Some(mark);
        Ok((rendered, entropy))
    }

    /// Whether the newest revision equals the rendering, except for generated values. Then there is no
    /// upgrade: a restart must not change generated values.
    ///
    /// False if values have to be generated again: another rotation is requested, or a certificate has
    /// reached two thirds of its life. If both have the same seed, only the time may cause a difference.
    /// Otherwise (the seed was lost, or another program wrote the revision) every field that depends on
    /// generated values may differ.
    async fn is_same_but_generated(
        &self,
        history: &History,
        work: &ReconcileContext<'_>,
        facts: &ReleaseFacts,
        (rendered, entropy): (&Rendered, &RenderEntropy),
    ) -> Result<bool, Interruption> {
        let Some(newest) = history.newest() else { return Ok(false) };
        let is_deployed = newest.info.status == Status::Deployed;
        let same_chart = newest.chart_version() == self.chart.metadata().version;
        if !same_chart || !(is_deployed || history.interrupted().is_some()) {
            return Ok(false);
        }
        let other = match (Mark::of(newest), &work.mark) {
            (_, None) => entropy.at_another_time(),
            (Some(newest), Some(mark)) if !newest.is_current(mark) => return Ok(false),
            (Some(newest), Some(mark)) if newest.is_of_seed(mark) => entropy.at_another_time(),
            _ if newest.config != *work.config => return Ok(false),
            _ => entropy.of_another_seed(),
        };
        let other = self.rendered(work, facts, &other).await?;
        Ok(is_same_but_generated(newest, rendered, &other))
    }

    /// Renders, plans and applies. Afterwards the deployed revision is the one that the resource describes.
    pub(super) async fn ensure_revision(
        &self,
        work: &mut ReconcileContext<'_>,
    ) -> Result<(Applied, Option<Drawn>), Interruption> {
        self.check_account(&work.site.namespace).await?;
        let history = self.history(work).await?;
        self.resume_remediation(work, &history).await?;
        let chart = &self.chart.metadata().name;
        if history.newest().is_none_or(|newest| newest.chart_name() == chart) {
            // Before rendering, because the kinds that the cluster serves are an input of a rendering.
            self.apply_crds().await.map_err(|error| self.release_failed(&history, error))?;
        }
        let facts = history.current_facts();
        let (rendered, entropy) = self.render_with_kept_values(work, &history, &facts).await?;
        let drawn = rendered.drawn;
        match self.execute_decision(work, &history, &facts, (&rendered, &entropy)).await {
            Err(Interruption::WaitFor(until)) => {
                Err(Interruption::WaitFor(Box::new(until.defined_by(&rendered))))
            }
            applied => Ok((applied?, drawn)),
        }
    }

    /// Executes the decision that follows from the history and the rendering.
    async fn execute_decision(
        &self,
        work: &ReconcileContext<'_>,
        history: &History,
        facts: &ReleaseFacts,
        (rendered, entropy): (&Rendered, &RenderEntropy),
    ) -> Result<Applied, Interruption> {
        let desired = self.desired_state(work, rendered, facts);
        match history.decide(&desired).map_err(|error| self.release_failed(history, error))? {
            Action::Unchanged => self.reapply(history, &desired, work).await,
            Action::Wait { revision, status, retry_after } => Err(Interruption::Wait {
                reason: "OperationInProgress".to_owned(),
                message: format!(
                    "a helm command writes revision {revision} ({status:?}); taken over if it does not end"
                ),
                after: self.recheck_after(retry_after),
            }),
            Action::RenderAgain(next) => {
                if self.is_same_but_generated(history, work, facts, (rendered, entropy)).await? {
                    return self.resume_or_reapply(history, &desired, work).await;
                }
                let rendered = self.rendered(work, &next, entropy).await?;
                self.apply(history, &self.desired_state(work, &rendered, &next), work).await
            }
            Action::Install | Action::Upgrade | Action::Resume => {
                self.apply(history, &desired, work).await
            }
        }
    }

    /// Asks the kind's logic before a new revision. A revision that was interrupted continues without.
    async fn start_revision(
        &self,
        history: &History,
        desired: &DesiredState<'_>,
        work: &ReconcileContext<'_>,
    ) -> Result<(), Interruption> {
        let install = desired.release.is_install;
        let action = if install { LogicAction::Install } else { LogicAction::Upgrade };
        let newest = history.newest().filter(|newest| newest.version == desired.release.revision);
        if newest.is_some_and(|newest| newest.info.status.is_pending()) {
            work.ctx.begin(action);
            return Ok(());
        }
        let manifest = match &self.config.logic {
            Some(_) => desired.rendered.manifest_text(),
            None => String::new(),
        };
        let planned = PendingAction {
            action,
            release: history.name(),
            values: &work.config,
            manifest: &manifest,
            deployed: trusted_deployed(history),
        };
        self.before(work.ctx, planned).await?;
        self.recorder.overrides(&work.resource, self.overrides.expanded());
        Ok(())
    }

    /// Removes the owner references of a Go operator from records, if the operator has the right.
    async fn strip_owner_references(
        &self,
        driver: &Driver,
        history: History,
    ) -> Result<History, ReleaseError> {
        match driver.disown(history.clone()).await {
            Err(ReleaseError::Request(error)) if error.kind.is_forbidden() => {
                let effect = format!("records are not kept for an uninstall ({error})");
                self.missing_permissions.warn_once("patch secrets", &effect);
                Ok(history)
            }
            disowned => disowned,
        }
    }

    /// Applies the CRDs of `crds/` with the operator's own rights, because they do not depend on a
    /// resource. Without the right it logs that once.
    async fn apply_crds(&self) -> Result<(), ReleaseError> {
        if self.missing_permissions.has(DEFINE) {
            return Ok(());
        }
        match self.requester.own().driver.crds(self.chart.chart()).await {
            Err(ReleaseError::Definition { source_file, source })
                if source.kind.is_forbidden() && self.missing_permissions.is_missing(DEFINE) =>
            {
                let effect = format!("the chart's are left out ({source_file})");
                self.missing_permissions.warn_once(DEFINE, &effect);
                Ok(())
            }
            defined => defined,
        }
    }

    pub(super) async fn history(
        &self,
        work: &ReconcileContext<'_>,
    ) -> Result<History, Interruption> {
        let _plan = self.recorder.phase("plan");
        let found = self.load_history(&work.driver, work.key, &work.site, &work.owner).await;
        let history = match found {
            Ok(FoundHistory { history, is_own: false }) => {
                return Err(super::release_key::foreign(&history));
            }
            found => found.map(|found| found.history),
        };
        let history = match history {
            // What Helm operators wrote must not be collected before the release is uninstalled.
            Ok(history) if !history.owners().is_empty() => {
                self.strip_owner_references(&work.driver, history).await
            }
            history => history,
        };
        history.map_err(|error| Interruption::Failed {
            failure: FailureCondition::Irreconcilable(reasons::ERROR_GETTING_RELEASE_STATE),
            message: error.to_string(),
            transient: !matches!(error, ReleaseError::InvalidName { .. }),
        })
    }

    /// Nobody knows what happened to the objects while nobody watched: looks at them, and applies again
    /// what is not as it shall be.
    async fn reapply(
        &self,
        history: &History,
        desired: &DesiredState<'_>,
        work: &ReconcileContext<'_>,
    ) -> Result<Applied, Interruption> {
        let is_trusted = history.deployed().is_some_and(|it| history.is_trusted(it.version));
        if let Some(deployed) = history.deployed() {
            let shown =
                if is_trusted { None } else { Some(desired.with_rendered_content(deployed)) };
            let deployed = shown.as_ref().unwrap_or(deployed);
            self.before_known(work.ctx, LogicAction::Repair, history, deployed).await?;
        }
        let _apply = self.recorder.phase("apply");
        let mut driver = self.skip_unchanged(work);
        if self.dependents.is_some()
            && let Ok(objects) = driver.objects(desired).await
        {
            driver = driver.with_snapshots(self.listed_snapshots(&objects).await);
        }
        let applied = if is_trusted {
            driver.repair(history, Some(&work.owner), &[]).await
        } else {
            driver.confirm(history, desired).await
        };
        let applied = applied.map_err(|error| irreconcilable(reasons::RECONCILE_ERROR, &error))?;
        log_drift(&applied);
        Ok(applied)
    }

    /// What the watches told of objects when they began. They begin here, if nobody else has begun them;
    /// what they do not tell soon is read.
    async fn listed_snapshots(&self, objects: &[PlannedObject]) -> Arc<Snapshots> {
        let kinds: HashSet<&GroupVersionKind> = objects.iter().map(|object| &object.gvk).collect();
        let caches = kinds.into_iter().filter_map(|gvk| Some((gvk.clone(), self.cache(gvk)?)));
        let caches: HashMap<_, _> = caches.collect();
        join_all(caches.values().map(|cache| cache.wait_for_sync(FIRST_LIST))).await;
        Arc::new(move |id, gvk| {
            let key = ObjectKey { namespace: id.namespace.clone(), name: id.name.clone() };
            let mut object = caches.get(gvk)?.get(&key)?.sight.take()?;
            // Items of a list do not say what they are.
            let fields = object.as_object_mut()?;
            fields.insert("apiVersion".to_owned(), gvk.api_version().into());
            fields.insert("kind".to_owned(), gvk.kind.as_str().into());
            Some(object)
        })
    }

    /// Stays with what was generated for the newest revision, and brings it to its end if it has not come there.
    async fn resume_or_reapply(
        &self,
        history: &History,
        desired: &DesiredState<'_>,
        work: &ReconcileContext<'_>,
    ) -> Result<Applied, Interruption> {
        if history.interrupted().is_none() {
            return self.reapply(history, desired, work).await;
        }
        self.start_revision(history, desired, work).await?;
        let driver = self.skip_unchanged(work).options(self.action_options(history, work, desired));
        let _apply = self.recorder.phase("apply");
        match driver.resume(history, desired).await {
            Ok(applied) => Ok(applied),
            Err(error) => Err(self.remediate(history, error, work).await),
        }
    }

    async fn apply(
        &self,
        history: &History,
        desired: &DesiredState<'_>,
        work: &ReconcileContext<'_>,
    ) -> Result<Applied, Interruption> {
        self.start_revision(history, desired, work).await?;
        let driver = self.skip_unchanged(work).options(self.action_options(history, work, desired));
        let _apply = self.recorder.phase("apply");
        match driver.apply(history, desired).await {
            Ok(applied) => Ok(applied),
            Err(error) => Err(self.remediate(history, error, work).await),
        }
    }

    /// How what is desired is brought about.
    fn action_options(
        &self,
        history: &History,
        work: &ReconcileContext<'_>,
        desired: &DesiredState<'_>,
    ) -> ActionOptions {
        let install = desired.release.is_install;
        let (doing, action_options) = if install {
            (LogicAction::Install, work.reconcile_options.install())
        } else {
            (LogicAction::Upgrade, work.reconcile_options.upgrade())
        };
        let skipped = self.missing_permissions.has(DEFINE) || self.requester.is_impersonating();
        let crds = if skipped { CrdPolicy::Skip } else { self.crds };
        let until = self.deadline(history, desired.release.revision);
        let action_options =
            ActionOptions { crds, full_record: self.full_record, until, ..action_options };
        self.config.apply_overrides(doing, &work.resource, action_options)
    }

    /// When all that a revision waits for has to have happened.
    pub(super) fn deadline(&self, history: &History, revision: u32) -> Option<Timestamp> {
        let begun = history.revision(revision).filter(|begun| begun.info.status.is_pending());
        let begun = begun.and_then(|begun| begun.info.last_deployed.0);
        begun.unwrap_or_else(Timestamp::now).checked_add(self.config.timeout?).ok()
    }

    /// A driver that leaves out what the watches show to be as it was left.
    fn skip_unchanged(&self, work: &ReconcileContext<'_>) -> Driver {
        let untouched =
            self.release_cache().get_mut(work.key).map(|it| it.untouched(Instant::now()));
        let Some(untouched) = untouched else { return work.driver.clone().unwatched() };
        work.driver.clone().with_known_objects(Arc::new(move |id, hash| {
            let (_, uid) = untouched.get(id).filter(|(wanted, _)| *wanted == hash)?;
            Some(uid.clone())
        }))
    }

    /// Applies objects again that somebody changed or deleted. False if a helm command wrote a
    /// revision meanwhile, or the record: then what they should be has to be found out anew.
    pub(super) async fn repair(
        &self,
        work: &ReconcileContext<'_>,
        found: &Observation,
    ) -> Result<bool, Interruption> {
        self.check_account(&work.site.namespace).await?;
        let history = match self.newest_deployed(work).await {
            Some(history) => history,
            None => self.history(work).await?,
        };
        let newest = history.newest().map(|newest| newest.version);
        let known = self.release_cache().get_mut(work.key).map(|known| known.reported.version);
        if newest != known || !history.is_newest_trusted() {
            return Ok(false);
        }
        if let Some(deployed) = history.deployed() {
            self.before_known(work.ctx, LogicAction::Repair, &history, deployed).await?;
        }
        let apply = self.recorder.phase("apply");
        let driver = work.driver.clone().with_deleted_objects(found.gone.iter().cloned());
        let repaired = driver.repair(&history, Some(&work.owner), &found.drifted).await;
        let applied = repaired.map_err(|error| irreconcilable(reasons::RECONCILE_ERROR, &error))?;
        log_drift(&applied);
        status::log(applied.done, &applied.release);
        self.recorder.action_completed(&work.resource, applied.done, &applied.release);
        let left =
            |object| AppliedObjectState::new(object, |gvk: &GroupVersionKind| self.cache(gvk));
        let looked_at = applied.objects.iter();
        let looked_at = looked_at.filter_map(|object| Some((left(object)?, &object.found)));
        let looked_at = looked_at.collect();
        if let Some(known) = self.release_cache().get_mut(work.key) {
            known.repaired(looked_at);
        }
        drop(apply);
        self.after(work.ctx, work.key, applied.done, &applied.release).await?;
        Ok(true)
    }

    /// The remembered revision's record, if nobody has written another since: cheaper than a LIST, for
    /// which the API server may wait until it is sure of what it has.
    async fn newest_deployed(&self, work: &ReconcileContext<'_>) -> Option<History> {
        if self.missing_permissions.has(READ) {
            return None;
        }
        let known = self
            .release_cache()
            .get_mut(work.key)
            .map(|it| (it.release.clone(), it.reported.version));
        let ((namespace, name), revision) = known?;
        let _plan = self.recorder.phase("plan");
        match work.driver.newest_deployed(&namespace, &name, revision).await {
            Ok(history) => history.inspect(|history| self.records.read(history)),
            Err(ReleaseError::Request(error)) if error.kind.is_forbidden() => {
                self.missing_permissions
                    .warn_once(READ, "a repair lists all records of its release");
                None
            }
            Err(_) => None, // the LIST tells what is wrong
        }
    }

    async fn rendered(
        &self,
        work: &ReconcileContext<'_>,
        facts: &ReleaseFacts,
        entropy: &RenderEntropy,
    ) -> Result<Rendered, Interruption> {
        let _render = self.recorder.phase("render");
        self.render(&work.config, facts, entropy.clone()).await.map_err(|trouble| {
            Interruption::Failed {
                transient: trouble.is_transient(),
                message: trouble.to_string(),
                // As operator-sdk, for which rendering is the first step of an install.
                failure: if work.resource.data.pointer("/status/deployedRelease").is_none() {
                    FailureCondition::ReleaseFailed(reasons::INSTALL_ERROR)
                } else {
                    FailureCondition::Irreconcilable(reasons::RECONCILE_ERROR)
                },
            }
        })
    }

    fn desired_state<'a>(
        &'a self,
        work: &'a ReconcileContext<'_>,
        rendered: &'a Rendered,
        facts: &'a ReleaseFacts,
    ) -> DesiredState<'a> {
        let desired = DesiredState::new(self.chart.chart(), &work.config, rendered, facts);
        desired.owned_by(&work.owner).labelled(&work.labels)
    }
}

/// The deployed revision, if its record is to be acted on.
pub(super) fn trusted_deployed(history: &History) -> Option<&Release> {
    let deployed = history.deployed().filter(|it| history.is_trusted(it.version));
    deployed.map(|release| &**release)
}

/// Says which fields were put back.
fn log_drift(applied: &Applied) {
    for object in applied.objects.iter().filter(|object| object.found.is_drift()) {
        tracing::info!(object = %object.id, drift = %object.found, "Repaired drift");
    }
}

fn irreconcilable(reason: &'static str, error: &ReleaseError) -> Interruption {
    Interruption::Failed {
        failure: FailureCondition::Irreconcilable(reason),
        message: error.to_string(),
        transient: true,
    }
}
