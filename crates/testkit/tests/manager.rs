//! What the manager promises to all kinds, whatever one reconciler, one resource or one kind does.

#![allow(clippy::unwrap_used, clippy::panic)] // tests, and reconcilers that shall panic

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use catamaran_operator::native::{Action, Context, Error, Reconciler, Status};
use catamaran_operator::{Manager, Options};
use catamaran_testkit::{Bench, ESTABLISHED, Probes, Running, becomes, eventually};
use futures::future::join_all;
use k8s_openapi::api::events::v1::Event;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, CustomResource, CustomResourceExt, KubeSchema, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

const OPERATOR: &str = "gadgets";

/// What a reconcile of a gadget does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
enum Does {
    /// A little.
    #[default]
    Work,
    /// It panics.
    Panic,
    /// It waits for ever.
    Hang,
    /// It fails.
    Fail,
    /// It cannot be done.
    Refuse,
    /// Something else has to come first.
    Wait,
    /// It takes 300 ms.
    Dawdle,
    /// It computes, until the test releases it.
    Spin,
}

#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "test.catamaran.dev",
    version = "v1",
    kind = "Gadget",
    namespaced,
    status = "GadgetStatus"
)]
struct GadgetSpec {
    does: Does,
    turn: i32,
}

type GadgetStatus = Status<GadgetFields>;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
struct GadgetFields {
    turn: i32,
}

/// What was seen of reconciles.
#[derive(Debug, Default)]
struct Seen {
    runs: Mutex<HashMap<String, usize>>,
    /// When each turn of each gadget was begun.
    turns: Mutex<HashMap<(String, i32), Instant>>,
    now: AtomicUsize,
    most: AtomicUsize,
    released: AtomicBool,
}

impl Seen {
    fn runs(&self, name: &str) -> usize {
        self.runs.lock().unwrap().get(name).copied().unwrap_or_default()
    }
}

struct Gadgets(Arc<Seen>);

impl Reconciler for Gadgets {
    type Object = Gadget;

    async fn reconcile(&self, ctx: &Context<'_, Gadget>) -> Result<Action, Error> {
        let (seen, name) = (&self.0, ctx.name_any());
        *seen.runs.lock().unwrap().entry(name.clone()).or_default() += 1;
        seen.turns.lock().unwrap().entry((name, ctx.spec.turn)).or_insert_with(Instant::now);
        match ctx.spec.does {
            Does::Work => tokio::time::sleep(Duration::from_millis(5)).await,
            Does::Panic => panic!("as it was told"),
            Does::Hang => std::future::pending().await,
            Does::Fail => return Err(Error::Transient("as it was told".into())),
            Does::Refuse => return Err(Error::Permanent("not like this".to_owned())),
            Does::Wait => {
                let (reason, message) = ("NotYet".to_owned(), "something comes first".to_owned());
                return Err(Error::Waiting { reason, message });
            }
            Does::Spin => {
                while !seen.released.load(Ordering::SeqCst) {
                    std::thread::sleep(Duration::from_millis(20));
                }
            }
            Does::Dawdle => {
                let now = seen.now.fetch_add(1, Ordering::SeqCst) + 1;
                seen.most.fetch_max(now, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(300)).await;
                seen.now.fetch_sub(1, Ordering::SeqCst);
            }
        }
        ctx.status(|fields| fields.turn = ctx.spec.turn);
        ctx.finish()
    }
}

async fn bench(name: &str) -> Bench {
    Bench::new(name, &[Gadget::crd()]).await
}

fn run(bench: &Bench, seen: &Arc<Seen>, change: impl FnOnce(&mut Options)) -> Running {
    let seen = seen.clone();
    bench.run(|mut options| {
        change(&mut options);
        Manager::native(OPERATOR, options).reconciler("Gadgets", Gadgets(seen))
    })
}

async fn create(api: &Api<Gadget>, name: &str, does: Does) {
    let gadget = Gadget::new(name, GadgetSpec { does, turn: 0 });
    api.create(&PostParams::default(), &gadget).await.unwrap();
}

