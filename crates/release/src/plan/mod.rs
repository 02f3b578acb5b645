//! What is to be done: pure, from records and manifests alone, without a clock or a request.

mod decide;
mod steps;
mod uninstall;
mod view;

pub use decide::{Action, PATIENCE};
pub(crate) use decide::{OURS, check_name};
pub use steps::{How, Kinds, Manifests, Plan, planned};
pub(crate) use steps::{resolve, target};
pub(crate) use uninstall::all_objects;
pub use uninstall::{Removal, removals};
pub use view::{Desired, History};
