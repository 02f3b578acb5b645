//! A start takes seconds, and what is called ready is. In a program of its own, so that no other test
//! of ours takes its time.

#![allow(clippy::unwrap_used, clippy::panic)] // a test ends by them

mod common;

use std::time::{Duration, Instant};

use catamaran_localcluster::LocalCluster;
use common::{gone, processes_of};
use k8s_openapi::api::core::v1::{Node, Pod, ServiceAccount};
use kube::api::{Api, ListParams};

/// What a warm machine may take.
const LIMIT: Duration = Duration::from_secs(10);

/// A machine may be busy with other things once.
const ATTEMPTS: usize = 3;

#[tokio::test]
async fn a_cluster_is_up_in_seconds_with_nodes_and_accounts_and_without_rests() {
    catamaran_localcluster::tools().unwrap();
    let mut took = Vec::new();
    for _ in 0..ATTEMPTS {
        let begun = Instant::now();
        let cluster = LocalCluster::builder().nodes(3).start().await.unwrap();
        took.push(begun.elapsed());

        // All that follows is asked once: ready means ready.
        let nodes = Api::<Node>::all(cluster.client()).list(&ListParams::default()).await.unwrap();
        assert_eq!(nodes.items.len(), 3);
        let accounts = Api::<ServiceAccount>::namespaced(cluster.client(), "default");
        assert!(accounts.get_opt("default").await.unwrap().is_some());
        let pods = Api::<Pod>::all(cluster.client()).list(&ListParams::default()).await.unwrap();
        assert!(pods.items.is_empty(), "the pod that proved readiness is gone");
        assert!(cluster.version().starts_with("v1."), "{}", cluster.version());

        let folder = cluster.folder().to_owned();
        assert_eq!(processes_of(&folder).len(), 6, "five components and their supervisor");
        cluster.stop().await;
        assert!(processes_of(&folder).is_empty(), "stop() waits to the end");
        gone(&folder).await;
        if took.iter().any(|took| *took < LIMIT) {
            println!("up after {took:.1?}");
            return;
        }
    }
    panic!("never up in {LIMIT:?}: {took:.1?}");
}
