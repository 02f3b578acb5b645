//! The operator: `cargo run -p alnair-pod`, against the cluster of $KUBECONFIG.

use alnair_pod::AlnairPods;
use anyhow::Result;
use catamaran_operator::{Manager, Options};
use clap::Parser;

/// Keeps a pod for each AlnairPod
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(flatten)]
    options: Options,
}

#[tokio::main]
async fn main() -> Result<()> {
    let Cli { options } = Cli::parse();
    options.init_logging().map_err(anyhow::Error::msg)?;
    Manager::native("alnair-pod", options).reconciler("AlnairPod", AlnairPods).run().await?;
    Ok(())
}
