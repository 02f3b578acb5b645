//! Where charts come from: folders, archives, repositories (index.yaml over HTTP) and registries
//! (OCI), as Helm finds them, with the user's own credentials.
//!
//! What is promised beyond Helm:
//!
//! - credentials go to the server they are for, and to no other: scheme, host and port;
//! - nothing is read without a limit, and nothing is written outside of the caches and the chart;
//! - no error holds a password, a token, or the query of an address.

mod access;
pub mod address;
mod cache;
mod config;
pub mod dependencies;
mod error;
mod files;
mod http;
pub mod index;
mod locate;
mod oci;
mod origin;
mod provenance;
mod settings;

pub use access::Access;
pub use config::{Entry, repositories};
pub use dependencies::Dependencies;
pub use error::{IndexError, RepositoryError};
pub use index::{ChartVersion, Index};
pub use locate::{Finder, Wanted};
pub use provenance::{OpenPgpError, ProvenanceError, verify_signed};
pub use settings::Settings;
