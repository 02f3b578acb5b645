//! Thousands of machines at the start.

#![allow(clippy::unwrap_used)] // helpers of tests fail as tests do

use catamaran_testkit::{Bench, Process, eventually};
use futures::{StreamExt, stream};
use kube::Api;
use kube::api::{ListParams, PostParams};
use machines::api::{Machine, MachineSpec, definitions};

/// How many; `$MANY` are measured by hand, and `$SPEC` of each.
const MANY: usize = 5000;
const SPEC: &str = r#"{ "switchPosition": "down" }"#;
/// KiB.
const ROOM: u64 = 64 * 1024;

/// The most memory that a process has had, in KiB.
fn peak(process: &Process) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// How many machines are ready.
async fn ready(machines: &Api<Machine>) -> Result<usize, kube::Error> {
    let mut params = ListParams::default().limit(500);
    let mut ready = 0;
    loop {
        let page = machines.list(&params).await?;
        let is_ready = |machine: &&Machine| {
            let mut conditions = machine.status.iter().flat_map(|status| &status.conditions);
            conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True")
        };
        ready += page.items.iter().filter(is_ready).count();
        match page.metadata.continue_.filter(|next| !next.is_empty()) {
            Some(next) => params = params.continue_token(&next),
            None => return Ok(ready),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousands_at_the_start_take_little_memory() {
    let bench = Bench::new("many", &definitions()).await;
    let machines: Api<Machine> = bench.api();
    let set = |name: &str| std::env::var(name).ok();
    let many = set("MANY").map_or(MANY, |many| many.parse().unwrap());
    let spec: MachineSpec =
        serde_json::from_str(&set("SPEC").unwrap_or_else(|| SPEC.to_owned())).unwrap();
    stream::iter(0..many)
        .for_each_concurrent(32, async |number| {
            let machine = Machine::new(&format!("machine-{number}"), spec.clone());
            machines.create(&PostParams::default(), &machine).await.unwrap();
        })
        .await;
    let program = set("PROGRAM").unwrap_or_else(|| env!("CARGO_BIN_EXE_machines").to_owned());
    let begun = std::time::Instant::now();
    let operator = bench.start(program);
    // As long as it gets on: how fast depends on what else the machine does.
    let mut done = 0;
    while done < many {
        done = eventually("more are ready", async || {
            let now = ready(&machines).await.map_err(|error| error.to_string())?;
            if now > done { Ok(now) } else { Err(format!("{now} of {many}")) }
        })
        .await;
        eprintln!("{:?}: {done} ready, peak {} KiB", begun.elapsed(), peak(&operator));
    }
    let peak = peak(&operator);
    assert!(peak < ROOM, "{peak} KiB");
}
