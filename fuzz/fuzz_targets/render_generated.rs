//! The renderer, with generated templates that call every function.
#![no_main]

use arbitrary::Unstructured;
use catamaran_chart::{Budget, Profile};
use catamaran_fuzz::generate;
use catamaran_fuzz::rendering::{BUDGET, chart_of, render_repeatedly};
use libfuzzer_sys::{Corpus, fuzz_target};

fn run(data: &[u8]) -> arbitrary::Result<()> {
    let mut u = Unstructured::new(data);
    // Many functions are unknown to 3.18.
    let profile = if u.ratio(1, 8)? { Profile::Helm318 } else { Profile::Helm43 };
    let budget = Budget {
        steps: *u.choose(&[BUDGET.steps, BUDGET.steps, BUDGET.steps, 20_000, 500])?,
        memory: *u.choose(&[BUDGET.memory, BUDGET.memory, BUDGET.memory, 1 << 20, 50_000])?,
        output: *u.choose(&[BUDGET.output, BUDGET.output, BUDGET.output, 1000])?,
        depth: *u.choose(&[BUDGET.depth, 5])?,
        // One of RSA takes longer than all else.
        keys: u32::from(!u.ratio(31, 32)?),
        ..BUDGET
    };
    // Notes may be any text; a manifest must be YAML.
    let name = *u.choose(&["NOTES.txt", "NOTES.txt", "a.yaml"])?;
    let case = generate::case(&mut u)?;
    let templates = [("_h.tpl", case.helpers.as_bytes()), (name, &case.template)];
    if std::env::var_os("SHOW").is_some() {
        eprintln!("{}\n{}", case.helpers, String::from_utf8_lossy(&case.template));
        eprintln!("{}", serde_json::Value::from(case.values.clone()));
    }
    let outcome = render_repeatedly(&chart_of(&templates), &case.values, profile, budget);
    if std::env::var_os("SHOW").is_some() {
        eprintln!("{outcome:?}");
    }
    Ok(())
}

fuzz_target!(|data: &[u8]| -> Corpus {
    if run(data).is_ok() { Corpus::Keep } else { Corpus::Reject }
});
