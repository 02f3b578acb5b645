//! What was measured, as Markdown on standard output.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use crate::corpus::Sum;
use crate::{Case, library, process};

/// Starts with the circumstances.
pub fn start(helm: &Path, ours: &Path) -> Result<()> {
    let today = jiff::Zoned::now().date();
    let cpus = std::thread::available_parallelism()?;
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name"));
    let model = model.map_or("unknown", |text| text.trim_start_matches(['\t', ' ', ':']));
    let helm =
        said(Command::new(helm).args(["version", "--template", "{{.Version}} ({{.GoVersion}})"]))?;
    let ours = said(Command::new(ours).arg("--version"))?;
    println!("{today}, {cpus} CPUs ({model}), helm {helm}, {ours}. Medians (best).\n");
    println!("| chart | what | helm | catamaran | ratio |");
    println!("|---|---|---|---|---|");
    Ok(())
}

pub fn processes(case: &Case, runs: &process::Compared) {
    let walls = |runs: &[process::Run]| runs.iter().map(|run| run.wall).collect::<Vec<_>>();
    times(&case.name, "whole process", &walls(&runs.helm), &walls(&runs.ours));
    let peak = |runs: &[process::Run]| {
        let mut bytes: Vec<_> = runs.iter().map(|run| run.bytes).collect();
        bytes.sort_unstable();
        bytes.get(bytes.len() / 2).copied().unwrap_or(0)
    };
    let (helm, ours) = (peak(&runs.helm), peak(&runs.ours));
    row(&case.name, "peak memory", &mib(helm), &mib(ours), &ratio(helm, ours));
    let size = runs.ours.first().map_or(0, |run| run.answer.1.len());
    let equal = if runs.equal() { "equal" } else { "differs (random values?)" };
    println!("| {} | output, {equal} | | {} KiB | |", case.name, size / 1024);
}

pub fn rendering(case: &Case, rounds: &library::Compared) {
    let name = &case.name;
    times(name, "load the chart", &rounds.helm_load, &rounds.load);
    times(name, "compile and render, against engine.Render", &rounds.helm_engine, &rounds.fresh);
    times(name, "render again, against engine.Render", &rounds.helm_engine, &rounds.again);
    times(
        name,
        "compile and render, against values + render + sort",
        &rounds.helm_all,
        &rounds.fresh,
    );
    times(name, "render again, against values + render + sort", &rounds.helm_all, &rounds.again);
}

pub fn sum(sum: &Sum) {
    let Sum { cases, equal, .. } = sum;
    let name = format!("{cases} cases, each once ({equal} with one output)");
    let (helm, ours) = (sum.helm, sum.ours);
    row(
        &name,
        "whole processes in sum",
        &time(helm),
        &time(ours),
        &ratio(helm.as_nanos(), ours.as_nanos()),
    );
    let count = u32::try_from(*cases).unwrap_or(1).max(1);
    row(&name, "a case", &time(helm / count), &time(ours / count), "");
    let (helm, ours) = (sum.helm_bytes, sum.our_bytes);
    row(&name, "greatest peak memory", &mib(helm), &mib(ours), &ratio(helm, ours));
}

fn times(name: &str, what: &str, helm: &[Duration], ours: &[Duration]) {
    let (helm, ours) = (spread(helm), spread(ours));
    let shown = |(median, best)| format!("{} ({})", time(median), time(best));
    let of = |helm: Duration, ours: Duration| ratio(helm.as_nanos(), ours.as_nanos());
    let ratio = format!("{} ({})", of(helm.0, ours.0), of(helm.1, ours.1));
    row(name, what, &shown(helm), &shown(ours), &ratio);
}

fn row(name: &str, what: &str, helm: &str, ours: &str, ratio: &str) {
    println!("| {name} | {what} | {helm} | {ours} | {ratio} |");
}

fn said(command: &mut Command) -> Result<String> {
    Ok(String::from_utf8_lossy(&command.output()?.stdout).trim().to_owned())
}

/// Median and best.
fn spread(times: &[Duration]) -> (Duration, Duration) {
    let mut times = times.to_vec();
    times.sort_unstable();
    let at = |index: usize| times.get(index).copied().unwrap_or_default();
    (at(times.len() / 2), at(0))
}

#[allow(clippy::cast_precision_loss)] // nobody reads more than three digits
fn ratio<N: TryInto<u64>>(helm: N, ours: N) -> String {
    let number = |n: N| n.try_into().unwrap_or(u64::MAX) as f64;
    format!("{:.1}x", number(helm) / number(ours).max(1.0))
}

fn time(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 1.0 { format!("{:.2} ms", seconds * 1000.0) } else { format!("{seconds:.2} s") }
}

#[allow(clippy::cast_precision_loss)]
fn mib(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}
