//! For tests of native reconcilers: a namespace on a real API server, the operator inside of the test
//! with a clock that the test holds, or beside it as a process that the test kills.
//!
//! ```no_run
//! # use catamaran_operator::{Manager, native::Reconciler};
//! # async fn test<R: Reconciler>(machines: R, definitions: Vec<k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition>) {
//! use catamaran_testkit::{Bench, HeldClock};
//!
//! let bench = Bench::new("flips", &definitions).await;
//! let clock = HeldClock::default();
//! let operator = bench.run(|options| {
//!     Manager::native("machines", options).clock(clock.clock()).reconciler("Machine", machines)
//! });
//! clock.advance(std::time::Duration::from_secs(5));
//! operator.stop().await;
//! # }
//! ```
//!
//! It is a crate and no feature of the operator's, as cargo would build the operator once with such a
//! feature and once without.

#![allow(clippy::panic, clippy::unwrap_used, clippy::missing_panics_doc)] // it fails as a test does

mod bench;
mod certificates;
mod chaos;
mod clock;
mod crds;
mod faults;
mod names;
mod probes;
mod process;
mod readme;
mod servers;

pub use bench::{Bench, Running, becomes, eventually, vanishes};
pub use catamaran_localcluster::{ESTABLISHED, Mark};
pub use certificates::{Authority, Identity};
pub use chaos::Dice;
pub use clock::HeldClock;
pub use crds::check_crds;
pub use faults::{RequestFaults, WatchFaults};
pub use names::Names;
pub use probes::Probes;
pub use process::Process;
pub use readme::Readme;
pub use servers::Server;
