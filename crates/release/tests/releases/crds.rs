//! The definitions that a chart brings in `crds/`.

use catamaran_chart::File;
use catamaran_localcluster::LocalCluster;
use catamaran_release::{ActionResult, Error};
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};

use crate::support::{DesiredRelease, cluster, config_map, driver, live};

fn definition(group: &str, description: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("things.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "description": description, "x-kubernetes-preserve-unknown-fields": true,
            }}}],
        },
    })
}

fn definitions(cluster: &LocalCluster) -> Api<DynamicObject> {
    let gvk = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let resource = ApiResource::from_gvk(&gvk);
    Api::all_with(cluster.client(), &resource)
}

/// A chart with a definition, and an object of its kind.
fn wish(namespace: &str, name: &str, group: &str, description: &str) -> DesiredRelease {
    let thing =
        json!({"apiVersion": format!("{group}/v1"), "kind": "Thing", "metadata": {"name": name}});
    let mut wish = DesiredRelease::new(namespace, name, vec![config_map(name, "v"), thing]);
    let data = definition(group, description).to_string().into_bytes().into();
    wish.chart.files.push(File { name: "crds/things.yaml".into(), data });
    wish
}

#[tokio::test(flavor = "multi_thread")]
async fn a_definition_is_created_where_there_is_none_and_never_touched_again() {
    let cluster = cluster().await;
    let namespace = cluster.namespace("crds").await.expect("a namespace");
    let driver = driver(&cluster.client());
    let group = format!("{}.test", &*namespace);
    let name = format!("things.{group}");
    let first = wish(&namespace, "first", &group, "one");
    assert_eq!(first.settle(&driver).await.expect("installed").done, ActionResult::Installed);
    let found = definitions(&cluster).get(&name).await.expect("a definition");
    assert_eq!(found.metadata.labels, None, "no part of the manifest");

    // Another release brings another version of it: by a driver that knows nothing yet, too.
    let second = wish(&namespace, "second", &group, "two");
    let fresh = crate::support::driver(&cluster.client());
    for driver in [&driver, &fresh] {
        second.settle(driver).await.expect("installed");
    }
    first.leave(&driver).await.expect("uninstalled");
    second.leave(&driver).await.expect("uninstalled");
    let left = definitions(&cluster).get(&name).await.expect("a definition");
    assert_eq!(left.metadata.resource_version, found.metadata.resource_version);
    definitions(&cluster).delete(&name, &DeleteParams::default()).await.expect("deleted");
}

#[tokio::test(flavor = "multi_thread")]
async fn all_definitions_are_created_before_one_is_waited_for() {
    let cluster = cluster().await;
    let namespace = cluster.namespace("crds-many").await.expect("a namespace");
    let driver = driver(&cluster.client());
    let group = |index: u32| format!("{index}.{}.test", &*namespace);
    let mut wish = wish(&namespace, "rel", &group(0), "one");
    for index in 1..4 {
        let data = definition(&group(index), "one").to_string().into_bytes().into();
        wish.chart.files.push(File { name: format!("crds/{index}.yaml"), data });
    }
    let error = driver.crds(&wish.chart).await.expect_err("they take a while");
    assert!(matches!(error, Error::Waiting(_)), "{error}");
    let api = definitions(&cluster);
    for index in 0..4 {
        api.get(&format!("things.{}", group(index))).await.expect("created");
    }
    wish.settle(&driver).await.expect("installed");
    wish.leave(&driver).await.expect("uninstalled");
    for index in 0..4 {
        let name = format!("things.{}", group(index));
        api.delete(&name, &DeleteParams::default()).await.expect("deleted");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_right_is_told_before_anything_is_written() {
    let cluster = cluster().await;
    let namespace = cluster.namespace("crds-denied").await.expect("a namespace");
    let nobody = cluster.client_as("nobody", &["system:authenticated"]).expect("a client");
    let group = format!("{}.test", &*namespace);
    let wish = wish(&namespace, "rel", &group, "one");
    let history = driver(&cluster.client()).history(&namespace, "rel").await.expect("a history");
    let (rendered, facts) = (wish.rendered(), history.current_facts());
    let error = driver(&nobody)
        .apply(&history, &wish.desired(&rendered, &facts))
        .await
        .expect_err("denied");
    assert!(matches!(error, Error::Definition { .. }) && !error.is_transient(), "{error}");
    let told = error.to_string();
    for word in ["demo/crds/things.yaml", "forbidden", "customresourcedefinitions"] {
        assert!(told.contains(word), "{told}");
    }
    assert_eq!(live(&cluster.client(), &namespace, "ConfigMap", "rel").await, Value::Null);
}
