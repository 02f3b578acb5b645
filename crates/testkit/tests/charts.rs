//! What chart kinds configured in code promise, on a real API server.

#![allow(clippy::unwrap_used, missing_docs)] // a test, and helpers of tests, fail as tests do
#![allow(clippy::large_futures, clippy::needless_pass_by_value)] // nobody counts bytes here

mod shop;

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use catamaran_operator::charts::{Action, Context, Error, Logic, Severity, Values, WaitStrategy};
use catamaran_operator::{Manager, ManagerError, Options};
use catamaran_testkit::{RequestFaults, WatchFaults, becomes, eventually, vanishes};
use clap::Parser;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::core::Expression;
use serde_json::json;
use shop::{Notebook, OPERATOR, Stage, field, map, web};
use tokio_util::sync::CancellationToken;

/// Takes values from a ConfigMap.
struct FromConfigMap;

impl Logic for FromConfigMap {
    async fn values(&self, ctx: &Context<'_>, mut values: Values) -> Result<Values, Error> {
        let defaults = ctx.reference::<ConfigMap>(None, "defaults").await?.found()?;
        for (key, value) in defaults.data.iter().flatten() {
            values.insert(key.clone(), value.as_str().into());
        }
        Ok(values)
    }
}

#[tokio::test]
async fn values_follow_the_state_of_the_cluster() {
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {zone: {{ .Values.zone | quote }}}\n";
    let stage = Stage::of("mapped", template).await;
    let operator = stage.run(stage.kind().logic(FromConfigMap));
    stage.create("web", json!({})).await;
    let waiting = stage.says("web", "Ready", "MissingDependency").await;
    assert!(field(&waiting, "Ready", "message").contains("defaults"));
    stage.config_map("defaults", json!({ "zone": "a" })).await;
    stage.holds("web", json!({ "zone": "a" })).await;
    stage.ready("web").await;
    stage.config_map("defaults", json!({ "zone": "b" })).await;
    stage.holds("web", json!({ "zone": "b" })).await;
    // Ready it was before.
    becomes(&stage.shops, "web", "at its second revision", |shop| {
        shop.data["status"]["deployedRelease"]["version"] == 2
    })
    .await;
    stage.ready("web").await;
    assert_eq!(stage.revisions("web").await, ["v1 superseded", "v2 deployed"]);
    // Nothing moves, nothing is asked.
    let mark = stage.bench.quiet(OPERATOR, Duration::from_secs(1)).await;
    stage.patch("web", json!({ "metadata": { "labels": { "seen": "again" } } })).await;
    stage.bench.quiet(OPERATOR, Duration::from_secs(1)).await;
    assert_eq!(stage.bench.requests(OPERATOR, mark), [""; 0]);
    // A process that comes later takes them from the cluster as well.
    operator.stop().await;
    stage.config_map("defaults", json!({ "zone": "c" })).await;
    let _operator = stage.run(stage.kind().logic(FromConfigMap));
    stage.holds("web", json!({ "zone": "c" })).await;
}

/// A name that a chart makes of a value would leave the cluster in a query. `localhost` needs none,
/// and would be found if the function looked.
#[tokio::test]
async fn cve_2023_25165_get_host_by_name_asks_for_no_address() {
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {address: {{ getHostByName .Values.host | quote }}}\n";
    let stage = Stage::of("dns", template).await;
    let _operator = stage.run(stage.kind());
    stage.create("web", json!({ "host": "localhost" })).await;
    stage.holds("web", json!({ "address": "" })).await;
}

