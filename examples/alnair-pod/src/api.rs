//! `alnair.centaurusinfra.io/v1alpha1`.

#![allow(clippy::duplicated_attributes)] // columns have the same arguments, each its own

use catamaran_operator::native::Status;
use k8s_openapi::api::core::v1::{Container, Volume};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{CustomResource, CustomResourceExt, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The definition of the kind; `make manifests-examples` writes it to config/crd.
pub fn definitions() -> Vec<CustomResourceDefinition> {
    vec![AlnairPod::crd()]
}

/// The status of an [`AlnairPod`].
pub type AlnairPodStatus = Status<AlnairPodFields>;

/// What a pod consists of, in the words of the core API.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "alnair.centaurusinfra.io",
    version = "v1alpha1",
    kind = "AlnairPod",
    doc = "A pod that comes back: made anew when it is gone, or when it cannot be changed.",
    namespaced,
    shortname = "apod",
    status = "AlnairPodStatus",
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].status"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct AlnairPodSpec {
    /// The containers of the pod; at least one.
    #[x_kube(
        merge_strategy = ListMerge::Map(vec!["name".into()]),
        validation = Rule::new("self.size() > 0").message("a pod has at least one container"),
    )]
    pub containers: Vec<Container>,

    /// The volumes that its containers can mount.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    pub volumes: Option<Vec<Volume>>,
}

/// What the status of an [`AlnairPod`] tells besides its conditions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AlnairPodFields {
    /// The pod's phase: Pending, Running, Succeeded, Failed, Unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,

    /// The pod's address.
    #[serde(rename = "podIP", skip_serializing_if = "Option::is_none")]
    pub pod_ip: Option<String>,

    /// The address of the node that the pod is on.
    #[serde(rename = "hostIP", skip_serializing_if = "Option::is_none")]
    pub host_ip: Option<String>,
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    #[test]
    fn the_crds_are_up_to_date() {
        let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/config/crd"));
        catamaran_testkit::check_crds(folder, &super::definitions());
    }
}
