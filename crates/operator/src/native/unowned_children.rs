//! Children where no owner reference can lead: in another namespace than their resource, or in none.
//! They are told by annotations and a label, and deleted by us, which a finalizer leaves us time for.

use std::collections::HashSet;

use catamaran_cluster::apply::Target;
use kube::api::{ListParams, PartialObjectMeta, PropagationPolicy};
use kube::core::{DynamicObject, GroupVersionKind};
use kube::{Api, ResourceExt};

use super::context::MANAGED_BY;
use super::controller::Shared;
use super::{ComponentProgress, Error};

/// Label of such a child, with the uid of its resource.
pub(super) const OWNER: &str = "catamaran.dev/owner-uid";

/// Deletes all such children of a resource; ready when they are gone.
///
/// They are read afresh: nobody deletes what is overlooked here.
pub(super) async fn remove(shared: &Shared, uid: &str) -> Result<ComponentProgress, Error> {
    let selector = format!("{MANAGED_BY}={},{OWNER}={uid}", shared.operator);
    let mut left = Vec::new();
    for (gvk, namespaces) in &shared.owned {
        left.extend(remove_kind(shared, gvk, namespaces, &selector).await?);
    }
    Ok(match left.first() {
        None => ComponentProgress::Ready,
        Some(first) => ComponentProgress::pending(
            "DeletingChildren",
            format!("{first} is being deleted, {} in all", left.len()),
        ),
    })
}

async fn remove_kind(
    shared: &Shared,
    gvk: &GroupVersionKind,
    namespaces: &HashSet<Option<String>>,
    selector: &str,
) -> Result<Vec<Target>, Error> {
    let mapping = match shared.mapper.resolve(gvk).await {
        Ok(mapping) => mapping,
        Err(error) if error.is_no_match() => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let everywhere = HashSet::from([None]);
    let namespaces = if mapping.namespaced { namespaces } else { &everywhere };
    let params = ListParams::default().labels(selector);
    let mut left = Vec::new();
    for namespace in namespaces {
        let client = shared.client.clone();
        let api: Api<PartialObjectMeta<DynamicObject>> = match namespace {
            Some(namespace) => Api::namespaced_with(client, namespace, &mapping.resource),
            None => Api::all_with(client, &mapping.resource),
        };
        for child in api.list_metadata(&params).await? {
            let namespace = child.namespace();
            let target =
                Target { resource: mapping.resource.clone(), namespace, name: child.name_any() };
            if child.metadata.deletion_timestamp.is_none() {
                let uid = child.uid().unwrap_or_default();
                shared.applier.delete(&target, &uid, PropagationPolicy::Background).await?;
            }
            left.push(target);
        }
    }
    Ok(left)
}
