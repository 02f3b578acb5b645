//! Errors for people at a terminal: beside Helm's text the source, the way there, and what may
//! have been meant. A program that reads us gets Helm's text alone.

mod schema;

use std::fmt::{self, Write as _};
use std::io::IsTerminal as _;

use catamaran_chart::render::{Frame, Missing, Trace};
use catamaran_chart::{ManifestError, RenderError};

use crate::charts::flags::{GlobalArgs, ValueArgs};

/// Forces explanations on (`always`) or off (`never`), whatever standard error is.
const VARIABLE: &str = "CATAMARAN_EXPLAIN";

/// An error with what explains it.
#[derive(Debug)]
pub(crate) struct Explained {
    /// Helm's text.
    pub(crate) text: String,
    /// Lines for people; empty if there is nothing to add.
    pub(crate) more: String,
}

impl fmt::Display for Explained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Explained {}

/// Whether and how errors are explained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Style {
    /// At all.
    wanted: bool,
    /// In colours.
    colours: bool,
}

impl Style {
    pub(crate) fn of(args: &GlobalArgs) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let variable = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
        let when = args.color.clone().or_else(|| variable("HELM_COLOR"));
        let always = when.as_deref() == Some("always");
        let wanted = match variable(VARIABLE).as_deref() {
            Some("always") => true,
            Some("never") => false,
            _ => terminal || always,
        };
        let plain = variable("NO_COLOR").is_some() || when.as_deref() == Some("never");
        Self { wanted, colours: always || terminal && !plain }
    }

    /// Helm's text, and what explains the error.
    pub(crate) fn explain(
        self,
        text: String,
        error: &RenderError,
        chart: &catamaran_chart::Chart,
        values: &ValueArgs,
    ) -> anyhow::Error {
        let more = if self.wanted { self.of_error(error, chart, values) } else { String::new() };
        Explained { text, more }.into()
    }

    fn of_error(
        self,
        error: &RenderError,
        chart: &catamaran_chart::Chart,
        values: &ValueArgs,
    ) -> String {
        match error {
            RenderError::Parse { trace, .. } | RenderError::Execute { trace, .. } => {
                self.of_trace(trace)
            }
            RenderError::Manifest(error) => self.of_manifest(error),
            RenderError::Schema(faults) => schema::explain(self, faults, chart, values),
            _ => String::new(),
        }
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.colours { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    fn faint(self, text: &str) -> String {
        self.paint("34", text)
    }

    fn help(self, text: &str) -> String {
        format!("{} {text}\n", self.paint("1;36", "help:"))
    }

    fn of_trace(self, trace: &Trace) -> String {
        let mut text = String::new();
        let last = trace.frames.len().saturating_sub(1);
        for (at, frame) in trace.frames.iter().enumerate() {
            let message = if at == last { frame.message.as_str() } else { "from here" };
            text.push_str(&self.frame(frame, message, at == last));
        }
        if let Some(missing) = &trace.missing {
            text.push_str(&self.help(&told(missing)));
        }
        text
    }

    /// The line of a file, and what is meant underlined.
    fn frame(self, frame: &Frame, message: &str, is_cause: bool) -> String {
        let Frame { file, line, span, source, expression, .. } = frame;
        let column = if span.is_empty() { frame.column } else { span.start };
        let place = format!("{file}:{line}:{}", column + 1);
        if source.is_empty() {
            // The text that `tpl` runs is in no file.
            let expression = self.paint("1;31", expression);
            return format!("{} {place}: {expression}: {message}\n", self.faint("-->"));
        }
        let (code, mark) = if is_cause { ("1;31", '^') } else { ("1;33", '-') };
        let under = source.get(span.clone()).map_or(1, |text| text.chars().count()).max(1);
        let marks = self.paint(code, &format!("{} {message}", mark.to_string().repeat(under)));
        self.lines(&place, *line, source, column, &marks)
    }

    fn lines(self, place: &str, line: usize, source: &str, column: usize, marks: &str) -> String {
        let number = line.to_string();
        let margin = " ".repeat(number.len());
        // Tabs stay tabs, so that the marks stand below what they mean.
        let before = source.get(..column).unwrap_or_default();
        let indent: String = before.chars().map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        let bar = self.faint("|");
        format!(
            "{margin}{} {place}\n{margin} {bar}\n{} {bar} {source}\n{margin} {bar} {indent}{marks}\n",
            self.faint("-->"),
            self.faint(&number)
        )
    }

    /// The rendered lines around what is no YAML.
    fn of_manifest(self, error: &ManifestError) -> String {
        /// Lines shown before and after.
        const AROUND: usize = 3;
        let Some((line, column)) = error.place() else { return String::new() };
        let width = (line + AROUND).to_string().len();
        let bar = self.faint("|");
        let place = format!("{}, rendered, line {line} of the document", error.file);
        let mut text = format!("{}{} {place}\n", " ".repeat(width), self.faint("-->"));
        let first = line.saturating_sub(AROUND).max(1);
        let lines = error.document.lines().enumerate().map(|(at, text)| (at + 1, text));
        for (number, source) in lines.filter(|(n, _)| (first..=line + AROUND).contains(n)) {
            let shown = self.faint(&format!("{number:>width$}"));
            let _ = writeln!(text, "{shown} {bar} {source}");
            if number == line {
                let indent = " ".repeat(column.saturating_sub(1));
                let why = error.message.rsplit(": ").next().unwrap_or_default();
                let marks = self.paint("1;31", &format!("^ {why}"));
                let _ = writeln!(text, "{} {bar} {indent}{marks}", " ".repeat(width));
            }
        }
        text + &self.help("--debug prints all that was rendered")
    }
}

fn told(missing: &Missing) -> String {
    let Missing { path, found, nearest } = missing;
    let fault = format!("values path {path} is {found}");
    match nearest {
        Some(nearest) => format!("{fault}; did you mean `{nearest}`?"),
        None => fault,
    }
}
