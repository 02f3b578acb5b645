//! One reconcile of a chart resource: values, render, decide, drive, report.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use catamaran_chart::{ReleaseFacts, Rendered};
use catamaran_cluster::apply::FailureKind;
use catamaran_cluster::conditions::reasons;
use catamaran_cluster::culprit::is_worth_asking;
use catamaran_cluster::watch::ObjectKey;
use catamaran_release::{
    Action, Applied, Definitions, Desired, Driver, Error as ReleaseError, Glimpse, History,
    ObjectId, Owner, PlannedObject, Status, Waiting, Ways, Why,
};
use futures::future::join_all;
use kube::core::{DynamicObject, GroupVersionKind};
use kube::{Api, ResourceExt};
use serde_json::{Map, Value};

use super::memory::{Findings, Memory};
use super::render::Draw;
use super::report::{self, Stuck};
use super::tell::Teller;
use super::wishes::Wishes;
use super::{ChartController, culprit, finalizer, render};
use crate::manager::controller::{Failure, Next, Request};
use crate::manager::dependents::Dependent;
use crate::manager::feeds::Cache;
use crate::manager::queue::Key;
use crate::manager::status::{Draft, Written};
use crate::manager::writes::Writes;

/// Which objects are watched: Helm labels those of all releases so.
const OF_RELEASES: &str = "app.kubernetes.io/managed-by=Helm";
/// How long to wait for what no watch tells of: an object that ends, a kind that comes to be served.
const SOON: Duration = Duration::from_secs(1);
/// How long the first list of a kind may take before its objects are read one by one.
const FIRST_LIST: Duration = Duration::from_secs(5);
/// How often a helm command that is at work is looked for where no watch tells of its end.
const UNHEARD: Duration = Duration::from_secs(10);
/// How often a release is applied again whose objects no watch tells of, while it is not ready; after
/// that the reconcile period decides.
const BLIND: Duration = Duration::from_secs(15);

/// One release of one resource during one reconcile.
struct Work<'a> {
    key: &'a Key,
    resource: DynamicObject,
    owner: Owner,
    wishes: Wishes,
    config: Arc<Map<String, Value>>,
    draft: Draft,
}

/// The resource's own side: where it is written.
pub(super) struct Own<'a> {
    pub key: &'a Key,
    pub api: &'a Api<DynamicObject>,
    pub writes: &'a Writes,
    pub tell: &'a Teller,
}

/// What keeps a reconcile from its end.
pub(super) enum Stop {
    /// Say it in the status; `transient` decides whether trying again may help.
    Stuck { stuck: Stuck, message: String, transient: bool },
    /// Say in the status what is waited for, and look again after this time.
    Wait { reason: String, message: String, after: Duration },
    /// The history was written by somebody else meanwhile.
    Raced,
}

impl ChartController {
    pub(super) async fn run(&self, request: Request) -> Result<Next, Failure> {
        let Request { key, object, api, writes } = request;
        let own = Own { key: &key, api: &api, writes: &writes, tell: &self.tell };
        let mut resource = DynamicObject::clone(&object);
        let Some(namespace) = resource.namespace() else {
            return Err(Failure::Permanent(
                "a release needs a namespace: its kind must be namespaced".into(),
            ));
        };
        let leaving = resource.metadata.deletion_timestamp.is_some();
        if !finalizer::is_set(&resource) {
            if leaving {
                return Ok(Next::Rest);
            }
            resource = finalizer::add(&api, &resource).await?;
            writes.note(&key, &resource);
        }
        let wishes = Wishes::of(&resource);
        let mut draft = Draft::of(&resource);
        report::pause(&mut draft, &wishes);
        if wishes.paused {
            return conclude(&own, &resource, draft, Ok(Next::Rest)).await;
        }
        if leaving {
            return self.uninstall(&own, &resource, &namespace, &wishes).await;
        }
        let owner = self.owner(&resource, namespace);
        let period = match wishes.period.clone().transpose() {
            Ok(period) => period,
            Err(error) => {
                let stop = unusable(reasons::RECONCILE_ERROR, format!("reconcile-period: {error}"));
                return conclude(&own, &resource, draft, Err(stop)).await;
            }
        };
        let (draft, outcome) = match render::values(&resource) {
            Ok(spec) => {
                let values = self.tell.phase("values");
                let config = Arc::new(self.overrides.over(spec));
                drop(values);
                let resource = resource.clone();
                let mut work = Work { key: &key, resource, owner, wishes, config, draft };
                let outcome = self.converge(&mut work).await;
                (work.draft, outcome)
            }
            Err(message) => (draft, Err(unusable(reasons::ERROR_GETTING_VALUES, message))),
        };
        let next = conclude(&own, &resource, draft, outcome).await?;
        Ok(match period {
            Some(period) => next.within(period),
            None => next,
        })
    }

