//! The deletion of a resource: uninstalls the release, then removes the finalizer.

use std::sync::Arc;

use catamaran_chart::{ReleaseFacts, Rendered};
use catamaran_cluster::apply::FailureKind;
use catamaran_cluster::conditions::reasons;
use catamaran_release::{
    DesiredState, Driver, Error as ReleaseError, History, Release, WaitStrategy,
};
use kube::ResourceExt;
use kube::core::DynamicObject;
use serde_json::{Map, Value};

use super::annotations::ReconcileOptions;
use super::reconcile::{Interruption, StatusTarget, write_status};
use super::release_key::ReleaseKey;
use super::render::{RenderEntropy, RenderFailure};
use super::status::{self, FailureCondition};
use super::wait::WaitCondition;
use super::{Action, ChartController, Context, finalizer};
use crate::manager::controller::{Failure, Requeue};
use crate::manager::queue::Key;
use crate::manager::status::{StatusPatch, Written};

/// The result for the release of a resource that is being deleted.
enum Found {
    /// It is uninstalled; this was its name.
    Uninstalled(String),
    Nothing,
    /// It stays, and so do its objects.
    Orphaned,
    /// The kind's logic does not allow the deletion (yet).
    Refused(Interruption),
}

/// The rendering of a release that is to be uninstalled.
struct RenderedNow {
    config: Arc<Map<String, Value>>,
    facts: ReleaseFacts,
    rendered: Rendered,
}

impl RenderedNow {
    fn desired<'a>(&'a self, of: &'a ChartController) -> DesiredState<'a> {
        DesiredState::new(of.chart.chart(), &self.config, &self.rendered, &self.facts)
    }
}

impl ChartController {
    /// Uninstalls the release of a resource that is being deleted, then removes the finalizer.
    pub(super) async fn uninstall(
        &self,
        target: &StatusTarget<'_>,
        ctx: &Context<'_>,
        reconcile_options: &ReconcileOptions,
    ) -> Result<Requeue, Failure> {
        let resource: &DynamicObject = ctx;
        let site = self.release_key(resource);
        let mut status_patch = StatusPatch::of(resource);
        let action_options =
            self.config.apply_overrides(Action::Uninstall, resource, reconcile_options.uninstall());
        let waits_for_end = action_options.wait != WaitStrategy::No;
        if let Err(interruption) = self.check_account(&site.namespace).await {
            if self.goes_with_namespace(&site.namespace).await {
                return self.leave_to_namespace(target, resource, status_patch).await;
            }
            return write_status(target, resource, status_patch, Err(interruption)).await;
        }
        let driver = self.driver_for_owner(&self.owner(resource)).options(action_options);
        match self.remove_release(&driver, target.key, ctx, &site).await {
            Err(ReleaseError::Waiting(waiting)) => {
                if waits_for_end {
                    tracing::info!("Uninstall wait");
                    tracing::info!("Waiting until all resources are deleted");
                    status::set_uninstalled(&mut status_patch, status::UNTIL_GONE);
                }
                let interruption = self.wait_for(target.key, WaitCondition::told(*waiting)).await;
                self.remember_wait(target.key, resource, &interruption);
                write_status(target, resource, status_patch, Err(interruption)).await
            }
            Ok(Found::Refused(interruption)) => {
                let requeue = ctx.flush_status(&mut status_patch);
                let next = write_status(target, resource, status_patch, Err(interruption)).await?;
                Ok(requeue.map_or(next, |requeue| Requeue::Never.sooner(requeue)))
            }
            Ok(found) => {
                let is_left = matches!(found, Found::Orphaned);
                match found {
                    Found::Refused(_) => {}
                    Found::Uninstalled(name) => {
                        tracing::info!(release = name, "Uninstalled release");
                        target.recorder.uninstalled(resource, &name);
                    }
                    Found::Nothing => {
                        tracing::info!(release = resource.name_any(), "Release not found");
                    }
                    Found::Orphaned => tracing::info!(
                        "Left the release as it is: the resource was deleted with --cascade=orphan"
                    ),
                }
                if !is_left && let Err(interruption) = self.after_uninstall(ctx).await {
                    let requeue = ctx.flush_status(&mut status_patch);
                    let next =
                        write_status(target, resource, status_patch, Err(interruption)).await?;
                    return Ok(requeue.map_or(next, |requeue| Requeue::Never.sooner(requeue)));
                }
                self.forget_seed(target.key, resource, &site).await;
                self.release_cache().forget_release(target.key);
                self.remove_finalizer(target, resource, status_patch).await
            }
            Err(ReleaseError::Request(error))
                if error.kind == FailureKind::MissingPermission
                    && self.goes_with_namespace(&site.namespace).await =>
            {
                self.leave_to_namespace(target, resource, status_patch).await
            }
            Err(error) => {
                let transient = true; // as long as the finalizer is there, the resource waits for us
                self.after_failure(ctx, &error.to_string()).await;
                let failure = FailureCondition::ReleaseFailed(reasons::UNINSTALL_ERROR);
                let interruption =
                    Interruption::Failed { failure, message: error.to_string(), transient };
                write_status(target, resource, status_patch, Err(interruption)).await
            }
        }
    }

