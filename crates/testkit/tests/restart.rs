//! The API server dies under a running operator, and comes back.

#![allow(clippy::unwrap_used, missing_docs)] // a test, and helpers of tests, fail as tests do
#![allow(clippy::large_futures)] // nobody counts bytes here

mod widget;

use std::time::{Duration, Instant};

use catamaran_localcluster::LocalCluster;
use catamaran_operator::{Manager, ManagerError, Options};
use catamaran_testkit::{Bench, Probes, RequestFaults, WatchFaults, becomes, eventually, vanishes};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use widget::{OPERATOR, Widget, Widgets, condition, definitions};

fn is_ready(widget: &Widget) -> bool {
    condition(widget, "Ready") == ("True", "Ready")
}

fn manager(options: Options, widgets: &Widgets) -> Manager {
    Manager::native(OPERATOR, options).reconciler("Widget", widgets.clone())
}

async fn create(widgets: &Api<Widget>, name: &str, spec: Value) {
    let widget = json!({ "apiVersion": "test.catamaran.dev/v1", "kind": "Widget",
        "metadata": { "name": name }, "spec": spec });
    let widget = serde_json::from_value(widget).unwrap();
    widgets.create(&PostParams::default(), &widget).await.unwrap();
}

async fn holder(bench: &Bench) -> String {
    let leases: Api<Lease> = bench.api();
    let lease = leases.get_opt(OPERATOR).await.unwrap();
    lease.and_then(|lease| lease.spec?.holder_identity).unwrap_or_default()
}

