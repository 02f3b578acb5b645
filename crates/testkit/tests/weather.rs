//! What holds while watches are late, break, or are too old: the operator is told of nothing, and yet
//! neither makes too much nor overlooks anything.

#![allow(clippy::unwrap_used)] // helpers of tests fail as tests do

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use catamaran_operator::Manager;
use catamaran_operator::native::{
    Action, ComponentProgress, Context, Error, Only, ReconcileTrigger, Reconciler, Status, Watches,
};
use catamaran_testkit::{Bench, Running, WatchFaults, eventually};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::core::{ObjectMeta, Selector};
use kube::{Api, CustomResource, CustomResourceExt, KubeSchema, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "test.catamaran.dev",
    version = "v1",
    kind = "Crowd",
    namespaced,
    status = "CrowdStatus"
)]
struct CrowdSpec {}

type CrowdStatus = Status<CrowdFields>;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
struct CrowdFields {}

/// Keeps as many ConfigMaps as the test wants.
#[derive(Clone, Default)]
struct Crowds {
    wanted: Arc<AtomicUsize>,
    runs: Arc<AtomicUsize>,
    /// Whether they refer to a Secret.
    refers: Arc<AtomicBool>,
    wake: ReconcileTrigger,
}

impl Reconciler for Crowds {
    type Object = Crowd;

    fn watches(&self, watches: &mut Watches) {
        watches.lists::<ConfigMap>(Only::all().labels("crowd")).triggered_by(&self.wake);
        watches.requires::<Secret>();
    }

    async fn reconcile(&self, ctx: &Context<'_, Crowd>) -> Result<Action, Error> {
        ctx.component("Members", self.members(ctx)).await;
        if self.refers.load(Ordering::SeqCst) {
            let secret = ctx.reference::<Secret>(None, "needed");
            ctx.component("Secret", async {
                secret.await?.ready().map(|_| ComponentProgress::Ready)
            })
            .await;
        }
        self.runs.fetch_add(1, Ordering::SeqCst);
        ctx.finish()
    }
}

impl Crowds {
    async fn members(&self, ctx: &Context<'_, Crowd>) -> Result<ComponentProgress, Error> {
        let label = [("crowd".to_owned(), ctx.name_any())];
        let mut members = ctx.claim::<ConfigMap>(&Selector::from_iter(label.clone())).await?;
        let wanted = self.wanted.load(Ordering::SeqCst);
        members.sort_by_key(|member| member.name_any());
        for surplus in members.drain(wanted.min(members.len())..) {
            ctx.delete(&*surplus).await?;
        }
        let labels = Some(label.into_iter().collect());
        let metadata = ObjectMeta { labels, ..ObjectMeta::default() };
        let member = || ConfigMap { metadata: metadata.clone(), ..ConfigMap::default() };
        ctx.create_missing("member-", wanted - members.len(), member).await?;
        Ok(ComponentProgress::Ready)
    }
}

struct Test {
    bench: Bench,
    weather: WatchFaults,
    crowds: Crowds,
    maps: Api<ConfigMap>,
    _operator: Running,
}

impl Test {
    /// A crowd of that many, which the operator has seen.
    async fn new(name: &str, members: usize) -> Self {
        let bench = Bench::new(name, &[Crowd::crd()]).await;
        let weather = WatchFaults::new(&bench.cluster).await;
        let crowds = Crowds::default();
        crowds.wanted.store(members, Ordering::SeqCst);
        let (reconciler, kubeconfig) = (crowds.clone(), weather.kubeconfig().to_owned());
        let operator = bench.run(|mut options| {
            options.kubeconfig = Some(kubeconfig);
            Manager::native("crowds", options).reconciler("Crowd", reconciler)
        });
        let api: Api<Crowd> = bench.api();
        api.create(&PostParams::default(), &Crowd::new("c", CrowdSpec {})).await.unwrap();
        let test = Self { maps: bench.api(), bench, weather, crowds, _operator: operator };
        test.counts(members).await;
        test
    }

    async fn names(&self) -> Vec<String> {
        let maps = self.maps.list(&ListParams::default().labels("crowd")).await.unwrap();
        maps.iter().map(ResourceExt::name_any).collect()
    }

    async fn counts(&self, members: usize) {
        eventually("the members are as many as wanted", async || match self.names().await {
            names if names.len() == members => Ok(()),
            names => Err(format!("{names:?}")),
        })
        .await;
    }