    /// Brings the release to what the resource says; free if nothing moved.
    async fn converge(&self, work: &mut Work<'_>) -> Result<Next, Stop> {
        let known = self.remembered(work);
        let done = match &known {
            Some(drifted) => drifted.is_empty() || self.repair(work, drifted).await?,
            None => false,
        };
        if !done {
            let applied = self.drive(work).await?;
            report::log(applied.done, &applied.release);
            self.tell.done(&work.resource, applied.done, &applied.release);
            let (release, notes) = (&applied.release, applied.release.info.notes.as_str());
            let told = report::Deployed { history: &applied.history, release, notes };
            report::deployed(&mut work.draft, &told, self.status_manifest);
            self.memory().remember(work.key, &work.resource, &applied, |gvk| self.cache(gvk));
        }
        let mut findings = self.look(work.key);
        self.name_culprit(&mut findings).await;
        report::readiness(&mut work.draft, &findings.not_ready);
        let blind = Some(BLIND).filter(|_| findings.blind && !findings.not_ready.is_empty());
        Ok(findings.again.or(blind).map_or(Next::Rest, Next::After))
    }

    /// The objects that drifted, if the release is remembered and its inputs did not move.
    fn remembered(&self, work: &mut Work<'_>) -> Option<Vec<ObjectId>> {
        if self.records.is_stale(&work.owner.namespace, &work.resource.name_any()) {
            return None;
        }
        let mut memory = self.memory();
        let remembered = memory.get_mut(work.key).filter(|known| known.is_about(&work.resource))?;
        let findings = remembered.look(Instant::now());
        if findings.blind {
            return None; // what no watch tells is found out by applying it all once more
        }
        let (history, notes) = (&remembered.history, &*remembered.notes);
        let told = report::Deployed { history, release: history.deployed()?, notes };
        report::deployed(&mut work.draft, &told, self.status_manifest);
        Some(findings.drifted)
    }

    fn look(&self, key: &Key) -> Findings {
        self.memory().get_mut(key).map(|known| known.look(Instant::now())).unwrap_or_default()
    }

    /// Renders, decides and does what is due. After this the release is deployed as the resource says.
    async fn drive(&self, work: &Work<'_>) -> Result<Applied, Stop> {
        let history = self.history(work).await?;
        let chart = &self.chart.metadata().name;
        if history.newest().is_none_or(|newest| newest.chart_name() == chart) {
            // Before anything is rendered, as what the cluster serves is one of a rendering's inputs.
            self.define().await.map_err(|error| self.release_failed(&history, error))?;
        }
        let facts = history.current_facts();
        let draw = self.draw(work.key);
        let rendered = self.rendered(work, &facts, draw).await?;
        let desired = self.desired(work, &rendered, &facts);
        match history.decide(&desired).map_err(|error| self.release_failed(&history, error))? {
            Action::Unchanged => self.reapply(&history, &desired, work).await,
            Action::Wait { revision, status, retry_after } => Err(Stop::Wait {
                reason: "OperationInProgress".to_owned(),
                message: format!(
                    "a helm command writes revision {revision} ({status:?}); taken over if it does not end"
                ),
                after: self.until_heard(retry_after),
            }),
            Action::RenderAgain(next) => {
                if self.same_inputs(&history, work)
                    && self.is_drawn(work, &facts, &rendered).await?
                {
                    return self.keep(&history, &desired, work).await;
                }
                let rendered = self.rendered(work, &next, draw).await?;
                self.apply(&history, &self.desired(work, &rendered, &next), work).await
            }
            Action::Install | Action::Upgrade | Action::Resume => {
                self.apply(&history, &desired, work).await
            }
        }
    }

