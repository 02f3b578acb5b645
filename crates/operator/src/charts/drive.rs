//! What is due for a release, and doing it: records, renderings, plans.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use catamaran_chart::{Drawn, ReleaseFacts, Rendered, fresh_seed};
use catamaran_cluster::conditions::reasons;
use catamaran_cluster::watch::ObjectKey;
use catamaran_release::plan::{is_same_but_generated, kept_random_texts};
use catamaran_release::{
    Action, Applied, Definitions, Desired, Driver, Error as ReleaseError, Glimpse, History,
    PlannedObject, Release, Status, Ways,
};
use futures::future::join_all;
use jiff::Timestamp;
use kube::core::GroupVersionKind;

use super::memory::{Findings, Left};
use super::reconcile::{Stop, Work};
use super::render::Draw;
use super::report::{self, Stuck};
use super::seeds::{DRAWN, Mark};
use super::site::Found;
use super::{Action as Doing, ChartController, Planned};

/// How long the first list of a kind may take before its objects are read one by one.
pub(super) const FIRST_LIST: Duration = Duration::from_secs(5);

/// The right without which what is in `crds/` is left out.
const DEFINE: &str = "create and patch customresourcedefinitions.apiextensions.k8s.io";
/// The right to read a record by itself.
const READ: &str = "get secrets";

impl ChartController {
    /// Renders with the seed that is kept, and with the random texts of the newest revision, once it
    /// turns out that something is generated.
    async fn first_rendered(
        &self,
        work: &mut Work<'_>,
        history: &History,
        facts: &ReleaseFacts,
    ) -> Result<(Rendered, Draw), Stop> {
        let rotation = work.wishes.rotation.clone();
        let draw = self.draw(work.key, &rotation);
        let mut rendered = self.rendered(work, facts, &draw).await?;
        let Some(mut drawn) = rendered.drawn else { return Ok((rendered, draw)) };
        let kept = self.keep_seed(work.key, &work.resource, &work.site, &rotation).await;
        let is_another = kept.map_err(|error| Stop::Stuck {
            stuck: Stuck::Irreconcilable(reasons::RECONCILE_ERROR),
            message: error.to_string(),
            transient: true,
        })?;
        let mut draw = self.draw(work.key, &rotation);
        if is_another {
            rendered = self.rendered(work, facts, &draw).await?;
            drawn = rendered.drawn.unwrap_or(drawn);
        }
        let mark = Mark::new(&self.memory().seed(work.key, &rotation), drawn);
        if let Some(newest) = history.newest()
            && Mark::of(newest).is_none_or(|newest| newest.is_of_rotation(&mark))
        {
            let kept = kept_random_texts(newest, &rendered, fresh_seed());
            if !kept.is_empty() {
                draw = draw.with_overrides(kept);
                rendered = self.rendered(work, facts, &draw).await?;
            }
        }
        work.labels.insert(DRAWN.to_owned(), Some(mark.to_string()));
        work.mark = Some(mark);
        Ok((rendered, draw))
    }

    /// Whether the newest revision is what was rendered, but for what the chart generates anew: then
    /// the difference says nothing, and a restart must not change what was generated.
    ///
    /// Not if it is to be generated anew: another rotation is asked for, or a certificate has come to
    /// two thirds of its life. If it was made of the same seed, nothing but the time makes a difference.
    /// Else, as after a seed was lost, or where another program wrote the revision, what cannot be told
    /// from a change of the chart is left as it is.
    async fn is_same_but_generated(
        &self,
        history: &History,
        work: &Work<'_>,
        facts: &ReleaseFacts,
        (rendered, draw): (&Rendered, &Draw),
    ) -> Result<bool, Stop> {
        let Some(newest) = history.newest() else { return Ok(false) };
        let is_deployed = newest.info.status == Status::Deployed;
        let same_chart = newest.chart_version() == self.chart.metadata().version;
        if !same_chart || !(is_deployed || history.interrupted().is_some()) {
            return Ok(false);
        }
        let other = match (Mark::of(newest), &work.mark) {
            (_, None) => draw.at_another_time(),
            (Some(newest), Some(mark)) if !newest.is_current(mark) => return Ok(false),
            (Some(newest), Some(mark)) if newest.is_of_seed(mark) => draw.at_another_time(),
            _ if newest.config != *work.config => return Ok(false),
            _ => draw.of_another_seed(),
        };
        let other = self.rendered(work, facts, &other).await?;
        Ok(is_same_but_generated(newest, rendered, &other))
    }