async fn led_by_another(bench: &Bench, than: &str) -> String {
    eventually("somebody leads", async || match holder(bench).await {
        holder if holder.is_empty() || holder == than => Err(holder),
        holder => Ok(holder),
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_goes_on_where_it_was_and_nothing_that_happened_is_lost() {
    let cluster = LocalCluster::builder().nodes(0).start().await.unwrap();
    let bench = Bench::on(cluster.clone(), "restart", &definitions()).await;
    let (widgets, maps): (Api<Widget>, Api<ConfigMap>) = (bench.api(), bench.api());
    let (probes, reconciler) = (Probes::free(), Widgets::default());
    let operator = bench.run(|mut options| {
        options.health_probe_bind_address = Some(probes.address().to_owned());
        manager(options, &reconciler)
    });
    for name in ["kept", "changed", "deleted"] {
        create(&widgets, name, json!({ "maps": [name] })).await;
        becomes(&widgets, name, "Ready", is_ready).await;
    }
    for round in 0..2 {
        cluster.kill_api_server().await.unwrap();
        reconciler.wake().resource(&bench.namespace, "kept", "a test says so");
        for path in ["/healthz", "/readyz"] {
            assert_eq!(probes.answer(path).await, Some(200), "no reason to be started anew");
        }
        cluster.start_api_server().await.unwrap();
        // Before the operator's watches are back, most likely.
        let params = PatchParams::default();
        let more = json!({ "spec": { "maps": ["changed", format!("new-{round}")] } });
        widgets.patch("changed", &params, &Patch::Merge(more)).await.unwrap();
        maps.delete("kept", &DeleteParams::default()).await.unwrap();
        widgets.delete("deleted", &DeleteParams::default()).await.unwrap();
        becomes(&maps, &format!("new-{round}"), "there", |_| true).await;
        becomes(&maps, "kept", "there again", |_| true).await;
        vanishes(&widgets, "deleted").await;
        vanishes(&maps, "deleted").await;
        create(&widgets, "deleted", json!({ "maps": ["deleted"] })).await;
        becomes(&widgets, "deleted", "Ready", is_ready).await;
    }
    operator.stop().await;

    // Started while it is away: not ready, and no reason to end.
    cluster.kill_api_server().await.unwrap();
    let probes = Probes::free();
    let operator = bench.run(|mut options| {
        options.health_probe_bind_address = Some(probes.address().to_owned());
        manager(options, &reconciler)
    });
    probes.answers("/readyz", 503).await;
    probes.answers("/healthz", 200).await;
    cluster.start_api_server().await.unwrap();
    probes.answers("/readyz", 200).await;
    create(&widgets, "late", json!({ "maps": ["late"] })).await;
    becomes(&widgets, "late", "Ready", is_ready).await;
    operator.stop().await;
}

#[tokio::test]
async fn a_lease_runs_out_by_ones_own_clock_whatever_time_it_shows() {
    let bench = Bench::new("clocks", &definitions()).await;
    let leases: Api<Lease> = bench.api();
    let hour = Duration::from_hours(1);
    // Of one whose clock is an hour behind ours.
    let renewed = |by: &dyn Fn(Timestamp) -> Timestamp| {
        json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": { "name": OPERATOR },
            "spec": { "holderIdentity": "other", "leaseDurationSeconds": 6,
                "renewTime": MicroTime(by(Timestamp::now())) } })
    };
    let renew = async |lease: Value| {
        let params = PatchParams::apply("other").force();
        leases.patch(OPERATOR, &params, &Patch::Apply(lease)).await.unwrap();
    };
    renew(renewed(&|now| now - hour)).await;
    let elects = ["--leader-elect", "--leader-election-namespace", &bench.namespace];
    let operator = bench.run_with(&elects, |options| manager(options, &Widgets::default()));
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(9) {
        renew(renewed(&|now| now - hour)).await;
        tokio::time::sleep(Duration::from_millis(300)).await; // its pace
        assert_eq!(holder(&bench).await, "other");
    }
    // And an hour ahead: it runs out as soon as if it were right.
    renew(renewed(&|now| now + hour)).await;
    led_by_another(&bench, "other").await;
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_lease_is_kept_over_a_while_and_lost_in_good_order() {
    let cluster = LocalCluster::builder().nodes(0).start().await.unwrap();
    let bench = Bench::on(cluster.clone(), "leads", &definitions()).await;
    let (widgets, maps): (Api<Widget>, Api<ConfigMap>) = (bench.api(), bench.api());
    let reconciler = Widgets::default();
    let weather = WatchFaults::new(&cluster).await;
    let elects = ["--leader-elect", "--leader-election-namespace", &bench.namespace];
    let run = || {
        bench.run_with(&elects, |mut options| {
            options.kubeconfig = Some(weather.kubeconfig().to_owned());
            manager(options, &reconciler)
        })
    };
    let operator = run();
    let first = led_by_another(&bench, "").await;
    create(&widgets, "w", json!({ "maps": ["m"] })).await;
    becomes(&widgets, "w", "Ready", is_ready).await;

    // It has ten seconds to renew it, and tries every other: three in vain are no reason to give it up.
    weather.asked();
    weather.storm(RequestFaults::over("", "/leases/").refused(500).times(3));
    eventually("it was refused three times", async || {
        let asked = weather.asked();
        let mut renewals = asked.iter().filter(|asked| asked.starts_with("PUT"));
        if renewals.any(|asked| asked.contains("/leases/")) { Ok(()) } else { Err(asked.len()) }
            .map_err(|asked| asked.to_string())
    })
    .await;
    assert_eq!(holder(&bench).await, first);
    maps.delete("m", &DeleteParams::default()).await.unwrap();
    becomes(&maps, "m", "there again", |_| true).await;

    // Away for longer than that: it must end, as somebody else could lead.
    cluster.kill_api_server().await.unwrap();
    let ended = tokio::time::timeout(Duration::from_mins(1), operator.ended()).await.unwrap();
    assert!(matches!(ended, Err(ManagerError::LeadershipLost)), "{ended:?}");
    let operator = run();
    cluster.start_api_server().await.unwrap();
    let params = PatchParams::default();
    let patch = Patch::Merge(json!({ "spec": { "maps": ["m", "n"] } }));
    widgets.patch("w", &params, &patch).await.unwrap();
    led_by_another(&bench, &first).await;
    becomes(&maps, "n", "there", |_| true).await;
    operator.stop().await;
}
