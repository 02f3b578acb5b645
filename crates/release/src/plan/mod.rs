//! What is to be done: pure, from records and manifests alone, without a clock or a request.

pub mod crds;
mod decide;
mod generated;
pub mod goal;
pub mod hooks;
mod steps;
mod uninstall;
pub mod values;
mod view;

pub use decide::{Action, PATIENCE};
pub(crate) use decide::{OURS, check_name};
pub use generated::{another_time, is_same_but_generated, kept_random_texts};
pub use goal::{Doing, Goal};
pub use steps::{How, Kinds, Manifests, Plan, planned};
pub(crate) use steps::{claimed, resolve, scope_by_crd, target};
pub(crate) use uninstall::{NEVER_DEPLOYED, all_objects, all_removals, is_doubtful, uninstalling};
pub use uninstall::{Removal, removals};
pub use view::{Desired, History};
