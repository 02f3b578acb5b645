//! Writing TOML, as `BurntSushi/toml` does: first what is no table, then the tables, both by key.

use catamaran_gotemplate::{Ctx, FuncError, Kind, MAX_VALUE_DEPTH, Str, Value};

use super::{dotted, escaped, key_text};
use crate::dates::{Time, toml_date};
use crate::durations::{self, Duration};

/// How floats are spelled.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Floats {
    /// As version 1.6 does: `1e+06` where the exponent asks for it.
    Shortest,
    /// As version 1.5 does: never with an exponent.
    Decimal,
}

/// The text of a value.
pub(super) fn write(ctx: &mut Ctx, value: &Value, floats: Floats) -> Result<Vec<u8>, FuncError> {
    let mut writer = Writer { ctx, floats, out: Vec::new() };
    match writer.shape(value)? {
        Shape::Nil if value.is_nil() => {
            return Err(FuncError::new("reflect: call of reflect.Value.Type on zero Value"));
        }
        Shape::List(items) if writer.class_of_list(&items, 0)? == Class::Tables => {
            return Err(FuncError::new("toml: top-level values must be Go maps or structs"));
        }
        Shape::Nil => {}
        Shape::Table(entries) => writer.document(&entries)?,
        Shape::List(_) | Shape::Plain => writer.inline(value, 0)?,
    }
    Ok(writer.out)
}

struct Writer<'c> {
    ctx: &'c mut Ctx,
    floats: Floats,
    out: Vec<u8>,
}

/// What a value is to TOML.
enum Shape {
    Nil,
    Plain,
    List(Vec<Value>),
    Table(Vec<(Str, Value)>),
}

/// Where a value is written: in its line, or under a header of its own.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Nil,
    Inline,
    Table,
    Tables,
}

/// An entry of a table.
struct Entry {
    key: Str,
    item: Value,
    class: Class,
}

impl Entry {
    fn has_header(&self) -> bool {
        matches!(self.class, Class::Table | Class::Tables)
    }
}

/// A table that is still to be written.
struct Table {
    name: Vec<Str>,
    entries: Vec<(Str, Value)>,
    of_array: bool,
}

/// A part of a line that is still to be written.
enum Piece {
    Text(&'static str),
    Key(Str),
    Value(Value, usize),
}

impl Writer<'_> {
    fn shape(&mut self, value: &Value) -> Result<Shape, FuncError> {
        self.ctx.meter.charge_steps(4)?;
        Ok(match value {
            Value::Nil => Shape::Nil,
            Value::List(list) if self.ctx.heap.list(*list).nil => Shape::Nil,
            Value::Map(map) if self.ctx.heap.map(*map).nil => Shape::Nil,
            Value::List(_) | Value::Bytes(_) => {
                Shape::List(crate::args::try_items(self.ctx, value)?.unwrap_or_default())
            }
            Value::Map(map) => {
                crate::args::charge_items(self.ctx, self.ctx.heap.map(*map).entries.len())?;
                let entries = &self.ctx.heap.map(*map).entries;
                Shape::Table(
                    entries.iter().map(|(key, item)| (key.clone(), item.clone())).collect(),
                )
            }
            Value::Object(object) => {
                if object.is_nil() {
                    return Ok(Shape::Nil);
                }
                match self.ctx.heap.kind_of(value) {
                    Kind::Map | Kind::Slice => {
                        let entries = object.entries(&mut self.ctx.heap).unwrap_or_default();
                        if self.ctx.heap.kind_of(value) == Kind::Slice {
                            return Ok(Shape::List(
                                entries.into_iter().map(|(_, item)| item).collect(),
                            ));
                        }
                        let keyed =
                            |(key, item): (Value, Value)| Some((key.as_str()?.clone(), item));
                        Shape::Table(entries.into_iter().filter_map(keyed).collect())
                    }
                    Kind::Struct | Kind::Pointer if object.text().is_none() => {
                        // By Go's names; what they hide stays hidden.
                        let exported = |name: &str| name.starts_with(|c: char| c.is_uppercase());
                        let fields = object.fields().into_iter();
                        let fields = fields.filter(|(name, _)| exported(name));
                        Shape::Table(fields.map(|(name, item)| (name.into(), item)).collect())
                    }
                    _ => Shape::Plain,
                }
            }
            Value::Func(_) => return Err(FuncError::new("unsupported type: func")),
            _ => Shape::Plain,
        })
    }

