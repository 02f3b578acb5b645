//! How a pod that runs to its end, as those of Jobs do, has ended.

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;

/// The end of a pod of one container.
#[derive(Clone, Debug, PartialEq)]
pub struct PodResult {
    /// The phase is `Succeeded`, not `Failed`.
    pub is_success: bool,
    /// Of the container; none for a pod that was evicted before it began.
    pub exit_code: Option<i32>,
    /// What the container wrote to its `terminationMessagePath`, or empty: at most 4 KiB.
    pub message: String,
    /// When the container ended; of a pod that does not say so, when it was created.
    pub at: Option<Time>,
}

impl PodResult {
    /// None while the pod has not ended. [`Watches::lists`](super::Watches::lists) keeps whole pods.
    pub fn of(pod: &Pod) -> Option<Self> {
        let status = pod.status.as_ref()?;
        let is_success = match status.phase.as_deref()? {
            "Succeeded" => true,
            "Failed" => false,
            _ => return None,
        };
        let container = status.container_statuses.iter().flatten().next();
        let end = container.and_then(|container| container.state.as_ref()?.terminated.as_ref());
        Some(Self {
            is_success,
            exit_code: end.map(|end| end.exit_code),
            message: end.and_then(|end| end.message.clone()).unwrap_or_default(),
            at: end.and_then(|end| end.finished_at.clone()).or_else(|| pod.creation_timestamp()),
        })
    }
}
