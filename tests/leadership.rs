//! Several operators, one of which works.

#![allow(clippy::unwrap_used)] // helpers of tests fail as tests do

mod support;

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::{Bench, Operator, becomes, condition, create, eventually, number, patch};

const NAME: &str = "led";

fn candidate(bench: &Bench) -> Operator {
    let mut command = Operator::command(bench.cluster.kubeconfig());
    command
        .args(["--leader-elect", "--leader-election-namespace", bench.namespace.name()])
        .env("WATCH_NAMESPACE", bench.namespace.name());
    Operator::start(command)
}

async fn holder(bench: &Bench) -> Result<String, String> {
    let lease = bench.api("coordination.k8s.io/v1", "Lease").get_opt("memcached-operator").await;
    let lease = lease.map_err(|error| error.to_string())?.ok_or("no lease")?;
    let holder = lease.data.pointer("/spec/holderIdentity").and_then(Value::as_str);
    holder
        .filter(|holder| !holder.is_empty())
        .map(str::to_owned)
        .ok_or_else(|| "nobody holds it".to_owned())
}

async fn leads_another(bench: &Bench, than: &str) -> String {
    eventually("another one leads", async || match holder(bench).await? {
        holder if holder == than => Err(holder),
        holder => Ok(holder),
    })
    .await
}

async fn scales_to(bench: &Bench, size: i64) {
    patch(&bench.backups(), NAME, json!({ "spec": { "size": size } })).await;
    let scaled = |d: &_| number(d, "/spec/replicas") == Some(size);
    becomes(&bench.deployments(), NAME, "scaled", scaled).await;
}

#[tokio::test]
async fn one_leads_the_next_takes_over_and_who_was_frozen_ends() {
    let bench = Bench::shared("leader").await;
    let mut first = candidate(&bench);
    let leader = leads_another(&bench, "").await;
    let mut second = candidate(&bench);
    create(&bench.backups(), "cache.my.domain/v1", "MemcachedBackup", NAME, json!({ "size": 1 }))
        .await;
    becomes(&bench.backups(), NAME, "Ready", |object| condition(object, "Ready") == "True").await;
    eventually("the second stands by", async || {
        if second.log().contains("standing by") { Ok(()) } else { Err(second.log()) }
    })
    .await;
    assert!(!second.log().contains("leading"), "{}", second.log());
    let mut third = candidate(&bench);
    eventually("the third stands by", async || {
        if third.log().contains("standing by") { Ok(()) } else { Err(third.log()) }
    })
    .await;

    // Deleted by hand the lease is still the leader's: it makes it anew, and no other takes it.
    bench.kubectl(&["delete", "lease", "memcached-operator"]);
    let again = eventually("the lease is there again", async || holder(&bench).await).await;
    assert_eq!(again, leader);
    for standby in [&second, &third] {
        assert!(!standby.log().contains("leading"), "{}", standby.log());
    }

    // Ended in good order, the first lets go at once.
    first.signal("-TERM");
    let asked = Instant::now();
    let next = leads_another(&bench, &leader).await;
    let took = asked.elapsed();
    eprintln!("handed over to one of two after {took:?}");
    assert!(took < Duration::from_secs(8), "the lease was released, not waited for");
    assert_eq!(first.ended(Duration::from_secs(10)).await.code(), Some(0));
    scales_to(&bench, 2).await;
    let two_lead = [&second, &third].iter().all(|one| one.log().contains("leading"));
    assert!(!two_lead, "{}\n---\n{}", second.log(), third.log());
    if third.log().contains("leading") {
        std::mem::swap(&mut second, &mut third);
    }

    // Frozen, it loses the lease; woken, it must notice and end instead of working on.
    second.signal("-STOP");
    leads_another(&bench, &next).await;
    scales_to(&bench, 3).await;
    second.signal("-CONT");
    let status = second.ended(Duration::from_secs(20)).await;
    assert_eq!(status.code(), Some(1), "{}", second.log());
    assert!(second.log().contains("leadership was lost"), "{}", second.log());
    scales_to(&bench, 1).await;
}
