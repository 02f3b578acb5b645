//! The operator: Memcached from a Helm chart, MemcachedBackup from Rust, in one manager.

use anyhow::Result;
use catamaran_operator::{Manager, Options};
use clap::Parser;
use memcached_operator::controllers::MemcachedBackups;

/// Carries the kinds of watches.yaml: charts as releases, reconcilers as they are registered here
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(flatten)]
    options: Options,
}

#[tokio::main]
async fn main() -> Result<()> {
    let Cli { options } = Cli::parse_from(catamaran_operator::arguments());
    options.init_logging().map_err(anyhow::Error::msg)?;
    Manager::new("memcached-operator", options)
        .reconciler("MemcachedBackup", MemcachedBackups)
        //+kubebuilder:scaffold:reconciler
        .run()
        .await?;
    Ok(())
}
