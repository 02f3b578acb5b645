//! Writes the CRDs of the Rust types to a folder: what `make manifests` runs.

use std::path::PathBuf;

use anyhow::{Context, Result};
use catamaran_operator::crds;
use clap::Parser;

/// Writes the CustomResourceDefinitions of the operator's Rust types
#[derive(Parser)]
struct Cli {
    /// Where the files go
    #[arg(default_value = "config/crd/bases")]
    folder: PathBuf,
}

fn main() -> Result<()> {
    let Cli { folder } = Cli::parse();
    let written = crds::write(&folder, &memcached_operator::api::definitions())
        .with_context(|| format!("cannot write the CRDs to {}", folder.display()))?;
    for path in written {
        println!("{}", path.display());
    }
    Ok(())
}
