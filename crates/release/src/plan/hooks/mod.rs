//! Hooks: which is due, and what its object says of it.
//!
//! How far an action has come is read from the record alone, in fields that Helm keeps when it
//! writes a record back:
//!
//! - the description names the event whose hooks run ([`at`]), ours and Helm's own failures alike;
//! - `hooks[].last_run` tells of each hook of that event: when it was begun, and its phase. It is
//!   written before the hook's object is created, and before it is deleted.
//!
//! A hook's object carries the annotation [`RUN`]: revision, event and that start. An object with
//! another value is left from an earlier run, whoever made it.
//!
//! So a hook that is done is never run again for the same revision, and one that was begun is found
//! again. Run again are: a hook that failed, after a [`pause`] (the ones before it are not); one whose
//! object somebody deleted before it was done; and a Job with `ttlSecondsAfterFinished` if the
//! process died between its creation and the write that says so, for longer than its time to live.
//! Otherwise such a Job that is gone counts as done: nobody can tell how it ended.

mod status;
#[cfg(test)]
mod tests;

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;

pub use status::{HookReason, Look, Run};

use crate::objects::parse_manifest;
use crate::plan::{DESCRIPTION_PREFIX, NEVER_DEPLOYED};
use crate::record::{Hook, HookRun, Release, Status, Time};

/// Annotation of a hook's object: which run of it this is.
pub const RUN: &str = "catamaran/hook-run";

/// How long one hook may take from its start, as by the helm CLI.
pub const HOOK_TIMEOUT: Duration = Duration::from_mins(5);

/// The shortest and the longest pause before a failed hook is run again.
const PAUSES: (Duration, Duration) = (Duration::from_secs(5), Duration::from_mins(5));

/// `last_run.phase` of a hook whose object may have been created. Helm shows it as it is.
const UNKNOWN: &str = "Unknown";
const RUNNING: &str = "Running";
const SUCCEEDED: &str = "Succeeded";
const FAILED: &str = "Failed";

/// When hooks run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Event {
    /// Before the objects of a first revision.
    PreInstall,
    /// After them.
    PostInstall,
    /// Before the objects of a later revision.
    PreUpgrade,
    /// After them.
    PostUpgrade,
    /// Before the objects of an earlier revision come back.
    PreRollback,
    /// After that.
    PostRollback,
    /// Before the objects are deleted.
    PreDelete,
    /// After that.
    PostDelete,
    /// When somebody asks for it.
    Test,
}

impl Event {
    /// Those of actions, in no order.
    pub(crate) const ALL: [Self; 8] = [
        Self::PreInstall,
        Self::PostInstall,
        Self::PreUpgrade,
        Self::PostUpgrade,
        Self::PreRollback,
        Self::PostRollback,
        Self::PreDelete,
        Self::PostDelete,
    ];

    /// As the annotation spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PreInstall => "pre-install",
            Self::PostInstall => "post-install",
            Self::PreUpgrade => "pre-upgrade",
            Self::PostUpgrade => "post-upgrade",
            Self::PreRollback => "pre-rollback",
            Self::PostRollback => "post-rollback",
            Self::PreDelete => "pre-delete",
            Self::PostDelete => "post-delete",
            Self::Test => "test",
        }
    }

    /// Whether a record means it by this word: `test-success` is what tests were called before.
    fn is_called(self, word: &str) -> bool {
        word == self.as_str() || (self == Self::Test && word == "test-success")
    }

    /// How Helm begins to tell of a failure.
    pub fn failure(self) -> String {
        match self {
            Self::PreInstall | Self::PostInstall => format!("failed {self}"),
            _ => format!("{self} hooks failed"),
        }
    }

    /// The status of a record whose hooks run; tests leave it as it is.
    fn status(self) -> Option<Status> {
        Some(match self {
            Self::PreInstall | Self::PostInstall => Status::PendingInstall,
            Self::PreUpgrade | Self::PostUpgrade => Status::PendingUpgrade,
            Self::PreRollback | Self::PostRollback => Status::PendingRollback,
            Self::PreDelete | Self::PostDelete => Status::Uninstalling,
            Self::Test => return None,
        })
    }

    /// The event of the same action that comes after this one.
    fn later(self) -> Option<Self> {
        match self {
            Self::PreInstall => Some(Self::PostInstall),
            Self::PreUpgrade => Some(Self::PostUpgrade),
            Self::PreRollback => Some(Self::PostRollback),
            Self::PreDelete => Some(Self::PostDelete),
            _ => None,
        }
    }

    /// Whether namespaces may be on their way out while its hooks run.
    pub fn is_deletion(self) -> bool {
        matches!(self, Self::PreDelete | Self::PostDelete)
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What is due for the hooks of an event. Hooks go by their place in the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Nothing: the event has no hooks, or a later one is at work.
    Nothing,
    /// Begin this hook (again): write [`start`], then create its object.
    Start(usize),
    /// This hook was begun: look at its object.
    Look(usize),
    /// All of them are done: delete the objects of these, in this order.
    Clear(Vec<usize>),
}