#[tokio::test]
async fn each_action_is_seen_before_and_after() {
    let stage = Stage::new("seen").await;
    let notebook = Notebook::default();
    let _operator = stage.run(stage.kind().logic(notebook.clone()));
    stage.create_with("web", json!({ "annotations": { "size": "9" } }), web("1")).await;
    let shop = stage.ready("web").await;
    assert_eq!(shop.data["status"]["looked"], true);
    stage.patch("web", json!({ "spec": web("2") })).await;
    stage.holds("web", json!({ "a": "2" })).await;
    stage.ready("web").await;
    stage.config_map("web", json!({ "a": "by hand" })).await;
    stage.holds("web", json!({ "a": "2" })).await;
    stage.delete("web").await;
    vanishes(&stage.shops, "web").await;
    assert_eq!(
        notebook.seen(),
        [
            "before Install web after v0: 1 objects \"9\"",
            "after Install: v1",
            "before Upgrade web after v1: 1 objects \"9\"",
            "after Upgrade: v2",
            "before Repair web after v2: 1 objects \"9\"",
            "after Repair: v2",
            "before Uninstall web after v2: 1 objects \"9\"",
            "after Uninstall: gone",
        ]
    );
}

#[tokio::test]
async fn each_action_can_be_refused() {
    let stage = Stage::new("refused").await;
    let notebook = Notebook::default();
    let _operator = stage.run(stage.kind().logic(notebook.clone()));
    notebook.refuse(Action::Install, "waiting");
    stage.create("web", web("1")).await;
    let waiting = stage.says("web", "Ready", "NotNow").await;
    assert_eq!(field(&waiting, "Ready", "message"), "the shop is open");
    assert_eq!(stage.revisions("web").await, [""; 0], "nothing was written");
    notebook.allow();
    stage.patch("web", json!({ "metadata": { "labels": { "try": "again" } } })).await;
    stage.ready("web").await;

    notebook.refuse(Action::Upgrade, "permanent");
    stage.patch("web", json!({ "spec": web("2") })).await;
    let stuck = stage.says("web", "Irreconcilable", "ReconcileError").await;
    assert_eq!(field(&stuck, "Irreconcilable", "message"), "never");
    assert_eq!(field(&stuck, "Deployed", "status"), "True", "what is there stays");
    stage.holds("web", json!({ "a": "1" })).await;
    // Allowed only when that was seen: something else may wake it before.
    stage.patch("web", json!({ "spec": web("3") })).await;
    becomes(&stage.shops, "web", "refused again", |shop| {
        shop.data["status"]["observedGeneration"] == json!(shop.metadata.generation)
    })
    .await;
    notebook.allow();
    stage.patch("web", json!({ "metadata": { "labels": { "try": "upgrade" } } })).await;
    stage.holds("web", json!({ "a": "3" })).await;
    stage.ready("web").await;
    assert_eq!(stage.revisions("web").await, ["v1 superseded", "v2 deployed"]);

    // What differs stays so, as long as its repair is refused.
    notebook.refuse(Action::Repair, "waiting");
    stage.config_map("web", json!({ "a": "by hand" })).await;
    stage.says("web", "Ready", "NotNow").await;
    stage.holds("web", json!({ "a": "by hand" })).await;
    notebook.allow();
    stage.patch("web", json!({ "metadata": { "labels": { "try": "repair" } } })).await;
    stage.holds("web", json!({ "a": "3" })).await;

    notebook.refuse(Action::Uninstall, "transient");
    stage.delete("web").await;
    stage.says("web", "Irreconcilable", "ReconcileError").await;
    stage.holds("web", json!({ "a": "3" })).await;
    eventually("an event tells of it", async || {
        let told = stage.has_event("Refused", "the shop is open").await;
        told.then_some(()).ok_or_else(String::new)
    })
    .await;
    notebook.allow();
    vanishes(&stage.shops, "web").await;
}

