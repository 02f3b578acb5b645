//! `catamaran`: the operator for people who only have charts, and the tools around it.

use anyhow::Result;
use catamaran_operator::{Manager, Options};
use clap::{Parser, Subcommand};

/// Helm charts and Rust reconcilers as operators
#[derive(Parser)]
#[command(name = "catamaran", version, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run an operator for the chart kinds of watches.yaml
    ///
    /// For each entry with `chart:` a resource of its kind becomes a Helm release: its name is the
    /// release's name, its spec the values, its namespace the release's. No Rust project is needed.
    /// Entries with `reconciler:` need a program that registers one (see docs/tutorial.md).
    #[command(after_help = RUN_EXAMPLES)]
    Run {
        #[command(flatten)]
        options: Options,
    },
}

const RUN_EXAMPLES: &str = "\
Examples:
  catamaran run                                        all kinds of ./watches.yaml, in all namespaces
  WATCH_NAMESPACE=team-a,team-b catamaran run          in two namespaces only
  catamaran run --watches-file deploy/watches.yaml --log-format json

A watches.yaml:
  - group: cache.my.domain
    version: v1alpha1
    kind: Memcached
    chart: helm-charts/memcached";

#[tokio::main]
async fn main() -> Result<()> {
    match Cli::parse().command {
        Command::Run { options } => {
            options.init_logging().map_err(anyhow::Error::msg)?;
            Manager::new("catamaran", options).run().await?;
        }
    }
    Ok(())
}
