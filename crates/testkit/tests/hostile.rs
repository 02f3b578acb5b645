//! A hostile world: storms of refusals, answers that are lost, resources as large and names as long as
//! they may be, and others who write into what is ours.

#![allow(clippy::unwrap_used, missing_docs)] // a test, and helpers of tests, fail as tests do
#![allow(clippy::large_futures)] // nobody counts bytes here

mod widget;

use std::cell::Cell;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use catamaran_operator::Manager;
use catamaran_testkit::{
    Bench, Probes, RequestFaults, Running, WatchFaults, becomes, eventually, vanishes,
};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Resource, ResourceExt};
use serde_json::{Value, json};
use widget::{OPERATOR, Realms, Widget, Widgets, condition, definitions};

struct Test {
    bench: Bench,
    weather: WatchFaults,
    widgets: Api<Widget>,
    maps: Api<ConfigMap>,
    reconciler: Widgets,
}

impl Test {
    async fn new(name: &str) -> Self {
        let bench = Bench::new(name, &definitions()).await;
        let weather = WatchFaults::new(&bench.cluster).await;
        let (widgets, maps) = (bench.api(), bench.api());
        Self { bench, weather, widgets, maps, reconciler: Widgets::default() }
    }

    /// The operator, which reaches the API server through the weather.
    fn operator(&self) -> Running {
        let (reconciler, kubeconfig) =
            (self.reconciler.clone(), self.weather.kubeconfig().to_owned());
        self.bench.run(|mut options| {
            options.kubeconfig = Some(kubeconfig);
            Manager::native(OPERATOR, options).reconciler("Widget", reconciler)
        })
    }

    async fn create(&self, metadata: Value, spec: Value) -> Widget {
        let widget = json!({ "apiVersion": "test.catamaran.dev/v1", "kind": "Widget",
            "metadata": metadata, "spec": spec });
        let widget = serde_json::from_value(widget).unwrap();
        self.widgets.create(&PostParams::default(), &widget).await.unwrap()
    }

