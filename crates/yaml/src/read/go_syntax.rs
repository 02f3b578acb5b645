//! Nodes in Go's notation (`%#v`), which two of its messages show.

use std::collections::BTreeMap;

use super::reader::{Reader, Scalar};
use super::tree::{NodeId, NodeKind};
use crate::error::Error;
use crate::number::go_float;

/// Longer texts are cut: an error message is for people.
const LIMIT: usize = 4096;
/// Aliases in aliases are followed so far.
const MAX_ALIASES: usize = 8;
const NIL: &str = "interface {}(nil)";

/// The node as `%#v` prints it. A null inside a collection is `interface {}(nil)`.
pub(super) fn format(reader: &Reader<'_>, id: NodeId) -> Result<String, Error> {
    let mut out = String::new();
    write(reader, id, 0, &mut out, "<nil>")?;
    Ok(out)
}

fn write(
    reader: &Reader<'_>,
    id: NodeId,
    depth: usize,
    out: &mut String,
    null: &str,
) -> Result<(), Error> {
    if out.len() > LIMIT || depth > MAX_ALIASES {
        return Ok(());
    }
    let inside = NIL;
    match reader.document().node(id).map(|node| &node.kind) {
        Some(NodeKind::Sequence(items)) => {
            out.push_str("[]interface {}{");
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index == 0 { "" } else { ", " });
                write(reader, *item, depth, out, inside)?;
            }
            out.push('}');
        }
        Some(NodeKind::Mapping(_)) => {
            let mut texts = BTreeMap::new();
            pairs(reader, id, depth, &mut texts)?;
            let texts: Vec<_> =
                texts.into_iter().map(|(key, value)| format!("{key}:{value}")).collect();
            out.push_str("map[interface {}]interface {}{");
            out.push_str(&texts.join(", "));
            out.push('}');
        }
        Some(NodeKind::Alias { target, .. }) if *target < id => {
            write(reader, *target, depth + 1, out, null)?;
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

/// The pairs of a mapping, merges done; of equal keys the last.
fn pairs(
    reader: &Reader<'_>,
    id: NodeId,
    depth: usize,
    texts: &mut BTreeMap<String, String>,
) -> Result<(), Error> {
    if depth > MAX_ALIASES {
        return Ok(());
    }
    match reader.document().node(id).map(|node| &node.kind) {
        Some(NodeKind::Mapping(all)) => {
            for (key, value) in all {
                reader.budget.charge()?;
                if texts.values().map(String::len).sum::<usize>() > LIMIT {
                    break;
                }
                if reader.is_merge(*key) {
                    pairs(reader, *value, depth, texts)?;
                    continue;
                }
                let (mut name, mut text) = (String::new(), String::new());
                write(reader, *key, depth, &mut name, NIL)?;
                write(reader, *value, depth, &mut text, NIL)?;
                texts.insert(name, text);
            }
        }
        // Merged: the first of a list wins.
        Some(NodeKind::Sequence(items)) => {
            for item in items.iter().rev() {
                reader.budget.charge()?;
                pairs(reader, *item, depth + 1, texts)?;
            }
        }
        Some(NodeKind::Alias { target, .. }) if *target < id => {
            pairs(reader, *target, depth + 1, texts)?;
        }
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
