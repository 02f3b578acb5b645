//! One reconcile of a chart resource: values, render, decide, drive, report.

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

use super::memory::{Findings, Left, Memory};
use super::report::{self, Stuck};
use super::seeds::Mark;
use super::site::Site;
use super::takeback::TakenBack;
use super::tell::Teller;
use super::wait::{NOT_SERVED, Until};
use super::wishes::Wishes;
use super::{ChartController, Cx, Error, finalizer, render};
use crate::manager::controller::{Failure, Next, Request};
use crate::manager::dependents::Dependent;
use crate::manager::feeds::Cache;
use crate::manager::queue::Key;
use crate::manager::status::{Draft, Written};
use crate::manager::writes::Writes;

/// How long to wait for what no watch tells of: an object that ends, a kind that comes to be served.
pub(super) const SOON: Duration = Duration::from_secs(1);
/// How often a helm command that is at work is looked for where no watch tells of its end.
const UNHEARD: Duration = Duration::from_secs(10);
/// How often a release is applied again whose objects no watch tells of, while it is not ready; after
/// that the reconcile period decides.
const BLIND: Duration = Duration::from_secs(15);

/// One release of one resource during one reconcile.
pub(super) struct Work<'a> {
    pub key: &'a Key,
    pub resource: DynamicObject,
    pub owner: Owner,
    /// What acts on the release.
    pub driver: Driver,
    pub site: Site,
    /// What the release's records carry besides Helm's own labels.
    pub labels: BTreeMap<String, Option<String>>,
    /// What was generated for the rendering, once it turns out that something was.
    pub mark: Option<Mark>,
    pub wishes: Wishes,
    pub config: Arc<Map<String, Value>>,
    pub draft: Draft,
    /// What the kind's logic works with.
    pub cx: &'a Cx<'a>,
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
    /// The same until something happens to an object.
    Until(Box<Until>),
    /// The operator's own code does not want it; the reason is that of the condition.
    Refused(&'static str, Error),
    /// It failed, and was taken back.
    TakenBack(Box<TakenBack>),
    /// The history was written by somebody else meanwhile.
    Raced,
}

impl ChartController {
    pub(super) async fn run(&self, request: Request) -> Result<Next, Failure> {
        let Request { key, object, api, writes, periodic } = request;
        if periodic && let Some(rest) = self.memory().still_waits(&key, &object) {
            return Ok(Next::After(rest)); // whatever it waits for, a watch tells
        }
        let own = Own { key: &key, api: &api, writes: &writes, tell: &self.tell };
        let mut resource = DynamicObject::clone(&object);
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
        let epoch = self.epochs.fetch_add(1, Ordering::Relaxed);
        let cx = &Cx::new(self, &key, &resource, epoch);
        if leaving {
            return self.uninstall(&own, cx, &wishes).await;
        }
        let (owner, site) = (self.owner(&resource), self.site(&resource));
        let driver = self.driver_for(&owner);
        let labels = site.labels();
        let period = match wishes.period.clone().transpose() {
            Ok(period) => period,
            Err(error) => {
                let stop = unusable(reasons::RECONCILE_ERROR, format!("reconcile-period: {error}"));
                return conclude(&own, &resource, draft, Err(stop)).await;
            }
        };
        report::period(&mut draft, period);
        let (mut draft, outcome) = match self.values(cx).await {
            Ok(values) => {
                let (resource, config, key) = (resource.clone(), Arc::new(values), &key);
                let mut work = Work {
                    key,
                    resource,
                    owner,
                    driver,
                    site,
                    labels,
                    mark: None,
                    wishes,
                    config,
                    draft,
                    cx,
                };
                let outcome = self.converge(&mut work).await;
                let outcome = self.take_in(&mut work, outcome).await;
                let outcome = self.attend(&work, outcome).await;
                (work.draft, outcome)
            }
            Err(stop) => (draft, Err(stop)),
        };
        let requeue = cx.settle(&mut draft);
        if outcome.is_ok() {
            self.references.settle(&key, epoch);
        }
        let mut next = conclude(&own, &resource, draft, outcome).await?;
        if let Some(requeue) = requeue {
            next = next.sooner(requeue);
        }
        Ok(match period {
            Some(period) => next.within(period.used),
            None => next,
        })
    }

