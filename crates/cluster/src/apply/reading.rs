//! Reading objects: one, or those that a selector names.

use kube::api::{ApiResource, DynamicObject, GetParams, ListParams};
use kube::core::{Request, Resource};
use serde_json::Value;

use super::{Applier, ApplyError, FailureKind, Target, check, path};

impl Applier {
    /// The object as it is now (a quorum read), or `None`.
    pub async fn get(&self, target: &Target) -> Result<Option<Value>, ApplyError> {
        let request = path(target, "get")?.get(&target.name, &GetParams::default());
        match self.send(target, "get", request).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.kind == FailureKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The objects of a resource that carry these labels, from one namespace.
    pub async fn list(
        &self,
        resource: &ApiResource,
        namespace: &str,
        labels: &str,
    ) -> Result<Vec<Value>, ApplyError> {
        self.find(resource, namespace, &ListParams::default().labels(labels)).await
    }

    /// The objects of a resource that `params` selects, from one namespace.
    pub async fn find(
        &self,
        resource: &ApiResource,
        namespace: &str,
        params: &ListParams,
    ) -> Result<Vec<Value>, ApplyError> {
        Ok(self.page(resource, Some(namespace), params).await?.0)
    }

    /// The same from one namespace or from all, as far as one answer goes; and what the next page is asked
    /// for with, if there is more.
    pub async fn page(
        &self,
        resource: &ApiResource,
        namespace: Option<&str>,
        params: &ListParams,
    ) -> Result<(Vec<Value>, Option<String>), ApplyError> {
        let selected = params.label_selector.as_ref().or(params.field_selector.as_ref());
        let target = Target {
            resource: resource.clone(),
            namespace: namespace.map(str::to_owned),
            name: selected.cloned().unwrap_or_default(),
        };
        if let Some(namespace) = namespace {
            check(&target, "list", namespace)?;
        }
        let request = Request::new(DynamicObject::url_path(resource, namespace)).list(params);
        let mut list = self.send(&target, "list", request).await?;
        let token = list.pointer("/metadata/continue").and_then(Value::as_str);
        let token = token.filter(|token| !token.is_empty()).map(str::to_owned);
        match list.get_mut("items").map(Value::take) {
            Some(Value::Array(items)) => Ok((items, token)),
            _ => Ok((Vec::new(), token)),
        }
    }
}
