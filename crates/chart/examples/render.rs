//! Renders a chart many times, for a profiler:
//! `cargo build --release -p catamaran-chart --example render`, then
//! `perf record target/release/examples/render load|fresh|again CHART TIMES`.

use std::path::Path;
use std::time::{Instant, UNIX_EPOCH};

use catamaran_chart::{
    Budget, Capabilities, Chart, CompiledChart, Lookups, Profile, ReleaseFacts, RenderError,
    RenderInput,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<_> = std::env::args().collect();
    let [_, what, chart, times] = args.as_slice() else {
        return Err("usage: render load|fresh|again CHART TIMES".into());
    };
    let place = Path::new(chart);
    let loaded = Chart::load(place)?;
    let compiled = loaded.clone().compile()?;
    let mut best = f64::MAX;
    for _ in 0..times.parse()? {
        let copy = loaded.clone();
        let start = Instant::now();
        match what.as_str() {
            "load" => drop(Chart::load(place)?),
            "fresh" => render(&copy.compile()?)?,
            _ => render(&compiled)?,
        }
        best = best.min(start.elapsed().as_secs_f64());
    }
    println!("{what} {chart}: {:.3} ms", best * 1000.0);
    Ok(())
}

fn render(chart: &CompiledChart) -> Result<(), RenderError> {
    let profile = Profile::Helm43;
    let release = ReleaseFacts {
        name: "rel".into(),
        namespace: "corpus".into(),
        revision: 1,
        is_install: true,
    };
    let rendered = chart.render(&RenderInput {
        values: &serde_json::Map::new(),
        release: &release,
        capabilities: &Capabilities::offline(profile),
        profile,
        lookups: &Lookups::offline(),
        clock: UNIX_EPOCH,
        seed: 1.into(),
        budget: Budget::default(),
    })?;
    std::hint::black_box(rendered);
    Ok(())
}
