//! What is to be done: pure, from records and manifests alone, without a clock or a request.

pub mod crds;
mod decide;
mod generated;
pub mod hooks;
mod observed_state;
mod steps;
pub mod target_revision;
mod uninstall;
pub mod values;

pub use decide::{Action, HELM_CLI_TIMEOUT};
pub(crate) use decide::{DESCRIPTION_PREFIX, check_name};
pub use generated::{another_time, is_same_but_generated, kept_random_texts};
pub use observed_state::{DesiredState, History};
pub use steps::{ApplyMode, Kinds, Manifests, Plan, planned};
pub(crate) use steps::{claimed, resolve, scope_by_crd, target};
pub use target_revision::{ActionKind, TargetRevision};
pub(crate) use uninstall::{NEVER_DEPLOYED, all_objects, all_removals, is_doubtful, uninstalling};
pub use uninstall::{Removal, removals};
