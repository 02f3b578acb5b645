//! `make deploy`, for real: the operator as a pod, from its image, beside memcached containers that answer.
//!
//! One story, because each chapter stands on those before. It needs root, Debian's packages and
//! images: `make e2e` has them made, and runs it.

#![allow(clippy::unwrap_used, clippy::panic)] // a helper of tests fails as a test does

mod container;
mod leftovers;
mod memcached;
mod stage;
#[path = "../support/mod.rs"]
mod support;

use std::time::Instant;

use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::ResourceExt;
use kube::api::{DeleteParams, EvictParams, PostParams};
use kube::core::DynamicObject;
use serde_json::{Value, json};

use container::{OPERATOR, Process};
use memcached::Memcached;
use stage::{Manager, SYSTEM, Stage, briefly, container, process};
use support::{
    DEADLINE, apply_file, becomes, condition, eventually, field, number, patch, vanishes,
};

const CHART: &str = "memcached-sample";
const NATIVE: &str = "memcachedbackup-sample";
const CHART_PODS: &str = "app.kubernetes.io/instance=memcached-sample";
const NATIVE_PODS: &str = "app.kubernetes.io/instance=memcachedbackup-sample";

/// The most memory that the operator may ever need, in bytes: half of its limit.
const ENOUGH: u64 = 64 << 20;

#[tokio::test]
#[ignore = "needs root, Debian's packages and images: make e2e"]
async fn the_operator_serves_real_containers() {
    let stage = Stage::up().await;
    stage.tell("a real node is up, and has the images");
    let before = leftovers::everything(&stage.bench);

    deploy(&stage).await;
    both_samples_run(&stage).await;
    a_client_stores_and_reads(&stage).await;
    the_notes_reach_the_user(&stage).await;
    readiness_follows_the_containers(&stage).await;
    a_backup_is_restored(&stage).await;
    the_next_one_takes_over(&stage, "deleted", 4, async |manager| {
        stage.pods(SYSTEM).delete(&manager.pod, &DeleteParams::default()).await.map(drop)
    })
    .await;
    the_next_one_takes_over(&stage, "evicted", 2, async |manager| {
        stage.pods(SYSTEM).evict(&manager.pod, &EvictParams::default()).await.map(drop)
    })
    .await;
    the_next_one_takes_over(&stage, "rolled out anew", 3, async |_| {
        stage.bench.kubectl(&["rollout", "restart", "deployment", "--namespace", SYSTEM]);
        Ok(())
    })
    .await;
    a_limit_is_a_limit(&stage).await;
    undeploy(&stage).await;
    leftovers::nothing_but(&stage.bench, &before).await;
    stage.tell("nothing is left: no namespace, no CRD, no ClusterRole, no object of any kind");
    the_log_reads_well(&stage);
    the_memory_sufficed(&stage);
}

async fn deploy(stage: &Stage) {
    stage.make("deploy");
    let manager = stage.manager().await;
    stage.tell(format!("make deploy: pod {} is ready, under restricted pod security", manager.pod));
}

async fn both_samples_run(stage: &Stage) {
    apply_file(&stage.bench, "config/samples/cache_v1alpha1_memcached.yaml");
    apply_file(&stage.bench, "config/samples/cache_v1_memcachedbackup.yaml");
    let namespace = stage.bench.namespace.name();
    let memcacheds = stage.ready_pods(namespace, CHART_PODS, 3).await.len();
    let backups = stage.ready_pods(namespace, NATIVE_PODS, 2).await.len();
    becomes(&stage.bench.memcacheds(), CHART, "Ready", is_ready).await;
    becomes(&stage.bench.backups(), NATIVE, "Ready", is_ready).await;
    stage.tell(format!(
        "both samples: {memcacheds} memcached and {backups} backup pods run; both are Ready"
    ));
}

