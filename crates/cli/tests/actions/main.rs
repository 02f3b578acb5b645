//! `catamaran install` and its kin on a real API server, beside the real helm.

#![allow(clippy::unwrap_used, clippy::panic, clippy::expect_used)] // all of it is tests

mod canary;
mod chains;
mod definitions;
mod hands;
mod interrupted;
mod owned;
mod pod;
mod records;
mod support;
mod twins;
mod waiting;
mod words;
