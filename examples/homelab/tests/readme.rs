//! Every command of the README, as it stands there.

#![allow(clippy::unwrap_used)] // helpers of tests fail as tests do

use std::process::Command;

use catamaran_testkit::{Bench, Process, Readme};
use homelab::api::definitions;

const OPERATOR: &str = env!("CARGO_BIN_EXE_homelab");

#[tokio::test]
async fn the_readme_can_be_followed() {
    let bench = Bench::new("readme", &definitions()).await;
    // The samples name their namespaces, as the document's do.
    let mut command = Command::new(OPERATOR);
    command.args(bench.flags()).args(["--watch-namespace", "default,homelab"]);
    let _operator = Process::start(&mut command);
    Readme::open(&bench, env!("CARGO_MANIFEST_DIR"), OPERATOR).walk(&bench).await;
}
