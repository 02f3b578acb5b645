//! The record of a revision: Helm's Secret, read and written so that the helm CLI takes it as its own.

pub mod authenticity;
pub mod batch;
pub mod chunks;
pub mod codec;
pub mod model;
pub mod store;

pub use authenticity::{Authenticity, RecordKeys, RecordOwner, RecordPolicy};
pub use batch::Packed;
pub use codec::CodecError;
pub use model::{Hook, HookRun, Info, Release, Status, Time};
pub use store::{Store, Stored};
