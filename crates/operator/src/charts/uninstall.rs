//! The end of a resource: its release goes first, then the finalizer.

use std::sync::Arc;

use catamaran_chart::{ReleaseFacts, Rendered};
use catamaran_cluster::apply::FailureKind;
use catamaran_cluster::conditions::reasons;
use catamaran_release::{Desired, Driver, Error as ReleaseError, History, Release, Wait};
use kube::ResourceExt;
use kube::core::DynamicObject;
use serde_json::{Map, Value};

use super::reconcile::{Own, Stop, conclude};
use super::render::Trouble;
use super::report::{self, Stuck};
use super::site::Site;
use super::wait::Until;
use super::wishes::Wishes;
use super::{Action, ChartController, Cx, finalizer};
use crate::manager::controller::{Failure, Next};
use crate::manager::queue::Key;
use crate::manager::status::{Draft, Written};

/// What became of a release whose resource is being deleted.
enum Found {
    /// It is uninstalled; this was its name.
    Uninstalled(String),
    Nothing,
    /// It stays, and so do its objects.
    Orphaned,
    /// The operator's own code does not want it to go (yet).
    Refused(Stop),
}

/// A release that is about to end, as it is rendered now.
struct RenderedNow {
    config: Arc<Map<String, Value>>,
    facts: ReleaseFacts,
    rendered: Rendered,
}

impl RenderedNow {
    fn desired<'a>(&'a self, of: &'a ChartController) -> Desired<'a> {
        Desired::new(of.chart.chart(), &self.config, &self.rendered, &self.facts)
    }
}

impl ChartController {
    /// Uninstalls the release of a resource that is being deleted, then lets the resource go.
    pub(super) async fn uninstall(
        &self,
        own: &Own<'_>,
        cx: &Cx<'_>,
        wishes: &Wishes,
    ) -> Result<Next, Failure> {
        let resource: &DynamicObject = cx;
        let site = self.site(resource);
        let mut draft = Draft::of(resource);
        let ways = self.setup.ways(Action::Uninstall, resource, wishes.uninstall());
        let waits_for_end = ways.wait != Wait::No;
        if let Err(stop) = self.check_account(&site.namespace).await {
            if self.goes_with_namespace(&site.namespace).await {
                return self.leave_to_namespace(own, resource, draft).await;
            }
            return conclude(own, resource, draft, Err(stop)).await;
        }
        let driver = self.driver_for(&self.owner(resource)).ways(ways);
        match self.remove_release(&driver, own.key, cx, &site).await {
            Err(ReleaseError::Waiting(waiting)) => {
                if waits_for_end {
                    tracing::info!("Uninstall wait");
                    tracing::info!("Waiting until all resources are deleted");
                    report::uninstalled(&mut draft, report::UNTIL_GONE);
                }
                let stop = self.wait_for(own.key, Until::told(*waiting)).await;
                self.remember_wait(own.key, resource, &stop);
                conclude(own, resource, draft, Err(stop)).await
            }
            Ok(Found::Refused(stop)) => {
                let requeue = cx.settle(&mut draft);
                let next = conclude(own, resource, draft, Err(stop)).await?;
                Ok(requeue.map_or(next, |requeue| Next::Rest.sooner(requeue)))
            }
            Ok(found) => {
                let is_left = matches!(found, Found::Orphaned);
                match found {
                    Found::Refused(_) => {}
                    Found::Uninstalled(name) => {
                        tracing::info!(release = name, "Uninstalled release");
                        own.tell.uninstalled(resource, &name);
                    }
                    Found::Nothing => {
                        tracing::info!(release = resource.name_any(), "Release not found");
                    }
                    Found::Orphaned => tracing::info!(
                        "Left the release as it is: the resource was deleted with --cascade=orphan"
                    ),
                }
                if !is_left && let Err(stop) = self.after_uninstall(cx).await {
                    let requeue = cx.settle(&mut draft);
                    let next = conclude(own, resource, draft, Err(stop)).await?;
                    return Ok(requeue.map_or(next, |requeue| Next::Rest.sooner(requeue)));
                }
                self.forget_seed(own.key, resource, &site).await;
                self.memory().forget_release(own.key);
                self.let_go(own, resource, draft).await
            }
            Err(ReleaseError::Request(error))
                if error.kind == FailureKind::MissingPermission
                    && self.goes_with_namespace(&site.namespace).await =>
            {
                self.leave_to_namespace(own, resource, draft).await
            }
            Err(error) => {
                let transient = true; // as long as the finalizer is there, the resource waits for us
                self.after_failure(cx, &error.to_string()).await;
                let stuck = Stuck::ReleaseFailed(reasons::UNINSTALL_ERROR);
                let stop = Stop::Stuck { stuck, message: error.to_string(), transient };
                conclude(own, resource, draft, Err(stop)).await
            }
        }
    }

    /// Lets a resource go whose release cannot be uninstalled as its service account any more: what is in
    /// the namespace goes with the namespace.
    async fn leave_to_namespace(
        &self,
        own: &Own<'_>,
        resource: &DynamicObject,
        draft: Draft,
    ) -> Result<Next, Failure> {
        tracing::warn!(
            "The namespace is being deleted, and its service account has no rights any more: the release's \
             objects go with the namespace"
        );
        self.memory().forget_release(own.key);
        self.let_go(own, resource, draft).await
    }

