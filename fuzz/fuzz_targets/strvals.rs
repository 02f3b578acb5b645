//! The lines of `--set` and its four kin.
#![no_main]

use std::time::Duration;

use catamaran_chart::values::strvals;
use catamaran_fuzz::limits::{Limits, within};
use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value, json};

// A list of 65,537 is allowed, in each of 30 lists, and a line has room for a hundred.
const LIMITS: Limits = Limits { time: Duration::from_secs(2), bytes: 512 << 20 };

type Parsed = Result<(), strvals::StrvalsError>;

fn files(line: &str, values: &mut Map<String, Value>) -> Parsed {
    strvals::parse_into_files(line, values, &mut |path| match path.len() % 5 {
        0 => Err("no such file".to_owned()),
        _ => Ok(format!("<{path}>")),
    })
}

fn old() -> Map<String, Value> {
    let mut old = json!({"a": {"b": [1, {"c": 2}]}, "l": [null, [1]], "s": "x", "n": null});
    old.as_object_mut().map(std::mem::take).unwrap_or_default()
}

fuzz_target!(|data: &[u8]| {
    let Ok(line) = std::str::from_utf8(data) else { return };
    let forms: [fn(&str, &mut Map<String, Value>) -> Parsed; 5] = [
        strvals::parse_into,
        strvals::parse_into_text,
        strvals::parse_into_json,
        strvals::parse_into_literal,
        files,
    ];
    for parse in forms {
        let run = || {
            let mut values = old();
            let parsed = parse(line, &mut values).map_err(|error| error.to_string());
            (parsed, values)
        };
        let first = within(LIMITS, run);
        assert_eq!(first, run(), "the same line sets the same");
    }
    sets_as_it_is(line);
});

/// A literal is the text itself, and so is a text whose special characters are escaped.
fn sets_as_it_is(text: &str) {
    let expected = Map::from_iter([("k".to_owned(), Value::from(text))]);
    let mut values = Map::new();
    let parsed = strvals::parse_into_literal(&format!("k={text}"), &mut values);
    assert_eq!((parsed, &values), (Ok(()), &expected), "--set-literal");

    let mut escaped = String::from("k=");
    for c in text.chars() {
        if matches!(c, '\\' | ',' | '{' | '}' | '[' | ']' | '=' | '.') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    let mut values = Map::new();
    let parsed = strvals::parse_into_text(&escaped, &mut values);
    assert_eq!((parsed, &values), (Ok(()), &expected), "--set-string");
}