    /// Removes the finalizer if the release cannot be uninstalled as its service account any more, because
    /// the namespace, with all its objects, is being deleted.
    async fn leave_to_namespace(
        &self,
        target: &StatusTarget<'_>,
        resource: &DynamicObject,
        status_patch: StatusPatch,
    ) -> Result<Requeue, Failure> {
        tracing::warn!(
            "The namespace is being deleted, and its service account has no rights any more: the release's \
             objects go with the namespace"
        );
        self.release_cache().forget_release(target.key);
        self.remove_finalizer(target, resource, status_patch).await
    }

    /// Removes the finalizer. Reports the uninstall in the status, if the resource stays for others.
    async fn remove_finalizer(
        &self,
        target: &StatusTarget<'_>,
        resource: &DynamicObject,
        mut status_patch: StatusPatch,
    ) -> Result<Requeue, Failure> {
        let mut resource = resource.clone();
        if finalizer::has_others(&resource) {
            status::set_uninstalled(&mut status_patch, "");
            match status_patch.write(target.api, &resource).await {
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
        if let Some(patched) = finalizer::remove(target.api, &resource).await? {
            target.writes.note(target.key, &patched);
        }
        Ok(Requeue::Never)
    }

    /// Deletes objects if the records of the release do not exist any more, perhaps because of its namespace:
    /// a rendering shows which. If it fails, the deletion continues.
    async fn delete_leftovers(
        &self,
        driver: &Driver,
        key: &Key,
        ctx: &Context<'_>,
        history: &History,
    ) -> Result<(), ReleaseError> {
        let Some(rendered_now) = self.rendered_now(key, ctx, history.current_facts()).await? else {
            return Ok(());
        };
        let owner = self.owner(ctx);
        let swept = match driver.sweep(&rendered_now.desired(self).owned_by(&owner), &owner).await {
            // The operator never sent anything of such a manifest.
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

    /// The history for an uninstall, once the kind's logic allows it.
    ///
    /// If the newest record is not trusted, or cannot be read, the hooks are those of a new rendering: a record
    /// of its own describes them. If the rendering fails, no hook runs.
    pub(super) async fn prepare_uninstall(
        &self,
        driver: &Driver,
        key: &Key,
        ctx: &Context<'_>,
        history: History,
    ) -> Result<Result<History, Interruption>, ReleaseError> {
        if history.is_empty() {
            return Ok(Ok(history));
        }
        if history.is_uninstalling() {
            ctx.begin(Action::Uninstall);
            return Ok(Ok(history));
        }
        if history.is_newest_trusted() {
            let allowed = match history.newest() {
                Some(newest) => self.before_known(ctx, Action::Uninstall, &history, newest).await,
                None => Ok(()),
            };
            return Ok(allowed.map(|()| history));
        }
        tracing::warn!(
            release = history.name(),
            "the newest record is not authenticated: hooks are those of the chart as it is rendered now"
        );
        let rendered_now = self.rendered_now(key, ctx, history.next_facts()).await?;
        let desired = rendered_now.as_ref().map(|rendered_now| rendered_now.desired(self));
        let shown =
            desired.as_ref().map(|desired| desired.with_rendered_content(&Release::default()));
        let shown = shown.unwrap_or_default();
        if let Err(interruption) = self.before_known(ctx, Action::Uninstall, &history, &shown).await
        {
            return Ok(Err(interruption));
        }
        driver.begin_uninstall(history, desired.as_ref()).await.map(Ok)
    }

    /// The current rendering of the release; `None` if it fails.
    async fn rendered_now(
        &self,
        key: &Key,
        ctx: &Context<'_>,
        facts: ReleaseFacts,
    ) -> Result<Option<RenderedNow>, ReleaseError> {
        let Ok(values) = self.values(ctx).await else { return Ok(None) };
        let (config, rotation) = (Arc::new(values), ReconcileOptions::of(ctx).rotation);
        let entropy = RenderEntropy::of(&self.release_cache().seed(key, &rotation));
        match self.render(&config, &facts, entropy).await {
            Ok(rendered) => Ok(Some(RenderedNow { config, facts, rendered })),
            Err(RenderFailure::Discovery(source)) => {
                let object = self.gvk.kind.clone();
                Err(ReleaseError::Mapping { object, source })
            }
            Err(error) => {
                tracing::warn!(%error, "cannot render what the release would be: going on without");
                Ok(None)
            }
        }
    }

    /// Uninstalls the release if it belongs to the resource and no annotation keeps its objects. A release
    /// that only has the same name stays.
    async fn remove_release(
        &self,
        driver: &Driver,
        key: &Key,
        ctx: &Context<'_>,
        site: &ReleaseKey,
    ) -> Result<Found, ReleaseError> {
        let resource: &DynamicObject = ctx;
        let owner = self.owner(resource);
        let found = self.load_history(driver, key, site, &owner).await?;
        if !found.is_own {
            return Ok(Found::Nothing);
        }
        let history = found.history;
        let name = history.name().to_owned();
        if finalizer::orphans(resource) || driver.is_orphaned(&history, &owner).await? {
            return Ok(Found::Orphaned);
        }
        if history.is_empty() {
            self.delete_leftovers(driver, key, ctx, &history).await?;
        }
        let history = match self.prepare_uninstall(driver, key, ctx, history).await? {
            Ok(history) => history,
            Err(interruption) => return Ok(Found::Refused(interruption)),
        };
        let gone = driver.uninstall_from(history, Some(&owner)).await?;
        for error in &gone.failed_hooks {
            tracing::error!(release = name, error, "Uninstalled although a hook failed");
        }
        Ok(if gone.found { Found::Uninstalled(name) } else { Found::Nothing })
    }
}
