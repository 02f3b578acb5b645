//! The renderer, with any text as a template.
#![no_main]

use catamaran_chart::Profile;
use catamaran_fuzz::rendering::{BUDGET, chart_of, render_repeatedly};
use libfuzzer_sys::fuzz_target;
use serde_json::Map;

const HELPERS: &[u8] =
    br#"{{ define "h" }}[{{ . }}]{{ end }}{{ define "rec" }}{{ include "rec" . }}{{ end }}"#;

fuzz_target!(|text: &[u8]| {
    let chart = chart_of(&[("_h.tpl", HELPERS), ("a.yaml", text)]);
    let profile = if text.len() % 2 == 0 { Profile::Helm43 } else { Profile::Helm318 };
    let _ = render_repeatedly(&chart, &Map::new(), profile, BUDGET);
});
