//! One reconcile of a chart resource: values, render, plan, apply, status.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use catamaran_cluster::apply::{ApplyError, FailureKind};
use catamaran_cluster::conditions::reasons;
use catamaran_release::{Applied, Driver, Error as ReleaseError, History, Owner, chart_label};
use kube::core::{DynamicObject, GroupVersionKind};
use kube::{Api, ResourceExt};
use serde_json::{Map, Value};

use super::annotations::ReconcileOptions;
use super::event_reporter::EventReporter;
use super::release_cache::{AppliedObjectState, Observation, ReleaseCache};
use super::release_key::ReleaseKey;
use super::remediation::Remediated;
use super::render_seed::Mark;
use super::status::{self, FailureCondition};
use super::wait::{NOT_SERVED, WaitCondition};
use super::{ChartController, Context, Error, finalizer, render};
use crate::manager::controller::{Failure, Request, Requeue};
use crate::manager::dependents::Dependent;
use crate::manager::queue::Key;
use crate::manager::reflectors::Cache;
use crate::manager::status::{StatusPatch, Written};
use crate::manager::writes::Writes;

/// How long to wait for what no watch reports: an object that is being deleted, a kind that is not served yet.
pub(super) const RECHECK: Duration = Duration::from_secs(1);
/// How often to look whether a helm command has ended where no watch reports it.
const UNWATCHED_RECHECK: Duration = Duration::from_secs(10);
/// How often to apply a release again while it is not ready and no watch reports its objects. Once it is
/// ready, the reconcile period decides.
const UNWATCHED_RESYNC: Duration = Duration::from_secs(15);

/// One release of one resource during one reconcile.
pub(super) struct ReconcileContext<'a> {
    pub key: &'a Key,
    pub resource: DynamicObject,
    pub owner: Owner,
    /// Acts on the release.
    pub driver: Driver,
    pub site: ReleaseKey,
    /// What the release's records carry besides Helm's own labels.
    pub labels: BTreeMap<String, Option<String>>,
    /// What was generated for the rendering, once it turns out that something was.
    pub mark: Option<Mark>,
    pub reconcile_options: ReconcileOptions,
    pub config: Arc<Map<String, Value>>,
    pub status_patch: StatusPatch,
    /// The context of the kind's logic.
    pub ctx: &'a Context<'a>,
}

/// What writing the status of the resource needs.
pub(super) struct StatusTarget<'a> {
    pub key: &'a Key,
    pub api: &'a Api<DynamicObject>,
    pub writes: &'a Writes,
    pub recorder: &'a EventReporter,
}

/// Why a reconcile ends early.
pub(super) enum Interruption {
    /// A failure: a condition says so. `transient` decides whether a retry may help.
    Failed { failure: FailureCondition, message: String, transient: bool },
    /// A wait: a condition says for what. The reconcile runs again after this time.
    Wait { reason: String, message: String, after: Duration },
    /// A wait until an object changes.
    WaitFor(Box<WaitCondition>),
    /// The kind's logic returned an error; the reason is that of the condition.
    RefusedByLogic(&'static str, Error),
    /// The revision failed, and was rolled back or uninstalled.
    Remediated(Box<Remediated>),
    /// Somebody else wrote to the history meanwhile.
    Conflict,
}

impl ChartController {
    pub(super) async fn run(&self, request: Request) -> Result<Requeue, Failure> {
        let Request { key, object, api, writes, periodic } = request;
        if periodic && let Some(delay) = self.release_cache().remaining_wait(&key, &object) {
            return Ok(Requeue::After(delay)); // a watch reports what it waits for
        }
        let target =
            StatusTarget { key: &key, api: &api, writes: &writes, recorder: &self.recorder };
        let mut resource = DynamicObject::clone(&object);
        let is_deleted = resource.metadata.deletion_timestamp.is_some();
        if !finalizer::is_set(&resource) {
            if is_deleted {
                return Ok(Requeue::Never);
            }
            resource = finalizer::add(&api, &resource).await?;
            writes.note(&key, &resource);
        }
        let reconcile_options = ReconcileOptions::of(&resource);
        let mut status_patch = StatusPatch::of(&resource);
        status::set_paused(&mut status_patch, &reconcile_options);
        if reconcile_options.paused {
            return write_status(&target, &resource, status_patch, Ok(Requeue::Never)).await;
        }
        let epoch = self.epochs.fetch_add(1, Ordering::Relaxed);
        let ctx = &Context::new(self, &key, &resource, epoch);
        if is_deleted {
            return self.uninstall(&target, ctx, &reconcile_options).await;
        }
        let (owner, site) = (self.owner(&resource), self.release_key(&resource));
        let driver = self.driver_for_owner(&owner);
        let labels = site.labels();
        let period = match reconcile_options.period.clone().transpose() {
            Ok(period) => period,
            Err(error) => {
                let interruption =
                    unusable(reasons::RECONCILE_ERROR, format!("reconcile-period: {error}"));
                return write_status(&target, &resource, status_patch, Err(interruption)).await;
            }
        };
        status::set_period_accepted(&mut status_patch, period);
        let (mut status_patch, outcome) = match self.values(ctx).await {
            Ok(values) => {
                let (resource, config, key) = (resource.clone(), Arc::new(values), &key);
                let mut work = ReconcileContext {
                    key,
                    resource,
                    owner,
                    driver,
                    site,
                    labels,
                    mark: None,
                    reconcile_options,
                    config,
                    status_patch,
                    ctx,
                };
                let outcome = self.converge(&mut work).await;
                let outcome = self.record_remediation(&mut work, outcome).await;
                let outcome = self.register_waits(&work, outcome).await;
                (work.status_patch, outcome)
            }
            Err(interruption) => (status_patch, Err(interruption)),
        };
        let requeue = ctx.flush_status(&mut status_patch);
        if outcome.is_ok() {
            self.references.end_reconcile(&key, epoch);
        }
        let mut next = write_status(&target, &resource, status_patch, outcome).await?;
        if let Some(requeue) = requeue {
            next = next.sooner(requeue);
        }
        Ok(match period {
            Some(period) => next.within(period.used),
            None => next,
        })
    }

