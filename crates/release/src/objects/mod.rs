//! The objects of a release: who they are, whose they are, in which order they come and go.

mod identity;
mod order;
mod ownership;

pub use identity::{ObjectId, PlannedObject, RawObject, parse_manifest};
pub(crate) use identity::{id_of, normalised};
pub use order::uninstall_rank;
pub use ownership::{Owner, decorate, is_kept, ownership_problems};
pub(crate) use ownership::{decorate_hook, policy};
