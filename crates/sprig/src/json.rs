//! JSON in templates: written and read as Go's library does.

use std::io;

use catamaran_gotemplate::{Ctx, FuncError, MAX_VALUE_DEPTH, Value};
use catamaran_yaml::json_float;
use serde::Serialize as _;
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter, Serializer};

use crate::args::{Outcome, any, bytes, string};
use crate::yamls::{list_or_error, map_or_error};

mod read;

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
        let value = read::read(ctx, bytes(args, 0));
        map_or_error(ctx, value, "")
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
    let view = ctx.heap.view(value);
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
            let special = matches!(c, '\u{2028}' | '\u{2029}')
                || (self.escape && matches!(c, '<' | '>' | '&'));
            if special {
                writer.write_all(fragment.get(last..at).unwrap_or_default().as_bytes())?;
                write!(writer, "\\u{:04x}", u32::from(c))?;
                last = at + c.len_utf8();
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
