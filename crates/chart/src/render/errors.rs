//! Errors of templates, in Helm's layout.
//!
//! Helm takes Go's text apart again and puts it together in its own way; what
//! people see depends on how that text can be cut, so the same cuts are made here.

use catamaran_gotemplate::{Error, FuncError, Place};

use super::functions::{MARK_END, MARK_START};
use crate::error::Position;
use crate::{Profile, RenderError};

/// A file that does not parse: the position, and what follows the last `: `.
pub(super) fn parse(file: &str, error: &Error) -> RenderError {
    if error.kind().is_budget() {
        return RenderError::Budget {
            text: error.root_message().to_owned(),
            at: position(file, error),
        };
    }
    let raw = error.to_string();
    let tokens: Vec<&str> = raw.split(": ").collect();
    let text = match tokens.as_slice() {
        [_, location, .., message] => format!("parse error at ({location}): {message}"),
        [_, message] => format!("parse error at ({message}): {message}"),
        _ => format!("parse error in ({file}): {raw}"),
    };
    RenderError::Parse { text, at: position(file, error) }
}

/// Values that are too large before any template has run.
pub(super) fn values(chart: &str, error: &FuncError) -> RenderError {
    let at = Position { file: format!("{chart}/values.yaml"), line: 1, column: 0 };
    RenderError::Budget { text: error.text().to_owned(), at }
}

/// A file that failed while it ran.
pub(super) fn execute(file: &str, error: &Error, profile: Profile) -> RenderError {
    let at = position(file, error);
    let raw = error.to_string();
    if error.kind().is_budget() {
        return RenderError::Budget { text: error.root_message().to_owned(), at };
    }
    let (text, message) = match own_message(&raw) {
        Some((text, message)) => (text, message),
        None if profile == Profile::Helm43 => {
            (reformat(error).unwrap_or(raw), error.root_message().to_owned())
        }
        None => (words_of_helm_3(&raw), error.root_message().to_owned()),
    };
    RenderError::Execute { text, at, message }
}

/// Helm 3 has an older library of versions, which begins its errors with capitals.
fn words_of_helm_3(text: &str) -> String {
    let words = [
        ("invalid semantic version", "Invalid Semantic Version"),
        ("version segment starts with 0", "Version segment starts with 0"),
    ];
    let mut text = text.to_owned();
    for (new, old) in words {
        for function in ["semver", "semverCompare"] {
            let calling = format!("error calling {function}: ");
            text = text.replace(&format!("{calling}{new}"), &format!("{calling}{old}"));
        }
    }
    // Nor did it quote the constraint.
    let unquoted = text
        .split_once("error calling semverCompare: improper constraint: \"")
        .and_then(|(before, rest)| {
            let (constraint, after) = rest.split_once('"')?;
            let calling = "error calling semverCompare: improper constraint: ";
            Some([before, calling, constraint, after].concat())
        });
    unquoted.unwrap_or(text)
}

fn position(file: &str, error: &Error) -> Position {
    let at = |place: &Place| Position {
        file: place.file.clone(),
        line: u32::try_from(place.line).unwrap_or(0),
        column: u32::try_from(place.column).unwrap_or(0),
    };
    let unknown = || Position { file: file.to_owned(), ..Position::default() };
    error.places().first().map_or_else(unknown, at)
}

/// The text of `fail` or `required`, which is all that Helm shows of such an error.
fn own_message(raw: &str) -> Option<(String, String)> {
    let mut tokens = raw.splitn(3, ": ");
    let (location, rest) = (tokens.nth(1)?, tokens.next()?);
    let (_, rest) = rest.split_once(MARK_START)?;
    let (message, _) = rest.rsplit_once(MARK_END)?;
    Some((format!("execution error at ({location}): {message}"), message.to_owned()))
}

/// Helm 4's layout, three lines a level; `None` where one of the levels is an
/// error that comes from no template (of `tpl`, `index`, `eq`, a regular
/// expression), because then Helm 4 too shows Go's line as it is.
fn reformat(error: &Error) -> Option<String> {
    let mut levels: Vec<Level> = Vec::new();
    let mut text = error.to_string();
    loop {
        let level = Level::parse(&text)?;
        if levels.last() != Some(&level) {
            levels.push(level);
        }
        match inner(&text) {
            Some(next) => text = next,
            None => break,
        }
    }
    let whole: String = levels.iter().map(Level::show).collect();
    Some(whole.trim().to_owned())
}

/// What Go's `errors.Unwrap` would find: only errors of called functions are wrapped.
fn inner(text: &str) -> Option<String> {
    let (_, message) = text.split_once(": executing ")?.1.split_once(">: ")?;
    let called = message.strip_prefix("error calling ")?;
    Some(called.split_once(": ")?.1.to_owned())
}

#[derive(Debug, Default, PartialEq)]
struct Level {
    location: String,
    executing: String,
    message: String,
}

impl Level {
    fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix("template: ")?;
        if rest.starts_with("no template ") {
            return Some(Self { message: text.to_owned(), ..Self::default() });
        }
        Self::executing(rest).or_else(|| Self::simple(rest))
    }

    /// `f:l:c: executing "t" at <x>: message`, cut where an inner error starts.
    fn executing(rest: &str) -> Option<Self> {
        let (location, after) = rest.split_once(": executing ")?;
        let (name, after) = after.strip_prefix('"')?.split_once('"')?;
        let (at, message) = after.strip_prefix(" at <")?.split_once(">: ")?;
        Some(Self {
            location: location.to_owned(),
            executing: format!("executing \"{name}\" at <{at}>:"),
            message: cut(message),
        })
    }

    fn simple(rest: &str) -> Option<Self> {
        let (location, message) = rest.rsplit_once(": ")?;
        Some(Self {
            location: location.to_owned(),
            executing: String::new(),
            message: cut(message),
        })
    }

    fn show(&self) -> String {
        let mut text = String::new();
        for (part, after) in
            [(&self.location, "\n  "), (&self.executing, "\n    "), (&self.message, "\n")]
        {
            if !part.is_empty() {
                text.push_str(part);
                text.push_str(after);
            }
        }
        text
    }
}

fn cut(message: &str) -> String {
    message.split_once(" template:").map_or(message, |(head, _)| head).to_owned()
}
