//! The grammar of `--set` and its kin: `a.b[0]=c,d={e,f}`.
//!
//! ```
//! use catamaran_chart::values::strvals;
//! let mut values = serde_json::Map::new();
//! strvals::parse_into("image.tag=v1,ports[0]=80,args={-v,--fast}", &mut values)?;
//! assert_eq!(
//!     serde_json::Value::from(values),
//!     serde_json::json!({"image": {"tag": "v1"}, "ports": [80], "args": ["-v", "--fast"]})
//! );
//! # Ok::<(), strvals::StrvalsError>(())
//! ```
//!
//! Everything follows Helm, what it lets pass included: a line that ends inside a name or an index
//! (`a[`, `a.`) sets nothing and is no error.

use std::str::Chars;

use catamaran_gotemplate::fmt::quote;
use serde_json::{Map, Value};

use crate::Profile;

/// The largest index of a list, as in Helm.
pub const MAX_INDEX: i64 = 65536;
/// How many names may be joined by dots, as in Helm.
pub const MAX_NAMES: usize = 30;
/// How deep lists and names may nest in all. Helm has no such limit; its stack grows.
const MAX_DEPTH: usize = 200;

/// Why a line is not understood; Helm's texts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StrvalsError {
    /// The line ends where a `=` should be.
    #[error("key {0} has no value")]
    NoValue(String),
    /// A comma where a `=` should be.
    #[error("key {0} has no value (cannot end with ,)")]
    Comma(String),
    /// A dot that no name follows.
    #[error("key map {0} has no value")]
    EmptyMap(String),
    /// A value list that is never closed.
    #[error("list must terminate with '}}'")]
    OpenList,
    /// What stands in brackets is no number.
    #[error("error parsing index: strconv.Atoi: parsing {text}: {fault}")]
    Index {
        /// What stands there, quoted.
        text: String,
        /// `invalid syntax` or `value out of range`.
        fault: &'static str,
    },
    /// A bracket that is not closed, to Helm 3; Helm 4 then sets nothing.
    #[error("error parsing index: EOF")]
    OpenIndex,
    /// An index below zero.
    #[error("negative {0} index not allowed")]
    NegativeIndex(i64),
    /// An index beyond [`MAX_INDEX`].
    #[error("index of {0} is greater than maximum supported index of {MAX_INDEX}")]
    LargeIndex(i64),
    /// Text between `]` and what may follow it.
    #[error("unexpected data at end of array index: {0}")]
    AfterIndex(String),
    /// More than [`MAX_NAMES`] names.
    #[error(
        "value name nested level is greater than maximum supported nested level of {MAX_NAMES}"
    )]
    Names,
    /// Deeper than this implementation goes.
    #[error("the line nests more than {MAX_DEPTH} levels deep")]
    Depth,
    /// The name stands for a value of another type already.
    #[error("unable to parse key: interface conversion: interface {{}} is {found}, not {wanted}")]
    Type {
        /// Go's type of what is there.
        found: &'static str,
        /// Go's type of what it would have to be.
        wanted: &'static str,
    },
    /// A value of `--set-json` is no JSON.
    #[error("invalid JSON value")]
    Json,
    /// A file of `--set-file` cannot be read.
    #[error("{0}")]
    File(String),
}

/// Reads a line of `--set` over what is there: `true`, `null` and whole numbers get their types.
///
/// # Errors
/// The line is not understood. What came before the fault is set.
pub fn parse_into(line: &str, values: &mut Map<String, Value>) -> Result<(), StrvalsError> {
    Parser::new(line, Mode::Typed).run(values)
}

/// Reads a line of `--set-string`: every value is a text.
///
/// # Errors
/// As [`parse_into`].
pub fn parse_into_text(line: &str, values: &mut Map<String, Value>) -> Result<(), StrvalsError> {
    Parser::new(line, Mode::Text).run(values)
}

/// Reads a line of `--set-json`: every value is JSON; an empty one is null.
///
/// # Errors
/// As [`parse_into`].
pub fn parse_into_json(line: &str, values: &mut Map<String, Value>) -> Result<(), StrvalsError> {
    Parser::new(line, Mode::Json).run(values)
}

