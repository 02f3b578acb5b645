//! What failed is taken back, as the Go operators do: an upgrade by a rollback to what was deployed, an
//! install by an uninstall. What was taken back is not tried again for a while, unless something that it
//! depends on moves.

use std::sync::Arc;
use std::time::{Duration, Instant};

use catamaran_release::{Applied, Done, Error as ReleaseError, Event, History, Release, Status};
use kube::core::DynamicObject;
use serde_json::{Map, Value};

use super::reconcile::{Stop, Work};
use super::report::{self, Stuck};
use super::wishes::Wishes;
use super::{Action, ChartController};
use crate::manager::controller::Next;

/// How long what failed once is not tried again; twice as long with every further time.
const FIRST_REST: Duration = Duration::from_secs(5);
/// The longest of these times.
const LONGEST_REST: Duration = Duration::from_mins(5);

/// A failure that was taken back.
pub(super) struct TakenBack {
    pub stuck: Stuck,
    pub message: String,
    /// What is deployed again; nothing after an install.
    deployed: Option<Applied>,
}

/// What a resource asked for when it failed.
#[derive(Debug)]
pub(super) struct Refused {
    uid: Option<String>,
    generation: Option<i64>,
    wishes: Wishes,
    config: Arc<Map<String, Value>>,
    stuck: Stuck,
    message: String,
    /// Whether nothing was installed before it failed.
    is_bare: bool,
    /// How often in a row.
    pub times: u32,
    /// When it is tried again; not known before it is taken back.
    pub until: Option<Instant>,
}

impl Refused {
    fn is_of(
        &self,
        resource: &DynamicObject,
        wishes: &Wishes,
        config: &Map<String, Value>,
    ) -> bool {
        self.uid == resource.metadata.uid
            && self.generation == resource.metadata.generation
            && self.wishes == *wishes
            && *self.config == *config
    }
}

/// Why an action is taken back.
struct Failure {
    stuck: Stuck,
    message: String,
    /// No object of it was ever sent.
    is_bare: bool,
    /// Another attempt may go better.
    is_transient: bool,
}

impl ChartController {
    /// What becomes of a release whose action has ended in an error.
    pub(super) async fn take_back(
        &self,
        history: &History,
        error: ReleaseError,
        work: &Work<'_>,
    ) -> Stop {
        // Then no object was ever sent, and a farewell would be to nothing.
        let is_bare = matches!(&error, ReleaseError::Hook { event: Event::PreInstall, .. });
        let stop = self.release_failed(history, error);
        let Stop::Stuck { stuck, message, transient } = &stop else { return stop };
        let (stuck, message, transient) = (stuck.clone(), message.clone(), *transient);
        self.after_failure(work.cx, &message).await;
        if !self.setup.failure_rollbacks {
            return stop;
        }
        // Whether there is something to be taken back is in the record: after an error that may pass it
        // is still pending, and where nothing was written there is none.
        // Read anew: what another resource's turn has read ahead may be from before this action.
        let (namespace, name) = (history.namespace(), history.name());
        self.records.reading(namespace, name);
        let Ok(now) = work.driver.history(namespace, name).await else { return stop };
        self.records.read(&now);
        if now.newest().is_none_or(|newest| newest.info.status != Status::Failed) {
            return stop;
        }
        self.note(work, Failure { stuck, message, is_bare, is_transient: transient });
        self.undo(work, &now).await
    }

    /// Goes on with what an earlier reconcile began to take back.
    pub(super) async fn go_on_taking_back(
        &self,
        work: &Work<'_>,
        history: &History,
    ) -> Result<(), Stop> {
        if !history.is_rolling_back() && !history.is_leaving() {
            return Ok(());
        }
        if self.memory().refused(work.key).is_none() {
            // By another process. Why it failed stands in the record before.
            let is_failed = |old: &&Arc<Release>| {
                old.info.status == Status::Failed && history.is_trusted(old.version)
            };
            let failed = history.releases().rev().find(is_failed);
            let message = failed.map_or("it was being taken back", |old| &old.info.description);
            let (stuck, message) = (stuck(history), message.to_owned());
            self.note(work, Failure { stuck, message, is_bare: false, is_transient: true });
        }
        Err(self.undo(work, history).await)
    }

    /// Remembers what is taken back, and why.
    fn note(&self, work: &Work<'_>, failure: Failure) {
        let Failure { stuck, message, is_bare, is_transient } = failure;
        let mut memory = self.memory();
        let before = memory.refused(work.key);
        let before = before.filter(|old| old.is_of(&work.resource, &work.wishes, &work.config));
        let times = match before {
            // What cannot be as it is asked for rests as long as can be.
            _ if !is_transient => u32::from(u8::MAX),
            before => before.map_or(0, |old| old.times).saturating_add(1),
        };
        let refused = Refused {
            uid: work.resource.metadata.uid.clone(),
            generation: work.resource.metadata.generation,
            wishes: work.wishes.clone(),
            config: work.config.clone(),
            stuck,
            message,
            is_bare,
            times,
            until: None,
        };
        memory.refuse(work.key, refused);
    }

    async fn undo(&self, work: &Work<'_>, history: &History) -> Stop {
        // A rollback that was begun is gone on with: it may have superseded what was deployed already.
        let deployed = if history.is_rolling_back() || history.last_deployed().is_some() {
            match self.roll_back(work, history).await {
                Ok(applied) => Some(applied),
                Err(stop) => return stop,
            }
        } else {
            match self.take_away(work, history).await {
                Ok(()) => None,
                Err(stop) => return stop,
            }
        };
        let (stuck, message) = match self.memory().refused(work.key) {
            Some(refused) => (refused.stuck.clone(), refused.message.clone()),
            None => (stuck(history), String::new()),
        };
        Stop::TakenBack(Box::new(TakenBack { stuck, message, deployed }))
    }

