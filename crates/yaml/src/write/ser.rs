//! serde's side of the writer.
//!
//! Collections are written as their items come. Keys must come out in natural order, but may
//! arrive in any: a mapping remembers where each of its entries begins and ends in the text, and
//! if they were out of order it rearranges that piece of text when it is complete.

mod compound;

use std::cmp::Ordering;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::ser::{self, Serialize};

use compound::{Mapping, Sequence};

use super::key_text::KeyText;
use super::keys;
use super::look::Look;
use super::printer::Printer;
use crate::error::{Error, ErrorKind};
use crate::number::{go_float, json_float};
use crate::read::is_allowed;
use crate::{Dialect, MAX_DEPTH, Numbers};

/// What stands in front of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Nothing: it is the document.
    Root,
    /// `key:`
    Key,
    /// `-`, or `:` of a key that needed `?`: a collection can begin on the same line.
    Indicator,
}

/// Writes one value.
struct ValueWriter<'p> {
    printer: &'p mut Printer,
    place: Place,
    /// Column of the collection around.
    indent: usize,
    depth: usize,
}

/// The whole value as a document.
pub(crate) fn print<T: Serialize + ?Sized>(
    value: &T,
    dialect: Dialect,
    room: usize,
) -> Result<String, Error> {
    let mut printer = Printer::new(dialect, room);
    value.serialize(ValueWriter {
        printer: &mut printer,
        place: Place::Root,
        indent: 0,
        depth: 0,
    })?;
    Ok(printer.out)
}

impl<'p> ValueWriter<'p> {
    fn space(&mut self) {
        if self.place != Place::Root {
            self.printer.out.push(' ');
        }
    }

    fn word(mut self, word: &str) -> Result<(), Error> {
        self.printer.check(word.len())?;
        self.space();
        self.printer.out.push_str(word);
        self.printer.out.push('\n');
        Ok(())
    }

    fn text(mut self, text: &str) -> Result<(), Error> {
        let look = Look::at(text);
        self.printer.check_text(text, look, self.indent + 2)?;
        let text = through_json(text, look, self.printer.dialect)?;
        self.space();
        let look = if look.is_plain() { look } else { Look::at(&text) };
        self.printer.string(&text, look, self.indent + 2);
        self.printer.end_line();
        Ok(())
    }

    fn collection(self, mapping: bool) -> Result<Collection<'p>, Error> {
        self.printer.check(self.indent)?;
        if self.depth >= MAX_DEPTH {
            return Err(Error::new(ErrorKind::Print, format!("exceeded max depth of {MAX_DEPTH}")));
        }
        let under_key = self.place == Place::Key && !mapping && self.printer.dialect == Dialect::V2;
        let indent = match self.place {
            Place::Root => 0,
            Place::Key if under_key => self.indent,
            _ => self.indent + 2,
        };
        Ok(Collection {
            printer: self.printer,
            place: self.place,
            indent,
            depth: self.depth + 1,
            entries: Vec::new(),
            keys: String::new(),
            begun: false,
            simple: true,
        })
    }
}

/// What the way through JSON, which `toYaml` takes, does to a string: characters that the YAML
/// reader refuses are an error, and NEL, which it takes for a line break, becomes a space.
fn through_json(
    text: &str,
    look: Look,
    dialect: Dialect,
) -> Result<std::borrow::Cow<'_, str>, Error> {
    if dialect == Dialect::V3 || look.is_plain() {
        return Ok(text.into());
    }
    // Below the space, JSON escapes; what it leaves as it is must be allowed.
    if text.chars().any(|c| c >= ' ' && !is_allowed(c)) {
        return Err(Error::new(ErrorKind::Print, "yaml: control characters are not allowed"));
    }
    if !text.contains('\u{85}') {
        return Ok(text.into());
    }
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\0'..='\u{1f}' | '\u{2028}' | '\u{2029}' => {
                quoted.extend(format!("\\u{:04x}", u32::from(c)).chars());
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    crate::from_str::<String>(&quoted, Numbers::Exact).map(Into::into)
}

