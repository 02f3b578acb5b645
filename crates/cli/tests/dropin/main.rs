//! Projects of operator-sdk's Helm operator, run by `catamaran run` on a real API server.

#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests fail as tests do

mod annotations;
mod conversion;
mod crowd;
mod fleet;
mod labels;
mod leaks;
mod lookups;
mod names;
mod namespaces;
mod projects;
mod quiet;
mod rights;
mod seeds;
mod starts;
mod status;
mod suites;
mod support;
mod takeover;
mod tenants;
mod watched;
