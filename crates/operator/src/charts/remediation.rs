//! Remediation of failed actions, as in the Go operators: a failed upgrade is rolled back to the revision
//! that was deployed, a failed install is uninstalled. The same attempt is not repeated for a while, unless
//! something that it depends on changes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use catamaran_release::{
    ActionResult, Applied, Error as ReleaseError, Event, History, Release, Status,
};
use kube::core::DynamicObject;
use serde_json::{Map, Value};

use super::annotations::ReconcileOptions;
use super::reconcile::{Interruption, ReconcileContext};
use super::status::{self, FailureCondition};
use super::{Action, ChartController};
use crate::manager::controller::Requeue;

/// How long a first failure is not tried again. Doubles with each further one.
const FIRST_COOLDOWN: Duration = Duration::from_secs(5);
/// The longest of these times.
const LONGEST_COOLDOWN: Duration = Duration::from_mins(5);

/// A failure that was remediated.
pub(super) struct Remediated {
    pub failure: FailureCondition,
    pub message: String,
    /// The revision that is deployed again; `None` after a failed install.
    deployed: Option<Applied>,
}

/// The inputs of an attempt that failed.
#[derive(Debug)]
pub(super) struct FailedAttempt {
    uid: Option<String>,
    generation: Option<i64>,
    reconcile_options: ReconcileOptions,
    config: Arc<Map<String, Value>>,
    failure: FailureCondition,
    message: String,
    /// Whether nothing was installed before it failed.
    is_bare: bool,
    /// How often in a row.
    pub times: u32,
    /// When it is tried again; not known before it is remediated.
    pub until: Option<Instant>,
}

impl FailedAttempt {
    fn is_of(
        &self,
        resource: &DynamicObject,
        reconcile_options: &ReconcileOptions,
        config: &Map<String, Value>,
    ) -> bool {
        self.uid == resource.metadata.uid
            && self.generation == resource.metadata.generation
            && self.reconcile_options == *reconcile_options
            && *self.config == *config
    }
}

/// The failure that is remediated.
struct AttemptFailure {
    failure: FailureCondition,
    message: String,
    /// No object of it was ever sent.
    is_bare: bool,
    /// Another attempt may go better.
    is_transient: bool,
}

impl ChartController {
    /// Remediates a release whose action ended in an error.
    pub(super) async fn remediate(
        &self,
        history: &History,
        error: ReleaseError,
        work: &ReconcileContext<'_>,
    ) -> Interruption {
        // Then no object was sent, and there is nothing to uninstall.
        let is_bare = matches!(&error, ReleaseError::Hook { event: Event::PreInstall, .. });
        let interruption = self.release_failed(history, error);
        let Interruption::Failed { failure, message, transient } = &interruption else {
            return interruption;
        };
        let (failure, message, transient) = (failure.clone(), message.clone(), *transient);
        self.after_failure(work.ctx, &message).await;
        if !self.config.failure_rollbacks {
            return interruption;
        }
        // Whether there is something to be remediated is in the record: after an error that may pass it
        // is still pending, and where nothing was written there is none.
        // Read anew: what another resource's turn has read ahead may be from before this action.
        let (namespace, name) = (history.namespace(), history.name());
        self.records.reading(namespace, name);
        let Ok(now) = work.driver.history(namespace, name).await else { return interruption };
        self.records.read(&now);
        if now.newest().is_none_or(|newest| newest.info.status != Status::Failed) {
            return interruption;
        }
        self.note(work, AttemptFailure { failure, message, is_bare, is_transient: transient });
        self.undo_failed_revision(work, &now).await
    }

    /// Continues a remediation that an earlier reconcile began.
    pub(super) async fn resume_remediation(
        &self,
        work: &ReconcileContext<'_>,
        history: &History,
    ) -> Result<(), Interruption> {
        if !history.is_rolling_back() && !history.is_uninstalling() {
            return Ok(());
        }
        if self.release_cache().failed_attempt(work.key).is_none() {
            // By another process. Why it failed stands in the record before.
            let is_failed = |old: &&Arc<Release>| {
                old.info.status == Status::Failed && history.is_trusted(old.version)
            };
            let failed = history.releases().rev().find(is_failed);
            let message = failed.map_or("it was being rolled back", |old| &old.info.description);
            let (failure, message) = (failure_of(history), message.to_owned());
            self.note(
                work,
                AttemptFailure { failure, message, is_bare: false, is_transient: true },
            );
        }
        Err(self.undo_failed_revision(work, history).await)
    }

