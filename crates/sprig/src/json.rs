//! JSON in templates: written and read as Go's library does.

use std::io;

use catamaran_gotemplate::{Ctx, FuncError, MAX_VALUE_DEPTH, Type, Value};
use catamaran_yaml::json_float;
use serde::Serialize as _;
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter, Serializer};

use crate::args::{Outcome, any, bytes, string};
use crate::yamls::{list_or_error, map_or_error};

mod read;

items! {
    /// A value as JSON; `""` if it has no JSON form.
    "toJson"(Any) => |ctx, args| written(ctx, any(args, 0), false, true, false);
    /// As `toJson`; what has no JSON form ends the rendering.
    "mustToJson"(Any) => |ctx, args| written(ctx, any(args, 0), false, true, true);
    /// A value as JSON on several lines, indented by two; `""` if it has no JSON form.
    "toPrettyJson"(Any) => |ctx, args| written(ctx, any(args, 0), true, true, false);
    /// As `toPrettyJson`; what has no JSON form ends the rendering.
    "mustToPrettyJson"(Any) => |ctx, args| written(ctx, any(args, 0), true, true, true);
    /// As `mustToJson`, with `<`, `>` and `&` as they are.
    "toRawJson" | "mustToRawJson"(Any) => |ctx, args| written(ctx, any(args, 0), false, false, true);
    /// A map from JSON; an error becomes its key `Error`.
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
    "fromJsonArray"(String) => |ctx, args| {
        let value = read::read(ctx, bytes(args, 0));
        list_or_error(ctx, value, "")
    };
    /// Any value from JSON; an error ends the rendering.
    "mustFromJson"(String) => |ctx, args| {
        let value = read::read(ctx, bytes(args, 0));
        ctx.meter.charge_bytes(0)?;
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
    let mut out = Vec::new();
    let view = ctx.heap.view(value).marking(NO_UTF8);
    let written = if pretty {
        let inner = PrettyFormatter::new();
        view.serialize(&mut Serializer::with_formatter(&mut out, GoFormatter { inner, escape }))
    } else {
        let inner = CompactFormatter;
        view.serialize(&mut Serializer::with_formatter(&mut out, GoFormatter { inner, escape }))
    };
    written.map_err(|error| FuncError::new(format!("json: {error}")))?;
    Ok(out)
}

/// Walks over a value that is about to be written: charges what that costs (shared parts every
/// time), and refuses what JSON cannot hold.
pub(crate) fn charge_walk(ctx: &mut Ctx, value: &Value) -> Result<(), FuncError> {
    let mut waiting = vec![(value.clone(), 0_usize)];
    while let Some((value, depth)) = waiting.pop() {
        if depth > MAX_VALUE_DEPTH {
            return Err(FuncError::new("json: unsupported value: encountered a cycle"));
        }
        ctx.meter.charge_steps(8)?;
        match &value {
            Value::Float64(number) if !number.is_finite() => {
                let text = ctx.print(&value)?;
                return Err(FuncError::new(format!("json: unsupported value: {text}")));
            }
            Value::Object(object) if object.go_type().underlying == Type::Complex128 => {
                return Err(FuncError::new("json: unsupported type: complex128"));
            }
            Value::String(text) => ctx.meter.charge_bytes(text.len())?,
            Value::Bytes(data) => ctx.meter.charge_bytes(data.len())?,
            Value::List(list) => {
                waiting.extend(ctx.heap.items(*list).iter().map(|item| (item.clone(), depth + 1)));
            }
            Value::Map(map) => {
                let entries = &ctx.heap.map(*map).entries;
                waiting.extend(entries.values().map(|item| (item.clone(), depth + 1)));
            }
            _ => {}
        }
    }
    Ok(())
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
