//! The second hull: kinds whose reconciler is written in Rust.
//!
//! One trait, one context, one status type:
//!
//! ```ignore
//! impl Reconciler for Backups {
//!     type Object = Backup;
//!     fn watches(watches: &mut Watches) { watches.owns::<Deployment>(); }
//!     async fn reconcile(&self, cx: &Cx<'_, Backup>) -> Result<Action, Error> {
//!         cx.component("Deployment", cx.apply(manifest(cx))).await;   // an error is this component's condition
//!         cx.finish()                                                 // Ready = all components
//!     }
//! }
//! ```

mod children;
mod context;
mod controller;
mod status;

use std::fmt::Debug;
use std::future::Future;
use std::time::Duration;

use catamaran_cluster::readiness::Readiness;
use kube::core::object::HasStatus;
use kube::core::{GroupVersionKind, NamespaceResourceScope};
use kube::{Resource, ResourceExt};
use serde::de::DeserializeOwned;

pub use context::Cx;
pub(crate) use controller::NativeController;
pub use status::{Status, StatusFields};

/// A kind that a reconciler can be written for: a namespaced custom resource with a [`Status`].
/// Every type that `#[derive(CustomResource)]` makes with `status = "Status<…>"` (through an alias) is one.
pub trait Managed:
    Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + ResourceExt
    + HasStatus<Status = Status<Self::Fields>>
    + Clone
    + Debug
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
    /// The status fields besides conditions and observedGeneration.
    type Fields: StatusFields;
}

impl<K, F> Managed for K
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + ResourceExt
        + HasStatus<Status = Status<F>>
        + Clone
        + Debug
        + DeserializeOwned
        + Send
        + Sync
        + 'static,
    F: StatusFields,
{
    type Fields = F;
}

/// Reconciles the resources of one native kind. State that lives longer than one reconcile is a field
/// of the implementing struct.
pub trait Reconciler: Send + Sync + 'static {
    /// The kind.
    type Object: Managed;

    /// Declares what else wakes a resource: objects it owns, objects that point to it.
    fn watches(_watches: &mut Watches) {}

    /// Brings the world closer to what the resource says.
    fn reconcile(
        &self,
        cx: &Cx<'_, Self::Object>,
    ) -> impl Future<Output = Result<Action, Error>> + Send;
}

/// The kinds that wake a reconciler, besides its own.
#[derive(Debug, Default)]
pub struct Watches {
    pub(crate) owned: Vec<GroupVersionKind>,
    pub(crate) related: Vec<(GroupVersionKind, String)>,
}

impl Watches {
    /// Objects that [`Cx::apply`] makes: any change of one wakes its owner.
    pub fn owns<C: Resource<DynamicType = ()>>(&mut self) -> &mut Self {
        self.owned.push(gvk::<C>());
        self
    }

    /// Objects that others make for us, such as the pods of an owned Deployment: those with the labels of
    /// `selector` wake the resource that their annotations name (see [`Cx::annotations`]).
    pub fn related<C: Resource<DynamicType = ()>>(&mut self, selector: &str) -> &mut Self {
        self.related.push((gvk::<C>(), selector.to_owned()));
        self
    }
}

/// Group, version and kind of a type.
pub(crate) fn gvk<C: Resource<DynamicType = ()>>() -> GroupVersionKind {
    GroupVersionKind::gvk(&C::group(&()), &C::version(&()), &C::kind(&()))
}

/// What a reconcile asks for when it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing until something changes.
    AwaitChange,
    /// The same again after this time.
    Requeue(Duration),
}

/// How far a component is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It does its work.
    Ready,
    /// It is on its way, or stuck; the reason is one CamelCase word, the message a sentence.
    Pending {
        /// For machines.
        reason: String,
        /// For people.
        message: String,
    },
}

impl From<Readiness> for Progress {
    fn from(readiness: Readiness) -> Self {
        match readiness {
            Readiness::Ready => Self::Ready,
            Readiness::Pending { reason, message } | Readiness::Failed { reason, message } => {
                Self::Pending { reason, message }
            }
        }
    }
}

/// Why a component, or a reconcile, did not get through.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Something else has to happen first; a watch wakes the resource. Never backs off.
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
    /// Another try may help.
    #[error("{0}")]
    Transient(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl From<kube::Error> for Error {
    fn from(error: kube::Error) -> Self {
        Self::Transient(Box::new(error))
    }
}

impl From<catamaran_cluster::apply::ApplyError> for Error {
    fn from(error: catamaran_cluster::apply::ApplyError) -> Self {
        Self::Transient(Box::new(error))
    }
}

impl From<catamaran_cluster::mapper::MapperError> for Error {
    fn from(error: catamaran_cluster::mapper::MapperError) -> Self {
        Self::Transient(Box::new(error))
    }
}