    fn class(&mut self, value: &Value, depth: usize) -> Result<Class, FuncError> {
        Ok(match self.shape(value)? {
            Shape::Nil => Class::Nil,
            Shape::Plain => Class::Inline,
            Shape::Table(_) => Class::Table,
            Shape::List(items) => self.class_of_list(&items, depth)?,
        })
    }

    fn class_of_list(&mut self, items: &[Value], depth: usize) -> Result<Class, FuncError> {
        check_depth(depth)?;
        let mut tables = !items.is_empty();
        for item in items {
            match self.class(item, depth + 1)? {
                Class::Nil => {
                    return Err(FuncError::new("toml: cannot encode array with nil element"));
                }
                class => tables &= class == Class::Table,
            }
        }
        Ok(if tables { Class::Tables } else { Class::Inline })
    }

    fn push(&mut self, text: impl AsRef<[u8]>) -> Result<(), FuncError> {
        let text = text.as_ref();
        self.ctx.meter.charge_bytes(text.len())?;
        // It is there twice for a moment.
        self.ctx.meter.check_room(self.out.len())?;
        self.out.extend_from_slice(text);
        Ok(())
    }

    /// A newline, but not at the very beginning.
    fn newline(&mut self) -> Result<(), FuncError> {
        if self.out.is_empty() { Ok(()) } else { self.push("\n") }
    }

    /// The entries of a table in the order in which they are written: those in lines first.
    fn sorted(&mut self, entries: &[(Str, Value)], depth: usize) -> Result<Vec<Entry>, FuncError> {
        check_depth(depth)?;
        let mut all = Vec::with_capacity(entries.len());
        for (key, item) in entries {
            let class = self.class(item, depth)?;
            all.push(Entry { key: key.clone(), item: item.clone(), class });
        }
        all.sort_by_key(Entry::has_header);
        Ok(all)
    }

    /// The lines of the outermost table, and all tables in it.
    fn document(&mut self, entries: &[(Str, Value)]) -> Result<(), FuncError> {
        // Tables wait here with their names, the next one last: no native stack, however deep.
        let mut waiting = Vec::new();
        self.lines(&[], entries, &mut waiting)?;
        while let Some(Table { name, entries, of_array }) = waiting.pop() {
            if name.len() == 1 || of_array {
                self.newline()?;
            }
            let (open, close) = if of_array { ("[[", "]]\n") } else { ("[", "]\n") };
            self.push("  ".repeat(name.len() - 1))?;
            self.push(open)?;
            self.push(dotted(&name))?;
            self.push(close)?;
            self.lines(&name, &entries, &mut waiting)?;
        }
        Ok(())
    }

    /// The lines of a table; the tables in it are added to those that wait.
    fn lines(
        &mut self,
        name: &[Str],
        entries: &[(Str, Value)],
        waiting: &mut Vec<Table>,
    ) -> Result<(), FuncError> {
        let indent = "  ".repeat(name.len());
        let before = waiting.len();
        for Entry { key, item, class } in self.sorted(entries, name.len())? {
            let path = || [name, std::slice::from_ref(&key)].concat();
            match (class, self.shape(&item)?) {
                (Class::Nil, _) => {}
                (Class::Table, Shape::Table(entries)) => {
                    waiting.push(Table { name: path(), entries, of_array: false });
                }
                (Class::Tables, Shape::List(items)) => {
                    for item in items {
                        if let Shape::Table(entries) = self.shape(&item)? {
                            waiting.push(Table { name: path(), entries, of_array: true });
                        }
                    }
                }
                _ => {
                    self.push(&indent)?;
                    self.push(key_text(key.as_bytes()))?;
                    self.push(" = ")?;
                    self.inline(&item, name.len())?;
                    self.push("\n")?;
                }
            }
        }
        if let Some(added) = waiting.get_mut(before..) {
            added.reverse();
        }
        Ok(())
    }