/// The event at which a record stands, if it tells one.
pub fn at(release: &Release) -> Option<Event> {
    let text = release.info.description.as_str();
    let ours = text.strip_prefix(DESCRIPTION_PREFIX);
    let failed = text.split_once("failed: ").map(|(_, failure)| failure);
    Event::ALL.into_iter().find(|event| {
        ours.and_then(|text| text.strip_prefix(event.as_str()))
            .is_some_and(|text| text.starts_with(" hooks "))
            || failed.is_some_and(|text| text.starts_with(&event.failure()))
    })
}

/// The hooks of an event in the order in which they run: by weight, then by name, then by kind (in
/// whose order the record has them).
pub fn order(hooks: &[Hook], event: Event) -> Vec<usize> {
    let mut order: Vec<(usize, &Hook)> = hooks
        .iter()
        .enumerate()
        .filter(|(_, hook)| hook.events.iter().any(|name| event.is_called(name)))
        .collect();
    order.sort_by(|(_, a), (_, b)| (a.weight, &a.name).cmp(&(b.weight, &b.name)));
    order.into_iter().map(|(index, _)| index).collect()
}

/// What is due for the hooks of an event, as the record stands.
pub fn next(release: &Release, event: Event) -> Step {
    let order = order(&release.hooks, event);
    let Some(first) = order.first() else { return Step::Nothing };
    if event.later().is_some() && at(release) == event.later() {
        return Step::Nothing;
    }
    if !is_at(release, event) {
        return Step::Start(*first);
    }
    let phase = |index: usize| release.hooks.get(index).map_or("", |hook| &hook.last_run.phase);
    match order.iter().copied().find(|index| phase(*index) != SUCCEEDED) {
        Some(index) if is_under_way(phase(index)) => Step::Look(index),
        Some(index) => Step::Start(index),
        None => {
            let cleared = |index: &usize| {
                release.hooks.get(*index).is_some_and(|hook| hook.has("hook-succeeded"))
            };
            Step::Clear(order.into_iter().rev().filter(cleared).collect())
        }
    }
}

/// Whether what `last_run` says is about this event. A revision that tells no event has not come
/// past its first one.
fn is_at(release: &Release, event: Event) -> bool {
    match at(release) {
        Some(at) => at == event,
        None => matches!(event, Event::PreInstall | Event::PreUpgrade | Event::PreRollback),
    }
}

/// The record before the object of a hook is created.
pub fn start(release: &mut Release, event: Event, index: usize, now: Timestamp) {
    if let Some(status) = event.status() {
        if !is_at(release, event) {
            let event = order(&release.hooks, event);
            forget(release, &event);
        }
        release.info.status = status;
        let tail = tail(release);
        release.info.description = format!("{DESCRIPTION_PREFIX}{event} hooks under way{tail}");
    }
    if let Some(hook) = release.hooks.get_mut(index) {
        let phase = if may_vanish(hook) { UNKNOWN } else { RUNNING };
        hook.last_run =
            HookRun { started_at: now.into(), completed_at: Time(None), phase: phase.to_owned() };
    }
}

/// Whether the record has to be told that a hook's object was seen: one that may vanish by itself
/// must not be taken later for one that was never created.
pub fn is_to_be_noted(hook: &Hook) -> bool {
    hook.last_run.phase == UNKNOWN
}

/// The record after that.
pub fn seen(release: &mut Release, index: usize) {
    if let Some(hook) = release.hooks.get_mut(index) {
        RUNNING.clone_into(&mut hook.last_run.phase);
    }
}

