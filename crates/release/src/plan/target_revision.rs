//! The revision that an action leads to, whichever action it is.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Map;

use super::hooks::Event;
use super::{Action, DESCRIPTION_PREFIX, DesiredState, History};
use crate::Error;
use crate::objects::Owner;
use crate::record::model::slim_chart;
use crate::record::{Hook, HookRun, Info, Release, Status};

/// The actions that make a revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActionKind {
    /// A first revision.
    Install,
    /// A later one.
    Upgrade,
    /// A copy of an earlier one.
    Rollback,
}

impl ActionKind {
    /// What led, or leads, to a revision.
    fn of(record: &Release, is_install: bool) -> Self {
        match record.info.status {
            Status::PendingRollback => Self::Rollback,
            _ if record.info.rollback_revision != 0 => Self::Rollback,
            _ if is_install => Self::Install,
            _ => Self::Upgrade,
        }
    }

    fn pending(self) -> Status {
        match self {
            Self::Install => Status::PendingInstall,
            Self::Upgrade => Status::PendingUpgrade,
            Self::Rollback => Status::PendingRollback,
        }
    }

    /// The events before and after the objects are applied.
    pub fn events(self) -> (Event, Event) {
        match self {
            Self::Install => (Event::PreInstall, Event::PostInstall),
            Self::Upgrade => (Event::PreUpgrade, Event::PostUpgrade),
            Self::Rollback => (Event::PreRollback, Event::PostRollback),
        }
    }

    /// How Helm begins to describe its failure.
    pub fn failed(self) -> &'static str {
        match self {
            Self::Install => "Release",
            Self::Upgrade => "Upgrade",
            Self::Rollback => "Rollback",
        }
    }
}

/// A revision to reach, or to go on with.
#[derive(Debug, Clone)]
pub struct TargetRevision<'a> {
    /// Its record as it stands while the action is carried out.
    pub record: Release,
    /// Whether that record has to be created first.
    pub create: bool,
    /// What is done.
    pub doing: ActionKind,
    /// The resource that the release belongs to.
    pub owner: Option<&'a Owner>,
    /// The description of the record at the end.
    pub complete: String,
    /// Whether objects that are there already become the release's, whoever made them.
    pub adopt: bool,
}

impl<'a> TargetRevision<'a> {
    /// For an [`Action::Install`], [`Action::Upgrade`] or [`Action::Resume`].
    pub fn new(
        history: &History,
        desired: &DesiredState<'a>,
        action: &Action,
        now: Timestamp,
    ) -> Self {
        let is_install = desired.release.is_install;
        let resumed = history.newest().filter(|_| *action == Action::Resume);
        let (record, doing) = match resumed {
            Some(newest) => (Release::clone(newest), ActionKind::of(newest, is_install)),
            None if is_install => (begun(history, desired, now), ActionKind::Install),
            None => (begun(history, desired, now), ActionKind::Upgrade),
        };
        let complete = match (desired.description, doing) {
            (Some(description), _) => description.to_owned(),
            (None, ActionKind::Install) => "Install complete".to_owned(),
            (None, ActionKind::Upgrade) => "Upgrade complete".to_owned(),
            (None, ActionKind::Rollback) => rolled_back(&record),
        };
        Self {
            record,
            create: resumed.is_none(),
            doing,
            owner: desired.owner,
            complete,
            adopt: false,
        }
    }