    /// A value in its line.
    fn inline(&mut self, value: &Value, depth: usize) -> Result<(), FuncError> {
        let mut waiting = vec![Piece::Value(value.clone(), depth)];
        while let Some(piece) = waiting.pop() {
            match piece {
                Piece::Text(text) => self.push(text)?,
                Piece::Key(key) => {
                    self.push(key_text(key.as_bytes()))?;
                    self.push(" = ")?;
                }
                Piece::Value(value, depth) => {
                    let before = waiting.len();
                    self.pieces(&value, depth, &mut waiting)?;
                    if let Some(added) = waiting.get_mut(before..) {
                        added.reverse();
                    }
                }
            }
        }
        Ok(())
    }

    /// Writes a plain value; takes another apart.
    fn pieces(
        &mut self,
        value: &Value,
        depth: usize,
        out: &mut Vec<Piece>,
    ) -> Result<(), FuncError> {
        check_depth(depth)?;
        match self.shape(value)? {
            Shape::Nil => {}
            Shape::Plain => self.plain(value)?,
            Shape::List(items) => {
                out.push(Piece::Text("["));
                for (at, item) in items.into_iter().enumerate() {
                    if at > 0 {
                        out.push(Piece::Text(", "));
                    }
                    out.push(Piece::Value(item, depth + 1));
                }
                out.push(Piece::Text("]"));
            }
            Shape::Table(entries) => {
                out.push(Piece::Text("{"));
                let mut left = self.sorted(&entries, depth)?.into_iter().peekable();
                while let Some(entry) = left.next() {
                    if entry.class == Class::Nil {
                        continue;
                    }
                    out.push(Piece::Key(entry.key));
                    out.push(Piece::Value(entry.item, depth + 1));
                    // Even if all that follows is nil, and so left out.
                    if left.peek().is_some() {
                        out.push(Piece::Text(", "));
                    }
                }
                out.push(Piece::Text("}"));
            }
        }
        Ok(())
    }

    fn plain(&mut self, value: &Value) -> Result<(), FuncError> {
        match value {
            Value::String(text) => self.quoted(text.as_bytes()),
            Value::Float64(number) if number.is_nan() => {
                self.push(if number.is_sign_negative() { "-nan" } else { "nan" })
            }
            Value::Float64(number) if number.is_infinite() => {
                self.push(if *number < 0.0 { "-inf" } else { "inf" })
            }
            Value::Float64(number) => {
                let text = match self.floats {
                    Floats::Shortest => catamaran_gotemplate::fmt::float(*number),
                    Floats::Decimal => number.to_string(),
                };
                let whole = !text.contains(['e', '.']);
                self.push(&text)?;
                if whole { self.push(".0") } else { Ok(()) }
            }
            Value::Object(object) => {
                if let Some(time) = value.downcast::<Time>() {
                    return self.push(toml_date::write(time));
                }
                if let Some(duration) = value.downcast::<Duration>() {
                    return self.quoted(durations::format(duration.0).as_bytes());
                }
                match (object.int(), object.plain()) {
                    (Some(number), _) => self.push(number.to_string()),
                    (None, Some(Value::String(text))) => self.quoted(text.as_bytes()),
                    _ => self.push(object.text().unwrap_or_default()),
                }
            }
            other => {
                let text = self.ctx.print(other)?;
                self.push(text)
            }
        }
    }

    fn quoted(&mut self, text: &[u8]) -> Result<(), FuncError> {
        self.ctx.meter.check_room(text.len().saturating_mul(12))?;
        self.ctx.meter.charge_steps(text.len() as u64)?;
        self.push([b"\"", escaped(text).as_slice(), b"\""].concat())
    }
}

fn check_depth(depth: usize) -> Result<(), FuncError> {
    if depth > MAX_VALUE_DEPTH { Err(FuncError::new("toml: exceeded max depth")) } else { Ok(()) }
}
