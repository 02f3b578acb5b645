//! The parser of a line.

use std::borrow::Cow;
use std::str::Chars;

use serde_json::{Map, Value};

use super::Mode;
use super::error::{MAX_DEPTH, MAX_FILLED, MAX_INDEX, MAX_NAMES, StrvalsError};
use super::scalar::{floats, quoted, runes, typed};

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

pub(super) struct Parser<'a> {
    rest: Chars<'a>,
    mode: Mode<'a>,
    depth: usize,
    /// Whether a bracket that is not closed is a fault.
    strict: bool,
    /// How many items lists were filled up with.
    filled: usize,
}

impl<'a> Parser<'a> {
    pub(super) fn new(line: &'a str, mode: Mode<'a>) -> Self {
        Self { rest: line.chars(), mode, depth: 0, strict: false, filled: 0 }
    }

    /// A bracket that is not closed is a fault, or ends the line.
    pub(super) fn with_strict_brackets(self, strict: bool) -> Self {
        Self { strict, ..self }
    }

    pub(super) fn run(mut self, values: &mut Map<String, Value>) -> Result<(), StrvalsError> {
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
        self.set_index(list, index, at, value)
    }

    /// Fills up with nulls.
    fn set_index(
        &mut self,
        list: &mut Vec<Value>,
        index: i64,
        at: usize,
        value: Value,
    ) -> Result<(), Stop> {
        if index > MAX_INDEX {
            return Err(StrvalsError::LargeIndex(index).into());
        }
        if list.len() <= at {
            self.filled += at - list.len();
            if self.filled > MAX_FILLED {
                return Err(StrvalsError::Large.into());
            }
            list.resize(at + 1, Value::Null);
        }
        if let Some(there) = list.get_mut(at) {
            *there = value;
        }
        Ok(())
    }

    fn list_in_list(&mut self, list: &mut [Value], at: usize, names: usize) -> Result<Value, Stop> {
        let next = self.index()?;
        let there = match list.get_mut(at) {
            None | Some(Value::Null) => None,
            Some(Value::Array(there)) => Some(std::mem::take(there)),
            Some(other) => return Err(conversion(other, LIST)),
        };
        let is_there = there.is_some();
        let mut inner = there.unwrap_or_default();
        let result = self.item(&mut inner, next, names);
        if let (Err(_), true, Some(place)) = (&result, is_there, list.get_mut(at)) {
            *place = Value::Array(std::mem::take(&mut inner));
        }
        result.map(|()| Value::Array(inner))
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
        let readable = without_lone_surrogates(text);
        let mut found = serde_json::Deserializer::from_str(&readable).into_iter::<Value>();
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

/// JSON with `\ufffd` for each escaped half of a surrogate pair that has no other half, as Go reads it. No
/// byte is more or fewer.
fn without_lone_surrogates(text: &str) -> Cow<'_, str> {
    let mut mended = Cow::Borrowed(text);
    let mut at = 0;
    while let Some(found) = text.get(at..).and_then(|rest| rest.find('\\')) {
        at += found;
        at += match (surrogate(text, at), surrogate(text, at + 6)) {
            (Some(0xd800..0xdc00), Some(0xdc00..)) => 12,
            (Some(_), _) => {
                mended.to_mut().replace_range(at..at + 6, "\\ufffd");
                6
            }
            (None, _) => {
                let escaped = text.get(at + 1..).and_then(|rest| rest.chars().next());
                1 + escaped.map_or(0, char::len_utf8)
            }
        };
    }
    mended
}

/// The half of a surrogate pair for which an escape stands.
fn surrogate(text: &str, at: usize) -> Option<u16> {
    let digits = text.get(at..)?.strip_prefix("\\u")?.get(..4)?;
    let code = u16::from_str_radix(digits, 16).ok()?;
    (0xd800..0xe000).contains(&code).then_some(code)
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
