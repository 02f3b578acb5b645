//! A release: what Helm remembers of an installed chart, and the only way a chart's objects are
//! written.
//!
//! ```text
//! let driver  = Driver::new(client, mapper);
//! let history = driver.history(namespace, name).await?;          // one LIST
//! let facts   = history.current_facts();                         // render with these to compare
//! let desired = DesiredState::new(&chart, &config, &rendered, &facts).owned_by(&owner);
//! match history.decide(&desired)? {
//!     Action::Unchanged            => {}                          // no request at all
//!     Action::RenderAgain(facts)   => /* render with these, build `desired` anew, decide again */,
//!     Action::Wait { .. }          => /* a helm CLI is at work: come back later */,
//!     Action::Install | Action::Upgrade | Action::Resume => { driver.apply(&history, &desired).await?; }
//! }
//! ```
//!
//! [`History`] and [`History::decide`] are pure. [`Driver::apply`] performs what `decide` says; it
//! can be cancelled, or its process killed, between any two requests: the record in the cluster is
//! enough for the next call to go on, with the same revision.
//!
//! An error whose [`Error::is_transient`] is true leaves the record pending and the next call
//! resumes; after any other the record says `failed`, and why, as Helm would.
//!
//! Nothing ever waits: where a hook is at work, [`Error::Waiting`] says which, and the call is to be
//! made again once its object changed. How far it has come is in the record, see [`plan::hooks`].
//!
//! A record that no Secret can hold is cut into several ([`record::chunks`]); the helm CLI does not see
//! such a release.

#[cfg(test)]
mod fixtures;

pub mod apply;
mod clock;
mod error;
pub mod objects;
pub mod plan;
pub mod record;

pub use apply::{
    ActionOptions, ActionResult, Applied, AppliedObject, ApplyMethod, Cascade, CrdPolicy, Driver,
    Force, Knowledge, NamedOwner, ObjectDrift, Output, OutputHandler, RetainedObject, Scope,
    Snapshots, Tested, Uninstalled, WaitStrategy, WhyKept,
};
pub use clock::Clock;
pub use error::{Error, Waiting};
pub use objects::{CHART_LABEL, ObjectId, Owner, PlannedObject, chart_label};
pub use plan::hooks::{Event, HookReason};
pub use plan::{Action, DesiredState, History};
pub use record::{
    Authenticity, Info, Packed, RecordKeys, RecordOwner, RecordPolicy, Release, Status,
};
