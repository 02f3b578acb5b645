//! What this operator adds to the chart of a Memcached. Without it `watches.yaml` alone would do.

use catamaran_operator::charts::{Action, Context, Error, Logic, PendingAction, Values};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;

/// Annotation: the ConfigMap, in the same namespace, whose `replicaCount` the Memcached follows.
const SIZE_FROM: &str = "cache.my.domain/size-from";
/// Annotation: while it is `true` a deletion does not uninstall.
const PROTECTED: &str = "cache.my.domain/protected";

/// The logic of Memcacheds.
#[derive(Debug)]
pub struct Memcacheds;

impl Logic for Memcacheds {
    /// The size from the cluster's state; a change of the ConfigMap is an upgrade.
    async fn values(&self, ctx: &Context<'_>, mut values: Values) -> Result<Values, Error> {
        if let Some(name) = ctx.annotations().get(SIZE_FROM) {
            let map = ctx.reference::<ConfigMap>(None, name).await?.found()?;
            let size = map.data.as_ref().and_then(|data| data.get("replicaCount")?.parse().ok());
            let size: u32 = size.ok_or_else(|| {
                Error::waiting("NoSize", format!("ConfigMap {name} has no number as replicaCount"))
            })?;
            values.insert("replicaCount".to_owned(), size.into());
        }
        Ok(values)
    }

    async fn before(&self, ctx: &Context<'_>, planned: &PendingAction<'_>) -> Result<(), Error> {
        let is_protected = ctx.annotations().get(PROTECTED).is_some_and(|value| value == "true");
        if planned.action == Action::Uninstall && is_protected {
            let told = format!("annotation {PROTECTED} keeps release {} here", planned.release);
            return Err(Error::waiting("Protected", told));
        }
        Ok(())
    }
}
