//! What many releases cost together, what a repair costs, and what is none of ours to repair.

use std::time::Duration;

use catamaran_localcluster::{AuditLog, Mark};
use serde_json::{Value, json};

use crate::quiet::{audit, rests};
use crate::support::{MIRROR, Stage, config_map, is, until};

const FLEET: usize = 40;

/// The operator's requests about the namespace since then, but for those of watches and leases.
fn asked(stage: &Stage, audit: &AuditLog, since: Mark) -> Vec<String> {
    let requests = audit.since(since).unwrap().into_iter();
    let ours = requests.filter(|it| it.namespace == stage.namespace.name() && it.verb != "watch");
    // What begins the watch on records, whose selector nobody else has.
    let ours = ours.filter(|it| !it.uri.contains("superseded"));
    ours.map(|it| format!("{} {}", it.verb, it.resource)).collect()
}

fn count(asked: &[String], what: &str) -> usize {
    asked.iter().filter(|it| *it == what).count()
}

#[tokio::test]
async fn a_restart_reads_the_records_of_many_releases_at_once_and_writes_nothing() {
    let stage = Stage::of("fleet", MIRROR).await;
    let audit = audit(&stage);
    let operator = stage.operator();
    let names: Vec<String> = (0..FLEET).map(|number| format!("shop-{number}")).collect();
    let shops: Vec<Value> = names
        .iter()
        .map(|name| stage.shop(name, &json!({ "objects": [config_map(name, &json!({}))] })))
        .collect();
    stage.apply(&json!({ "apiVersion": "v1", "kind": "List", "items": shops }));
    let all_are_ready = || {
        until("all are ready", || {
            let shops = stage.kubectl(&["get", &stage.kind("shops"), "-o", "json"]);
            let shops: Value = serde_json::from_str(&shops).unwrap();
            let shops = shops["items"].as_array().unwrap();
            let ready = shops.iter().filter(|shop| is(shop, "Ready", "True")).count();
            if ready == FLEET { Ok(()) } else { Err(format!("{ready} are")) }
        });
    };
    all_are_ready();
    rests(&stage, &audit).await;
    drop(operator);
    // Meanwhile one of them is brought on by hand.
    stage.helm3(&["upgrade", "shop-7", "helm-charts/demo", "--reuse-values"]);

    let start = audit.mark().unwrap();
    let operator = stage.operator();
    stage.shop_becomes("shop-7", "noticed", |shop| {
        shop["status"]["deployedRelease"]["version"].as_i64() == Some(2)
    });
    rests(&stage, &audit).await;
    let requests = asked(&stage, &audit, start);
    let lists = count(&requests, "list secrets");
    assert!((1..FLEET / 3).contains(&lists), "{lists} lists: {requests:#?}");
    let reads: Vec<_> = requests.iter().filter(|it| it.starts_with("get ")).collect();
    assert_eq!(reads, [""; 0]);
    let writes: Vec<_> =
        requests.iter().filter(|it| !it.starts_with("list ") && !it.starts_with("get ")).collect();
    // What the status says of the one that moved.
    assert!(writes.iter().all(|it| *it == "patch shops") && writes.len() <= 2, "{writes:?}");
    all_are_ready();

    // What was read ahead is of no use any more: what comes now is found as ever.
    stage.apply(
        &stage.shop(
            "shop-3",
            &json!({ "objects": [config_map("shop-3", &json!({ "new": "value" }))] }),
        ),
    );
    stage.shop_becomes("shop-3", "upgraded", |shop| {
        shop["status"]["deployedRelease"]["version"].as_i64() == Some(2)
    });
    drop(operator);
}

#[tokio::test]
async fn an_object_that_is_gone_is_back_for_three_requests() {
    let stage = Stage::of("cheap", MIRROR).await;
    let audit = audit(&stage);
    let _operator = stage.operator_with(&["--reconcile-period=0s"]);
    stage.apply(
        &stage.shop("rel", &json!({ "objects": [config_map("map", &json!({ "k": "v" }))] })),
    );
    stage.shop_becomes("rel", "Ready", |shop| is(shop, "Ready", "True"));
    let mark = rests(&stage, &audit).await;
    stage.kubectl(&["delete", "configmap", "map"]);
    until("the map is back", || {
        let map = stage.get("configmap", "map");
        if map["data"]["k"] == "v" { Ok(()) } else { Err(map.to_string()) }
    });
    rests(&stage, &audit).await;
    let mut requests = asked(&stage, &audit, mark);
    requests.retain(|it| it != "create events");
    requests.sort();
    assert_eq!(requests, ["get secrets", "get secrets", "patch configmaps"]);
}

