//! Calls of every pure function, each with what Helm's own engine answers.
//!
//! `tests/fixtures/cases.jsonl` is made by `tests/fixtures/generate.py` (our own cases) and
//! `tests/fixtures/oracle` (a small Go program around Helm 4.3.1). Never edit it by hand.
//! `CATAMARAN_SPRIG_CASES` names another file of the same form.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use catamaran_gotemplate::{Budget, Ctx, Error, Functions, MissingKey, Seed, TemplateSet, Type};
use serde::de::DeserializeSeed;
use serde_json::Value as Json;

static VALUES: catamaran_gotemplate::NamedType =
    catamaran_gotemplate::NamedType { name: "common.Values", underlying: Type::MAP, methods: &[] };

const NAME: &str = "c/templates/t";

/// When Helm was asked: some answers hold the day.
const RECORDED: Duration = Duration::from_hours(498_684); // 2026-11-21T12:00:00Z

fn floats(value: &Json) -> Json {
    match value {
        Json::Number(number) => number.as_f64().into(),
        Json::Array(items) => items.iter().map(floats).collect(),
        Json::Object(map) => map.iter().map(|(key, value)| (key.clone(), floats(value))).collect(),
        other => other.clone(),
    }
}

fn render(functions: &Arc<Functions>, template: &str, values: &Json) -> Result<String, Error> {
    let mut set = TemplateSet::new(functions.clone(), MissingKey::Zero);
    set.parse(NAME, template)?;
    let mut ctx = Ctx::new(Budget::default(), UNIX_EPOCH + RECORDED, 1);
    let seed = Seed::new(&mut ctx.heap).root_type(Type::Named(&VALUES));
    let values = seed.deserialize(floats(values)).unwrap();
    let data = ctx.heap.new_map();
    ctx.heap.set(data, "Values", values);
    let out = set.execute(&mut ctx, NAME, &data.into())?;
    Ok(out.to_str_lossy().replace("<no value>", ""))
}

#[test]
fn answers_as_helm_does() {
    let path = std::env::var("CATAMARAN_SPRIG_CASES").unwrap_or_else(|_| {
        concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/cases.jsonl").into()
    });
    let functions = Arc::new(catamaran_sprig::registry());
    let text = std::fs::read_to_string(path).unwrap();
    let mut report = String::new();
    let mut by_function: BTreeMap<String, usize> = BTreeMap::new();
    let (mut count, mut wrong) = (0, 0);
    for line in text.lines() {
        let case: Json = serde_json::from_str(line).unwrap();
        let template = case["t"].as_str().unwrap();
        count += 1;
        let ours = render(&functions, template, &case["v"]);
        let same = match (&ours, case["out"].as_str(), case["error"].as_str()) {
            (Ok(ours), Some(go), _) => ours == go,
            // Helm rearranges error texts; the message itself must be there.
            (Err(ours), _, Some(go)) => {
                let message = ours.root_message();
                let plain = message.split_once(": ").filter(|_| ours.tag().is_some());
                go.contains(plain.map_or(message, |(_, plain)| plain))
            }
            _ => false,
        };
        if !same {
            wrong += 1;
            let called = template.strip_prefix("{{ $x := ").and_then(|rest| rest.split(' ').next());
            *by_function.entry(called.unwrap_or("table").into()).or_default() += 1;
            if by_function.get(called.unwrap_or("table")).is_some_and(|seen| *seen <= 2) {
                let go = if case["out"].is_null() { &case["error"] } else { &case["out"] };
                let ours = ours.map_err(|error| error.to_string());
                writeln!(report, "{template}\n  ours {ours:?}\n  go   {go}").unwrap();
            }
        }
    }
    assert!(count >= 1000, "the table has shrunk to {count}");
    assert!(wrong == 0, "{wrong} of {count} differ {by_function:?}:\n{report}");
}
