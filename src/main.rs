//! The operator: Memcached from a Helm chart, MemcachedBackup from Rust, in one manager. The Jobs of a
//! MemcachedBackup run the same program.

use anyhow::Result;
use catamaran_operator::charts::{ChartKind, WaitStrategy};
use catamaran_operator::{Manager, Options};
use clap::Parser;
use memcached_operator::controllers::{MemcachedBackups, Memcacheds};
use memcached_operator::memcached;

/// Carries the kinds of watches.yaml: charts as releases, reconcilers as they are registered here
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(flatten)]
    options: Options,
    #[command(subcommand)]
    command: Option<memcached::Command>,
}

#[tokio::main]
async fn main() -> Result<()> {
    let Cli { options, command } = Cli::parse_from(catamaran_operator::arguments());
    if let Some(command) = command {
        println!("{}", serde_json::to_string(&command.run()?)?);
        return Ok(());
    }
    options.init_logging().map_err(anyhow::Error::msg)?;
    // What the Jobs of backups run: this program, in the image that it is in.
    let image = std::env::var("OPERATOR_IMAGE").ok().filter(|image| !image.is_empty());
    let mut manager = Manager::new("memcached-operator", options);

    // Kinds written in Rust.
    manager = manager.reconciler("MemcachedBackup", MemcachedBackups { image });
    //+kubebuilder:scaffold:reconciler

    // Kinds served by charts: each as its entry in watches.yaml has it, and what no file can say.
    for watch in manager.watches()? {
        let Some(kind) = ChartKind::of(&watch) else { continue };
        manager = manager.chart(match kind.name() {
            "Memcached" => kind.logic(Memcacheds).install_annotation(
                "cache.my.domain/wait-for-pods",
                |value, ways| {
                    ways.wait =
                        if value == "true" { WaitStrategy::Objects } else { WaitStrategy::No };
                },
            ),
            _ => kind,
        });
    }

    manager.run().await?;
    Ok(())
}
