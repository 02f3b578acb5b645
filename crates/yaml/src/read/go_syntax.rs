//! Nodes in Go's notation (`%#v`), which two of its messages show.

use std::cell::Cell;
use std::collections::BTreeMap;

use super::reader::{Reader, Scalar};
use super::tree::{NodeId, NodeKind};
use crate::error::Error;
use crate::number::go_float;

/// Longer texts are cut: an error message is for people. In bytes, and one more for each node.
const LIMIT: usize = 8192;
/// Aliases in aliases are followed so far.
const MAX_ALIASES: usize = 8;
const NIL: &str = "interface {}(nil)";

/// The node as `%#v` prints it. A null inside a collection is `interface {}(nil)`.
pub(super) fn format(reader: &Reader<'_>, id: NodeId) -> Result<String, Error> {
    let mut out = String::new();
    Writer { reader, left: Cell::new(LIMIT) }.write(id, 0, &mut out, "<nil>")?;
    Ok(out)
}

struct Writer<'r, 'd> {
    reader: &'r Reader<'d>,
    /// Of [`LIMIT`], whatever was repeated through aliases or dropped again included.
    left: Cell<usize>,
}

impl Writer<'_, '_> {
    fn write(&self, id: NodeId, depth: usize, out: &mut String, null: &str) -> Result<(), Error> {
        if depth > MAX_ALIASES || !self.take(1) {
            return Ok(());
        }
        let reader = self.reader;
        match reader.document().node(id).map(|node| &node.kind) {
            Some(NodeKind::Sequence(items)) => {
                self.put("[]interface {}{", out);
                for (index, item) in items.iter().enumerate() {
                    if self.left.get() == 0 {
                        break;
                    }
                    out.push_str(if index == 0 { "" } else { ", " });
                    self.write(*item, depth, out, NIL)?;
                }
                out.push('}');
            }
            Some(NodeKind::Mapping(_)) => {
                let mut texts = BTreeMap::new();
                self.pairs(id, depth, &mut texts)?;
                let texts: Vec<_> =
                    texts.into_iter().map(|(key, value)| format!("{key}:{value}")).collect();
                self.put("map[interface {}]interface {}{", out);
                out.push_str(&texts.join(", "));
                out.push('}');
            }
            Some(NodeKind::Alias { target, .. }) if *target < id => {
                self.write(*target, depth + 1, out, null)?;
            }
            Some(NodeKind::Scalar { .. }) => match reader.scalar(id)? {
                Scalar::Null => self.put(null, out),
                Scalar::Bool(value) => self.put(if value { "true" } else { "false" }, out),
                Scalar::Int(value) => self.put(&value.to_string(), out),
                Scalar::Uint(value) => self.put(&format!("{value:#x}"), out),
                Scalar::Float(value) => self.put(&go_float(value), out),
                Scalar::Text(value) => self.put(&quote(value), out),
                Scalar::Owned(value) => self.put(&quote(&value), out),
            },
            _ => {}
        }
        Ok(())
    }

    fn put(&self, text: &str, out: &mut String) {
        self.take(text.len());
        out.push_str(text);
    }

    /// Whether more may be shown; this is so much of it.
    fn take(&self, bytes: usize) -> bool {
        let left = self.left.get();
        self.left.set(left.saturating_sub(bytes));
        left > 0
    }

    /// The pairs of a mapping, merges done; of equal keys the last.
    fn pairs(
        &self,
        id: NodeId,
        depth: usize,
        texts: &mut BTreeMap<String, String>,
    ) -> Result<(), Error> {
        if depth > MAX_ALIASES || !self.take(1) {
            return Ok(());
        }
        let reader = self.reader;
        match reader.document().node(id).map(|node| &node.kind) {
            Some(NodeKind::Mapping(all)) => {
                for (key, value) in all {
                    if self.left.get() == 0 {
                        break;
                    }
                    if reader.is_merge(*key) {
                        self.pairs(*value, depth, texts)?;
                        continue;
                    }
                    let (mut name, mut text) = (String::new(), String::new());
                    self.write(*key, depth, &mut name, NIL)?;
                    self.write(*value, depth, &mut text, NIL)?;
                    texts.insert(name, text);
                }
            }
            // Merged: the first of a list wins.
            Some(NodeKind::Sequence(items)) => {
                for item in items.iter().rev() {
                    self.pairs(*item, depth + 1, texts)?;
                }
            }
            Some(NodeKind::Alias { target, .. }) if *target < id => {
                self.pairs(*target, depth + 1, texts)?;
            }
            _ => {}
        }
        Ok(())
    }
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