    /// Renders, decides and does what is due. After this the release is deployed as the resource says.
    pub(super) async fn drive(
        &self,
        work: &mut Work<'_>,
    ) -> Result<(Applied, Option<Drawn>), Stop> {
        self.check_account(&work.site.namespace).await?;
        let history = self.history(work).await?;
        self.go_on_taking_back(work, &history).await?;
        let chart = &self.chart.metadata().name;
        if history.newest().is_none_or(|newest| newest.chart_name() == chart) {
            // Before anything is rendered, as what the cluster serves is one of a rendering's inputs.
            self.define().await.map_err(|error| self.release_failed(&history, error))?;
        }
        let facts = history.current_facts();
        let (rendered, draw) = self.first_rendered(work, &history, &facts).await?;
        let drawn = rendered.drawn;
        match self.settle(work, &history, &facts, (&rendered, &draw)).await {
            Err(Stop::Until(until)) => Err(Stop::Until(Box::new(until.defined_by(&rendered)))),
            applied => Ok((applied?, drawn)),
        }
    }

    /// Does what is due by what was rendered.
    async fn settle(
        &self,
        work: &Work<'_>,
        history: &History,
        facts: &ReleaseFacts,
        (rendered, draw): (&Rendered, &Draw),
    ) -> Result<Applied, Stop> {
        let desired = self.desired(work, rendered, facts);
        match history.decide(&desired).map_err(|error| self.release_failed(history, error))? {
            Action::Unchanged => self.reapply(history, &desired, work).await,
            Action::Wait { revision, status, retry_after } => Err(Stop::Wait {
                reason: "OperationInProgress".to_owned(),
                message: format!(
                    "a helm command writes revision {revision} ({status:?}); taken over if it does not end"
                ),
                after: self.until_heard(retry_after),
            }),
            Action::RenderAgain(next) => {
                if self.is_same_but_generated(history, work, facts, (rendered, draw)).await? {
                    return self.keep(history, &desired, work).await;
                }
                let rendered = self.rendered(work, &next, draw).await?;
                self.apply(history, &self.desired(work, &rendered, &next), work).await
            }
            Action::Install | Action::Upgrade | Action::Resume => {
                self.apply(history, &desired, work).await
            }
        }
    }

    /// Whether the kind's logic lets a revision begin; one that was begun goes on.
    async fn begin(
        &self,
        history: &History,
        desired: &Desired<'_>,
        work: &Work<'_>,
    ) -> Result<(), Stop> {
        let install = desired.release.is_install;
        let action = if install { Doing::Install } else { Doing::Upgrade };
        let newest = history.newest().filter(|newest| newest.version == desired.release.revision);
        if newest.is_some_and(|newest| newest.info.status.is_pending()) {
            work.cx.begin(action);
            return Ok(());
        }
        let manifest = match &self.setup.logic {
            Some(_) => desired.rendered.manifest_text(),
            None => String::new(),
        };
        let planned = Planned {
            action,
            release: history.name(),
            values: &work.config,
            manifest: &manifest,
            deployed: trusted_deployed(history),
        };
        self.before(work.cx, planned).await?;
        self.tell.overrides(&work.resource, self.overrides.told());
        Ok(())
    }

    /// Takes a Helm operator's owner references off records; who may not does without.
    async fn disown(&self, driver: &Driver, history: History) -> Result<History, ReleaseError> {
        match driver.disown(history.clone()).await {
            Err(ReleaseError::Request(error)) if error.kind.is_forbidden() => {
                let so = format!("records are not kept for an uninstall ({error})");
                self.rights.tell("patch secrets", &so);
                Ok(history)
            }
            disowned => disowned,
        }
    }

    /// Brings the definitions of `crds/`; who may not does without, and says so once. They are the chart's,
    /// whatever a resource says, and of the whole cluster: the operator makes them itself.
    async fn define(&self) -> Result<(), ReleaseError> {
        if self.rights.has(DEFINE) {
            return Ok(());
        }
        match self.requester.own().driver.crds(self.chart.chart()).await {
            Err(ReleaseError::Definition { source_file, source })
                if source.kind.is_forbidden() && self.rights.is_missing(DEFINE) =>
            {
                let so = format!("the chart's are left out ({source_file})");
                self.rights.tell(DEFINE, &so);
                Ok(())
            }
            defined => defined,
        }
    }

