//! `make bench-growth`: how the time of each piece of work over a tenant's data grows with that data.
//!
//! Each case is run with inputs of growing size. The exponent is the slope of the logarithm of the time over
//! the logarithm of the size: 1 is linear, 2 is the square. See docs/performance.md.

#![allow(clippy::cast_precision_loss, reason = "sizes and times become a ratio that is printed")]

mod cases;
#[path = "../../render.rs"]
mod render;

use std::time::{Duration, Instant};

use clap::Parser;

use cases::Case;

/// Measure how work over a tenant's data grows
#[derive(Parser)]
struct Args {
    /// The items of the smallest input.
    #[arg(long, default_value_t = 1000)]
    smallest: usize,
    /// How often the input is doubled.
    #[arg(long, default_value_t = 4)]
    doublings: u32,
    /// The shortest time of so many runs counts.
    #[arg(long, default_value_t = 3)]
    runs: usize,
    /// Only cases whose name contains this.
    #[arg(long, default_value = "")]
    only: String,
}

fn main() {
    let args = Args::parse();
    let sizes: Vec<usize> = (0..=args.doublings).map(|n| args.smallest << n).collect();
    let columns = sizes.iter().map(ToString::to_string).collect();
    println!("{}", row("work", columns, "exponent"));
    for case in cases::all().iter().filter(|case| case.name.contains(&args.only)) {
        let times: Vec<Duration> =
            sizes.iter().map(|size| shortest(case, *size, args.runs)).collect();
        let columns =
            times.iter().map(|time| format!("{:.2} ms", time.as_secs_f64() * 1e3)).collect();
        println!("{}", row(case.name, columns, &format!("{:.2}", exponent(&sizes, &times))));
    }
}

fn row(name: &str, columns: Vec<String>, last: &str) -> String {
    let columns: Vec<String> = columns.into_iter().map(|column| format!("{column:>12}")).collect();
    format!("{name:<44}{}{last:>10}", columns.concat())
}

fn shortest(case: &Case, size: usize, runs: usize) -> Duration {
    let work = (case.prepare)(size);
    let time = || {
        let begun = Instant::now();
        work();
        begun.elapsed()
    };
    (0..runs.max(1)).map(|_| time()).min().unwrap_or_default()
}

/// The slope of a line through the logarithms, by least squares.
fn exponent(sizes: &[usize], times: &[Duration]) -> f64 {
    let points: Vec<(f64, f64)> = sizes
        .iter()
        .zip(times)
        .map(|(size, time)| ((*size as f64).ln(), time.as_secs_f64().max(1e-9).ln()))
        .collect();
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let slope: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    slope / points.iter().map(|point| (point.0 - x).powi(2)).sum::<f64>()
}
