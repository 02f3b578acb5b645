//! Nodes in Go's notation (`%#v`), which two of its messages show.

use super::reader::{Reader, Scalar};
use super::tree::{NodeId, NodeKind};
use crate::error::Error;
use crate::number::go_float;

/// Longer texts are cut: an error message is for people.
const LIMIT: usize = 4096;

/// The node as `%#v` prints it. A null inside a collection is `interface {}(nil)`.
pub(super) fn format(reader: &Reader<'_>, id: NodeId) -> Result<String, Error> {
    let mut out = String::new();
    write(reader, id, &mut out, "<nil>")?;
    Ok(out)
}

fn write(reader: &Reader<'_>, id: NodeId, out: &mut String, null: &str) -> Result<(), Error> {
    if out.len() > LIMIT {
        return Ok(());
    }
    let inside = "interface {}(nil)";
    match reader.document().node(id).map(|node| &node.kind) {
        Some(NodeKind::Sequence(items)) => {
            out.push_str("[]interface {}{");
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index == 0 { "" } else { ", " });
                write(reader, *item, out, inside)?;
            }
            out.push('}');
        }
        Some(NodeKind::Mapping(pairs)) => {
            let mut texts = Vec::new();
            for (key, value) in pairs.iter().take(LIMIT) {
                let mut text = String::new();
                write(reader, *key, &mut text, inside)?;
                text.push(':');
                write(reader, *value, &mut text, inside)?;
                texts.push(text);
            }
            texts.sort();
            out.push_str("map[interface {}]interface {}{");
            out.push_str(&texts.join(", "));
            out.push('}');
        }
        Some(NodeKind::Alias { target, .. }) if *target < id && out.len() < LIMIT => {
            out.push_str("...");
        }
        Some(NodeKind::Scalar { .. }) => match reader.scalar(id)? {
            Scalar::Null => out.push_str(null),
            Scalar::Bool(value) => out.push_str(if value { "true" } else { "false" }),
            Scalar::Int(value) => out.push_str(&value.to_string()),
            Scalar::Uint(value) => out.extend(format!("{value:#x}").chars()),
            Scalar::Float(value) => out.push_str(&go_float(value)),
            Scalar::Text(value) => out.push_str(&quote(value)),
            Scalar::Owned(value) => out.push_str(&quote(&value)),
        },
        _ => {}
    }
    Ok(())
}

/// Go's `strconv.Quote`, as far as printable characters go.
fn quote(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => out.extend(format!("\\x{:02x}", u32::from(c)).chars()),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