async fn a_client_stores_and_reads(stage: &Stage) {
    let service = stage.bench.api("v1", "Service").get(CHART).await.unwrap();
    let address = service.data["spec"]["clusterIP"].as_str().unwrap();
    let address = format!("{address}:{}", service.data["spec"]["ports"][0]["port"]);
    let value = b"what goes in comes out\r\n\0\xff";
    eventually("the Service leads to a memcached that keeps a value", async || {
        // One connection: the next might lead to another pod, which knows nothing of the value.
        let mut client = Memcached::connect(&address).await.map_err(|e| e.to_string())?;
        client.set("key", value).await.map_err(|e| e.to_string())?;
        let found = client.get("key").await.map_err(|e| e.to_string())?;
        if found == value { Ok(()) } else { Err(format!("{found:?}")) }
    })
    .await;
    stage.tell(format!("a client stored a value at Service {address}, and read it again"));
}

async fn the_notes_reach_the_user(stage: &Stage) {
    let resource = stage.bench.memcacheds().get(CHART).await.unwrap();
    let told = field(&resource, "Deployed", "message").trim();
    let service = format!("{CHART}.{}.svc:11211", stage.bench.namespace.name());
    assert!(told.contains(&service), "the notes name the Service's address: {told:?}");
    let notes = stage.bench.helm(&["get", "notes", CHART]);
    assert!(notes.contains(told), "helm shows the same: {told:?} in {notes:?}");
    stage.tell("the chart's notes stand in condition Deployed and in `helm get notes`");
}

async fn readiness_follows_the_containers(stage: &Stage) {
    let pods = stage.ready_pods(stage.bench.namespace.name(), CHART_PODS, 3).await;
    let restarts = |pod| container(pod).map_or(0, |status| status.restart_count);
    let before: i32 = pods.iter().map(restarts).sum();

    let killed = Instant::now();
    process(&pods[0]).kill();
    // A container that is back within a second may be no news, as the status follows once a second. The
    // kubelet starts one that ends again after 10 s.
    again_once_it_is_back(stage, &pods[0]).await.kill();
    let down = becomes(&stage.bench.memcacheds(), CHART, "not Ready", |object| {
        condition(object, "Ready") == "False"
    })
    .await;
    let (reason, message) = (field(&down, "Ready", "reason"), field(&down, "Ready", "message"));
    stage.tell(format!(
        "a container killed: after {:.1} s Ready is False: {reason}: {message}",
        killed.elapsed().as_secs_f64()
    ));
    // The Deployment, or its pod if the kubelet has said meanwhile why it waits.
    let names_the_culprit = message.contains(CHART);
    assert!(!reason.is_empty() && names_the_culprit, "{reason:?}: {message:?}");

    becomes(&stage.bench.memcacheds(), CHART, "Ready again", is_ready).await;
    let pods = stage.ready_pods(stage.bench.namespace.name(), CHART_PODS, 3).await;
    assert_eq!(
        pods.iter().map(restarts).sum::<i32>(),
        before + 2,
        "one container began anew, twice"
    );
    stage.tell(format!("and after {:.1} s it is True again", killed.elapsed().as_secs_f64()));
}

/// The process of a pod's container after its next start.
async fn again_once_it_is_back(stage: &Stage, pod: &Pod) -> Process {
    let restarts = |pod: &Pod| container(pod).map_or(0, |status| status.restart_count);
    let (name, before) = (pod.name_any(), restarts(pod));
    let pods = stage.pods(stage.bench.namespace.name());
    let pod = becomes(&pods, &name, "started again", |pod: &Pod| {
        let is_running = |status: &ContainerStatus| status.state.as_ref()?.running.clone();
        restarts(pod) > before && container(pod).and_then(is_running).is_some()
    })
    .await;
    process(&pod)
}

