//! Carries plans out: requests, records, and what becomes of them.
//!
//! Every function can be cancelled between any two requests: the next call finds its way from the
//! records in the cluster.

mod act;
mod action_options;
mod client_side;
mod confirm;
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
mod scope;
mod test;
mod wait;

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use catamaran_cluster::apply::Applier;
use catamaran_cluster::drift::IgnoreRule;
use catamaran_cluster::mapper::Mapper;
use catamaran_cluster::missing_permissions::MissingPermissions;
use kube::Client;

pub use action_options::{ActionOptions, ApplyMethod, Cascade, CrdPolicy, Force, WaitStrategy};
pub use logs::{Output, OutputHandler};
use objects::Sent;
pub use objects::{Knowledge, Snapshots};
pub use outcome::{
    ActionResult, Applied, AppliedObject, ObjectDrift, RetainedObject, Tested, Uninstalled, WhyKept,
};
pub use owner::NamedOwner;
pub use scope::Scope;

use crate::objects::{ObjectId, Owner, PlannedObject, parse_manifest};
use crate::plan::hooks::HOOK_TIMEOUT;
use crate::plan::{ApplyMode, DesiredState, History, check_name, planned, resolve};
use crate::record::store::WriteObserver;
use crate::record::{Packed, RecordPolicy, Status, Store};
use crate::{Clock, Error};
use act::Progress;

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
    glimpse: Option<Arc<Snapshots>>,
    lacking: Arc<HashSet<ObjectId>>,
    unwatched: bool,
    output: Option<Arc<OutputHandler>>,
    rights: Arc<MissingPermissions>,
    action_options: ActionOptions,
    scope: Scope,
    clock: Clock,
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver").field("applier", &self.applier).finish_non_exhaustive()
    }
}

