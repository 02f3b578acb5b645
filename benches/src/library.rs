//! Rendering alone: our library against Helm's, both in one warm process each.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, ensure};
use catamaran_chart::{Chart, Profile};
use serde_json::{Map, Value};

use crate::Case;
use crate::render::render;

/// The rounds of both sides.
#[derive(Default)]
pub struct Compared {
    /// `loader.Load`.
    pub helm_load: Vec<Duration>,
    /// `engine.Render` alone, which parses and executes.
    pub helm_engine: Vec<Duration>,
    /// Dependencies, values, `engine.Render`, `SortManifests`.
    pub helm_all: Vec<Duration>,
    /// `Chart::load`.
    pub load: Vec<Duration>,
    /// `compile` and the first `render`: dependencies, values, parsing, execution, sorting.
    pub fresh: Vec<Duration>,
    /// `render` of the compiled chart: dependencies, values, execution, sorting.
    pub again: Vec<Duration>,
}

/// Renders with both in turns, for that many seconds but at least five times.
pub fn compare(library: &Path, case: &Case, seconds: f64) -> Result<Compared> {
    let mut helm = Helm::start(library, case)?;
    let values = user_values(case)?;
    let load = || {
        let chart = Chart::load(&case.chart);
        chart.map_err(|error| anyhow!(error.text(Profile::Helm43)))
    };
    let kept = load()?.compile()?;
    render(&kept, &values)?;
    helm.render()?; // warm, both
    let mut rounds = Compared::default();
    let start = Instant::now();
    while rounds.fresh.len() < 5 || start.elapsed().as_secs_f64() < seconds {
        let [load_, values_, engine, sort] = helm.render()?;
        rounds.helm_load.push(load_);
        rounds.helm_engine.push(engine);
        rounds.helm_all.push(values_ + engine + sort);
        let (time, chart) = timed(load)?;
        rounds.load.push(time);
        // What is given back afterwards counts for neither: Helm's garbage is collected before its turn.
        let fresh = timed(|| {
            let compiled = chart.compile()?;
            let rendered = render(&compiled, &values)?;
            Ok((compiled, rendered))
        })?;
        rounds.fresh.push(fresh.0);
        rounds.again.push(timed(|| render(&kept, &values))?.0);
    }
    Ok(rounds)
}

fn timed<T>(work: impl FnOnce() -> Result<T>) -> Result<(Duration, T)> {
    let start = Instant::now();
    let result = work()?;
    Ok((start.elapsed(), result))
}

fn user_values(case: &Case) -> Result<Map<String, Value>> {
    let mut values = Map::new();
    for file in &case.values {
        let bytes = std::fs::read(case.chart.join(file))?;
        let file = catamaran_chart::values::read_file(&bytes, Profile::Helm43);
        catamaran_chart::values::merge(&mut values, file.map_err(anyhow::Error::msg)?);
    }
    Ok(values)
}

/// The program around Helm's library: a line in, the times of its steps out.
struct Helm {
    child: Child,
    answers: BufReader<ChildStdout>,
}

impl Helm {
    fn start(library: &Path, case: &Case) -> Result<Self> {
        let mut command = Command::new(library);
        command.arg(&case.chart).args(case.values.iter().map(|file| case.chart.join(file)));
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| library.display().to_string())?;
        let answers = BufReader::new(child.stdout.take().context("no stdout")?);
        Ok(Self { child, answers })
    }

    /// Load, values, render, sort.
    fn render(&mut self) -> Result<[Duration; 4]> {
        self.child.stdin.as_mut().context("no stdin")?.write_all(b"\n")?;
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        let times = line.split_whitespace().map(|n| Ok(Duration::from_nanos(n.parse()?)));
        let times: Vec<_> = times.collect::<Result<_>>()?;
        ensure!(times.len() == 4, "Helm's library failed");
        Ok(std::array::from_fn(|i| times.get(i).copied().unwrap_or_default()))
    }
}

impl Drop for Helm {
    fn drop(&mut self) {
        drop(self.child.stdin.take()); // its end
        let _ = self.child.wait();
    }
}