/// A run of the CronJob, in the operator's own image, upon a real volume; and the way back.
async fn a_backup_is_restored(stage: &Stage) {
    // One server, or nobody knows which of them is read.
    patch(&stage.bench.memcacheds(), CHART, json!({ "spec": { "replicaCount": 1 } })).await;
    let pods = stage.ready_pods(stage.bench.namespace.name(), CHART_PODS, 1).await;
    let address = pods[0].status.as_ref().unwrap().pod_ip.clone().unwrap();
    let address = format!("{address}:11211");
    let mut client = Memcached::connect(&address).await.unwrap();
    for number in 0..100 {
        client.set(&format!("kept-{number}"), b"what was there").await.unwrap();
    }
    let backup = json!({ "host": CHART, "schedule": "0 3 * * *", "storage": { "size": "1Mi" } });
    patch(&stage.bench.backups(), NATIVE, json!({ "spec": { "backup": backup } })).await;
    let cron_job = format!("{NATIVE}-backup");
    becomes(&stage.bench.api("batch/v1", "CronJob"), &cron_job, "there", |_| true).await;
    stage.bench.kubectl(&["create", "job", "now", &format!("--from=cronjob/{cron_job}")]);
    let after = becomes(&stage.bench.backups(), NATIVE, "a backup in its status", |object| {
        let last = &object.data["status"]["lastBackup"];
        last["succeeded"] == true && last["items"].as_i64() >= Some(100)
    })
    .await;
    let last = &after.data["status"]["lastBackup"];
    stage.tell(format!("a run of the CronJob wrote {} items to {}", last["items"], last["file"]));

    process(&pods[0]).kill();
    eventually("memcached has forgotten", async || {
        let mut client = Memcached::connect(&address).await.map_err(|e| e.to_string())?;
        match client.get("kept-7").await {
            Ok(_) => Err("it knows it still".to_owned()),
            Err(error) if error.to_string().starts_with("no value") => Ok(()),
            Err(error) => Err(error.to_string()), // it is not back yet
        }
    })
    .await;
    becomes(&stage.bench.memcacheds(), CHART, "Ready again", is_ready).await;
    let restore = json!({ "spec": { "backup": { "restore": { "backup": last["file"] } } } });
    patch(&stage.bench.backups(), NATIVE, restore).await;
    becomes(&stage.bench.backups(), NATIVE, "a restore in its status", |object| {
        object.data["status"]["lastRestore"]["succeeded"] == true
    })
    .await;
    let mut client = Memcached::connect(&address).await.unwrap();
    assert_eq!(client.get("kept-99").await.unwrap(), b"what was there");
    stage.tell("memcached was killed and has all of it again, from a restore");
    patch(&stage.bench.backups(), NATIVE, json!({ "spec": { "backup": null } })).await;
    vanishes(&stage.bench.api("batch/v1", "CronJob"), &cron_job).await;
    stage.bench.kubectl(&["delete", "job", "now", "--ignore-not-found"]);
}

/// Ends the operator's pod in some way, and sees its successor scale the sample. Two operators never
/// act at once.
async fn the_next_one_takes_over(
    stage: &Stage,
    how: &str,
    replicas: u16,
    end: impl AsyncFnOnce(&Manager) -> kube::Result<()>,
) {
    let old = stage.manager().await;
    stage.take_leave_of(&old);
    end(&old).await.unwrap_or_else(|error| panic!("{how}: {error}"));
    let (ended, begun) = succession(old.process).await;
    let overlap = ended.saturating_duration_since(begun);
    assert!(
        overlap.is_zero() || elects_a_leader(stage).await,
        "{how}: two operators ran at once for {overlap:?}, without a leader"
    );
    let new = stage.manager().await;
    assert_ne!(new.pod, old.pod, "{how}");
    patch(&stage.bench.memcacheds(), CHART, json!({ "spec": { "replicaCount": replicas } })).await;
    stage.ready_pods(stage.bench.namespace.name(), CHART_PODS, replicas.into()).await;
    becomes(&stage.bench.memcacheds(), CHART, "Ready after the scale", |memcached| {
        is_ready(memcached)
            && number(memcached, "/status/observedGeneration") == memcached.metadata.generation
    })
    .await;
    let pause = begun.saturating_duration_since(ended);
    stage.tell(format!(
        "the operator's pod {how}: it ended, after {pause:.2?} the next one began (both ran for {overlap:.2?}), and scaled the sample to {replicas}"
    ));
}

/// When an operator ended, and when its successor began.
async fn succession(old: Process) -> (Instant, Instant) {
    let asked = Instant::now();
    let (mut ended, mut begun) = (None, None);
    while asked.elapsed() < DEADLINE {
        if ended.is_none() && !old.is_alive() {
            ended = Some(Instant::now());
        }
        if begun.is_none() && Process::running(OPERATOR).iter().any(|process| *process != old) {
            begun = Some(Instant::now());
        }
        if let (Some(ended), Some(begun)) = (ended, begun) {
            return (ended, begun);
        }
        briefly().await;
    }
    panic!(
        "not within {DEADLINE:?}: the operator ended: {}, the next one began: {}",
        ended.is_some(),
        begun.is_some()
    );
}

