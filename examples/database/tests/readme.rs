//! Every command of the README, as it stands there.

#![allow(clippy::unwrap_used)] // helpers of tests fail as tests do

use std::process::Command;

use catamaran_testkit::{Bench, Process, Readme};
use database::api::definitions;

const OPERATOR: &str = env!("CARGO_BIN_EXE_database");

#[tokio::test]
async fn the_readme_can_be_followed() {
    let bench = Bench::new("readme", &definitions()).await;
    bench.volumes(8).await;
    // The document's sample names its namespace.
    let mut command = Command::new(OPERATOR);
    command.args(bench.flags()).args(["--watch-namespace", "default"]);
    let _operator = Process::start(&mut command);
    Readme::open(&bench, env!("CARGO_MANIFEST_DIR"), OPERATOR).walk(&bench).await;
}
