//! What both hulls need of an API server: which resource a kind is, applying and deleting objects
//! safely, watching them cheaply, telling whether they are ready, and the conditions that say so.
//!
//! This crate knows no Helm.

pub mod apply;
pub mod bounds;
pub mod budget;
pub mod cel;
pub mod conditions;
pub mod culprit;
pub mod drift;
pub mod fields;
pub mod items;
pub mod logs;
pub mod mapper;
pub mod observed;
pub mod readiness;
pub mod redact;
pub mod rights;
pub mod timeouts;
pub mod watch;
