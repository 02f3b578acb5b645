//! The operator: `cargo run -p database`, against the cluster of $KUBECONFIG.

use anyhow::Result;
use catamaran_operator::{Manager, Options};
use clap::Parser;
use database::Databases;

/// Keeps PostgreSQL servers, their backups and their upgrades
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
    Manager::native("database", options).reconciler("Database", Databases).run().await?;
    Ok(())
}
