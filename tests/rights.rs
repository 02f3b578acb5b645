//! The operator as `make deploy` sets it up: its own service account, exactly the rights of config/rbac.

#![allow(clippy::unwrap_used)] // helpers of tests fail as tests do

mod support;

use std::collections::BTreeSet;
use std::time::Duration;

use catamaran_localcluster::{ESTABLISHED, LocalCluster, Request};
use kube::Api;
use kube::core::DynamicObject;
use serde_json::{Value, json};
use support::{
    Bench, DEADLINE, Operator, becomes, condition, create, delete, eventually, field, number,
    patch, root, vanishes,
};

const SYSTEM: &str = "memcached-operator-system";
const ACCOUNT: &str = "memcached-operator-controller-manager";

/// Every verb of the role, as (group, resource, verb), with subresources as `resource/sub`.
fn granted() -> BTreeSet<(String, String, String)> {
    let roles = ["role", "leader_election_role", "record_key_role", "metrics_auth_role"]
        .map(|role| format!("config/rbac/{role}.yaml"));
    roles.iter().flat_map(|role| granted_by(role)).collect()
}

fn granted_by(file: &str) -> BTreeSet<(String, String, String)> {
    let text = std::fs::read_to_string(root().join(file)).unwrap();
    let role: Value = serde_saphyr::from_str(&text).unwrap();
    let strings = |value: &Value| -> Vec<String> {
        value.as_array().unwrap().iter().map(|item| item.as_str().unwrap().to_owned()).collect()
    };
    let mut granted = BTreeSet::new();
    for rule in role["rules"].as_array().unwrap() {
        for group in strings(&rule["apiGroups"]) {
            for resource in strings(&rule["resources"]) {
                for verb in strings(&rule["verbs"]) {
                    granted.insert((group.clone(), resource.clone(), verb));
                }
            }
        }
    }
    granted
}

/// The rights that a request took.
fn taken(request: &Request) -> Vec<(String, String, String)> {
    let resource = if request.subresource.is_empty() {
        request.resource.clone()
    } else {
        format!("{}/{}", request.resource, request.subresource)
    };
    let right = |verb: &str| (request.group.clone(), resource.clone(), verb.to_owned());
    match request.code {
        // A server-side apply that creates is authorized twice.
        201 if request.verb == "patch" => vec![right("patch"), right("create")],
        _ => vec![right(&request.verb)],
    }
}

#[test]
fn the_role_has_no_wildcard() {
    for (group, resource, verb) in granted() {
        assert!(
            ![&group, &resource, &verb].iter().any(|part| part.contains('*')),
            "{group} {resource} {verb}"
        );
    }
}