impl Driver {
    /// A driver that keeps [`DEFAULT_HISTORY`] revisions.
    pub fn new(client: Client, mapper: Mapper) -> Self {
        let applier = Applier::new(client, FIELD_MANAGER).with_former_managers(&FORMER_MANAGERS);
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
            lacking: Arc::default(),
            unwatched: false,
            output: None,
            rights: Arc::default(),
            action_options: ActionOptions::default(),
            scope: Scope::default(),
            clock: Clock::default(),
        }
    }

    /// Makes all requests by this client, e.g. one that acts as a service account. What the driver found
    /// out about missing permissions is forgotten: they may be others.
    #[must_use]
    pub fn with_client(mut self, client: Client) -> Self {
        self.applier = self.applier.with_client(client.clone());
        self.store = self.store.with_client(client);
        self.rights = Arc::default();
        self
    }

    /// Where the objects of releases may be; anywhere unless said otherwise.
    #[must_use]
    pub fn scope(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }

    /// Which records are acted on; all that can be read unless said otherwise.
    #[must_use]
    pub fn record_policy(mut self, policy: RecordPolicy) -> Self {
        self.store = self.store.policy(policy);
        self
    }

    /// What is left to others where it differs from what a release has.
    #[must_use]
    pub fn ignoring(mut self, rules: impl Into<Arc<[IgnoreRule]>>) -> Self {
        self.ignored = rules.into();
        self
    }

    /// Knows objects without asking, e.g. by a watch. They are left out of what is sent.
    #[must_use]
    pub fn with_known_objects(mut self, known: Arc<Knowledge>) -> Self {
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
    pub fn with_snapshots(mut self, glimpse: Arc<Snapshots>) -> Self {
        self.glimpse = Some(glimpse);
        self
    }

    /// Has heard that these objects are gone: they are made anew without being looked for first.
    #[must_use]
    pub fn with_deleted_objects(mut self, gone: impl IntoIterator<Item = ObjectId>) -> Self {
        self.lacking = Arc::new(gone.into_iter().collect());
        self
    }

    /// Has not watched the objects since they were applied: before one is changed it must prove to be the
    /// release's, as somebody may have made another under its name. One read for each.
    #[must_use]
    pub fn unwatched(mut self) -> Self {
        self.unwatched = true;
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
    pub fn options(mut self, action_options: ActionOptions) -> Self {
        self.action_options = action_options;
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
    pub fn on_record_written(
        mut self,
        tell: impl Fn(&str, &str, u32, Option<&str>) + Send + Sync + 'static,
    ) -> Self {
        self.store = self.store.with_write_observer(WriteObserver::new(tell));
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

    /// A revision that is the newest and deployed, alone, for [`Driver::repair`]: two GETs, of its record
    /// and of the one that anybody who begins another revision would write first. `None` if it is not so,
    /// or not to be told so cheaply; then [`Driver::history`] tells.
    ///
    /// # Errors
    ///
    /// As any request. It may be forbidden where a LIST is not.
    pub async fn newest_deployed(
        &self,
        namespace: &str,
        name: &str,
        revision: u32,
    ) -> Result<Option<History>, Error> {
        check_name(name)?;
        let (record, next) = tokio::try_join!(
            self.store.whole(namespace, name, revision),
            self.store.exists(namespace, name, revision.saturating_add(1)),
        )?;
        let deployed = record.filter(|it| it.release.info.status == Status::Deployed && !next);
        Ok(deployed.map(|record| {
            let mut history = History::empty(namespace, name, self.clock.now());
            history.put(record);
            history
        }))
    }

    /// The records of several releases by one LIST, to be unpacked when their turn comes: of one
    /// namespace, or of all. A release that has none, or one that lies in several Secrets, is left out.
    ///
    /// # Errors
    ///
    /// As any request.
    pub async fn histories(
        &self,
        namespace: Option<&str>,
        names: &[&str],
    ) -> Result<Vec<Packed>, Error> {
        self.store.histories(namespace, names).await
    }

    /// A history as it was read by [`Driver::histories`].
    pub fn unpack(&self, packed: &Packed, namespace: &str) -> History {
        self.store.unpack(packed, namespace)
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
    pub async fn objects(&self, desired: &DesiredState<'_>) -> Result<Vec<PlannedObject>, Error> {
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

    /// Looks at objects of the deployed revision, e.g. because a watch shows that they changed or are
    /// gone, and applies again, as its record has them, those that are not as they shall be. Only
    /// those in `which`; an empty slice means all.
    ///
    /// Nothing is rendered for it, so that random values stay what they were. Writes no record.
    ///
    /// # Errors
    ///
    /// [`Error::Unauthenticated`] if that record is not to be acted on: see [`Driver::confirm`]. As any
    /// request.
    pub async fn repair(
        &self,
        history: &History,
        owner: Option<&Owner>,
        which: &[ObjectId],
    ) -> Result<Applied, Error> {
        let mut applied = unchanged(history)?;
        let revision = applied.release.version;
        if !history.is_trusted(revision) {
            return Err(history.unauthenticated(revision, "nothing is repaired by it"));
        }
        let release = (history.name(), history.namespace());
        let which: HashSet<&ObjectId> = which.iter().collect();
        for object in self.planned(release, owner, &applied.release.manifest).await? {
            if which.is_empty() || which.contains(&object.id) {
                let sent = self.send(ApplyMode::Verify, &object, release).await;
                match sent.map_err(|error| error.redacted(&applied.release.sensitive()))? {
                    Sent::Applied(looked) => applied.objects.push(*looked),
                    Sent::Known(_) => applied.known.push(object.id),
                }
            }
        }
        if applied.objects.iter().any(|object| object.found.is_drift()) {
            applied.done = ActionResult::Repaired;
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
        done: ActionResult::Unchanged,
        release: Arc::clone(release),
        history: history.clone(),
        objects: Vec::new(),
        known: Vec::new(),
        removed: Vec::new(),
        kept: Vec::new(),
    })
}
