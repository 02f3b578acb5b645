//! What an operator does that may not see one of its kinds.

#![allow(clippy::unwrap_used)] // helpers of tests fail as tests do

use catamaran_testkit::{Bench, becomes, eventually};
use kube::Api;
use kube::api::PostParams;
use machines::api::{Machine, MachineSpec, definitions};

const OPERATOR: &str = env!("CARGO_BIN_EXE_machines");

// kubectl blocks a thread.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_forbidden_kind_is_named_and_keeps_nobody_from_working() {
    let bench = Bench::new("forbidden", &definitions()).await;
    let machines: Api<Machine> = bench.api();
    let account = bench.cluster.service_account(&bench.namespace, "half-blind").await.unwrap();
    let subject = format!("--serviceaccount={}:half-blind", bench.namespace.name());
    let kinds = "--resource=machines.useless.container.training";
    bench.kubectl(&["create", "role", "half", "--verb=list,watch,patch", kinds]);
    bench.kubectl(&["create", "role", "status", "--verb=patch", &format!("{kinds}/status")]);
    for role in ["half", "status"] {
        let role_of = format!("--role={role}");
        bench.kubectl(&["create", "rolebinding", role, &role_of, &subject]);
    }
    let up = MachineSpec { switch_position: Some("up".to_owned()), ..MachineSpec::default() };
    machines.create(&PostParams::default(), &Machine::new("m", up)).await.unwrap();
    let operator = bench.start_as(OPERATOR, &account);
    let seen =
        |machine: &Machine| machine.status.as_ref().is_some_and(|s| !s.conditions.is_empty());
    becomes(&machines, "m", "noticed", seen).await;
    let named = |log: &str| {
        let about = |line: &&str| line.contains("no right to list and watch this kind");
        log.lines().filter(about).filter(|line| line.contains("Kind=Switch")).count()
    };
    eventually("the forbidden kind is named", async || match named(&operator.log()) {
        0 => Err(operator.log()),
        _ => Ok(()),
    })
    .await;
    assert_eq!(named(&operator.log()), 1, "once: {}", operator.log());
}