    /// For a rollback to a revision, or to the one before the newest; goes on with one that was begun.
    ///
    /// # Errors
    ///
    /// [`Error::NoRevision`] if there is no such record; [`Error::Unauthenticated`] if it is not to be
    /// acted on; [`Error::Busy`] if a helm CLI is at work.
    pub fn rollback(
        history: &History,
        to: Option<u32>,
        owner: Option<&'a Owner>,
        now: Timestamp,
    ) -> Result<Self, Error> {
        history.check_readable()?;
        let newest = history.newest().ok_or_else(|| history.lacks(None))?;
        if let Some(Action::Wait { revision, status, retry_after }) = history.wait_for_cli(newest) {
            return Err(Error::Busy { revision, status: status.to_string(), retry_after });
        }
        let is_begun = newest.info.status == Status::PendingRollback
            && history.is_newest_trusted()
            && to.is_none_or(|to| newest.info.rollback_revision == to);
        let record = if is_begun {
            Release::clone(newest)
        } else {
            let to = to.unwrap_or(newest.version.saturating_sub(1));
            let target = history.revision(to).ok_or_else(|| history.lacks(Some(to)))?;
            if !history.is_trusted(to) {
                return Err(history.unauthenticated(to, "nothing is rolled back to it"));
            }
            copied(target, newest, now)
        };
        let complete = rolled_back(&record);
        Ok(Self {
            record,
            create: !is_begun,
            doing: ActionKind::Rollback,
            owner,
            complete,
            adopt: false,
        })
    }
}

impl History {
    fn lacks(&self, revision: Option<u32>) -> Error {
        Error::NoRevision { name: self.name.clone(), revision }
    }

    pub(crate) fn unauthenticated(&self, revision: u32, refused: &'static str) -> Error {
        Error::Unauthenticated { name: self.name.clone(), revision, refused }
    }
}

fn rolled_back(record: &Release) -> String {
    format!("Rollback to {}", record.info.rollback_revision)
}

/// The record of a revision that has just begun.
pub(super) fn begun(history: &History, desired: &DesiredState<'_>, now: Timestamp) -> Release {
    let facts = desired.release;
    let (doing, told) = if facts.is_install {
        (ActionKind::Install, "install under way")
    } else {
        (ActionKind::Upgrade, "upgrade under way")
    };
    let before = history.newest().filter(|_| !facts.is_install);
    Release {
        name: facts.name.clone(),
        namespace: facts.namespace.clone(),
        version: facts.revision,
        info: Info {
            first_deployed: before.map_or(now.into(), |old| old.info.first_deployed),
            last_deployed: now.into(),
            description: format!("{DESCRIPTION_PREFIX}{told}"),
            status: doing.pending(),
            notes: desired.rendered.notes.clone(),
            ..Info::default()
        },
        chart: slim_chart(desired.chart),
        config: desired.config.clone(),
        manifest: desired.rendered.manifest_text(),
        hooks: desired.rendered.hooks.iter().map(Hook::from).collect(),
        apply_method: "ssa".to_owned(),
        extra: Map::new(),
        labels: labels(before.map(|old| &old.labels), desired.labels),
    }
}

/// A record's labels: those of the one before it, changed and taken away as is wished.
fn labels(
    before: Option<&BTreeMap<String, String>>,
    wished: Option<&BTreeMap<String, Option<String>>>,
) -> BTreeMap<String, String> {
    let mut labels = before.cloned().unwrap_or_default();
    for (key, value) in wished.into_iter().flatten() {
        match value {
            Some(value) => labels.insert(key.clone(), value.clone()),
            None => labels.remove(key),
        };
    }
    labels
}

