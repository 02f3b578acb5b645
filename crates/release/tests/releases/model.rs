//! The model of the API server (crates/apimodel) answers as the real one does: requests drawn from a
//! seed, and those that the driver makes, are sent to both.

use std::sync::{Arc, Mutex};

use catamaran_apimodel::Model;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

use crate::recorder::Recorder;
use crate::support::{DesiredRelease, cluster, config_map, driver, hook, secret};

/// One of the two.
struct Side {
    client: Client,
    namespace: String,
    /// The versions of objects as last seen, to tell a write that changed nothing.
    log: Arc<Mutex<Vec<String>>>,
}

/// Chance, the same on every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        // Numbers of Knuth's MMIX generator.
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or_default() % sides
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.roll(of.len())]
    }
}

impl Side {
    async fn ask(
        &self,
        method: &str,
        path: &str,
        kind: &str,
        body: Option<&Value>,
    ) -> (u16, Value) {
        let text = body.map_or(String::new(), Value::to_string);
        let request = http::Request::builder()
            .method(method)
            .uri(path.replace("NAMESPACE", &self.namespace))
            .header("content-type", kind)
            .body(Body::from(text.replace("NAMESPACE", &self.namespace).into_bytes()))
            .expect("a request");
        let response = self.client.send(request).await.expect("an answer");
        let code = response.status().as_u16();
        let bytes = response.into_body().collect_bytes().await.expect("a body");
        (code, serde_json::from_slice(&bytes).unwrap_or_default())
    }

    async fn get(&self, path: &str) -> Value {
        let (code, object) = self.ask("GET", path, "application/json", None).await;
        if code == 200 { object } else { Value::Null }
    }
}