#[tokio::test]
async fn what_is_not_heard_is_told_again() {
    let stage = Stage::new("deaf").await;
    let notebook = Notebook::default();
    notebook.deaf.store(true, Ordering::Relaxed);
    let _operator = stage.run(stage.kind().logic(notebook.clone()));
    stage.create("web", web("1")).await;
    stage.says("web", "Ready", "Deaf").await;
    let told = |times: usize, what: &'static str| {
        let notebook = notebook.clone();
        async move {
            eventually(what, async || {
                let seen = notebook.seen();
                let told = seen.iter().filter(|line| **line == what).count();
                if told >= times { Ok(()) } else { Err(format!("{seen:?}")) }
            })
            .await;
        }
    };
    told(3, "after Install: v1").await;
    notebook.deaf.store(false, Ordering::Relaxed);
    stage.ready("web").await;
    // A resource that goes is kept until it was heard.
    notebook.deaf.store(true, Ordering::Relaxed);
    stage.delete("web").await;
    told(2, "after Uninstall: gone").await;
    assert!(stage.shops.get_opt("web").await.unwrap().is_some());
    notebook.deaf.store(false, Ordering::Relaxed);
    vanishes(&stage.shops, "web").await;
}

#[tokio::test]
async fn annotations_of_ones_own_change_actions() {
    let hook = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: hook-{{ .Release.Revision }}\n  annotations: {helm.sh/hook: 'pre-install,pre-upgrade'}\n---\n{{ range .Values.objects }}\n---\n{{ toYaml . }}\n{{ end }}\n";
    let stage = Stage::of("annotated", hook).await;
    let is = |value: &str| value == "yes";
    let kind = stage
        .kind()
        .installs(|action_options| action_options.description = Some("by the shops".to_owned()))
        .install_annotation("shops/quiet", move |value, action_options| {
            action_options.no_hooks = is(value);
        })
        .upgrade_annotation("shops/why", |value, action_options| {
            action_options.description = Some(value.to_owned());
        })
        .uninstall_annotation("shops/wait", move |value, action_options| {
            if is(value) {
                action_options.wait = WaitStrategy::Objects;
            }
        });
    let _operator = stage.run(kind);
    let annotations =
        json!({ "shops/quiet": "yes", "shops/why": "for a reason", "shops/wait": "yes" });
    stage.create_with("web", json!({ "annotations": annotations }), web("1")).await;
    stage.ready("web").await;
    let maps: Api<ConfigMap> = stage.bench.api();
    assert!(maps.get_opt("hook-1").await.unwrap().is_none(), "no hook of the install");
    stage.patch("web", json!({ "spec": web("2") })).await;
    stage.holds("web", json!({ "a": "2" })).await;
    stage.ready("web").await;
    assert!(maps.get_opt("hook-2").await.unwrap().is_some(), "hooks of upgrades run");
    let history = stage.helm3(&["history", "web", "-o", "json"]);
    let history: Vec<serde_json::Value> = serde_json::from_str(&history).unwrap();
    let told: Vec<_> = history.iter().map(|revision| &revision["description"]).collect();
    assert_eq!(told, ["by the shops", "for a reason"]);
    // The uninstall waits until the objects are gone.
    stage.bench.kubectl(&[
        "patch",
        "configmap",
        "web",
        "--type=merge",
        "-p",
        r#"{"metadata":{"finalizers":["test/held"]}}"#,
    ]);
    stage.delete("web").await;
    stage.says("web", "Deployed", "UninstallSuccessful").await;
    stage.bench.kubectl(&[
        "patch",
        "configmap",
        "web",
        "--type=merge",
        "-p",
        r#"{"metadata":{"finalizers":null}}"#,
    ]);
    vanishes(&stage.shops, "web").await;
}

