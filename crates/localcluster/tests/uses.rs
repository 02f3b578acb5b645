//! What tests do with a cluster. All of them share the checkout's, as the tests of other crates do.

#![allow(clippy::unwrap_used, clippy::panic)] // a test ends by them

mod common;

use std::fmt::Debug;
use std::process::Command;
use std::time::Duration;

use catamaran_localcluster::{LocalCluster, shared};
use common::{SOON, eventually};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use k8s_openapi::api::rbac::v1::RoleBinding;
use kube::api::{Api, DeleteParams, ListParams, PostParams, WatchParams};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

async fn create<K>(api: &Api<K>, object: Value) -> K
where
    K: Clone + Debug + DeserializeOwned + Serialize,
{
    let object = serde_json::from_value(object).unwrap();
    api.create(&PostParams::default(), &object).await.unwrap()
}

fn is_forbidden<T: Debug>(result: kube::Result<T>) -> bool {
    matches!(result, Err(kube::Error::Api(status)) if status.is_forbidden())
}

fn pods(labels: &Value) -> Value {
    json!({
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "main", "image": "example.invalid/any:1"}]},
    })
}

#[tokio::test]
async fn deployments_become_ready_and_jobs_complete() {
    let cluster = shared().await.unwrap();
    let namespace = cluster.namespace("workloads").await.unwrap();
    let labels = json!({"app": "x"});

    let deployments: Api<Deployment> = Api::namespaced(cluster.client(), &namespace);
    let spec =
        json!({"replicas": 3, "selector": {"matchLabels": labels}, "template": pods(&labels)});
    create(&deployments, json!({"metadata": {"name": "x"}, "spec": spec})).await;
    eventually("3 ready replicas", SOON, async || {
        let status = deployments.get("x").await.unwrap().status?;
        (status.ready_replicas == Some(3)).then_some(())
    })
    .await;

    let jobs: Api<Job> = Api::namespaced(cluster.client(), &namespace);
    let mut template = pods(&json!({}));
    template["spec"]["restartPolicy"] = "Never".into();
    create(&jobs, json!({"metadata": {"name": "y"}, "spec": {"template": template}})).await;
    eventually("the job to complete", SOON, async || {
        let status = jobs.get("y").await.unwrap().status?;
        (status.succeeded == Some(1)).then_some(())
    })
    .await;

    // The garbage collector works too.
    deployments.delete("x", &DeleteParams::background()).await.unwrap();
    let pods: Api<Pod> = Api::namespaced(cluster.client(), &namespace);
    eventually("the deployment's pods to go", SOON, async || {
        let left = pods.list(&ListParams::default().labels("app=x")).await.unwrap();
        left.items.is_empty().then_some(())
    })
    .await;
}

