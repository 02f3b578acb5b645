//! Mistakes on the command line, in the words of helm's.

use std::io::{self, Write as _};
use std::process;

use anyhow::{Error, anyhow};
use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::words;

/// Prints what is wrong and ends the process: as helm does with code 1 for the commands that helm
/// has, as clap does with code 2 for the others. Also prints help; for helm's commands that is no
/// mistake where a command that is made of others was given none.
pub(crate) fn exit(error: &clap::Error) -> ! {
    let is_helms = std::env::args_os().nth(1).is_some_and(|first| words::is_helms(&first));
    if !is_helms {
        error.exit()
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let printed = write!(io::stdout(), "{}", error.render());
        process::exit(printed.is_err().into())
    }
    let Some(text) = text(error) else { error.exit() };
    eprintln!("Error: {text}");
    process::exit(1)
}

/// How helm complains of the number of a command's arguments.
pub(crate) fn wrong_count(requires: &str, usage: &str) -> Error {
    let words =
        usage.split(' ').take_while(|word| word.starts_with(|c: char| c.is_ascii_lowercase()));
    let command = words.collect::<Vec<_>>().join(" ");
    anyhow!("\"catamaran {command}\" {requires}\n\nUsage:  catamaran {usage}")
}

/// Whether it is no error but the help that was asked for.
pub(crate) fn is_help(error: &clap::Error) -> bool {
    error.kind() == ErrorKind::DisplayHelp
}

/// Whether helm tells of it even if help is asked for: a flag, not how many words there are.
pub(crate) fn is_mistake(error: &clap::Error) -> bool {
    text(error).is_some()
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
