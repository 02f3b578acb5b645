//! What the manager asks of a controller, and what it hears back.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use kube::Api;
use kube::core::DynamicObject;

use super::queue::Key;
use super::writes::Writes;

/// Reconciles the resources of one kind. Implemented once by each kind of controller.
pub(crate) trait Controller: Send + Sync + 'static {
    /// Brings the world closer to what the resource says. Called for one key at a time, possibly again
    /// and again with nothing changed: then it must be free.
    fn reconcile(&self, request: Request) -> BoxFuture<'_, Result<Requeue, Failure>>;

    /// What becomes of resources that are not decoded.
    fn unread(&self) -> Unread;

    /// The resource is gone; whatever is remembered of it can be forgotten.
    fn forget<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, ()>;
}

/// What a controller does for resources of which only the metadata is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unread {
    /// Their deletion comes to its end by what the metadata tells; this condition says that nothing else
    /// is done for them.
    Ends(&'static str),
    /// Nothing: their end needs the whole resource as well.
    Waits,
}

/// One resource, as the cache has it.
pub(crate) struct Request {
    /// Which.
    pub key: Key,
    /// The resource.
    pub object: Arc<DynamicObject>,
    /// The API of its kind, in its namespace.
    pub api: Api<DynamicObject>,
    /// Told of every write to the resource.
    pub writes: Arc<Writes>,
    /// Whether nothing calls for it but that time has passed.
    pub periodic: bool,
}

/// What follows a reconcile that went well.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Requeue {
    /// Nothing until something changes.
    Never,
    /// The same again after this time, even if nothing changes.
    After(Duration),
    /// The same, whatever the period of the kind: the resource has one of its own.
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

    /// The same, with a period of the resource's own; zero is none.
    pub fn within(self, period: Duration) -> Self {
        match self {
            Self::Never | Self::Period(_) => Self::Period(period),
            Self::After(delay) if period.is_zero() => Self::Period(delay),
            Self::After(delay) => Self::Period(delay.min(period)),
        }
    }
}

/// What follows a reconcile that did not.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Another try may help: with a back-off that grows with every failure in a row.
    Transient(String),
    /// Only a change of the resource helps: nothing happens until it comes.
    Permanent(String),
    /// Somebody wrote at the same time: again at once, with what they wrote.
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
