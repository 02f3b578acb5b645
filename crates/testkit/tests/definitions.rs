//! What becomes of a native kind whose definition changes under a running operator.

#![allow(clippy::unwrap_used)] // helpers of tests fail as tests do
#![allow(clippy::large_futures)] // nobody counts bytes here

use std::time::Duration;

use catamaran_operator::Manager;
use catamaran_operator::native::{Action, Context, Error, Reconciler, Status, Watches};
use catamaran_testkit::{Bench, Running, WatchFaults, becomes, eventually, vanishes};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion,
};
use kube::api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::ObjectMeta;
use kube::{Api, CustomResource, CustomResourceExt, KubeSchema, ResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "volatile.catamaran.dev",
    version = "v1",
    kind = "Gas",
    plural = "gases",
    namespaced,
    status = "GasStatus"
)]
struct GasSpec {
    #[serde(default)]
    maps: Vec<String>,
}

type GasStatus = Status<GasFields>;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
struct GasFields {}

struct Gases;

impl Reconciler for Gases {
    type Object = Gas;

    fn watches(&self, watches: &mut Watches) {
        watches.owns::<ConfigMap>();
    }

    async fn reconcile(&self, ctx: &Context<'_, Gas>) -> Result<Action, Error> {
        for name in &ctx.spec.maps {
            let metadata = ObjectMeta { name: Some(name.clone()), ..ObjectMeta::default() };
            ctx.component("Map", ctx.apply(ConfigMap { metadata, ..ConfigMap::default() })).await;
        }
        ctx.component("Prune", ctx.prune::<ConfigMap>()).await;
        ctx.finish()
    }
}

fn is_ready(gas: &Gas) -> bool {
    let conditions = gas.status.iter().flat_map(|status| &status.conditions);
    conditions.clone().any(|of| of.type_ == "Ready" && of.status == "True")
}

async fn gas(bench: &Bench, name: &str, maps: &[&str]) {
    let gas = Gas::new(name, GasSpec { maps: maps.iter().map(|map| (*map).to_owned()).collect() });
    bench.api::<Gas>().create(&PostParams::default(), &gas).await.unwrap();
}

#[tokio::test]
async fn taken_away_and_made_again_it_is_served_again_and_costs_next_to_nothing_meanwhile() {
    let crd = Gas::crd();
    let bench = Bench::new("volatile", std::slice::from_ref(&crd)).await;
    let crds: Api<CustomResourceDefinition> = Api::all(bench.client());
    let weather = WatchFaults::new(&bench.cluster).await;
    let _operator: Running = bench.run(|mut options| {
        options.kubeconfig = Some(weather.kubeconfig().to_owned());
        options.reconcile_period = Duration::from_millis(500);
        Manager::native("gases", options).reconciler("Gas", Gases)
    });
    let (gases, maps): (Api<Gas>, Api<ConfigMap>) = (bench.api(), bench.api());
    for round in 0..2 {
        gas(&bench, "g", &["m"]).await;
        let first = becomes(&gases, "g", "Ready", is_ready).await;
        crds.delete(&crd.name_any(), &DeleteParams::default()).await.unwrap();
        vanishes(&crds, &crd.name_any()).await;
        vanishes(&maps, "m").await; // with its owner
        let of_kind = |asked: &String| asked.contains("/volatile.catamaran.dev/");
        let quiet = Duration::from_secs(3);
        eventually("hardly anything is asked for any more", async || {
            weather.asked();
            tokio::time::sleep(quiet).await; // what is counted is what comes in this time
            let asked: Vec<String> = weather.asked().into_iter().filter(of_kind).collect();
            if asked.len() <= 1 { Ok(()) } else { Err(format!("{asked:?}")) }
        })
        .await;
        Bench::new("volatile", std::slice::from_ref(&crd)).await;
        gas(&bench, "g", &["m", &format!("m{round}")]).await;
        let again = becomes(&gases, "g", "Ready", is_ready).await;
        assert_ne!(first.uid(), again.uid());
        becomes(&maps, &format!("m{round}"), "there", |_| true).await;
        // Its children are watched as before.
        let uid = maps.get("m").await.unwrap().uid();
        maps.delete("m", &DeleteParams::default()).await.unwrap();
        becomes(&maps, "m", "there again", |map| map.uid() != uid).await;
        gases.delete("g", &DeleteParams::default()).await.unwrap();
        vanishes(&gases, "g").await;
    }
}