/// What callers act upon: of an object its content and whose it is, of a refusal its reason.
pub(crate) fn essence(code: u16, mut answer: Value) -> Value {
    if let Some(items) = answer.get_mut("items").map(Value::take) {
        let items = items.as_array().cloned().unwrap_or_default();
        return items.into_iter().map(|item| essence(code, item)["answer"].clone()).collect();
    }
    if answer["kind"] == "Status" {
        let causes = answer["details"]["causes"].as_array().cloned().unwrap_or_default();
        let mut causes: Vec<String> = causes.iter().map(|it| it["reason"].to_string()).collect();
        causes.sort_unstable();
        // What is wrong with an object is told by a word for each field; we ask for none of them.
        let causes = if code == 422 { vec![] } else { causes };
        let of = |field: &str| answer["details"][field].clone();
        // Where it is in the way of another one, the kind is told now in this form and now in that.
        let kind = if code == 409 { Value::Null } else { of("kind") };
        return json!({
            "code": code, "reason": answer["reason"], "kind": kind, "name": of("name"), "causes": causes,
        });
    }
    let deleting = answer["metadata"].get("deletionTimestamp").is_some();
    if let Some(metadata) = answer["metadata"].as_object_mut() {
        for field in
            ["uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "namespace"]
        {
            metadata.remove(field);
        }
        for stamp in ["createdAt", "modifiedAt"] {
            metadata
                .get_mut("labels")
                .and_then(Value::as_object_mut)
                .and_then(|it| it.remove(stamp));
        }
        if let Some(run) =
            metadata.get_mut("annotations").and_then(|it| it.get_mut("catamaran/hook-run"))
        {
            *run = Value::Null;
        }
    }
    if let Some(entries) = answer["metadata"]["managedFields"].as_array_mut() {
        for entry in entries.iter_mut().filter_map(Value::as_object_mut) {
            entry.remove("time");
        }
        entries.sort_by_key(|entry| format!("{}{}", entry["operation"], entry["manager"]));
    }
    if answer["type"] == "helm.sh/release.v1" {
        answer["data"] = Value::Null; // when it was written is in it
    }
    json!({ "code": code, "deleting": deleting, "answer": answer })
}

const NAMES: [&str; 3] = ["a", "b", "c"];

/// An object with some of a few fields.
fn drawn(dice: &mut Dice, kind: &str, name: &str) -> Value {
    let mut object = json!({ "apiVersion": "v1", "kind": kind, "metadata": { "name": name, "namespace": "NAMESPACE" } });
    for key in ["x", "y", "z"] {
        if dice.roll(2) == 0 {
            object["data"][key] = dice.pick(&["MQ==", "Mg=="]).into();
        }
        if dice.roll(4) == 0 {
            object["metadata"]["labels"][key] = dice.pick(&["1", "2"]).into();
        }
        if dice.roll(6) == 0 {
            object["metadata"]["annotations"][key] = dice.pick(&["1", "2"]).into();
        }
    }
    if dice.roll(8) == 0 {
        object["metadata"]["finalizers"] = json!([dice.pick(&["t.test/a", "t.test/b"])]);
    }
    object
}

/// A request with what it needs to know of the object that is there: `VERSION` and `UID` stand for them.
struct Draw {
    method: &'static str,
    path: String,
    kind: &'static str,
    body: Option<Value>,
}

/// The path of the object that a request is about.
fn draw(dice: &mut Dice) -> (String, Draw) {
    let (kind, plural) =
        if dice.roll(2) == 0 { ("ConfigMap", "configmaps") } else { ("Secret", "secrets") };
    let name = dice.pick(&NAMES);
    let all = format!("/api/v1/namespaces/NAMESPACE/{plural}");
    let one = format!("{all}/{name}");
    let mut object = drawn(dice, kind, name);
    let manager = dice.pick(&["helm", "helm", "kubectl-edit", "other"]);
    let dry = if dice.roll(8) == 0 { "&dryRun=All" } else { "" };
    let as_whom = format!("fieldManager={manager}{dry}");
    match dice.roll(6) {
        0 => object["metadata"]["resourceVersion"] = "VERSION".into(),
        1 => object["metadata"]["resourceVersion"] = "1".into(),
        2 if dice.roll(3) == 0 => object["metadata"]["uid"] = "UID".into(),
        _ => {}
    }
    let draw = match dice.roll(10) {
        0..=1 => {
            if let Some(metadata) = object["metadata"].as_object_mut() {
                metadata.remove("resourceVersion");
            }
            Draw {
                method: "POST",
                path: format!("{all}?{as_whom}"),
                kind: "application/json",
                body: Some(object),
            }
        }
        2..=3 => Draw {
            method: "PUT",
            path: format!("{one}?{as_whom}"),
            kind: "application/json",
            body: Some(object),
        },
        4..=6 => {
            let force = dice.pick(&["true", "true", "false"]);
            Draw {
                method: "PATCH",
                path: format!("{one}?{as_whom}&force={force}"),
                kind: "application/apply-patch+yaml",
                body: Some(object),
            }
        }
        7 => {
            let mut patch = json!({ "data": object["data"], "metadata": { "labels": { "x": null, "y": "2" } } });
            if dice.roll(2) == 0 {
                patch["metadata"]["finalizers"] = Value::Null;
            }
            if let Some(version) = object["metadata"].get("resourceVersion") {
                patch["metadata"]["resourceVersion"] = version.clone();
            }
            Draw {
                method: "PATCH",
                path: format!("{one}?{as_whom}"),
                kind: "application/merge-patch+json",
                body: Some(patch),
            }
        }
        8 => {
            // The other ways end when a controller says so: see below.
            let mut options = json!({
                "kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background",
            });
            match dice.roll(4) {
                0 => options["preconditions"]["uid"] = "UID".into(),
                1 => options["preconditions"]["uid"] = "another".into(),
                2 => options["preconditions"]["resourceVersion"] = "1".into(),
                _ => {}
            }
            Draw {
                method: "DELETE",
                path: one.clone(),
                kind: "application/json",
                body: Some(options),
            }
        }
        _ => {
            let selector = dice.pick(&["x", "x=1", "x=1,y", "y"]);
            Draw {
                method: "GET",
                path: format!("{all}?labelSelector={selector}"),
                kind: "",
                body: None,
            }
        }
    };
    (one, draw)
}

/// One request on one side: its answer, and whether the object is another version afterwards.
async fn answer(side: &Side, path: &str, draw: &Draw) -> (Value, bool) {
    let before = side.get(path).await;
    let text = |field: &str| before["metadata"][field].as_str().unwrap_or("1").to_owned();
    let body = draw.body.as_ref().map(|body| {
        let told =
            body.to_string().replace("\"VERSION\"", &format!("{:?}", text("resourceVersion")));
        serde_json::from_str(&told.replace("\"UID\"", &format!("{:?}", text("uid")))).expect("json")
    });
    let (code, answer) = side.ask(draw.method, &draw.path, draw.kind, body.as_ref()).await;
    let after = side.get(path).await;
    let moved = before["metadata"]["resourceVersion"] != after["metadata"]["resourceVersion"];
    (essence(code, answer), moved)
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_drawn_from_a_seed_get_the_same_answers() {
    let cluster = cluster().await;
    let mut different = Vec::new();
    for seed in 1..=12 {
        let namespace = cluster.namespace(&format!("model-{seed}")).await.expect("a namespace");
        let (real, model, _) = both(&cluster.client(), &namespace).await;
        let mut dice = Dice(seed);
        for number in 0..120 {
            let (path, draw) = draw(&mut dice);
            let (is, shall) =
                (answer(&model, &path, &draw).await, answer(&real, &path, &draw).await);
            if is != shall {
                let Draw { method, path, body, .. } = draw;
                let body = body.unwrap_or_default();
                different.push(format!(
                    "seed {seed}, request {number}: {method} {path} {body}\n  model {is:?}\n  real  {shall:?}"
                ));
                break; // what comes after follows from it
            }
        }
        for kind in ["configmaps", "secrets"] {
            for name in NAMES {
                let path = format!("/api/v1/namespaces/NAMESPACE/{kind}/{name}");
                let free = json!({ "metadata": { "finalizers": null } });
                real.ask("PATCH", &path, "application/merge-patch+json", Some(&free)).await;
            }
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}

/// The real one and the model, with a namespace of the same name.
async fn both(client: &Client, namespace: &str) -> (Side, Side, Model) {
    let world = Model::new();
    let side =
        |client: Client| Side { client, namespace: namespace.to_owned(), log: Arc::default() };
    let (real, model) = (side(client.clone()), side(world.client()));
    let object =
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } });
    let (code, _) =
        model.ask("POST", "/api/v1/namespaces", "application/json", Some(&object)).await;
    assert_eq!(code, 201);
    (real, model, world)
}

impl Side {
    fn recorded(&self) -> Client {
        Client::new(Recorder { to: self.client.clone(), log: self.log.clone() }, "default")
    }
}

/// Every action, with somebody else in between.
async fn a_life(side: &Side) -> Vec<String> {
    let driver = driver(&side.recorded());
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "r"},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
    });
    let mut wish = DesiredRelease::new(
        &side.namespace,
        "rel",
        vec![secret("a", "1"), config_map("b", "1"), config_map("c", "1"), role],
    );
    wish.hooks = vec![
        hook(config_map("before", "v"), "pre-install,pre-upgrade", 0, "hook-succeeded"),
        hook(config_map("after", "v"), "post-install,post-rollback", 0, ""),
    ];
    wish.settle(&driver).await.expect("installed");
    let maps = "/api/v1/namespaces/NAMESPACE/configmaps";
    let mut map = side.get(&format!("{maps}/c")).await;
    map["data"] = json!({"k": "edited", "more": "theirs"});
    side.ask("PUT", &format!("{maps}/c?fieldManager=kubectl-edit"), "application/json", Some(&map))
        .await;
    let foreign = config_map("d", "foreign");
    side.ask("POST", &format!("{maps}?fieldManager=x"), "application/json", Some(&foreign)).await;
    let history = driver.history(&side.namespace, "rel").await.expect("a history");
    driver.repair(&history, None, &[]).await.expect("repaired");
    wish.objects.remove(1);
    wish.objects.push(config_map("d", "ours"));
    wish.settle(&driver).await.expect_err("somebody else's");
    wish.objects.pop();
    wish.objects[0] = secret("a", "2");
    wish.settle(&driver).await.expect("upgraded");
    wish.roll_back(&driver, 1).await.expect("rolled back");
    wish.leave(&driver).await.expect("uninstalled");
    side.log.lock().expect("a log").clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_drivers_own_requests_get_the_same_answers() {
    let cluster = cluster().await;
    let namespace = cluster.namespace("model-driver").await.expect("a namespace");
    let (real, model, _) = both(&cluster.client(), &namespace).await;
    let (shall, is) = (a_life(&real).await, a_life(&model).await);
    for (number, (is, shall)) in is.iter().zip(&shall).enumerate() {
        assert_eq!(is, shall, "request {number}");
    }
    assert_eq!(is.len(), shall.len());
    assert!(is.len() > 40, "{}", is.len());
}