    /// Sees to it that what a release waits for is heard of, and that the period costs nothing meanwhile.
    async fn attend(&self, work: &Work<'_>, outcome: Result<Next, Stop>) -> Result<Next, Stop> {
        let outcome = match outcome {
            Err(Stop::Until(until)) => Err(self.wait_for(work.key, *until).await),
            outcome => outcome,
        };
        match &outcome {
            Err(stop) => self.remember_wait(work.key, &work.resource, stop),
            Ok(_) => self.memory().waits(work.key, &work.resource, None),
        }
        if matches!(outcome, Err(Stop::Stuck { .. } | Stop::TakenBack(_) | Stop::Refused(..))) {
            self.vigils.end(work.key);
        }
        outcome
    }

    /// Remembers what is waited for.
    pub(super) fn remember_wait(&self, key: &Key, resource: &DynamicObject, stop: &Stop) {
        let at_most = match stop {
            // Less is no waiting: something is asked for then.
            Stop::Wait { after, .. } if *after > SOON => Some(*after),
            _ => None,
        };
        self.memory().waits(key, resource, at_most);
    }

    /// What the chart is rendered with.
    pub(super) async fn values(&self, cx: &Cx<'_>) -> Result<Map<String, Value>, Stop> {
        let _values = self.tell.phase("values");
        let spec = render::values(cx)
            .map_err(|message| unusable(reasons::ERROR_GETTING_VALUES, message))?;
        self.mapped(cx, self.overrides.over(spec)).await
    }

    /// Brings the release to what the resource says; free if nothing moved.
    async fn converge(&self, work: &mut Work<'_>) -> Result<Next, Stop> {
        self.pay(work.cx, work.key).await?;
        if let Some(rest) = self.rests(work) {
            return self.rest(work, rest).await;
        }
        // What was taken back is deployed, but not what is wished.
        let is_refused = self.memory().refused(work.key).is_some();
        let known = if is_refused { None } else { self.remembered(work) };
        let done = match &known {
            Some(found) => found.drifted.is_empty() || self.repair(work, found).await?,
            None => false,
        };
        if !done {
            let (applied, drawn) = self.drive(work).await?;
            report::log(applied.done, &applied.release);
            self.tell.done(&work.resource, applied.done, &applied.release);
            let told = self.told(&applied);
            told.tell(&mut work.draft);
            let drawn = (work.wishes.rotation.as_str(), drawn.and_then(|drawn| drawn.renew_at));
            self.remember(work, drawn, (&applied, told));
            self.memory().accept(work.key);
            self.after(work.cx, work.key, applied.done, &applied.release).await?;
        }
        let mut findings = self.look(work.key);
        self.name_culprit(work.key, &mut findings).await;
        self.tell_progress(work, &mut findings, done);
        if let Some(rest) = self.renewal(work.key) {
            findings.look_again(rest);
        }
        let blind = Some(BLIND).filter(|_| findings.blind && !findings.not_ready.is_empty());
        Ok(findings.again.or(blind).map_or(Next::Rest, Next::After))
    }

    /// Says how the objects are: at once after an action, and then once a second at most.
    fn tell_progress(&self, work: &mut Work<'_>, findings: &mut Findings, later: bool) {
        let mut told = work.draft.clone();
        if let (Some(worst), Some(known)) =
            (findings.not_ready.first_mut(), self.memory().get_mut(work.key))
        {
            known.told.hide(&mut worst.readiness);
        }
        report::readiness(&mut told, &findings.not_ready);
        let beat = match self.memory().get_mut(work.key) {
            Some(known) if later && told.is_news() && !work.draft.is_news() => {
                known.beat(Instant::now())
            }
            _ => Ok(()),
        };
        match beat {
            Ok(()) => work.draft = told,
            Err(rest) => findings.look_again(rest),
        }
    }

    /// What status says of an action that went to its end.
    pub(super) fn told(&self, applied: &Applied) -> report::Deployed {
        report::Deployed::new(&applied.history, &applied.release, self.status_manifest)
    }

    /// Remembers an action that went to its end, and what is told of it.
    pub(super) fn remember(
        &self,
        work: &Work<'_>,
        drawn: (&str, Option<SystemTime>),
        applied: (&Applied, report::Deployed),
    ) {
        let cache = |gvk: &GroupVersionKind| self.cache(gvk);
        let objects = applied.0.objects.iter();
        let left = objects.filter_map(|object| Left::new(object, cache)).collect();
        let mut memory = self.memory();
        memory.remember(work.key, &work.resource, drawn, applied, left);
        if let Some(known) = memory.get_mut(work.key) {
            known.mapped = self.setup.logic.is_some().then(|| work.config.clone());
        }
    }

