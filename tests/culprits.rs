//! A release that is not ready says which object keeps it from being so, and why.

#![allow(clippy::unwrap_used)] // helpers of tests fail as tests do

mod support;

use std::io::Write as _;
use std::process::Command;

use catamaran_localcluster::{Image, LocalCluster};
use kube::api::PostParams;
use serde_json::{Value, json};
use support::{Bench, apply_file, becomes, create, field, mirror};

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
    let folder = mirror("");
    let _operator = bench.operator_of(&folder);
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

/// The same of a child of a native kind.
#[tokio::test]
async fn a_native_kinds_condition_names_the_pod_too() {
    let bench = Bench::shared("native-culprits").await;
    let _operator = bench.operator();
    let limits = json!({
        "apiVersion": "v1", "kind": "LimitRange", "metadata": { "name": "greedy" },
        "spec": { "limits": [{ "type": "Container", "defaultRequest": { "cpu": "1000000" } }] },
    });
    let ranges = bench.api("v1", "LimitRange");
    ranges.create(&PostParams::default(), &serde_json::from_value(limits).unwrap()).await.unwrap();
    apply_file(&bench, "tests/fixtures/cache_v1_memcachedbackup.yaml");
    let name = "memcachedbackup-sample";
    becomes(&bench.backups(), name, "not ready: why", |backup| {
        let message = field(backup, "Ready", "message");
        field(backup, "Ready", "reason") == "Unschedulable"
            && message.contains(": Pod memcachedbackup-sample-")
            && message.contains("it cannot be scheduled: 0/")
    })
    .await;
}

#[tokio::test]
async fn the_condition_names_the_quota_that_refuses_pods() {
    let bench = Bench::shared("quota").await;
    let folder = mirror("");
    bench.kubectl(&["create", "quota", "tight", "--hard=pods=0"]);
    let _operator = bench.operator_of(&folder);
    for kind in ["Deployment", "StatefulSet", "DaemonSet"] {
        let name = kind.to_lowercase();
        let objects = json!([workload(kind, &name, &json!({}), &json!({}))]);
        let told = format!("{kind} {name}: ");
        let words = [told.as_str(), "is forbidden: exceeded quota: tight, requested: pods=1"];
        says(&bench, &name, objects, "FailedCreate", &words).await;
    }
}

/// What runs in containers here: it ends with a code, takes memory, or stays.
const PROGRAM: &str = r#"
fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    println!("canary");
    match arguments[1].as_str() {
        "take" => {
            let mut hoard = Vec::new();
            loop { hoard.push(vec![1_u8; 1 << 20]); }
        }
        "stay" => loop { std::thread::sleep(std::time::Duration::from_secs(60)); },
        code => std::process::exit(code.parse().unwrap()),
    }
}
"#;

/// An archive of an image with that program.
fn image(folder: &tempfile::TempDir) -> std::path::PathBuf {
    let (source, program) = (folder.path().join("actor.rs"), folder.path().join("actor"));
    std::fs::write(&source, PROGRAM).unwrap();
    let status = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
        .args(["--edition=2024", "-Ctarget-feature=+crt-static", "-Cstrip=symbols", "-o"])
        .args([&program, &source])
        .status()
        .unwrap();
    assert!(status.success(), "rustc ended with {status}");
    let image = Image::scratch("localhost/actor:1");
    let image = image.file("actor", 0o755, &std::fs::read(&program).unwrap()).unwrap();
    image.entrypoint(["/actor"]).write(folder.path().join("actor.tar")).unwrap()
}

/// What only a kubelet tells.
#[tokio::test]
async fn the_condition_names_what_a_kubelet_cannot_do() {
    if let Err(why) = LocalCluster::real_node_available() {
        let _ = writeln!(std::io::stderr(), "SKIPPED a test of the real node: {why}");
        return;
    }
    let cluster = LocalCluster::builder().real_node().start().await.unwrap();
    let bench = Bench::on(cluster, "kubelet").await;
    let folder = mirror("");
    bench.cluster.real_node().unwrap().load_image(&image(&folder)).await.unwrap();
    let _operator = bench.operator_of(&folder);
    let container = |more: Value| {
        let mut container = json!({ "name": "c", "image": "localhost/actor:1", "args": ["stay"] });
        container.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({ "containers": [container], "terminationGracePeriodSeconds": 0 })
    };
    let volume = |volume: Value| {
        let mut pod = container(json!({ "volumeMounts": [{ "name": "v", "mountPath": "/v" }] }));
        pod["volumes"] = json!([volume]);
        pod
    };
    let reference = json!({ "secretKeyRef": { "name": "absent", "key": "k" } });
    let rows = [
        (
            "image",
            container(json!({ "image": "localhost/absent:1" })),
            "image \"localhost/absent:1\" cannot be pulled",
        ),
        (
            "crash",
            container(json!({ "args": ["3"] })),
            "container c ended with exit code 3, restarted",
        ),
        (
            "memory",
            container(json!({ "args": ["take"], "resources": { "limits": { "memory": "32Mi" } } })),
            "container c was killed for using more memory than its limit of 32Mi (exit code 137)",
        ),
        ("command", container(json!({ "command": ["/absent"] })), "container c cannot start: "),
        (
            "variable",
            container(json!({ "env": [{ "name": "A", "valueFrom": reference }] })),
            "secret \"absent\" not found",
        ),
        (
            "secret",
            volume(json!({ "name": "v", "secret": { "secretName": "absent" } })),
            "secret \"absent\" not found",
        ),
        (
            "map",
            volume(json!({ "name": "v", "configMap": { "name": "absent" } })),
            "configmap \"absent\" not found",
        ),
        (
            "probe",
            container(
                json!({ "readinessProbe": { "tcpSocket": { "port": 9 }, "periodSeconds": 1 } }),
            ),
            "Readiness probe failed",
        ),
    ];
    let memcacheds = bench.memcacheds();
    for (name, pod, _) in &rows {
        let spec = json!({ "objects": [workload("Deployment", name, &json!({}), pod)] });
        create(&memcacheds, "cache.my.domain/v1alpha1", "Memcached", name, spec).await;
    }
    for (name, _, told) in &rows {
        let resource = becomes(&memcacheds, name, told, |resource| {
            field(resource, "Ready", "message").contains(told)
        })
        .await;
        let message = field(&resource, "Ready", "message");
        assert!(message.starts_with(&format!("Deployment {name}: Pod {name}-")), "{message}");
        assert!(!message.contains("canary"), "{message}");
    }
}
