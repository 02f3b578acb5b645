//! The objects of a release: who they are and whose they are.

mod applicable;
mod identity;
mod ownership;

pub(crate) use applicable::make_applicable;
pub use identity::{ObjectId, PlannedObject, RawObject, parse_manifest};
pub(crate) use identity::{id_of, normalised};
pub use ownership::{Owner, decorate, is_kept, ownership_problems};
pub(crate) use ownership::{decorate_hook, policy};
