//! Native kinds: kinds whose reconciler is written in Rust.
//!
//! One trait, one context, one status type:
//!
//! ```ignore
//! impl Reconciler for Backups {
//!     type Object = Backup;
//!     fn watches(&self, watches: &mut Watches) { watches.owns::<Deployment>(); }
//!     async fn reconcile(&self, ctx: &Context<'_, Backup>) -> Result<Action, Error> {
//!         ctx.component("Deployment", ctx.apply(manifest(ctx))).await;   // an error is this component's condition
//!         ctx.finish()                                                 // Ready = all components
//!     }
//! }
//! ```

mod apply;
mod causes;
mod children;
mod claim;
mod clock;
mod context;
mod controller;
mod finalizer;
mod index;
mod names;
mod objects;
mod pod_result;
mod references;
mod secrets;
mod status;
mod trigger;
mod unowned_children;
mod watches;
mod writes;

use std::future::Future;
use std::time::Duration;

use catamaran_cluster::apply::{ApplyError, FailureKind};
use catamaran_cluster::readiness::Readiness;
use kube::Resource;
use kube::core::GroupVersionKind;
use kube::core::object::HasStatus;

pub use catamaran_cluster::watch::ObjectKey;
pub use clock::{Clock, Tick};
pub use context::Context;
pub(crate) use controller::NativeController;
pub use pod_result::PodResult;
pub use references::Reference;
pub(crate) use references::References;
pub use secrets::SecretOnce;
pub use status::{Status, StatusFields};
pub use trigger::ReconcileTrigger;
pub use watches::{Kind, Only, Watches};

/// A kind that a reconciler can be written for: a custom resource with a [`Status`]. Every type that
/// `#[derive(CustomResource)]` generates with `status = "Status<…>"` (through an alias) is one.
pub trait Managed: Kind + HasStatus<Status = Status<Self::Fields>> {
    /// The status fields besides conditions and observedGeneration.
    type Fields: StatusFields;
}

impl<K, F> Managed for K
where
    K: Kind + HasStatus<Status = Status<F>>,
    F: StatusFields,
{
    type Fields = F;
}

/// Reconciles the resources of one native kind. State that lives longer than a reconcile is a field of the
/// implementing struct.
pub trait Reconciler: Send + Sync + 'static {
    /// The kind.
    type Object: Managed;

    /// Declares what else triggers a reconcile: objects that a resource owns, lists or refers to.
    fn watches(&self, _watches: &mut Watches) {}

    /// Compares the observed state with the spec and makes changes. Called repeatedly, also with nothing
    /// changed: then it should make no request, which the methods of [`Context`] ensure.
    fn reconcile(
        &self,
        ctx: &Context<'_, Self::Object>,
    ) -> impl Future<Output = Result<Action, Error>> + Send;

    /// Undoes, when the resource is deleted, what owner references do not: changes outside of Kubernetes.
    /// Implement it (as an `async fn`), and the resource gets a finalizer before its first reconcile, and stays
    /// until this returns [`ComponentProgress::Ready`]. Meanwhile Ready shows what it waits for. It is called
    /// again as `reconcile` would be.
    fn cleanup(
        &self,
        ctx: &Context<'_, Self::Object>,
    ) -> impl Future<Output = Result<ComponentProgress, Error>> + Send {
        ctx.without_cleanup();
        std::future::ready(Ok(ComponentProgress::Ready))
    }
}

/// Group, version and kind of a type.
pub(crate) fn gvk<C: Resource<DynamicType = ()>>() -> GroupVersionKind {
    GroupVersionKind::gvk(&C::group(&()), &C::version(&()), &C::kind(&()))
}

/// When a resource is due again after a reconcile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// When something changes.
    AwaitChange,
    /// After this time, even if nothing changes.
    Requeue(Duration),
}

/// The progress of a component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ComponentProgress {
    /// It is ready.
    Ready,
    /// It is in progress, or stuck. The reason is one CamelCase word, the message a sentence.
    Pending {
        /// For machines.
        reason: String,
        /// For people.
        message: String,
    },
}

impl ComponentProgress {
    /// In progress, or stuck.
    pub fn pending(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Pending { reason: reason.into(), message: message.into() }
    }
}

impl From<Readiness> for ComponentProgress {
    fn from(readiness: Readiness) -> Self {
        match readiness {
            Readiness::Ready => Self::Ready,
            Readiness::Pending { reason, message } | Readiness::Failed { reason, message } => {
                Self::Pending { reason, message }
            }
        }
    }
}

/// Why a component or a reconcile failed, or waits.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Something else has to happen first, and a watch reports it. There is no back-off.
    #[error("{message}")]
    Waiting {
        /// One CamelCase word.
        reason: String,
        /// A sentence.
        message: String,
    },
    /// Only a change of the resource helps.
    #[error("{0}")]
    Permanent(String),
    /// A retry may help.
    #[error("{0}")]
    Transient(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Somebody else wrote at the same time: the resource is requeued with the new version, and no
    /// condition reports it.
    #[error("the object was changed by somebody else meanwhile")]
    Conflict,
}

impl Error {
    /// Something else has to happen first.
    pub fn waiting(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Waiting { reason: reason.into(), message: message.into() }
    }

    /// A retry may help.
    pub fn transient(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Transient(error.into())
    }
}

impl From<kube::Error> for Error {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) if status.is_conflict() => Self::Conflict,
            error => Self::transient(error),
        }
    }
}

impl From<ApplyError> for Error {
    fn from(error: ApplyError) -> Self {
        match error.kind {
            FailureKind::Conflict => Self::Conflict,
            FailureKind::Invalid => Self::Permanent(error.to_string()),
            _ => Self::transient(error),
        }
    }
}

impl From<catamaran_cluster::mapper::MapperError> for Error {
    fn from(error: catamaran_cluster::mapper::MapperError) -> Self {
        Self::transient(error)
    }
}
