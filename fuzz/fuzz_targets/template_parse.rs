//! The lexer, parser and compiler of templates.
#![no_main]

use std::sync::{Arc, LazyLock};
use std::time::{Duration, SystemTime};

use catamaran_fuzz::limits::{Limits, within};
use catamaran_gotemplate::{Budget, Ctx, Functions, MissingKey, TemplateSet, Value};
use libfuzzer_sys::fuzz_target;

static FUNCTIONS: LazyLock<Arc<Functions>> =
    LazyLock::new(|| Arc::new(catamaran_sprig::registry()));
const LIMITS: Limits = Limits { time: Duration::from_millis(500), bytes: 16 << 20 };

fn parse(text: &[u8]) -> (TemplateSet, Result<(), String>) {
    let mut set = TemplateSet::new(FUNCTIONS.clone(), MissingKey::Zero);
    let parsed = set.parse("c/templates/a.yaml", text).map_err(|error| error.to_string());
    (set, parsed)
}

fuzz_target!(|text: &[u8]| {
    let (set, parsed) = within(LIMITS, || parse(text));
    let (again, parsed_again) = parse(text);
    assert_eq!(parsed, parsed_again, "the same text parses the same");
    let mut names: Vec<_> = set.names().collect();
    names.sort();
    let mut names_again: Vec<_> = again.names().collect();
    names_again.sort();
    assert_eq!(names, names_again, "the same text defines the same");
    match parsed {
        Err(error) => {
            let place = error.strip_prefix("template: c/templates/a.yaml:");
            let line = place.and_then(|place| place.split(':').next()?.parse::<usize>().ok());
            let lines = text.iter().filter(|byte| **byte == b'\n').count() + 1;
            assert!(line.is_some_and(|line| (1..=lines).contains(&line)), "{error}");
        }
        Ok(()) if !text.windows(2).any(|pair| pair == b"{{") => {
            let mut ctx = Ctx::new(Budget::default(), SystemTime::UNIX_EPOCH, 0);
            let output =
                set.execute(&mut ctx, "c/templates/a.yaml", &Value::Nil).map_err(|e| e.to_string());
            assert_eq!(
                output.as_ref().map(|text| text.as_bytes()),
                Ok(text),
                "plain text prints itself"
            );
        }
        Ok(()) => {}
    }
});