#[tokio::test]
async fn annotations_steer_how_a_simulated_pod_fares() {
    let cluster = shared().await.unwrap();
    let namespace = cluster.namespace("fates").await.unwrap();
    let pods: Api<Pod> = Api::namespaced(cluster.client(), &namespace);
    // Name, restartPolicy, annotation, its value; phase and readiness in the end.
    let fates = [
        ("plain", "Always", "none", "", "Running", "True"),
        ("late", "Always", "ready-after", "1s", "Running", "True"),
        ("unready", "Always", "never-ready", "true", "Running", "False"),
        ("short", "Never", "run-for", "1s", "Succeeded", "False"),
        ("failing", "Never", "exit-code", "3", "Failed", "False"),
    ];
    for (name, policy, annotation, value, ..) in fates {
        let annotations = json!({format!("fake.catamaran.test/{annotation}"): value});
        let mut pod = self::pods(&json!({}));
        pod["metadata"] = json!({"name": name, "annotations": annotations});
        pod["spec"]["restartPolicy"] = policy.into();
        create(&pods, pod).await;
    }
    for (name, .., phase, ready) in fates {
        eventually(&format!("pod {name} to be {phase}, Ready={ready}"), SOON, async || {
            let status = pods.get(name).await.unwrap().status?;
            let as_expected = status.phase.as_deref() == Some(phase)
                && status.conditions?.iter().any(|c| c.type_ == "Ready" && c.status == ready);
            as_expected.then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn namespaces_are_unique_usable_at_once_and_go_by_themselves() {
    let cluster = shared().await.unwrap();
    let one = cluster.namespace("Some_Test").await.unwrap();
    let two = cluster.namespace("Some_Test").await.unwrap();
    assert!(one.starts_with("some-test-") && two.starts_with("some-test-") && *one != *two);
    let pod = json!({
        "metadata": {"name": "x"},
        "spec": {"containers": [{"name": "main", "image": "example.invalid/any:1"}]},
    });
    create::<Pod>(&Api::namespaced(cluster.client(), &one), pod).await;

    let name = one.name().to_owned();
    drop(one);
    let namespaces: Api<Namespace> = Api::all(cluster.client());
    eventually("the namespace to go", SOON, async || {
        namespaces.get_opt(&name).await.unwrap().is_none().then_some(())
    })
    .await;
    assert!(namespaces.get_opt(&two).await.unwrap().is_some());
}

/// Lets a user or group read the ConfigMaps of a namespace.
async fn bind_view(cluster: &LocalCluster, namespace: &str, subject: Value) {
    let bindings: Api<RoleBinding> = Api::namespaced(cluster.client(), namespace);
    let view =
        json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"});
    let binding =
        json!({"metadata": {"generateName": "x-"}, "roleRef": view, "subjects": [subject]});
    create(&bindings, binding).await;
}

#[tokio::test]
async fn users_may_do_what_is_bound_to_them_and_nothing_else() {
    let cluster = shared().await.unwrap();
    let namespace = cluster.namespace("users").await.unwrap();
    let maps = |user: &str, groups: &[&str]| -> Api<ConfigMap> {
        Api::namespaced(cluster.client_as(user, groups).unwrap(), &namespace)
    };
    let all = ListParams::default();
    assert!(is_forbidden(maps("jane", &[]).list(&all).await));

    let user = |name: &str| json!({"kind": "User", "name": name});
    bind_view(&cluster, &namespace, user("jane")).await;
    bind_view(&cluster, &namespace, json!({"kind": "Group", "name": "readers"})).await;
    // The authorizer learns of bindings by a watch.
    eventually("jane's right", SOON, async || maps("jane", &[]).list(&all).await.ok()).await;
    eventually("the group's right", SOON, async || {
        maps("joe", &["others", "readers"]).list(&all).await.ok()
    })
    .await;
    assert!(is_forbidden(maps("joe", &["others"]).list(&all).await));
    assert!(is_forbidden(maps("jane", &[]).delete("x", &DeleteParams::default()).await));

    let kubeconfig = cluster.kubeconfig_for("jane", &["others"]).unwrap();
    let whoami = Command::new(cluster.tools().unwrap().kubectl())
        .args(["auth", "whoami", "--output", "jsonpath={.status.userInfo}", "--kubeconfig"])
        .arg(kubeconfig)
        .output()
        .unwrap();
    let whoami: Value = serde_json::from_slice(&whoami.stdout).unwrap();
    assert_eq!(whoami["username"], "jane");
    assert_eq!(whoami["groups"], json!(["others", "system:authenticated"]));
}

#[tokio::test]
async fn a_service_account_comes_in_by_its_token() {
    let cluster = shared().await.unwrap();
    let namespace = cluster.namespace("tokens").await.unwrap();
    let kubeconfig = cluster.service_account(&namespace, "robot").await.unwrap();
    let again = cluster.service_account(&namespace, "robot").await.unwrap();
    assert_eq!(kubeconfig, again, "an account that is there gets a new token");

    let options = kube::config::KubeConfigOptions::default();
    let kubeconfig = kube::config::Kubeconfig::read_from(kubeconfig).unwrap();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
    let robot = kube::Client::try_from(config).unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(robot, &namespace);
    assert!(is_forbidden(maps.list(&ListParams::default()).await));
    bind_view(
        &cluster,
        &namespace,
        json!({"kind": "ServiceAccount", "name": "robot", "namespace": &*namespace}),
    )
    .await;
    eventually("the robot's right", SOON, async || maps.list(&ListParams::default()).await.ok())
        .await;
}

#[tokio::test]
async fn the_audit_log_tells_exactly_what_a_program_asked() {
    let cluster = shared().await.unwrap();
    let namespace = cluster.namespace("audit").await.unwrap();
    let agent = format!("audit-test/{namespace}");
    let log = cluster.audit().of_agent(&agent);
    let client = cluster.client_called(&agent).unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace);
    create(&maps, json!({"metadata": {"name": "x"}})).await;

    let mark = log.mark().unwrap();
    assert!(maps.get_opt("none").await.unwrap().is_none());
    create(&maps, json!({"metadata": {"name": "y"}})).await;
    let watch = maps.watch(&WatchParams::default(), "0").await.unwrap();
    Api::<Pod>::namespaced(client, &namespace).list(&ListParams::default()).await.unwrap();
    drop(watch); // its end is no second request

    let end = log.until_quiet(Duration::from_millis(500), SOON).await.unwrap();
    let requests = log.since(mark).unwrap();
    let seen: Vec<_> = requests
        .iter()
        .map(|r| (r.verb.as_str(), r.resource.as_str(), r.name.as_str(), r.code))
        .collect();
    // A creation's name is in the answer, not in the request.
    let expected = [
        ("get", "configmaps", "none", 404),
        ("create", "configmaps", "y", 201),
        ("watch", "configmaps", "", 200),
        ("list", "pods", "", 200),
    ];
    let expected = expected.map(|(verb, resource, name, code)| match verb {
        "create" => (verb, resource, requests[1].name.as_str(), code),
        _ => (verb, resource, name, code),
    });
    assert_eq!(seen, expected);
    assert!(requests.iter().all(|r| r.namespace == *namespace && r.user == "admin"));
    assert_eq!(log.since(end).unwrap(), [], "and nothing since");
    assert!(log.of_user("nobody").since(mark).unwrap().is_empty());
}

#[tokio::test]
async fn the_real_helms_find_the_cluster() {
    let cluster = shared().await.unwrap();
    let namespace = cluster.namespace("helm").await.unwrap();
    let tools = cluster.tools().unwrap();
    for (helm, major) in [(tools.helm(), "v4."), (tools.helm3(), "v3.")] {
        let helm = |arguments: &[&str]| {
            let output = Command::new(&helm)
                .args(arguments)
                .env("KUBECONFIG", cluster.kubeconfig())
                .output()
                .unwrap();
            assert!(output.status.success(), "{output:?}");
            String::from_utf8(output.stdout).unwrap()
        };
        assert!(helm(&["version", "--template", "{{.Version}}"]).starts_with(major));
        assert_eq!(helm(&["list", "--namespace", &namespace, "--short"]).trim(), "");
    }
}