#[tokio::test]
async fn its_rights_are_enough_and_none_is_idle() {
    let cluster = LocalCluster::builder().nodes(2).audit(true).start().await.unwrap();
    let bench = Bench::on(cluster, "rights").await;
    bench.kubectl(&["apply", "-f", "tests/fixtures/httproute-crd.yaml"]);
    bench.kubectl(&["wait", ESTABLISHED, "-f", "tests/fixtures/httproute-crd.yaml"]);
    bench.kubectl(&[
        "-n",
        SYSTEM,
        "apply",
        "--server-side",
        "--force-conflicts",
        "-k",
        "config/default",
    ]);
    // Restricted pod security admits the operator's pod.
    let deployment = format!("deployment/{ACCOUNT}");
    bench.kubectl(&["rollout", "status", &deployment, "-n", SYSTEM, "--timeout=60s"]);
    let kubeconfig = bench.cluster.service_account(SYSTEM, ACCOUNT).await.unwrap();
    // A kind that comes later.
    bench.kubectl(&["delete", "crd", "memcachedbackups.cache.my.domain"]);
    let start = || {
        // All namespaces, as deployed: WATCH_NAMESPACE is empty.
        let mut command = Operator::command(&kubeconfig);
        command.args(["--leader-elect", "--leader-election-namespace", SYSTEM]);
        command.args(["--metrics-bind-address", "127.0.0.1:0"]);
        Operator::start(command)
    };
    let operator = start();
    eventually("a kind is missed, and the metrics are served", async || {
        let log = operator.log();
        let address = log.lines().find(|line| line.contains("serving metrics"));
        let address = address.filter(|_| log.contains("kind cannot be watched yet")).ok_or(&log)?;
        let address: Value = serde_json::from_str(address).map_err(|error| error.to_string())?;
        scrape(&bench, address["address"].as_str().unwrap_or_default())
    })
    .await;
    bench.crds();
    let standby = start();
    eventually("the second stands by", async || {
        if standby.log().contains("standing by") { Ok(()) } else { Err(standby.log()) }
    })
    .await;

    everything_a_user_does(&bench).await;

    let account = format!("system:serviceaccount:{SYSTEM}:{ACCOUNT}");
    let audit = bench.cluster.audit().of_user(&account);
    // Less than the two seconds between renewals of the lease.
    audit.until_quiet(Duration::from_secs(1), DEADLINE).await.unwrap();
    let requests = audit.requests().unwrap();
    let forbidden: Vec<_> = requests.iter().filter(|request| request.code == 403).collect();
    assert!(forbidden.is_empty(), "rights that are missing in config/rbac: {forbidden:#?}");

    let used: BTreeSet<_> = requests.iter().flat_map(taken).collect();
    // Admission asks for this right; it makes no request (see LocalCluster: the plugin is on, as in
    // OpenShift, so that the owner references above were refused without it).
    let asked_by_admission =
        |(_, resource, _): &&(String, String, String)| resource.ends_with("/finalizers");
    let role = granted();
    let idle: Vec<_> = role
        .iter()
        .filter(|right| !asked_by_admission(right))
        .filter(|right| !used.contains(*right))
        .collect();
    assert!(idle.is_empty(), "rights in config/rbac that nothing needs: {idle:#?}");
}

/// config/namespaced: the operator works in the namespace that it serves, and has no rights elsewhere.
#[tokio::test]
async fn a_role_for_the_watched_namespace_is_enough_there_and_grants_nothing_elsewhere() {
    let bench = Bench::on(LocalCluster::builder().nodes(1).start().await.unwrap(), "served").await;
    // Without a namespace: what is applied lies in several.
    let kubectl = |arguments: &[&str]| {
        let mut command = std::process::Command::new(bench.cluster.tools().unwrap().kubectl());
        command.args(arguments).env("KUBECONFIG", bench.cluster.kubeconfig()).current_dir(root());
        command.output().unwrap()
    };
    let applied =
        kubectl(&["apply", "--server-side", "--force-conflicts", "-k", "config/namespaced"]);
    assert!(applied.status.success(), "{applied:?}");
    let account = format!("--as=system:serviceaccount:{SYSTEM}:{ACCOUNT}");
    let may = |verb: &str, resource: &str, place: &[&str]| {
        let question = ["auth", "can-i", verb, resource, account.as_str()];
        kubectl(&[&question[..], place].concat()).status.success()
    };
    for (verb, resource) in [("create", "secrets"), ("patch", "deployments"), ("get", "secrets")] {
        assert!(may(verb, resource, &["-n", "default"]), "{verb} {resource}");
        assert!(!may(verb, resource, &["-n", "kube-system"]), "{verb} {resource} elsewhere");
        assert!(!may(verb, resource, &["--all-namespaces"]), "{verb} {resource} everywhere");
    }

    let kubeconfig = bench.cluster.service_account(SYSTEM, ACCOUNT).await.unwrap();
    let mut command = Operator::command(&kubeconfig);
    command.args(["--leader-elect", "--leader-election-namespace", SYSTEM]);
    command.env("WATCH_NAMESPACE", "default");
    let operator = Operator::start(command);
    let sample = "config/samples/cache_v1alpha1_memcached.yaml";
    bench.kubectl(&["apply", "-n", "default", "-f", sample]);
    let resource = "memcacheds.cache.my.domain/memcached-sample";
    let deployed = "--for=condition=Deployed";
    bench.kubectl(&["wait", "-n", "default", resource, deployed, "--timeout=60s"]);
    bench.kubectl(&["delete", "-n", "default", resource, "--timeout=60s"]);
    let log = operator.log();
    for words in ["forbidden", "rights of the operator"] {
        assert!(!log.contains(words), "{log}");
    }
}