/// The record of a revision that shall be as an earlier one was: nothing of it is rendered anew.
fn copied(target: &Arc<Release>, newest: &Release, now: Timestamp) -> Release {
    let mut record = Release::clone(target);
    record.version = newest.version.saturating_add(1);
    record.info = Info {
        first_deployed: newest.info.first_deployed,
        last_deployed: now.into(),
        description: format!("{DESCRIPTION_PREFIX}rollback under way"),
        status: Status::PendingRollback,
        notes: target.info.notes.clone(),
        rollback_revision: target.version,
        ..Info::default()
    };
    "ssa".clone_into(&mut record.apply_method);
    // What the others tell of their runs at that time stays, as with Helm.
    let runs_first = |hook: &&mut Hook| hook.events.iter().any(|event| event == "pre-rollback");
    for hook in record.hooks.iter_mut().filter(runs_first) {
        hook.last_run = HookRun::default();
    }
    record
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::fixtures::{history, now, record};
    use crate::record::Status::{Deployed, Failed, PendingRollback, PendingUpgrade, Superseded};
    use crate::record::Stored;

    const SECOND: Duration = Duration::from_secs(1);
    const HOUR: Duration = Duration::from_hours(1);

    fn goal(records: Vec<Release>, to: Option<u32>) -> Result<(u32, u32, bool), String> {
        let history = history(records);
        let goal = TargetRevision::rollback(&history, to, None, now())
            .map_err(|error| error.to_string())?;
        assert_eq!((goal.doing, goal.record.info.status), (ActionKind::Rollback, PendingRollback));
        Ok((goal.record.version, goal.record.info.rollback_revision, goal.create))
    }

    fn three() -> Vec<Release> {
        vec![
            record(1, Superseded, &["a"], HOUR, ""),
            record(2, Superseded, &["b"], HOUR, ""),
            record(3, Deployed, &["c"], HOUR, ""),
        ]
    }

    #[test]
    fn a_rollback_is_a_new_revision_with_the_content_of_an_old_one() {
        assert_eq!(goal(three(), None), Ok((4, 2, true)));
        assert_eq!(goal(three(), Some(1)), Ok((4, 1, true)));
        assert_eq!(goal(three(), Some(3)), Ok((4, 3, true)), "to the same, as helm does");
        let history = history(three());
        let goal = TargetRevision::rollback(&history, Some(1), None, now()).expect("a goal");
        let (record, one) = (goal.record, history.revision(1).expect("revision 1"));
        assert_eq!((&record.manifest, &record.config), (&one.manifest, &one.config));
        assert_eq!(goal.complete, "Rollback to 1");
    }

    #[test]
    fn one_that_was_begun_is_gone_on_with_unless_another_is_asked_for() {
        let mut begun = record(4, PendingRollback, &["a"], SECOND, "catamaran: rollback under way");
        begun.info.rollback_revision = 1;
        let records = || [three(), vec![begun.clone()]].concat();
        assert_eq!(goal(records(), None), Ok((4, 1, false)));
        assert_eq!(goal(records(), Some(1)), Ok((4, 1, false)));
        assert_eq!(goal(records(), Some(2)), Ok((5, 2, true)));
    }

    #[test]
    fn nothing_is_rolled_back_to_a_record_that_is_not_authenticated() {
        let mut begun = record(4, PendingRollback, &["x"], SECOND, "catamaran: rollback under way");
        begun.info.rollback_revision = 1;
        let mut history = history(three());
        history.put(Stored::unauthenticated(Arc::new(begun)));
        let version = |to: Option<u32>| {
            let goal = TargetRevision::rollback(&history, to, None, now())
                .map_err(|error| error.to_string());
            goal.map(|goal| (goal.record.version, goal.create))
        };
        assert_eq!(version(Some(1)), Ok((5, true)), "the forged one is not gone on with");
        let error = version(Some(4)).expect_err("an error");
        assert!(error.contains("revision 4") && error.contains("not authenticated"), "{error}");
    }

    #[test]
    fn what_is_not_there_or_not_free_is_refused() {
        assert_eq!(goal(vec![], None), Err(r#"release "rel" was not found"#.into()));
        assert_eq!(goal(three(), Some(7)), Err(r#"release "rel" has no revision 7"#.into()));
        let first = vec![record(1, Failed, &["a"], HOUR, "")];
        assert_eq!(goal(first, None), Err(r#"release "rel" has no revision 0"#.into()));
        let busy = record(4, PendingUpgrade, &["a"], SECOND, "Preparing upgrade");
        let error = goal([three(), vec![busy]].concat(), None).expect_err("busy");
        assert!(error.starts_with("another operation"), "{error}");
    }
}
