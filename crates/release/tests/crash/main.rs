//! Every way in which an action can be cut short, and every moment at which somebody else may write:
//! the next run comes to the same end. Against a model of the API server, as there are thousands.

#![allow(clippy::expect_used, clippy::panic)] // all of it is tests

mod ends;
mod fate;
mod stories;
mod strangers;
#[allow(dead_code)] // it is made for a real cluster
#[path = "../releases/support.rs"]
mod support;
mod world;
