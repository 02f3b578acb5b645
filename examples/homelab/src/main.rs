//! The operator: `cargo run -p homelab`, against the cluster of $KUBECONFIG.

use std::path::PathBuf;

use anyhow::Result;
use catamaran_operator::Options;
use clap::Parser;

/// Web applications, domains, databases and an identity provider for a homelab
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(flatten)]
    options: Options,
}

#[tokio::main]
async fn main() -> Result<()> {
    let Cli { mut options } = Cli::parse_from(catamaran_operator::arguments());
    // `cargo run` is called from anywhere; in an image the file is where all operators have it.
    let package = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    options.watches_file =
        options.watches_file.or_else(|| package.map(|package| package.join("watches.yaml")));
    options.init_logging().map_err(anyhow::Error::msg)?;
    homelab::manager(options).run().await?;
    Ok(())
}
