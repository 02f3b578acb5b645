//! The types and reconcilers of the operator, for its two programs: the manager (`main.rs`) and the
//! generator of CRDs (`bin/crdgen.rs`).

pub mod api;
pub mod controllers;
pub mod memcached;