#[tokio::test]
async fn every_option_holds() {
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata:\n  a: {{ .Values.a | quote }}\n  forced: {{ .Values.forced | quote }}\n";
    let stage = Stage::of("options", template).await;
    let told = Arc::new(Mutex::new(Vec::new()));
    let heard = told.clone();
    let kind = stage
        .kind()
        .selector(Expression::Equal("tier".to_owned(), "code".to_owned()))
        .max_concurrent_reconciles(1)
        .history(2)
        .skip_dependent_watches()
        .reconcile_period(Duration::from_secs(2))
        .override_values([("forced", json!("yes"))])
        .post_renderer(|text: &str| Ok(text.replace("  a: ", "  renamed: ")))
        .log(|shop| tracing::info_span!("shop", tier = ?shop.metadata.labels))
        .on_event(move |event| {
            heard.lock().unwrap().push((event.severity, event.reason.to_owned()));
        });
    let _operator = stage.run(kind);
    stage.create("other", json!({ "a": "1" })).await;
    stage
        .create_with(
            "web",
            json!({ "labels": { "tier": "code" } }),
            json!({ "a": "1", "forced": "no" }),
        )
        .await;
    stage.ready("web").await;
    stage.holds("web", json!({ "forced": "yes", "renamed": "1" })).await;
    for value in ["2", "3"] {
        stage.patch("web", json!({ "spec": json!({ "a": value }) })).await;
        stage.holds("web", json!({ "forced": "yes", "renamed": value })).await;
        stage.ready("web").await;
    }
    eventually("two revisions are kept", async || {
        let revisions = stage.revisions("web").await;
        if revisions == ["v2 superseded", "v3 deployed"] {
            Ok(())
        } else {
            Err(format!("{revisions:?}"))
        }
    })
    .await;
    // No watch tells of what happens to the objects, but the period comes.
    stage.config_map("web", json!({ "renamed": "by hand" })).await;
    stage.holds("web", json!({ "forced": "yes", "renamed": "3" })).await;
    assert!(stage.shops.get("other").await.unwrap().data.get("status").is_none(), "not selected");
    let told = told.lock().unwrap().clone();
    for expected in [
        (Severity::Warning, "ValueOverridden"),
        (Severity::Normal, "DriftRepaired"),
        (Severity::Normal, "UpgradeSuccessful"),
    ] {
        assert!(told.contains(&(expected.0, expected.1.to_owned())), "{expected:?}: {told:?}");
    }
    // One that is labelled later is served.
    stage.patch("other", json!({ "metadata": { "labels": { "tier": "code" } } })).await;
    becomes(&stage.shops, "other", "served", |shop| shop.data.get("status").is_some()).await;
}

#[derive(Parser)]
struct Flags {
    #[command(flatten)]
    options: Options,
}

#[tokio::test]
async fn a_kind_that_is_configured_wrongly_is_told_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("Chart.yaml"), "apiVersion: v2\nname: a\nversion: 1.0.0\n")
        .unwrap();
    let kind = || catamaran_operator::ChartKind::load(("g.io", "v1", "A"), folder.path()).unwrap();
    let why = async |kind: catamaran_operator::ChartKind| {
        let options = Flags::parse_from(["test", "--kubeconfig", "/nowhere"]).options;
        let manager = Manager::native("test", options).chart(kind);
        match manager.run_until(CancellationToken::new()).await {
            Err(ManagerError::Kind(message)) => message,
            ended => format!("{ended:?}"),
        }
    };
    let twice = kind().install_annotation("x", |_, _| {}).uninstall_annotation("x", |_, _| {});
    assert_eq!(why(twice).await, "g.io/v1, Kind=A: annotation \"x\" is configured twice");
    let none = why(kind().max_concurrent_reconciles(0).timeout(Duration::ZERO)).await;
    assert!(none.contains("at least 1") && none.contains("timeout"), "{none}");
    let key = why(kind().override_values([("a[x]", "1")])).await;
    assert!(key.contains("\"a[x]\""), "{key}");
    let missing = catamaran_operator::ChartKind::load(("g.io", "v1", "A"), "/nowhere");
    assert!(matches!(missing, Err(ManagerError::Kind(_))));
}

/// An object that the API server refuses.
fn broken(value: &str) -> serde_json::Value {
    let service = json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": "broken" },
        "spec": { "ports": [{ "port": -1 }] } });
    json!({ "objects": [map("web", json!({ "a": value })), service] })
}

