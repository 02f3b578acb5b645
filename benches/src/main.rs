//! `make bench`: catamaran and the real helm, measured in turns in one run.
//!
//! Every number is a ratio of medians: both sides do the same work one right after the other, so
//! that a busy machine slows both. See docs/performance.md.

mod corpus;
mod generate;
mod library;
mod process;
mod render;
mod report;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::Parser;

/// The heap that the command has.
#[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
#[global_allocator]
static HEAP: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Measure catamaran against the real helm
#[derive(Parser)]
struct Args {
    /// The real helm.
    #[arg(long)]
    helm: PathBuf,
    /// Ours, built with --release.
    #[arg(long)]
    catamaran: PathBuf,
    /// Helm's library: hack/tools/helm4/render.
    #[arg(long)]
    library: PathBuf,
    /// A folder of charts besides our own; with a charts.json of chartdiff's, its sets of values too.
    #[arg(long)]
    charts: Option<PathBuf>,
    /// Which charts of that folder are measured one by one: a part of the path.
    #[arg(long)]
    detail: Vec<String>,
    /// Only writes our own charts there.
    #[arg(long)]
    generate: Option<PathBuf>,
    /// Seconds to measure each pair.
    #[arg(long, default_value_t = 8.0)]
    seconds: f64,
}

/// A chart with its values files, relative to it.
struct Case {
    name: String,
    chart: PathBuf,
    values: Vec<PathBuf>,
}

fn main() -> Result<()> {
    let args = Args::parse();
    if let Some(folder) = &args.generate {
        return own_charts(&args.helm, folder).map(drop);
    }
    let scratch = tempfile::tempdir()?;
    report::start(&args.helm, &args.catamaran)?;
    for case in &own_charts(&args.helm, scratch.path())? {
        measure(&args, case)?;
    }
    if let Some(folder) = &args.charts {
        let cases = corpus::cases(folder)?;
        let plain = cases.iter().filter(|case| case.values.is_empty());
        for case in plain.filter(|c| args.detail.iter().any(|part| c.name.contains(part.as_str())))
        {
            measure(&args, case)?;
        }
        if args.detail.is_empty() {
            report::sum(&corpus::sum(&args.helm, &args.catamaran, &cases)?);
        }
    }
    Ok(())
}

fn measure(args: &Args, case: &Case) -> Result<()> {
    let outer = process::compare(&args.helm, &args.catamaran, case, args.seconds);
    report::processes(case, &outer.with_context(|| case.name.clone())?);
    let inner = library::compare(&args.library, case, args.seconds);
    report::rendering(case, &inner.with_context(|| case.name.clone())?);
    Ok(())
}

fn own_charts(helm: &Path, scratch: &Path) -> Result<Vec<Case>> {
    let made = [
        ("small: as `helm create` makes it", generate::small(helm, scratch)?),
        ("large: class of kube-prometheus-stack", generate::stack(scratch)?),
        ("umbrella: 120 subcharts", generate::umbrella(scratch)?),
    ];
    let case = |(name, chart)| Case { name: String::from(name), chart, values: Vec::new() };
    Ok(made.into_iter().map(case).collect())
}