/// Reads a line of `--set-literal`: everything after the first `=` is the value.
///
/// # Errors
/// As [`parse_into`].
pub fn parse_into_literal(line: &str, values: &mut Map<String, Value>) -> Result<(), StrvalsError> {
    Parser::new(line, Mode::Literal).run(values)
}

/// Reads a line of `--set-file`: every value is a path, which `read` turns into a text.
///
/// # Errors
/// As [`parse_into`], and [`StrvalsError::File`] with what `read` says.
pub fn parse_into_files(
    line: &str,
    values: &mut Map<String, Value>,
    read: &mut dyn FnMut(&str) -> Result<String, String>,
) -> Result<(), StrvalsError> {
    Parser::new(line, Mode::Files(read)).run(values)
}

/// Reads a line as the Helm of a profile does.
pub(super) fn set_line<'a>(
    line: &'a str,
    mode: Mode<'a>,
    values: &mut Map<String, Value>,
    profile: Profile,
) -> Result<(), StrvalsError> {
    let mut parser = Parser::new(line, mode);
    parser.strict = profile == Profile::Helm318;
    parser.run(values)
}

/// What becomes of the text after `=`.
pub(super) enum Mode<'r> {
    Typed,
    Text,
    Json,
    Literal,
    Files(&'r mut dyn FnMut(&str) -> Result<String, String>),
}

/// Why reading stops.
enum Stop {
    /// The line is at its end: no fault, wherever that is.
    End,
    Fault(StrvalsError),
}

impl From<StrvalsError> for Stop {
    fn from(fault: StrvalsError) -> Self {
        Self::Fault(fault)
    }
}

struct Parser<'a> {
    rest: Chars<'a>,
    mode: Mode<'a>,
    depth: usize,
    /// Whether a bracket that is not closed is a fault.
    strict: bool,
}

impl<'a> Parser<'a> {
    fn new(line: &'a str, mode: Mode<'a>) -> Self {
        Self { rest: line.chars(), mode, depth: 0, strict: false }
    }

    fn run(mut self, values: &mut Map<String, Value>) -> Result<(), StrvalsError> {
        loop {
            match self.key(values, 0) {
                Ok(()) => {}
                Err(Stop::End) => return Ok(()),
                Err(Stop::Fault(fault)) => return Err(fault),
            }
        }
    }

    fn is_literal(&self) -> bool {
        matches!(self.mode, Mode::Literal)
    }

    /// Text up to one of the stops, which is returned and passed; `None` is the end of the line.
    fn until(&mut self, stops: &[char]) -> (String, Option<char>) {
        let mut text = String::new();
        while let Some(c) = self.rest.next() {
            match c {
                c if stops.contains(&c) => return (text, Some(c)),
                '\\' if !self.is_literal() => match self.rest.next() {
                    Some(escaped) => text.push(escaped),
                    None => return (text, None),
                },
                c => text.push(c),
            }
        }
        (text, None)
    }

    fn deeper(&mut self) -> Result<(), Stop> {
        self.depth += 1;
        if self.depth > MAX_DEPTH { Err(StrvalsError::Depth.into()) } else { Ok(()) }
    }

    /// One name and what is set by it.
    fn key(&mut self, values: &mut Map<String, Value>, names: usize) -> Result<(), Stop> {
        self.deeper()?;
        let stops: &[char] =
            if self.is_literal() { &['=', '[', '.'] } else { &['=', '[', '.', ','] };
        let (key, last) = self.until(stops);
        let result = match last {
            None if key.is_empty() => Err(Stop::End),
            None => Err(StrvalsError::NoValue(quoted(&key)).into()),
            Some('=') => self.assign(values, key),
            Some('[') => self.list(values, key, names),
            Some('.') => self.table(values, &key, names + 1),
            Some(_) => Err(StrvalsError::Comma(quoted(&key)).into()),
        };
        self.depth -= 1;
        result
    }

    fn assign(&mut self, values: &mut Map<String, Value>, key: String) -> Result<(), Stop> {
        let (value, end) = match self.value() {
            Ok(value) => (value, Ok(())),
            // `a=` at the end of the line.
            Err(Stop::End) => (Value::from(""), Err(Stop::End)),
            Err(fault) => return Err(fault),
        };
        set(values, key, value);
        end
    }

