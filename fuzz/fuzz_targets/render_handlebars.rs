//! The renderer, with any text as a Handlebars template.
#![no_main]

use catamaran_chart::Profile;
use catamaran_fuzz::rendering::{BUDGET, chart_of, render_repeatedly};
use libfuzzer_sys::fuzz_target;
use serde_json::Map;

const HELPERS: &[u8] =
    br#"{{ define "h" }}[{{ . }}]{{ end }}{{ define "rec" }}{{ include "rec" . }}{{ end }}"#;
const PARTIALS: &[u8] = b"{{#*inline \"p\"}}({{x}} {{> @partial-block}}){{/inline}}";

fuzz_target!(|text: &[u8]| {
    let mut chart = chart_of(&[("_h.tpl", HELPERS), ("_p.hbs", PARTIALS), ("a.yaml.hbs", text)]);
    let mode = if text.len() % 2 == 0 { "true" } else { "strict" };
    chart
        .metadata
        .annotations
        .get_or_insert_default()
        .insert("catamaran.dev/handlebars".into(), mode.into());
    let _ = render_repeatedly(&chart, &Map::new(), Profile::Helm43, BUDGET);
});
