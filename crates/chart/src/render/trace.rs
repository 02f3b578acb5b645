//! Errors of templates for people: the places they came through, and the value that is not there.

use std::ops::Range;

use catamaran_gotemplate::{Error, Heap, Map, Value};

/// A place that an error came through.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// The file, `demo/templates/a.yaml`, or `gotpl` for the text that `tpl` ran.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in bytes, from 0, as Helm tells it; 0 if only the line is known.
    pub column: usize,
    /// The template that ran: a file, or what `define` names; empty if the text does not parse.
    pub template: String,
    /// The expression as Go prints it; may be cut.
    pub expression: String,
    /// What went wrong here, without what the places further in say.
    pub message: String,
    /// The line of the file; empty where it is not known.
    pub source: String,
    /// Where in [`Self::source`] the expression is, in bytes.
    pub span: Range<usize>,
}

/// A path into the values that leads nowhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// As the user writes it in a values file: `image.tag`, `sub.image.tag` in a subchart.
    pub path: String,
    /// What is there instead: nothing, a null, or what is no table.
    pub found: &'static str,
    /// The key beside it that looks most alike, as a whole path.
    pub nearest: Option<String>,
}

/// How an error came about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// Outermost first: a file, the template it includes, the text that one runs.
    pub frames: Vec<Frame>,
    /// The value that is not there, if one is looked for where it failed.
    pub missing: Option<Missing>,
}

impl Trace {
    /// Takes an error apart; `text_of` knows the files.
    pub(super) fn of<'t>(error: &Error, text_of: impl Fn(&str) -> Option<&'t [u8]>) -> Self {
        let frames = error.places().iter().map(|place| {
            let line = text_of(&place.file).map(String::from_utf8_lossy);
            let source =
                line.as_deref().and_then(|text| text.lines().nth(place.line.checked_sub(1)?));
            let source = source.unwrap_or_default().to_owned();
            Frame {
                file: place.file.clone(),
                line: place.line,
                column: place.column,
                template: place.template.clone(),
                expression: place.expression.clone(),
                message: place.message.clone(),
                span: span(&source, place.column, &place.expression),
                source,
            }
        });
        Self { frames: frames.collect(), missing: None }
    }

    /// Looks for the value that is not there, innermost place first. `prefix` is where the chart's
    /// values are in the user's: `sub.`.
    pub(super) fn find_missing(&mut self, heap: &Heap, values: Map, prefix: &str) {
        let mut actions = self.frames.iter().rev().map(|frame| {
            if frame.source.is_empty() { frame.expression.as_str() } else { action(frame) }
        });
        self.missing = actions.find_map(|action| {
            paths(action).into_iter().find_map(|path| walk(heap, values, prefix, &path))
        });
    }
}

/// Where the expression stands in its line. Go's column is somewhere inside of it.
fn span(source: &str, column: usize, expression: &str) -> Range<usize> {
    let whole = expression.strip_suffix("...");
    let text = whole.unwrap_or(expression);
    let holds = |(at, _): &(usize, &str)| *at <= column && column <= at + text.len();
    let found = if text.is_empty() { None } else { source.match_indices(text).find(holds) };
    if let Some((start, _)) = found {
        let rest = source.get(start + text.len()..).unwrap_or_default();
        // What Go has cut goes on to the end of the pipeline's part.
        let more =
            if whole.is_some() { rest.find([' ', '|', ')', '}']).unwrap_or(rest.len()) } else { 0 };
        return start..start + text.len() + more;
    }
    if expression.is_empty() {
        let start = source.len() - source.trim_start().len();
        return start..source.trim_end().len().max(start);
    }
    let word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '$');
    let before = source.get(..column).unwrap_or_default();
    let after = source.get(column..).unwrap_or_default();
    let start = before.trim_end_matches(word).len();
    let end = column + after.find(|c| !word(c)).unwrap_or(after.len());
    if start < end && end <= source.len() { start..end } else { 0..0 }
}

/// The action around the expression, as far as it is on the line.
fn action(frame: &Frame) -> &str {
    let source = frame.source.as_str();
    let before = source.get(..frame.span.start).unwrap_or_default();
    let start = before.rfind("{{").unwrap_or(0);
    let rest = source.get(start..).unwrap_or_default();
    let end = rest.find("}}").unwrap_or(rest.len());
    rest.get(..end).unwrap_or_default()
}

