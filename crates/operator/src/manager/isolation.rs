//! Whether people who may create resources of a chart kind have the rights of the operator by that.

use catamaran_cluster::mapper::Mapper;
use catamaran_release::Scope;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::core::GroupVersionKind;
use kube::{Api, Client};

use crate::watches::{KindBackend, Watch, describe};

/// The chart kinds whose releases have neither a scope nor a service account.
pub(super) fn unlimited(watches: &[Watch]) -> Vec<GroupVersionKind> {
    let is_unlimited = |watch: &&Watch| {
        matches!(watch.backend, KindBackend::Chart(_))
            && watch.scope == Scope::Cluster
            && watch.service_account.is_none()
    };
    watches.iter().filter(is_unlimited).map(|watch| watch.gvk.clone()).collect()
}

/// Logs one line that names those of these kinds that are namespaced, if the role of the operator is
/// cluster-wide.
pub(super) async fn log_unlimited(kinds: Vec<GroupVersionKind>, mapper: Mapper, client: Client) {
    let mut namespaced = Vec::new();
    for gvk in kinds {
        if mapper.resolve(&gvk).await.is_ok_and(|mapping| mapping.namespaced) {
            namespaced.push(describe(&gvk));
        }
    }
    if namespaced.is_empty() || !may_create_secrets_everywhere(client).await {
        return;
    }
    tracing::info!(
        kinds = namespaced.join("; "),
        "releases of these kinds are made with the cluster-wide rights of the operator: whoever may create \
         such a resource has them as far as its chart lets values decide; `scope: namespace` or \
         `serviceAccountName` in watches.yaml limits that, see docs/watches.md"
    );
}

/// Records are Secrets: a role without this right is limited to namespaces.
async fn may_create_secrets_everywhere(client: Client) -> bool {
    let attributes = ResourceAttributes {
        verb: Some("create".to_owned()),
        version: Some("v1".to_owned()),
        resource: Some("secrets".to_owned()),
        ..ResourceAttributes::default()
    };
    let spec = SelfSubjectAccessReviewSpec {
        resource_attributes: Some(attributes),
        ..SelfSubjectAccessReviewSpec::default()
    };
    let review = SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() };
    let reviews: Api<SelfSubjectAccessReview> = Api::all(client);
    let answer = reviews.create(&PostParams::default(), &review).await;
    answer.is_ok_and(|answer| answer.status.is_some_and(|status| status.allowed))
}