    pub(super) async fn history(&self, work: &Work<'_>) -> Result<History, Stop> {
        let _plan = self.tell.phase("plan");
        let found = self.find(&work.driver, work.key, &work.site, &work.owner).await;
        let history = match found {
            Ok(Found { history, is_own: false }) => {
                return Err(super::site::foreign(&history));
            }
            found => found.map(|found| found.history),
        };
        let history = match history {
            // What Helm operators wrote must not be collected before the release is uninstalled.
            Ok(history) if !history.owners().is_empty() => self.disown(&work.driver, history).await,
            history => history,
        };
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
        let is_trusted = history.deployed().is_some_and(|it| history.is_trusted(it.version));
        if let Some(deployed) = history.deployed() {
            let shown =
                if is_trusted { None } else { Some(desired.with_rendered_content(deployed)) };
            let deployed = shown.as_ref().unwrap_or(deployed);
            self.before_known(work.cx, Doing::Repair, history, deployed).await?;
        }
        let _apply = self.tell.phase("apply");
        let mut driver = self.knowing(work);
        if self.dependents.is_some()
            && let Ok(objects) = driver.objects(desired).await
        {
            driver = driver.glimpsing(self.listed(&objects).await);
        }
        let applied = if is_trusted {
            driver.repair(history, Some(&work.owner), &[]).await
        } else {
            driver.confirm(history, desired).await
        };
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

    /// Stays with what was generated for the newest revision, and brings it to its end if it has not come there.
    async fn keep(
        &self,
        history: &History,
        desired: &Desired<'_>,
        work: &Work<'_>,
    ) -> Result<Applied, Stop> {
        if history.interrupted().is_none() {
            return self.reapply(history, desired, work).await;
        }
        self.begin(history, desired, work).await?;
        let driver = self.knowing(work).ways(self.ways(history, work, desired));
        let _apply = self.tell.phase("apply");
        match driver.resume(history, desired).await {
            Ok(applied) => Ok(applied),
            Err(error) => Err(self.take_back(history, error, work).await),
        }
    }

    async fn apply(
        &self,
        history: &History,
        desired: &Desired<'_>,
        work: &Work<'_>,
    ) -> Result<Applied, Stop> {
        self.begin(history, desired, work).await?;
        let driver = self.knowing(work).ways(self.ways(history, work, desired));
        let _apply = self.tell.phase("apply");
        match driver.apply(history, desired).await {
            Ok(applied) => Ok(applied),
            Err(error) => Err(self.take_back(history, error, work).await),
        }
    }

    /// How what is desired is brought about.
    fn ways(&self, history: &History, work: &Work<'_>, desired: &Desired<'_>) -> Ways {
        let install = desired.release.is_install;
        let (doing, ways) = if install {
            (Doing::Install, work.wishes.install())
        } else {
            (Doing::Upgrade, work.wishes.upgrade())
        };
        let skipped = self.rights.has(DEFINE) || self.requester.is_impersonating();
        let crds = if skipped { Definitions::Skip } else { self.crds };
        let until = self.until(history, desired.release.revision);
        let ways = Ways { crds, full_record: self.full_record, until, ..ways };
        self.setup.ways(doing, &work.resource, ways)
    }

    /// When all that a revision waits for has to have happened.
    pub(super) fn until(&self, history: &History, revision: u32) -> Option<Timestamp> {
        let begun = history.revision(revision).filter(|begun| begun.info.status.is_pending());
        let begun = begun.and_then(|begun| begun.info.last_deployed.0);
        begun.unwrap_or_else(Timestamp::now).checked_add(self.setup.timeout?).ok()
    }

    /// A driver that leaves out what the watches show to be as it was left.
    fn knowing(&self, work: &Work<'_>) -> Driver {
        let untouched = self.memory().get_mut(work.key).map(|it| it.untouched(Instant::now()));
        let Some(untouched) = untouched else { return work.driver.clone().unwatched() };
        work.driver.clone().knowing(Arc::new(move |id, hash| {
            let (_, uid) = untouched.get(id).filter(|(wanted, _)| *wanted == hash)?;
            Some(uid.clone())
        }))
    }

    /// Applies objects again that somebody changed or deleted. False if a helm command wrote a
    /// revision meanwhile, or the record: then what they should be has to be found out anew.
    pub(super) async fn repair(&self, work: &Work<'_>, found: &Findings) -> Result<bool, Stop> {
        self.check_account(&work.site.namespace).await?;
        let history = match self.newest_deployed(work).await {
            Some(history) => history,
            None => self.history(work).await?,
        };
        let newest = history.newest().map(|newest| newest.version);
        let known = self.memory().get_mut(work.key).map(|known| known.told.version);
        if newest != known || !history.is_newest_trusted() {
            return Ok(false);
        }
        if let Some(deployed) = history.deployed() {
            self.before_known(work.cx, Doing::Repair, &history, deployed).await?;
        }
        let apply = self.tell.phase("apply");
        let driver = work.driver.clone().lacking(found.gone.iter().cloned());
        let repaired = driver.repair(&history, Some(&work.owner), &found.drifted).await;
        let applied = repaired.map_err(|error| irreconcilable(reasons::RECONCILE_ERROR, &error))?;
        tell_drift(&applied);
        report::log(applied.done, &applied.release);
        self.tell.done(&work.resource, applied.done, &applied.release);
        let left = |object| Left::new(object, |gvk: &GroupVersionKind| self.cache(gvk));
        let looked_at = applied.objects.iter();
        let looked_at = looked_at.filter_map(|object| Some((left(object)?, &object.found)));
        let looked_at = looked_at.collect();
        if let Some(known) = self.memory().get_mut(work.key) {
            known.repaired(looked_at);
        }
        drop(apply);
        self.after(work.cx, work.key, applied.done, &applied.release).await?;
        Ok(true)
    }

    /// The remembered revision's record, if nobody has written another since: cheaper than a LIST, for
    /// which the API server may wait until it is sure of what it has.
    async fn newest_deployed(&self, work: &Work<'_>) -> Option<History> {
        if self.rights.has(READ) {
            return None;
        }
        let known = self.memory().get_mut(work.key).map(|it| (it.release.clone(), it.told.version));
        let ((namespace, name), revision) = known?;
        let _plan = self.tell.phase("plan");
        match work.driver.newest_deployed(&namespace, &name, revision).await {
            Ok(history) => history.inspect(|history| self.records.read(history)),
            Err(ReleaseError::Request(error)) if error.kind.is_forbidden() => {
                self.rights.tell(READ, "a repair lists all records of its release");
                None
            }
            Err(_) => None, // the LIST tells what is wrong
        }
    }

    async fn rendered(
        &self,
        work: &Work<'_>,
        facts: &ReleaseFacts,
        draw: &Draw,
    ) -> Result<Rendered, Stop> {
        let _render = self.tell.phase("render");
        self.render(&work.config, facts, draw.clone()).await.map_err(|trouble| Stop::Stuck {
            transient: trouble.is_transient(),
            message: trouble.to_string(),
            // As operator-sdk, for which rendering is the first step of an install.
            stuck: if work.resource.data.pointer("/status/deployedRelease").is_none() {
                Stuck::ReleaseFailed(reasons::INSTALL_ERROR)
            } else {
                Stuck::Irreconcilable(reasons::RECONCILE_ERROR)
            },
        })
    }

    fn desired<'a>(
        &'a self,
        work: &'a Work<'_>,
        rendered: &'a Rendered,
        facts: &'a ReleaseFacts,
    ) -> Desired<'a> {
        let desired = Desired::new(self.chart.chart(), &work.config, rendered, facts);
        desired.owned_by(&work.owner).labelled(&work.labels)
    }
}

/// The deployed revision, if its record is to be acted on.
pub(super) fn trusted_deployed(history: &History) -> Option<&Release> {
    let deployed = history.deployed().filter(|it| history.is_trusted(it.version));
    deployed.map(|release| &**release)
}

/// Says which fields were put back.
fn tell_drift(applied: &Applied) {
    for object in applied.objects.iter().filter(|object| object.found.is_drift()) {
        tracing::info!(object = %object.id, drift = %object.found, "Repaired drift");
    }
}

fn irreconcilable(reason: &'static str, error: &ReleaseError) -> Stop {
    Stop::Stuck {
        stuck: Stuck::Irreconcilable(reason),
        message: error.to_string(),
        transient: true,
    }
}
