//! Everything that is in a cluster, to be compared with what was there before.

use std::collections::BTreeSet;

use crate::support::{Bench, eventually};

/// Kinds whose objects come and go on their own.
const RESTLESS: [&str; 3] = ["events", "events.events.k8s.io", "componentstatuses"];

/// What a node does in its own time.
const OF_THE_NODE: &str = "Lease kube-node-lease/";

const ONE_LINE: &str =
    r#"jsonpath={range .items[*]}{.kind} {.metadata.namespace}/{.metadata.name}{"\n"}{end}"#;

/// The objects of all kinds in all namespaces.
pub fn everything(bench: &Bench) -> BTreeSet<String> {
    let kinds = bench.kubectl(&["api-resources", "--verbs=list", "--output=name"]);
    let kinds: Vec<_> = kinds.lines().filter(|kind| !RESTLESS.contains(kind)).collect();
    let objects =
        bench.kubectl(&["get", &kinds.join(","), "--all-namespaces", "--output", ONE_LINE]);
    let lines = objects.lines().filter(|line| !line.is_empty() && !line.starts_with(OF_THE_NODE));
    lines.map(str::to_owned).collect()
}

/// Waits until there is nothing but what was there before.
pub async fn nothing_but(bench: &Bench, before: &BTreeSet<String>) {
    eventually("make undeploy leaves nothing", async || {
        let left: Vec<_> = everything(bench).difference(before).cloned().collect();
        if left.is_empty() { Ok(()) } else { Err(format!("left are {left:#?}")) }
    })
    .await;
}
