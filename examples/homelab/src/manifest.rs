//! Small helps for what the reconcilers have in common.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use catamaran_operator::native::{Error, Reference, Status};
use k8s_openapi::api::core::v1::Secret;
use kube::core::object::HasStatus;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A manifest as people write it, as the object that it is.
pub(crate) fn object<C: DeserializeOwned>(manifest: Value) -> Result<C, Error> {
    serde_json::from_value(manifest).map_err(|error| Error::Permanent(error.to_string()))
}

/// What one of our own kinds gives: ready by its own word, and not for want of a status.
pub(crate) fn ready<C, F>(reference: Reference<C>) -> Result<Arc<C>, Error>
where
    C: HasStatus<Status = Status<F>> + kube::Resource<DynamicType = ()> + kube::ResourceExt,
{
    let object = reference.ready()?;
    let conditions = object.status().map(|status| status.conditions.as_slice()).unwrap_or_default();
    if conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True") {
        return Ok(object);
    }
    let message = format!("{} \"{}\" was not looked at yet", C::kind(&()), object.name_any());
    Err(Error::waiting("WaitingForDependency", message))
}

/// The text of a key of a Secret.
pub(crate) fn text(secret: &Secret, key: &str) -> Result<String, Error> {
    let name = secret.metadata.name.as_deref().unwrap_or_default();
    let value = secret.data.as_ref().and_then(|data| data.get(key));
    let value = value.ok_or_else(|| {
        Error::waiting("IncompleteSecret", format!("Secret \"{name}\" has no key {key}"))
    })?;
    String::from_utf8(value.0.clone()).map_err(|_| {
        Error::waiting("IncompleteSecret", format!("Secret \"{name}\": {key} is no text"))
    })
}

/// The label by which the pods of a resource are told.
pub(crate) fn labels(name: &str) -> BTreeMap<&'static str, &str> {
    BTreeMap::from([("app", name)])
}

/// So many bytes of a digest, as text.
pub(crate) fn hex(digest: &[u8], bytes: usize) -> String {
    digest.iter().take(bytes).fold(String::new(), |mut text, byte| {
        _ = write!(text, "{byte:02x}");
        text
    })
}