    /// Remembers what is remediated, and why.
    fn note(&self, work: &ReconcileContext<'_>, failure: AttemptFailure) {
        let AttemptFailure { failure, message, is_bare, is_transient } = failure;
        let mut memory = self.release_cache();
        let before = memory.failed_attempt(work.key);
        let before =
            before.filter(|old| old.is_of(&work.resource, &work.reconcile_options, &work.config));
        let times = match before {
            // What cannot be as it is asked for rests as long as can be.
            _ if !is_transient => u32::from(u8::MAX),
            before => before.map_or(0, |old| old.times).saturating_add(1),
        };
        let refused = FailedAttempt {
            uid: work.resource.metadata.uid.clone(),
            generation: work.resource.metadata.generation,
            reconcile_options: work.reconcile_options.clone(),
            config: work.config.clone(),
            failure,
            message,
            is_bare,
            times,
            until: None,
        };
        memory.set_failed_attempt(work.key, refused);
    }

    async fn undo_failed_revision(
        &self,
        work: &ReconcileContext<'_>,
        history: &History,
    ) -> Interruption {
        // A rollback that was begun is gone on with: it may have superseded what was deployed already.
        let deployed = if history.is_rolling_back() || history.last_deployed().is_some() {
            match self.roll_back(work, history).await {
                Ok(applied) => Some(applied),
                Err(interruption) => return interruption,
            }
        } else {
            match self.uninstall_failed_install(work, history).await {
                Ok(()) => None,
                Err(interruption) => return interruption,
            }
        };
        let (failure, message) = match self.release_cache().failed_attempt(work.key) {
            Some(refused) => (refused.failure.clone(), refused.message.clone()),
            None => (failure_of(history), String::new()),
        };
        Interruption::Remediated(Box::new(Remediated { failure, message, deployed }))
    }

    async fn roll_back(
        &self,
        work: &ReconcileContext<'_>,
        history: &History,
    ) -> Result<Applied, Interruption> {
        let begun = history.is_rolling_back();
        let good = history.last_deployed().filter(|_| !begun);
        if begun {
            work.ctx.begin(Action::Rollback);
        } else if let Some(good) = good.filter(|good| history.is_trusted(good.version)) {
            // Otherwise it is refused below.
            self.before_known(work.ctx, Action::Rollback, history, good).await?;
        }
        let _apply = self.recorder.phase("apply");
        let revision = history.newest().map_or(0, |newest| newest.version);
        let until = self.deadline(history, revision.saturating_add(u32::from(!begun)));
        let action_options =
            catamaran_release::ActionOptions { until, ..work.reconcile_options.rollback() };
        let driver = work.driver.clone().options(action_options);
        let to = good.map(|good| good.version);
        match driver.rollback(history, to, Some(&work.owner)).await {
            Ok(applied) => Ok(applied),
            Err(error) => Err(self.remediation_failed(work, history, error, "rolled back").await),
        }
    }

    async fn uninstall_failed_install(
        &self,
        work: &ReconcileContext<'_>,
        history: &History,
    ) -> Result<(), Interruption> {
        let _apply = self.recorder.phase("apply");
        let mut action_options = self.config.apply_overrides(
            Action::Uninstall,
            &work.resource,
            work.reconcile_options.uninstall(),
        );
        action_options.no_hooks |=
            self.release_cache().failed_attempt(work.key).is_some_and(|refused| refused.is_bare);
        let driver = work.driver.clone().options(action_options);
        let begun = self.prepare_uninstall(&driver, work.key, work.ctx, history.clone()).await;
        let gone = match begun {
            Ok(Ok(history)) => driver.uninstall_from(history, Some(&work.owner)).await,
            Ok(Err(interruption)) => return Err(interruption),
            Err(error) => Err(error),
        };
        match gone {
            Ok(_) => Ok(()),
            Err(error) => Err(self.remediation_failed(work, history, error, "uninstalled").await),
        }
    }

