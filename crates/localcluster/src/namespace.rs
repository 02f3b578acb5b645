//! A namespace per test.

use std::fmt;
use std::ops::Deref;

use k8s_openapi::api::core::v1::Namespace as Object;
use kube::api::{Api, PostParams};
use serde_json::json;

use crate::cluster::LocalCluster;
use crate::error::{Error, Result};
use crate::readiness::object;

/// A label's 63 characters, less the hyphen and the five that the API server appends.
const PREFIX_MAX: usize = 57;

/// A namespace that was created for the one who holds it. Reads as its name.
///
/// Holds a lease on its cluster. Deleted some time after it is dropped, and nobody waits for that.
pub struct Namespace {
    name: String,
    cluster: LocalCluster,
}

impl Namespace {
    pub(crate) fn new(name: String, cluster: LocalCluster) -> Self {
        Self { name, cluster }
    }

    /// Creates a namespace whose name begins with `prefix`.
    pub(crate) async fn create(client: &kube::Client, prefix: &str) -> Result<String> {
        let prefix = label(prefix);
        let namespace: Object =
            object(json!({"metadata": {"generateName": format!("{prefix}-")}}))?;
        Api::all(client.clone())
            .create(&PostParams::default(), &namespace)
            .await
            .map_err(Error::api(format!("create a namespace {prefix}-…")))?
            .metadata
            .name
            .ok_or_else(|| Error::Invalid("a namespace was created without a name".into()))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Deref for Namespace {
    type Target = str;

    fn deref(&self) -> &str {
        &self.name
    }
}

impl AsRef<str> for Namespace {
    fn as_ref(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.name)
    }
}

impl fmt::Debug for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Namespace({})", self.name)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        self.cluster.delete_namespace(&self.name);
    }
}

/// What is left of a name if it is to begin a DNS label: a test's name, say, with its underscores.
fn label(prefix: &str) -> String {
    let clean = prefix.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' });
    let clean: String = clean.map(|c| c.to_ascii_lowercase()).collect();
    let clean: String = clean.trim_matches('-').chars().take(PREFIX_MAX).collect();
    match clean.trim_end_matches('-') {
        "" => "test".into(),
        clean => clean.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_becomes_the_beginning_of_a_label() {
        let long = "x".repeat(80);
        for (prefix, expected) in [
            ("scale", "scale"),
            ("Scale::up_and_down", "scale--up-and-down"),
            ("--", "test"),
            ("", "test"),
            (long.as_str(), &long[..PREFIX_MAX]),
        ] {
            assert_eq!(label(prefix), expected, "{prefix}");
        }
    }
}