    fn table(
        &mut self,
        values: &mut Map<String, Value>,
        key: &str,
        names: usize,
    ) -> Result<(), Stop> {
        if names > MAX_NAMES {
            return Err(StrvalsError::Names.into());
        }
        let mut inner = match values.get_mut(key) {
            None => Map::new(),
            Some(Value::Object(there)) => std::mem::take(there),
            Some(other) => return Err(conversion(other, MAP)),
        };
        let result = self.key(&mut inner, names);
        let empty = inner.is_empty();
        if !empty {
            set(values, key.to_owned(), Value::Object(inner));
        }
        match result {
            Ok(()) if empty => Err(StrvalsError::EmptyMap(quoted(key)).into()),
            result => result,
        }
    }

    fn list(
        &mut self,
        values: &mut Map<String, Value>,
        key: String,
        names: usize,
    ) -> Result<(), Stop> {
        let index = self.index()?;
        let mut list = match values.get_mut(&key) {
            None => Vec::new(),
            Some(Value::Array(there)) => std::mem::take(there),
            Some(other) => return Err(conversion(other, LIST)),
        };
        let result = self.item(&mut list, index, names);
        set(values, key, Value::Array(list));
        result
    }

    fn index(&mut self) -> Result<i64, Stop> {
        let (text, last) = self.until(&[']']);
        if last.is_none() {
            return Err(if self.strict { StrvalsError::OpenIndex.into() } else { Stop::End });
        }
        text.parse().map_err(|error: std::num::ParseIntError| {
            let fault = match error.kind() {
                std::num::IntErrorKind::PosOverflow | std::num::IntErrorKind::NegOverflow => {
                    "value out of range"
                }
                _ => "invalid syntax",
            };
            StrvalsError::Index { text: quoted(&text), fault }.into()
        })
    }

    /// What follows `]`.
    fn item(&mut self, list: &mut Vec<Value>, index: i64, names: usize) -> Result<(), Stop> {
        let at = usize::try_from(index).map_err(|_| StrvalsError::NegativeIndex(index))?;
        self.deeper()?;
        let (extra, stop) = self.until(&['[', '.', '=']);
        if !extra.is_empty() {
            return Err(StrvalsError::AfterIndex(runes(&extra)).into());
        }
        let value = match stop {
            None => return Err(Stop::End),
            Some('=') => match self.value() {
                Ok(value) => value,
                Err(Stop::End) => Value::from(""),
                Err(fault) => return Err(fault),
            },
            Some('[') => self.list_in_list(list, at, names)?,
            Some(_) => self.table_in_list(list, at, names)?,
        };
        self.depth -= 1;
        set_index(list, index, at, value)
    }

