//! The YAML printer: what it prints of any value reads back as that value.
#![no_main]

use std::time::Duration;

use arbitrary::Unstructured;
use catamaran_fuzz::generate;
use catamaran_fuzz::limits::{Limits, within};
use catamaran_yaml::{Numbers, from_str, to_string, to_string_pretty};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

const LIMITS: Limits = Limits { time: Duration::from_secs(1), bytes: 64 << 20 };

fuzz_target!(|data: &[u8]| {
    let Ok(value) = generate::value(&mut Unstructured::new(data), 6) else { return };
    // Numbers as the reader leaves them.
    let Ok(json) = serde_json::to_string(&value) else { return };
    let Ok(value) = from_str::<Value>(&json, Numbers::Exact) else { return };
    for print in [to_string::<Value>, to_string_pretty::<Value>] {
        let Ok(text) = within(LIMITS, || print(&value)) else { continue };
        let back = within(LIMITS, || from_str::<Value>(&text, Numbers::Exact));
        let back = back.map_err(|error| error.to_string());
        assert_eq!(back.as_ref(), Ok(&value), "what is printed reads back: {text:?}");
    }
});