    async fn remediation_failed(
        &self,
        work: &ReconcileContext<'_>,
        history: &History,
        error: ReleaseError,
        what: &str,
    ) -> Interruption {
        let why = error.to_string();
        match self.release_failed(history, error) {
            Interruption::Failed { transient, .. } => {
                self.after_failure(work.ctx, &why).await;
                let (failure, failed) = match self.release_cache().failed_attempt(work.key) {
                    Some(refused) => (refused.failure.clone(), refused.message.clone()),
                    None => (failure_of(history), String::new()),
                };
                let message = format!("{failed}; and it could not be {what}: {why}");
                Interruption::Failed { failure, message, transient }
            }
            interruption => interruption,
        }
    }

    /// Takes in what a reconcile came to: what was remediated rests.
    pub(super) async fn record_remediation(
        &self,
        work: &mut ReconcileContext<'_>,
        outcome: Result<Requeue, Interruption>,
    ) -> Result<Requeue, Interruption> {
        let Err(Interruption::Remediated(taken)) = outcome else { return outcome };
        let heard = if let Some(applied) = &taken.deployed {
            let release = &applied.release;
            status::log(ActionResult::RolledBack, release);
            self.recorder.action_completed(&work.resource, ActionResult::RolledBack, release);
            let told = self.deployed_status(applied);
            told.set_rolled_back(&mut work.status_patch);
            let rotation = work.reconcile_options.rotation.clone();
            self.remember(work, (&rotation, None), (applied, told));
            self.after(work.ctx, work.key, ActionResult::RolledBack, release).await
        } else {
            tracing::info!("Uninstalled release");
            status::set_removed(&mut work.status_patch);
            self.release_cache().forget_release(work.key);
            self.after_uninstall(work.ctx).await
        };
        self.release_cache().delay_retry(work.key, |times| {
            let delay = FIRST_COOLDOWN.saturating_mul(1 << times.saturating_sub(1).min(16));
            Instant::now() + delay.min(LONGEST_COOLDOWN)
        });
        // It is not Ready anyway; what the code did not take in is told next time.
        if heard.is_err() {
            tracing::warn!("the operator's own code failed after a remediation");
        }
        Err(Interruption::Remediated(taken))
    }

    /// How long what was remediated is still not to be tried again.
    pub(super) fn retry_cooldown(&self, work: &ReconcileContext<'_>) -> Option<Duration> {
        let mut memory = self.release_cache();
        if let Some(known) = memory.get_mut(work.key)
            && self.records.is_stale(&known.release.0, &known.release.1)
        {
            return None;
        }
        let refused = memory.failed_attempt(work.key)?;
        let is_same = refused.is_of(&work.resource, &work.reconcile_options, &work.config);
        let delay = refused.until?.checked_duration_since(Instant::now())?;
        (is_same && !delay.is_zero()).then_some(delay)
    }

    /// Meanwhile what is deployed is kept as it is.
    pub(super) async fn wait_for_cooldown(
        &self,
        work: &ReconcileContext<'_>,
        delay: Duration,
    ) -> Result<Requeue, Interruption> {
        let found =
            self.release_cache().get_mut(work.key).map(|known| known.observe(Instant::now()));
        if let Some(found) = found.filter(|found| !found.drifted.is_empty()) {
            self.repair(work, &found).await?;
        }
        Ok(Requeue::After(delay))
    }
}

/// Which action failed, by what there was before it.
fn failure_of(history: &History) -> FailureCondition {
    use catamaran_cluster::conditions::reasons;
    let install = history.last_deployed().is_none();
    FailureCondition::ReleaseFailed(if install {
        reasons::INSTALL_ERROR
    } else {
        reasons::UPGRADE_ERROR
    })
}
