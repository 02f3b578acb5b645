//! What charts look up: fetched between two renderings, never from inside one.

use std::sync::Arc;

use catamaran_chart::LookupKey;
use catamaran_cluster::apply::{Applier, ApplyError, Target};
use catamaran_cluster::mapper::{Mapper, MapperError};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};

/// Fetches one lookup: an object, a list where no name is given, `{}` where there is none.
///
/// # Errors
/// A message for people; as with Helm a kind that is not served, or a missing right, fails the rendering.
pub async fn fetch(
    mapper: &Mapper,
    reader: &Applier,
    key: &LookupKey,
) -> Result<Value, LookupError> {
    let (group, version) = key.api_version.split_once('/').unwrap_or(("", &key.api_version));
    let gvk = GroupVersionKind::gvk(group, version, &key.kind);
    let mapping = mapper.resolve(&gvk).await.map_err(|source| failed(key, &source))?;
    let namespace =
        Some(key.namespace.clone()).filter(|name| mapping.namespaced && !name.is_empty());
    if key.name.is_empty() {
        let items = reader
            .list(&mapping.resource, namespace.as_deref().unwrap_or_default(), "")
            .await
            .map_err(|error| LookupError {
                key: key.clone(),
                transient: may_pass(&error),
                message: error.to_string().into(),
            })?;
        return Ok(
            json!({ "apiVersion": key.api_version, "kind": format!("{}List", key.kind), "items": items }),
        );
    }
    let target = Target { resource: mapping.resource, namespace, name: key.name.clone() };
    match reader.get(&target).await {
        Ok(found) => Ok(found.unwrap_or_else(|| json!({}))),
        Err(error) => Err(LookupError {
            key: key.clone(),
            transient: may_pass(&error),
            message: error.to_string().into(),
        }),
    }
}

fn failed(key: &LookupKey, error: &MapperError) -> LookupError {
    LookupError {
        key: key.clone(),
        transient: true, // a kind may come to be served
        message: error.to_string().into(),
    }
}

/// A right may be given, too, and nothing tells of it.
fn may_pass(error: &ApplyError) -> bool {
    error.kind.is_transient() || error.kind.is_forbidden()
}

/// A lookup that could not be answered.
#[derive(Clone, Debug, thiserror::Error)]
#[error("lookup {key}: {message}")]
pub struct LookupError {
    key: LookupKey,
    message: Arc<str>,
    /// Whether trying again may help.
    pub transient: bool,
}