async fn turn(api: &Api<Gadget>, name: &str, turn: i32) {
    let patch = json!({ "spec": { "turn": turn } });
    api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

fn has_turned(to: i32) -> impl Fn(&Gadget) -> bool {
    move |gadget| gadget.status.as_ref().is_some_and(|status| status.fields.turn == to)
}

/// How long it took from a change to the begin of its reconcile, one gadget after the other: p50, p95
/// and p99 in milliseconds.
async fn latency(api: &Api<Gadget>, seen: &Seen, names: &[String], rounds: i32) -> [u128; 3] {
    let mut took = Vec::new();
    for round in 1..=rounds {
        for name in names {
            let to = round * 1000;
            let asked = Instant::now();
            turn(api, name, to).await;
            let begun = eventually("the turn is begun", async || {
                let turns = seen.turns.lock().unwrap();
                turns.get(&(name.clone(), to)).copied().ok_or_else(|| name.clone())
            })
            .await;
            took.push(begun.saturating_duration_since(asked).as_millis());
        }
    }
    percentiles(took)
}

fn percentiles(mut took: Vec<u128>) -> [u128; 3] {
    took.sort_unstable();
    [50, 95, 99].map(|percent| took[(took.len() * percent / 100).min(took.len() - 1)])
}

/// What it means for 90 good resources that ten are bad; the figures are printed, and compared by eye:
/// `cargo test -p catamaran-testkit --test manager bad_resources -- --nocapture`.
#[tokio::test]
async fn bad_resources_leave_the_healthy_ones_alone() {
    for bad in [Does::Work, Does::Panic, Does::Hang, Does::Fail] {
        let bench = bench("bad").await;
        let (api, seen) = (bench.api::<Gadget>(), Arc::<Seen>::default());
        let bad_ones: Vec<String> = (0..10).map(|number| format!("bad-{number}")).collect();
        let names: Vec<String> = (0..90).map(|number| format!("good-{number}")).collect();
        let all = bad_ones.iter().map(|name| (name, bad));
        let all = all.chain(names.iter().map(|name| (name, Does::Work)));
        join_all(all.map(|(name, does)| create(&api, name, does))).await;
        let begun = Instant::now();
        let running = run(&bench, &seen, |options| options.max_concurrent_reconciles = Some(2));
        let ready = |gadget: &Gadget| gadget.status.is_some();
        join_all(names.iter().map(|name| becomes(&api, name, "reconciled", ready))).await;
        let first = names.iter().map(|name| seen.turns.lock().unwrap()[&(name.clone(), 0)]);
        let first = percentiles(first.map(|at| (at - begun).as_millis()).collect());
        let took = latency(&api, &seen, &names, 3).await;
        eprintln!(
            "{bad:?}: p50, p95, p99 in ms of the first reconciles {first:?}, of changes {took:?}"
        );
        if bad == Does::Hang {
            let runs: Vec<usize> = bad_ones.iter().map(|name| seen.runs(name)).collect();
            assert_eq!(runs, [1; 10], "all hang, and still do");
        }
        running.stop().await;
    }
}

#[tokio::test]
async fn no_more_work_at_once_than_they_may_and_no_resource_twice() {
    let bench = bench("bound").await;
    let (api, seen) = (bench.api::<Gadget>(), Arc::<Seen>::default());
    let names: Vec<String> = (0..12).map(|number| format!("slow-{number}")).collect();
    join_all(names.iter().map(|name| create(&api, name, Does::Dawdle))).await;
    let _running = run(&bench, &seen, |options| options.max_concurrent_reconciles = Some(3));
    // Changed while they run and wait.
    for to in 1..=3 {
        join_all(names.iter().map(|name| turn(&api, name, to))).await;
    }
    let turned = has_turned(3);
    join_all(names.iter().map(|name| becomes(&api, name, "turned", &turned))).await;
    assert_eq!(seen.most.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn who_hangs_is_ended_at_its_deadline_and_told_of() {
    let bench = bench("deadline").await;
    let (api, seen) = (bench.api::<Gadget>(), Arc::<Seen>::default());
    create(&api, "hangs", Does::Hang).await;
    create(&api, "panics", Does::Panic).await;
    let _running = run(&bench, &seen, |options| {
        options.max_concurrent_reconciles = Some(1);
        options.limits.reconcile_timeout = Duration::from_secs(1);
    });
    eventually("both are tried again", async || {
        let runs = (seen.runs("hangs"), seen.runs("panics"));
        if runs.0 >= 2 && runs.1 >= 2 { Ok(()) } else { Err(format!("{runs:?}")) }
    })
    .await;
    let events: Api<Event> = Api::namespaced(bench.client(), &bench.namespace);
    eventually("both are told of", async || {
        let told = events.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
        let notes: BTreeMap<String, String> = told
            .into_iter()
            .filter(|event| event.reason.as_deref() == Some("ReconcileError"))
            .map(|event| {
                let of = event.regarding.and_then(|regarding| regarding.name);
                (of.unwrap_or_default(), event.note.unwrap_or_default())
            })
            .collect();
        let told = |name: &str, word: &str| notes.get(name).is_some_and(|note| note.contains(word));
        if told("hangs", "no end after 1s") && told("panics", "as it was told") {
            Ok(())
        } else {
            Err(format!("{notes:?}"))
        }
    })
    .await;
    // Mended, it goes on.
    let patch = json!({ "spec": { "does": "Work", "turn": 9 } });
    api.patch("hangs", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    becomes(&api, "hangs", "turned", has_turned(9)).await;
}

#[tokio::test]
async fn what_is_refused_rests_until_it_changes_and_who_waits_never_backs_off() {
    let bench = bench("rests").await;
    let (api, seen) = (bench.api::<Gadget>(), Arc::<Seen>::default());
    for (name, does) in [("refused", Does::Refuse), ("waits", Does::Wait), ("fails", Does::Fail)] {
        create(&api, name, does).await;
    }
    let _running = run(&bench, &seen, |_| {});
    // While one that fails is tried again and again, ever more seldom.
    eventually("the failing one was tried five times", async || {
        let runs = seen.runs("fails");
        if runs >= 5 { Ok(()) } else { Err(runs.to_string()) }
    })
    .await;
    assert_eq!((seen.runs("refused"), seen.runs("waits")), (1, 1));
    turn(&api, "refused", 1).await;
    turn(&api, "waits", 1).await;
    eventually("a change wakes both", async || {
        let runs = (seen.runs("refused"), seen.runs("waits"));
        if runs == (2, 2) { Ok(()) } else { Err(format!("{runs:?}")) }
    })
    .await;
}

#[tokio::test]
async fn selector_namespaces_period_and_bound_of_a_native_kind_are_as_watches_yaml_says() {
    let bench = bench("watched").await;
    let second = bench.cluster.namespace("watched-too").await.unwrap();
    let third = bench.cluster.namespace("unwatched").await.unwrap();
    let seen = Arc::<Seen>::default();
    let create = async |namespace: &str, name: &str, mine: bool| {
        let mut gadget = Gadget::new(name, GadgetSpec { does: Does::Dawdle, turn: 0 });
        gadget.labels_mut().insert("mine".to_owned(), mine.to_string());
        let api: Api<Gadget> = Api::namespaced(bench.client(), namespace);
        api.create(&PostParams::default(), &gadget).await.unwrap();
    };
    create(&bench.namespace, "a", true).await;
    create(&bench.namespace, "of-others", false).await;
    create(&second, "b", true).await;
    create(&third, "elsewhere", true).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("watches.yaml");
    let entry = "- group: test.catamaran.dev\n  version: v1\n  kind: Gadget\n  reconciler: Gadgets\n  \
                 selector: { matchLabels: { mine: 'true' } }\n  reconcilePeriod: 500ms\n  \
                 maxConcurrentReconciles: 1\n";
    std::fs::write(&file, entry).unwrap();
    let watched = format!("{},{}", bench.namespace.name(), second.name());
    let reconciler = Gadgets(seen.clone());
    let _running = bench.run(|mut options| {
        options.watches_file = Some(file);
        options.watch_namespace = watched;
        options.max_concurrent_reconciles = Some(8);
        Manager::new(OPERATOR, options).reconciler("Gadgets", reconciler)
    });
    let run_again = async |names: &[&str]| {
        let before: Vec<usize> = names.iter().map(|name| seen.runs(name)).collect();
        eventually("the period comes round", async || {
            let runs: Vec<usize> = names.iter().map(|name| seen.runs(name)).collect();
            let all = runs.iter().zip(&before).all(|(now, before)| now >= &(before + 2));
            if all { Ok(()) } else { Err(format!("{runs:?}")) }
        })
        .await;
    };
    run_again(&["a", "b"]).await;
    create(&bench.namespace, "c", true).await;
    create(&second, "d", true).await;
    run_again(&["a", "b", "c", "d"]).await;
    assert_eq!((seen.runs("of-others"), seen.runs("elsewhere")), (0, 0));
    assert_eq!(seen.most.load(Ordering::SeqCst), 1, "at once");
    // It is ours from now on, and another one is not any more.
    bench.kubectl(&["label", "gadget", "of-others", "mine=true", "--overwrite"]);
    run_again(&["of-others"]).await;
    bench.kubectl(&["label", "gadget", "a", "mine=false", "--overwrite"]);
    run_again(&["c"]).await;
    let runs = seen.runs("a");
    run_again(&["b", "c", "d", "of-others"]).await;
    assert!(seen.runs("a") <= runs + 1, "it went on");
}

#[tokio::test]
async fn a_cap_on_requests_is_kept() {
    let bench = bench("capped").await;
    let (api, seen) = (bench.api::<Gadget>(), Arc::<Seen>::default());
    let names: Vec<String> = (0..12).map(|number| format!("g{number}")).collect();
    join_all(names.iter().map(|name| create(&api, name, Does::Work))).await;
    let begun = Instant::now();
    let _running = run(&bench, &seen, |options| {
        options.limits.kube_api_qps = 5.0;
        options.limits.kube_api_burst = 2;
    });
    let ready = |gadget: &Gadget| gadget.status.is_some();
    join_all(names.iter().map(|name| becomes(&api, name, "reconciled", ready))).await;
    // Each took a write of its status, at least.
    assert!(begun.elapsed() >= Duration::from_secs(2), "{:?}", begun.elapsed());
}

// One thread computes without end, others go on.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_reconcile_that_never_yields_turns_healthz() {
    let bench = bench("wedged").await;
    let (api, seen) = (bench.api::<Gadget>(), Arc::<Seen>::default());
    create(&api, "works", Does::Work).await;
    let probes = Probes::free();
    let _running = run(&bench, &seen, |options| {
        options.limits.reconcile_timeout = Duration::from_secs(1);
        options.health_probe_bind_address = Some(probes.address().to_owned());
    });
    let healthz = async |healthy: bool| {
        probes.answers("/healthz", if healthy { 200 } else { 503 }).await;
    };
    healthz(true).await;
    create(&api, "spins", Does::Spin).await;
    healthz(false).await;
    create(&api, "late", Does::Work).await;
    becomes(&api, "late", "reconciled", |gadget| gadget.status.is_some()).await;
    seen.released.store(true, Ordering::SeqCst);
    healthz(true).await;
}

/// A watches.yaml with so many kinds that are not there, each of a group of its own.
fn missing(count: usize) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let chart = folder.path().join("empty");
    std::fs::create_dir_all(chart.join("templates")).unwrap();
    std::fs::write(chart.join("Chart.yaml"), "apiVersion: v2\nname: empty\nversion: 1.0.0\n")
        .unwrap();
    let chart = chart.display();
    let entry = |number: usize| {
        let group = format!("missing{number}.catamaran.dev");
        format!("- group: {group}\n  version: v1\n  kind: Missing\n  chart: {chart}\n")
    };
    let entries: Vec<String> = (0..count).map(entry).collect();
    let entries = entries.concat();
    std::fs::write(folder.path().join("watches.yaml"), entries).unwrap();
    folder
}

// kubectl blocks a thread.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kinds_that_are_missing_delay_no_other_and_start_when_they_come() {
    let bench = bench("missing").await;
    let (api, seen) = (bench.api::<Gadget>(), Arc::<Seen>::default());
    let names: Vec<String> = (0..20).map(|number| format!("g{number}")).collect();
    join_all(names.iter().map(|name| create(&api, name, Does::Work))).await;
    let folder = missing(20);
    let crds: Api<k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition> =
        Api::all(bench.client());
    let crd = "missings.missing7.catamaran.dev";
    let _ = crds.delete(crd, &DeleteParams::default()).await;
    let audit = bench.cluster.audit().of_agent("many/");
    let start = audit.mark().unwrap();
    let running = {
        let seen = seen.clone();
        bench.run(|mut options| {
            options.watches_file = Some(folder.path().join("watches.yaml"));
            Manager::new("many", options).reconciler("Gadgets", Gadgets(seen))
        })
    };
    let took = latency(&api, &seen, &names, 10).await;
    eprintln!("beside 20 missing kinds: p50, p95, p99 in ms: {took:?}");
    let asked = audit.since(start).unwrap();
    for number in 0..20 {
        let path = format!("/apis/missing{number}.catamaran.dev/v1");
        let count = asked.iter().filter(|request| request.uri.starts_with(&path)).count();
        assert!(count <= 1, "{path} was asked for {count} times");
    }

    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": crd },
        "spec": {
            "group": "missing7.catamaran.dev", "scope": "Namespaced",
            "names": { "kind": "Missing", "plural": "missings", "singular": "missing" },
            "versions": [{ "name": "v1", "served": true, "storage": true,
                "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } } }],
        },
    });
    crds.create(&PostParams::default(), &serde_json::from_value(definition.clone()).unwrap())
        .await
        .unwrap();
    let object = json!({ "apiVersion": "missing7.catamaran.dev/v1", "kind": "Missing",
        "metadata": { "name": "here", "namespace": bench.namespace.name() }, "spec": {} });
    let file = folder.path().join("here.json");
    std::fs::write(&file, object.to_string()).unwrap();
    let file = file.to_str().unwrap();
    let serves = async || {
        let begun = Instant::now();
        bench.kubectl(&["wait", ESTABLISHED, "--timeout=30s", &format!("crd/{crd}")]);
        bench.kubectl(&["apply", "-f", file]);
        bench.kubectl(&[
            "wait",
            "--for=condition=Deployed",
            "--timeout=30s",
            "missings.missing7.catamaran.dev/here",
        ]);
        eprintln!("served {:?} after its definition came", begun.elapsed());
    };
    serves().await;

    // Gone with its resources, and here again.
    bench.kubectl(&["delete", "crd", crd, "--timeout=30s"]);
    crds.create(&PostParams::default(), &serde_json::from_value(definition).unwrap())
        .await
        .unwrap();
    serves().await;
    running.stop().await;
    crds.delete(crd, &DeleteParams::default()).await.unwrap();
}
