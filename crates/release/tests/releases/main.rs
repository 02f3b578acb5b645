//! Releases on a real API server, with the real helm as the other hand.

#![allow(clippy::expect_used, clippy::panic)] // all of it is tests

mod batch;
mod chunks;
mod cli;
mod conflicts;
mod counted;
mod crds;
mod drift;
mod expressions;
mod hooks;
mod kill;
mod logs;
mod model;
mod recorder;
mod support;