/// The definition with a second version, which is stored.
fn of_two_versions() -> CustomResourceDefinition {
    let mut crd = Gas::crd();
    let v2 = CustomResourceDefinitionVersion {
        name: "v2".to_owned(),
        storage: true,
        ..crd.spec.versions[0].clone()
    };
    crd.spec.versions[0].storage = false;
    crd.spec.versions.push(v2);
    crd
}

/// Has the first version served, or not, and the operator notice that it is not.
async fn serve(bench: &Bench, served: bool) {
    let crds: Api<CustomResourceDefinition> = Api::all(bench.client());
    let patch = json!([{ "op": "replace", "path": "/spec/versions/0/served", "value": served }]);
    let patch: Patch<()> = Patch::Json(serde_json::from_value(patch).unwrap());
    let audit = bench.cluster.audit().of_agent("gases/");
    let before = audit.mark().unwrap();
    let name = Gas::crd().name_any();
    crds.patch(&name, &PatchParams::default(), &patch).await.unwrap();
    eventually("the operator finds the version missing", async || {
        let asked = audit.since(before).unwrap();
        let missed = asked.iter().any(|asked| asked.resource == "gases" && asked.code == 404);
        if served || missed { Ok(()) } else { Err(format!("{asked:?}")) }
    })
    .await;
}

#[tokio::test]
async fn of_two_versions_it_is_carried_in_one_and_made_and_changed_in_either_and_waited_for() {
    // On a cluster of its own, as the definition is another one.
    let builder = catamaran_localcluster::LocalCluster::builder().nodes(0).audit(true);
    let cluster = builder.start().await.unwrap();
    let bench = Bench::on(cluster, "versions", &[of_two_versions()]).await;
    let _operator = bench.run(|options| Manager::native("gases", options).reconciler("Gas", Gases));
    let (gases, maps): (Api<Gas>, Api<ConfigMap>) = (bench.api(), bench.api());
    let newer = ApiResource {
        version: "v2".to_owned(),
        api_version: "volatile.catamaran.dev/v2".to_owned(),
        ..ApiResource::erase::<Gas>(&())
    };
    let newer: Api<DynamicObject> = Api::namespaced_with(bench.client(), &bench.namespace, &newer);
    let gas = json!({ "apiVersion": "volatile.catamaran.dev/v2", "kind": "Gas",
        "metadata": { "name": "g" }, "spec": { "maps": ["m"] } });
    let gas: DynamicObject = serde_json::from_value(gas).unwrap();
    newer.create(&PostParams::default(), &gas).await.unwrap();
    becomes(&gases, "g", "Ready", is_ready).await;
    // A child of somebody who names the other version as its owner is ours, too.
    let mut owners = maps.get("m").await.unwrap().owner_references().to_vec();
    owners[0].api_version = "volatile.catamaran.dev/v2".to_owned();
    let patch = json!({ "metadata": { "ownerReferences": owners }, "data": { "a": "b" } });
    let params = PatchParams::default();
    maps.patch("m", &params, &Patch::Merge(patch)).await.unwrap();
    let change = Patch::Merge(json!({ "spec": { "maps": ["n"] } }));
    newer.patch("g", &params, &change).await.unwrap();
    becomes(&maps, "n", "there", |_| true).await;
    vanishes(&maps, "m").await;
    becomes(&gases, "g", "Ready", is_ready).await;

    // What comes while its version is not served is done as soon as it is: the resource is what it was,
    // and gives no reason to look at it.
    serve(&bench, false).await;
    maps.delete("n", &DeleteParams::default()).await.unwrap();
    bench.quiet("gases", Duration::from_secs(1)).await;
    serve(&bench, true).await;
    let again = becomes(&maps, "n", "there again", |_| true);
    tokio::time::timeout(Duration::from_secs(40), again).await.expect("no minute is waited");
    newer.delete("g", &DeleteParams::default()).await.unwrap();
    vanishes(&maps, "n").await;
}
