//! Every command of the README, as it stands there.

use alnair_pod::api::definitions;
use catamaran_testkit::{Bench, Readme};

#[tokio::test]
async fn the_readme_can_be_followed() {
    let bench = Bench::new("readme", &definitions()).await;
    let folder = env!("CARGO_MANIFEST_DIR");
    Readme::open(&bench, folder, env!("CARGO_BIN_EXE_alnair-pod")).walk(&bench).await;
}
