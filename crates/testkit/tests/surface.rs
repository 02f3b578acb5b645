//! What the surface of native kinds promises, on a real API server.

#![allow(clippy::unwrap_used, missing_docs)] // a test, and helpers of tests, fail as tests do
#![allow(clippy::large_futures)] // nobody counts bytes here

mod widget;

use std::time::Duration;

use catamaran_operator::Manager;
use catamaran_testkit::{Bench, HeldClock, becomes, eventually, vanishes};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use k8s_openapi::api::rbac::v1::ClusterRole;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, CustomResourceExt, Resource, ResourceExt};
use serde_json::{Value, json};
use widget::{Gadget, OPERATOR, Realm, RealmSpec, Realms, Widget, Widgets, condition, definitions};

struct Test {
    bench: Bench,
    widgets: Api<Widget>,
    reconciler: Widgets,
}

impl Test {
    async fn new(name: &str) -> Self {
        let bench = Bench::new(name, &definitions()).await;
        let widgets = bench.api();
        Self { bench, widgets, reconciler: Widgets::default() }
    }

    fn operator(&self) -> catamaran_testkit::Running {
        let reconciler = self.reconciler.clone();
        self.bench
            .run(|options| Manager::native(OPERATOR, options).reconciler("Widget", reconciler))
    }

    async fn create(&self, name: &str, spec: Value) {
        let widget = json!({ "apiVersion": "test.catamaran.dev/v1", "kind": "Widget",
            "metadata": { "name": name }, "spec": spec });
        let widget = serde_json::from_value(widget).unwrap();
        self.widgets.create(&PostParams::default(), &widget).await.unwrap();
    }

    async fn patch(&self, name: &str, spec: Value) {
        let patch = Patch::Merge(json!({ "spec": spec }));
        self.widgets.patch(name, &PatchParams::default(), &patch).await.unwrap();
    }

    async fn says(&self, name: &str, of: &str, reason: &str) {
        let said = |widget: &Widget| condition(widget, of).1 == reason;
        becomes(&self.widgets, name, &format!("{of} {reason}"), said).await;
    }

    async fn quiet(&self) -> catamaran_testkit::Mark {
        self.bench.quiet(OPERATOR, Duration::from_secs(1)).await
    }

    /// What was asked for since, of things in the namespace.
    async fn asked(&self, mark: catamaran_testkit::Mark) -> Vec<String> {
        self.quiet().await;
        self.bench.requests(OPERATOR, mark)
    }
}

#[tokio::test]
async fn a_child_costs_its_write_and_then_nothing_and_is_pruned_when_it_is_not_wanted() {
    let test = Test::new("children").await;
    let operator = test.operator();
    let start = test.quiet().await;
    test.create("w", json!({ "maps": ["one", "two"] })).await;
    test.says("w", "Ready", "Ready").await;
    let asked = test.asked(start).await;
    let expected = [
        "patch widgets 200", // the finalizer
        "patch configmaps 201",
        "patch configmaps 201",
        "patch widgets/status 200",
    ];
    assert_eq!(asked, expected);
    let mark = test.quiet().await;
    test.bench.kubectl(&["annotate", "widget", "w", "a=b"]);
    assert_eq!(test.asked(mark).await, [""; 0]);
    assert!(test.reconciler.count("w") >= 2, "it did look");
    // A restart reads each child once, and writes nothing.
    operator.stop().await;
    let before = (test.quiet().await, test.reconciler.count("w"));
    let _operator = test.operator();
    eventually("it has looked again", async || match test.reconciler.count("w") {
        count if count > before.1 => Ok(()),
        count => Err(count.to_string()),
    })
    .await;
    assert_eq!(test.asked(before.0).await, ["get configmaps 200", "get configmaps 200"]);

    // While another component fails nothing is pruned.
    test.patch("w", json!({ "maps": ["two"], "fail": true })).await;
    test.says("w", "Prune", "NotAllApplied").await;
    test.quiet().await;
    let maps: Api<ConfigMap> = test.bench.api();
    assert!(maps.get_opt("one").await.unwrap().is_some());
    test.patch("w", json!({ "fail": false })).await;
    vanishes(&maps, "one").await;
    test.says("w", "Ready", "Ready").await;
    assert!(maps.get_opt("two").await.unwrap().is_some());
}

