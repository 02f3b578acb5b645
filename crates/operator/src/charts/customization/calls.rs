//! Where a reconcile calls the logic of its kind.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use catamaran_cluster::conditions::reasons;
use catamaran_release::{ActionResult, History, Release};
use futures::FutureExt;
use futures::future::BoxFuture;

use super::super::ChartController;
use super::super::reconcile::Interruption;
use super::super::revision::trusted_deployed;
use super::{Action, Context, Error, Logic, Outcome, PendingAction, Values};
use crate::manager::queue::Key;

/// [`Logic`] without its type.
pub(crate) trait DynChartHooks: Send + Sync {
    fn values<'a>(
        &'a self,
        ctx: &'a Context<'a>,
        values: Values,
    ) -> BoxFuture<'a, Result<Values, Error>>;

    fn before<'a>(
        &'a self,
        ctx: &'a Context<'a>,
        planned: &'a PendingAction<'a>,
    ) -> BoxFuture<'a, Result<(), Error>>;

    fn after<'a>(
        &'a self,
        ctx: &'a Context<'a>,
        action: Action,
        outcome: Outcome<'a>,
    ) -> BoxFuture<'a, Result<(), Error>>;
}

impl<L: Logic> DynChartHooks for L {
    fn values<'a>(
        &'a self,
        ctx: &'a Context<'a>,
        values: Values,
    ) -> BoxFuture<'a, Result<Values, Error>> {
        Logic::values(self, ctx, values).boxed()
    }

    fn before<'a>(
        &'a self,
        ctx: &'a Context<'a>,
        planned: &'a PendingAction<'a>,
    ) -> BoxFuture<'a, Result<(), Error>> {
        Logic::before(self, ctx, planned).boxed()
    }

    fn after<'a>(
        &'a self,
        ctx: &'a Context<'a>,
        action: Action,
        outcome: Outcome<'a>,
    ) -> BoxFuture<'a, Result<(), Error>> {
        Logic::after(self, ctx, action, outcome).boxed()
    }
}

/// Outcomes that the logic has not taken in yet.
#[derive(Debug, Default)]
pub(in super::super) struct PendingCallbacks(Mutex<HashMap<Key, (Action, Arc<Release>)>>);

impl PendingCallbacks {
    fn get(&self, key: &Key) -> Option<(Action, Arc<Release>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    fn put(&self, key: &Key, owed: (Action, Arc<Release>)) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone(), owed);
    }

    pub fn forget(&self, key: &Key) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}

impl ChartController {
    /// The values of a resource, mapped.
    pub(in super::super) async fn mapped(
        &self,
        ctx: &Context<'_>,
        values: Values,
    ) -> Result<Values, Interruption> {
        let Some(logic) = &self.config.logic else { return Ok(values) };
        let mapped = logic.values(ctx, values).await;
        mapped.map_err(|error| Interruption::RefusedByLogic(reasons::ERROR_GETTING_VALUES, error))
    }

    /// An action is about to begin.
    pub(in super::super) async fn before(
        &self,
        ctx: &Context<'_>,
        planned: PendingAction<'_>,
    ) -> Result<(), Interruption> {
        if let Some(logic) = &self.config.logic {
            let asked = logic.before(ctx, &planned).await;
            asked.map_err(|error| Interruption::RefusedByLogic(reasons::RECONCILE_ERROR, error))?;
        }
        ctx.begin(planned.action);
        Ok(())
    }

    /// The same for one that is about a revision that is there.
    pub(in super::super) async fn before_known(
        &self,
        ctx: &Context<'_>,
        action: Action,
        history: &History,
        about: &Release,
    ) -> Result<(), Interruption> {
        let deployed = trusted_deployed(history);
        let (values, manifest) = (&about.config, about.manifest.as_str());
        let release = history.name();
        self.before(ctx, PendingAction { action, release, values, manifest, deployed }).await
    }

    /// An action has come to its end.
    pub(in super::super) async fn after(
        &self,
        ctx: &Context<'_>,
        key: &Key,
        done: ActionResult,
        release: &Arc<Release>,
    ) -> Result<(), Interruption> {
        let action = match done {
            ActionResult::Installed => Action::Install,
            ActionResult::Upgraded => Action::Upgrade,
            ActionResult::RolledBack => Action::Rollback,
            ActionResult::Repaired => Action::Repair,
            ActionResult::Unchanged => return Ok(()),
        };
        if self.config.logic.is_none() {
            return Ok(());
        }
        self.pending_callbacks.put(key, (action, release.clone()));
        self.run_pending_callbacks(ctx, key).await
    }

    /// Tells the logic what it would not hear, or could not, in an earlier reconcile.
    pub(in super::super) async fn run_pending_callbacks(
        &self,
        ctx: &Context<'_>,
        key: &Key,
    ) -> Result<(), Interruption> {
        let Some(logic) = &self.config.logic else { return Ok(()) };
        let Some((action, release)) = self.pending_callbacks.get(key) else { return Ok(()) };
        let heard = logic.after(ctx, action, Outcome::Deployed(&release)).await;
        heard.map_err(|error| Interruption::RefusedByLogic(reasons::RECONCILE_ERROR, error))?;
        self.pending_callbacks.forget(key);
        Ok(())
    }

    /// There is no release any more.
    pub(in super::super) async fn after_uninstall(
        &self,
        ctx: &Context<'_>,
    ) -> Result<(), Interruption> {
        let Some(logic) = &self.config.logic else { return Ok(()) };
        let heard = logic.after(ctx, Action::Uninstall, Outcome::Uninstalled).await;
        heard.map_err(|error| Interruption::RefusedByLogic(reasons::UNINSTALL_ERROR, error))
    }

    /// What was begun has failed.
    pub(in super::super) async fn after_failure(&self, ctx: &Context<'_>, message: &str) {
        let (Some(logic), Some(action)) = (&self.config.logic, ctx.begun()) else { return };
        if let Err(error) = logic.after(ctx, action, Outcome::Failed(message)).await {
            tracing::warn!(%error, "the operator's own code failed after a failure");
        }
    }
}
