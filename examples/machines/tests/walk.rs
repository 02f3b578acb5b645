//! The lesson's walk, on a real API server. The clock is in the test's hand: nothing here takes 5 s.

#![allow(clippy::unwrap_used)] // helpers of tests fail as tests do

use std::time::Duration;

use catamaran_operator::Manager;
use catamaran_testkit::{Bench, HeldClock, Running, becomes, eventually, vanishes};
use kube::api::{DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use machines::api::{Machine, MachineSpec, Position, Switch, SwitchSpec, definitions};
use machines::{Machines, PATIENCE};
use serde_json::{Value, json};

const MOMENT: Duration = Duration::from_millis(1);

/// A namespace with the operator and the clock it lives by.
struct Walk {
    bench: Bench,
    clock: HeldClock,
    machines: Api<Machine>,
    switches: Api<Switch>,
    _operator: Running,
}

impl Walk {
    async fn start(name: &str) -> Self {
        let bench = Bench::new(name, &definitions()).await;
        let clock = HeldClock::default();
        let operator = bench.run(|options| {
            Manager::native("machines", options)
                .clock(clock.clock())
                .reconciler("Machine", Machines)
        });
        let (machines, switches) = (bench.api(), bench.api());
        Self { bench, clock, machines, switches, _operator: operator }
    }

    async fn machine(&self, name: &str, spec: Value) {
        let spec: MachineSpec = serde_json::from_value(spec).unwrap();
        self.machines.create(&PostParams::default(), &Machine::new(name, spec)).await.unwrap();
    }

    async fn patch_machine(&self, name: &str, patch: Value) {
        self.machines.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    async fn patch_switch(&self, name: &str, patch: Value) {
        self.switches.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    /// Waits for `status.positions`.
    async fn positions(&self, machine: &str, wanted: &str) {
        becomes(&self.machines, machine, wanted, |machine| positions(machine) == wanted).await;
    }

    /// The names of the switches with this label, sorted.
    async fn names(&self, machine: &str) -> Vec<String> {
        let labels = ListParams::default().labels(&format!("machine={machine}"));
        let switches = self.switches.list(&labels).await.unwrap();
        switches.iter().map(ResourceExt::name_any).collect()
    }

    /// Waits until that many switches have been seen up.
    async fn seen(&self, count: usize) {
        eventually("switches are seen", async || {
            let all = self.switches.list(&ListParams::default()).await.unwrap();
            let seen =
                all.iter().filter(|s| s.status.as_ref().is_some_and(|s| s.seen_at.is_some()));
            match seen.count() {
                seen if seen == count => Ok(()),
                seen => Err(format!("{seen} are seen")),
            }
        })
        .await;
    }

    async fn quiet(&self) -> catamaran_testkit::Mark {
        self.bench.quiet("machines", Duration::from_secs(1)).await
    }
}

fn positions(machine: &Machine) -> &str {
    let status = machine.status.as_ref();
    status.and_then(|status| status.fields.positions.as_deref()).unwrap_or_default()
}

fn position(machine: &Machine) -> &str {
    machine.spec.switch_position.as_deref().unwrap_or_default()
}

#[tokio::test]
async fn stage_one_moves_the_switch_down_after_five_seconds() {
    let walk = Walk::start("one").await;
    walk.bench.kubectl(&["apply", "-f", sample("useless_v1alpha1_machine_stage_one.yaml")]);
    let seen =
        |machine: &Machine| machine.status.as_ref().is_some_and(|s| s.fields.seen_at.is_some());
    becomes(&walk.machines, "machine-1", "seen", seen).await;
    // Others are served while it waits: nobody sleeps.
    walk.machine("machine-2", json!({ "switchPosition": "up" })).await;
    becomes(&walk.machines, "machine-2", "seen", seen).await;

    // The status is written before the reconcile says when it is to be run again, by the clock.
    walk.quiet().await;
    walk.clock.advance(PATIENCE.saturating_sub(MOMENT));
    walk.quiet().await;
    assert_eq!(
        position(&walk.machines.get("machine-1").await.unwrap()),
        "up",
        "not a moment early"
    );
    walk.clock.advance(MOMENT);
    for name in ["machine-1", "machine-2"] {
        let down = |machine: &Machine| position(machine) == "down" && !seen(machine);
        becomes(&walk.machines, name, "down", down).await;
    }

    // Once more, and moved back by hand before its time: it is forgotten that it was seen.
    for position in ["up", "down"] {
        walk.patch_machine("machine-1", json!({ "spec": { "switchPosition": position } })).await;
        becomes(&walk.machines, "machine-1", position, |machine| {
            seen(machine) == (position == "up")
        })
        .await;
    }
}

#[tokio::test]
async fn stage_two_makes_switches_and_moves_one_at_a_time() {
    let walk = Walk::start("two").await;
    walk.machine("a", json!({ "switches": 3 })).await;
    walk.machine("b", json!({ "switches": 1 })).await;
    walk.positions("a", "ddd").await;
    walk.positions("b", "d").await;
    let names = walk.names("a").await;
    assert!(names.iter().all(|name| name.starts_with("switch-")), "{names:?}");
    let owned = walk.switches.get(&names[0]).await.unwrap();
    assert_eq!(owned.labels().len(), 1, "the label machine and no other");
    assert_eq!(owned.owner_references()[0].kind, "Machine");

    for name in names.iter().chain(&walk.names("b").await) {
        walk.patch_switch(name, json!({ "spec": { "position": "up" } })).await;
    }
    walk.positions("a", "uuu").await;
    walk.seen(4).await;
    walk.quiet().await;
    // One of each machine per five seconds.
    walk.clock.advance(PATIENCE);
    walk.positions("a", "duu").await;
    walk.positions("b", "d").await;
    walk.quiet().await;
    walk.clock.advance(PATIENCE.saturating_sub(MOMENT));
    let mark = walk.quiet().await;
    walk.positions("a", "duu").await;
    walk.clock.advance(MOMENT);
    walk.positions("a", "ddu").await;
    walk.quiet().await;
    walk.clock.advance(PATIENCE);
    walk.positions("a", "ddd").await;
    walk.seen(0).await;
    walk.quiet().await;
    let asked = walk.bench.requests("machines", mark);
    let patches = asked.iter().filter(|asked| *asked == "patch switches 200").count();
    assert_eq!(patches, 2, "each move is one patch: {asked:?}");

    // What prints: the table of the lesson.
    let table = walk.bench.kubectl(&["get", "machines"]);
    let rows: Vec<Vec<&str>> = table.lines().map(|row| row.split_whitespace().collect()).collect();
    assert_eq!(rows, [["NAME", "SWITCHES", "POSITIONS"], ["a", "3", "ddd"], ["b", "1", "d"]]);
    let table = walk.bench.kubectl(&["get", "switches"]);
    assert!(table.starts_with("NAME") && table.contains("POSITION") && table.contains("SEEN"));

    // Deleted with their machine.
    walk.machines.delete("b", &DeleteParams::default()).await.unwrap();
    vanishes(&walk.machines, "b").await;
    eventually("the switch of b is gone", async || match walk.names("b").await {
        names if names.is_empty() => Ok(()),
        names => Err(names.join(", ")),
    })
    .await;
}

#[tokio::test]
async fn switches_are_scaled_and_relabelled_and_never_too_many() {
    let walk = Walk::start("scaled").await;
    walk.machine("a", json!({ "switches": 2 })).await;
    walk.machine("b", json!({ "switches": 1 })).await;
    walk.positions("a", "dd").await;
    walk.positions("b", "d").await;

    // One is taken from a and given to b: a makes another, b has one too many, and lets it go.
    let taken = walk.names("a").await.swap_remove(0);
    walk.patch_switch(&taken, json!({ "metadata": { "labels": { "machine": "b" } } })).await;
    let dealt = async |machine: &str, count: usize| {
        eventually("switches are dealt out", async || match walk.names(machine).await {
            names if names.len() == count && (machine == "b" || !names.contains(&taken)) => Ok(()),
            names => Err(format!("{machine}: {names:?}")),
        })
        .await;
    };
    dealt("a", 2).await;
    dealt("b", 1).await;
    walk.quiet().await;
    let all = walk.switches.list(&ListParams::default()).await.unwrap();
    let owner = |s: &Switch| s.owner_references().first().map(|owner| owner.name.clone());
    assert!(all.iter().all(|s| owner(s).as_ref() == s.labels().get("machine")), "{all:?}");

    // One that belongs to nobody is adopted, and counts.
    let mut stray = Switch::new("stray", SwitchSpec { position: Position::Up });
    stray.metadata.labels = Some([("machine".to_owned(), "c".to_owned())].into());
    walk.switches.create(&PostParams::default(), &stray).await.unwrap();
    walk.machine("c", json!({ "switches": 2 })).await;
    becomes(&walk.machines, "c", "du", |machine| ["du", "ud"].contains(&positions(machine))).await;
    assert_eq!(walk.switches.get("stray").await.unwrap().owner_references()[0].name, "c");
    // One that loses its label is let go, and stays.
    walk.patch_switch("stray", json!({ "metadata": { "labels": { "machine": null } } })).await;
    becomes(&walk.switches, "stray", "free", |s| s.owner_references().is_empty()).await;
    walk.positions("c", "dd").await;

    walk.bench.kubectl(&["scale", "machine", "a", "--replicas=5"]);
    walk.positions("a", "ddddd").await;
    walk.patch_machine("a", json!({ "spec": { "switches": 1 } })).await;
    walk.positions("a", "d").await;
    assert_eq!(walk.names("a").await.len(), 1);
    // Deleted by hand: made again.
    walk.switches
        .delete_collection(&DeleteParams::default(), &ListParams::default())
        .await
        .unwrap();
    for (machine, count) in [("a", 1), ("b", 1), ("c", 2)] {
        eventually("made again", async || match walk.names(machine).await {
            names if names.len() == count => Ok(()),
            names => Err(format!("{machine}: {names:?}")),
        })
        .await;
    }
    walk.quiet().await;
    let all = walk.switches.list(&ListParams::default()).await.unwrap();
    assert_eq!(all.items.len(), 4, "never too many");
}

#[tokio::test]
async fn a_selector_stands_in_for_the_label() {
    let walk = Walk::start("selector").await;
    let selector = json!({ "matchLabels": { "room": "kitchen" } });
    walk.machine("a", json!({ "switches": 2, "selector": selector })).await;
    walk.positions("a", "dd").await;
    let kitchen = ListParams::default().labels("room=kitchen");
    assert_eq!(walk.switches.list(&kitchen).await.unwrap().items.len(), 2);

    let unfit = json!({ "matchExpressions": [{ "key": "room", "operator": "Exists" }] });
    walk.machine("b", json!({ "switches": 1, "selector": unfit })).await;
    let told = |machine: &Machine| {
        let conditions = machine.status.iter().flat_map(|status| &status.conditions);
        conditions.clone().any(|condition| condition.message.contains("does not select a switch"))
    };
    becomes(&walk.machines, "b", "refused", told).await;
}

#[tokio::test]
async fn a_clock_that_is_set_stops_no_machine() {
    let walk = Walk::start("clock").await;
    let hour = Duration::from_hours(1);
    let now = || walk.clock.clock().now();
    walk.machine("one", json!({ "switchPosition": "down" })).await;
    walk.machine("two", json!({ "switches": 1 })).await;
    walk.positions("two", "d").await;
    let switch = walk.names("two").await.remove(0);
    let seen =
        |machine: &Machine| machine.status.as_ref().is_some_and(|s| s.fields.seen_at.is_some());
    for forward in [false, true] {
        walk.patch_machine("one", json!({ "spec": { "switchPosition": "up" } })).await;
        walk.patch_switch(&switch, json!({ "spec": { "position": "up" } })).await;
        becomes(&walk.machines, "one", "seen", seen).await;
        walk.seen(1).await;
        walk.quiet().await;
        walk.clock.set(if forward { now() + hour } else { now() - hour });
        // They were asked to look again in five seconds that passed, whatever the clock shows; set back
        // it may take five more.
        for _ in 0..2 {
            walk.clock.advance(PATIENCE);
            walk.quiet().await;
        }
        let down = |machine: &Machine| position(machine) == "down" && !seen(machine);
        becomes(&walk.machines, "one", "down", down).await;
        walk.positions("two", "d").await;
    }
}

#[tokio::test]
async fn the_api_server_refuses_what_is_no_machine() {
    let bench = Bench::new("refused", &definitions()).await;
    let machines: Api<Machine> = bench.api();
    for spec in
        [json!({ "switches": 0 }), json!({}), json!({ "switches": 1, "switchPosition": "up" })]
    {
        let spec: MachineSpec = serde_json::from_value(spec).unwrap();
        let created = machines.create(&PostParams::default(), &Machine::new("m", spec)).await;
        assert!(matches!(created, Err(kube::Error::Api(status)) if status.code == 422));
    }
    let switch = json!({ "apiVersion": "useless.container.training/v1alpha1", "kind": "Switch",
        "metadata": ObjectMeta { name: Some("s".to_owned()), ..ObjectMeta::default() },
        "spec": { "position": "sideways" } });
    let switches: Api<Switch> = bench.api();
    let created = switches.patch("s", &PatchParams::apply("test"), &Patch::Apply(switch)).await;
    assert!(matches!(created, Err(kube::Error::Api(status)) if status.code == 422));
    let explained = bench.kubectl(&["explain", "machine.spec.switches"]);
    assert!(explained.contains("how many switches the machine shall have"), "{explained}");
}

fn sample(file: &str) -> &'static str {
    let path = format!("{}/config/samples/{file}", env!("CARGO_MANIFEST_DIR"));
    Box::leak(path.into_boxed_str())
}
