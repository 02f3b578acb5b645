//! The YAML reader, and what it reads printed again.
#![no_main]

use std::collections::BTreeMap;

use catamaran_fuzz::limits::within;
use catamaran_fuzz::yaml::{LIMITS, round_trip};
use catamaran_yaml::{Deserializer, Numbers, documents, from_str};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let exact = within(LIMITS, || from_str::<Value>(text, Numbers::Exact));
    let again = from_str::<Value>(text, Numbers::Exact);
    assert_eq!(shown(&exact), shown(&again), "the same text reads the same");
    let floats = within(LIMITS, || from_str::<Value>(text, Numbers::Float64));
    assert_eq!(exact.is_ok(), floats.is_ok(), "what becomes of numbers decides on no error");

    // Whatever is asked for, an answer and no panic.
    let _ = from_str::<BTreeMap<String, String>>(text, Numbers::Float64);
    let _ = from_str::<Vec<Option<f64>>>(text, Numbers::Exact);
    let _ = from_str::<String>(text, Numbers::Exact);
    let _ = from_str::<i64>(text, Numbers::Exact);
    let _ = from_str::<bool>(text, Numbers::Float64);

    within(LIMITS, || {
        for (index, document) in documents(text, Numbers::Exact).enumerate() {
            let document = document.and_then(read);
            if index == 0 {
                let first = document.as_ref().ok();
                assert!(
                    exact.is_err() || first.is_none() || exact.as_ref().ok() == first,
                    "{first:?}"
                );
            }
            if document.is_err() {
                break;
            }
        }
    });
    if let Ok(value) = exact {
        round_trip(&value);
    }
});

fn read(document: Deserializer) -> Result<Value, catamaran_yaml::Error> {
    serde::Deserialize::deserialize(document)
}

fn shown(result: &Result<Value, catamaran_yaml::Error>) -> Result<&Value, String> {
    result.as_ref().map_err(ToString::to_string)
}
