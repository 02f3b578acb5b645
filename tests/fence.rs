//! Several operators, frozen, killed and woken while they write: at any time one of them writes.

#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests fail as tests do

mod support;

use std::time::{Duration, Instant};

use catamaran_localcluster::{Mark, Request};
use futures::StreamExt;
use kube::api::{ListParams, WatchEvent, WatchParams};
use serde_json::{Value, json};
use support::{Bench, Operator, becomes, condition, create, eventually, mirror};

const LEASE: &str = "memcached-operator";
/// So many that an install goes on for a while.
const OBJECTS: usize = 300;

/// An operator of its own user, so that the audit log tells who wrote.
fn candidate(bench: &Bench, user: &str, chart: &tempfile::TempDir) -> Operator {
    let kubeconfig = bench.cluster.kubeconfig_for(user, &["system:masters"]).unwrap();
    let mut command = Operator::command(&kubeconfig);
    command
        .arg("--watches-file")
        .arg(chart.path().join("watches.yaml"))
        .args(["--leader-elect", "--leader-election-namespace", bench.namespace.name()])
        .env("WATCH_NAMESPACE", bench.namespace.name());
    Operator::start(command)
}

async fn standing_by(operator: &Operator) {
    eventually("it stands by", async || {
        if operator.log().contains("standing by") { Ok(()) } else { Err(operator.log()) }
    })
    .await;
}

async fn holder(bench: &Bench) -> String {
    let lease = bench.api("coordination.k8s.io/v1", "Lease").get_opt(LEASE).await.unwrap();
    let holder = lease.as_ref().and_then(|lease| lease.data.pointer("/spec/holderIdentity"));
    holder.and_then(Value::as_str).unwrap_or_default().to_owned()
}

async fn another_leads(bench: &Bench, than: &str) -> String {
    eventually("another one leads", async || {
        let holder = holder(bench).await;
        if holder.is_empty() || holder == than { Err(holder) } else { Ok(holder) }
    })
    .await
}

/// A release of many objects is asked for; returns as soon as the first of them is there.
async fn begun(bench: &Bench, name: &str) {
    let maps = bench.api("v1", "ConfigMap");
    let version = maps.list(&ListParams::default()).await.unwrap().metadata.resource_version;
    let watch = WatchParams::default();
    let mut events = Box::pin(maps.watch(&watch, &version.unwrap()).await.unwrap());
    let objects: Vec<Value> = (0..OBJECTS)
        .map(|number| {
            json!({ "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": { "name": format!("{name}-{number}") } })
        })
        .collect();
    let spec = json!({ "objects": objects });
    create(&bench.memcacheds(), "cache.my.domain/v1alpha1", "Memcached", name, spec).await;
    while let Some(event) = events.next().await {
        if let WatchEvent::Added(map) = event.unwrap()
            && map.metadata.name.unwrap().starts_with(name)
        {
            return;
        }
    }
    unreachable!("the watch ended");
}

async fn deployed(bench: &Bench, name: &str) {
    let deployed = |object: &_| condition(object, "Deployed") == "True";
    becomes(&bench.memcacheds(), name, "deployed", deployed).await;
}

/// What was written in the namespace, but for the lease, in the order of the answers.
fn writes(bench: &Bench, since: Mark) -> Vec<Request> {
    let is_write = |request: &Request| {
        ["create", "update", "patch", "delete"].contains(&request.verb.as_str())
            && request.namespace == *bench.namespace.name()
            && request.resource != "leases"
            && request.user.starts_with("operator-")
    };
    bench.cluster.audit().since(since).unwrap().into_iter().filter(is_write).collect()
}

/// Freezes an operator in the midst of an install, and says of which; one that came to its end before
/// that tells nothing, and is followed by another.
async fn frozen_halfway(bench: &Bench, operator: &Operator) -> String {
    for attempt in 0..5 {
        let name = format!("frozen-{attempt}");
        let before = bench.cluster.audit().mark().unwrap();
        begun(bench, &name).await;
        operator.signal("-STOP");
        let written = writes(bench, before).iter().filter(|w| w.resource == "configmaps").count();
        if written < OBJECTS {
            return name;
        }
        operator.signal("-CONT");
    }
    panic!("it was always frozen too late to tell anything");
}

#[tokio::test]
async fn whoever_wakes_or_dies_between_two_writes_no_two_write_at_once() {
    let bench = Bench::shared("fence").await;
    let chart = mirror("");
    let start = bench.cluster.audit().mark().unwrap();
    let mut first = candidate(&bench, "operator-a", &chart);
    let leader = another_leads(&bench, "").await;
    let mut second = candidate(&bench, "operator-b", &chart);
    standing_by(&second).await;

    // Frozen in the midst of an install, past the end of its lease.
    let frozen = frozen_halfway(&bench, &first).await;
    let leader = another_leads(&bench, &leader).await;
    let asked = bench.cluster.audit().of_user("operator-b").since(start).unwrap();
    let polls: Vec<_> = asked
        .iter()
        .filter(|request| request.resource == "leases" && request.code < 400)
        .map(|request| request.verb.as_str())
        .collect();
    assert_eq!(polls, ["get", "watch", "get", "update"], "who stands by watches");
    deployed(&bench, &frozen).await;
    let woken = bench.cluster.audit().mark().unwrap();
    first.signal("-CONT");
    assert_eq!(first.ended(Duration::from_secs(20)).await.code(), Some(1), "{}", first.log());
    let late = bench.cluster.audit().of_user("operator-a").since(woken).unwrap();
    let late: Vec<_> =
        late.iter().filter(|r| r.verb != "get" && r.verb != "list" && r.verb != "watch").collect();
    assert!(late.is_empty(), "written by one that no longer leads: {late:#?}");

    // Killed in the midst of the next one.
    let third = candidate(&bench, "operator-c", &chart);
    standing_by(&third).await;
    begun(&bench, "killed").await;
    second.kill();
    let leader = another_leads(&bench, &leader).await;
    deployed(&bench, "killed").await;

    // Ended in the midst of a third: the lease is let go, and what was begun is brought to its end.
    let fourth = candidate(&bench, "operator-d", &chart);
    standing_by(&fourth).await;
    begun(&bench, "ended").await;
    let mut third = third;
    third.signal("-TERM");
    let asked = Instant::now();
    another_leads(&bench, &leader).await;
    eprintln!("handed over in {:?}", asked.elapsed());
    assert_eq!(third.ended(Duration::from_secs(10)).await.code(), Some(0), "{}", third.log());
    deployed(&bench, "ended").await;

    let mut users: Vec<String> =
        writes(&bench, start).into_iter().map(|write| write.user).collect();
    users.dedup();
    assert_eq!(users, ["operator-a", "operator-b", "operator-c", "operator-d"]);
}
