//! What became of an action.

use std::fmt;
use std::sync::Arc;

use catamaran_cluster::apply::{metadata, metadata_str};
use catamaran_cluster::drift::FieldDrift;
use kube::core::GroupVersionKind;
use serde_json::Value;

use crate::objects::{ObjectId, PlannedObject};
use crate::plan::History;
use crate::record::Release;

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActionResult {
    /// A first revision is deployed.
    Installed,
    /// A later revision is deployed.
    Upgraded,
    /// A later revision is deployed that is what an earlier one was.
    RolledBack,
    /// Objects of the deployed revision had to be applied again.
    Repaired,
    /// Nothing had to be done: nothing was written.
    Unchanged,
}

/// An object as it is after it was applied.
#[derive(Clone)]
pub struct AppliedObject {
    /// Who it is.
    pub id: ObjectId,
    /// Its kind with the version.
    pub gvk: GroupVersionKind,
    /// Its uid.
    pub uid: String,
    /// Its generation, where its kind counts them.
    pub generation: Option<i64>,
    /// Its version.
    pub resource_version: String,
    /// The whole object, as the API server answered. May be a Secret: never log it.
    pub live: Value,
    /// The hash of what was wanted of it, see [`PlannedObject::hash`].
    pub wanted: u64,
    /// How it was found.
    pub found: ObjectDrift,
}

/// How an object was found before it was brought to what it shall be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObjectDrift {
    /// Nobody looked: it was applied, as something else was wanted of it than before.
    Unseen,
    /// As it shall be: nothing was written.
    Same,
    /// It was not there.
    Missing,
    /// These fields were not as they shall be.
    Changed(Vec<FieldDrift>),
}

impl ObjectDrift {
    /// Whether somebody else had changed or deleted the object.
    pub fn is_drift(&self) -> bool {
        matches!(self, Self::Missing | Self::Changed(_))
    }
}

/// What was found, for people.
impl fmt::Display for ObjectDrift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unseen => f.write_str("applied"),
            Self::Same => f.write_str("unchanged"),
            Self::Missing => f.write_str("it was missing"),
            Self::Changed(fields) => {
                for (number, field) in fields.iter().take(TOLD_FIELDS).enumerate() {
                    write!(f, "{}{field}", if number == 0 { "" } else { ", " })?;
                }
                match fields.len().saturating_sub(TOLD_FIELDS) {
                    0 => Ok(()),
                    more => write!(f, " and {more} more"),
                }
            }
        }
    }
}

/// As many fields of one object are told in a line.
const TOLD_FIELDS: usize = 5;

/// Why an object was left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WhyKept {
    /// `helm.sh/resource-policy: keep`.
    Policy,
    /// That annotation has a value that Helm does not know. Helm leaves such objects, too.
    UnknownPolicy(String),
    /// It does not carry this release's ownership metadata (any more).
    NotOurs,
    /// Another object took its name between reading and deleting.
    Replaced,
    /// The API server does not serve its kind any more.
    NoKind,
    /// It may not be read, and no revision that has it was ever deployed.
    Forbidden,
}

/// An object that an earlier revision had and that was left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetainedObject {
    /// Which one.
    pub id: ObjectId,
    /// Why.
    pub why: WhyKept,
}

/// A release after an action.
#[derive(Debug, Clone)]
pub struct Applied {
    /// What was done.
    pub done: ActionResult,
    /// The deployed revision.
    pub release: Arc<Release>,
    /// The history as it is now: no need to read it again.
    pub history: History,
    /// The objects that were looked at or applied.
    pub objects: Vec<AppliedObject>,
    /// The objects that were known to be as they shall be: no request was made for them.
    pub known: Vec<ObjectId>,
    /// The objects that were deleted because this revision does not have them.
    pub removed: Vec<ObjectId>,
    /// The objects that this revision does not have and that were left nevertheless.
    pub kept: Vec<RetainedObject>,
}

/// What is left of a release after it was uninstalled.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Uninstalled {
    /// Whether there was a release.
    pub found: bool,
    /// The objects whose deletion this call asked for, or that were on their way out already. They
    /// may take time to end.
    pub deleted: Vec<ObjectId>,
    /// The objects that were left.
    pub kept: Vec<RetainedObject>,
    /// The hooks that did not run because their namespace was on its way out: nothing can be created
    /// there any more.
    pub skipped_hooks: Vec<ObjectId>,
    /// What the failed hooks of `post-delete` said.
    pub failed_hooks: Vec<String>,
}

/// What became of a release's tests.
#[derive(Debug, Clone)]
pub struct Tested {
    /// The revision, whose hooks tell of their runs.
    pub release: Arc<Release>,
    /// How many tests ran.
    pub ran: usize,
}

/// Without the object, which may be a Secret.
impl fmt::Debug for AppliedObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AppliedObject")
            .field("id", &self.id)
            .field("uid", &self.uid)
            .field("resource_version", &self.resource_version)
            .field("found", &self.found)
            .finish_non_exhaustive()
    }
}

impl AppliedObject {
    pub(super) fn new(object: &PlannedObject, live: Value, found: ObjectDrift) -> Self {
        Self {
            id: object.id.clone(),
            gvk: object.gvk.clone(),
            uid: metadata_str(&live, "uid").to_owned(),
            generation: metadata(&live).get("generation").and_then(Value::as_i64),
            resource_version: metadata_str(&live, "resourceVersion").to_owned(),
            live,
            wanted: object.hash(),
            found,
        }
    }
}
