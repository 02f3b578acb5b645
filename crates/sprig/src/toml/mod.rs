//! TOML in templates, as `BurntSushi/toml` 1.6 writes and reads it.

mod numbers;
mod read;
mod scan;
mod strings;
mod write;

use catamaran_gotemplate::{Ctx, Func, Heap, Type, Value};

use crate::args::{Outcome, any, bytes};
use crate::dates::toml_date;
use read::{Document, Node, Stop};
use write::Floats;

items! {
    /// A value as TOML; the text of the error if it has no TOML form.
    helm "VALUE -> string",
        r#"{{ toToml (dict "port" 80 "tags" (list "a")) }}"# => "port = 80\ntags = [\"a\"]\n";
    "toToml"(Any) => |ctx, args| to_toml(ctx, args, Floats::Shortest);
    /// As `toToml`; what has no TOML form ends the rendering.
    helm "VALUE -> string",
        r#"{{ mustToToml (dict "port" 80 "tags" (list "a")) }}"# => "port = 80\ntags = [\"a\"]\n";
    "mustToToml"(Any) => |ctx, args| {
        write::write(ctx, any(args, 0), Floats::Shortest).map(Value::string)
    };
    /// A map from TOML; an error becomes its key `Error`.
    helm "TEXT -> map", r#"{{ (fromToml "[server]\nport = 80").server.port }}"# => "80";
    "fromToml"(String) => |ctx, args| from_toml(ctx, bytes(args, 0));
}

/// The function as it was in Helm 3.18, with version 1.5 of that library.
pub(crate) const OF_HELM_3: &[Func] =
    &[Func::new("toToml", &[Type::Any], |ctx, args| to_toml(ctx, args, Floats::Decimal))];

fn to_toml(ctx: &mut Ctx, args: &[Value], floats: Floats) -> Outcome {
    match write::write(ctx, any(args, 0), floats) {
        Ok(text) => {
            ctx.meter.check_room(text.len())?;
            Ok(Value::string(text))
        }
        Err(error) if error.is_budget() || error.text().starts_with("reflect:") => Err(error),
        Err(error) => Ok(error.text().into()),
    }
}

/// `[]map[string]interface {}`: what `[[name]]` makes.
static TABLES: Type = Type::List(&Type::MAP);

fn from_toml(ctx: &mut Ctx, text: &[u8]) -> Outcome {
    ctx.meter.charge_steps(u64::try_from(text.len()).unwrap_or(u64::MAX))?;
    let offset = toml_date::local_offset(ctx);
    match read::read(&mut ctx.meter, text, offset) {
        Ok(document) => {
            let value = table(&mut ctx.heap, &document, 0);
            ctx.check_memory()?;
            Ok(value)
        }
        Err(Stop::Budget(error)) => Err(error),
        Err(Stop::Error(text)) => {
            let map = ctx.heap.new_map();
            ctx.heap.set(map, "Error", text);
            Ok(map.into())
        }
    }
}

/// A table of a document as a value; the reader has bounded how deep they nest.
fn table(heap: &mut Heap, document: &Document, at: usize) -> Value {
    let map = heap.new_map();
    for (key, item) in document.tables.get(at).into_iter().flatten() {
        let item = node(heap, document, item);
        heap.set(map, key.as_str(), item);
    }
    map.into()
}

fn node(heap: &mut Heap, document: &Document, of: &Node) -> Value {
    match of {
        Node::Plain(value) => value.clone(),
        Node::Table(at) => table(heap, document, *at),
        Node::Array(items) => {
            let items = items.iter().map(|item| node(heap, document, item)).collect();
            heap.new_list(items).into()
        }
        Node::Tables(all) => {
            let items = all.iter().map(|at| table(heap, document, *at)).collect();
            heap.new_list_of(TABLES, items).into()
        }
    }
}

/// A key of several parts.
fn dotted<T: AsRef<[u8]>>(parts: &[T]) -> String {
    let all: Vec<Vec<u8>> = parts.iter().map(|part| key_text(part.as_ref())).collect();
    String::from_utf8_lossy(&all.join(&b'.')).into_owned()
}

/// One part of a key, quoted if it must be.
fn key_text(part: &[u8]) -> Vec<u8> {
    let bare = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if !part.is_empty() && part.iter().all(bare) {
        return part.to_vec();
    }
    [b"\"", escaped(part).as_slice(), b"\""].concat()
}

/// The inside of a quoted string.
fn escaped(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 2);
    for byte in text {
        match byte {
            b'"' => out.extend(b"\\\""),
            b'\\' => out.extend(b"\\\\"),
            8 => out.extend(b"\\b"),
            b'\t' => out.extend(b"\\t"),
            b'\n' => out.extend(b"\\n"),
            12 => out.extend(b"\\f"),
            b'\r' => out.extend(b"\\r"),
            0..0x20 | 0x7f => out.extend(format!("\\u{byte:04x}").bytes()),
            byte => out.push(*byte),
        }
    }
    out
}
