//! Renders a chart many times, for a profiler:
//! `cargo build --release -p catamaran-chart --example render`, then
//! `perf record target/release/examples/render load|fresh|again CHART TIMES`; `text` instead prints
//! what `helm template rel CHART -n corpus` prints.

use std::path::Path;
use std::time::{Instant, UNIX_EPOCH};

use catamaran_chart::{
    Budget, Capabilities, Chart, CompiledChart, Lookups, Profile, ReleaseFacts, RenderError,
    RenderInput, Rendered,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<_> = std::env::args().collect();
    let [_, what, chart, times] = args.as_slice() else {
        return Err("usage: render load|fresh|again|text CHART TIMES".into());
    };
    let place = Path::new(chart);
    let loaded = Chart::load(place)?;
    let compiled = loaded.clone().compile()?;
    let mut best = f64::MAX;
    let mut spent = 0.0;
    for _ in 0..times.parse()? {
        // Only what is compiled anew needs a chart of its own.
        let copy = (what == "fresh").then(|| loaded.clone());
        let (start, before) = (Instant::now(), cpu());
        match (what.as_str(), copy) {
            (_, Some(copy)) => drop(render(&copy.compile()?)?),
            ("load", _) => drop(Chart::load(place)?),
            ("text", _) => print!("{}", render(&compiled)?.template_text()),
            _ => drop(render(&compiled)?),
        }
        best = best.min(start.elapsed().as_secs_f64());
        spent += cpu() - before;
    }
    let cpu = spent / times.parse::<f64>()?;
    eprintln!("{what} {chart}: best {:.3} ms, {:.3} ms of CPU each", best * 1000.0, cpu * 1000.0);
    Ok(())
}

/// Seconds that this thread has run: what a busy machine does not change. 0 where Linux is not.
fn cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = stat.split(' ').next().and_then(|field| field.parse::<f64>().ok());
    nanos.unwrap_or_default() / 1e9
}

fn render(chart: &CompiledChart) -> Result<Rendered, RenderError> {
    let profile = Profile::Helm43;
    let release = ReleaseFacts {
        name: "rel".into(),
        namespace: "corpus".into(),
        revision: 1,
        is_install: true,
    };
    chart.render(&RenderInput {
        values: &serde_json::Map::new(),
        release: &release,
        capabilities: &Capabilities::offline(profile),
        profile,
        lookups: &Lookups::offline(),
        clock: UNIX_EPOCH,
        seed: 1.into(),
        random_overrides: None,
        budget: Budget::default(),
    })
}
