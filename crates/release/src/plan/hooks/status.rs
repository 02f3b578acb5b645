//! What a hook's object says of it.

use std::time::Duration;

use catamaran_cluster::apply::{metadata, metadata_str};
use catamaran_cluster::readiness::{self, Completion, Readiness};
use jiff::Timestamp;
use serde_json::Value;

use super::{Event, RUN, RUNNING, may_vanish};
use crate::objects::ownership_problems;
use crate::record::Hook;

/// One run of a hook, as its record tells of it.
#[derive(Debug, Clone)]
pub struct Run<'a> {
    /// The hook.
    pub hook: &'a Hook,
    /// The event that it runs at.
    pub event: Event,
    /// The release's name and namespace.
    pub release: (&'a str, &'a str),
    /// The revision whose hook it is.
    pub revision: u32,
    /// The time.
    pub now: Timestamp,
    /// How long it may take from its start.
    pub timeout: Duration,
    /// When it has to be done, whenever it was begun, where all of an action has one deadline.
    pub until: Option<Timestamp>,
}

/// What a run waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookReason {
    /// That its object ends.
    End,
    /// That the object of an earlier run is gone.
    Gone,
    /// That some time passes: it failed not long ago.
    Pause,
}

/// What follows from looking at a hook's object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Look {
    /// Create it.
    Create,
    /// The start was too long ago to begin only now: write another, see [`super::start`].
    Restart,
    /// Delete the object of an earlier run, which has this uid; then create.
    Delete {
        /// Its uid.
        uid: String,
    },
    /// Apply over the object of an earlier run, which no policy allows to delete.
    Apply,
    /// It is at work.
    Wait {
        /// What for.
        why: HookReason,
        /// One word for machines.
        reason: String,
        /// A sentence for people.
        message: String,
    },
    /// It is done.
    Done,
    /// It failed.
    Failed {
        /// One word for machines.
        reason: String,
        /// A sentence for people.
        message: String,
    },
    /// The object belongs to somebody else; why, in Helm's words.
    Foreign(String),
}

impl Run<'_> {
    /// The value of [`RUN`] on this run's object.
    pub fn id(&self) -> String {
        let started = self.hook.last_run.started_at.0.unwrap_or_default();
        format!("{}.{}.{started}", self.revision, self.event)
    }

    /// Whether an object is of this very run.
    pub fn is_of(&self, live: &Value) -> bool {
        annotation(live, RUN) == Some(self.id().as_str())
    }

    /// What follows from the object as it is, or from its absence.
    pub fn look(&self, live: Option<&Value>) -> Look {
        match live {
            None if self.hook.last_run.phase == RUNNING && may_vanish(self.hook) => Look::Done,
            None if self.remaining().is_zero() => self.begin_anew(),
            None => Look::Create,
            Some(live) if self.is_of(live) => self.judge(live),
            Some(live) => self.replace(live),
        }
    }

    /// How much time is left.
    pub fn remaining(&self) -> Duration {
        if let Some(until) = self.until {
            return Duration::try_from(until.duration_since(self.now)).unwrap_or_default();
        }
        let started = self.hook.last_run.started_at.0.unwrap_or(self.now);
        // A start in the future is another clock's, by which no time has passed yet.
        let passed = Duration::try_from(self.now.duration_since(started)).unwrap_or_default();
        self.timeout.saturating_sub(passed)
    }

    /// Another start brings more time, unless the time is the whole action's.
    fn begin_anew(&self) -> Look {
        if self.until.is_none() {
            return Look::Restart;
        }
        let message = "no time was left to begin it".to_owned();
        Look::Failed { reason: "TimedOut".to_owned(), message }
    }

    fn judge(&self, live: &Value) -> Look {
        let (reason, message) = match readiness::completion(live) {
            None | Some(Completion::Succeeded) => return Look::Done,
            Some(Completion::Failed { reason, message }) => {
                return Look::Failed { reason, message };
            }
            Some(Completion::Running) => match readiness::assess(live) {
                Readiness::Ready => ("Running".to_owned(), "it has not ended yet".to_owned()),
                Readiness::Pending { reason, message } | Readiness::Failed { reason, message } => {
                    (reason, message)
                }
            },
        };
        self.wait(HookReason::End, reason, message)
    }

    fn wait(&self, why: HookReason, reason: String, message: String) -> Look {
        if self.remaining().is_zero() {
            let seconds = self.timeout.as_secs();
            let message = format!("not done within {seconds} s: {message} ({reason})");
            return Look::Failed { reason: "TimedOut".to_owned(), message };
        }
        Look::Wait { why, reason, message }
    }

    /// An object of an earlier run stands in the way.
    fn replace(&self, live: &Value) -> Look {
        if let Some(problems) = self.problems(live) {
            return Look::Foreign(problems);
        }
        if metadata(live).contains_key("deletionTimestamp") {
            let message = "the object of an earlier run is being deleted".to_owned();
            return self.wait(HookReason::Gone, "Terminating".to_owned(), message);
        }
        if self.remaining().is_zero() {
            return self.begin_anew();
        }
        if self.may_delete(live) {
            return Look::Delete { uid: metadata_str(live, "uid").to_owned() };
        }
        Look::Apply
    }

    /// What the helm CLI creates as a hook has no ownership metadata, but the hook's annotation.
    fn problems(&self, live: &Value) -> Option<String> {
        let a_hook = annotation(live, "helm.sh/hook").is_some();
        let labelled = annotation(live, "meta.helm.sh/release-name").is_some();
        if a_hook && !labelled { None } else { ownership_problems(live, self.release) }
    }

    /// By `before-hook-creation`, which is the default, or because it should have been deleted after
    /// its own run. Definitions never: all their objects would go with them.
    fn may_delete(&self, live: &Value) -> bool {
        let hook = self.hook;
        if hook.kind == "CustomResourceDefinition" {
            return false;
        }
        let overdue = match readiness::completion(live) {
            Some(Completion::Failed { .. } | Completion::Running) => hook.has("hook-failed"),
            None | Some(Completion::Succeeded) => hook.has("hook-succeeded"),
        };
        hook.delete_policies.is_empty() || hook.has("before-hook-creation") || overdue
    }
}

fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    metadata(object).get("annotations")?.get(key)?.as_str()
}
