//! What src/main.rs configures of Memcached, beyond watches.yaml.

#![allow(clippy::unwrap_used)] // helpers of tests fail as tests do

mod support;

use serde_json::json;
use support::{Bench, becomes, condition, create, delete, field, number, vanishes};

#[tokio::test]
async fn the_size_may_be_a_config_maps() {
    let bench = Bench::shared("sized").await;
    let _operator = bench.operator();
    let memcacheds = bench.memcacheds();
    create(&memcacheds, "cache.my.domain/v1alpha1", "Memcached", "web", json!({})).await;
    let is_ready = |object: &_| condition(object, "Ready") == "True";
    becomes(&memcacheds, "web", "Ready", is_ready).await;
    bench.kubectl(&["annotate", "memcached", "web", "cache.my.domain/size-from=size"]);
    let missing = |object: &_| field(object, "Ready", "reason") == "MissingDependency";
    becomes(&memcacheds, "web", "without its ConfigMap", missing).await;
    for size in [2, 3] {
        let map = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: size}}\ndata: {{replicaCount: '{size}'}}\n"
        );
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("map.yaml");
        std::fs::write(&file, map).unwrap();
        bench.kubectl(&["apply", "-f", file.to_str().unwrap()]);
        let has = |deployment: &_| number(deployment, "/spec/replicas") == Some(size);
        becomes(&bench.deployments(), "web-memcached", "of the size", has).await;
    }
    assert!(bench.helm(&["get", "values", "web"]).contains("replicaCount: 3"));
    bench.kubectl(&["patch", "configmap", "size", "-p", r#"{"data":{"replicaCount":"many"}}"#]);
    let told = |object: &_| field(object, "Ready", "reason") == "NoSize";
    becomes(&memcacheds, "web", "without a number", told).await;
    delete(&memcacheds, "web").await;
    vanishes(&memcacheds, "web").await;
}

#[tokio::test]
async fn a_protected_memcached_stays_until_it_is_not() {
    let bench = Bench::shared("protected").await;
    let _operator = bench.operator();
    let memcacheds = bench.memcacheds();
    create(&memcacheds, "cache.my.domain/v1alpha1", "Memcached", "web", json!({})).await;
    bench.kubectl(&[
        "annotate",
        "memcached",
        "web",
        "cache.my.domain/protected=true",
        "cache.my.domain/wait-for-pods=true",
    ]);
    becomes(&memcacheds, "web", "Ready", |object| condition(object, "Ready") == "True").await;
    delete(&memcacheds, "web").await;
    let told = |object: &_| field(object, "Ready", "reason") == "Protected";
    becomes(&memcacheds, "web", "protected", told).await;
    assert!(bench.deployments().get_opt("web-memcached").await.unwrap().is_some());
    bench.kubectl(&["annotate", "--overwrite", "memcached", "web", "cache.my.domain/protected=no"]);
    vanishes(&memcacheds, "web").await;
    vanishes(&bench.deployments(), "web-memcached").await;
}
