//! The YAML printer: what it prints of any value reads back as that value.
#![no_main]

use arbitrary::Unstructured;
use catamaran_fuzz::{generate, yaml};
use catamaran_yaml::{Numbers, from_str};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|data: &[u8]| {
    let Ok(value) = generate::value(&mut Unstructured::new(data), 6) else { return };
    // Numbers as the reader leaves them.
    let Ok(json) = serde_json::to_string(&value) else { return };
    if let Ok(value) = from_str::<Value>(&json, Numbers::Exact) {
        yaml::round_trip(&value);
    }
});