    /// Watches what a release waits for, so that the reconcile period costs nothing meanwhile.
    async fn register_waits(
        &self,
        work: &ReconcileContext<'_>,
        outcome: Result<Requeue, Interruption>,
    ) -> Result<Requeue, Interruption> {
        let outcome = match outcome {
            Err(Interruption::WaitFor(until)) => Err(self.wait_for(work.key, *until).await),
            outcome => outcome,
        };
        match &outcome {
            Err(interruption) => self.remember_wait(work.key, &work.resource, interruption),
            Ok(_) => self.release_cache().set_wait(work.key, &work.resource, None),
        }
        if matches!(
            outcome,
            Err(Interruption::Failed { .. }
                | Interruption::Remediated(_)
                | Interruption::RefusedByLogic(..))
        ) {
            self.readiness_watches.end(work.key);
        }
        outcome
    }

    /// Keeps the wait, so that a periodic reconcile can be skipped.
    pub(super) fn remember_wait(
        &self,
        key: &Key,
        resource: &DynamicObject,
        interruption: &Interruption,
    ) {
        let at_most = match interruption {
            // A shorter wait polls something.
            Interruption::Wait { after, .. } if *after > RECHECK => Some(*after),
            _ => None,
        };
        self.release_cache().set_wait(key, resource, at_most);
    }

    /// The values for the chart: the spec, the overrides, and what the kind's logic makes of them.
    pub(super) async fn values(
        &self,
        ctx: &Context<'_>,
    ) -> Result<Map<String, Value>, Interruption> {
        let _values = self.recorder.phase("values");
        let spec = render::values(ctx)
            .map_err(|message| unusable(reasons::ERROR_GETTING_VALUES, message))?;
        self.mapped(ctx, self.overrides.apply_to(spec)).await
    }

    /// Makes the release as the resource describes it. Makes no request if nothing changed.
    async fn converge(&self, work: &mut ReconcileContext<'_>) -> Result<Requeue, Interruption> {
        self.run_pending_callbacks(work.ctx, work.key).await?;
        if let Some(delay) = self.retry_cooldown(work) {
            return self.wait_for_cooldown(work, delay).await;
        }
        // After a remediation the deployed revision is not the desired one.
        let is_refused = self.release_cache().failed_attempt(work.key).is_some();
        let known = if is_refused { None } else { self.remembered(work) };
        let done = match &known {
            Some(found) => found.drifted.is_empty() || self.repair(work, found).await?,
            None => false,
        };
        if !done {
            let (applied, drawn) = self.ensure_revision(work).await?;
            status::log(applied.done, &applied.release);
            self.recorder.action_completed(&work.resource, applied.done, &applied.release);
            let told = self.deployed_status(&applied);
            told.write_to(&mut work.status_patch);
            let drawn =
                (work.reconcile_options.rotation.as_str(), drawn.and_then(|drawn| drawn.renew_at));
            self.remember(work, drawn, (&applied, told));
            self.release_cache().clear_failed_attempt(work.key);
            self.after(work.ctx, work.key, applied.done, &applied.release).await?;
        }
        let mut observation = self.observe(work.key);
        self.diagnose(work.key, &mut observation).await;
        self.report_progress(work, &mut observation, done);
        if let Some(delay) = self.renewal(work.key) {
            observation.requeue_within(delay);
        }
        let blind = Some(UNWATCHED_RESYNC)
            .filter(|_| observation.blind && !observation.not_ready.is_empty());
        Ok(observation.again.or(blind).map_or(Requeue::Never, Requeue::After))
    }

