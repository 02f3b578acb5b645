//! Chart kinds configured in code, where watches.yaml ends.
//!
//! ```no_run
//! use catamaran_operator::charts::{Action, ChartKind, Context, Error, Logic, PendingAction, Values};
//! use catamaran_operator::{Manager, ManagerError, Options};
//! use k8s_openapi::api::core::v1::ConfigMap;
//!
//! struct Shops;
//!
//! impl Logic for Shops {
//!     /// From the state of the cluster: a change of the ConfigMap renders again.
//!     async fn values(&self, ctx: &Context<'_>, mut values: Values) -> Result<Values, Error> {
//!         let defaults = ctx.reference::<ConfigMap>(None, "defaults").await?.found()?;
//!         let zone = defaults.data.iter().flatten().find(|(key, _)| *key == "zone");
//!         values.extend(zone.map(|(_, zone)| ("zone".to_owned(), zone.as_str().into())));
//!         Ok(values)
//!     }
//!
//!     /// Sees what is about to be done, and may refuse it.
//!     async fn before(&self, ctx: &Context<'_>, pending: &PendingAction<'_>) -> Result<(), Error> {
//!         match pending.action {
//!             Action::Uninstall if ctx.metadata.labels.iter().flatten().any(|(key, _)| key == "keep") => {
//!                 Err(Error::waiting("Kept", "take the label off first"))
//!             }
//!             _ => Ok(()),
//!         }
//!     }
//! }
//!
//! # async fn run(options: Options) -> Result<(), ManagerError> {
//! let mut manager = Manager::new("shops", options);
//! for watch in manager.watches()? {
//!     let Some(kind) = ChartKind::of(&watch) else { continue };
//!     manager = manager.chart(match kind.name() {
//!         "Shop" => kind.logic(Shops).history(3).max_concurrent_reconciles(2),
//!         _ => kind,
//!     });
//! }
//! manager.run().await
//! # }
//! ```

pub(super) mod calls;
mod config;
mod context;
mod kind;

use std::future::{Future, ready};

use kube::core::DynamicObject;
use serde_json::{Map, Value};

use catamaran_release::Release;
pub(crate) use config::{ChartKindConfig, OnEvent};
pub use context::Context;
pub use kind::ChartKind;

use crate::manager::events::Severity;
use crate::native::{Error, ReconcileTrigger, Reference};

/// The values of a chart.
pub type Values = Map<String, Value>;

/// What a program adds to a chart kind. Every method may be called again and again: state that lives
/// longer than one call is a field of the implementing struct.
///
/// An [`Error::Waiting`] holds the resource back until something wakes it: a change of its own, of what
/// it refers to ([`Context::reference`]), of the release's objects, or the time of [`Context::requeue`]. An
/// [`Error::Permanent`] waits for a change of the resource, an [`Error::Transient`] is tried again with
/// pauses that grow. All of them stand in the resource's conditions.
pub trait Logic: Send + Sync + 'static {
    /// The values that the chart is rendered with, given the spec with the override values over it.
    /// Called in every reconcile: what it asks of [`Context`] costs no request while nothing changed.
    fn values(
        &self,
        _cx: &Context<'_>,
        values: Values,
    ) -> impl Future<Output = Result<Values, Error>> + Send {
        ready(Ok(values))
    }

    /// Sees an action that is due before it begins, and refuses it by an error: then nothing is written.
    /// An action that waits half-way is not asked about again.
    fn before(
        &self,
        _cx: &Context<'_>,
        _planned: &PendingAction<'_>,
    ) -> impl Future<Output = Result<(), Error>> + Send {
        ready(Ok(()))
    }

    /// Sees what became of an action. With an error the resource is not Ready, and this is called again
    /// with the same; a resource that is being deleted is kept until it succeeds. After
    /// [`Outcome::Failed`] an error is only logged. Another process of the operator does not know what an
    /// earlier one still had to tell, but for an uninstall.
    fn after(
        &self,
        _cx: &Context<'_>,
        _action: Action,
        _outcome: Outcome<'_>,
    ) -> impl Future<Output = Result<(), Error>> + Send {
        ready(Ok(()))
    }
}

/// What is done to a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Action {
    /// Its first revision.
    Install,
    /// A later one.
    Upgrade,
    /// Back to the deployed revision, after an upgrade that failed.
    Rollback,
    /// Objects that differ from what the release has are put right; no new revision.
    Repair,
    /// The release goes, as its resource does, or as its install failed.
    Uninstall,
}

/// An action that is due.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct PendingAction<'a> {
    /// Which.
    pub action: Action,
    /// The release's name; its namespace is the resource's.
    pub release: &'a str,
    /// What it is rendered with; for anything but install and upgrade, what it was rendered with.
    pub values: &'a Values,
    /// The objects, as text; for an uninstall those that go. Secrets are among them.
    pub manifest: &'a str,
    /// The revision that is deployed, if this operator has written its record.
    pub deployed: Option<&'a Release>,
}

/// Without values and manifests, in which there may be secrets.
impl std::fmt::Debug for PendingAction<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PendingAction")
            .field("action", &self.action)
            .field("release", &self.release)
            .finish_non_exhaustive()
    }
}

/// What became of an action.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub enum Outcome<'a> {
    /// This revision is deployed.
    Deployed(&'a Release),
    /// There is no release any more.
    Uninstalled,
    /// It failed: why.
    Failed(&'a str),
}

/// Something that is told of a resource in an event.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Event<'a> {
    /// The resource.
    pub resource: &'a DynamicObject,
    /// Whether it is trouble.
    pub severity: Severity,
    /// One CamelCase word.
    pub reason: &'a str,
    /// A sentence.
    pub note: &'a str,
}
