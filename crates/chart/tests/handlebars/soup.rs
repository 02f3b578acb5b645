//! Texts at random, of what templates are made of: each is rendered or refused, none ends us.
//! `SOUPS=20000 SEED=7` has more of them.

use super::{CHART, notes};

const PARTS: &[&str] = &[
    "{{",
    "}}",
    "{{{",
    "}}}",
    "{{{{",
    "}}}}",
    "{{~",
    "~}}",
    "{{#",
    "{{/",
    "{{^",
    "{{>",
    "{{#>",
    "{{#*",
    "{{*",
    "{{&",
    "{{!",
    "{{!--",
    "--}}",
    "{{else}}",
    "{{else if ",
    "{{~else~}}",
    "{{^}}",
    "{{else",
    "{{/if}}",
    "{{/each}}",
    "{{/with}}",
    "{{/}}",
    "{{#if a}}",
    "{{#each Values.list}}",
    "{{#with Values.map as |m|}}",
    "{{#unless b}}",
    "{{#*inline \"p\"}}",
    "{{/inline}}",
    "{{> p}}",
    "{{> @partial-block}}",
    "{{#> p}}",
    "{{/p}}",
    "{{{{raw}}}}",
    "{{{{/raw}}}}",
    "if ",
    "each ",
    "upper ",
    "Values.name",
    "Values",
    "this",
    "../",
    "@index",
    "@root.",
    "@key",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "\"",
    "'",
    "\"a\"",
    "'b'",
    "1",
    "-1.5",
    "true",
    "null",
    " ",
    "  ",
    "\n",
    "\r\n",
    "\t",
    "\\",
    "\\{{",
    "\\\\{{",
    "|",
    "as |x|",
    "as |x y|",
    "=",
    "a=1",
    ".",
    "/",
    "..",
    ":",
    "-",
    "$",
    "é",
    "\u{e02e}",
    "x",
    "Files.Get \"a\"",
    "(now)",
    "and a b",
    "or (",
    "a.[b c]",
    "include \"p\" this",
    "@partial-block",
    "else",
];

/// `SplitMix64`.
fn next(state: &mut u64) -> usize {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    usize::try_from((z ^ (z >> 31)) >> 33).unwrap()
}

#[test]
fn texts_at_random_are_rendered_or_refused() {
    let cases = std::env::var("SOUPS").map_or(300, |count| count.parse().unwrap());
    let mut state = std::env::var("SEED").map_or(1, |seed| seed.parse().unwrap());
    for _ in 0..cases {
        let length = 1 + next(&mut state) % 14;
        let text: String = (0..length).map(|_| PARTS[next(&mut state) % PARTS.len()]).collect();
        if let Err(error) = notes(CHART, "templates/NOTES.txt.hbs", &text, &[]) {
            assert!(error.contains("templates/NOTES.txt.hbs"), "{text:?}: {error}");
            assert!(!error.contains("gave up"), "{text:?} has the parser panic");
        }
    }
}
