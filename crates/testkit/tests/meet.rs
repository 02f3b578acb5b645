//! Native and chart kinds meet: a Mall (native) makes a Shop (chart), which renders a Stall (native),
//! which makes a ConfigMap, and is cleaned up by code.

#![allow(clippy::unwrap_used, missing_docs)] // a test, and helpers of tests, fail as tests do
#![allow(clippy::large_futures, clippy::needless_pass_by_value)] // nobody counts bytes here

mod shop;

use std::collections::BTreeMap;

use catamaran_operator::native::{
    Action, ComponentProgress, Context, Error, Reconciler, Status, Watches,
};
use catamaran_operator::{Manager, Options};
use catamaran_testkit::{Running, becomes, eventually, vanishes};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{DeleteParams, PostParams, PropagationPolicy};
use kube::{Api, CustomResource, CustomResourceExt, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use shop::{MIRROR, OPERATOR, Stage, field};

type MallStatus = Status<Nothing>;
type StallStatus = Status<Nothing>;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Nothing {}

#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "code.catamaran.dev",
    version = "v1",
    kind = "Mall",
    namespaced,
    status = "MallStatus"
)]
pub struct MallSpec {
    goods: String,
}

#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "code.catamaran.dev",
    version = "v1",
    kind = "Stall",
    namespaced,
    status = "StallStatus"
)]
pub struct StallSpec {
    goods: String,
}

/// The chart kind, as a native one sees it.
#[derive(CustomResource, Clone, Debug, Serialize, Deserialize)]
#[kube(
    group = "code.catamaran.dev",
    version = "v1",
    kind = "Shop",
    namespaced,
    schema = "disabled"
)]
pub struct ShopSpec {
    objects: Vec<Value>,
}

struct Malls;

impl Reconciler for Malls {
    type Object = Mall;

    fn watches(&self, watches: &mut Watches) {
        watches.owns::<Shop>();
    }

    async fn reconcile(&self, ctx: &Context<'_, Mall>) -> Result<Action, Error> {
        let stall = json!({ "apiVersion": "code.catamaran.dev/v1", "kind": "Stall",
            "metadata": { "name": ctx.name_any() }, "spec": { "goods": ctx.spec.goods } });
        let shop = Shop::new(&ctx.name_any(), ShopSpec { objects: vec![stall] });
        ctx.component("Shop", ctx.apply(shop)).await;
        ctx.finish()
    }
}

struct Stalls;

impl Reconciler for Stalls {
    type Object = Stall;

    fn watches(&self, watches: &mut Watches) {
        watches.owns::<ConfigMap>();
    }

    async fn reconcile(&self, ctx: &Context<'_, Stall>) -> Result<Action, Error> {
        let map = ConfigMap {
            metadata: ObjectMeta { name: Some(ctx.name_any()), ..ObjectMeta::default() },
            data: Some(BTreeMap::from([("goods".to_owned(), ctx.spec.goods.clone())])),
            ..ConfigMap::default()
        };
        ctx.component("ConfigMap", ctx.apply(map)).await;
        ctx.finish()
    }

    async fn cleanup(&self, ctx: &Context<'_, Stall>) -> Result<ComponentProgress, Error> {
        ctx.event("Closed", "the stall is closed");
        Ok(ComponentProgress::Ready)
    }
}

struct Town {
    stage: Stage,
    malls: Api<Mall>,
    stalls: Api<Stall>,
    maps: Api<ConfigMap>,
}

impl Town {
    async fn new(name: &str) -> Self {
        let stage = Stage::beside(name, MIRROR, &[Mall::crd(), Stall::crd()]).await;
        let (malls, stalls, maps) = (stage.bench.api(), stage.bench.api(), stage.bench.api());
        Self { stage, malls, stalls, maps }
    }

    /// Waits until the garbage collector knows the kinds, which takes it up to half a minute: until then
    /// it does not see what it would have to orphan.
    async fn is_known_to_the_collector(&self) {
        let owner =
            json!([{ "apiVersion": "v1", "kind": "ConfigMap", "name": "never", "uid": "no-such" }]);
        let probe = json!({ "metadata": { "name": "probe", "ownerReferences": owner },
            "spec": { "goods": "", "objects": [] } });
        let of = |kind: &str| {
            let mut probe = probe.clone();
            probe["apiVersion"] = "code.catamaran.dev/v1".into();
            probe["kind"] = kind.into();
            probe
        };
        let shop = serde_json::from_value(of("Shop")).unwrap();
        self.stage.shops.create(&PostParams::default(), &shop).await.unwrap();
        let stall = serde_json::from_value(of("Stall")).unwrap();
        self.stalls.create(&PostParams::default(), &stall).await.unwrap();
        vanishes(&self.stage.shops, "probe").await;
        vanishes(&self.stalls, "probe").await;
    }

    fn operator(&self) -> Running {
        let kind = self.stage.kind();
        self.stage.bench.run(|options: Options| {
            Manager::native(OPERATOR, options)
                .reconciler("Mall", Malls)
                .reconciler("Stall", Stalls)
                .chart(kind)
        })
    }