    async fn patch(&self, name: &str, patch: Value) {
        self.widgets.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    async fn says(&self, name: &str, of: &str, reason: &str) {
        let said = |widget: &Widget| condition(widget, of).1 == reason;
        becomes(&self.widgets, name, &format!("{of} {reason}"), said).await;
    }

    async fn tried(&self, name: &str, than: usize) {
        eventually("it is tried", async || match self.reconciler.count(name) {
            count if count > than => Ok(()),
            count => Err(count.to_string()),
        })
        .await;
    }
}

fn is_ready(widget: &Widget) -> bool {
    condition(widget, "Ready") == ("True", "Ready")
}

/// Another one of the same each time.
type Made = fn() -> RequestFaults;

#[tokio::test]
async fn storms_of_refusals_and_lost_answers_are_outlived() {
    let test = Test::new("storms").await;
    let _operator = test.operator();
    let storms: [(&str, Made); 5] = [
        ("conflicts", || RequestFaults::over("", "/widgets/").refused(409).times(12)),
        ("errors", || RequestFaults::over("", "").refused(500).times(8)),
        ("busy", || RequestFaults::over("PATCH", "").too_many(1).times(3)),
        ("lost", || RequestFaults::over("P", "").unanswered().times(6)),
        ("slow", || RequestFaults::over("", "").late(Duration::from_millis(300)).times(30)),
    ];
    for (name, storm) in storms {
        test.weather.storm(storm());
        let spec = json!({ "maps": [format!("{name}-a"), format!("{name}-b")], "secret": name });
        test.create(json!({ "name": name }), spec).await;
        becomes(&test.widgets, name, "Ready", is_ready).await;
        test.weather.clear();
        // Nothing was made twice, and what is deleted in the midst of it ends.
        test.weather.storm(storm());
        test.widgets.delete(name, &DeleteParams::default()).await.unwrap();
        vanishes(&test.widgets, name).await;
        vanishes(&test.maps, &format!("{name}-a")).await;
        test.weather.clear();
    }
    let cleaned: BTreeSet<String> = test.reconciler.cleaned().into_iter().collect();
    assert_eq!(cleaned.len(), storms.len(), "{cleaned:?}");
}

#[tokio::test]
async fn who_is_asked_to_wait_comes_no_sooner() {
    let test = Test::new("busy").await;
    test.weather.storm(RequestFaults::over("PATCH", "/widgets/").too_many(3));
    test.create(json!({ "name": "w" }), json!({})).await;
    // From before it can try: whatever is seen of it late, the waits between three tries are in it.
    let begun = Instant::now();
    let _operator = test.operator();
    // Each try begins with the finalizer, and ends with the status.
    let is_try = |asked: &str| {
        asked.starts_with("PATCH") && asked.contains("/widgets/") && !asked.contains("/status")
    };
    let tries = async |count: usize| {
        let seen = Cell::new(0);
        eventually("it tries", async || {
            let asked = test.weather.asked();
            seen.update(|seen| seen + asked.iter().filter(|asked| is_try(asked)).count());
            if seen.get() >= count { Ok(()) } else { Err(seen.get().to_string()) }
        })
        .await;
    };
    tries(3).await;
    // By its own back-off the third of them would come within a second.
    assert!(begun.elapsed() >= Duration::from_secs(5), "{:?}", begun.elapsed());
    test.weather.clear();
    becomes(&test.widgets, "w", "Ready", is_ready).await;
}

#[tokio::test]
async fn as_large_and_as_long_as_may_be() {
    let test = Test::new("large").await;
    let _operator = test.operator();
    let long = format!("{}.x", "l".repeat(251));
    let label = "v".repeat(63);
    let prefix = format!("{}/{}", vec!["p".repeat(63); 3].join("."), "n".repeat(63));
    let metadata = json!({ "name": long, "labels": { prefix: label },
        "annotations": { "note": "a".repeat(200_000) } });
    // A megabyte that is carried along and passed through.
    let many: Vec<String> = (0..5).map(|number| format!("{}{number}", "m".repeat(252))).collect();
    let spec = json!({ "maps": many, "note": "n".repeat(1_000_000), "elsewhere": null });
    test.create(metadata, spec).await;
    becomes(&test.widgets, &long, "Ready", is_ready).await;
    assert_eq!(test.widgets.get(&long).await.unwrap().spec.note.unwrap().len(), 1_000_000);
    test.patch(&long, json!({ "spec": { "fail": true } })).await;
    test.says(&long, "Failing", "ReconcileError").await;
    eventually("an event tells of it", async || {
        let arguments =
            ["get", "events.v1.events.k8s.io", "-o", "jsonpath={.items[*].regarding.name}"];
        match test.bench.kubectl(&arguments) {
            told if told.contains(&long) => Ok(()),
            told => Err(told),
        }
    })
    .await;
    // One that fails with so much to say that a status could not hold it.
    test.create(json!({ "name": "wordy" }), json!({ "fail": true, "note": "n".repeat(900_000) }))
        .await;
    test.says("wordy", "Failing", "ReconcileError").await;
    for name in [long.as_str(), "wordy"] {
        test.widgets.delete(name, &DeleteParams::default()).await.unwrap();
        vanishes(&test.widgets, name).await;
    }
    vanishes(&test.maps, &many[4]).await;
}

#[tokio::test]
async fn what_others_write_into_a_status_is_written_over_or_left() {
    let test = Test::new("garbage").await;
    let _operator = test.operator();
    test.create(json!({ "name": "w" }), json!({ "maps": ["m"] })).await;
    becomes(&test.widgets, "w", "Ready", is_ready).await;
    let told = |widget: &Widget| widget.status.as_ref().is_some_and(|s| s.fields.told.size == 1);
    becomes(&test.widgets, "w", "told", told).await;
    let now = "2026-01-01T00:00:00Z";
    let condition = |of: &str, status: &str| {
        json!({ "type": of, "status": status, "reason": "Theirs", "message": "theirs",
            "lastTransitionTime": now })
    };
    for garbage in [
        // Not what the type says.
        json!({ "told": { "size": "large" }, "observedGeneration": 99 }),
        json!({ "told": null, "conditions": [condition("Ready", "False"), condition("Theirs", "True")] }),
        json!({ "conditions": null }),
    ] {
        let params = PatchParams::default();
        let patch = Patch::Merge(json!({ "status": garbage }));
        // Typed answers cannot tell of it.
        let raw: Api<kube::core::DynamicObject> = Api::namespaced_with(
            test.bench.client(),
            &test.bench.namespace,
            &kube::api::ApiResource::erase::<Widget>(&()),
        );
        raw.patch_status("w", &params, &patch).await.unwrap();
        // Nobody reconciles because of a status; the next reconcile that has heard of it puts it right.
        eventually("it is right again", async || {
            test.reconciler.wake().resource(&test.bench.namespace, "w", "a test says so");
            let widget = raw.get("w").await.map_err(|error| error.to_string())?;
            let typed: Widget = serde_json::to_value(&widget)
                .and_then(serde_json::from_value)
                .map_err(|error| error.to_string())?;
            let observed = typed.status.as_ref().and_then(|status| status.observed_generation);
            let right = is_ready(&typed) && told(&typed) && observed == typed.meta().generation;
            if right { Ok(()) } else { Err(format!("{widget:?}")) }
        })
        .await;
    }
    let widget = test.widgets.get("w").await.unwrap();
    assert_eq!(widget::condition(&widget, "Theirs"), ("", ""), "they took all of them away");
}

#[tokio::test]
async fn finalizers_and_owners_of_others_stay() {
    let test = Test::new("foreign").await;
    let _operator = test.operator();
    let other: ConfigMap =
        serde_json::from_value(json!({ "metadata": { "name": "other" } })).unwrap();
    let other = test.maps.create(&PostParams::default(), &other).await.unwrap();
    let theirs = "example.com/theirs";
    test.create(json!({ "name": "w", "finalizers": [theirs] }), json!({ "maps": ["m"] })).await;
    becomes(&test.widgets, "w", "Ready", is_ready).await;
    let finalizers = test.widgets.get("w").await.unwrap().finalizers().to_vec();
    assert_eq!(finalizers, [theirs, "test.catamaran.dev/finalizer"]);

    // Somebody else owns the child, too; what we write leaves that alone.
    let owner = json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": "other",
        "uid": other.uid() });
    let mut owners = json!(test.maps.get("m").await.unwrap().owner_references());
    owners.as_array_mut().unwrap().push(owner);
    let patch = json!({ "metadata": { "ownerReferences": owners }, "data": { "a": "changed" } });
    test.maps.patch("m", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    let map = becomes(&test.maps, "m", "repaired", |map: &ConfigMap| {
        map.data.as_ref().is_some_and(|data| data["a"] == "b")
    })
    .await;
    assert_eq!(map.owner_references().len(), 2, "{:?}", map.owner_references());

    // Deleted: we clean up once, and it stays for the other one.
    test.widgets.delete("w", &DeleteParams::default()).await.unwrap();
    becomes(&test.widgets, "w", "theirs alone", |widget| widget.finalizers() == [theirs]).await;
    test.reconciler.wake().resource(&test.bench.namespace, "w", "a test says so");
    // First come, first served: what was woken has had its turn when this is ready.
    test.create(json!({ "name": "next" }), json!({})).await;
    becomes(&test.widgets, "next", "Ready", is_ready).await;
    assert_eq!(test.reconciler.cleaned(), ["w"]);
    test.patch("w", json!({ "metadata": { "finalizers": null } })).await;
    vanishes(&test.widgets, "w").await;
    assert!(test.maps.get("m").await.is_ok(), "it has another owner");
}

