//! The scan of plain YAML: what it takes for plain the reader reads, and finds the same in it.
#![no_main]

use std::collections::BTreeMap;

use catamaran_fuzz::limits::within;
use catamaran_fuzz::yaml::LIMITS;
use catamaran_yaml::{Numbers, Outlined, documents, from_str, outline};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|text: &str| {
    let mut told: BTreeMap<Vec<&str>, Vec<Outlined<'_>>> = BTreeMap::new();
    let plain = within(LIMITS, || {
        outline(text, |path, value| {
            let told = told.entry(path.to_vec()).or_default();
            // What begins on the next line is told after the key.
            if matches!(value, Outlined::Mapping | Outlined::Sequence) {
                told.pop_if(|last| *last == Outlined::Open);
            }
            told.push(value);
            true
        })
    });
    if plain.is_none() {
        return;
    }
    let value = match from_str::<Value>(text, Numbers::Exact) {
        Ok(value) => value,
        Err(error) => panic!("plain, but {error}: {text:?}"),
    };
    assert!(documents(text, Numbers::Exact).count() <= 1, "plain, but several documents");
    for (path, told) in told {
        // A prefix that comes twice is replaced by its last one.
        let [told] = told[..] else { return };
        // Several words are this key: `n`, `off`.
        if path.iter().any(|key| matches!(*key, "true" | "false")) {
            continue;
        }
        // Keys such as `yes` and `1.0` are spelled anew.
        let Some(there) = path.iter().try_fold(&value, |value, key| value.get(key)) else {
            assert!(path.iter().any(|key| key.len() < 6 || !is_word(key)), "{path:?}: {text:?}");
            continue;
        };
        let same = match told {
            Outlined::Text(text) => there.as_str() == Some(text),
            Outlined::Open => there.is_null() || there.is_object() || there.is_array(),
            Outlined::Mapping => there.is_object(),
            Outlined::Sequence => there.is_array(),
            Outlined::Empty => there.as_object().is_some_and(serde_json::Map::is_empty),
            Outlined::Other => true,
        };
        assert!(same, "{path:?}: {told:?} is {there:?}: {text:?}");
    }
});

fn is_word(key: &str) -> bool {
    key.starts_with(|c: char| c.is_ascii_alphabetic())
}
