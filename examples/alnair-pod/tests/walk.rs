//! A pod that comes back, on a real API server.

#![allow(clippy::unwrap_used)] // helpers of tests fail as tests do

use std::path::Path;
use std::time::Duration;

use alnair_pod::AlnairPods;
use alnair_pod::api::{AlnairPod, definitions};
use catamaran_operator::Manager;
use catamaran_testkit::{Bench, Dice, Running, becomes, eventually, vanishes};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

const SAMPLE: &str = "alnairpod-sample";
const NOW: DeleteParams = DeleteParams {
    grace_period_seconds: Some(0),
    dry_run: false,
    propagation_policy: None,
    preconditions: None,
};

struct Walk {
    bench: Bench,
    resources: Api<AlnairPod>,
    pods: Api<Pod>,
}

impl Walk {
    async fn new(name: &str) -> Self {
        let bench = Bench::new(name, &definitions()).await;
        let (resources, pods) = (bench.api(), bench.api());
        Self { bench, resources, pods }
    }

    fn operator(&self) -> Running {
        self.bench.run(|options| {
            Manager::native("alnair-pod", options).reconciler("AlnairPod", AlnairPods)
        })
    }

    fn apply_sample(&self) {
        let file =
            concat!(env!("CARGO_MANIFEST_DIR"), "/config/samples/alnair_v1alpha1_alnairpod.yaml");
        self.bench.kubectl(&["apply", "-f", file]);
    }

    async fn patch(&self, patch: Value) {
        let params = PatchParams::default();
        self.resources.patch(SAMPLE, &params, &Patch::Merge(patch)).await.unwrap();
    }

    async fn running(&self) -> Pod {
        becomes(&self.resources, SAMPLE, "Running", |resource| told(resource) == ("Running", true))
            .await;
        self.pods.get(SAMPLE).await.unwrap()
    }
}

/// The phase, and whether it is Ready.
fn told(resource: &AlnairPod) -> (&str, bool) {
    let Some(status) = &resource.status else { return ("", false) };
    let ready = |c: &&_| -> bool {
        let condition: &k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition = c;
        condition.type_ == "Ready" && condition.status == "True"
    };
    (
        status.fields.phase.as_deref().unwrap_or_default(),
        status.conditions.iter().any(|c| ready(&c)),
    )
}

fn containers(image: &str, command: &str) -> Value {
    json!({ "spec": { "containers": [{ "name": "main", "image": image, "command": [command] }] } })
}

#[tokio::test]
async fn the_pod_is_owned_and_followed_and_comes_back() {
    let walk = Walk::new("pod").await;
    let _operator = walk.operator();
    walk.apply_sample();
    let first = walk.running().await;
    assert_eq!(first.owner_references()[0].kind, "AlnairPod");
    let resource = walk.resources.get(SAMPLE).await.unwrap();
    let status = first.status.unwrap_or_default();
    assert_eq!(resource.status.unwrap().fields.pod_ip, status.pod_ip);

    walk.pods.delete(SAMPLE, &NOW).await.unwrap();
    let again = |pod: &Pod| pod.metadata.uid != first.metadata.uid;
    let second = becomes(&walk.pods, SAMPLE, "there again", again).await;
    walk.running().await;

    // An image can be changed in place, a command cannot.
    let spec =
        json!({ "spec": { "containers": [{ "name": "main", "image": "example.com/other:1" }] } });
    walk.patch(json!({ "spec": { "volumes": null } })).await;
    walk.patch(spec).await;
    let changed = |pod: &Pod| image(pod) == "example.com/other:1";
    becomes(&walk.pods, SAMPLE, "another image", changed).await;
    walk.patch(containers("example.com/other:1", "/other")).await;
    let anew = |pod: &Pod| command(pod) == "/other" && pod.metadata.uid != second.metadata.uid;
    let third = becomes(&walk.pods, SAMPLE, "made anew", anew).await;
    walk.running().await;

    // What nobody would take is told, and what works stays.
    walk.patch(containers("", "/third")).await;
    becomes(&walk.resources, SAMPLE, "refused", |resource| {
        let conditions = resource.status.iter().flat_map(|status| &status.conditions);
        conditions.clone().any(|c| c.type_ == "Pod" && c.message.contains("image"))
    })
    .await;
    assert_eq!(walk.pods.get(SAMPLE).await.unwrap().metadata.uid, third.metadata.uid);

    walk.resources.delete(SAMPLE, &DeleteParams::default()).await.unwrap();
    vanishes(&walk.pods, SAMPLE).await;
}

