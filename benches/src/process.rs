//! Whole processes: wall time and peak memory.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use wait4::Wait4 as _;

use crate::Case;

/// One run of a program.
pub struct Run {
    pub wall: Duration,
    /// Peak resident memory. No less than our own, from which the process came: a few MiB.
    pub bytes: u64,
    /// Exit status and what was printed.
    pub answer: (Option<i32>, Vec<u8>),
}

/// The runs of both sides.
pub struct Compared {
    pub helm: Vec<Run>,
    pub ours: Vec<Run>,
}

impl Compared {
    /// Whether both printed the same; charts with random values do not.
    pub fn equal(&self) -> bool {
        let answers = self.helm.iter().zip(&self.ours);
        answers.into_iter().all(|(helm, ours)| helm.answer == ours.answer)
    }
}

/// Runs both in turns, for that many seconds but at least five times.
pub fn compare(helm: &Path, ours: &Path, case: &Case, seconds: f64) -> Result<Compared> {
    let mut compared = Compared { helm: Vec::new(), ours: Vec::new() };
    let start = Instant::now();
    while compared.ours.len() < 5 || start.elapsed().as_secs_f64() < seconds {
        compared.helm.push(run(helm, case)?);
        compared.ours.push(run(ours, case)?);
    }
    for (who, runs) in [("helm", &compared.helm), ("catamaran", &compared.ours)] {
        if runs.iter().any(|run| run.answer.0 != Some(0)) {
            bail!("{who} failed");
        }
    }
    Ok(compared)
}

/// Runs a program's `template` once.
pub fn run(program: &Path, case: &Case) -> Result<Run> {
    let mut command = Command::new(program);
    command.args(["template", "rel", ".", "--namespace", "corpus", "--kube-version", "1.34.0"]);
    for file in &case.values {
        command.arg("-f").arg(file);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    command.env_clear().env("PATH", path).env("HOME", "/nonexistent").env("TZ", "UTC");
    command.current_dir(&case.chart).stdin(Stdio::null());
    let output = tempfile::tempfile()?;
    command.stdout(output.try_clone()?).stderr(Stdio::null());
    let start = Instant::now();
    let child = command.spawn().with_context(|| program.display().to_string())?;
    let ended = child.wait4()?;
    let wall = start.elapsed();
    let answer = (ended.status.code(), read(output)?);
    Ok(Run { wall, bytes: ended.rusage.maxrss, answer })
}

/// A file takes what is printed, so that nobody waits for a reader.
fn read(mut file: std::fs::File) -> Result<Vec<u8>> {
    use std::io::{Read as _, Seek as _};
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}
