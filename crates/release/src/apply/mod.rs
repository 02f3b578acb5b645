//! Executes plans: requests, records, results.
//!
//! Every function can be cancelled between any two requests. The next call continues from the records in
//! the cluster.

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

/// The field manager of a chart's objects: the one of Helm. With any other name, its CLI would get
/// conflicts in rollbacks and upgrades.
pub const FIELD_MANAGER: &str = "helm";

/// Field managers that set fields of a chart's objects by updates: Helm 3, Helm 4 with
/// `--server-side=false`, and operator-sdk's Helm operator.
const FORMER_MANAGERS: [&str; 2] = ["helm", "helm-operator"];

/// How many revisions to keep, as in the helm CLI.
pub const DEFAULT_HISTORY: usize = 10;

/// Reads releases and executes actions; cheap to clone.
///
/// The client should not retry, see [`catamaran_cluster::apply`].
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

    /// Uses this client for all requests, such as one that impersonates a service account. Forgets which
    /// permissions are missing, because they may differ.
    #[must_use]
    pub fn with_client(mut self, client: Client) -> Self {
        self.applier = self.applier.with_client(client.clone());
        self.store = self.store.with_client(client);
        self.rights = Arc::default();
        self
    }

    /// Where the objects of releases may be; the default is anywhere.
    #[must_use]
    pub fn scope(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }

    /// Which records to trust; the default is all that can be read.
    #[must_use]
    pub fn record_policy(mut self, policy: RecordPolicy) -> Self {
        self.store = self.store.policy(policy);
        self
    }

    /// Drift that is left to others.
    #[must_use]
    pub fn ignoring(mut self, rules: impl Into<Arc<[IgnoreRule]>>) -> Self {
        self.ignored = rules.into();
        self
    }

    /// A function that knows objects without a request, for example from a watch. They are not sent again.
    #[must_use]
    pub fn with_known_objects(mut self, known: Arc<Knowledge>) -> Self {
        self.known = Some(known);
        self
    }

    /// Keeps all records in this namespace, instead of that of each release. The names of releases must
    /// then differ between namespaces.
    #[must_use]
    pub fn stored_in(mut self, namespace: &str) -> Self {
        self.store = self.store.in_namespace(namespace);
        self
    }

    /// Objects that were read recently. They are not read again for a comparison.
    #[must_use]
    pub fn with_snapshots(mut self, glimpse: Arc<Snapshots>) -> Self {
        self.glimpse = Some(glimpse);
        self
    }

    /// Objects that a watch reports as deleted: they are created without a read.
    #[must_use]
    pub fn with_deleted_objects(mut self, gone: impl IntoIterator<Item = ObjectId>) -> Self {
        self.lacking = Arc::new(gone.into_iter().collect());
        self
    }

    /// No watch has observed the objects since they were applied: before one changes, a read must show that it
    /// still belongs to the release, because somebody may have replaced it. One read for each.
    #[must_use]
    pub fn unwatched(mut self) -> Self {
        self.unwatched = true;
        self
    }

    /// The deadline of one hook from its start; the default is [`HOOK_TIMEOUT`].
    #[must_use]
    pub fn hook_timeout(mut self, timeout: Duration) -> Self {
        self.hook_timeout = timeout;
        self
    }

    /// The options of actions.
    #[must_use]
    pub fn options(mut self, action_options: ActionOptions) -> Self {
        self.action_options = action_options;
        self
    }

    /// The clock; the default is the system's.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.store = self.store.clock(clock.clone());
        self.clock = clock;
        self
    }

    /// A callback for every record that is written or, then without a version, deleted: the release's
    /// namespace and name, the revision, the record's resourceVersion.
    #[must_use]
    pub fn on_record_written(
        mut self,
        tell: impl Fn(&str, &str, u32, Option<&str>) + Send + Sync + 'static,
    ) -> Self {
        self.store = self.store.with_write_observer(WriteObserver::new(tell));
        self
    }

    /// How many revisions to keep; 0 means all.
    #[must_use]
    pub fn history_max(mut self, revisions: usize) -> Self {
        self.history_max = revisions;
        self
    }

    /// The records of a release: one LIST of Secrets by label.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidName`] without a request, because no selector can have a longer name.
    pub async fn history(&self, namespace: &str, name: &str) -> Result<History, Error> {
        check_name(name)?;
        self.store.history(namespace, name).await
    }

    /// The newest revision, if it is this one and deployed, for [`Driver::repair`]: two GETs, of its record and
    /// of the one that the next revision would have. `None` if it is not, or two GETs cannot show it; then use
    /// [`Driver::history`].
    ///
    /// # Errors
    ///
    /// As any request. The right to GET may be missing where that to LIST is there.
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

    /// The records of several releases by one LIST, to be decoded later: of one namespace, or of all. Without
    /// releases that have no record, or one in several Secrets.
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

    /// A history from [`Driver::histories`].
    pub fn unpack(&self, packed: &Packed, namespace: &str) -> History {
        self.store.unpack(packed, namespace)
    }

    /// Removes the owner references that Helm operators added to records: a foreground deletion would delete
    /// the records while the uninstall needs them. One request for each record that has one.
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

    /// The objects of a release as they are sent, for example to know what to watch. Needs no request if the
    /// mapper knows their kinds.
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

    /// Compares objects of the deployed revision with its record, for example because a watch reports a change,
    /// and applies those that differ. `which` selects objects; an empty slice means all.
    ///
    /// Renders nothing, so random values stay. Writes no record.
    ///
    /// # Errors
    ///
    /// [`Error::Unauthenticated`] if the record is not trusted: see [`Driver::confirm`]. As any request.
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

    /// Uninstalls a release. First the record says so, then the `pre-delete` hooks of the newest revision run.
    /// Then the objects of all revisions are deleted that still belong to the release by a fresh read: by uid, in
    /// the background, in uninstall order. Then the `post-delete` hooks run. At last the records are deleted.
    ///
    /// A release that does not exist is no error. Call it again after any error.
    ///
    /// # Errors
    ///
    /// [`Error::Waiting`] while a hook runs; [`Error::Hook`] if a `pre-delete` hook failed. If a `post-delete`
    /// hook failed, the release is uninstalled nevertheless, as in Helm.
    pub async fn uninstall(&self, namespace: &str, name: &str) -> Result<Uninstalled, Error> {
        self.uninstall_owned(namespace, name, None).await
    }

    /// The same for a release of a resource: its hooks have the owner's name, so that a watch finds them.
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