    /// Removes the finalizer; says in the status that the release is gone, if somebody will see it.
    async fn let_go(
        &self,
        own: &Own<'_>,
        resource: &DynamicObject,
        mut draft: Draft,
    ) -> Result<Next, Failure> {
        let mut resource = resource.clone();
        if finalizer::has_others(&resource) {
            report::uninstalled(&mut draft, "");
            match draft.write(own.api, &resource).await {
                Ok(Written::Conflict) => return Err(Failure::Conflict),
                Ok(Written::Changed(written)) => resource = *written,
                Ok(Written::Unchanged | Written::Gone) => {}
                Err(error) => {
                    let told = format!("cannot write the status: {error}");
                    return Err(Failure::Transient(told));
                }
            }
        }
        tracing::info!("Removing finalizer");
        if let Some(patched) = finalizer::remove(own.api, &resource).await? {
            own.writes.note(own.key, &patched);
        }
        Ok(Next::Rest)
    }

    /// The records of the release are gone, perhaps with its namespace: what they told of is found once
    /// more by rendering. What cannot be rendered holds nobody up.
    async fn sweep(
        &self,
        driver: &Driver,
        key: &Key,
        cx: &Cx<'_>,
        history: &History,
    ) -> Result<(), ReleaseError> {
        let Some(rendered_now) = self.rendered_now(key, cx, history.current_facts()).await? else {
            return Ok(());
        };
        let owner = self.owner(cx);
        let swept = match driver.sweep(&rendered_now.desired(self).owned_by(&owner), &owner).await {
            // Nothing of such a manifest was ever sent.
            Err(
                error @ (ReleaseError::Manifest(_)
                | ReleaseError::Object { .. }
                | ReleaseError::OutOfScope { .. }),
            ) => {
                tracing::warn!(%error, "cannot tell what the release had: nothing is looked for");
                return Ok(());
            }
            swept => swept?,
        };
        for object in swept {
            tracing::info!(%object, "Deleted what the release left behind");
        }
        Ok(())
    }

    /// The history by which a release is uninstalled, once the kind's logic lets it go.
    ///
    /// If the newest record is not to be acted on, or cannot be read, the hooks are those of the chart as it
    /// is rendered now: a record of their own says so. If it cannot be rendered, no hook is run.
    pub(super) async fn prepare_uninstall(
        &self,
        driver: &Driver,
        key: &Key,
        cx: &Cx<'_>,
        history: History,
    ) -> Result<Result<History, Stop>, ReleaseError> {
        if history.is_empty() {
            return Ok(Ok(history));
        }
        if history.is_leaving() {
            cx.begin(Action::Uninstall);
            return Ok(Ok(history));
        }
        if history.is_newest_trusted() {
            let allowed = match history.newest() {
                Some(newest) => self.before_known(cx, Action::Uninstall, &history, newest).await,
                None => Ok(()),
            };
            return Ok(allowed.map(|()| history));
        }
        tracing::warn!(
            release = history.name(),
            "the newest record is not authenticated: hooks are those of the chart as it is rendered now"
        );
        let rendered_now = self.rendered_now(key, cx, history.next_facts()).await?;
        let desired = rendered_now.as_ref().map(|rendered_now| rendered_now.desired(self));
        let shown =
            desired.as_ref().map(|desired| desired.with_rendered_content(&Release::default()));
        let shown = shown.unwrap_or_default();
        if let Err(stop) = self.before_known(cx, Action::Uninstall, &history, &shown).await {
            return Ok(Err(stop));
        }
        driver.begin_uninstall(history, desired.as_ref()).await.map(Ok)
    }

    /// What the release would be now; `None` if that cannot be rendered.
    async fn rendered_now(
        &self,
        key: &Key,
        cx: &Cx<'_>,
        facts: ReleaseFacts,
    ) -> Result<Option<RenderedNow>, ReleaseError> {
        let Ok(values) = self.values(cx).await else { return Ok(None) };
        let (config, rotation) = (Arc::new(values), Wishes::of(cx).rotation);
        match self.render(&config, &facts, self.draw(key, &rotation)).await {
            Ok(rendered) => Ok(Some(RenderedNow { config, facts, rendered })),
            Err(Trouble::Discovery(source)) => {
                let object = self.gvk.kind.clone();
                Err(ReleaseError::Mapping { object, source })
            }
            Err(error) => {
                tracing::warn!(%error, "cannot render what the release would be: going on without");
                Ok(None)
            }
        }
    }

    /// Uninstalls the release if it is the resource's and nobody asked for its objects to stay; one that merely has the name of
    /// this resource is not ours to remove.
    async fn remove_release(
        &self,
        driver: &Driver,
        key: &Key,
        cx: &Cx<'_>,
        site: &Site,
    ) -> Result<Found, ReleaseError> {
        let resource: &DynamicObject = cx;
        let owner = self.owner(resource);
        let found = self.find(driver, key, site, &owner).await?;
        if !found.is_own {
            return Ok(Found::Nothing);
        }
        let history = found.history;
        let name = history.name().to_owned();
        if finalizer::orphans(resource) || driver.is_orphaned(&history, &owner).await? {
            return Ok(Found::Orphaned);
        }
        if history.is_empty() {
            self.sweep(driver, key, cx, &history).await?;
        }
        let history = match self.prepare_uninstall(driver, key, cx, history).await? {
            Ok(history) => history,
            Err(stop) => return Ok(Found::Refused(stop)),
        };
        let gone = driver.uninstall_from(history, Some(&owner)).await?;
        for error in &gone.failed_hooks {
            tracing::error!(release = name, error, "Uninstalled although a hook failed");
        }
        Ok(if gone.found { Found::Uninstalled(name) } else { Found::Nothing })
    }
}
