//! The objects of a release: who they are and whose they are.

mod applicable;
mod identity;
mod merge;
mod ownership;

pub(crate) use applicable::{change_of_strategy, is_built_in, make_applicable};
pub use identity::{ObjectId, PlannedObject, RawObject, parse_manifest};
pub(crate) use identity::{id_of, normalised};
pub(crate) use merge::{changed, merged, patched};
pub use ownership::{CHART_LABEL, Owner, chart_label, decorate, is_kept, ownership_problems};
pub(crate) use ownership::{
    Claimed, claimed_owner, decorate_hook, has_owner_of, missing_marks, policy, release_of,
};
