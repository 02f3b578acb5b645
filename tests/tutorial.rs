//! The tutorial's road, with its own samples to the letter, on a real API server.

mod support;

use kube::ResourceExt;
use serde_json::{Value, json};
use support::{
    Bench, apply_file, becomes, condition, delete, eventually, field, number, patch, vanishes,
};

const CHART: &str = "memcached-sample";
const NATIVE: &str = "memcachedbackup-sample";

async fn both_samples(bench: &Bench) {
    apply_file(bench, "tests/fixtures/cache_v1alpha1_memcached.yaml");
    apply_file(bench, "tests/fixtures/cache_v1_memcachedbackup.yaml");
    let ready = |object: &_| condition(object, "Ready") == "True";
    becomes(&bench.memcacheds(), CHART, "Ready", ready).await;
    becomes(&bench.backups(), NATIVE, "Ready", ready).await;
}

async fn pods(bench: &Bench, prefix: &str, count: usize) -> Vec<String> {
    eventually(&format!("{count} pods of {prefix}"), async || {
        let pods = bench.pods(prefix).await;
        if pods.len() == count { Ok(pods) } else { Err(format!("{pods:?}")) }
    })
    .await
}

#[tokio::test]
async fn both_samples_become_running_pods() {
    let bench = Bench::shared("tutorial").await;
    let _operator = bench.operator();
    both_samples(&bench).await;
    pods(&bench, CHART, 3).await;
    let backups = pods(&bench, NATIVE, 2).await;

    let memcached = bench.memcacheds().get(CHART).await.unwrap();
    assert_eq!(field(&memcached, "Deployed", "reason"), "InstallSuccessful");
    assert_eq!(condition(&memcached, "Initialized"), "True");
    assert_eq!(number(&memcached, "/status/observedGeneration"), memcached.metadata.generation);
    becomes(&bench.backups(), NATIVE, "status.nodes are the pods", |backup| {
        backup.data["status"]["nodes"] == json!(backups)
    })
    .await;

    let image = "/spec/template/spec/containers/0/image";
    let deployment = bench.deployments().get(CHART).await.unwrap();
    assert_eq!(deployment.data.pointer(image), Some(&json!("nginx:1.6")), "the tutorial's nginx");
}

#[tokio::test]
async fn editing_a_resource_scales_it() {
    let bench = Bench::shared("scale").await;
    let _operator = bench.operator();
    both_samples(&bench).await;

    patch(&bench.memcacheds(), CHART, json!({ "spec": { "replicaCount": 5 } })).await;
    patch(&bench.backups(), NATIVE, json!({ "spec": { "size": 1 } })).await;
    pods(&bench, CHART, 5).await;
    let left = pods(&bench, NATIVE, 1).await;
    becomes(&bench.backups(), NATIVE, "status.nodes follow", |b| {
        b.data["status"]["nodes"] == json!(left)
    })
    .await;
    let memcached = becomes(&bench.memcacheds(), CHART, "upgraded", |memcached| {
        field(memcached, "Deployed", "reason") == "UpgradeSuccessful"
            && condition(memcached, "Ready") == "True"
    })
    .await;
    assert_eq!(
        number(&memcached, "/status/deployedRelease/version"),
        Some(2),
        "one edit, one revision"
    );

    patch(&bench.backups(), NATIVE, json!({ "spec": { "size": 0 } })).await;
    pods(&bench, NATIVE, 0).await;
}

#[tokio::test]
async fn what_somebody_does_by_hand_is_undone() {
    let bench = Bench::shared("drift").await;
    let _operator = bench.operator();
    both_samples(&bench).await;

    for (name, size) in [(CHART, 3), (NATIVE, 2)] {
        bench.kubectl(&["scale", "deployment", name, "--replicas=7"]);
        becomes(&bench.deployments(), name, "scaled back", |d| {
            number(d, "/spec/replicas") == Some(size)
        })
        .await;
        bench.kubectl(&[
            "label",
            "deployment",
            name,
            "app.kubernetes.io/name=other",
            "--overwrite",
        ]);
        becomes(&bench.deployments(), name, "label restored", |deployment| {
            deployment.labels()["app.kubernetes.io/name"] != "other"
        })
        .await;
        let before = bench.deployments().get(name).await.unwrap().uid();
        delete(&bench.deployments(), name).await;
        becomes(&bench.deployments(), name, "created again", |d| d.uid() != before).await;
    }
    let services = bench.api("v1", "Service");
    delete(&services, CHART).await;
    becomes(&services, CHART, "created again", |service| {
        service.metadata.deletion_timestamp.is_none()
    })
    .await;
    let memcached = bench.memcacheds().get(CHART).await.unwrap();
    assert_eq!(
        number(&memcached, "/status/deployedRelease/version"),
        Some(1),
        "a repair is no revision"
    );
}