/// A policy that puts a field of its own into a namespace's ConfigMaps.
fn policy(name: &str) -> [Value; 2] {
    let expression = r#"[JSONPatch{op: "replace", path: "/data/k", value: "forced"}]"#;
    let api_version = "admissionregistration.k8s.io/v1";
    [
        json!({
            "apiVersion": api_version, "kind": "MutatingAdmissionPolicy", "metadata": { "name": name },
            "spec": {
                "reinvocationPolicy": "Never", "failurePolicy": "Fail",
                "matchConstraints": {
                    "namespaceSelector": { "matchLabels": { "kubernetes.io/metadata.name": name } },
                    "resourceRules": [{
                        "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"],
                        "resources": ["configmaps"], "resourceNames": ["meddled", "probe"],
                    }],
                },
                "mutations": [{ "patchType": "JSONPatch", "jsonPatch": { "expression": expression } }],
            },
        }),
        json!({
            "apiVersion": api_version, "kind": "MutatingAdmissionPolicyBinding", "metadata": { "name": name },
            "spec": { "policyName": name },
        }),
    ]
}

#[tokio::test]
async fn what_an_autoscaler_and_admission_say_is_left_alone_and_all_else_is_not() {
    let stage = Stage::of("others", MIRROR).await;
    let made = policy(stage.namespace.name());
    for object in &made {
        stage.apply(object);
    }
    until("the policy is heeded", || {
        let probe = stage.apply(&config_map("probe", &json!({ "k": "v" })));
        stage.kubectl(&["delete", "configmap", "probe"]);
        if probe["data"]["k"] == "forced" { Ok(()) } else { Err(probe["data"].to_string()) }
    });
    let labels = json!({ "app": "web" });
    let web = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web" },
        "spec": { "replicas": 1, "selector": { "matchLabels": labels }, "template": {
            "metadata": { "labels": labels },
            "spec": { "containers": [{ "name": "c", "image": "busybox" }] },
        } },
    });
    // The real one: it needs no metrics to see that there are fewer than it is to have.
    let autoscaler = json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": { "name": "web" },
        "spec": {
            "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "web" },
            "minReplicas": 3, "maxReplicas": 5,
        },
    });
    let objects = json!([web, autoscaler, config_map("meddled", &json!({ "k": "v" }))]);
    let _operator = stage.operator_with(&["--reconcile-period=2s"]);
    stage.apply(&stage.shop("rel", &json!({ "objects": objects })));
    let replicas = || stage.get("deployment", "web")["spec"]["replicas"].clone();
    until("the autoscaler has set the replicas", || {
        let now = replicas();
        if now == 3 { Ok(()) } else { Err(now.to_string()) }
    });
    assert_eq!(stage.get("configmap", "meddled")["data"]["k"], "forced");
    let audit = audit(&stage);
    let mark = rests(&stage, &audit).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(asked(&stage, &audit, mark), [""; 0], "nobody fights");
    assert_eq!(replicas(), 3);

    // What is ours beside it comes back, and leaves theirs as it is.
    let image = json!([{ "op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "evil" }]);
    stage.kubectl(&["patch", "deployment", "web", "--type=json", "-p", &image.to_string()]);
    until("the image is ours again", || {
        let web = stage.get("deployment", "web");
        let image = web["spec"]["template"]["spec"]["containers"][0]["image"].clone();
        if image == "busybox" { Ok(()) } else { Err(image.to_string()) }
    });
    rests(&stage, &audit).await;
    assert_eq!(replicas(), 3);
    for object in made {
        let kind = object["kind"].as_str().unwrap().to_lowercase();
        stage.kubectl(&["delete", &kind, stage.namespace.name()]);
    }
}
