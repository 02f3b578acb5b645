//! The interface between the manager and a controller.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use kube::Api;
use kube::core::DynamicObject;

use super::queue::Key;
use super::writes::Writes;

/// Reconciles the resources of one kind. Chart kinds and native kinds implement it.
pub(crate) trait Controller: Send + Sync + 'static {
    /// Reconciles a resource. The manager calls it for one key at a time, possibly again with nothing
    /// changed: then it must make no request.
    fn reconcile(&self, request: Request) -> BoxFuture<'_, Result<Requeue, Failure>>;

    /// What to do with resources that are not decoded.
    fn unread(&self) -> Unread;

    /// Forgets a resource that does not exist any more.
    fn forget<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, ()>;
}

/// What a controller does with resources of which only the metadata is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unread {
    /// Completes their deletion from the metadata. This condition says that nothing else is done.
    Ends(&'static str),
    /// Nothing: the deletion needs the whole resource, too.
    Waits,
}

/// A resource, as the cache has it.
pub(crate) struct Request {
    /// Its key.
    pub key: Key,
    /// The resource.
    pub object: Arc<DynamicObject>,
    /// The API of the kind, in the namespace of the resource.
    pub api: Api<DynamicObject>,
    /// Records every write to the resource.
    pub writes: Arc<Writes>,
    /// Whether only the reconcile period is the reason.
    pub periodic: bool,
}

/// When a resource is due again after a successful reconcile.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Requeue {
    /// When something changes.
    Never,
    /// After this time, even if nothing changes.
    After(Duration),
    /// After this time, whatever the period of the kind: the resource has a period of its own.
    Period(Duration),
}

impl Requeue {
    /// The same, but not later than after this time.
    pub fn sooner(self, than: Duration) -> Self {
        match self {
            Self::Never => Self::After(than),
            Self::After(delay) => Self::After(delay.min(than)),
            Self::Period(period) => Self::Period(period.min(than)),
        }
    }

    /// The same, with a period of the resource's own; zero means none.
    pub fn within(self, period: Duration) -> Self {
        match self {
            Self::Never | Self::Period(_) => Self::Period(period),
            Self::After(delay) if period.is_zero() => Self::Period(delay),
            Self::After(delay) => Self::Period(delay.min(period)),
        }
    }
}

/// When a resource is due again after a failed reconcile.
#[derive(Debug)]
pub(crate) enum Failure {
    /// After a back-off that grows with every failure in a row: a retry may help.
    Transient(String),
    /// When the resource changes: only that helps.
    Permanent(String),
    /// At once, with the new version: somebody else wrote at the same time.
    Conflict,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Transient(message) | Self::Permanent(message) => f.write_str(message),
            Self::Conflict => f.write_str("the resource was changed by somebody else meanwhile"),
        }
    }
}