/// An owner and what belongs to it, one of them with a finalizer of its own; then the owner is deleted.
async fn an_end(side: &Side, policy: &str, settle: impl AsyncFn()) -> Vec<String> {
    let maps = "/api/v1/namespaces/NAMESPACE/configmaps";
    let json = "application/json";
    let (_, owner) = side.ask("POST", maps, json, Some(&config_map("owner", "v"))).await;
    for name in ["held", "loose"] {
        let mut map = config_map(name, "v");
        map["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"],
            "blockOwnerDeletion": true,
        }]);
        if name == "held" {
            map["metadata"]["finalizers"] = json!(["t.test/held"]);
        }
        side.ask("POST", maps, json, Some(&map)).await;
    }
    // What its controllers have not seen yet they do not collect.
    settle().await;
    let options =
        json!({ "kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": policy });
    side.ask("DELETE", &format!("{maps}/owner"), json, Some(&options)).await;
    settle().await;
    let mut told = Vec::new();
    for name in ["owner", "held", "loose"] {
        let object = side.get(&format!("{maps}/{name}")).await;
        let metadata = &object["metadata"];
        let owned = metadata.get("ownerReferences").is_some();
        let leaving = metadata.get("deletionTimestamp").is_some();
        let there = !object.is_null();
        told.push(format!("{name}: {there} {leaving} {owned} {}", metadata["finalizers"]));
    }
    let free = json!({ "metadata": { "finalizers": null } });
    side.ask("PATCH", &format!("{maps}/held"), "application/merge-patch+json", Some(&free)).await;
    settle().await;
    for name in ["held", "loose"] {
        side.ask("DELETE", &format!("{maps}/{name}"), json, None).await;
    }
    settle().await;
    told
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_that_is_deleted_takes_with_it_what_the_real_one_takes() {
    let cluster = cluster().await;
    let namespace = cluster.namespace("model-owner").await.expect("a namespace");
    let audit = cluster.audit();
    let (real, model, world) = both(&cluster.client(), &namespace).await;
    // Until nobody has asked for anything in the namespace for a while.
    let quiet = async || {
        let mut before = usize::MAX;
        for _ in 0..50 {
            let all = audit.requests().expect("requests");
            let now = all.iter().filter(|it| it.namespace == *namespace).count();
            if now == before {
                return;
            }
            before = now;
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        }
    };
    let ticks = async || (0..5).for_each(|_| world.tick());
    for policy in ["Background", "Foreground", "Orphan"] {
        let (is, shall) = (an_end(&model, policy, ticks).await, an_end(&real, policy, quiet).await);
        assert_eq!(is, shall, "{policy}");
    }
}

