//! The finalizer that keeps a resource until its release is uninstalled.

use catamaran_cluster::items::{self, Part};
use kube::api::{Patch, PatchParams};
use kube::core::DynamicObject;
use kube::{Api, ResourceExt};
use serde_json::json;

use crate::manager::controller::Failure;

/// operator-sdk's finalizer: a project of theirs can be taken over, and given back.
const FINALIZER: &str = "helm.sdk.operatorframework.io/uninstall-release";
/// The name that older and hybrid operators gave it: honoured and removed, never added.
const LEGACY: &str = "uninstall-helm-release";

/// Whether one of the two is there.
pub(super) fn is_set(resource: &DynamicObject) -> bool {
    resource.finalizers().iter().any(|name| name == FINALIZER || name == LEGACY)
}

/// Whether the resource is deleted with the wish that what it made stays.
pub(super) fn orphans(resource: &DynamicObject) -> bool {
    resource.finalizers().iter().any(|name| name == "orphan")
}

/// Whether the resource stays after ours are gone.
pub(super) fn has_others(resource: &DynamicObject) -> bool {
    resource.finalizers().iter().any(|name| name != FINALIZER && name != LEGACY)
}

/// Adds ours, before anything is made that would have to be removed; returns the resource as it is then.
pub(super) async fn add(
    api: &Api<DynamicObject>,
    resource: &DynamicObject,
) -> Result<DynamicObject, Failure> {
    let mut finalizers = resource.finalizers().to_vec();
    finalizers.push(FINALIZER.to_owned());
    match patch(api, resource, &finalizers).await {
        Ok(patched) => Ok(patched),
        Err(error) => Err(failure(&error, "add the finalizer to")),
    }
}

/// Removes both; returns the resource as it is then, unless it was gone before.
pub(super) async fn remove(
    api: &Api<DynamicObject>,
    resource: &DynamicObject,
) -> Result<Option<DynamicObject>, Failure> {
    let finalizers: Vec<String> = resource
        .finalizers()
        .iter()
        .filter(|name| *name != FINALIZER && *name != LEGACY)
        .cloned()
        .collect();
    match patch(api, resource, &finalizers).await {
        Ok(patched) => Ok(Some(patched)),
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(None),
        Err(error) => Err(failure(&error, "remove the finalizer from")),
    }
}

/// The resourceVersion is a precondition: a list is replaced as a whole, and others write finalizers too.
async fn patch(
    api: &Api<DynamicObject>,
    resource: &DynamicObject,
    finalizers: &[String],
) -> Result<DynamicObject, kube::Error> {
    let patch = json!({
        "metadata": { "resourceVersion": resource.resource_version(), "finalizers": finalizers },
    });
    let (name, params) = (resource.name_any(), PatchParams::default());
    let patched = items::patch(api, &name, Part::Main, &params, &Patch::Merge(patch)).await?;
    Ok(patched.object)
}

fn failure(error: &kube::Error, what: &str) -> Failure {
    match error {
        kube::Error::Api(status) if status.is_conflict() || status.is_not_found() => {
            Failure::Conflict
        }
        error => Failure::Transient(format!("cannot {what} the resource: {error}")),
    }
}