/// Reads the metrics as Prometheus does: with a token, which the operator has reviewed.
fn scrape(bench: &Bench, address: &str) -> Result<(), String> {
    let token = bench.kubectl(&["-n", SYSTEM, "create", "token", ACCOUNT]);
    let answer = std::process::Command::new("curl")
        .args(["--silent", "--insecure", "--write-out", "%{http_code}", "--header"])
        .arg(format!("Authorization: Bearer {}", token.trim()))
        .arg(format!("https://{address}/metrics"))
        .output();
    let answer = answer.map_err(|error| error.to_string())?.stdout;
    // The operator's own account is no reader.
    if answer.ends_with(b"403") { Ok(()) } else { Err(String::from_utf8_lossy(&answer).into()) }
}

/// Every kind of object of the chart comes, changes, is repaired, and goes; so does the native kind.
async fn everything_a_user_does(bench: &Bench) {
    let ready = |object: &_| condition(object, "Ready") == "True";
    let memcacheds = bench.memcacheds();
    let full = json!({
        "ingress": { "enabled": true },
        "httpRoute": { "enabled": true },
        "autoscaling": { "enabled": true, "minReplicas": 1, "maxReplicas": 2 },
    });
    create(&memcacheds, "cache.my.domain/v1alpha1", "Memcached", "full", full).await;
    create(
        &bench.backups(),
        "cache.my.domain/v1",
        "MemcachedBackup",
        "backup",
        json!({ "size": 2 }),
    )
    .await;
    let deployed = |object: &_| condition(object, "Deployed") == "True";
    becomes(&memcacheds, "full", "Deployed", deployed).await;
    becomes(&bench.backups(), "backup", "Ready with its pods", |backup| {
        ready(backup)
            && backup.data["status"]["nodes"].as_array().is_some_and(|nodes| nodes.len() == 2)
    })
    .await;
    let ingresses = bench.api("networking.k8s.io/v1", "Ingress");
    let routes = bench.api("gateway.networking.k8s.io/v1", "HTTPRoute");
    let scalers = bench.api("autoscaling/v2", "HorizontalPodAutoscaler");
    for api in [&ingresses, &routes, &scalers] {
        // Deleted by hand, it comes back: it is watched.
        let before = becomes(api, "full-memcached", "there", |_| true).await.metadata.uid;
        delete(api, "full-memcached").await;
        becomes(api, "full-memcached", "created again", |object| object.metadata.uid != before)
            .await;
    }
    let scaled = json!({ "spec": { "replicas": 5 } });
    patch(&bench.deployments(), "backup", scaled).await;
    becomes(&bench.deployments(), "backup", "scaled back", |d| {
        number(d, "/spec/replicas") == Some(2)
    })
    .await;
    // Trouble that comes again and again is one event with a count.
    let taken = "taken-memcached";
    bench.kubectl(&["create", "serviceaccount", taken]);
    create(&memcacheds, "cache.my.domain/v1alpha1", "Memcached", "taken", json!({})).await;
    eventually("a failure is counted", async || {
        let events = bench.kubectl(&["get", "events", "--output=json"]);
        let events: Value = serde_json::from_str(&events).map_err(|error| error.to_string())?;
        let counted = |event: &Value| event["series"]["count"].as_i64() >= Some(2);
        let items = events["items"].as_array();
        if items.is_some_and(|items| items.iter().any(counted)) {
            Ok(())
        } else {
            Err(events.to_string())
        }
    })
    .await;
    bench.kubectl(&["delete", "serviceaccount", taken]);
    becomes(&memcacheds, "taken", "Deployed", deployed).await;
    delete(&memcacheds, "taken").await;
    vanishes(&memcacheds, "taken").await;
    // What keeps a pod from being ready is looked for at the pod, and among its events.
    let never = json!({ "podAnnotations": { "fake.catamaran.test/never-ready": "true" } });
    patch(&memcacheds, "full", json!({ "spec": never })).await;
    becomes(&memcacheds, "full", "not ready because of a pod", |memcached| {
        field(memcached, "Ready", "message").contains("container memcached runs and is not ready")
    })
    .await;
    patch(&memcacheds, "full", json!({ "spec": { "podAnnotations": null } })).await;
    // An upgrade that drops objects.
    let less = json!({ "ingress": null, "httpRoute": null, "autoscaling": null });
    patch(&memcacheds, "full", json!({ "spec": less })).await;
    for api in [&ingresses, &routes, &scalers] {
        vanishes(api, "full-memcached").await;
    }
    becomes(&memcacheds, "full", "Ready", ready).await;
    // The size is a ConfigMap's, and follows it.
    bench.kubectl(&["create", "configmap", "size", "--from-literal=replicaCount=2"]);
    bench.kubectl(&["annotate", "memcached", "full", "cache.my.domain/size-from=size"]);
    let has = |size: i64| move |d: &_| number(d, "/spec/replicas") == Some(size);
    becomes(&bench.deployments(), "full-memcached", "of the size", has(2)).await;
    bench.kubectl(&["patch", "configmap", "size", "-p", r#"{"data":{"replicaCount":"3"}}"#]);
    becomes(&bench.deployments(), "full-memcached", "of the new size", has(3)).await;
    a_backup_and_a_restore(bench).await;
    // History is capped: old records are deleted.
    delete(&memcacheds, "full").await;
    delete(&bench.backups(), "backup").await;
    vanishes(&memcacheds, "full").await;
    vanishes(&bench.backups(), "backup").await;
    eventually("no record is left", async || {
        let records = bench.kubectl(&["get", "secrets", "--output=name"]);
        if records.is_empty() { Ok(()) } else { Err(records) }
    })
    .await;
}

/// What keeps backups, beside objects of others that have the names of its own.
async fn a_backup_and_a_restore(bench: &Bench) {
    let (cron_jobs, jobs) = (bench.api("batch/v1", "CronJob"), bench.api("batch/v1", "Job"));
    let claims = bench.api("v1", "PersistentVolumeClaim");
    let storage = json!({ "accessModes": ["ReadWriteOnce"],
        "resources": { "requests": { "storage": "1Gi" } } });
    create(&claims, "v1", "PersistentVolumeClaim", "kept-backup", storage).await;
    let theirs = ["create", "cronjob", "kept-backup", "--image=i", "--schedule=0 3 * * *"];
    bench.kubectl(&theirs);
    let backup = json!({ "host": "h", "schedule": "0 3 * * *", "image": "i:1", "restore": {} });
    let spec = json!({ "size": 0, "backup": backup });
    create(&bench.backups(), "cache.my.domain/v1", "MemcachedBackup", "kept", spec).await;
    let told = async |what: &str| {
        becomes(&bench.backups(), "kept", what, |kept| {
            field(kept, "Backup", "message").contains(what)
        })
        .await;
    };
    // One of the operator's own may be there at once.
    let deleted = async |api: &Api<DynamicObject>| {
        let theirs = api.get("kept-backup").await.unwrap().metadata.uid;
        delete(api, "kept-backup").await;
        eventually("somebody else's is gone", async || match api.get_opt("kept-backup").await {
            Ok(Some(found)) if found.metadata.uid == theirs => Err(format!("{found:?}")),
            _ => Ok(()),
        })
        .await;
    };
    told("PersistentVolumeClaim").await;
    deleted(&claims).await;
    patch(
        &bench.backups(),
        "kept",
        json!({ "metadata": { "labels": { "a": "b" } }, "spec": { "size": 1 } }),
    )
    .await;
    told("CronJob").await;
    deleted(&cron_jobs).await;
    // Another image: the schedule is changed, the Job cannot be, and is made anew.
    let image = json!({ "spec": { "size": 2, "backup": { "image": "i:2" } } });
    patch(&bench.backups(), "kept", image).await;
    let has = |object: &DynamicObject, image: &str| {
        object.data.to_string().contains(&format!("\"{image}\""))
    };
    becomes(&cron_jobs, "kept-backup", "the new image", |object| has(object, "i:2")).await;
    eventually("the Job has the new image", async || {
        let all = jobs.list(&kube::api::ListParams::default()).await.map_err(|e| e.to_string())?;
        if all.iter().any(|job| has(job, "i:2")) { Ok(()) } else { Err(format!("{all:?}")) }
    })
    .await;
    delete(&bench.backups(), "kept").await;
    vanishes(&bench.backups(), "kept").await;
}
