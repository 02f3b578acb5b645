//! What is watched: the namespaces that were named, and of each kind what is needed.

use std::collections::BTreeSet;

use serde_json::json;

use crate::quiet::audit;
use crate::support::{MIRROR, Operator, Stage, config_map, field, is, until};

/// A list of namespaces, under a role in each of them: nothing is asked for elsewhere.
#[tokio::test]
async fn of_the_namespaces_those_that_are_named() {
    let stage = Stage::of("first", MIRROR).await;
    let [second, other] = ["second", "other"].map(|name| stage.cluster.namespace(name));
    let (second, other) = (second.await.unwrap(), other.await.unwrap());
    let (first, account) = (stage.namespace.name(), "manager");
    stage.kubectl(&["create", "serviceaccount", account]);
    let subject = format!("--serviceaccount={first}:{account}");
    let shops = stage.kind("shops");
    for namespace in [first, second.name()] {
        for (name, resource) in [
            ("shops", format!("{shops},{shops}/status,{shops}/finalizers")),
            ("objects", "secrets,configmaps,events,events.events.k8s.io".to_owned()),
        ] {
            let resource = format!("--resource={resource}");
            let role_of = format!("--role={name}");
            stage.kubectl(&["create", "role", name, "-n", namespace, "--verb=*", &resource]);
            stage.kubectl(&["create", "rolebinding", name, "-n", namespace, &role_of, &subject]);
        }
    }
    let mut command = stage.as_manager().await;
    command.env("WATCH_NAMESPACE", format!(" {first} , {} ", second.name()));
    let operator = Operator::start(command, stage.folder.path());
    let shop = stage.shop("web", &json!({ "objects": [config_map("web", &json!({ "a": "1" }))] }));
    stage.write("shop.json", &shop.to_string());
    let get = |kind: &str, namespace: &str, path: &str| {
        let path = format!("-o=jsonpath={path}");
        stage.kubectl(&["get", kind, "web", "--ignore-not-found", &path, "-n", namespace])
    };
    let ready = "{.status.conditions[?(@.type==\"Ready\")].status}";
    for namespace in [other.name(), first, second.name()] {
        stage.kubectl(&["apply", "-f", "shop.json", "-n", namespace]);
    }
    for namespace in [first, second.name()] {
        until("ready", || match get(&shops, namespace, ready) {
            told if told == "True" => Ok(()),
            told => Err(told),
        });
        let moved = ["--type=merge", "-p", r#"{"data":{"a":"x"}}"#];
        stage.kubectl(&[&["patch", "configmap", "web", "-n", namespace], &moved[..]].concat());
        until("put back", || match get("configmap", namespace, "{.data.a}") {
            told if told == "1" => Ok(()),
            told => Err(told),
        });
    }
    assert_eq!(get(&shops, other.name(), "{.status}{.metadata.finalizers}"), "");
    let user = format!("system:serviceaccount:{first}:{account}");
    let asked = stage.cluster.audit().of_user(&user).requests().unwrap();
    let elsewhere: Vec<_> = asked
        .iter()
        .filter(|it| !it.resource.is_empty() && ![first, second.name()].contains(&&*it.namespace))
        // Once it asks what it may do itself.
        .filter(|it| it.resource != "selfsubjectaccessreviews")
        .collect();
    assert!(elsewhere.is_empty(), "{elsewhere:#?}");
    assert!(!operator.log().contains("no right"), "{}", operator.log());
    for namespace in [other.name(), first, second.name()] {
        stage.kubectl(&["delete", &shops, "web", "-n", namespace, "--timeout=60s"]);
    }
}

/// Objects by the label that they carry, pods by what their workload selects, definitions by their name.
#[tokio::test]
async fn of_a_kind_what_belongs_to_releases() {
    let stage = Stage::of("narrow", MIRROR).await;
    let group = format!("narrow.{}", stage.group);
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("things.{group}") },
        "spec": { "group": group, "scope": "Namespaced", "names": { "kind": "Thing", "plural": "things" },
            "versions": [{ "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object" } } }] },
    });
    stage.write("helm-charts/demo/crds/thing.yaml", &definition.to_string());
    let _operator = stage.operator();
    let labels = json!({ "app": "never" });
    let never = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "never" },
        "spec": { "replicas": 1, "selector": { "matchLabels": labels }, "template": {
            "metadata": { "labels": labels, "annotations": { "fake.catamaran.test/never-ready": "true" } },
            "spec": { "containers": [{ "name": "c", "image": "busybox" }] },
        } },
    });
    stage.apply(&stage.shop("web", &json!({ "objects": [config_map("web", &json!({})), never] })));
    stage.shop_becomes("web", "told of its pod", |shop| {
        field(shop, "Ready", "message").contains("container c runs and is not ready")
    });
    assert!(is(&stage.shop_now("web"), "Deployed", "True"));
    let asked = audit(&stage).requests().unwrap();
    let watched: Vec<_> = asked.iter().filter(|it| it.verb == "watch").collect();
    let of = |resource: &str| -> BTreeSet<&str> {
        let ours = watched.iter().filter(|it| it.namespace == stage.namespace.name());
        ours.filter(|it| it.resource == resource).map(|it| &*it.uri).collect()
    };
    for (resource, selector) in [
        ("configmaps", "labelSelector=helm.sdk.operatorframework.io%2Fchart+in+%28demo%29"),
        ("deployments", "labelSelector=helm.sdk.operatorframework.io%2Fchart+in+%28demo%29"),
        ("pods", "labelSelector=app%3Dnever"),
        ("secrets", "labelSelector=owner%3Dhelm"),
    ] {
        let of = of(resource);
        assert!(!of.is_empty() && of.iter().all(|uri| uri.contains(selector)), "{of:#?}");
    }
    let named = format!("fieldSelector=metadata.name%3Dthings.{group}");
    assert!(watched.iter().any(|it| it.uri.contains(&named)), "{watched:#?}");
    let ours = |it: &&&catamaran_localcluster::Request| it.namespace == stage.namespace.name();
    let lists: Vec<_> =
        asked.iter().filter(|it| it.verb == "list" && it.resource == "pods").collect();
    let all = lists.iter().filter(ours).filter(|it| !it.uri.contains("labelSelector=app%3Dnever"));
    assert_eq!(all.count(), 0, "{lists:#?}");
    stage.kubectl(&["delete", &stage.kind("shops"), "web", "--timeout=60s"]);
    stage.kubectl(&["delete", "crd", &format!("things.{group}"), "--wait=false"]);
}