/// What a namespace that is on its way out still lets happen.
async fn a_last_day(side: &Side) -> Vec<Value> {
    let maps = "/api/v1/namespaces/NAMESPACE/configmaps";
    let (json, apply) = ("application/json", "application/apply-patch+yaml");
    let mut held = config_map("held", "v");
    held["metadata"]["finalizers"] = json!(["t.test/held"]);
    side.ask("POST", &format!("{maps}?fieldManager=x"), json, Some(&held)).await;
    side.ask("DELETE", "/api/v1/namespaces/NAMESPACE", json, None).await;
    let held_path = format!("{maps}/held?fieldManager=helm&force=true");
    let mut told = Vec::new();
    for (method, path, kind, body) in [
        ("POST", format!("{maps}?fieldManager=helm"), json, config_map("new", "v")),
        (
            "PATCH",
            format!("{maps}/new?fieldManager=helm&force=true"),
            apply,
            config_map("new", "v"),
        ),
        ("PATCH", held_path, apply, config_map("held", "w")),
        (
            "PATCH",
            format!("{maps}/held?fieldManager=x"),
            "application/merge-patch+json",
            json!({"data": {"k": "x"}}),
        ),
        ("PUT", format!("{maps}/absent"), json, config_map("absent", "v")),
    ] {
        let (code, answer) = side.ask(method, &path, kind, Some(&body)).await;
        let mut told_here = essence(code, answer);
        // The namespace's controller may have come to it by now, or not.
        told_here["deleting"] = Value::Null;
        if let Some(metadata) =
            told_here.pointer_mut("/answer/metadata").and_then(Value::as_object_mut)
        {
            metadata.remove("deletionGracePeriodSeconds");
        }
        told.push(told_here);
    }
    let free = json!({ "metadata": { "finalizers": null } });
    side.ask("PATCH", &format!("{maps}/held"), "application/merge-patch+json", Some(&free)).await;
    told
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_on_its_way_out_refuses_what_the_real_one_refuses() {
    let cluster = cluster().await;
    let namespace = cluster.namespace("model-leaving").await.expect("a namespace");
    let (real, model, _) = both(&cluster.client(), &namespace).await;
    let (is, shall) = (a_last_day(&model).await, a_last_day(&real).await);
    for (is, shall) in is.iter().zip(&shall) {
        assert_eq!(is, shall);
    }
}
