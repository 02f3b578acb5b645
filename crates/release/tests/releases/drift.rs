//! What an apply would change is known beforehand, and what others did is told from what is theirs.

use catamaran_cluster::apply::FailureKind;
use catamaran_cluster::drift::IgnoreRule;
use catamaran_release::{ActionResult, Error};
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

use crate::counted::{Bench, deployment, found, of_all_kinds};
use crate::support::{DesiredRelease, Helm, config_map, secret};

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_reads_each_object_once_and_writes_nothing() {
    let bench = Bench::new("restart").await;
    let wish = DesiredRelease::new(&bench.namespace, "rel", of_all_kinds(&bench.namespace));
    let count = wish.objects.len();
    wish.reconcile(&bench.driver).await.expect("installed");

    let mark = bench.log.mark().expect("a mark");
    let applied = bench.look_anew("rel").await;
    assert_eq!(found(&applied), [""; 0]);
    assert_eq!((applied.done, applied.objects.len()), (ActionResult::Unchanged, count));
    let asked = bench.since(mark);
    let reads = asked.iter().filter(|asked| asked.starts_with("get ")).count();
    let others: Vec<_> = asked.iter().filter(|asked| !asked.starts_with("get ")).collect();
    assert_eq!(reads, count);
    assert_eq!(others, ["list secrets"], "not even a dry run");
}

/// The pointers of all scalars in an object, below a prefix.
fn leaves(value: &Value, prefix: &str, found: &mut Vec<String>) {
    let mut below = |name: &str, value: &Value| {
        let name = name.replace('~', "~0").replace('/', "~1");
        leaves(value, &format!("{prefix}/{name}"), found);
    };
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, value)| below(name, value)),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(at, item)| below(&at.to_string(), item));
        }
        Value::Null => {}
        _ => found.push(prefix.to_owned()),
    }
}

/// Takes the field at a pointer out.
fn remove(object: &mut Value, path: &str) {
    let (parent, name) = path.rsplit_once('/').expect("a pointer");
    match object.pointer_mut(parent).expect("a parent") {
        Value::Object(fields) => drop(fields.remove(&name.replace("~1", "/"))),
        Value::Array(items) => drop(items.remove(name.parse().expect("an index"))),
        _ => {}
    }
}