#[tokio::test]
async fn deleting_a_resource_removes_what_it_made() {
    let bench = Bench::shared("delete").await;
    let _operator = bench.operator();
    both_samples(&bench).await;

    bench.kubectl(&[
        "delete",
        "-f",
        "tests/fixtures/cache_v1alpha1_memcached.yaml",
        "--wait=false",
    ]);
    bench.kubectl(&[
        "delete",
        "-f",
        "tests/fixtures/cache_v1_memcachedbackup.yaml",
        "--wait=false",
    ]);
    vanishes(&bench.memcacheds(), CHART).await;
    vanishes(&bench.backups(), NATIVE).await;
    for name in [CHART, NATIVE] {
        vanishes(&bench.deployments(), name).await;
    }
    vanishes(&bench.api("v1", "Service"), CHART).await;
    vanishes(&bench.api("v1", "ServiceAccount"), CHART).await;
    pods(&bench, CHART, 0).await;
    pods(&bench, NATIVE, 0).await;
    assert_eq!(bench.kubectl(&["get", "secrets", "--output=name"]), "", "no record is left");
    assert_eq!(bench.helm3(&["list", "--all", "--short"]), "");
}

#[tokio::test]
async fn what_is_orphaned_on_purpose_stays() {
    let bench = Bench::shared("orphan").await;
    let _operator = bench.operator();
    both_samples(&bench).await;
    bench.kubectl(&["delete", "memcachedbackup", NATIVE, "--cascade=orphan", "--wait=false"]);
    vanishes(&bench.backups(), NATIVE).await;
    let kept = bench.deployments().get(NATIVE).await.unwrap();
    assert_eq!(kept.metadata.deletion_timestamp, None);
    assert_eq!(kept.owner_references(), [], "nobody owns it any more");
}

#[tokio::test]
async fn both_helms_take_the_release_for_their_own() {
    let bench = Bench::shared("helm").await;
    let _operator = bench.operator();
    both_samples(&bench).await;

    for helm in [Bench::helm, Bench::helm3] {
        let list: Value = serde_json::from_str(&helm(&bench, &["list", "--output=json"])).unwrap();
        let [release] = list.as_array().unwrap().as_slice() else { panic!("{list}") };
        assert_eq!(release["name"], CHART);
        assert_eq!(release["status"], "deployed");
        assert_eq!(release["revision"], "1");
        let values: Value =
            serde_json::from_str(&helm(&bench, &["get", "values", CHART, "--output=json"]))
                .unwrap();
        let resource = bench.memcacheds().get(CHART).await.unwrap();
        assert_eq!(values, resource.data["spec"]);
        let manifest = helm(&bench, &["get", "manifest", CHART]);
        assert!(manifest.contains("# Source: memcached/templates/deployment.yaml\n"), "{manifest}");
        let notes = helm(&bench, &["get", "notes", CHART]);
        let deployed = field(&resource, "Deployed", "message");
        assert!(
            notes.contains(deployed.trim()),
            "the condition tells the notes: {deployed:?} in {notes:?}"
        );
    }
    // The same chart, rendered by helm itself with the same values, gives the same manifest.
    let values = bench.namespace.name().to_owned() + ".json";
    let values = std::env::temp_dir().join(values);
    std::fs::write(&values, bench.helm(&["get", "values", CHART, "--output=json"])).unwrap();
    let template = bench.helm3(&[
        "template",
        CHART,
        "helm-charts/memcached",
        "--no-hooks",
        "-f",
        values.to_str().unwrap(),
    ]);
    std::fs::remove_file(values).unwrap();
    assert_eq!(bench.helm3(&["get", "manifest", CHART]).trim(), template.trim());
}
