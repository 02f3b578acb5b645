//! Carries plans out: requests, records, and what becomes of them.
//!
//! Every function can be cancelled between any two requests: the next call finds its way from the
//! records in the cluster.

mod client_side;
mod crds;
mod force;
mod handover;
mod hooks;
mod logs;
mod objects;
mod orphan;
mod outcome;
mod owner;
mod preview;
mod remove;
mod test;
mod wait;
mod ways;

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use catamaran_cluster::apply::Applier;
use catamaran_cluster::drift::IgnoreRule;
use catamaran_cluster::mapper::Mapper;
use kube::Client;

pub use logs::{Output, ToldOutput};
use objects::Sent;
pub use objects::{Glimpse, Knowledge};
pub use outcome::{Applied, AppliedObject, Done, Found, Kept, Tested, Uninstalled, WhyKept};
pub use ways::{Cascade, Definitions, Force, Method, Wait, Ways};

use crate::objects::{ObjectId, Owner, PlannedObject, RawObject, parse_manifest};
use crate::plan::hooks::{HOOK_TIMEOUT, at, give_up};
use crate::plan::{
    Action, Desired, Doing, Goal, History, How, Manifests, Plan, check_name, planned, resolve,
};
use crate::record::model::full_chart;
use crate::record::store::Teller;
use crate::record::{Release, Status, Store, Stored, codec};
use crate::{Clock, Error};

/// The field manager of a chart's objects: Helm's own, as under any other name its CLI meets
/// conflicts when it rolls back or upgrades.
pub const FIELD_MANAGER: &str = "helm";

/// Under which names the fields of a chart's objects were set by updates: Helm 3, or Helm 4 with
/// `--server-side=false`, and operator-sdk's Helm operator.
const FORMER_MANAGERS: [&str; 2] = ["helm", "helm-operator"];

/// How many revisions are kept, as by the helm CLI.
pub const DEFAULT_HISTORY: usize = 10;

/// Reads and carries out releases; cheap to clone.
///
/// The client should not retry by itself, see [`catamaran_cluster::apply`].
#[derive(Clone)]
pub struct Driver {
    applier: Applier,
    mapper: Mapper,
    store: Store,
    history_max: usize,
    hook_timeout: Duration,
    ignored: Arc<[IgnoreRule]>,
    known: Option<Arc<Knowledge>>,
    glimpse: Option<Arc<Glimpse>>,
    output: Option<Arc<ToldOutput>>,
    /// Whether it was said that what hooks print may not be read.
    logs_forbidden: Arc<AtomicBool>,
    ways: Ways,
    clock: Clock,
}

/// The objects that were applied, known, deleted and left.
struct Reached {
    objects: Vec<AppliedObject>,
    known: Vec<ObjectId>,
    removed: Vec<ObjectId>,
    kept: Vec<Kept>,
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver").field("applier", &self.applier).finish_non_exhaustive()
    }
}

impl Driver {
    /// A driver that keeps [`DEFAULT_HISTORY`] revisions.
    pub fn new(client: Client, mapper: Mapper) -> Self {
        let applier = Applier::new(client, FIELD_MANAGER).formerly(&FORMER_MANAGERS);
        let store = Store::new(applier.clone());
        Self {
            applier,
            mapper,
            store,
            history_max: DEFAULT_HISTORY,
            hook_timeout: HOOK_TIMEOUT,
            ignored: Arc::default(),
            known: None,
            glimpse: None,
            output: None,
            logs_forbidden: Arc::default(),
            ways: Ways::default(),
            clock: Clock::default(),
        }
    }

    /// What is left to others where it differs from what a release has.
    #[must_use]
    pub fn ignoring(mut self, rules: impl Into<Arc<[IgnoreRule]>>) -> Self {
        self.ignored = rules.into();
        self
    }

    /// Knows objects without asking, e.g. by a watch. They are left out of what is sent.
    #[must_use]
    pub fn knowing(mut self, known: Arc<Knowledge>) -> Self {
        self.known = Some(known);
        self
    }