    /// How the objects are found, if the release is remembered and its inputs did not move.
    fn remembered(&self, work: &mut Work<'_>) -> Option<Findings> {
        let mut memory = self.memory();
        let remembered = memory.get_mut(work.key).filter(|known| {
            known.is_about(&work.resource, &work.wishes.rotation)
                && known.mapped.as_ref().is_none_or(|mapped| *mapped == work.config)
        })?;
        let (namespace, name) = &remembered.release;
        if self.records.is_stale(namespace, name) {
            return None;
        }
        let findings = remembered.look(Instant::now());
        if findings.blind {
            return None; // what no watch tells is found out by applying it all once more
        }
        remembered.told.tell(&mut work.draft);
        Some(findings)
    }

    fn look(&self, key: &Key) -> Findings {
        self.memory().get_mut(key).map(|known| known.look(Instant::now())).unwrap_or_default()
    }

    /// How long until a certificate of the release is to be made anew, but no longer than a day: clocks
    /// are set.
    fn renewal(&self, key: &Key) -> Option<Duration> {
        const DAY: Duration = Duration::from_hours(24);
        let renew_at = self.memory().get_mut(key)?.renew_at?;
        let rest = renew_at.duration_since(SystemTime::now()).unwrap_or_default();
        Some(rest.clamp(SOON, DAY))
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
        self.dependents.as_ref().map(|dependents| dependents.watch(gvk, &self.labelled, None))
    }

    pub(super) fn release_failed(&self, history: &History, error: ReleaseError) -> Stop {
        match error {
            ReleaseError::Waiting(waiting) => Stop::Until(Box::new(Until::told(*waiting))),
            ReleaseError::Busy { retry_after, .. } => Stop::Wait {
                reason: "OperationInProgress".to_owned(),
                message: error.to_string(),
                after: self.until_heard(retry_after),
            },
            error => release_failed(history, error),
        }
    }

    /// When to look again at a release that a helm command writes: the watch on records tells of its end.
    pub(super) fn until_heard(&self, retry_after: Duration) -> Duration {
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
        Err(Stop::Raced | Stop::Refused(_, Error::Conflict)) => return Err(Failure::Conflict),
        Err(Stop::Until(until)) => {
            report::waiting(&mut draft, &until.reason, &until.message);
            Ok(Next::After(SOON))
        }
        Err(Stop::Wait { reason, message, after }) => {
            report::waiting(&mut draft, &reason, &message);
            Ok(Next::After(after))
        }
        Err(Stop::Stuck { stuck, message, transient }) => {
            report::stuck(&mut draft, &stuck, &message);
            own.tell.stuck(resource, &stuck, &message);
            Err(if transient { Failure::Transient(message) } else { Failure::Permanent(message) })
        }
        // What it is waits for a watch, or for the time that the code asked for.
        Err(Stop::Refused(_, Error::Waiting { reason, message })) => {
            report::waiting(&mut draft, &reason, &message);
            Ok(Next::Rest)
        }
        Err(Stop::Refused(reason, error)) => {
            let (stuck, message) = (Stuck::of(reason), error.to_string());
            report::stuck(&mut draft, &stuck, &message);
            own.tell.stuck(resource, &stuck, &message);
            let is_permanent = matches!(error, Error::Permanent(_));
            Err(if is_permanent {
                Failure::Permanent(message)
            } else {
                Failure::Transient(message)
            })
        }
        Err(Stop::TakenBack(taken)) => {
            report::stuck(&mut draft, &taken.stuck, &taken.message);
            own.tell.stuck(resource, &taken.stuck, &taken.message);
            Err(Failure::Transient(taken.message))
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

/// The resource cannot be understood as it is.
fn unusable(reason: &'static str, message: String) -> Stop {
    Stop::Stuck { stuck: Stuck::Irreconcilable(reason), message, transient: false }
}

fn release_failed(history: &History, error: ReleaseError) -> Stop {
    let message = error.to_string();
    match error {
        ReleaseError::Raced { .. } => Stop::Raced,
        ReleaseError::Terminating { object, .. } => {
            Stop::Until(Box::new(Until::of("Terminating", message, object)))
        }
        ReleaseError::NotServedYet { object } => {
            Stop::Until(Box::new(Until::of(NOT_SERVED, message, object)))
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
            Stop::Stuck { stuck: Stuck::ReleaseFailed(reason), message, transient: !hopeless }
        }
    }
}