    async fn roll_back(&self, work: &Work<'_>, history: &History) -> Result<Applied, Stop> {
        let begun = history.is_rolling_back();
        let good = history.last_deployed().filter(|_| !begun);
        if begun {
            work.cx.begin(Action::Rollback);
        } else if let Some(good) = good.filter(|good| history.is_trusted(good.version)) {
            // Otherwise it is refused below.
            self.before_known(work.cx, Action::Rollback, history, good).await?;
        }
        let _apply = self.tell.phase("apply");
        let revision = history.newest().map_or(0, |newest| newest.version);
        let until = self.until(history, revision.saturating_add(u32::from(!begun)));
        let ways = catamaran_release::Ways { until, ..work.wishes.rollback() };
        let driver = work.driver.clone().ways(ways);
        let to = good.map(|good| good.version);
        match driver.rollback(history, to, Some(&work.owner)).await {
            Ok(applied) => Ok(applied),
            Err(error) => Err(self.not_undone(work, history, error, "rolled back").await),
        }
    }

    async fn take_away(&self, work: &Work<'_>, history: &History) -> Result<(), Stop> {
        let _apply = self.tell.phase("apply");
        let mut ways = self.setup.ways(Action::Uninstall, &work.resource, work.wishes.uninstall());
        ways.no_hooks |= self.memory().refused(work.key).is_some_and(|refused| refused.is_bare);
        let driver = work.driver.clone().ways(ways);
        let begun = self.prepare_uninstall(&driver, work.key, work.cx, history.clone()).await;
        let gone = match begun {
            Ok(Ok(history)) => driver.uninstall_from(history, Some(&work.owner)).await,
            Ok(Err(stop)) => return Err(stop),
            Err(error) => Err(error),
        };
        match gone {
            Ok(_) => Ok(()),
            Err(error) => Err(self.not_undone(work, history, error, "uninstalled").await),
        }
    }

    async fn not_undone(
        &self,
        work: &Work<'_>,
        history: &History,
        error: ReleaseError,
        what: &str,
    ) -> Stop {
        let why = error.to_string();
        match self.release_failed(history, error) {
            Stop::Stuck { transient, .. } => {
                self.after_failure(work.cx, &why).await;
                let (stuck, failed) = match self.memory().refused(work.key) {
                    Some(refused) => (refused.stuck.clone(), refused.message.clone()),
                    None => (stuck(history), String::new()),
                };
                let message = format!("{failed}; and it could not be {what}: {why}");
                Stop::Stuck { stuck, message, transient }
            }
            stop => stop,
        }
    }

    /// Takes in what a reconcile came to: what was taken back rests.
    pub(super) async fn take_in(
        &self,
        work: &mut Work<'_>,
        outcome: Result<Next, Stop>,
    ) -> Result<Next, Stop> {
        let Err(Stop::TakenBack(taken)) = outcome else { return outcome };
        let heard = if let Some(applied) = &taken.deployed {
            let release = &applied.release;
            report::log(Done::RolledBack, release);
            self.tell.done(&work.resource, Done::RolledBack, release);
            let told = self.told(applied);
            told.brought_back(&mut work.draft);
            let rotation = work.wishes.rotation.clone();
            self.remember(work, (&rotation, None), (applied, told));
            self.after(work.cx, work.key, Done::RolledBack, release).await
        } else {
            tracing::info!("Uninstalled release");
            report::taken_away(&mut work.draft);
            self.memory().forget_release(work.key);
            self.after_uninstall(work.cx).await
        };
        self.memory().rest(work.key, |times| {
            let rest = FIRST_REST.saturating_mul(1 << times.saturating_sub(1).min(16));
            Instant::now() + rest.min(LONGEST_REST)
        });
        // It is not Ready anyway; what the code did not take in is told next time.
        if heard.is_err() {
            tracing::warn!("the operator's own code failed after a failure was taken back");
        }
        Err(Stop::TakenBack(taken))
    }

    /// How long what was taken back is still not to be tried again.
    pub(super) fn rests(&self, work: &Work<'_>) -> Option<Duration> {
        let mut memory = self.memory();
        if let Some(known) = memory.get_mut(work.key)
            && self.records.is_stale(&known.release.0, &known.release.1)
        {
            return None;
        }
        let refused = memory.refused(work.key)?;
        let is_same = refused.is_of(&work.resource, &work.wishes, &work.config);
        let rest = refused.until?.checked_duration_since(Instant::now())?;
        (is_same && !rest.is_zero()).then_some(rest)
    }

    /// Meanwhile what is deployed is kept as it is.
    pub(super) async fn rest(&self, work: &Work<'_>, rest: Duration) -> Result<Next, Stop> {
        let found = self.memory().get_mut(work.key).map(|known| known.look(Instant::now()));
        if let Some(found) = found.filter(|found| !found.drifted.is_empty()) {
            self.repair(work, &found).await?;
        }
        Ok(Next::After(rest))
    }
}

/// Which action failed, by what there was before it.
fn stuck(history: &History) -> Stuck {
    use catamaran_cluster::conditions::reasons;
    let install = history.last_deployed().is_none();
    Stuck::ReleaseFailed(if install { reasons::INSTALL_ERROR } else { reasons::UPGRADE_ERROR })
}