#[tokio::test]
async fn a_failing_component_isolates_and_an_object_of_others_is_left_alone() {
    let test = Test::new("isolated").await;
    let _operator = test.operator();
    let maps: Api<ConfigMap> = test.bench.api();
    let theirs = json!({ "metadata": { "name": "theirs" }, "data": { "a": "b" } });
    maps.create(&PostParams::default(), &serde_json::from_value(theirs).unwrap()).await.unwrap();
    test.create("w", json!({ "maps": ["theirs", "ours"], "secret": "keys" })).await;
    test.says("w", "Secret", "Ready").await;
    test.says("w", "Maps", "ReconcileError").await;
    let widget = test.widgets.get("w").await.unwrap();
    assert_eq!(widget.status.as_ref().unwrap().observed_generation, widget.meta().generation);
    let data = maps.get("theirs").await.unwrap().data.unwrap();
    assert_eq!(data["a"], "b");
}

#[tokio::test]
async fn cve_2022_39272_an_object_that_does_not_fit_its_type_is_the_trouble_of_one() {
    let test = Test::new("undecodable").await;
    let _operator = test.operator();
    // The schema lets it through, the type does not: a newer CRD than the operator's, say.
    test.create("good", json!({ "maps": ["good"] })).await;
    let bad = json!({ "apiVersion": "test.catamaran.dev/v1", "kind": "Widget",
        "metadata": { "name": "bad" }, "spec": { "loose": { "size": "large" } } });
    let manifest = serde_json::to_string(&bad).unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), manifest).unwrap();
    test.bench.kubectl(&["apply", "-f", file.path().to_str().unwrap()]);
    test.says("good", "Ready", "Ready").await;
    let raw =
        || test.bench.kubectl(&["get", "widget", "bad", "-o", "jsonpath={.status.conditions[0]}"]);
    eventually("it is told", async || match raw() {
        told if told.contains("InvalidSpec") => Ok(()),
        told => Err(told),
    })
    .await;
    test.bench.kubectl(&[
        "patch",
        "widget",
        "bad",
        "--type=merge",
        "-p",
        r#"{"spec":{"loose":{"size":3}}}"#,
    ]);
    test.says("bad", "Ready", "Ready").await;
}

#[tokio::test]
async fn cleanup_is_done_before_the_resource_goes_and_may_wait() {
    let test = Test::new("cleanup").await;
    let operator = test.operator();
    test.create("w", json!({ "maps": ["m"], "hold": true })).await;
    test.says("w", "Ready", "Ready").await;
    assert_eq!(test.widgets.get("w").await.unwrap().finalizers(), ["test.catamaran.dev/finalizer"]);
    test.widgets.delete("w", &DeleteParams::default()).await.unwrap();
    test.says("w", "Ready", "Draining").await;
    // A restart goes on where it was.
    operator.stop().await;
    let _operator = test.operator();
    test.patch("w", json!({ "hold": false })).await;
    vanishes(&test.widgets, "w").await;
    assert_eq!(test.reconciler.cleaned(), ["w"]);
}

#[tokio::test]
async fn children_elsewhere_are_found_again_and_deleted_with_their_resource() {
    let test = Test::new("elsewhere").await;
    let other = test.bench.cluster.namespace("beyond").await.unwrap();
    test.reconciler.beyond(other.name());
    let operator = test.operator();
    let role = format!("{}-w", test.bench.namespace.name());
    test.create("w", json!({ "elsewhere": other.name(), "role": role })).await;
    test.says("w", "Ready", "Ready").await;
    let maps: Api<ConfigMap> = Api::namespaced(test.bench.client(), &other);
    let roles: Api<ClusterRole> = Api::all(test.bench.client());
    let child = maps.get("w").await.unwrap();
    assert!(child.owner_references().is_empty(), "the garbage collector would delete it");
    roles.get(&role).await.unwrap();
    // Drift is undone there, too.
    let drift = Patch::Merge(json!({ "data": { "a": "changed" } }));
    maps.patch("w", &PatchParams::default(), &drift).await.unwrap();
    becomes(&maps, "w", "repaired", |map| map.data.as_ref().unwrap()["a"] == "b").await;

    operator.stop().await; // what was remembered is lost
    test.widgets.delete("w", &DeleteParams::default()).await.unwrap();
    let _operator = test.operator();
    vanishes(&test.widgets, "w").await;
    assert!(maps.get_opt("w").await.unwrap().is_none());
    assert!(roles.get_opt(&role).await.unwrap().is_none());
}

