//! Everything deleted by hand while it runs, and the operator killed at random: it converges.

#![allow(clippy::unwrap_used)] // helpers of tests fail as tests do

use std::path::Path;
use std::time::Duration;

use catamaran_testkit::{Bench, Dice, eventually};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use machines::api::{Machine, MachineSpec, Position, Switch, definitions};
use serde_json::json;

const OPERATOR: &str = env!("CARGO_BIN_EXE_machines");
const MACHINES: [(&str, i32); 3] = [("a", 1), ("b", 3), ("c", 5)];

#[tokio::test]
async fn whatever_happens_it_converges() {
    let bench = Bench::new("chaos", &definitions()).await;
    let (machines, switches): (Api<Machine>, Api<Switch>) = (bench.api(), bench.api());
    let mut dice = Dice::new();
    // With the rights that its manifests give, and no more.
    let rights = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/config/rbac"));
    let account = bench.account("machines", rights).await;
    let mut operator = bench.start_as(OPERATOR, &account);
    create(&machines).await;
    for _ in 0..40 {
        let all = switches.list(&ListParams::default()).await.unwrap().items;
        let one = all.get(usize::try_from(dice.throw(9)).unwrap()).map(ResourceExt::name_any);
        let (params, merge) = (PatchParams::default(), |patch| Patch::Merge(patch));
        match (dice.throw(6), one) {
            (0, _) => {
                operator.kill();
                operator = bench.start_as(OPERATOR, &account);
            }
            (1, _) => {
                let everything = (DeleteParams::default(), ListParams::default());
                switches.delete_collection(&everything.0, &everything.1).await.unwrap();
            }
            (2, Some(one)) => _ = switches.delete(&one, &DeleteParams::default()).await,
            (3, Some(one)) => {
                let up = merge(json!({ "spec": { "position": "up" } }));
                _ = switches.patch(&one, &params, &up).await;
            }
            (4, Some(one)) => {
                let (machine, _) = MACHINES[usize::try_from(dice.throw(3)).unwrap()];
                let relabelled = merge(json!({ "metadata": { "labels": { "machine": machine } } }));
                _ = switches.patch(&one, &params, &relabelled).await;
            }
            (5, _) => {
                let (machine, _) = MACHINES[usize::try_from(dice.throw(3)).unwrap()];
                _ = machines.delete(machine, &DeleteParams::default()).await;
            }
            _ => {}
        }
        tokio::time::sleep(Duration::from_millis(dice.throw(150))).await; // pace, not a wait
    }
    create(&machines).await;
    for (machine, count) in MACHINES {
        let labels = ListParams::default().labels(&format!("machine={machine}"));
        eventually(&format!("{machine} has {count} switches, all down"), async || {
            let of = switches.list(&labels).await.unwrap().items;
            let owner = machines.get(machine).await.unwrap().uid();
            let right = of.iter().all(|switch| {
                switch.spec.position == Position::Down
                    && switch.owner_references().iter().any(|o| Some(&o.uid) == owner.as_ref())
            });
            match usize::try_from(count) {
                Ok(count) if right && of.len() == count => Ok(()),
                _ => Err(format!("{of:?}")),
            }
        })
        .await;
    }
    assert!(!operator.log().contains("is forbidden"), "{}", operator.log());
}

async fn create(machines: &Api<Machine>) {
    for (name, count) in MACHINES {
        let spec = MachineSpec { switches: Some(count), ..MachineSpec::default() };
        // That it is there, still or already, is as good.
        let _ = machines.create(&PostParams::default(), &Machine::new(name, spec)).await;
    }
}
