//! Renders twice and compares.

use std::time::{Duration, UNIX_EPOCH};

use catamaran_chart::{
    Budget, Capabilities, Chart, CompiledChart, File, Lookups, Metadata, Profile, ReleaseFacts,
    RenderError, RenderInput, Rendered,
};
use serde_json::{Map, Value, json};

use crate::limits::{Limits, within};

/// A budget that a rendering in a fuzz target can use up.
pub const BUDGET: Budget = Budget {
    steps: 300_000,
    output: 1 << 20,
    memory: 8 << 20,
    depth: 500,
    keys: 0,
    time: Duration::from_secs(60),
};

/// What a rendering under [`BUDGET`] may take. Memory is charged roughly, and one rendering holds
/// texts of its output besides.
pub const LIMITS: Limits = Limits { time: Duration::from_secs(3), bytes: 64 << 20 };

/// A chart that consists of these templates; names are those under `templates/`.
pub fn chart_of(templates: &[(&str, &[u8])]) -> Chart {
    let file = |name: String, data: &[u8]| File { name, data: data.into() };
    Chart {
        metadata: Metadata {
            api_version: "v2".into(),
            name: "c".into(),
            version: "1.2.3".into(),
            ..Metadata::default()
        },
        templates: templates.iter().map(|(n, d)| file(format!("templates/{n}"), d)).collect(),
        files: vec![
            file("conf/a.txt".into(), b"one\ntwo\n"),
            file("conf/b.bin".into(), &[0, 159, 255]),
        ],
        values: default_values(),
        ..Chart::default()
    }
}

/// Values of all kinds, under short names.
pub fn default_values() -> Map<String, Value> {
    let mut values = json!({
        "s": "some text", "e": "", "i": 7, "f": 2.5, "t": true, "n": null, "neg": -3,
        "l": [1, "two", null, {"k": "v"}, 2.5], "el": [], "em": {},
        "m": {"a": {"b": {"c": "deep"}}, "k-1": 1, "l": [1, 2]},
        "d": "2026-11-21T10:00:00Z", "v": "1.2.3-rc.1+meta", "y": "a: [1, {b: c}]\n",
        "tpl": "{{ .Values.s | upper }}", "u": "https://user@example.com:8443/p?q=1#f"
    });
    values.as_object_mut().map(std::mem::take).unwrap_or_default()
}

/// Renders under limits, several times, and asserts that it comes to the same. What comes of it is
/// all text of the result, or the error's.
pub fn render_repeatedly(
    chart: &Chart,
    values: &Map<String, Value>,
    profile: Profile,
    budget: Budget,
) -> Result<String, String> {
    let compiled = match chart.clone().compile() {
        Ok(compiled) => compiled,
        Err(error) => return Err(error.text(profile)),
    };
    let first = within(LIMITS, || render(&compiled, values, profile, budget));
    let again = render(&compiled, values, profile, budget);
    assert_eq!(first, again, "a compiled chart renders the same again");
    if let Ok(fresh) = chart.clone().compile() {
        let fresh = render(&fresh, values, profile, budget);
        assert_eq!(first, fresh, "a chart that is compiled again renders the same");
    }
    if first.is_ok() {
        let more = Budget { steps: budget.steps * 2, memory: budget.memory * 2, ..budget };
        let more = render(&compiled, values, profile, more);
        assert_eq!(first, more, "a larger budget changes nothing where the smaller was enough");
    }
    first
}

fn render(
    chart: &CompiledChart,
    values: &Map<String, Value>,
    profile: Profile,
    budget: Budget,
) -> Result<String, String> {
    let release = ReleaseFacts {
        name: "demo".into(),
        namespace: "default".into(),
        revision: 1,
        is_install: true,
    };
    let rendered = chart.render(&RenderInput {
        values,
        release: &release,
        capabilities: &Capabilities::offline(profile),
        profile,
        lookups: &Lookups::offline(),
        clock: UNIX_EPOCH + Duration::from_secs(1_700_000_000),
        seed: 7_u64.into(),
        random_overrides: None,
        budget,
    });
    match rendered {
        Ok(rendered) => Ok(text_of(&rendered, budget)),
        Err(error) => Err(text_of_error(&error, profile)),
    }
}

fn text_of(rendered: &Rendered, budget: Budget) -> String {
    let contents = rendered.manifests.iter().map(|manifest| manifest.content.len()).sum::<usize>();
    let hooks = rendered.hooks.iter().map(|hook| hook.manifest.len()).sum::<usize>();
    assert!(contents + hooks + rendered.notes.len() <= budget.output, "output is in the budget");
    format!("{}\n{}\n{:?}", rendered.template_text(), rendered.notes, rendered.warnings)
}

fn text_of_error(error: &RenderError, profile: Profile) -> String {
    let text = error.text(profile);
    assert!(!text.is_empty(), "an error says something");
    if let RenderError::Budget { text, at } = error {
        assert!(!at.file.is_empty(), "{text}: a used-up budget names the template");
    }
    text
}