/// Paths into the values: `image.tag` of `.Values.image.tag`.
fn paths(action: &str) -> Vec<Vec<String>> {
    const VALUES: &str = ".Values.";
    let ends = |c: char| !(c.is_alphanumeric() || matches!(c, '_' | '.'));
    let paths = action.match_indices(VALUES).filter_map(|(at, _)| {
        let rest = action.get(at + VALUES.len()..)?;
        let path = rest.get(..rest.find(ends).unwrap_or(rest.len()))?;
        let path: Vec<String> = path.split('.').map(str::to_owned).collect();
        path.iter().all(|key| !key.is_empty()).then_some(path)
    });
    paths.collect()
}

fn walk(heap: &Heap, values: Map, prefix: &str, path: &[String]) -> Option<Missing> {
    let mut table = values;
    for (at, key) in path.iter().enumerate() {
        let parents = path.get(..at).unwrap_or_default();
        let place = |key: &str| {
            let parents = parents.iter().map(String::as_str).chain([key]);
            format!("{prefix}{}", parents.collect::<Vec<_>>().join("."))
        };
        let missing = |found, nearest| Some(Missing { path: place(key), found, nearest });
        match heap.get(table, key.as_str()) {
            Some(Value::Map(inner)) => table = *inner,
            Some(Value::Nil) => return missing("null", None),
            Some(_) if at + 1 < path.len() => return missing("not a table", None),
            Some(_) => return None,
            None => {
                let keys = heap.map(table).entries.iter();
                let keys = keys.map(|(key, _)| key.to_str_lossy().into_owned());
                return missing("not set", nearest(key, keys).map(|key| place(&key)));
            }
        }
    }
    None
}

/// The text that is most alike, if any is alike enough to be what was meant.
pub(crate) fn nearest(wanted: &str, among: impl Iterator<Item = String>) -> Option<String> {
    let limit = (wanted.chars().count() / 3).max(1) + 1;
    let near = among.filter_map(|text| {
        let far = if text.eq_ignore_ascii_case(wanted) { 0 } else { distance(wanted, &text) };
        (far <= limit && far < text.chars().count()).then_some((far, text))
    });
    near.min().map(|(_, text)| text)
}

/// How many letters must be added, dropped or changed to make one text of the other.
fn distance(a: &str, b: &str) -> usize {
    /// Longer keys are not compared: the work grows with the product.
    const LONGEST: usize = 100;
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len() > LONGEST || b.len() > LONGEST {
        return usize::MAX;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut next = vec![i + 1];
        for ((y, above), diagonal) in b.iter().zip(row.iter().skip(1)).zip(&row) {
            let left = next.last().copied().unwrap_or_default();
            let change = diagonal + usize::from(x != y);
            next.push(change.min(above + 1).min(left + 1));
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_expression_is_found_around_gos_column() {
        let line = "  tag: {{ .Values.image.tag | quote }} # .Values.image.tag";
        assert_eq!(span(line, 17, ".Values.image.tag"), 10..27);
        assert_eq!(span(line, 17, ".Values.imag..."), 10..27);
        assert_eq!(span(line, 17, "something else"), 10..27);
        assert_eq!(span("  {{ if }}", 0, ""), 2..10);
        assert_eq!(span("", 5, "x"), 0..0);
    }

    #[test]
    fn the_nearest_key_is_alike_enough() {
        let near = |wanted: &str, keys: &[&str]| nearest(wanted, keys.iter().map(|k| (*k).into()));
        assert_eq!(near("tag", &["name", "tags", "other"]).as_deref(), Some("tags"));
        assert_eq!(near("pullpolicy", &["pullPolicy", "pull"]).as_deref(), Some("pullPolicy"));
        assert_eq!(near("repositry", &["registry", "repository"]).as_deref(), Some("repository"));
        assert_eq!(near("tag", &["image", "x"]), None);
        assert_eq!(near("a", &["b"]), None);
    }

    #[test]
    fn paths_into_the_values_are_found() {
        let found = paths(r#"{{ include "x" $.Values.a.b | default .Values.c_d -}}"#);
        assert_eq!(found, [vec!["a".to_owned(), "b".into()], vec!["c_d".to_owned()]]);
    }
}