    /// Reports the readiness of the objects: at once after an action, then at most once a second.
    fn report_progress(
        &self,
        work: &mut ReconcileContext<'_>,
        observation: &mut Observation,
        later: bool,
    ) {
        let mut told = work.status_patch.clone();
        if let (Some(worst), Some(known)) =
            (observation.not_ready.first_mut(), self.release_cache().get_mut(work.key))
        {
            known.reported.hide(&mut worst.readiness);
        }
        status::set_readiness(&mut told, &observation.not_ready);
        let beat = match self.release_cache().get_mut(work.key) {
            Some(known) if later && told.has_changes() && !work.status_patch.has_changes() => {
                known.try_progress_update(Instant::now())
            }
            _ => Ok(()),
        };
        match beat {
            Ok(()) => work.status_patch = told,
            Err(delay) => observation.requeue_within(delay),
        }
    }

    /// The status after a completed action.
    pub(super) fn deployed_status(&self, applied: &Applied) -> status::Deployed {
        status::Deployed::new(&applied.history, &applied.release, self.status_manifest)
    }

    /// Caches a completed action, and the status that reports it.
    pub(super) fn remember(
        &self,
        work: &ReconcileContext<'_>,
        drawn: (&str, Option<SystemTime>),
        applied: (&Applied, status::Deployed),
    ) {
        let cache = |gvk: &GroupVersionKind| self.cache(gvk);
        let objects = applied.0.objects.iter();
        let left = objects.filter_map(|object| AppliedObjectState::new(object, cache)).collect();
        let mut memory = self.release_cache();
        memory.remember(work.key, &work.resource, drawn, applied, left);
        if let Some(known) = memory.get_mut(work.key) {
            known.values = self.config.logic.is_some().then(|| work.config.clone());
        }
    }

    /// Observes the objects, if the release is cached and its inputs did not change.
    fn remembered(&self, work: &mut ReconcileContext<'_>) -> Option<Observation> {
        let mut memory = self.release_cache();
        let remembered = memory.get_mut(work.key).filter(|known| {
            known.is_current(&work.resource, &work.reconcile_options.rotation)
                && known.values.as_ref().is_none_or(|mapped| *mapped == work.config)
        })?;
        let (namespace, name) = &remembered.release;
        if self.records.is_stale(namespace, name) {
            return None;
        }
        let observation = remembered.observe(Instant::now());
        if observation.blind {
            return None; // objects that no watch reports are applied again
        }
        remembered.reported.write_to(&mut work.status_patch);
        Some(observation)
    }

    fn observe(&self, key: &Key) -> Observation {
        self.release_cache()
            .get_mut(key)
            .map(|known| known.observe(Instant::now()))
            .unwrap_or_default()
    }

    /// The time until a certificate of the release has to be renewed, at most a day: clocks may be set.
    fn renewal(&self, key: &Key) -> Option<Duration> {
        const DAY: Duration = Duration::from_hours(24);
        let renew_at = self.release_cache().get_mut(key)?.renew_at?;
        let delay = renew_at.duration_since(SystemTime::now()).unwrap_or_default();
        Some(delay.clamp(RECHECK, DAY))
    }

    pub(super) fn owner(&self, resource: &DynamicObject) -> Owner {
        let namespace = resource.namespace();
        let driver = &self.requester.of(namespace.as_deref().unwrap_or(&self.home)).driver;
        let reference = k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference {
            api_version: self.gvk.api_version(),
            kind: self.gvk.kind.clone(),
            name: resource.name_any(),
            uid: resource.uid().unwrap_or_default(),
            controller: Some(true),
            block_owner_deletion: Some(!driver.may_not_block()),
        };
        let chart = Some(chart_label(&self.chart.metadata().name));
        Owner { reference, namespace, chart }
    }

    /// The cache of a kind's objects; the first release that has such an object starts the watch.
    pub(super) fn cache(&self, gvk: &GroupVersionKind) -> Option<Arc<Cache<Dependent>>> {
        self.dependents.as_ref().map(|dependents| dependents.watch(gvk, &self.label_selector, None))
    }

