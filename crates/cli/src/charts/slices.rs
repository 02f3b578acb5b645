//! Flags that take several texts at once, `-f a.yaml,b.yaml`: one record of comma-separated values,
//! as Go's readers of flags and of such records have it.

use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::{StringValueParser, TypedValueParser};

/// What one such flag was given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Slice(pub Vec<String>);

/// Everything that all flags of a name were given, in order.
pub(crate) fn all(slices: &[Slice]) -> Vec<String> {
    slices.iter().flat_map(|slice| slice.0.iter().cloned()).collect()
}

impl FromStr for Slice {
    type Err = String;

    /// # Errors
    ///
    /// A quote that is none; the text of Go's.
    fn from_str(text: &str) -> Result<Self, String> {
        // Of several lines the first that is not empty counts; no text is no value.
        let line = text.trim_start_matches('\n').trim_end_matches('\n');
        if line.is_empty() {
            return if text.is_empty() { Ok(Self::default()) } else { Err("EOF".to_owned()) };
        }
        let mut fields = Vec::new();
        let mut rest = Some(line);
        while let Some(start) = rest {
            let (field, after) = match start.strip_prefix('"') {
                Some(quoted) => quoted_field(quoted, line)?,
                None => plain_field(start, line)?,
            };
            fields.push(field);
            rest = after;
        }
        Ok(Self(fields))
    }
}

/// What one flag of `key=value,…` was given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pairs(pub Vec<(String, String)>);

impl FromStr for Pairs {
    type Err = String;

    /// One pair is taken as it is, so that its value may have commas; several are a record.
    ///
    /// # Errors
    ///
    /// What is no pair, and a quote that is none; the texts of Go's.
    fn from_str(text: &str) -> Result<Self, String> {
        let pairs = match text.matches('=').count() {
            0 | 1 => vec![text.trim_matches('"').to_owned()],
            _ => text.parse::<Slice>()?.0,
        };
        let split = |pair: String| match pair.split_once('=') {
            Some((key, value)) => Ok((key.to_owned(), value.to_owned())),
            None => Err(format!("{pair} must be formatted as key=value")),
        };
        pairs.into_iter().map(split).collect::<Result<_, _>>().map(Self)
    }
}

type Field<'t> = (String, Option<&'t str>);

/// Up to the comma; what is behind it, if there is one.
fn plain_field<'t>(text: &'t str, line: &str) -> Result<Field<'t>, String> {
    let text_of_line = text.split('\n').next().unwrap_or(text);
    let (field, after) = match text_of_line.split_once(',') {
        Some((field, _)) => (field, text.get(field.len() + 1..)),
        None => (text_of_line, None),
    };
    match field.find('"') {
        None => Ok((field.to_owned(), after)),
        Some(at) => {
            let column = column(line, text) + at;
            Err(format!("parse error on line 1, column {column}: bare \" in non-quoted-field"))
        }
    }
}

/// `text` begins behind the opening quote.
fn quoted_field<'t>(text: &'t str, line: &str) -> Result<Field<'t>, String> {
    let misplaced = |at: &str| {
        let column = column(line, at);
        format!("parse error on line 1, column {column}: extraneous or missing \" in quoted-field")
    };
    let mut field = String::new();
    let mut rest = text;
    while let Some((inside, after)) = rest.split_once('"') {
        field.push_str(inside);
        if let Some(more) = after.strip_prefix('"') {
            field.push('"');
            rest = more;
            continue;
        }
        return match after.strip_prefix(',') {
            Some(next) => Ok((field, Some(next))),
            None if after.is_empty() || after.starts_with('\n') => Ok((field, None)),
            None => Err(misplaced(rest.get(inside.len()..).unwrap_or_default())),
        };
    }
    Err(misplaced(""))
}

/// Where the rest of a line begins, in bytes from 1.
fn column(line: &str, rest: &str) -> usize {
    line.len() - rest.len().min(line.len()) + 1
}

/// A flag's text that is a path, which may be empty.
pub(crate) fn path() -> impl TypedValueParser<Value = PathBuf> {
    StringValueParser::new().map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_taken_apart_as_in_go() {
        let read = |text: &str| text.parse::<Pairs>().map(|pairs| pairs.0);
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        for (text, pairs) in [
            ("a=b", vec![pair("a", "b")]),
            ("a=b,c", vec![pair("a", "b,c")]),
            ("\"a=b\"", vec![pair("a", "b")]),
            ("=", vec![pair("", "")]),
            ("a==b", vec![pair("a", "=b")]),
            ("a=b,c=d", vec![pair("a", "b"), pair("c", "d")]),
            ("\"a=b,c\",d=e", vec![pair("a", "b,c"), pair("d", "e")]),
        ] {
            assert_eq!(read(text).unwrap(), pairs, "{text}");
        }
        for (text, error) in [
            ("", " must be formatted as key=value"),
            ("a", "a must be formatted as key=value"),
            ("a=b,c,d=e", "c must be formatted as key=value"),
            ("a=1,b=\"2", "parse error on line 1, column 7: bare \" in non-quoted-field"),
        ] {
            assert_eq!(read(text).unwrap_err(), error, "{text}");
        }
    }

    #[test]
    fn records_are_taken_apart_as_in_go() {
        let read = |text: &str| text.parse::<Slice>().map(|slice| slice.0);
        for (text, fields) in [
            ("", &[][..]),
            ("a", &["a"]),
            ("a,,b,", &["a", "", "b", ""]),
            ("\"a,b\",c", &["a,b", "c"]),
            ("\"a\"\"b\"", &["a\"b"]),
            ("\"\"", &[""]),
            ("a b, c", &["a b", " c"]),
            ("a\nb", &["a"]),
            ("\n\na", &["a"]),
        ] {
            assert_eq!(read(text).unwrap(), fields, "{text:?}");
        }
        for (text, column, what) in [
            ("\"a", 3, "extraneous or missing \" in quoted-field"),
            ("\"a\"b", 3, "extraneous or missing \" in quoted-field"),
            ("b,\"a\" ", 5, "extraneous or missing \" in quoted-field"),
            ("a\"b", 2, "bare \" in non-quoted-field"),
            ("x,a\"b", 4, "bare \" in non-quoted-field"),
        ] {
            let error = format!("parse error on line 1, column {column}: {what}");
            assert_eq!(read(text).unwrap_err(), error, "{text:?}");
        }
    }
}