#[tokio::test]
async fn a_failed_upgrade_is_rolled_back_and_rests() {
    let stage = Stage::new("rollback").await;
    let notebook = Notebook::default();
    let _operator = stage.run(stage.kind().logic(notebook.clone()));
    stage.create("web", web("1")).await;
    stage.ready("web").await;
    stage.patch("web", json!({ "spec": broken("2") })).await;
    let failed = stage.says("web", "ReleaseFailed", "UpgradeError").await;
    assert!(field(&failed, "ReleaseFailed", "message").contains("broken"), "{failed:#?}");
    assert_eq!(field(&failed, "Deployed", "status"), "True");
    assert_eq!(field(&failed, "Deployed", "reason"), "InstallSuccessful");
    assert_eq!(field(&failed, "Ready", "status"), "False");
    assert_eq!(failed.data["status"]["deployedRelease"]["version"], 3);
    stage.holds("web", json!({ "a": "1" })).await;
    assert_eq!(stage.revisions("web").await, ["v1 superseded", "v2 failed", "v3 deployed"]);
    // It is kept so: drift is repaired, and no further revision comes of that.
    stage.config_map("web", json!({ "a": "by hand" })).await;
    stage.holds("web", json!({ "a": "1" })).await;
    assert_eq!(stage.revisions("web").await.len(), 3);
    let seen = notebook.seen();
    let upgrade = seen.iter().position(|line| line.starts_with("before Upgrade")).unwrap();
    assert_eq!(
        seen[upgrade..][..4],
        [
            "before Upgrade web after v1: 2 objects ",
            "after Upgrade: failed",
            "before Rollback web after v1: 1 objects ",
            "after Rollback: v3",
        ]
    );
    // Another wish is tried at once.
    stage.patch("web", json!({ "spec": web("4") })).await;
    stage.holds("web", json!({ "a": "4" })).await;
    let ready = stage.ready("web").await;
    assert_eq!(field(&ready, "ReleaseFailed", "status"), "");
    assert_eq!(field(&ready, "Deployed", "reason"), "UpgradeSuccessful");
}

#[tokio::test]
async fn a_rollback_that_is_cut_short_is_gone_on_with() {
    let hook = "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: back\n  annotations: {helm.sh/hook: pre-rollback}\nspec:\n  backoffLimit: 0\n  template:\n    metadata:\n      annotations: {fake.catamaran.test/run-for: 4s}\n    spec:\n      restartPolicy: Never\n      containers: [{name: c, image: busybox}]\n{{ range .Values.objects }}\n---\n{{ toYaml . }}\n{{ end }}\n";
    let stage = Stage::of("cut-short", hook).await;
    let operator = stage.run(stage.kind());
    stage.create("web", web("1")).await;
    stage.ready("web").await;
    stage.patch("web", json!({ "spec": broken("2") })).await;
    eventually("the rollback waits for its hook", async || {
        let revisions = stage.revisions("web").await;
        let begun = revisions.iter().any(|revision| revision == "v3 pending-rollback");
        if begun { Ok(()) } else { Err(format!("{revisions:?}")) }
    })
    .await;
    operator.stop().await;
    let _operator = stage.run(stage.kind());
    let failed = stage.says("web", "ReleaseFailed", "UpgradeError").await;
    assert!(field(&failed, "ReleaseFailed", "message").contains("broken"), "{failed:#?}");
    assert_eq!(failed.data["status"]["deployedRelease"]["version"], 3);
    stage.holds("web", json!({ "a": "1" })).await;
    assert_eq!(stage.revisions("web").await, ["v1 superseded", "v2 failed", "v3 deployed"]);
}