/// Another value of the same kind.
fn another(value: &Value) -> Value {
    match value {
        Value::String(text) if text.ends_with("==") => "eg==".into(),
        Value::String(text) if text.starts_with(|c: char| c.is_ascii_digit()) => {
            format!("2{text}").into()
        }
        Value::String(text) if text == "Never" => "OnFailure".into(),
        Value::String(text) => format!("{text}x").into(),
        Value::Number(number) => (number.as_i64().unwrap_or_default() + 1).into(),
        Value::Bool(yes) => (!yes).into(),
        other => other.clone(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_field_of_ours_that_others_change_is_found_and_put_back() {
    let bench = Bench::new("leaves").await;
    let wish = DesiredRelease::new(&bench.namespace, "rel", of_all_kinds(&bench.namespace));
    wish.reconcile(&bench.driver).await.expect("installed");
    let history = bench.driver.history(&bench.namespace, "rel").await.expect("a history");
    let mut changed = Vec::new();
    for object in &bench.look_anew("rel").await.objects {
        let desired = wish.objects.iter().find(|desired| {
            desired["kind"] == object.live["kind"]
                && desired["metadata"]["name"] == object.id.name.as_str()
        });
        let mut paths = Vec::new();
        leaves(desired.expect("an object of the wish"), "", &mut paths);
        let api = bench.api(&object.gvk.api_version(), &object.gvk.kind);
        let which = [object.id.clone()];
        let action_options = paths.iter().flat_map(|path| [(path, false), (path, true)]);
        for (path, removed) in
            action_options.filter(|(path, _)| !path.starts_with("/metadata/name"))
        {
            let mut live =
                serde_json::to_value(api.get(&object.id.name).await.expect("there")).expect("json");
            let Some(before) = live.pointer(path).cloned() else { continue };
            if removed {
                remove(&mut live, path);
            } else {
                *live.pointer_mut(path).expect("there") = another(&before);
            }
            live["metadata"]["managedFields"] = Value::Null;
            live["metadata"]["resourceVersion"] = Value::Null; // whatever controllers wrote meanwhile
            let theirs = serde_json::from_value(live).expect("an object");
            let params =
                PostParams { field_manager: Some("theirs".into()), ..PostParams::default() };
            let Ok(after) = api.replace(&object.id.name, &params, &theirs).await else { continue };
            let after = serde_json::to_value(after).expect("json");
            if after.pointer(path) == Some(&before) {
                continue; // the API server knows better
            }
            let told = format!("{} {path} removed: {removed}", object.id);
            let repaired = bench.driver.repair(&history, None, &which).await;
            // An item with another key is another item: theirs stays beside ours, if that is possible.
            let keys = ["name", "containerPort", "port", "protocol", "mountPath"];
            let is_key = keys.iter().any(|key| path.ends_with(&format!("/{key}")));
            if is_key {
                let refused =
                    matches!(&repaired, Err(Error::Request(e)) if e.kind == FailureKind::Invalid);
                assert!(
                    refused || repaired.is_ok_and(|it| it.done == ActionResult::Repaired),
                    "{told}"
                );
                api.delete(&object.id.name, &DeleteParams::default()).await.expect(&told);
                bench.driver.repair(&history, None, &which).await.expect(&told);
                continue;
            }
            assert_eq!(repaired.expect(&told).done, ActionResult::Repaired, "{told}");
            let now =
                serde_json::to_value(api.get(&object.id.name).await.expect("there")).expect("json");
            assert_eq!(now.pointer(path), Some(&before), "{told}");
            let again = bench.driver.repair(&history, None, &which).await.expect(&told);
            assert_eq!(found(&again), [""; 0], "{told}");
            changed.push(told);
        }
    }
    assert!(changed.len() > 35, "only {} could be changed: {changed:#?}", changed.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_object_does_not_tell_costs_a_dry_run_and_no_write() {
    let bench = Bench::new("doubtful").await;
    let mut spelled = secret("spelled", "");
    spelled["stringData"] = Value::Null;
    spelled["data"] = json!({"k": "dg==\n"}); // the API server leaves the line's end out
    let wish = DesiredRelease::new(&bench.namespace, "rel", vec![spelled]);
    wish.reconcile(&bench.driver).await.expect("installed");
    let mark = bench.log.mark().expect("a mark");
    assert_eq!(found(&bench.look_anew("rel").await), [""; 0]);
    assert_eq!(bench.since(mark), ["list secrets", "get secrets", "patch secrets dry"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_applies_what_is_new_and_looks_at_the_rest() {
    let bench = Bench::new("upgrade").await;
    let objects = vec![config_map("a", "1"), config_map("b", "1"), config_map("c", "1")];
    let mut wish = DesiredRelease::new(&bench.namespace, "rel", objects);
    wish.reconcile(&bench.driver).await.expect("installed");
    wish.objects[1] = config_map("b", "2");
    let mark = bench.log.mark().expect("a mark");
    let applied = wish.reconcile(&bench.driver).await.expect("upgraded");
    let expected = [
        "list secrets",
        "create secrets",
        "get configmaps",
        "patch configmaps",
        "get configmaps",
        "update secrets",
        "update secrets",
    ];
    assert_eq!(bench.since(mark), expected);

    // What somebody else knows of an object needs no look.
    let known: std::collections::HashMap<_, _> = applied
        .objects
        .iter()
        .map(|object| (object.id.clone(), (object.wanted, object.uid.clone())))
        .collect();
    let knowing = bench.driver.clone().with_known_objects(std::sync::Arc::new(move |id, hash| {
        let (_, uid) = known.get(id).filter(|(wanted, _)| *wanted == hash)?;
        Some(uid.clone())
    }));
    wish.objects[0] = config_map("a", "2");
    let mark = bench.log.mark().expect("a mark");
    let applied = wish.reconcile(&knowing).await.expect("upgraded");
    assert_eq!((applied.objects.len(), applied.known.len()), (1, 2));
    let asked = bench.since(mark);
    let about_maps: Vec<_> = asked.iter().filter(|asked| asked.contains("configmaps")).collect();
    assert_eq!(about_maps, ["patch configmaps"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_changed_is_put_back_and_told_and_what_they_added_stays() {
    let bench = Bench::new("changed").await;
    let objects =
        vec![secret("secret", "canary"), deployment("web", &json!(2)), config_map("map", "v")];
    let wish = DesiredRelease::new(&bench.namespace, "rel", objects);
    wish.reconcile(&bench.driver).await.expect("installed");

    let deployments = bench.api("apps/v1", "Deployment");
    let added = json!({
        "metadata": {"annotations": {"theirs": "stays"}},
        "spec": {"template": {"spec": {"containers": [{"name": "c"}], "schedulerName": "theirs"}}},
    });
    let params = PatchParams::default();
    deployments.patch("web", &params, &Patch::Strategic(added)).await.expect("patched");
    assert_eq!(found(&bench.look_anew("rel").await), [""; 0], "nothing of ours");

    bench.scale("web", "kubectl", 9).await;
    let change = json!({"data": {"k": "dGhlaXJz", "x": "dGhlaXJz"}});
    bench.change(&bench.api("v1", "Secret"), "secret", "kubectl-edit", change).await;
    let change =
        json!({"metadata": {"labels": {"app.kubernetes.io/managed-by": "me"}}, "data": null});
    bench.change(&bench.api("v1", "ConfigMap"), "map", "kubectl-edit", change).await;
    let applied = bench.look_anew("rel").await;
    assert_eq!(applied.done, ActionResult::Repaired);
    let expected = [
        "secret: data.k",
        "web: spec.replicas is 9 and should be 2",
        "map: metadata.labels[app.kubernetes.io/managed-by], data",
    ];
    assert_eq!(found(&applied), expected);
    assert_eq!(bench.replicas("web").await, 2);
    let secret = bench.api("v1", "Secret").get("secret").await.expect("a Secret");
    assert_eq!(secret.data["data"], json!({"k": "Y2FuYXJ5", "x": "dGhlaXJz"}));
    let web = deployments.get("web").await.expect("a Deployment");
    assert_eq!(web.metadata.annotations.unwrap_or_default()["theirs"], "stays");
    assert_eq!(found(&bench.look_anew("rel").await), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_are_an_autoscalers_as_long_as_there_is_one() {
    let bench = Bench::new("autoscaled").await;
    let mut wish = DesiredRelease::new(&bench.namespace, "rel", vec![deployment("web", &json!(2))]);
    wish.reconcile(&bench.driver).await.expect("installed");
    let autoscaler = json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "hpa"},
        "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, "minReplicas": 1, "maxReplicas": 9},
    });
    let autoscalers = bench.api("autoscaling/v2", "HorizontalPodAutoscaler");
    let object = serde_json::from_value(autoscaler).expect("an object");
    autoscalers.create(&PostParams::default(), &object).await.expect("created");

    bench.scale("web", "kube-controller-manager", 5).await;
    assert_eq!(found(&bench.look_anew("rel").await), [""; 0]);
    // An upgrade leaves them, too.
    wish.objects[0]["metadata"]["labels"] = json!({"new": "label"});
    wish.reconcile(&bench.driver).await.expect("upgraded");
    assert_eq!(bench.replicas("web").await, 5);
    // A person is no autoscaler.
    bench.scale("web", "kubectl", 7).await;
    assert_eq!(found(&bench.look_anew("rel").await), ["web: spec.replicas is 7 and should be 2"]);

    bench.scale("web", "kube-controller-manager", 4).await;
    autoscalers.delete("hpa", &DeleteParams::default()).await.expect("deleted");
    assert_eq!(found(&bench.look_anew("rel").await), ["web: spec.replicas is 4 and should be 2"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_that_the_chart_leaves_to_an_autoscaler_stay_what_they_are() {
    let bench = Bench::new("handover").await;
    let objects = vec![deployment("web", &json!(4)), deployment("free", &json!(4))];
    let mut wish = DesiredRelease::new(&bench.namespace, "rel", objects);
    wish.reconcile(&bench.driver).await.expect("installed");
    for object in &mut wish.objects {
        object["spec"].as_object_mut().expect("a spec").remove("replicas");
    }
    wish.objects.push(json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "hpa"},
        "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, "minReplicas": 1, "maxReplicas": 9},
    }));
    wish.reconcile(&bench.driver).await.expect("upgraded");
    assert_eq!(bench.replicas("web").await, 4, "the autoscaler's");
    assert_eq!(bench.replicas("free").await, 1, "nobody's: the API server fills it in");
    bench.scale("web", "kube-controller-manager", 6).await;
    assert_eq!(found(&bench.look_anew("rel").await), [""; 0]);
    assert_eq!(bench.replicas("web").await, 6);
    let web = bench.api("apps/v1", "Deployment").get("web").await.expect("a Deployment");
    let managers = web.metadata.managed_fields.unwrap_or_default();
    let named = |entry: &_| format!("{entry:?}").contains("handover");
    assert!(!managers.iter().any(named), "it has nothing left");
}

/// A webhook of the API server's own.
fn meddler(namespace: &str) -> [Value; 2] {
    let api_version = "admissionregistration.k8s.io/v1";
    let expression = r#"[JSONPatch{op: "replace", path: "/data/k", value: "forced"}, JSONPatch{op: "add", path: "/data/more", value: "injected"}]"#;
    [
        json!({
            "apiVersion": api_version, "kind": "MutatingAdmissionPolicy", "metadata": {"name": namespace},
            "spec": {
                "reinvocationPolicy": "Never", "failurePolicy": "Fail",
                "matchConstraints": {
                    "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                    "resourceRules": [{
                        "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"],
                        "resources": ["configmaps"], "resourceNames": ["meddled"],
                    }],
                },
                "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}],
            },
        }),
        json!({
            "apiVersion": api_version, "kind": "MutatingAdmissionPolicyBinding", "metadata": {"name": namespace},
            "spec": {"policyName": namespace},
        }),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn what_admission_injects_and_overrides_is_no_drift() {
    let bench = Bench::new("meddled").await;
    let mut made = Vec::new();
    for object in meddler(&bench.namespace) {
        let kind = object["kind"].as_str().unwrap_or_default().to_owned();
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(
            "admissionregistration.k8s.io",
            "v1",
            &kind,
        ));
        let api = Api::<DynamicObject>::all_with(bench.client.clone(), &resource);
        let object = serde_json::from_value(object).expect("an object");
        api.create(&PostParams::default(), &object).await.expect("created");
        made.push(api);
    }
    // It takes the API server a moment to heed a policy.
    let wish = DesiredRelease::new(&bench.namespace, "rel", vec![config_map("meddled", "v")]);
    let maps = bench.api("v1", "ConfigMap");
    let begun = std::time::Instant::now();
    let meddled = json!({"k": "forced", "more": "injected"});
    loop {
        wish.reconcile(&bench.driver).await.expect("installed");
        if maps.get("meddled").await.expect("a map").data["data"] == meddled {
            break;
        }
        assert!(begun.elapsed() < std::time::Duration::from_secs(30), "the policy is not heeded");
        maps.delete("meddled", &DeleteParams::default()).await.expect("deleted");
        let history = bench.driver.history(&bench.namespace, "rel").await.expect("a history");
        bench.driver.repair(&history, None, &[]).await.expect("repaired");
    }
    let before = maps.get("meddled").await.expect("a map").metadata.resource_version;
    let mark = bench.log.mark().expect("a mark");
    assert_eq!(found(&bench.look_anew("rel").await), [""; 0]);
    assert_eq!(bench.since(mark), ["list secrets", "get configmaps", "patch configmaps dry"]);
    assert_eq!(maps.get("meddled").await.expect("a map").metadata.resource_version, before);
    for api in made {
        api.delete(&bench.namespace, &DeleteParams::default()).await.expect("deleted");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_leave_fields_to_others_in_repairs_and_in_upgrades() {
    let bench = Bench::new("ignored").await;
    let mut map = config_map("map", "v");
    map["data"]["l"] = "w".into();
    let wish = DesiredRelease::new(&bench.namespace, "rel", vec![map]);
    wish.reconcile(&bench.driver).await.expect("installed");
    let maps = bench.api("v1", "ConfigMap");
    bench.change(&maps, "map", "theirs", json!({"data": {"k": "theirs", "l": "theirs"}})).await;

    let rule = IgnoreRule {
        kind: Some("ConfigMap".into()),
        paths: vec!["/data/k".into()],
        ..IgnoreRule::default()
    };
    let ignoring = bench.driver.clone().ignoring(vec![rule]);
    let history = ignoring.history(&bench.namespace, "rel").await.expect("a history");
    let applied = ignoring.repair(&history, None, &[]).await.expect("repaired");
    assert_eq!(found(&applied), ["map: data.l"]);
    assert_eq!(
        maps.get("map").await.expect("a map").data["data"],
        json!({"k": "theirs", "l": "w"})
    );
    let applied = ignoring.repair(&history, None, &[]).await.expect("repaired");
    assert_eq!(found(&applied), [""; 0]);
    let mut wish = wish;
    wish.objects[0]["data"]["l"] = "x".into();
    wish.reconcile(&ignoring).await.expect("upgraded");
    assert_eq!(
        maps.get("map").await.expect("a map").data["data"],
        json!({"k": "theirs", "l": "x"})
    );
    // An object may ask for it itself.
    let alone = json!({"metadata": {"annotations": {"catamaran.dev/drift": "ignore"}}});
    bench.change(&maps, "map", "theirs", alone).await;
    assert_eq!(found(&bench.look_anew("rel").await), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_client_side_helm_set_is_ours_and_goes_when_the_chart_drops_it() {
    let bench = Bench::new("takeover").await;
    let chart = tempfile_chart();
    let [helm4, helm3] = Helm::both(&bench.cluster, &bench.namespace);
    let path = chart.path().to_str().expect("a path").to_owned();
    for (name, helm, arguments) in
        [("three", &helm3, &["--timeout=1m"][..]), ("four", &helm4, &["--server-side=false"][..])]
    {
        helm.say(&[&["install", name, &path][..], arguments].concat());
        let map = format!("{name}-map");
        let mut ours = config_map(&map, "v");
        ours["data"] = json!({"stays": "1"});
        let mut wish = DesiredRelease::new(&bench.namespace, name, vec![ours]);
        wish.chart.metadata.name = "old".into();
        wish.reconcile(&bench.driver).await.expect("upgraded");
        let live = bench.api("v1", "ConfigMap").get(&map).await.expect("a map");
        assert_eq!(live.data["data"], json!({"stays": "1"}), "{name}");
        let entries = live.metadata.managed_fields.unwrap_or_default();
        let told: Vec<_> = entries
            .iter()
            .map(|entry| (entry.manager.as_deref(), entry.operation.as_deref()))
            .collect();
        assert_eq!(told, [(Some("helm"), Some("Apply"))], "{name}");
        assert_eq!(found(&bench.look_anew(name).await), [""; 0]);
    }
}

/// A chart with a key that a later version does not have.
fn tempfile_chart() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("templates")).expect("a folder");
    let write = |file: &str, text: &str| {
        std::fs::write(folder.path().join(file), text).expect("written");
    };
    write("Chart.yaml", "apiVersion: v2\nname: old\nversion: 0.1.0\n");
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}-map\n\
               data:\n  stays: \"1\"\n  goes: \"2\"\n";
    write("templates/map.yaml", map);
    folder
}

#[tokio::test(flavor = "multi_thread")]
async fn charts_that_apply_refuses_and_helm_three_installs_are_installed() {
    let bench = Bench::new("refused").await;
    let mut object = deployment("web", &Value::Null);
    let container = &mut object["spec"]["template"]["spec"]["containers"][0];
    container["env"] = json!([{"name": "A", "value": "1"}, {"name": "B", "value": "$(A)"}, {"name": "A", "value": "2"}]);
    container["ports"] =
        json!([{"containerPort": 80, "name": "a"}, {"containerPort": 80, "name": "b"}]);
    let mut wish =
        DesiredRelease::new(&bench.namespace, "rel", vec![secret("secret", "one"), object]);
    wish.objects[0]["stringData"]["gone"] = "soon".into();
    wish.reconcile(&bench.driver).await.expect("installed");
    let web = bench.api("apps/v1", "Deployment").get("web").await.expect("a Deployment");
    let container = &web.data["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(
        container["env"],
        json!([{"name": "A", "value": "2"}, {"name": "B", "value": "$(A)"}])
    );
    assert_eq!(container["ports"][0]["name"], "b");
    // A number that nobody wants to set is left to those who do.
    bench.scale("web", "kubectl", 3).await;
    assert_eq!(found(&bench.look_anew("rel").await), [""; 0]);
    assert_eq!(bench.replicas("web").await, 3);
    // A text of a Secret that is not wanted any more goes.
    wish.objects[0] = secret("secret", "two");
    wish.reconcile(&bench.driver).await.expect("upgraded");
    let secret = bench.api("v1", "Secret").get("secret").await.expect("a Secret");
    assert_eq!(secret.data["data"], json!({"k": "dHdv"}));
    assert_eq!(bench.replicas("web").await, 3);
}