fn image(pod: &Pod) -> &str {
    pod.spec.as_ref().and_then(|spec| spec.containers.first()?.image.as_deref()).unwrap_or_default()
}

fn command(pod: &Pod) -> &str {
    let command = pod.spec.as_ref().and_then(|spec| spec.containers.first()?.command.as_ref());
    command.and_then(|command| command.first()).map_or("", String::as_str)
}

#[tokio::test]
async fn what_needs_no_request_makes_none() {
    let walk = Walk::new("quiet").await;
    let _operator = walk.operator();
    walk.apply_sample();
    walk.running().await;
    let mark = walk.bench.quiet("alnair-pod", Duration::from_secs(2)).await;
    // A status that others write, and metadata that nobody reads: no loop, no write.
    let status = json!({ "status": { "phase": "Running" } });
    let params = PatchParams::default();
    walk.resources.patch_status(SAMPLE, &params, &Patch::Merge(status)).await.unwrap();
    walk.patch(json!({ "metadata": { "annotations": { "a": "b" } } })).await;
    // A pod of somebody else is none of ours.
    let foreign = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "foreign" },
        "spec": { "containers": [{ "name": "main", "image": "example.com/other:1" }] } });
    let foreign: Pod = serde_json::from_value(foreign).unwrap();
    walk.pods.create(&PostParams::default(), &foreign).await.unwrap();
    walk.bench.quiet("alnair-pod", Duration::from_secs(2)).await;
    assert_eq!(walk.bench.requests("alnair-pod", mark), [""; 0]);
}

#[tokio::test]
async fn whatever_happens_it_converges() {
    let walk = Walk::new("chaos").await;
    let mut dice = Dice::new();
    let program = env!("CARGO_BIN_EXE_alnair-pod");
    // With the rights that its manifests give, and no more.
    let rights = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/config/rbac"));
    let account = walk.bench.account("alnair-pod", rights).await;
    let start = || walk.bench.start_as(program, &account);
    let mut operator = start();
    walk.apply_sample();
    for round in 0..25 {
        match dice.throw(4) {
            0 => {
                operator.kill();
                operator = start();
            }
            1 => {
                _ = walk.pods.delete_collection(&NOW, &ListParams::default()).await;
            }
            2 => {
                _ = walk.resources.delete(SAMPLE, &DeleteParams::default()).await;
                walk.apply_sample();
            }
            _ => {
                let patch = containers("example.com/main:1", &format!("/{round}"));
                let params = PatchParams::default();
                _ = walk.resources.patch(SAMPLE, &params, &Patch::Merge(patch)).await;
            }
        }
        tokio::time::sleep(Duration::from_millis(dice.throw(300))).await; // pace, not a wait
    }
    walk.apply_sample();
    walk.patch(containers("example.com/main:1", "/end")).await;
    eventually("the pod is as the resource says", async || {
        let resource = walk.resources.get(SAMPLE).await.map_err(|error| error.to_string())?;
        let pod = walk.pods.get(SAMPLE).await.map_err(|error| error.to_string())?;
        let ours =
            pod.owner_references().iter().any(|owner| Some(&owner.uid) == resource.uid().as_ref());
        match (ours, command(&pod), told(&resource)) {
            (true, "/end", ("Running", true)) => Ok(()),
            instead => Err(format!("{instead:?}")),
        }
    })
    .await;
    assert!(!operator.log().contains("is forbidden"), "{}", operator.log());
}
