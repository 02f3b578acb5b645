//! A custom resource that is a pod: its containers and volumes are the core API's, the pod is owned,
//! followed, and made anew when it is gone or cannot be changed.

pub mod api;

use catamaran_operator::native::{Action, Context, Error, Only, Reconciler, Watches};
use k8s_openapi::api::core::v1::{Pod, PodSpec};
use kube::ResourceExt;
use kube::core::ObjectMeta;

use api::AlnairPod;

/// Reconciles [`AlnairPod`].
#[derive(Debug)]
pub struct AlnairPods;

impl Reconciler for AlnairPods {
    type Object = AlnairPod;

    fn watches(&self, watches: &mut Watches) {
        // Whole pods, as their status is told in ours; of all pods in the cluster only our own.
        watches.lists::<Pod>(Only::owned());
    }

    async fn reconcile(&self, ctx: &Context<'_, AlnairPod>) -> Result<Action, Error> {
        ctx.component("Pod", ctx.apply_or_recreate(pod(ctx))).await;
        let pods = ctx.list_owned::<Pod>()?;
        let live = pods.iter().find(|pod| pod.name_any() == ctx.name_any());
        let live = live.and_then(|pod| pod.status.clone()).unwrap_or_default();
        ctx.status(|status| {
            status.phase = live.phase;
            status.pod_ip = live.pod_ip;
            status.host_ip = live.host_ip;
        });
        ctx.finish()
    }
}

/// The pod as it shall be.
fn pod(resource: &AlnairPod) -> Pod {
    Pod {
        metadata: ObjectMeta { name: Some(resource.name_any()), ..ObjectMeta::default() },
        spec: Some(PodSpec {
            containers: resource.spec.containers.clone(),
            volumes: resource.spec.volumes.clone(),
            ..PodSpec::default()
        }),
        ..Pod::default()
    }
}
