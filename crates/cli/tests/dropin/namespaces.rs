//! A namespace that is deleted with all that is in it, the operator being there, gone, or coming back:
//! records go in any order, and what lies outside must go, too.

use std::time::Duration;

use serde_json::json;

use crate::support::{MIRROR, Stage, config_map, is, until};

/// A release with an object that belongs to no namespace, and one that lies in another.
async fn stage(name: &str) -> (Stage, catamaran_localcluster::Namespace, String) {
    let stage = Stage::of(name, MIRROR).await;
    let elsewhere = stage.cluster.namespace(&format!("{name}-else")).await.unwrap();
    let role = format!("{}-rel", stage.namespace.name());
    let mut other = config_map("other", &json!({ "k": "v" }));
    other["metadata"]["namespace"] = elsewhere.name().into();
    let objects = json!([
        config_map("map", &json!({ "k": "v" })),
        {
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": { "name": role }, "rules": [],
        },
        other,
    ]);
    stage.apply(&stage.shop("rel", &json!({ "objects": objects })));
    (stage, elsewhere, role)
}

/// Waits until nothing is left, of the namespace and of what lay outside.
fn all_gone(stage: &Stage, elsewhere: &str, role: &str) {
    until("the namespace and what was outside are gone", || {
        let namespace = stage.get("namespace", stage.namespace.name());
        let role = stage.get("clusterrole", role);
        let other = ["get", "configmap", "other", "-n", elsewhere, "--ignore-not-found"];
        let other = stage.kubectl(&other);
        if namespace.is_null() && role.is_null() && other.is_empty() {
            Ok(())
        } else {
            Err(format!("{:#} {role:#} {other}", namespace["status"]))
        }
    });
}

#[tokio::test]
async fn with_the_operator_up() {
    let (stage, elsewhere, role) = stage("leaves-up").await;
    let _operator = stage.operator();
    stage.shop_becomes("rel", "Ready", |shop| is(shop, "Ready", "True"));
    stage.kubectl(&["delete", "namespace", stage.namespace.name(), "--wait=false"]);
    all_gone(&stage, elsewhere.name(), &role);
}

#[tokio::test]
async fn with_the_operator_down_and_coming_back_when_its_records_are_gone() {
    let (stage, elsewhere, role) = stage("leaves-down").await;
    let operator = stage.operator();
    stage.shop_becomes("rel", "Ready", |shop| is(shop, "Ready", "True"));
    drop(operator);
    stage.kubectl(&["delete", "namespace", stage.namespace.name(), "--wait=false"]);
    until("the records are gone", || match stage.records() {
        records if records.is_empty() => Ok(()),
        records => Err(format!("{records:?}")),
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!stage.shop_now("rel").is_null(), "the finalizer holds it");
    let _operator = stage.operator();
    all_gone(&stage, elsewhere.name(), &role);
}