    /// Has the crowd reconciled, whatever watches tell.
    async fn reconciles(&self) {
        let before = self.crowds.runs.load(Ordering::SeqCst);
        self.crowds.wake.resource(self.bench.namespace.name(), "c", "the test says so");
        eventually("it is reconciled", async || {
            let runs = self.crowds.runs.load(Ordering::SeqCst);
            if runs > before { Ok(()) } else { Err(runs.to_string()) }
        })
        .await;
    }
}

#[tokio::test]
async fn no_name_is_made_twice_while_the_cache_is_stale() {
    let test = Test::new("stale", 2).await;
    test.weather.hold();
    for wanted in [5, 5, 3, 3, 6, 6] {
        test.crowds.wanted.store(wanted, Ordering::SeqCst);
        test.reconciles().await;
        test.counts(wanted).await; // what ended may have begun before
    }
    test.weather.release();
    test.counts(6).await;
    for _ in 0..3 {
        test.reconciles().await;
        assert_eq!(test.names().await.len(), 6);
    }
}

#[tokio::test]
async fn what_is_deleted_while_watches_are_broken_is_made_anew() {
    let test = Test::new("relist", 3).await;
    for answers in [&[410, 410][..], &[500, 410, 500], &[]] {
        // Nobody ever tells of this deletion: the watch that would have breaks before it does.
        test.weather.hold();
        let victim = test.names().await.remove(0);
        test.maps.delete(&victim, &DeleteParams::default()).await.unwrap();
        test.weather.cut(answers);
        test.weather.release();
        test.counts(3).await;
    }
    // A storm: as fast as watches break, members go.
    for _ in 0..5 {
        let victim = test.names().await.pop();
        if let Some(victim) = victim {
            test.maps.delete(&victim, &DeleteParams::default()).await.unwrap();
        }
        test.weather.cut(&[410]);
    }
    test.counts(3).await;
    let watches = test.weather.asked().iter().filter(|asked| asked.contains("watch=true")).count();
    assert!(watches < 60, "{watches} watches were opened");
}

#[tokio::test]
async fn what_is_required_is_watched_from_the_start_and_by_one_watch() {
    let test = Test::new("required", 1).await;
    let is_watch = |asked: &&String| asked.contains("/secrets?") && asked.contains("watch=true");
    let asked = eventually("Secrets are watched", async || {
        let asked = test.weather.asked();
        if asked.iter().any(|asked| is_watch(&asked)) {
            Ok(asked)
        } else {
            Err(format!("{asked:?}"))
        }
    })
    .await;
    assert_eq!(asked.iter().filter(is_watch).count(), 1);
    test.crowds.refers.store(true, Ordering::SeqCst);
    test.reconciles().await;
    let secret = json!({ "metadata": { "name": "needed" } });
    let runs = test.crowds.runs.load(Ordering::SeqCst);
    let secrets: Api<Secret> = test.bench.api();
    secrets.create(&PostParams::default(), &serde_json::from_value(secret).unwrap()).await.unwrap();
    eventually("it is woken", async || {
        let now = test.crowds.runs.load(Ordering::SeqCst);
        if now > runs { Ok(()) } else { Err(now.to_string()) }
    })
    .await;
    assert_eq!(test.weather.asked().iter().filter(is_watch).count(), 0, "no other watch");
}

#[tokio::test]
async fn names_that_others_took_are_passed_over_and_left_alone() {
    let test = Test::new("taken", 2).await;
    let taken = test.names().await;
    let wants = async |members: usize| {
        test.crowds.wanted.store(members, Ordering::SeqCst);
        test.reconciles().await;
        test.counts(members).await;
    };
    wants(0).await;
    for name in &taken {
        let theirs = json!({ "metadata": { "name": name }, "data": { "theirs": "yes" } });
        let theirs = serde_json::from_value(theirs).unwrap();
        test.maps.create(&PostParams::default(), &theirs).await.unwrap();
    }
    wants(3).await;
    for name in &taken {
        let theirs = test.maps.get(name).await.unwrap();
        assert!(theirs.owner_references().is_empty() && theirs.data.is_some(), "{theirs:?}");
    }
    let made = test.names().await;
    assert!(made.iter().all(|name| !taken.contains(name)), "{made:?} {taken:?}");
}
