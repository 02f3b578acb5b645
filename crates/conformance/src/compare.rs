//! Whether both sides agree; what may differ is listed here, and nowhere else.

use std::sync::LazyLock;

use regex::bytes::Regex;

use crate::case::Case;
use crate::outcome::Outcome;

/// A difference that COMPATIBILITY.md explains.
struct Allowed {
    /// The row there.
    row: &'static str,
    /// Whether a case differs for this reason.
    applies: fn(&Case, theirs: &Outcome, ours: &Outcome) -> bool,
}

const ALLOWED: &[Allowed] = &[
    Allowed {
        row: "Templates: `%p`, and pointers inside what is printed",
        applies: |_, theirs, ours| without_addresses(theirs) == without_addresses(ours),
    },
    Allowed {
        row: "Templates: the Go type of what `set`, `unset` and `merge` make of `.Values`",
        applies: |case, theirs, ours| {
            let changes = case.files.iter().any(|file| {
                let text = String::from_utf8_lossy(&file.data);
                ["set ", "unset ", "erge", "Overwrite "].iter().any(|name| text.contains(name))
            });
            changes && without_values_type(theirs) == without_values_type(ours)
        },
    },
    Allowed {
        row: "Templates: numbers and pointers inside a time",
        applies: |_, theirs, ours| {
            theirs.is_success() && ours.is_success() && theirs.show().contains("time.Location")
        },
    },
    Allowed {
        row: "Templates: `toYamlPretty` of `.Capabilities` and, in 3.18, of `.Chart`",
        applies: |case, theirs, ours| {
            let prints = case.files.iter().any(|file| {
                let text = String::from_utf8_lossy(&file.data);
                text.contains("toYamlPretty")
                    && ["Capabilities", "Chart", "$ ", "$)", "$}"]
                        .iter()
                        .any(|it| text.contains(it))
            });
            prints && theirs.is_success() && ours.is_success()
        },
    },
    Allowed {
        row: "Templates: room behind the end of a list",
        applies: |_, theirs, ours| {
            theirs.is_success()
                && ours.error().is_some_and(|text| text.contains("slice index out of bounds"))
        },
    },
    Allowed {
        row: "Templates: text that is no UTF-8",
        applies: |case, theirs, ours| {
            let made = case.files.iter().any(|file| {
                let text = String::from_utf8_lossy(&file.data);
                ["\\x", "b64dec", "b32dec", "AES"].iter().any(|name| text.contains(name))
            });
            made && as_text(theirs) == as_text(ours)
        },
    },
    Allowed {
        row: "Templates: text that is no UTF-8",
        applies: |case, theirs, ours| {
            let made = case.files.iter().any(|file| {
                let text = String::from_utf8_lossy(&file.data);
                let odd = ["\\x", "b64dec", "b32dec", "AES"].iter().any(|name| text.contains(name));
                odd && text.contains("egex")
            });
            made && theirs.is_success() && ours.is_success()
        },
    },
    Allowed {
        row: "Templates: NOTES.txt that is no UTF-8",
        applies: |_, theirs, ours| match (theirs, ours) {
            (Outcome::Success { notes: theirs, .. }, Outcome::Success { notes: ours, .. }) => {
                String::from_utf8_lossy(theirs) == String::from_utf8_lossy(ours)
            }
            _ => false,
        },
    },
    Allowed {
        row: "Charts: several faults of a schema at once",
        applies: |_, theirs, ours| match (theirs.error(), ours.error()) {
            (Some(theirs), Some(ours)) => sorted_properties(&theirs) == sorted_properties(&ours),
            _ => false,
        },
    },
    Allowed {
        row: "Templates: depth of values that are printed or merged",
        applies: |_, theirs, ours| matches!(theirs, Outcome::Crash(_)) && !is_panic(ours),
    },
];

/// How two outcomes compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Byte for byte the same.
    Equal,
    /// The difference is one that COMPATIBILITY.md explains, in the row of that name.
    Allowed(&'static str),
    /// Neither.
    Different,
}

/// Compares what both sides made of a case.
pub fn compare(case: &Case, theirs: &Outcome, ours: &Outcome) -> Verdict {
    if theirs == ours {
        return Verdict::Equal;
    }
    match ALLOWED.iter().find(|allowed| (allowed.applies)(case, theirs, ours)) {
        Some(allowed) => Verdict::Allowed(allowed.row),
        None => Verdict::Different,
    }
}

/// Helm tells faults of several properties, and names those that are one too many, in the order of
/// Go's maps, which is none.
fn sorted_properties(error: &str) -> Option<Vec<String>> {
    let sorted = |line: &str| {
        let Some((before, list)) = line.split_once("additional properties '") else {
            return line.to_owned();
        };
        let Some(list) = list.strip_suffix("' not allowed") else { return line.to_owned() };
        let mut names: Vec<_> = list.split("', '").collect();
        names.sort_unstable();
        format!("{before}{names:?}")
    };
    let mut lines: Vec<_> = error.lines().map(sorted).collect();
    lines.sort();
    error.contains("specifications of the schema").then_some(lines)
}

/// By the name of the type that a copy has.
fn without_values_type(outcome: &Outcome) -> String {
    let text = outcome.show();
    let text = text.replace("common.Values", "map[string]interface {}");
    text.replace("chartutil.Values", "map[string]interface {}")
}

/// With one sign for every byte that is no UTF-8, however it is shown.
fn as_text(outcome: &Outcome) -> String {
    let text = match outcome {
        Outcome::Success { stdout, notes } => {
            [String::from_utf8_lossy(stdout), String::from_utf8_lossy(notes)].concat()
        }
        other => other.show(),
    };
    let text = text.replace("\\ufffd", "\u{fffd}");
    let mut folded = String::new();
    for c in text.chars() {
        if !(c == '\u{fffd}' && folded.ends_with('\u{fffd}')) {
            folded.push(c);
        }
    }
    folded
}

fn is_panic(ours: &Outcome) -> bool {
    matches!(ours, Outcome::Crash(_))
}

fn without_addresses(outcome: &Outcome) -> Outcome {
    static ADDRESS: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new("(?:0x)?[cC]0{2,}[0-9a-fA-F]{6,}|0x[0-9a-f]{6,12}").ok());
    let Some(address) = ADDRESS.as_ref() else { return outcome.clone() };
    let without = |bytes: &[u8]| address.replace_all(bytes, &b"ADDRESS"[..]).into_owned();
    match outcome {
        Outcome::Success { stdout, notes } => {
            Outcome::Success { stdout: without(stdout), notes: without(notes) }
        }
        Outcome::Error(text) => Outcome::Error(without(text)),
        Outcome::Crash(text) => Outcome::Crash(text.clone()),
    }
}