#[tokio::test]
async fn a_resource_without_a_namespace_has_children_of_both_sorts() {
    let test = Test::new("realm").await;
    let _operator =
        test.bench.run(|options| Manager::native("realms", options).reconciler("Realm", Realms));
    let realms: Api<Realm> = Api::all(test.bench.client());
    let name = test.bench.namespace.name().to_owned();
    let realm = Realm::new(&name, RealmSpec { namespace: name.clone() });
    realms.create(&PostParams::default(), &realm).await.unwrap();
    let ready = |realm: &Realm| {
        let conditions = realm.status.iter().flat_map(|status| &status.conditions);
        conditions.clone().any(|of| of.type_ == "Ready" && of.status == "True")
    };
    becomes(&realms, &name, "Ready", ready).await;
    let roles: Api<ClusterRole> = Api::all(test.bench.client());
    assert_eq!(roles.get(&name).await.unwrap().owner_references()[0].kind, "Realm");
    // Deleted by hand: there again, wherever it is.
    let maps: Api<ConfigMap> = test.bench.api();
    let first = maps.get(&name).await.unwrap().uid();
    maps.delete(&name, &DeleteParams::default()).await.unwrap();
    becomes(&maps, &name, "there again", |map| map.uid() != first).await;
    realms.delete(&name, &DeleteParams::default()).await.unwrap();
    vanishes(&realms, &name).await;
    assert!(maps.get_opt(&name).await.unwrap().is_none());
    vanishes(&roles, &name).await;
}

#[tokio::test]
async fn a_reference_tells_missing_from_not_ready_and_wakes() {
    let test = Test::new("references").await;
    let other = test.bench.cluster.namespace("referred").await.unwrap();
    let _operator = test.operator();
    test.create("w", json!({ "refers": { "namespace": other.name(), "name": "it" } })).await;
    test.says("w", "Reference", "MissingDependency").await;
    let widgets: Api<Widget> = Api::namespaced(test.bench.client(), &other);
    let it = json!({ "apiVersion": "test.catamaran.dev/v1", "kind": "Widget",
        "metadata": { "name": "it", "generation": 1 }, "spec": {} });
    widgets.create(&PostParams::default(), &serde_json::from_value(it).unwrap()).await.unwrap();
    let ready = |status: &str| {
        let now = "2026-01-01T00:00:00Z";
        let condition = json!({ "type": "Ready", "status": status, "reason": "Said", "message": "so",
            "lastTransitionTime": now });
        Patch::Merge(json!({ "status": { "conditions": [condition], "observedGeneration": 1 } }))
    };
    let params = PatchParams::default();
    widgets.patch_status("it", &params, &ready("False")).await.unwrap();
    test.says("w", "Reference", "WaitingForDependency").await;
    widgets.patch_status("it", &params, &ready("True")).await.unwrap();
    test.says("w", "Reference", "Ready").await;
    // Held and unchanged it costs nothing.
    let mark = test.quiet().await;
    test.bench.kubectl(&["annotate", "widget", "w", "a=b"]);
    assert_eq!(test.asked(mark).await, [""; 0]);
    widgets.delete("it", &DeleteParams::default()).await.unwrap();
    test.says("w", "Reference", "MissingDependency").await;
}

#[tokio::test]
async fn secrets_are_made_once_completed_and_rotated_on_request() {
    let test = Test::new("secrets").await;
    let operator = test.operator();
    test.create("w", json!({ "secret": "keys" })).await;
    test.says("w", "Ready", "Ready").await;
    let secrets: Api<Secret> = test.bench.api();
    let data = async || secrets.get("keys").await.unwrap().data.unwrap();
    let first = data().await;
    assert_eq!((first["password"].0.len(), first["user"].0.as_slice()), (24, b"admin".as_slice()));

    // Edited by hand: kept. A key that was deleted: added. A restart changes nothing.
    let edit =
        Patch::Merge(json!({ "stringData": { "password": "mine" }, "data": { "user": null } }));
    secrets.patch("keys", &PatchParams::default(), &edit).await.unwrap();
    let whole =
        |secret: &Secret| secret.data.as_ref().is_some_and(|data| data.contains_key("user"));
    becomes(&secrets, "keys", "completed", whole).await;
    operator.stop().await;
    let _operator = test.operator();
    let mark = test.quiet().await;
    assert_eq!(data().await["password"].0, b"mine");
    test.patch("w", json!({ "rotate": "2026" })).await;
    let rotated = |secret: &Secret| secret.data.as_ref().unwrap()["password"].0.len() == 24;
    becomes(&secrets, "keys", "rotated", rotated).await;
    let asked = test.asked(mark).await;
    assert_eq!(asked.iter().filter(|asked| *asked == "patch secrets 200").count(), 1, "{asked:?}");
    let second = data().await;
    assert_ne!(first["password"], second["password"]);

    // Deleted by hand: there again.
    secrets.delete("keys", &DeleteParams::default()).await.unwrap();
    becomes(&secrets, "keys", "there again", whole).await;
}