/// Keys must get through JSON too: in front of its `:` the reader takes one line, and not a long one.
fn check_key(key: &str, look: Look, dialect: Dialect) -> Result<(), Error> {
    if dialect == Dialect::V3 || (look.is_plain() && key.len() <= 160) {
        return Ok(());
    }
    through_json(key, look, dialect)?;
    let too_long = key.len() > 160 && json_length(key) > 1024;
    if too_long || key.contains('\u{85}') {
        return Err(Error::new(ErrorKind::Print, "yaml: did not find expected ',' or '}'"));
    }
    Ok(())
}

/// How many characters a string takes in Go's JSON, with its quotes.
fn json_length(text: &str) -> usize {
    let of = |c: char| match c {
        '"' | '\\' | '\n' | '\r' | '\t' | '\x08' | '\x0c' => 2,
        '\0'..='\u{1f}' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => 6,
        _ => 1,
    };
    2 + text.chars().map(of).sum::<usize>()
}

/// An entry of a mapping in the text.
struct Entry {
    /// Where its key ends among all of them.
    key: usize,
    start: usize,
    end: usize,
}

/// A sequence or mapping that is being written.
struct Collection<'p> {
    printer: &'p mut Printer,
    place: Place,
    indent: usize,
    depth: usize,
    entries: Vec<Entry>,
    /// The keys one behind the other.
    keys: String,
    begun: bool,
    simple: bool,
}

impl Collection<'_> {
    /// Comes to the place where the next item or key starts.
    fn next_line(&mut self) {
        if self.begun {
            self.printer.indent(self.indent);
            return;
        }
        self.begun = true;
        match self.place {
            Place::Root => {}
            Place::Key => {
                self.printer.out.push('\n');
                self.printer.indent(self.indent);
            }
            Place::Indicator => self.printer.out.push(' '),
        }
    }

    fn item<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.next_line();
        self.printer.out.push('-');
        let (indent, depth) = (self.indent, self.depth);
        value.serialize(ValueWriter {
            printer: self.printer,
            place: Place::Indicator,
            indent,
            depth,
        })
    }

    fn key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        let before = self.keys.len();
        key.serialize(KeyText(&mut self.keys))?;
        self.next_line();
        let key = self.keys.get(before..).unwrap_or_default();
        let look = Look::at(key);
        check_key(key, look, self.printer.dialect)?;
        let start = self.printer.out.len();
        self.printer.check_text(key, look, self.indent + 2)?;
        self.simple = self.printer.simple_key(key, look);
        if !self.simple {
            self.printer.out.push_str("? ");
            self.printer.string(key, look, self.indent + 2);
            self.printer.end_line();
            self.printer.indent(self.indent);
        }
        self.printer.out.push(':');
        self.entries.push(Entry { key: self.keys.len(), start, end: start });
        Ok(())
    }

    fn value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        let place = if self.simple { Place::Key } else { Place::Indicator };
        let (indent, depth) = (self.indent, self.depth);
        value.serialize(ValueWriter { printer: self.printer, place, indent, depth })?;
        if let Some(entry) = self.entries.last_mut() {
            entry.end = self.printer.out.len();
        }
        Ok(())
    }

    fn finish(self, empty: &str) {
        if !self.begun {
            self.printer.out.push_str(if self.place == Place::Root { "" } else { " " });
            self.printer.out.push_str(empty);
            self.printer.out.push('\n');
            return;
        }
        let Self { printer, indent, entries, keys, .. } = self;
        let end = |at: usize| entries.get(at).map_or(0, |entry| entry.key);
        let key = |at: usize| keys.get(at.checked_sub(1).map_or(0, end)..end(at));
        let order = |a: usize, b: usize| match (key(a), key(b)) {
            (Some(a), Some(b)) => keys::compare(a, b, printer.dialect),
            _ => Ordering::Equal,
        };
        let sorted = (1..entries.len()).all(|at| order(at, at - 1) != Ordering::Less);
        if sorted {
            return;
        }
        let mut indices: Vec<usize> = (0..entries.len()).collect();
        keys::sort_by_key(&mut indices, &order);
        let Some(first) = entries.first().map(|entry| entry.start) else { return };
        let written = printer.out.split_off(first);
        for (position, index) in indices.into_iter().enumerate() {
            let Some(entry) = entries.get(index) else { continue };
            if position > 0 {
                printer.indent(indent);
            }
            let text = written.get(entry.start - first..entry.end - first);
            printer.out.push_str(text.unwrap_or_default());
        }
    }
}

