//! `make bench-scale`: many resources of one chart, against what the API server can take at all.
//!
//! Ceiling and operator run on one control plane, one after the other, and only their ratio counts: the
//! machine carries both. See docs/performance.md.

#![allow(clippy::cast_precision_loss, reason = "counts become ratios that are printed")]

mod broken;
mod ceiling;
mod load;
mod operator;
mod table;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result};
use catamaran_localcluster::LocalCluster;
use clap::Parser;

use load::Load;
use operator::Operator;
use table::Table;

/// Measure `catamaran run` under load
#[derive(Parser)]
struct Args {
    /// The operator, built with --release.
    #[arg(long)]
    operator: PathBuf,
    /// The real helm, which makes the chart.
    #[arg(long)]
    helm: PathBuf,
    /// How many resources.
    #[arg(long, default_value_t = 1000)]
    count: usize,
    /// How many releases the ceiling is measured with.
    #[arg(long, default_value_t = 1000)]
    ceiling: usize,
    /// Seconds of idleness that are looked at.
    #[arg(long, default_value_t = 60)]
    idle: u64,
    /// How many more definitions come to the cluster; 0 leaves that out.
    #[arg(long, default_value_t = 500)]
    definitions: usize,
    /// How many resources of five charts, a tenth of them broken; 0 leaves that out.
    #[arg(long, default_value_t = 200)]
    mixed: usize,
}

#[tokio::main]
async fn main() -> Result<()> {
    let args = Args::parse();
    let cluster = LocalCluster::builder().nodes(0).audit(true).start().await?;
    let mut table = Table::start();
    if args.count > 0 {
        let ceiling = match args.ceiling {
            0 => None,
            count => Some(ceiling::measure(&cluster, count).await?),
        };
        if let Some((ceiling, _)) = &ceiling {
            let writes = ceiling * 8.0;
            table.row(
                "raw ceiling, 16 writers",
                format!("{ceiling:.1} releases/s, {writes:.0} writes/s"),
            );
        }
        scale(&args, &cluster, ceiling.as_ref().map(|it| it.0), &mut table).await?;
    }
    if args.mixed > 0 {
        broken::measure(&args.operator, &args.helm, &cluster, args.mixed, &mut table).await?;
    }
    cluster.stop().await;
    Ok(())
}

/// Installs, idles, loses Services, restarts.
async fn scale(
    args: &Args,
    cluster: &LocalCluster,
    ceiling: Option<f64>,
    table: &mut Table,
) -> Result<()> {
    let load = Load::new(cluster, &args.helm).await?;
    let operator = Operator::start(&args.operator, cluster, load.project()).await?;
    let (start, cpu) = (operator.mark()?, operator.cpu()?);
    table.row("memory at the start", operator.memory()?.to_string());
    let installed = load.install(args.count).await?;
    let count = args.count as f64;
    let rate = count / installed.deployed.as_secs_f64();
    let ratio = ceiling
        .map_or_else(String::new, |it| format!(", {:.0} % of the ceiling", 100.0 * rate / it));
    table.row(
        "installed",
        format!("{} resources in {:.1} s", args.count, installed.deployed.as_secs_f64()),
    );
    table.row("rate", format!("{rate:.1} releases/s{ratio}"));
    table.row("created (by the bench) within", format!("{:.1} s", installed.created.as_secs_f64()));
    let used = operator.cpu()?.saturating_sub(cpu);
    table.row(
        "processor time per release",
        format!("{:.2} ms", used.as_secs_f64() * 1000.0 / count),
    );
    operator.quiet(Duration::from_secs(5)).await?;
    table.row("memory, peak", operator.memory()?.to_string());
    for (what, number) in operator.requests(start)? {
        table.row(
            &format!("requests: {what}"),
            format!("{number}, {:.2} per release", number as f64 / count),
        );
    }
    idle(args.idle, &operator, table).await?;
    table.row("20 deleted Services are back within", seconds(load.lose_services(20).await?));
    restart(args, cluster, load, operator, table).await
}

async fn idle(minute: u64, operator: &Operator, table: &mut Table) -> Result<()> {
    tokio::time::sleep(Duration::from_secs(5)).await;
    let (mark, cpu) = (operator.mark()?, operator.cpu()?);
    tokio::time::sleep(Duration::from_secs(minute)).await;
    let used = operator.cpu()?.saturating_sub(cpu).as_secs_f64();
    let requests = operator.requests(mark)?;
    let told: Vec<String> =
        requests.iter().map(|(what, count)| format!("{count} {what}")).collect();
    let told = if told.is_empty() { "none".to_owned() } else { told.join(", ") };
    table.row(&format!("idle for {minute} s: requests"), told);
    table.row("idle: of one core", format!("{:.2} %", 100.0 * used / minute as f64));
    table.row("memory, idle", operator.memory()?.to_string());
    Ok(())
}

async fn restart(
    args: &Args,
    cluster: &LocalCluster,
    load: Load,
    operator: Operator,
    table: &mut Table,
) -> Result<()> {
    operator.end().await?;
    let operator = Operator::start(&args.operator, cluster, load.project()).await?;
    let (mark, cpu) = (operator.begun, operator.cpu()?);
    let synced = operator.quiet(Duration::from_secs(5)).await?;
    table.row("restart: in sync within", seconds(synced));
    for (what, number) in operator.requests(mark)? {
        table.row(&format!("restart: {what}"), number.to_string());
    }
    table.row("restart: processor time", seconds(operator.cpu()?.saturating_sub(cpu)));
    table.row("restart: memory", operator.memory()?.to_string());
    if args.definitions > 0 {
        let before = operator.memory()?.now;
        load.define(args.definitions).await.context("more definitions")?;
        operator.quiet(Duration::from_secs(5)).await?;
        let after = operator.memory()?.now;
        let more = after as f64 - before as f64;
        let told = format!("{:+.1} MiB", more / 1024.0);
        table.row(&format!("memory, with {} more definitions", args.definitions), told);
    }
    operator.end().await
}

fn seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}
