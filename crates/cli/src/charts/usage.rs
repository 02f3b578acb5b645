//! Mistakes on the command line, in the words of helm's.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// The commands that helm has too.
const HELMS: [&str; 18] = [
    "template",
    "lint",
    "show",
    "inspect",
    "install",
    "upgrade",
    "rollback",
    "uninstall",
    "del",
    "delete",
    "un",
    "test",
    "status",
    "history",
    "hist",
    "dependency",
    "dep",
    "dependencies",
];

/// Prints what is wrong and ends the process: as helm does with code 1 for the commands that helm
/// has, as clap does with code 2 for the others. Also prints help.
pub(crate) fn exit(error: &clap::Error) -> ! {
    let is_helms = std::env::args().nth(1).is_some_and(|first| HELMS.contains(&first.as_str()));
    match text(error) {
        Some(text) if is_helms => {
            eprintln!("Error: {text}");
            std::process::exit(1)
        }
        _ => error.exit(),
    }
}

/// A word that begins with two dashes and is no flag of ours.
fn unknown(flag: &str) -> String {
    let is_bare = |word: &String| word.starts_with("---") || word.starts_with("--=");
    match std::env::args().find(is_bare).filter(|word| word.starts_with(flag)) {
        Some(word) => format!("bad flag syntax: {word}"),
        None => format!("unknown flag: {flag}"),
    }
}

/// A letter behind one dash that is no flag of ours, and those that were still to be read.
fn unknown_letter(letters: &str) -> String {
    let typed = std::env::args().find_map(|word| {
        let rest = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'))?;
        rest.find(letters).and_then(|at| rest.get(at..)).map(str::to_owned)
    });
    let typed = typed.as_deref().unwrap_or(letters);
    let first: String = typed.chars().take(1).collect();
    format!("unknown shorthand flag: '{first}' in -{typed}")
}

fn text(error: &clap::Error) -> Option<String> {
    let argument = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(argument)) => argument.as_str(),
        _ => "",
    };
    // Without the placeholder of its value: `--set <LINE>`.
    let flag = argument.split([' ', '=', '[']).next().unwrap_or_default();
    let value = match error.get(ContextKind::InvalidValue) {
        Some(ContextValue::String(value)) => value.as_str(),
        _ => "",
    };
    match error.kind() {
        ErrorKind::UnknownArgument => Some(match flag.strip_prefix('-') {
            Some(letters) if !letters.starts_with('-') => unknown_letter(letters),
            _ => unknown(flag),
        }),
        ErrorKind::InvalidValue if value.is_empty() => {
            // It must be the last thing on the line.
            let typed = std::env::args().next_back().unwrap_or_default();
            Some(match typed.strip_prefix('-').and_then(|letters| letters.chars().next_back()) {
                Some(letter) if !typed.starts_with("--") => {
                    format!("flag needs an argument: '{letter}' in -{letter}")
                }
                _ => format!("flag needs an argument: {typed}"),
            })
        }
        ErrorKind::ValueValidation | ErrorKind::InvalidValue => {
            let why = std::error::Error::source(error)
                .map_or_else(|| "no such value".to_owned(), ToString::to_string);
            let flag = match flag {
                "--generate-name" => "-g, --generate-name",
                "--api-versions" => "-a, --api-versions",
                "--labels" => "-l, --labels",
                "--output" => "-o, --output",
                "--values" => "-f, --values",
                flag => flag,
            };
            Some(format!("invalid argument {value:?} for \"{flag}\" flag: {why}"))
        }
        _ => None,
    }
}
