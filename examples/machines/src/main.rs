//! The operator: `cargo run -p machines`, against the cluster of $KUBECONFIG.

use anyhow::Result;
use catamaran_operator::{Manager, Options};
use clap::Parser;
use machines::Machines;

/// Moves switches back down
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
    Manager::native("machines", options).reconciler("Machine", Machines).run().await?;
    Ok(())
}
