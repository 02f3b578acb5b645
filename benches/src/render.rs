//! A rendering as all benches here measure it: offline, with one clock and one seed.

use std::time::UNIX_EPOCH;

use anyhow::{Result, anyhow};
use catamaran_chart::{
    Budget, Capabilities, CompiledChart, Lookups, Profile, ReleaseFacts, RenderInput, Rendered,
};
use serde_json::{Map, Value};

/// Renders a chart with these values.
pub fn render(chart: &CompiledChart, values: &Map<String, Value>) -> Result<Rendered> {
    let profile = Profile::Helm43;
    let release = ReleaseFacts {
        name: "rel".into(),
        namespace: "corpus".into(),
        revision: 1,
        is_install: true,
    };
    let rendered = chart.render(&RenderInput {
        values,
        release: &release,
        capabilities: &Capabilities::offline(profile),
        profile,
        lookups: &Lookups::offline(),
        clock: UNIX_EPOCH,
        seed: 1_u64.into(),
        random_overrides: None,
        budget: Budget::default(),
    });
    rendered.map_err(|error| anyhow!(error.text(profile)))
}