    /// Keeps all records in this namespace, whatever that of the release. Names of releases must
    /// differ then, whatever their namespaces.
    #[must_use]
    pub fn stored_in(mut self, namespace: &str) -> Self {
        self.store = self.store.in_namespace(namespace);
        self
    }

    /// Has seen objects not long ago. They are not read once more when the release is looked at.
    #[must_use]
    pub fn glimpsing(mut self, glimpse: Arc<Glimpse>) -> Self {
        self.glimpse = Some(glimpse);
        self
    }

    /// How long one hook may take from its start; [`HOOK_TIMEOUT`] unless said otherwise.
    #[must_use]
    pub fn hook_timeout(mut self, timeout: Duration) -> Self {
        self.hook_timeout = timeout;
        self
    }

    /// How actions are carried out.
    #[must_use]
    pub fn ways(mut self, ways: Ways) -> Self {
        self.ways = ways;
        self
    }

    /// What tells the time; the system's clock unless said otherwise.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.store = self.store.clock(clock.clone());
        self.clock = clock;
        self
    }

    /// Tells of every record that is written or, then without a version, deleted: the release's namespace
    /// and name, the revision, the record's resourceVersion.
    #[must_use]
    pub fn telling(
        mut self,
        tell: impl Fn(&str, &str, u32, Option<&str>) + Send + Sync + 'static,
    ) -> Self {
        self.store = self.store.telling(Teller::new(tell));
        self
    }

    /// How many revisions are kept; 0 means all.
    #[must_use]
    pub fn history_max(mut self, revisions: usize) -> Self {
        self.history_max = revisions;
        self
    }

    /// The records of a release: one LIST of Secrets by label.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidName`] without a request: a longer name could not even be asked for.
    pub async fn history(&self, namespace: &str, name: &str) -> Result<History, Error> {
        check_name(name)?;
        self.store.history(namespace, name).await
    }

    /// Takes off the records the owner references that Helm operators put there: a deletion in the
    /// foreground would collect the records while the uninstall still needs them. One request for each
    /// record that has one.
    ///
    /// # Errors
    ///
    /// As any request; [`Error::Request`] with a conflict if a record was written meanwhile.
    pub async fn disown(&self, mut history: History) -> Result<History, Error> {
        for stored in &mut history.records {
            if !stored.owners.is_empty() {
                *stored = self.store.disown(stored).await?;
            }
        }
        Ok(history)
    }

    /// The objects of a release as they are sent, e.g. to know what to watch. Costs no request
    /// once their kinds are known to the mapper.
    pub async fn objects(&self, desired: &Desired<'_>) -> Result<Vec<PlannedObject>, Error> {
        self.planned(desired.id(), desired.owner, &desired.rendered.manifest_text()).await
    }

    async fn planned(
        &self,
        release: (&str, &str),
        owner: Option<&Owner>,
        manifest: &str,
    ) -> Result<Vec<PlannedObject>, Error> {
        let wanted = parse_manifest(manifest)?;
        let kinds = resolve(&self.mapper, wanted.iter().map(|raw| &raw.gvk).collect()).await?;
        planned(release, owner, &wanted, &[], &kinds)
    }

    /// Performs what [`History::decide`] says.
    ///
    /// Install and upgrade: what `crds/` has and the cluster has not; then the record is created, as
    /// pending; then the hooks before; then the objects in install order; then what earlier revisions
    /// had and this one has not is deleted; then the hooks after; then the record is deployed. Resume
    /// goes on from whatever of this has happened.
    ///
    /// Nothing is waited for: [`Error::Waiting`] says what has to change before the next call can do
    /// more than this one.
    ///
    /// # Errors
    ///
    /// [`Error::WrongFacts`] and [`Error::Busy`] where `decide` says [`Action::RenderAgain`] and
    /// [`Action::Wait`]. After a transient error the record is still pending; after any other that
    /// happened once the record was there, it says `failed` and why.
    pub async fn apply(&self, history: &History, desired: &Desired<'_>) -> Result<Applied, Error> {
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

    /// Brings a revision that [`History::interrupted`] tells of to its end, as its record has it,
    /// whatever was rendered: for charts that draw something else each time.
    ///
    /// # Errors
    ///
    /// As [`Driver::apply`]; [`Error::WrongFacts`] if there is none.
    pub async fn resume(&self, history: &History, desired: &Desired<'_>) -> Result<Applied, Error> {
        let rendered = desired.release.revision;
        match history.interrupted() {
            Some(newest) if newest.version == rendered => {
                self.carry_out(history, desired, &Action::Resume).await
            }
            _ => Err(Error::WrongFacts { rendered, due: history.current_facts().revision }),
        }
    }

    /// Brings back what an earlier revision was, as its record has it: nothing is rendered. Without
    /// `to`, the one before the newest. Hooks are those of that revision.
    ///
    /// A rollback that was begun is gone on with; so is any other action that was begun given up.
    ///
    /// # Errors
    ///
    /// [`Error::NoRevision`], [`Error::Busy`]; as [`Driver::apply`] once it is under way.
    pub async fn rollback(
        &self,
        history: &History,
        to: Option<u32>,
        owner: Option<&Owner>,
    ) -> Result<Applied, Error> {
        let goal = Goal::rollback(history, to, owner, self.clock.now())?;
        self.pursue_goal(history, goal, Vec::new()).await
    }

    async fn carry_out(
        &self,
        history: &History,
        desired: &Desired<'_>,
        action: &Action,
    ) -> Result<Applied, Error> {
        let mut goal = Goal::new(history, desired, action, self.clock.now());
        if goal.create && self.ways.full_record {
            goal.record.chart = full_chart(desired.chart);
        }
        // What an earlier revision had is not asked to bring definitions of today.
        let definitions = match goal.doing {
            Doing::Install | Doing::Upgrade => self.definitions(desired.chart).await?,
            Doing::Rollback => Vec::new(),
        };
        self.pursue_goal(history, goal, definitions).await
    }

    async fn pursue_goal(
        &self,
        history: &History,
        mut goal: Goal<'_>,
        definitions: Vec<RawObject>,
    ) -> Result<Applied, Error> {
        goal.adopt = self.ways.take_ownership;
        if goal.create {
            self.ways.method.as_str().clone_into(&mut goal.record.apply_method);
        }
        if let Some(description) = &self.ways.description {
            goal.complete.clone_from(description);
        }
        let manifests = Manifests { definitions, ..Manifests::read(history, &goal)? };
        let kinds = resolve(&self.mapper, manifests.kinds()).await?;
        let owner = goal.owner;
        let plan = Plan::new(history, goal, &manifests, &kinds, self.history_max)?;
        self.run(history.clone(), plan, owner).await
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
            Doing::Install => Done::Installed,
            Doing::Upgrade => Done::Upgraded,
            Doing::Rollback => Done::RolledBack,
        };
        let Reached { objects, known, removed, kept } = reached;
        Ok(Applied { done, release, history, objects, known, removed, kept })
    }

    /// Records that the revision has begun. In this order a history is never longer than its
    /// limit, and a revision that is given up never looks like one to be resumed.
    async fn begin(&self, history: &mut History, plan: &Plan) -> Result<(), Error> {
        let next = plan.record.version;
        if plan.create {
            // A record that is too large must be known before anything is written for it.
            codec::pack(&plan.record).map_err(Error::Encode)?;
        }
        for revision in &plan.give_up {
            self.rewrite(history, *revision, |release| {
                release.info.status = Status::Failed;
                release.info.description =
                    format!("given up for revision {next} before it was complete");
            })
            .await?;
        }
        if !plan.create {
            return Ok(());
        }
        if let Some(newest) = history.newest().filter(|it| it.info.status == Status::Failed) {
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
        let stored = self.store.create(plan.record.clone()).await?;
        history.put(stored);
        Ok(())
    }

    /// Hooks, objects, hooks. While the later hooks are waited for, call after call, the objects are
    /// left alone; the last call applies them once more, to know them as they are then.
    async fn stages(
        &self,
        history: &mut History,
        plan: &Plan,
        owner: Option<&Owner>,
    ) -> Result<Reached, Error> {
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
            if self.ways.wait != Wait::No {
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

    async fn objects_of(&self, plan: &Plan) -> Result<Reached, Error> {
        let release = (plan.record.name.as_str(), plan.record.namespace.as_str());
        let (mut objects, mut known) = (Vec::with_capacity(plan.steps.len()), Vec::new());
        // An object that moved to another API group is still the same object, by its uid.
        let mut alive = HashSet::new();
        for (how, object) in &plan.steps {
            if *how == How::Apply {
                self.leave_replicas(plan, object).await?;
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
        Ok(Reached { objects, known, removed, kept })
    }

    /// Says in the record that the revision failed, unless trying again may do: then it stays
    /// pending and the next call resumes it. A record that says so already is not written again.
    async fn fail(&self, history: &mut History, revision: u32, doing: Doing, error: &Error) {
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
            // It stays pending, and the next call will resume it and meet the same failure.
            (Err(error), _) => {
                tracing::warn!(release = history.name(), revision, %error, "cannot record a failure");
            }
        }
    }

    /// Changes a record in the cluster and in the history.
    async fn rewrite(
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

    /// Looks at objects of the deployed revision, e.g. because a watch shows that they changed or are
    /// gone, and applies again, as its record has them, those that are not as they shall be. Only
    /// those in `which`; an empty slice means all.
    ///
    /// Nothing is rendered for it, so that random values stay what they were. Writes no record.
    pub async fn repair(
        &self,
        history: &History,
        owner: Option<&Owner>,
        which: &[ObjectId],
    ) -> Result<Applied, Error> {
        let mut applied = unchanged(history)?;
        let release = (history.name(), history.namespace());
        for object in self.planned(release, owner, &applied.release.manifest).await? {
            if which.is_empty() || which.contains(&object.id) {
                match self.send(How::Verify, &object, release).await? {
                    Sent::Applied(looked) => applied.objects.push(*looked),
                    Sent::Known(_) => applied.known.push(object.id),
                }
            }
        }
        if applied.objects.iter().any(|object| object.found.is_drift()) {
            applied.done = Done::Repaired;
        }
        Ok(applied)
    }

    /// Uninstalls a release: the record says so first; then the `pre-delete` hooks of the newest
    /// revision run; then the objects of all its revisions are deleted, those that are ours by a
    /// fresh read, by uid and in the background, in uninstall order; then the `post-delete` hooks
    /// run; then the records go.
    ///
    /// A release that is not there is no error. Call it again after an error, whatever it was.
    ///
    /// # Errors
    ///
    /// [`Error::Waiting`] while a hook is at work; [`Error::Hook`] if one of `pre-delete` failed. If
    /// one of `post-delete` did, the release is gone all the same, as in Helm.
    pub async fn uninstall(&self, namespace: &str, name: &str) -> Result<Uninstalled, Error> {
        self.uninstall_owned(namespace, name, None).await
    }

    /// The same for a release that belongs to a resource: its hooks carry the owner's name, so that
    /// a watch on them finds it.
    pub async fn uninstall_owned(
        &self,
        namespace: &str,
        name: &str,
        owner: Option<&Owner>,
    ) -> Result<Uninstalled, Error> {
        let history = self.history(namespace, name).await?;
        self.uninstall_from(history, owner).await
    }
}

fn unchanged(history: &History) -> Result<Applied, Error> {
    let Some(release) = history.deployed() else {
        return Err(Error::WrongFacts { rendered: 0, due: history.next_facts().revision });
    };
    Ok(Applied {
        done: Done::Unchanged,
        release: Arc::clone(release),
        history: history.clone(),
        objects: Vec::new(),
        known: Vec::new(),
        removed: Vec::new(),
        kept: Vec::new(),
    })
}
