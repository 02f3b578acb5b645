//! The label of the chart: on every live object, hooks included, and nowhere else; and what others do to
//! objects of every kind is put back.

use serde_json::{Value, json};

use crate::support::{MIRROR, Stage, config_map, is, until};

const LABEL: &str = "helm.sdk.operatorframework.io/chart";

/// What the label of an object says.
fn label(object: &Value) -> &str {
    object["metadata"]["labels"][LABEL].as_str().unwrap_or_default()
}

fn deployment(name: &str) -> Value {
    let labels = json!({ "app": name });
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": name },
        "spec": { "replicas": 1, "selector": { "matchLabels": labels }, "template": {
            "metadata": { "labels": labels },
            "spec": { "containers": [{ "name": "c", "image": "busybox" }] },
        } },
    })
}

/// A release with objects of every place: beside its resource, in another namespace, in none.
struct Spread {
    stage: Stage,
    elsewhere: catamaran_localcluster::Namespace,
    role: String,
    thing: String,
}

async fn spread(name: &str) -> Spread {
    let mut stage = Stage::of(name, MIRROR).await;
    stage.define("Thing", "Namespaced", &["v1"]);
    let elsewhere = stage.cluster.namespace(&format!("{name}-else")).await.unwrap();
    let role = format!("{}-web", stage.namespace.name());
    let mut other = config_map("other", &json!({ "k": "v" }));
    other["metadata"]["namespace"] = elsewhere.name().into();
    let mut hook = config_map("hook", &json!({ "k": "v" }));
    hook["metadata"]["annotations"] = json!({ "helm.sh/hook": "post-install" });
    let objects = json!([
        deployment("web"),
        config_map("map", &json!({ "k": "v" })),
        {
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": { "name": role },
            "rules": [{ "apiGroups": [""], "resources": ["pods"], "verbs": ["get"] }],
        },
        stage.resource("Thing", "thing", &json!({ "size": 3 })),
        other,
        hook,
    ]);
    stage.apply(&stage.shop("rel", &json!({ "objects": objects })));
    let thing = stage.kind("things");
    Spread { stage, elsewhere, role, thing }
}

impl Spread {
    /// Where the objects are: the kind, the name, and more for kubectl.
    fn places(&self) -> [(&str, &str, Vec<&str>); 5] {
        [
            ("deployment", "web", vec![]),
            ("configmap", "map", vec![]),
            ("clusterrole", &self.role, vec![]),
            (&self.thing, "thing", vec![]),
            ("configmap", "other", vec!["-n", self.elsewhere.name()]),
        ]
    }

    fn get(&self, (kind, name, place): &(&str, &str, Vec<&str>)) -> Value {
        let fixed = ["get", kind, name, "--ignore-not-found", "-o", "json"];
        let told = self.stage.kubectl(&[&fixed[..], place].concat());
        serde_json::from_str(&told).unwrap_or_default()
    }
}

#[tokio::test]
async fn every_live_object_has_it_and_neither_records_nor_pods_do() {
    let spread = spread("labelled").await;
    let stage = &spread.stage;
    let _operator = stage.operator();
    stage.shop_becomes("rel", "Ready", |shop| is(shop, "Ready", "True"));
    for place in spread.places() {
        assert_eq!(label(&spread.get(&place)), "demo", "{place:?}");
    }
    assert_eq!(label(&stage.get("configmap", "hook")), "demo", "hooks, too");
    let web = stage.get("deployment", "web");
    assert!(web["spec"]["template"]["metadata"]["labels"][LABEL].is_null(), "no restart for it");
    assert!(!stage.helm3(&["get", "all", "rel"]).contains(LABEL));
    // What helm brings back is labelled again, and what helm sees is what it wrote.
    stage.helm3(&["rollback", "rel", "1"]);
    until("labelled after a rollback by hand", || {
        let labels: Vec<Value> = spread.places().iter().map(|place| spread.get(place)).collect();
        let all = labels.iter().all(|object| label(object) == "demo");
        if all { Ok(()) } else { Err(format!("{labels:#?}")) }
    });
}

#[tokio::test]
async fn what_others_do_is_put_back_whatever_the_kind_and_wherever_it_is() {
    let spread = spread("drifts").await;
    let stage = &spread.stage;
    // Only watches tell: no period helps.
    let _operator = stage.operator_with(&["--reconcile-period=0s"]);
    stage.shop_becomes("rel", "Ready", |shop| is(shop, "Ready", "True"));
    let theirs = [
        json!({ "spec": { "replicas": 2 } }),
        json!({ "data": { "k": "theirs" } }),
        json!({ "rules": [] }),
        json!({ "spec": { "size": 9 } }),
        json!({ "data": { "k": "theirs" } }),
    ];
    let whole = |object: &Value| {
        let labels = object["metadata"]["labels"].clone();
        let role = object["rules"].clone();
        json!([object["metadata"]["uid"], labels, object["data"], object["spec"], role])
    };
    for (place, theirs) in spread.places().iter().zip(theirs) {
        let before = whole(&spread.get(place));
        let unlabelled = json!({ "metadata": { "labels": { LABEL: null } } });
        for change in [theirs, unlabelled] {
            let (kind, name, more) = place;
            let change = change.to_string();
            let fixed = ["patch", kind, name, "--type=merge", "-p", &change];
            stage.kubectl(&[&fixed[..], more].concat());
            until(&format!("{kind} {name} is as it was after {change}"), || {
                let now = whole(&spread.get(place));
                if now == before { Ok(()) } else { Err(format!("{now:#}")) }
            });
        }
    }
    // An object that is gone is made anew.
    stage.kubectl(&["delete", "configmap", "map"]);
    until("the map is back", || {
        let map = stage.get("configmap", "map");
        if label(&map) == "demo" { Ok(()) } else { Err(map.to_string()) }
    });
}
