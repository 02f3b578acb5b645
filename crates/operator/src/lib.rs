//! The toolkit: one manager that carries chart kinds and native kinds side by side.
//!
//! ```no_run
//! use catamaran_operator::{Manager, Options};
//! # async fn run(options: Options) -> Result<(), catamaran_operator::ManagerError> {
//! Manager::new("memcached-operator", options)
//!     // .reconciler("MemcachedBackup", MemcachedBackups)   // see `native`
//!     .run()
//!     .await
//! # }
//! ```
//!
//! watches.yaml says which controller reconciles a kind ([`watches`]); [`charts`] is the surface for
//! chart kinds of which it cannot say enough, [`native`] that for reconcilers written in Rust.

pub mod charts;
mod client;
pub mod crds;
mod leader_election;
mod manager;
mod metrics;
mod names;
pub mod native;
mod options;
mod record_key;
mod serve;
pub mod watches;

pub use catamaran_chart::PostRender;
pub use charts::ChartKind;
pub use charts::lookup;
pub use manager::events::Severity;
pub use manager::{Manager, ManagerError};
pub use options::{LimitOptions, LogFormat, LogOptions, Options, arguments, normalised};