    async fn build(&self, name: &str) {
        let mall = Mall::new(name, MallSpec { goods: "tea".to_owned() });
        self.malls.create(&PostParams::default(), &mall).await.unwrap();
        let is_ready = |mall: &Mall| {
            let conditions = mall.status.iter().flat_map(|status| &status.conditions);
            conditions.into_iter().any(|found| found.type_ == "Ready" && found.status == "True")
        };
        becomes(&self.malls, name, "Ready through and through", is_ready).await;
        self.sells(name, "tea").await;
    }

    async fn sells(&self, name: &str, goods: &str) {
        let what = format!("sells {goods}");
        let sells = |map: &ConfigMap| map.data.as_ref().is_some_and(|data| data["goods"] == goods);
        becomes(&self.maps, name, &what, sells).await;
    }

    async fn tear_down(&self, name: &str, how: PropagationPolicy) {
        let params = DeleteParams { propagation_policy: Some(how), ..DeleteParams::default() };
        self.malls.delete(name, &params).await.unwrap();
        vanishes(&self.malls, name).await;
    }

    async fn is_gone(&self, name: &str) {
        vanishes(&self.stage.shops, name).await;
        vanishes(&self.stalls, name).await;
        vanishes(&self.maps, name).await;
        assert_eq!(self.stage.revisions(name).await, [""; 0], "no record is left");
    }
}

#[tokio::test]
async fn a_native_kind_makes_a_chart_kind_that_makes_a_native_one() {
    let town = Town::new("meet").await;
    let _operator = town.operator();
    town.build("tea").await;
    // A change goes all the way down, and what somebody does half-way is undone.
    let patch = kube::api::Patch::Merge(json!({ "spec": { "goods": "salt" } }));
    town.malls.patch("tea", &kube::api::PatchParams::default(), &patch).await.unwrap();
    town.sells("tea", "salt").await;
    let patch = kube::api::Patch::Merge(json!({ "spec": { "goods": "sand" } }));
    town.stalls.patch("tea", &kube::api::PatchParams::default(), &patch).await.unwrap();
    becomes(&town.stalls, "tea", "put back", |stall| stall.spec.goods == "salt").await;
    town.sells("tea", "salt").await;
    town.stage.shops.delete("tea", &DeleteParams::default()).await.unwrap();
    eventually("the shop is made anew, and all below it", async || {
        let shop = town.stage.shops.get_opt("tea").await.map_err(|error| error.to_string())?;
        let shop = shop.filter(|shop| shop.metadata.deletion_timestamp.is_none());
        let shop = shop.ok_or("it is not there")?;
        let ready = field(&shop, "Ready", "status");
        if ready == "True" { Ok(()) } else { Err(format!("{shop:?}")) }
    })
    .await;
    town.sells("tea", "salt").await;
}

#[tokio::test]
async fn a_deletion_cascades_in_every_mode_with_the_operator_up_and_down() {
    let town = Town::new("cascade").await;
    let mut operator = town.operator();
    for how in [PropagationPolicy::Background, PropagationPolicy::Foreground] {
        town.build("up").await;
        town.tear_down("up", how.clone()).await;
        town.is_gone("up").await;
        // While it is down, the deletion waits for it and no longer.
        town.build("down").await;
        operator.stop().await;
        let params = DeleteParams { propagation_policy: Some(how), ..DeleteParams::default() };
        town.malls.delete("down", &params).await.unwrap();
        operator = town.operator();
        vanishes(&town.malls, "down").await;
        town.is_gone("down").await;
    }
}

#[tokio::test]
async fn what_is_orphaned_stays_and_goes_on() {
    let town = Town::new("orphans").await;
    town.is_known_to_the_collector().await;
    let _operator = town.operator();
    town.build("tea").await;
    town.tear_down("tea", PropagationPolicy::Orphan).await;
    // The shop goes on by itself.
    let shop = town.stage.ready("tea").await;
    assert!(shop.owner_references().is_empty());
    let first = town.stalls.get("tea").await.unwrap().uid();
    town.stalls.delete("tea", &DeleteParams::default()).await.unwrap();
    becomes(&town.stalls, "tea", "made anew", |stall| stall.uid() != first).await;
    let second = town.stalls.get("tea").await.unwrap().uid();
    let is_its =
        |map: &ConfigMap| map.owner_references().iter().any(|of| Some(&of.uid) == second.as_ref());
    becomes(&town.maps, "tea", "sold by the new stall", is_its).await;
    town.stage.ready("tea").await;
    // Orphaned in its turn, the release stays, and helm sees it.
    let params = DeleteParams {
        propagation_policy: Some(PropagationPolicy::Orphan),
        ..DeleteParams::default()
    };
    town.stage.shops.delete("tea", &params).await.unwrap();
    vanishes(&town.stage.shops, "tea").await;
    becomes(&town.stalls, "tea", "an orphan", |stall| stall.owner_references().is_empty()).await;
    assert_eq!(town.stage.revisions("tea").await, ["v1 deployed"]);
    town.stage.helm3(&["uninstall", "tea"]);
    town.is_gone("tea").await;
}