/// The record after a hook is done; if there is another one, it stands as before its creation.
pub fn finish(release: &mut Release, event: Event, index: usize, now: Timestamp) {
    if let Some(hook) = release.hooks.get_mut(index) {
        hook.last_run.completed_at = now.into();
        SUCCEEDED.clone_into(&mut hook.last_run.phase);
    }
    if event == Event::Test {
        return;
    }
    match next(release, event) {
        Step::Start(following) => start(release, event, following, now),
        _ => {
            release.info.description =
                format!("{DESCRIPTION_PREFIX}{event} hooks done{}", tail(release));
        }
    }
}

/// What the next description says as this one does.
fn tail(release: &Release) -> &'static str {
    if release.info.description.ends_with(NEVER_DEPLOYED) { NEVER_DEPLOYED } else { "" }
}

/// The record without what it tells of the last runs of these hooks.
pub fn forget(release: &mut Release, which: &[usize]) {
    for index in which {
        if let Some(hook) = release.hooks.get_mut(*index) {
            hook.last_run = HookRun::default();
        }
    }
}

/// What is due for a run of these tests. While one is under way it is gone on with, whoever began it.
pub fn next_test(release: &Release, which: &[usize]) -> Step {
    let phase = |index: &usize| release.hooks.get(*index).map_or("", |hook| &hook.last_run.phase);
    if let Some(index) = which.iter().find(|index| is_under_way(phase(index))) {
        return Step::Look(*index);
    }
    if let Some(index) = which.iter().find(|index| phase(index).is_empty()) {
        return Step::Start(*index);
    }
    let cleared =
        |index: &usize| release.hooks.get(*index).is_some_and(|hook| hook.has("hook-succeeded"));
    Step::Clear(which.iter().rev().copied().filter(cleared).collect())
}

/// The record after a hook failed: whichever is under way. The ones before it stay done.
pub fn give_up(release: &mut Release, now: Timestamp) {
    let under_way = |hook: &&mut Hook| is_under_way(&hook.last_run.phase);
    for hook in release.hooks.iter_mut().filter(under_way) {
        hook.last_run.completed_at = now.into();
        FAILED.clone_into(&mut hook.last_run.phase);
    }
}

/// How long a failed hook has to wait for its next try: in all as long as the action had taken when
/// it failed, so that the pauses grow, and whoever asks meanwhile, such as a watch that saw the
/// failed object go, does not run it in a circle.
pub fn pause(release: &Release, event: Event, index: usize, now: Timestamp) -> Option<Duration> {
    let run = &release.hooks.get(index).filter(|_| is_at(release, event))?.last_run;
    let failed = run.completed_at.0.filter(|_| run.phase == FAILED)?;
    let info = &release.info;
    let begun = if event.is_deletion() { info.deleted } else { info.last_deployed };
    // Negative where clocks disagree: then no time has passed.
    let since = |earlier: Timestamp, later: Timestamp| {
        Duration::try_from(later.duration_since(earlier)).unwrap_or_default()
    };
    let pause = since(begun.0.unwrap_or(failed), failed).clamp(PAUSES.0, PAUSES.1);
    pause.checked_sub(since(failed, now)).filter(|rest| !rest.is_zero())
}

/// The hooks of an event that failed.
pub fn failed(release: &Release, event: Event) -> Vec<usize> {
    let mut order = order(&release.hooks, event);
    order.retain(|index| {
        release.hooks.get(*index).is_some_and(|hook| hook.last_run.phase == FAILED)
    });
    order
}

/// Those of them whose objects are to be deleted for that.
pub fn failed_to_clear(release: &Release, event: Event) -> Vec<usize> {
    let mut failed = failed(release, event);
    failed.retain(|index| release.hooks.get(*index).is_some_and(|hook| hook.has("hook-failed")));
    failed
}

fn is_under_way(phase: &str) -> bool {
    phase == UNKNOWN || phase == RUNNING
}

/// Whether the object goes by itself once it has ended.
fn may_vanish(hook: &Hook) -> bool {
    let ttl = |raw: &crate::objects::RawObject| {
        raw.object.pointer("/spec/ttlSecondsAfterFinished").is_some_and(|ttl| !ttl.is_null())
    };
    parse_manifest(&hook.manifest).is_ok_and(|objects| objects.iter().any(ttl))
}

impl Hook {
    fn has(&self, policy: &str) -> bool {
        self.delete_policies.iter().any(|own| own == policy)
    }
}