    /// Brings the definitions of `crds/`; who may not does without, and says so once.
    async fn define(&self) -> Result<(), ReleaseError> {
        if self.without_crds.load(Ordering::Relaxed) {
            return Ok(());
        }
        match self.driver.crds(self.chart.chart()).await {
            Err(ReleaseError::Definition { source_file, source })
                if source.kind == FailureKind::Forbidden =>
            {
                self.without_crds.store(true, Ordering::Relaxed);
                let right = "create and patch customresourcedefinitions.apiextensions.k8s.io";
                tracing::warn!(
                    right,
                    file = source_file,
                    "no right to bring the chart's definitions: done without"
                );
                Ok(())
            }
            defined => defined,
        }
    }

    async fn history(&self, work: &Work<'_>) -> Result<History, Stop> {
        let _plan = self.tell.phase("plan");
        let (namespace, name) = (&work.owner.namespace, &work.resource.name_any());
        self.records.follow(&self.feeds, work.key, namespace, name);
        self.records.reading(namespace, name);
        let history = self.driver.history(namespace, name).await;
        let history = history.inspect(|history| self.records.read(history));
        history.map_err(|error| Stop::Stuck {
            stuck: Stuck::Irreconcilable(reasons::ERROR_GETTING_RELEASE_STATE),
            message: error.to_string(),
            transient: !matches!(error, ReleaseError::InvalidName { .. }),
        })
    }

    /// Nobody knows what happened to the objects while nobody watched: looks at them, and applies again
    /// what is not as it shall be.
    async fn reapply(
        &self,
        history: &History,
        desired: &Desired<'_>,
        work: &Work<'_>,
    ) -> Result<Applied, Stop> {
        let _apply = self.tell.phase("apply");
        let mut driver = self.knowing(work.key);
        if self.dependents.is_some()
            && let Ok(objects) = driver.objects(desired).await
        {
            driver = driver.glimpsing(self.listed(&objects).await);
        }
        let applied = driver.repair(history, Some(&work.owner), &[]).await;
        let applied = applied.map_err(|error| irreconcilable(reasons::RECONCILE_ERROR, &error))?;
        tell_drift(&applied);
        Ok(applied)
    }

