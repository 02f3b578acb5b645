//! JSON in templates: written and read as Go's library does.

use std::io;

use catamaran_gotemplate::{Ctx, FuncError, Heap, MAX_VALUE_DEPTH, Meter, Type, Value};
use catamaran_yaml::json_float;
use serde::Serialize as _;
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter, Serializer};

use crate::args::{Outcome, any, bytes, string};
use crate::yamls::{list_or_error, map_or_error};

mod read;

/// Whether a text is one JSON value, as Go's decoder of a stream reads it.
///
/// # Errors
/// It is none; Go's text.
pub fn check_json(text: &[u8]) -> Result<(), String> {
    let mut ctx = Ctx::new(catamaran_gotemplate::Budget::default(), std::time::UNIX_EPOCH, 0);
    read::read(&mut ctx, text).map(|_| ()).map_err(|fault| match fault.as_str() {
        "unexpected end of JSON input" if text.trim_ascii().is_empty() => "EOF".to_owned(),
        "unexpected end of JSON input" => "unexpected EOF".to_owned(),
        _ if fault.ends_with("after top-level value") => {
            "invalid character after top-level value".to_owned()
        }
        _ => fault,
    })
}

items! {
    /// A value as JSON; `""` if it has no JSON form.
    sprig "VALUE -> string",
        r#"{{ toJson (dict "a" (list 1 "<b>")) }}"# => r#"{"a":[1,"\u003cb\u003e"]}"#;
    "toJson"(Any) => |ctx, args| written(ctx, any(args, 0), false, true, false);
    /// As `toJson`; what has no JSON form ends the rendering.
    sprig "VALUE -> string",
        r#"{{ mustToJson (dict "a" (list 1 "<b>")) }}"# => r#"{"a":[1,"\u003cb\u003e"]}"#;
    "mustToJson"(Any) => |ctx, args| written(ctx, any(args, 0), false, true, true);
    /// A value as JSON on several lines, indented by two; `""` if it has no JSON form.
    sprig "VALUE -> string",
        r#"{{ toPrettyJson (dict "a" (list 1)) }}"# => "{\n  \"a\": [\n    1\n  ]\n}";
    "toPrettyJson"(Any) => |ctx, args| written(ctx, any(args, 0), true, true, false);
    /// As `toPrettyJson`; what has no JSON form ends the rendering.
    sprig "VALUE -> string",
        r#"{{ mustToPrettyJson (dict "a" (list 1)) }}"# => "{\n  \"a\": [\n    1\n  ]\n}";
    "mustToPrettyJson"(Any) => |ctx, args| written(ctx, any(args, 0), true, true, true);
    /// As `mustToJson`, with `<`, `>` and `&` as they are.
    sprig "VALUE -> string", r#"{{ toRawJson (dict "a" (list 1 "<b>")) }}"# => r#"{"a":[1,"<b>"]}"#;
    "toRawJson" | "mustToRawJson"(Any) => |ctx, args| written(ctx, any(args, 0), false, false, true);
    /// A map from JSON; an error becomes its key `Error`.
    sprig "TEXT -> map", r#"{{ (fromJson "{\"a\": [1, 2]}").a }}"# => "[1 2]";
    "fromJson"(String) => |ctx, args| {
        let read = read::read_all(ctx, bytes(args, 0));
        let (value, fault) = read.map_or_else(|error| (Err(error), None), |(v, fault)| (Ok(v), fault));
        let map = map_or_error(ctx, value, "")?;
        if let (Some(fault), Some(map)) = (fault, map.as_map()) {
            ctx.heap.set(map, "Error", fault);
        }
        Ok(map)
    };
    /// A list from JSON; an error becomes its only element.
    helm "TEXT -> list", r#"{{ fromJsonArray "[1, \"b\"]" }}"# => "[1 b]";
    "fromJsonArray"(String) => |ctx, args| {
        let value = read::read(ctx, bytes(args, 0));
        list_or_error(ctx, value, "")
    };
    /// Any value from JSON; an error ends the rendering.
    sprig "TEXT -> any", r#"{{ mustFromJson "[1, 2]" }}"# => "[1 2]";
    "mustFromJson"(String) => |ctx, args| {
        let value = read::read(ctx, bytes(args, 0));
        ctx.check_memory()?;
        value.map_err(FuncError::new)
    };
}

fn written(ctx: &mut Ctx, value: &Value, pretty: bool, escape: bool, must: bool) -> Outcome {
    match write(ctx, value, pretty, escape) {
        Ok(text) => string(ctx, text),
        Err(error) if must || error.is_budget() => Err(error),
        Err(_) => Ok("".into()),
    }
}