#[tokio::test]
async fn made_anew_under_its_name_within_one_reconcile_it_is_another() {
    let test = Test::new("anew").await;
    let _operator = test.operator();
    for round in 0..3 {
        let metadata = json!({ "name": "w" });
        test.create(metadata.clone(), json!({ "maps": ["m"], "secret": "keys" })).await;
        let first = becomes(&test.widgets, "w", "Ready", is_ready).await;
        // Each request takes a while: both happen in the midst of a reconcile.
        test.weather.storm(RequestFaults::over("", "").late(Duration::from_millis(200)));
        let tries = test.reconciler.count("w");
        test.patch("w", json!({ "spec": { "maps": ["m", format!("m{round}")] } })).await;
        test.tried("w", tries).await;
        // Gone at once, with nobody asked.
        test.widgets.delete("w", &DeleteParams::default()).await.unwrap();
        test.patch("w", json!({ "metadata": { "finalizers": null } })).await;
        let second = test.create(metadata, json!({ "maps": ["m"], "secret": "keys" })).await;
        test.weather.clear();
        assert_ne!(first.uid(), second.uid());
        let ours = |object: &[k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference]| {
            object.len() == 1 && Some(&object[0].uid) == second.meta().uid.as_ref()
        };
        becomes(&test.maps, "m", "the second one's", |map: &ConfigMap| {
            map.metadata.deletion_timestamp.is_none() && ours(map.owner_references())
        })
        .await;
        let secrets: Api<Secret> = test.bench.api();
        becomes(&secrets, "keys", "the second one's", |secret: &Secret| {
            ours(secret.owner_references())
        })
        .await;
        becomes(&test.widgets, "w", "Ready", is_ready).await;
        test.widgets.delete("w", &DeleteParams::default()).await.unwrap();
        vanishes(&test.widgets, "w").await;
        vanishes(&test.maps, "m").await;
        vanishes(&test.maps, &format!("m{round}")).await;
        vanishes(&secrets, "keys").await;
    }
}