    pub(super) fn release_failed(&self, history: &History, error: ReleaseError) -> Interruption {
        match error {
            ReleaseError::Waiting(waiting) => {
                Interruption::WaitFor(Box::new(WaitCondition::told(*waiting)))
            }
            ReleaseError::Busy { retry_after, .. } => Interruption::Wait {
                reason: "OperationInProgress".to_owned(),
                message: error.to_string(),
                after: self.recheck_after(retry_after),
            },
            error => release_failed(history, error),
        }
    }

    /// When to look again at a release that a helm command writes. The watch of records reports its end.
    pub(super) fn recheck_after(&self, retry_after: Duration) -> Duration {
        if self.records.is_watching() { retry_after } else { retry_after.min(UNWATCHED_RECHECK) }
    }

    pub(super) fn release_cache(&self) -> MutexGuard<'_, ReleaseCache> {
        self.releases.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes the status, once, and returns when the resource is due again.
pub(super) async fn write_status(
    target: &StatusTarget<'_>,
    resource: &DynamicObject,
    mut status_patch: StatusPatch,
    outcome: Result<Requeue, Interruption>,
) -> Result<Requeue, Failure> {
    let follows = match outcome {
        Ok(next) => Ok(next),
        Err(Interruption::Conflict | Interruption::RefusedByLogic(_, Error::Conflict)) => {
            return Err(Failure::Conflict);
        }
        Err(Interruption::WaitFor(until)) => {
            status::set_waiting(&mut status_patch, &until.reason, &until.message);
            Ok(Requeue::After(RECHECK))
        }
        Err(Interruption::Wait { reason, message, after }) => {
            status::set_waiting(&mut status_patch, &reason, &message);
            Ok(Requeue::After(after))
        }
        Err(Interruption::Failed { failure, message, transient }) => {
            status::set_failed(&mut status_patch, &failure, &message);
            target.recorder.failed(resource, &failure, &message);
            Err(if transient { Failure::Transient(message) } else { Failure::Permanent(message) })
        }
        // What it is waits for a watch, or for the time that the code asked for.
        Err(Interruption::RefusedByLogic(_, Error::Waiting { reason, message })) => {
            status::set_waiting(&mut status_patch, &reason, &message);
            Ok(Requeue::Never)
        }
        Err(Interruption::RefusedByLogic(reason, error)) => {
            let (failure, message) = (FailureCondition::of(reason), error.to_string());
            status::set_failed(&mut status_patch, &failure, &message);
            target.recorder.failed(resource, &failure, &message);
            let is_permanent = matches!(error, Error::Permanent(_));
            Err(if is_permanent {
                Failure::Permanent(message)
            } else {
                Failure::Transient(message)
            })
        }
        Err(Interruption::Remediated(taken)) => {
            status::set_failed(&mut status_patch, &taken.failure, &taken.message);
            target.recorder.failed(resource, &taken.failure, &taken.message);
            Err(Failure::Transient(taken.message))
        }
    };
    let _status = target.recorder.phase("status");
    match status_patch.write(target.api, resource).await {
        Ok(Written::Conflict) => Err(Failure::Conflict),
        Ok(Written::Changed(written)) => {
            target.writes.note(target.key, &written);
            follows
        }
        Ok(Written::Unchanged | Written::Gone) => follows,
        Err(error) => Err(Failure::Transient(format!("cannot write the status: {error}"))),
    }
}

/// A permanent failure: the resource has to change first.
fn unusable(reason: &'static str, message: String) -> Interruption {
    Interruption::Failed {
        failure: FailureCondition::Irreconcilable(reason),
        message,
        transient: false,
    }
}

fn release_failed(history: &History, error: ReleaseError) -> Interruption {
    let message = error.to_string();
    match error {
        ReleaseError::Raced { .. } => Interruption::Conflict,
        ReleaseError::Terminating { object, .. } => {
            Interruption::WaitFor(Box::new(WaitCondition::of("Terminating", message, object)))
        }
        ReleaseError::NotServedYet { object } => {
            Interruption::WaitFor(Box::new(WaitCondition::of(NOT_SERVED, message, object)))
        }
        error => {
            let install = history.deployed().is_none();
            let reason = if install { reasons::INSTALL_ERROR } else { reasons::UPGRADE_ERROR };
            let hopeless = matches!(
                error,
                // What the API server cannot take it will not take a second later.
                ReleaseError::Request(ApplyError { kind: FailureKind::Invalid, .. })
                    | ReleaseError::Unsupported { .. }
                    | ReleaseError::InvalidName { .. }
                    | ReleaseError::OtherChart { .. }
                    | ReleaseError::Manifest(_)
                    | ReleaseError::Object { .. }
                    | ReleaseError::OutOfScope { .. }
            );
            Interruption::Failed {
                failure: FailureCondition::ReleaseFailed(reason),
                message,
                transient: !hopeless,
            }
        }
    }
}
