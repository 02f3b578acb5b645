//! Single changes of live objects: patch, create, delete; all with preconditions, so that nothing that
//! somebody else wrote meanwhile is lost.

use std::time::Duration;

use catamaran_cluster::apply::{Deletion, Target};
use catamaran_cluster::items::{self, Item, Part};
use catamaran_cluster::watch::ObjectKey;
use kube::Api;
use kube::api::{Patch, PatchParams, PropagationPolicy};
use kube::core::DynamicObject;
use serde_json::{Value, json};

use super::context::Context;
use super::watches::Kind;
use super::{Error, Managed, gvk};

/// No single request takes longer.
const TIMEOUT: Duration = Duration::from_secs(30);

impl<K: Managed> Context<'_, K> {
    /// Changes an object, this resource's own spec included, by a JSON merge patch, provided that it is
    /// as `object` says: [`Error::Conflict`] otherwise, which is no failure but another reconcile.
    ///
    /// # Errors
    /// What the API server refuses.
    pub async fn patch<C: Kind>(&self, object: &C, patch: Value) -> Result<C, Error> {
        decode(self.patch_part(object, patch, Part::Main).await?)
    }

    /// The same for the status of an object whose status nobody else writes. This resource's own is
    /// [`Context::status`].
    ///
    /// # Errors
    /// What the API server refuses.
    pub async fn patch_status<C: Kind>(&self, object: &C, status: Value) -> Result<C, Error> {
        decode(self.patch_part(object, json!({ "status": status }), Part::Status).await?)
    }

    /// Deletes an object if it is still the same one; that it is gone already is fine.
    ///
    /// # Errors
    /// What the API server refuses.
    pub async fn delete<C: Kind>(&self, object: &C) -> Result<(), Error> {
        let meta = object.meta();
        let target = self.target::<C>(meta.namespace.clone(), object.name_any()).await?;
        let uid = meta.uid.clone().unwrap_or_default();
        let shared = self.shared();
        let deleted = shared.applier.delete(&target, &uid, PropagationPolicy::Background).await?;
        if deleted != Deletion::Replaced
            && let Some(stored) = shared.stored::<C>()
        {
            stored.deleted(&ObjectKey::of(meta), &uid);
        }
        Ok(())
    }

    async fn patch_part<C: Kind>(
        &self,
        object: &C,
        mut patch: Value,
        part: Part,
    ) -> Result<DynamicObject, Error> {
        let meta = object.meta();
        let is_self = gvk::<C>() == gvk::<K>() && meta.uid.is_some() && meta.uid == self.meta().uid;
        let version = if is_self { self.version() } else { meta.resource_version.clone() };
        if let Some(fields) = patch.as_object_mut() {
            let metadata = fields.entry("metadata").or_insert_with(|| json!({}));
            if let Some(metadata) = metadata.as_object_mut() {
                metadata.insert("resourceVersion".to_owned(), version.into());
                metadata.insert("uid".to_owned(), meta.uid.clone().into());
            }
        }
        let target = self.target::<C>(meta.namespace.clone(), object.name_any()).await?;
        let written = self.send_patch(&target, &patch, part).await?;
        if is_self {
            self.wrote_self(&written);
        }
        if let Some(stored) = self.shared().stored::<C>() {
            stored.wrote(&written);
        }
        Ok(written)
    }

    async fn send_patch(
        &self,
        target: &Target,
        patch: &Value,
        part: Part,
    ) -> Result<DynamicObject, Error> {
        let client = self.client().clone();
        let api: Api<DynamicObject> = match &target.namespace {
            Some(namespace) => Api::namespaced_with(client, namespace, &target.resource),
            None => Api::all_with(client, &target.resource),
        };
        let params = PatchParams {
            field_manager: Some(self.shared().operator.clone()),
            ..PatchParams::default()
        };
        let patch = Patch::Merge(patch);
        let sent = items::patch(&api, &target.name, part, &params, &patch);
        match tokio::time::timeout(TIMEOUT, sent).await {
            Ok(answer) => match answer? {
                Item { object, refusal: None, .. } => Ok(object),
                Item { refusal: Some(refusal), .. } => {
                    Err(Error::Permanent(format!("{target}: {refusal}")))
                }
            },
            Err(_) => Err(Error::transient(format!("no answer within {TIMEOUT:?} about {target}"))),
        }
    }

    /// Where an object of a kind is.
    pub(super) async fn target<C: kube::Resource<DynamicType = ()>>(
        &self,
        namespace: Option<String>,
        name: String,
    ) -> Result<Target, Error> {
        let mapping = self.shared().resolve(&gvk::<C>(), self.key()).await?;
        let namespace = namespace.filter(|_| mapping.namespaced);
        Ok(Target { resource: mapping.resource, namespace, name })
    }
}

fn decode<C: Kind>(object: DynamicObject) -> Result<C, Error> {
    serde_json::to_value(object).and_then(serde_json::from_value).map_err(Error::transient)
}
