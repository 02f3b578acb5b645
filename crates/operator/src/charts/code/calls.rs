//! Where a reconcile calls the logic of its kind.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use catamaran_cluster::conditions::reasons;
use catamaran_release::{Done, History, Release};
use futures::FutureExt;
use futures::future::BoxFuture;

use super::super::ChartController;
use super::super::drive::trusted_deployed;
use super::super::reconcile::Stop;
use super::{Action, Cx, Error, Logic, Outcome, Planned, Values};
use crate::manager::queue::Key;

/// [`Logic`] without its type.
pub(crate) trait DynLogic: Send + Sync {
    fn values<'a>(&'a self, cx: &'a Cx<'a>, values: Values)
    -> BoxFuture<'a, Result<Values, Error>>;

    fn before<'a>(
        &'a self,
        cx: &'a Cx<'a>,
        planned: &'a Planned<'a>,
    ) -> BoxFuture<'a, Result<(), Error>>;

    fn after<'a>(
        &'a self,
        cx: &'a Cx<'a>,
        action: Action,
        outcome: Outcome<'a>,
    ) -> BoxFuture<'a, Result<(), Error>>;
}

impl<L: Logic> DynLogic for L {
    fn values<'a>(
        &'a self,
        cx: &'a Cx<'a>,
        values: Values,
    ) -> BoxFuture<'a, Result<Values, Error>> {
        Logic::values(self, cx, values).boxed()
    }

    fn before<'a>(
        &'a self,
        cx: &'a Cx<'a>,
        planned: &'a Planned<'a>,
    ) -> BoxFuture<'a, Result<(), Error>> {
        Logic::before(self, cx, planned).boxed()
    }

    fn after<'a>(
        &'a self,
        cx: &'a Cx<'a>,
        action: Action,
        outcome: Outcome<'a>,
    ) -> BoxFuture<'a, Result<(), Error>> {
        Logic::after(self, cx, action, outcome).boxed()
    }
}

/// Outcomes that the logic has not taken in yet.
#[derive(Debug, Default)]
pub(in super::super) struct Owed(Mutex<HashMap<Key, (Action, Arc<Release>)>>);

impl Owed {
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
        cx: &Cx<'_>,
        values: Values,
    ) -> Result<Values, Stop> {
        let Some(logic) = &self.setup.logic else { return Ok(values) };
        let mapped = logic.values(cx, values).await;
        mapped.map_err(|error| Stop::Refused(reasons::ERROR_GETTING_VALUES, error))
    }

    /// An action is about to begin.
    pub(in super::super) async fn before(
        &self,
        cx: &Cx<'_>,
        planned: Planned<'_>,
    ) -> Result<(), Stop> {
        if let Some(logic) = &self.setup.logic {
            let asked = logic.before(cx, &planned).await;
            asked.map_err(|error| Stop::Refused(reasons::RECONCILE_ERROR, error))?;
        }
        cx.begin(planned.action);
        Ok(())
    }

    /// The same for one that is about a revision that is there.
    pub(in super::super) async fn before_known(
        &self,
        cx: &Cx<'_>,
        action: Action,
        history: &History,
        about: &Release,
    ) -> Result<(), Stop> {
        let deployed = trusted_deployed(history);
        let (values, manifest) = (&about.config, about.manifest.as_str());
        let release = history.name();
        self.before(cx, Planned { action, release, values, manifest, deployed }).await
    }

    /// An action has come to its end.
    pub(in super::super) async fn after(
        &self,
        cx: &Cx<'_>,
        key: &Key,
        done: Done,
        release: &Arc<Release>,
    ) -> Result<(), Stop> {
        let action = match done {
            Done::Installed => Action::Install,
            Done::Upgraded => Action::Upgrade,
            Done::RolledBack => Action::Rollback,
            Done::Repaired => Action::Repair,
            Done::Unchanged => return Ok(()),
        };
        if self.setup.logic.is_none() {
            return Ok(());
        }
        self.owed.put(key, (action, release.clone()));
        self.pay(cx, key).await
    }

    /// Tells the logic what it would not hear, or could not, in an earlier reconcile.
    pub(in super::super) async fn pay(&self, cx: &Cx<'_>, key: &Key) -> Result<(), Stop> {
        let Some(logic) = &self.setup.logic else { return Ok(()) };
        let Some((action, release)) = self.owed.get(key) else { return Ok(()) };
        let heard = logic.after(cx, action, Outcome::Deployed(&release)).await;
        heard.map_err(|error| Stop::Refused(reasons::RECONCILE_ERROR, error))?;
        self.owed.forget(key);
        Ok(())
    }

    /// There is no release any more.
    pub(in super::super) async fn after_uninstall(&self, cx: &Cx<'_>) -> Result<(), Stop> {
        let Some(logic) = &self.setup.logic else { return Ok(()) };
        let heard = logic.after(cx, Action::Uninstall, Outcome::Uninstalled).await;
        heard.map_err(|error| Stop::Refused(reasons::UNINSTALL_ERROR, error))
    }

    /// What was begun has failed.
    pub(in super::super) async fn after_failure(&self, cx: &Cx<'_>, message: &str) {
        let (Some(logic), Some(action)) = (&self.setup.logic, cx.begun()) else { return };
        if let Err(error) = logic.after(cx, action, Outcome::Failed(message)).await {
            tracing::warn!(%error, "the operator's own code failed after a failure");
        }
    }
}
