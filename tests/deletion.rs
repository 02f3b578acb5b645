//! The end of a resource, asked for in every way, with the operator up, or down and coming back.

#![allow(clippy::unwrap_used)] // helpers of tests fail as tests do

mod support;

use catamaran_localcluster::ESTABLISHED;
use kube::core::DynamicObject;
use serde_json::{Value, json};
use support::{
    Bench, Operator, becomes, condition, create, delete, eventually, field, mirror, patch, vanishes,
};

fn map(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": { "k": "v" } })
}

fn is_ready(object: &DynamicObject) -> bool {
    condition(object, "Ready") == "True"
}

async fn installed(bench: &Bench, name: &str, objects: Value) {
    let spec = json!({ "objects": objects });
    create(&bench.memcacheds(), "cache.my.domain/v1alpha1", "Memcached", name, spec).await;
    becomes(&bench.memcacheds(), name, "Ready", is_ready).await;
}

fn delete_with(bench: &Bench, name: &str, cascade: &str) {
    let cascade = format!("--cascade={cascade}");
    bench.kubectl(&["delete", "memcached", name, &cascade, "--wait=false"]);
}

const WAYS: [&str; 3] = ["background", "foreground", "orphan"];

#[tokio::test]
async fn every_way_of_deleting_ends_as_asked_with_the_operator_up_or_down() {
    let bench = Bench::shared("deletion").await;
    let folder = mirror("");
    let mut operator = bench.operator_of(&folder);
    let (memcacheds, maps) = (bench.memcacheds(), bench.api("v1", "ConfigMap"));
    let ends = async |name: &str, way: &str| {
        vanishes(&memcacheds, name).await;
        if way != "orphan" {
            return vanishes(&maps, name).await;
        }
        let unowned = |map: &DynamicObject| map.metadata.owner_references.is_none();
        becomes(&maps, name, "there, and nobody's", unowned).await;
        let helm = bench.helm(&["list", "--filter", &format!("^{name}$"), "--short"]);
        assert_eq!(helm.trim(), name, "helm has it");
        bench.helm(&["uninstall", name]);
        vanishes(&maps, name).await;
    };
    for way in WAYS {
        let name = format!("up-{way}");
        installed(&bench, &name, json!([map(&name)])).await;
        delete_with(&bench, &name, way);
        ends(&name, way).await;
    }
    for way in WAYS {
        let name = format!("down-{way}");
        installed(&bench, &name, json!([map(&name)])).await;
    }
    operator.kill();
    for way in WAYS {
        delete_with(&bench, &format!("down-{way}"), way);
    }
    // The garbage collector does its part before the operator is back.
    becomes(&maps, "down-orphan", "nobody's", |map| map.metadata.owner_references.is_none()).await;
    let _operator = bench.operator_of(&folder);
    for way in WAYS {
        ends(&format!("down-{way}"), way).await;
    }
}

#[tokio::test]
async fn a_namespace_that_is_deleted_is_not_held_up() {
    let bench = Bench::shared("leaving").await;
    let name = format!("{}-inner", bench.namespace.name());
    bench.kubectl(&["create", "namespace", &name]);
    let folder = mirror("");
    let mut command = Operator::command(bench.cluster.kubeconfig());
    command.arg("--watches-file").arg(folder.path().join("watches.yaml"));
    command.env("WATCH_NAMESPACE", &name);
    let _operator = Operator::start(command);
    let object = json!({
        "apiVersion": "cache.my.domain/v1alpha1", "kind": "Memcached",
        "metadata": { "name": "rel", "namespace": name }, "spec": { "objects": [map("a"), map("b")] },
    });
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), object.to_string()).unwrap();
    // Twice: the operator's kubectl is set to the namespace of the bench.
    bench.kubectl(&["apply", "-n", &name, "-f", file.path().to_str().unwrap()]);
    bench.kubectl(&[
        "wait",
        "-n",
        &name,
        "memcached/rel",
        "--for=condition=Ready",
        "--timeout=60s",
    ]);
    bench.kubectl(&["delete", "namespace", &name, "--timeout=60s"]);
}

fn definition(group: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("things.{group}") },
        "spec": {
            "group": group, "scope": "Namespaced", "names": { "kind": "Thing", "plural": "things" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true,
            }}}],
        },
    })
}

#[tokio::test]
async fn a_definition_that_is_taken_away_is_told_and_holds_up_no_end() {
    let bench = Bench::shared("undefined").await;
    let group = format!("{}.test", bench.namespace.name());
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), definition(&group).to_string()).unwrap();
    let (file, named) = (file.path().to_str().unwrap().to_owned(), format!("crd/things.{group}"));
    let define = || {
        bench.kubectl(&["apply", "-f", &file]);
        bench.kubectl(&["wait", ESTABLISHED, &named, "--timeout=30s"]);
    };
    define();
    let folder = mirror("");
    let _operator = bench.operator_of(&folder);
    let thing = json!({ "apiVersion": format!("{group}/v1"), "kind": "Thing", "metadata": { "name": "thing" } });
    for name in ["stays", "goes"] {
        let mut own = thing.clone();
        own["metadata"]["name"] = name.into();
        installed(&bench, name, json!([map(name), own])).await;
    }
    bench.kubectl(&["delete", &named, "--timeout=60s"]);
    let memcacheds = bench.memcacheds();
    becomes(&memcacheds, "stays", "told", |object| {
        !is_ready(object) && field(object, "Ready", "message").contains("Thing")
    })
    .await;
    delete(&memcacheds, "goes").await;
    vanishes(&memcacheds, "goes").await;
    vanishes(&bench.api("v1", "ConfigMap"), "goes").await;
    define();
    becomes(&memcacheds, "stays", "Ready again", is_ready).await;
    becomes(&bench.api(&format!("{group}/v1"), "Thing"), "stays", "there again", |_| true).await;
    delete(&memcacheds, "stays").await;
    vanishes(&memcacheds, "stays").await;
    bench.kubectl(&["delete", &named, "--timeout=60s"]);
}

#[tokio::test]
async fn a_finalizer_of_somebody_else_is_told_and_waited_for() {
    let bench = Bench::shared("held").await;
    let folder = mirror("");
    let _operator = bench.operator_of(&folder);
    let (memcacheds, maps) = (bench.memcacheds(), bench.api("v1", "ConfigMap"));
    installed(&bench, "rel", json!([map("held")])).await;
    patch(&maps, "held", json!({ "metadata": { "finalizers": ["somebody.test/else"] } })).await;
    // The object is on its way out while the release shall have it.
    delete(&maps, "held").await;
    becomes(&memcacheds, "rel", "told", |object| {
        let message = field(object, "Ready", "message");
        message.contains("held") && message.contains("somebody.test/else")
    })
    .await;
    let first = maps.get("held").await.unwrap().metadata.uid;
    patch(&maps, "held", json!({ "metadata": { "finalizers": null } })).await;
    becomes(&maps, "held", "another one", |map| map.metadata.uid != first).await;
    becomes(&memcacheds, "rel", "Ready again", is_ready).await;
    // The resource goes, and the object when it can.
    patch(&maps, "held", json!({ "metadata": { "finalizers": ["somebody.test/else"] } })).await;
    delete(&memcacheds, "rel").await;
    vanishes(&memcacheds, "rel").await;
    eventually("the object is left with its finalizer", async || {
        match maps.get_opt("held").await.unwrap() {
            Some(map) if map.metadata.deletion_timestamp.is_some() => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    patch(&maps, "held", json!({ "metadata": { "finalizers": null } })).await;
    vanishes(&maps, "held").await;
}
