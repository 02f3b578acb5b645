//! A release that is not ready says which object keeps it from being so, and why.

#![allow(clippy::unwrap_used)] // helpers of tests fail as tests do

mod support;

use serde_json::{Value, json};
use support::{Bench, Operator, becomes, create, field};

/// A chart whose values are its objects, and a watches.yaml that serves Memcacheds with it.
fn mirror() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let chart = folder.path().join("mirror");
    std::fs::create_dir_all(chart.join("templates")).unwrap();
    let objects = "{{ range .Values.objects }}\n---\n{{ toYaml . }}\n{{ end }}\n";
    std::fs::write(chart.join("templates/objects.yaml"), objects).unwrap();
    std::fs::write(chart.join("Chart.yaml"), "apiVersion: v2\nname: mirror\nversion: 1.0.0\n")
        .unwrap();
    let entry = format!(
        "- group: cache.my.domain\n  version: v1alpha1\n  kind: Memcached\n  chart: {}\n",
        chart.display()
    );
    std::fs::write(folder.path().join("watches.yaml"), entry).unwrap();
    folder
}

fn operator(bench: &Bench, folder: &tempfile::TempDir) -> Operator {
    let mut command = Operator::command(bench.cluster.kubeconfig());
    command.arg("--watches-file").arg(folder.path().join("watches.yaml"));
    command.env("WATCH_NAMESPACE", bench.namespace.name());
    Operator::start(command)
}

/// A Deployment or StatefulSet of one pod.
fn workload(kind: &str, name: &str, annotations: &Value, pod: &Value) -> Value {
    let mut spec = json!({ "containers": [{ "name": "c", "image": "busybox" }] });
    spec.as_object_mut().unwrap().extend(pod.as_object().unwrap().clone());
    let labels = json!({ "app": name });
    json!({
        "apiVersion": "apps/v1", "kind": kind, "metadata": { "name": name },
        "spec": {
            "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels, "annotations": annotations }, "spec": spec },
        },
    })
}

fn claim(name: &str, class: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": { "name": name },
        "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": class,
            "resources": { "requests": { "storage": "1Mi" } },
        },
    })
}

fn mounts(claim: &str) -> Value {
    json!({ "volumes": [{ "name": "v", "persistentVolumeClaim": { "claimName": claim } }] })
}

/// Makes a resource of these objects, and waits until its condition Ready says all of `words`.
async fn says(bench: &Bench, name: &str, objects: Value, reason: &str, words: &[&str]) {
    let memcacheds = bench.memcacheds();
    let spec = json!({ "objects": objects });
    create(&memcacheds, "cache.my.domain/v1alpha1", "Memcached", name, spec).await;
    becomes(&memcacheds, name, &format!("not ready: {words:?}"), |resource| {
        let message = field(resource, "Ready", "message");
        field(resource, "Ready", "status") == "False"
            && field(resource, "Ready", "reason") == reason
            && words.iter().all(|word| message.contains(word))
    })
    .await;
}

#[tokio::test]
async fn the_condition_names_the_pod_the_claim_or_the_container() {
    let bench = Bench::shared("culprits").await;
    let folder = mirror();
    let _operator = operator(&bench, &folder);
    let none = json!({});

    let pod = json!({ "nodeSelector": { "nowhere": "true" } });
    let objects = json!([workload("Deployment", "nowhere", &none, &pod)]);
    let words = ["Deployment nowhere: Pod nowhere-", "it cannot be scheduled: 0/"];
    says(&bench, "unschedulable", objects, "Unschedulable", &words).await;

    let objects = json!([workload("StatefulSet", "claimless", &none, &mounts("absent"))]);
    let words =
        ["StatefulSet claimless: Pod claimless-0: ", "persistentvolumeclaim \"absent\" not found"];
    says(&bench, "no-claim", objects, "Unschedulable", &words).await;

    let objects = json!([claim("classless", "absent")]);
    let words = ["PersistentVolumeClaim classless: ", "\"absent\" not found"];
    says(&bench, "no-class", objects, "ProvisioningFailed", &words).await;

    // The claim is another release's, or nobody's: the way leads there all the same.
    let objects = json!([workload("Deployment", "mounts", &none, &mounts("classless"))]);
    let words = ["Deployment mounts: PersistentVolumeClaim classless: ", "\"absent\" not found"];
    says(&bench, "no-class-below", objects, "ProvisioningFailed", &words).await;

    let never = json!({ "fake.catamaran.test/never-ready": "true" });
    let objects = json!([workload("Deployment", "never", &never, &none)]);
    let words = ["Deployment never: Pod never-", "container c runs and is not ready"];
    says(&bench, "never-ready", objects, "ContainerNotReady", &words).await;

    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": "fails" },
        "spec": { "backoffLimit": 0, "template": {
            "metadata": { "annotations": { "fake.catamaran.test/exit-code": "3" } },
            "spec": { "restartPolicy": "Never", "containers": [{ "name": "c", "image": "busybox" }] },
        } },
    });
    let words = ["Job fails: Pod fails-", "container c ended with exit code 3"];
    says(&bench, "failed-job", json!([job]), "Error", &words).await;
}

#[tokio::test]
async fn the_condition_names_the_quota_that_refuses_pods() {
    let bench = Bench::shared("quota").await;
    let folder = mirror();
    bench.kubectl(&["create", "quota", "tight", "--hard=pods=0"]);
    let _operator = operator(&bench, &folder);
    for kind in ["Deployment", "StatefulSet", "DaemonSet"] {
        let name = kind.to_lowercase();
        let objects = json!([workload(kind, &name, &json!({}), &json!({}))]);
        let told = format!("{kind} {name}: ");
        let words = [told.as_str(), "is forbidden: exceeded quota: tight, requested: pods=1"];
        says(&bench, &name, objects, "FailedCreate", &words).await;
    }
}