/// The old revision is superseded by one write, and the new one deployed by the next. Between the two no
/// revision is deployed, and yet the release is installed.
#[tokio::test]
async fn a_rollback_goes_on_after_an_error_between_superseding_and_deploying() {
    let stage = Stage::new("between").await;
    let weather = WatchFaults::new(&stage.bench.cluster).await;
    let kubeconfig = weather.kubeconfig().to_owned();
    let kind = stage.kind();
    let operator = stage.bench.run(|mut options| {
        options.kubeconfig = Some(kubeconfig);
        Manager::native(OPERATOR, options).chart(kind)
    });
    stage.create("web", web("1")).await;
    stage.ready("web").await;
    let maps: Api<ConfigMap> = stage.bench.api();
    let before = maps.get("web").await.unwrap().metadata.uid;
    weather.storm(RequestFaults::over("PUT", "/sh.helm.release.v1.web.v3").refused(500));
    stage.patch("web", json!({ "spec": broken("2") })).await;
    let cut_short = ["v1 superseded", "v2 failed", "v3 pending-rollback"];
    eventually("the rollback is cut short", async || {
        let revisions = stage.revisions("web").await;
        if revisions == cut_short { Ok(()) } else { Err(format!("{revisions:?}")) }
    })
    .await;
    // The same operator tries again; then another one takes over.
    weather.asked();
    eventually("it is tried again", async || {
        let asked = weather.asked();
        let is_try = |asked: &String| {
            asked.starts_with("PUT ") && asked.contains("/sh.helm.release.v1.web.v3")
        };
        if asked.iter().any(is_try) { Ok(()) } else { Err(format!("{asked:?}")) }
    })
    .await;
    assert_eq!(stage.revisions("web").await, cut_short);
    operator.stop().await;
    let _operator = stage.run(stage.kind());
    let is_back =
        |shop: &kube::core::DynamicObject| shop.data["status"]["deployedRelease"]["version"] == 3;
    let failed = becomes(&stage.shops, "web", "rolled back", is_back).await;
    assert_eq!(field(&failed, "ReleaseFailed", "reason"), "UpgradeError", "{failed:#?}");
    assert_eq!(stage.revisions("web").await, ["v1 superseded", "v2 failed", "v3 deployed"]);
    assert_eq!(maps.get("web").await.unwrap().metadata.uid, before, "nothing was uninstalled");
}

#[tokio::test]
async fn a_failed_install_is_uninstalled() {
    let stage = Stage::new("uninstalled").await;
    let notebook = Notebook::default();
    let _operator = stage.run(stage.kind().logic(notebook.clone()));
    stage.create("web", broken("1")).await;
    let failed = stage.says("web", "ReleaseFailed", "InstallError").await;
    assert_eq!(field(&failed, "Deployed", "status"), "False");
    assert!(failed.data["status"].get("deployedRelease").is_none());
    let maps: Api<ConfigMap> = stage.bench.api();
    vanishes(&maps, "web").await;
    assert_eq!(stage.revisions("web").await, [""; 0]);
    stage.patch("web", json!({ "spec": web("1") })).await;
    let ready = stage.ready("web").await;
    assert_eq!(ready.data["status"]["deployedRelease"]["version"], 1);
    assert_eq!(
        notebook.seen(),
        [
            "before Install web after v0: 2 objects ",
            "after Install: failed",
            "before Uninstall web after v0: 2 objects ",
            "after Uninstall: gone",
            "before Install web after v0: 1 objects ",
            "after Install: v1",
        ]
    );
}

#[tokio::test]
async fn taking_back_can_be_switched_off() {
    let stage = Stage::new("forward").await;
    let _operator = stage.run(stage.kind().failure_rollbacks(false));
    stage.create("web", web("1")).await;
    stage.ready("web").await;
    stage.patch("web", json!({ "spec": broken("2") })).await;
    stage.says("web", "ReleaseFailed", "UpgradeError").await;
    assert_eq!(stage.revisions("web").await, ["v1 deployed", "v2 failed"]);
    let maps: Api<ConfigMap> = stage.bench.api();
    becomes(&maps, "web", "half-way", |map| map.data.as_ref().is_some_and(|data| data["a"] == "2"))
        .await;
    stage.patch("web", json!({ "spec": web("3") })).await;
    stage.ready("web").await;
    stage.holds("web", json!({ "a": "3" })).await;
}