    /// What the watches told of objects when they began. They begin here, if nobody else has begun them;
    /// what they do not tell soon is read.
    async fn listed(&self, objects: &[PlannedObject]) -> Arc<Glimpse> {
        let kinds: HashSet<&GroupVersionKind> = objects.iter().map(|object| &object.gvk).collect();
        let caches = kinds.into_iter().filter_map(|gvk| Some((gvk.clone(), self.cache(gvk)?)));
        let caches: HashMap<_, _> = caches.collect();
        join_all(caches.values().map(|cache| cache.settled(FIRST_LIST))).await;
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

    /// Stays with what the newest revision drew, and brings it to its end if it has not come there.
    async fn keep(
        &self,
        history: &History,
        desired: &Desired<'_>,
        work: &Work<'_>,
    ) -> Result<Applied, Stop> {
        if history.interrupted().is_none() {
            return self.reapply(history, desired, work).await;
        }
        let driver = self.knowing(work.key).ways(self.ways(work, desired));
        let _apply = self.tell.phase("apply");
        let resumed = driver.resume(history, desired).await;
        resumed.map_err(|error| self.release_failed(history, error))
    }

    /// Whether the newest revision, deployed or still under way, was made of the same values and
    /// version of the chart.
    fn same_inputs(&self, history: &History, work: &Work<'_>) -> bool {
        let chart = self.chart.metadata();
        history.newest().is_some_and(|newest| {
            (newest.info.status == Status::Deployed || history.interrupted().is_some())
                && newest.chart_version() == chart.version
                && newest.config == *work.config
        })
    }

    /// Whether the manifests depend on the clock or on chance, such as a generated password: then a
    /// difference from what is deployed says nothing, and a restart must not change what was drawn.
    async fn is_drawn(
        &self,
        work: &Work<'_>,
        facts: &ReleaseFacts,
        rendered: &Rendered,
    ) -> Result<bool, Stop> {
        let again = self.rendered(work, facts, Draw::another()).await?;
        Ok(again.template_text() != rendered.template_text())
    }

    async fn apply(
        &self,
        history: &History,
        desired: &Desired<'_>,
        work: &Work<'_>,
    ) -> Result<Applied, Stop> {
        let driver = self.knowing(work.key).ways(self.ways(work, desired));
        let _apply = self.tell.phase("apply");
        let applied = driver.apply(history, desired).await;
        applied.map_err(|error| self.release_failed(history, error))
    }

    /// How what is desired is brought about.
    fn ways(&self, work: &Work<'_>, desired: &Desired<'_>) -> Ways {
        let install = desired.release.is_install;
        let ways = if install { work.wishes.install() } else { work.wishes.upgrade() };
        let skipped = self.without_crds.load(Ordering::Relaxed);
        let crds = if skipped { Definitions::Skip } else { self.crds };
        Ways { crds, full_record: self.full_record, ..ways }
    }

    /// A driver that leaves out what the watches show to be as it was left.
    fn knowing(&self, key: &Key) -> Driver {
        let untouched = self.memory().get_mut(key).map(|known| known.untouched(Instant::now()));
        let Some(untouched) = untouched else { return self.driver.clone() };
        self.driver.clone().knowing(Arc::new(move |id, hash| {
            let (_, uid) = untouched.get(id).filter(|(wanted, _)| *wanted == hash)?;
            Some(uid.clone())
        }))
    }

    /// Applies objects again that somebody changed or deleted. False if a helm command wrote a
    /// revision meanwhile: then what they should be has to be found out anew.
    async fn repair(&self, work: &Work<'_>, drifted: &[ObjectId]) -> Result<bool, Stop> {
        let history = self.history(work).await?;
        let newest = history.newest().map(|newest| newest.version);
        let known = self.memory().get_mut(work.key).and_then(|known| known.revision());
        if newest != known {
            return Ok(false);
        }
        let _apply = self.tell.phase("apply");
        let repaired = self.driver.repair(&history, Some(&work.owner), drifted).await;
        let applied = repaired.map_err(|error| irreconcilable(reasons::RECONCILE_ERROR, &error))?;
        tell_drift(&applied);
        report::log(applied.done, &applied.release);
        self.tell.done(&work.resource, applied.done, &applied.release);
        if let Some(known) = self.memory().get_mut(work.key) {
            known.repaired(&applied.objects, |gvk| self.cache(gvk));
        }
        Ok(true)
    }

    async fn rendered(
        &self,
        work: &Work<'_>,
        facts: &ReleaseFacts,
        draw: Draw,
    ) -> Result<Rendered, Stop> {
        let _render = self.tell.phase("render");
        self.render(&work.config, facts, draw).await.map_err(|trouble| Stop::Stuck {
            transient: trouble.is_transient(),
            message: trouble.to_string(),
            stuck: Stuck::Irreconcilable(reasons::RECONCILE_ERROR),
        })
    }

    fn desired<'a>(
        &'a self,
        work: &'a Work<'_>,
        rendered: &'a Rendered,
        facts: &'a ReleaseFacts,
    ) -> Desired<'a> {
        Desired::new(self.chart.chart(), &work.config, rendered, facts).owned_by(&work.owner)
    }

    pub(super) fn owner(&self, resource: &DynamicObject, namespace: String) -> Owner {
        let reference = k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference {
            api_version: self.gvk.api_version(),
            kind: self.gvk.kind.clone(),
            name: resource.name_any(),
            uid: resource.uid().unwrap_or_default(),
            controller: Some(true),
            block_owner_deletion: Some(true),
        };
        Owner { reference, namespace }
    }

    /// The cache of a kind's objects; the first release that has such an object starts the watch.
    fn cache(&self, gvk: &GroupVersionKind) -> Option<Arc<Cache<Dependent>>> {
        self.dependents.as_ref().map(|dependents| dependents.watch(gvk, OF_RELEASES, None))
    }

    /// The watch on the object wakes the resource; where there is none, it is looked at again soon.
    pub(super) fn wait_for(&self, waiting: &Waiting) -> Stop {
        let at_most = waiting.at_most.unwrap_or(SOON).max(SOON);
        let after = match waiting.why {
            Why::Pause => at_most,
            Why::End if waiting.object.namespace.is_some() => {
                let watched = self.cache(&waiting.gvk).is_some_and(|cache| cache.is_synced());
                // The watch tells of its end; that its pod cannot start, only looking does.
                let asked = is_worth_asking(&waiting.gvk.group, &waiting.gvk.kind);
                match (watched, asked) {
                    (false, _) => SOON,
                    (true, true) => at_most.min(culprit::OFTEN),
                    (true, false) => at_most,
                }
            }
            // It may carry no label of ours; and definitions have none.
            Why::Gone | Why::End => SOON,
        };
        let Waiting { role, object, message, .. } = waiting;
        let message = format!("{role} {} {}: {message}", object.kind, object.name);
        Stop::Wait { reason: waiting.reason.clone(), message, after }
    }

    fn release_failed(&self, history: &History, error: ReleaseError) -> Stop {
        match error {
            ReleaseError::Waiting(waiting) => self.wait_for(&waiting),
            ReleaseError::Busy { retry_after, .. } => Stop::Wait {
                reason: "OperationInProgress".to_owned(),
                message: error.to_string(),
                after: self.until_heard(retry_after),
            },
            error => release_failed(history, error),
        }
    }

    /// When to look again at a release that a helm command writes: the watch on records tells of its end.
    fn until_heard(&self, retry_after: Duration) -> Duration {
        if self.records.is_watching() { retry_after } else { retry_after.min(UNHEARD) }
    }

    pub(super) fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes the status, once, and tells the manager what follows.
