//! What chart kinds and native kinds need of an API server: which resource a kind is, applying and deleting objects
//! safely, watching them cheaply, telling whether they are ready, and the conditions that say so.
//!
//! This crate knows no Helm.

pub mod apply;
pub mod bounds;
pub mod budget;
pub mod cel;
pub mod conditions;
pub mod diagnosis;
pub mod drift;
pub mod fields;
pub mod items;
pub mod logs;
pub mod mapper;
pub mod missing_permissions;
pub mod observed;
pub mod readiness;
pub mod redact;
pub mod timeouts;
pub mod watch;