    fn list_in_list(&mut self, list: &mut [Value], at: usize, names: usize) -> Result<Value, Stop> {
        let next = self.index()?;
        let mut inner = match list.get_mut(at) {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(there)) => there.clone(),
            Some(other) => return Err(conversion(other, LIST)),
        };
        self.item(&mut inner, next, names)?;
        Ok(Value::Array(inner))
    }

    fn table_in_list(
        &mut self,
        list: &mut [Value],
        at: usize,
        names: usize,
    ) -> Result<Value, Stop> {
        let mut inner = match list.get_mut(at) {
            Some(Value::Object(there)) => std::mem::take(there),
            _ => Map::new(),
        };
        let result = self.key(&mut inner, names);
        // A table that is there already is changed even where the line ends early.
        if let (Err(_), Some(there)) = (&result, list.get_mut(at)) {
            *there = Value::Object(std::mem::take(&mut inner));
        }
        result.map(|()| Value::Object(inner))
    }

    /// What follows `=`.
    fn value(&mut self) -> Result<Value, Stop> {
        match self.mode {
            Mode::Json => return self.json(),
            Mode::Literal => {
                let rest = self.rest.as_str();
                self.rest = "".chars();
                return Ok(Value::from(rest));
            }
            _ => {}
        }
        let mut ahead = self.rest.clone();
        match ahead.next() {
            None => Err(Stop::End),
            Some('{') => {
                self.rest = ahead;
                self.braces()
            }
            Some(_) => {
                let (text, _) = self.until(&[',']);
                Ok(self.scalar(text)?)
            }
        }
    }

    /// `{a,b}`; a comma after it is passed.
    fn braces(&mut self) -> Result<Value, Stop> {
        let mut items = Vec::new();
        loop {
            let (text, last) = self.until(&[',', '}']);
            if last.is_none() {
                return Err(StrvalsError::OpenList.into());
            }
            items.push(self.scalar(text)?);
            if last == Some('}') {
                let mut ahead = self.rest.clone();
                if ahead.next() == Some(',') {
                    self.rest = ahead;
                }
                return Ok(Value::Array(items));
            }
        }
    }

    fn scalar(&mut self, text: String) -> Result<Value, StrvalsError> {
        match &mut self.mode {
            Mode::Typed => Ok(typed(text)),
            Mode::Files(read) => read(&text).map(Value::from).map_err(StrvalsError::File),
            _ => Ok(Value::from(text)),
        }
    }

    fn json(&mut self) -> Result<Value, Stop> {
        if self.nothing_before_comma() {
            return Ok(Value::Null);
        }
        let text = self.rest.as_str();
        let mut found = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        let Some(Ok(value)) = found.next() else { return Err(StrvalsError::Json.into()) };
        self.rest = text.get(found.byte_offset()..).unwrap_or_default().chars();
        self.nothing_before_comma();
        Ok(floats(value))
    }

    /// Passes white space, and one comma after it; whether there was nothing else.
    fn nothing_before_comma(&mut self) -> bool {
        loop {
            let mut ahead = self.rest.clone();
            match ahead.next() {
                None => return true,
                Some(',') => {
                    self.rest = ahead;
                    return true;
                }
                Some(c) if c.is_whitespace() => self.rest = ahead,
                Some(_) => return false,
            }
        }
    }
}

const MAP: &str = "map[string]interface {}";
const LIST: &str = "[]interface {}";

fn conversion(found: &Value, wanted: &'static str) -> Stop {
    let found = match found {
        Value::Null => "nil",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => LIST,
        Value::Object(_) => MAP,
    };
    StrvalsError::Type { found, wanted }.into()
}

/// An empty name sets nothing.
fn set(values: &mut Map<String, Value>, key: String, value: Value) {
    if !key.is_empty() {
        values.insert(key, value);
    }
}

/// Fills up with nulls.
fn set_index(list: &mut Vec<Value>, index: i64, at: usize, value: Value) -> Result<(), Stop> {
    if index > MAX_INDEX {
        return Err(StrvalsError::LargeIndex(index).into());
    }
    if list.len() <= at {
        list.resize(at + 1, Value::Null);
    }
    if let Some(there) = list.get_mut(at) {
        *there = value;
    }
    Ok(())
}

/// A leading zero keeps a number a text (a fraction is one anyway).
fn typed(text: String) -> Value {
    for (word, value) in
        [("true", Value::Bool(true)), ("false", Value::Bool(false)), ("null", Value::Null)]
    {
        if text.eq_ignore_ascii_case(word) {
            return value;
        }
    }
    match text.parse::<i64>() {
        Ok(number) if text == "0" || !text.starts_with('0') => Value::from(number),
        _ => Value::from(text),
    }
}

/// JSON on the command line has no integers, as values files have none.
pub(super) fn floats(value: Value) -> Value {
    match value {
        Value::Number(number) => number.as_f64().map_or(Value::Null, Value::from),
        Value::Array(items) => Value::Array(items.into_iter().map(floats).collect()),
        Value::Object(map) => {
            Value::Object(map.into_iter().map(|(key, value)| (key, floats(value))).collect())
        }
        other => other,
    }
}

fn quoted(text: &str) -> String {
    quote(&text.into())
}

/// Go's `%q` of a list of characters.
fn runes(text: &str) -> String {
    let quoted = |c: char| match c {
        '\'' => r"'\''".to_owned(),
        '"' => "'\"'".to_owned(),
        c => format!("'{}'", quote(&c.to_string().as_str().into()).trim_matches('"')),
    };
    let all: Vec<_> = text.chars().map(quoted).collect();
    format!("[{}]", all.join(" "))
}

#[cfg(test)]
mod tests;