pub(super) async fn conclude(
    own: &Own<'_>,
    resource: &DynamicObject,
    mut draft: Draft,
    outcome: Result<Next, Stop>,
) -> Result<Next, Failure> {
    let follows = match outcome {
        Ok(next) => Ok(next),
        Err(Stop::Raced) => return Err(Failure::Conflict),
        Err(Stop::Wait { reason, message, after }) => {
            report::waiting(&mut draft, &reason, &message);
            Ok(Next::After(after))
        }
        Err(Stop::Stuck { stuck, message, transient }) => {
            report::stuck(&mut draft, &stuck, &message);
            own.tell.stuck(resource, &stuck, &message);
            Err(if transient { Failure::Transient(message) } else { Failure::Permanent(message) })
        }
    };
    let _status = own.tell.phase("status");
    match draft.write(own.api, resource).await {
        Ok(Written::Conflict) => Err(Failure::Conflict),
        Ok(Written::Changed(written)) => {
            own.writes.note(own.key, &written);
            follows
        }
        Ok(Written::Unchanged | Written::Gone) => follows,
        Err(error) => Err(Failure::Transient(format!("cannot write the status: {error}"))),
    }
}

/// Says which fields were put back.
fn tell_drift(applied: &Applied) {
    for object in applied.objects.iter().filter(|object| object.found.is_drift()) {
        tracing::info!(object = %object.id, drift = %object.found, "Repaired drift");
    }
}

/// The resource cannot be understood as it is.
fn unusable(reason: &'static str, message: String) -> Stop {
    Stop::Stuck { stuck: Stuck::Irreconcilable(reason), message, transient: false }
}

fn irreconcilable(reason: &'static str, error: &ReleaseError) -> Stop {
    Stop::Stuck {
        stuck: Stuck::Irreconcilable(reason),
        message: error.to_string(),
        transient: true,
    }
}

fn release_failed(history: &History, error: ReleaseError) -> Stop {
    let message = error.to_string();
    match error {
        ReleaseError::Raced { .. } => Stop::Raced,
        ReleaseError::Terminating { .. } => {
            Stop::Wait { reason: "Terminating".to_owned(), message, after: SOON }
        }
        ReleaseError::NotServedYet { .. } => {
            Stop::Wait { reason: "KindNotServedYet".to_owned(), message, after: SOON }
        }
        error => {
            let install = history.deployed().is_none();
            let reason = if install { reasons::INSTALL_ERROR } else { reasons::UPGRADE_ERROR };
            let hopeless = matches!(
                error,
                ReleaseError::Unsupported { .. }
                    | ReleaseError::InvalidName { .. }
                    | ReleaseError::OtherChart { .. }
                    | ReleaseError::Manifest(_)
                    | ReleaseError::Object { .. }
            );
            Stop::Stuck { stuck: Stuck::ReleaseFailed(reason), message, transient: !hopeless }
        }
    }
}