#[tokio::test]
async fn a_cleanup_that_panics_is_tried_again_and_keeps_the_resource() {
    let test = Test::new("panics").await;
    let _operator = test.operator();
    test.create(json!({ "name": "w" }), json!({ "maps": ["m"], "burst": true })).await;
    test.create(json!({ "name": "other" }), json!({})).await;
    becomes(&test.widgets, "w", "Ready", is_ready).await;
    test.widgets.delete("w", &DeleteParams::default()).await.unwrap();
    eventually("it is told", async || {
        let arguments = ["get", "events.v1.events.k8s.io", "-o", "jsonpath={.items[*].note}"];
        match test.bench.kubectl(&arguments) {
            told if told.contains("panicked") => Ok(()),
            told => Err(told),
        }
    })
    .await;
    eventually("it is tried again", async || match test.reconciler.cleanups("w") {
        tries if tries >= 3 => Ok(()),
        tries => Err(tries.to_string()),
    })
    .await;
    let widget = test.widgets.get("w").await.unwrap();
    assert_eq!(widget.finalizers(), ["test.catamaran.dev/finalizer"]);
    assert!(test.reconciler.cleanups("w") < 12, "it backs off");
    // Others are served meanwhile, and mended it ends.
    test.patch("other", json!({ "spec": { "maps": ["of-other"] } })).await;
    becomes(&test.maps, "of-other", "made", |_| true).await;
    test.patch("w", json!({ "spec": { "burst": false } })).await;
    vanishes(&test.widgets, "w").await;
}

#[tokio::test]
async fn a_kind_that_is_forbidden_is_tried_seldom_and_delays_no_other() {
    let test = Test::new("forbidden").await;
    test.weather.storm(RequestFaults::over("GET", "/realms").refused(403));
    let probes = Probes::free();
    let (reconciler, kubeconfig) = (test.reconciler.clone(), test.weather.kubeconfig().to_owned());
    let _operator = test.bench.run(|mut options| {
        options.kubeconfig = Some(kubeconfig);
        options.health_probe_bind_address = Some(probes.address().to_owned());
        let manager = Manager::native(OPERATOR, options).reconciler("Widget", reconciler);
        manager.reconciler("Realm", Realms)
    });
    probes.answers("/readyz", 200).await;
    let mut asked = Vec::new();
    for round in 0..5 {
        let name = format!("w{round}");
        test.create(json!({ "name": name }), json!({ "maps": [name] })).await;
        becomes(&test.widgets, &name, "Ready", is_ready).await;
        asked.extend(test.weather.asked().into_iter().filter(|asked| asked.contains("/realms")));
    }
    // After 2 s, 8 s, 32 s, and then once a minute.
    assert!((1..=3).contains(&asked.len()), "{asked:?}");
}