fn write(ctx: &mut Ctx, value: &Value, pretty: bool, escape: bool) -> Result<Vec<u8>, FuncError> {
    charge_walk(ctx, value)?;
    let mut out = Bounded { out: Vec::new(), room: ctx.meter.bytes_left() / 2 };
    let view = ctx.heap.view(value).marking(NO_UTF8);
    let written = if pretty {
        let inner = PrettyFormatter::new();
        view.serialize(&mut Serializer::with_formatter(&mut out, GoFormatter { inner, escape }))
    } else {
        let inner = CompactFormatter;
        view.serialize(&mut Serializer::with_formatter(&mut out, GoFormatter { inner, escape }))
    };
    match written {
        Ok(()) => Ok(out.out),
        Err(error) if error.is_io() => ctx.meter.exhausted(),
        Err(error) => Err(FuncError::new(format!("json: {error}"))),
    }
}

/// A text that must not become too long.
struct Bounded {
    out: Vec<u8>,
    room: usize,
}

impl io::Write for Bounded {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        if self.out.len().saturating_add(part.len()) > self.room {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        self.out.extend_from_slice(part);
        Ok(part.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Walks over a value that is about to be written: charges what that costs (shared parts every
/// time), and refuses what JSON cannot hold. What is written is bounded where it is.
pub(crate) fn charge_walk(ctx: &mut Ctx, value: &Value) -> Result<(), FuncError> {
    let Ctx { heap, meter, .. } = ctx;
    walk(heap, meter, value, 0)
}

fn walk(heap: &Heap, meter: &mut Meter, value: &Value, depth: usize) -> Result<(), FuncError> {
    if depth > MAX_VALUE_DEPTH {
        return Err(FuncError::new("json: unsupported value: encountered a cycle"));
    }
    meter.charge_steps(8)?;
    match value {
        Value::Float64(number) if !number.is_finite() => {
            let text = catamaran_gotemplate::fmt::float(*number);
            Err(FuncError::new(format!("json: unsupported value: {text}")))
        }
        Value::Object(object) if object.go_type().underlying == Type::Complex128 => {
            Err(FuncError::new("json: unsupported type: complex128"))
        }
        // Whoever writes a text looks at it several times.
        Value::String(text) => meter.charge_steps(text.len() as u64),
        Value::Bytes(data) => meter.charge_scan(data.len()),
        Value::List(list) => {
            heap.items(*list).iter().try_for_each(|item| walk(heap, meter, item, depth + 1))
        }
        Value::Map(map) => heap.map(*map).entries.iter().try_for_each(|(key, item)| {
            meter.charge_steps(key.len() as u64)?;
            walk(heap, meter, item, depth + 1)
        }),
        _ => Ok(()),
    }
}

/// Stands for a byte that is no UTF-8 until it is written as `\ufffd`; no character of its own.
const NO_UTF8: char = '\u{ffffe}';

/// Go's JSON on top of another layout: its floats, its escapes.
struct GoFormatter<F> {
    inner: F,
    escape: bool,
}

impl<F: Formatter> Formatter for GoFormatter<F> {
    fn write_f64<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        writer.write_all(json_float(value).as_bytes())
    }

    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut last = 0;
        for (at, c) in fragment.char_indices() {
            let special = matches!(c, '\u{2028}' | '\u{2029}' | NO_UTF8)
                || (self.escape && matches!(c, '<' | '>' | '&'));
            if special {
                let length = c.len_utf8();
                writer.write_all(fragment.get(last..at).unwrap_or_default().as_bytes())?;
                let c = if c == NO_UTF8 { char::REPLACEMENT_CHARACTER } else { c };
                write!(writer, "\\u{:04x}", u32::from(c))?;
                last = at + length;
            }
        }
        writer.write_all(fragment.get(last..).unwrap_or_default().as_bytes())
    }

    fn begin_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.inner.begin_array(writer)
    }

    fn end_array<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.inner.end_array(writer)
    }

    fn begin_array_value<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.inner.begin_array_value(writer, first)
    }

    fn end_array_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.inner.end_array_value(writer)
    }

    fn begin_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.inner.begin_object(writer)
    }

    fn end_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.inner.end_object(writer)
    }

    fn begin_object_key<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.inner.begin_object_key(writer, first)
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.inner.begin_object_value(writer)
    }

    fn end_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.inner.end_object_value(writer)
    }
}