#[tokio::test]
async fn a_kind_that_is_not_there_is_waited_for_and_events_tell() {
    let test = Test::new("late").await;
    let _operator = test.operator();
    test.create("w", json!({ "gadget": "g" })).await;
    test.says("w", "Gadget", "KindNotInstalled").await;
    let _late = Bench::new("late", &[Gadget::crd()]).await;
    test.says("w", "Gadget", "Ready").await;
    eventually("the event is told", async || {
        match test.bench.kubectl(&[
            "get",
            "events.v1.events.k8s.io",
            "-o",
            "jsonpath={.items[*].note}",
        ]) {
            told if told.contains("a g is wanted") => Ok(()),
            told => Err(told),
        }
    })
    .await;
    let crds: Api<CustomResourceDefinition> = Api::all(test.bench.client());
    crds.delete(&Gadget::crd().name_any(), &DeleteParams::default()).await.unwrap();
}

#[tokio::test]
async fn a_channel_a_mapped_object_and_a_period_wake() {
    let test = Test::new("woken").await;
    let clock = HeldClock::default();
    let reconciler = test.reconciler.clone();
    let _operator = test.bench.run(|options| {
        let manager = Manager::native(OPERATOR, options).clock(clock.clock());
        manager.reconciler("Widget", reconciler)
    });
    test.create("w", json!({})).await;
    test.says("w", "Ready", "Ready").await;
    let rest = async || {
        test.quiet().await;
        test.reconciler.count("w")
    };
    let more = async |than: usize| {
        eventually("it is woken", async || match test.reconciler.count("w") {
            count if count > than => Ok(()),
            count => Err(count.to_string()),
        })
        .await;
    };
    let before = rest().await;
    test.reconciler.wake().resource(&test.bench.namespace, "w", "a test says so");
    test.reconciler.wake().resource(&test.bench.namespace, "nobody", "nor does that hurt");
    more(before).await;

    let before = rest().await;
    let secrets: Api<Secret> = test.bench.api();
    // A mapping that panics does not end the watch.
    let panics = json!({ "metadata": { "name": "p", "labels": { "widget": "panics" } } });
    secrets.create(&PostParams::default(), &serde_json::from_value(panics).unwrap()).await.unwrap();
    let secret = json!({ "metadata": { "name": "s", "labels": { "widget": "w" } } });
    secrets.create(&PostParams::default(), &serde_json::from_value(secret).unwrap()).await.unwrap();
    more(before).await;
    let before = rest().await;
    let params = PatchParams::default();
    let unlike = Patch::Merge(json!({ "metadata": { "annotations": { "a": "b" } } }));
    secrets.patch("s", &params, &unlike).await.unwrap();
    assert_eq!(rest().await, before, "the predicate does not like it");
    let like = Patch::Merge(json!({ "stringData": { "a": "b" } }));
    secrets.patch("s", &params, &like).await.unwrap();
    more(before).await;

    let before = rest().await;
    clock.advance(widget::PERIOD);
    more(before).await;
}

#[tokio::test]
async fn a_namespace_in_deletion_is_no_error() {
    let test = Test::new("terminating").await;
    let _operator = test.operator();
    test.create("w", json!({ "maps": ["m"], "secret": "keys" })).await;
    test.says("w", "Ready", "Ready").await;
    let namespaces: Api<Namespace> = Api::all(test.bench.client());
    namespaces.delete(test.bench.namespace.name(), &DeleteParams::default()).await.unwrap();
    eventually("its widget is gone", async || {
        match test.widgets.list(&ListParams::default()).await {
            Ok(list) if list.items.is_empty() => Ok(()),
            Ok(list) => Err(format!("{:?}", list.items)),
            Err(error) => Err(error.to_string()),
        }
    })
    .await;
}
