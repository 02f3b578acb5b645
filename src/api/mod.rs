//! The kinds that are written in Rust, by version.

pub mod v1;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

/// The definitions of all kinds of this module; `make manifests` writes them to config/crd/bases.
pub fn definitions() -> Vec<CustomResourceDefinition> {
    vec![v1::MemcachedBackup::crd()]
}
