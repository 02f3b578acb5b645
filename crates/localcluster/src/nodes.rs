//! Simulated nodes (kwok plays the kubelet, as `stages.yaml` tells it), and what proves that nodes of
//! either kind are of use.

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Client;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use serde_json::json;

use crate::error::{Error, Result};
use crate::readiness::{POLL, object};

/// How kwok plays the kubelet.
pub(crate) const STAGES: &str = include_str!("stages.yaml");

/// The annotation of a node that kwok is to play.
pub(crate) const SIMULATED: (&str, &str) = ("kwok.x-k8s.io/node", "fake");

/// A label of the simulated nodes, as pods may select by it.
pub(crate) const SIMULATED_LABEL: (&str, &str) = ("type", "kwok");

/// Where the first pod runs: nobody's tests look there.
const FIRST_POD_NAMESPACE: &str = "kube-system";

/// Creates the simulated nodes, with room for whatever a test may want.
pub(crate) async fn create(client: &Client, count: u16) -> Result<()> {
    let nodes: Api<Node> = Api::all(client.clone());
    for number in 0..count {
        let name = format!("node-{number}");
        let (key, value) = SIMULATED;
        let (label, kind) = SIMULATED_LABEL;
        let room =
            json!({"cpu": "64", "memory": "256Gi", "pods": "1000", "ephemeral-storage": "1Ti"});
        let node = object(json!({
            "metadata": {
                "name": name,
                "annotations": {key: value},
                "labels": {
                    "kubernetes.io/hostname": name,
                    "kubernetes.io/os": "linux",
                    "kubernetes.io/arch": "amd64",
                    label: kind,
                },
            },
            "status": {"allocatable": room, "capacity": room},
        }))?;
        nodes
            .create(&PostParams::default(), &node)
            .await
            .map_err(Error::api(format!("create node {name}")))?;
    }
    Ok(())
}

/// Until so many nodes with a label are ready, and nothing keeps pods from them.
pub(crate) async fn ready(client: &Client, label: (&str, &str), count: u16) -> Result<()> {
    let nodes: Api<Node> = Api::all(client.clone());
    let those = ListParams::default().labels(&format!("{}={}", label.0, label.1));
    loop {
        let list = nodes.list(&those).await.map_err(Error::api("list the nodes"))?;
        if list.iter().filter(|node| is_ready(node)).count() >= usize::from(count) {
            return Ok(());
        }
        tokio::time::sleep(POLL).await;
    }
}

fn is_ready(node: &Node) -> bool {
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let tainted = node.spec.as_ref().is_some_and(|spec| spec.taints.iter().flatten().count() > 0);
    !tainted && conditions.into_iter().any(|c| c.type_ == "Ready" && c.status == "True")
}

/// Runs a pod of `image` through admission, scheduler and a node with a label, and takes it away
/// again.
pub(crate) async fn first_pod(client: &Client, label: (&str, &str), image: &str) -> Result<()> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), FIRST_POD_NAMESPACE);
    let name = "localcluster-first-pod";
    let pod = object(json!({
        "metadata": {"name": name},
        "spec": {
            "automountServiceAccountToken": false,
            "nodeSelector": {label.0: label.1},
            "containers": [{"name": "pause", "image": image}],
        },
    }))?;
    pods.create(&PostParams::default(), &pod).await.map_err(Error::api("create the first pod"))?;
    loop {
        let pod = pods.get(name).await.map_err(Error::api("read the first pod"))?;
        let conditions = pod.status.into_iter().filter_map(|status| status.conditions).flatten();
        if conditions.into_iter().any(|c| c.type_ == "Ready" && c.status == "True") {
            break;
        }
        tokio::time::sleep(POLL).await;
    }
    let now = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
    pods.delete(name, &now).await.map_err(Error::api("delete the first pod"))?;
    Ok(())
}