async fn elects_a_leader(stage: &Stage) -> bool {
    let pods = stage.pods(SYSTEM).list(&kube::api::ListParams::default()).await.unwrap();
    let containers = pods.iter().flat_map(|pod| pod.spec.iter().flat_map(|spec| &spec.containers));
    let mut arguments = containers.flat_map(|container| container.args.iter().flatten());
    arguments.any(|argument| argument.starts_with("--leader-elect"))
}

fn the_log_reads_well(stage: &Stage) {
    let log = stage.log();
    let lines: Vec<Value> = log
        .iter()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{line:?}: {e}")))
        .collect();
    for (line, text) in lines.iter().zip(&log) {
        for field in ["timestamp", "level", "message"] {
            assert!(line[field].is_string(), "a log line has a {field}: {text}");
        }
        assert_ne!(line["level"], "ERROR", "nothing went wrong: {text}");
    }
    for told in ["Installed release", "Upgraded release"] {
        let tells = |line: &Value| line["message"] == told && line["release"] == CHART;
        assert!(lines.iter().any(tells), "the log says {told:?}:\n{}", log.join("\n"));
    }
    stage.tell("what the operator's pods have logged, by `kubectl logs`:");
    for line in &log {
        println!("          {line}");
    }
}

/// Else that the operator keeps to its own would prove nothing.
async fn a_limit_is_a_limit(stage: &Stage) {
    let pods = stage.pods(stage.bench.namespace.name());
    let glutton = serde_json::from_value(json!({
        "metadata": { "name": "glutton" },
        "spec": {
            "restartPolicy": "Never",
            "containers": [{
                "name": "memcached",
                "image": "docker.io/library/memcached:1.6",
                "args": ["--memory-limit=1024"],
                "resources": { "limits": { "memory": "64Mi" } },
            }],
        },
    }));
    pods.create(&PostParams::default(), &glutton.unwrap()).await.unwrap();
    let value = vec![b'x'; 512 << 10];
    let reason = eventually("the glutton is killed for its memory", async || {
        let pod = pods.get("glutton").await.map_err(|e| e.to_string())?;
        let now = container(&pod).and_then(|status| status.state.as_ref());
        if let Some(ended) = now.and_then(|state| state.terminated.as_ref()) {
            return Ok((ended.reason.clone().unwrap_or_default(), ended.exit_code));
        }
        let address = pod.status.and_then(|status| status.pod_ip).ok_or("no address yet")?;
        let mut client =
            Memcached::connect(&format!("{address}:11211")).await.map_err(|e| e.to_string())?;
        for number in 0..512 {
            // The end of the connection is what this is about.
            client.set(&number.to_string(), &value).await.map_err(|e| e.to_string())?;
        }
        Err("it keeps 256 MiB within a limit of 64 MiB".to_owned())
    })
    .await;
    assert_eq!(reason, ("OOMKilled".to_owned(), 137));
    pods.delete("glutton", &DeleteParams::default().grace_period(0)).await.unwrap();
    stage.tell("a pod that took more than its limit of 64Mi was OOMKilled (137)");
}

async fn undeploy(stage: &Stage) {
    let manager = stage.manager().await;
    stage.take_leave_of(&manager);
    let begun = Instant::now();
    stage.make("undeploy");
    stage.tell(format!("make undeploy took {:.1} s", begun.elapsed().as_secs_f64()));
}

fn the_memory_sufficed(stage: &Stage) {
    let peak = stage.peak();
    let mebibytes = |bytes: u64| f64::from(u32::try_from(bytes >> 10).unwrap_or(u32::MAX)) / 1024.0;
    stage.tell(format!(
        "the operator's peak: {:.1} MiB resident; its container was charged with {:.1} MiB",
        mebibytes(peak.resident),
        mebibytes(peak.charged)
    ));
    assert!(peak.resident.max(peak.charged) < ENOUGH, "more than 64 MiB: {peak:?}");
}

fn is_ready(object: &DynamicObject) -> bool {
    condition(object, "Ready") == "True"
}