impl<'p> ser::Serializer for ValueWriter<'p> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Sequence<'p>;
    type SerializeTuple = Sequence<'p>;
    type SerializeTupleStruct = Sequence<'p>;
    type SerializeTupleVariant = ser::Impossible<(), Error>;
    type SerializeMap = Mapping<'p>;
    type SerializeStruct = Mapping<'p>;
    type SerializeStructVariant = ser::Impossible<(), Error>;

    fn serialize_bool(self, v: bool) -> Result<(), Error> {
        self.word(if v { "true" } else { "false" })
    }

    fn serialize_i8(self, v: i8) -> Result<(), Error> {
        self.serialize_i64(v.into())
    }

    fn serialize_i16(self, v: i16) -> Result<(), Error> {
        self.serialize_i64(v.into())
    }

    fn serialize_i32(self, v: i32) -> Result<(), Error> {
        self.serialize_i64(v.into())
    }

    fn serialize_i64(self, v: i64) -> Result<(), Error> {
        self.word(&v.to_string())
    }

    fn serialize_u8(self, v: u8) -> Result<(), Error> {
        self.serialize_u64(v.into())
    }

    fn serialize_u16(self, v: u16) -> Result<(), Error> {
        self.serialize_u64(v.into())
    }

    fn serialize_u32(self, v: u32) -> Result<(), Error> {
        self.serialize_u64(v.into())
    }

    fn serialize_u64(self, v: u64) -> Result<(), Error> {
        self.word(&v.to_string())
    }

    fn serialize_f32(self, v: f32) -> Result<(), Error> {
        // The shortest digits of the 32 bits, not those of the same number in 64.
        self.serialize_f64(v.to_string().parse().unwrap_or_else(|_| v.into()))
    }

    fn serialize_f64(self, v: f64) -> Result<(), Error> {
        if self.printer.dialect == Dialect::V3 {
            return match (v.is_nan(), v.is_infinite()) {
                (true, _) => self.word(".nan"),
                (_, true) => self.word(if v > 0.0 { ".inf" } else { "-.inf" }),
                _ => self.word(&go_float(v)),
            };
        }
        if !v.is_finite() {
            let message = format!("json: unsupported value: {}", go_float(v));
            return Err(Error::new(ErrorKind::Print, message));
        }
        // Through JSON and back: whole numbers become integers as far as 64 bits reach.
        let json = json_float(v);
        let whole = json.parse::<i64>().is_ok() || json.parse::<u64>().is_ok();
        match json.as_str() {
            "-0" => self.word("0"),
            json if whole => self.word(json),
            _ => self.word(&go_float(v)),
        }
    }

    fn serialize_char(self, v: char) -> Result<(), Error> {
        self.text(v.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, v: &str) -> Result<(), Error> {
        self.text(v)
    }

    fn serialize_bytes(self, v: &[u8]) -> Result<(), Error> {
        self.text(&STANDARD.encode(v))
    }

    fn serialize_none(self) -> Result<(), Error> {
        self.word("null")
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Error> {
        self.word("null")
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Error> {
        self.word("null")
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<(), Error> {
        self.text(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        let mut map = self.collection(true)?;
        map.key(variant)?;
        map.value(value)?;
        map.finish("{}");
        Ok(())
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Sequence<'p>, Error> {
        self.collection(false).map(Sequence)
    }

    fn serialize_tuple(self, _: usize) -> Result<Sequence<'p>, Error> {
        self.collection(false).map(Sequence)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Sequence<'p>, Error> {
        self.collection(false).map(Sequence)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, Error> {
        Err(ser::Error::custom("enum variants with several fields have no YAML form"))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Mapping<'p>, Error> {
        self.collection(true).map(Mapping)
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Mapping<'p>, Error> {
        self.collection(true).map(Mapping)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, Error> {
        Err(ser::Error::custom("enum variants with named fields have no YAML form"))
    }
}
