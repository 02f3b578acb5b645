//! Ranging over values.

use std::sync::Arc;

use super::{Flow, Machine};
use crate::compile::{Label, Slot};
use crate::error::FuncError;
use crate::fmt::print_all;
use crate::value::{List, Value};

/// What is left of a range.
#[derive(Debug)]
pub(super) enum Iter {
    Numbers {
        next: i128,
        end: i128,
        make: fn(i128) -> Value,
    },
    List {
        list: List,
        next: usize,
        len: usize,
        iface: bool,
    },
    Bytes {
        bytes: Arc<[u8]>,
        next: usize,
    },
    /// A map as it was when the range began, in the order of its keys.
    Entries {
        entries: std::vec::IntoIter<(Value, Value)>,
        count: usize,
        iface: bool,
    },
}

/// Go's conversion back to the type that is ranged over.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
mod make {
    use super::Value;

    pub(super) fn int(n: i128) -> Value {
        Value::Int(n as i64)
    }
    pub(super) fn int64(n: i128) -> Value {
        Value::Int64(n as i64)
    }
    pub(super) fn uint8(n: i128) -> Value {
        Value::Uint8(n as u8)
    }
    pub(super) fn uint64(n: i128) -> Value {
        Value::Uint64(n as u64)
    }
}

impl Iter {
    fn numbers(end: impl Into<i128>, make: fn(i128) -> Value) -> Self {
        Self::Numbers { next: 0, end: end.into(), make }
    }

    /// Entries that are held for it.
    pub(super) fn held(&self) -> usize {
        match self {
            Self::Entries { count, .. } => *count,
            _ => 0,
        }
    }

    /// Calls back with every value that is still to come.
    pub(super) fn each(&self, mut found: impl FnMut(&Value)) {
        match self {
            Self::List { list, .. } => found(&Value::List(*list)),
            Self::Entries { entries, .. } => {
                for (key, value) in entries.as_slice() {
                    found(key);
                    found(value);
                }
            }
            Self::Numbers { .. } | Self::Bytes { .. } => {}
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::Numbers { next, end, .. } => next >= end,
            Self::List { len, .. } => *len == 0,
            Self::Bytes { bytes, .. } => bytes.is_empty(),
            Self::Entries { entries, .. } => entries.len() == 0,
        }
    }
}

impl Machine<'_> {
    pub(super) fn range_start(&mut self, vars: usize, to: Label) -> Result<Flow, FuncError> {
        let (value, _) = self.pop();
        if value.is_nil() {
            return Ok(Flow::Jump(to));
        }
        let Some(iter) = self.iteration(&value) else {
            return Err(self.cannot_range(&value, "range can't iterate over ", ""));
        };
        if matches!(iter, Iter::Numbers { .. }) && vars > 1 {
            let behind = " to iterate over more than one variable";
            return Err(self.cannot_range(&value, "can't use ", behind));
        }
        let held = iter.held();
        if iter.is_empty() {
            return Ok(Flow::Jump(to));
        }
        self.iters.push(iter);
        if held > 0 {
            // They were copied.
            self.ranged += held;
            self.ctx.meter.charge_steps(held as u64)?;
            self.account()?;
        }
        Ok(Flow::Next)
    }

    fn cannot_range(&self, value: &Value, before: &str, behind: &str) -> FuncError {
        let limit = self.ctx.meter.bytes_left();
        match print_all(&self.ctx.heap, std::slice::from_ref(value), limit, true) {
            Ok(shown) => {
                let shown = String::from_utf8_lossy(&shown);
                FuncError::new(format!("{before}{shown}{behind}"))
            }
            Err(error) => error,
        }
    }

    fn iteration(&mut self, value: &Value) -> Option<Iter> {
        Some(match value {
            Value::Int(n) => Iter::numbers(*n, make::int),
            Value::Int64(n) => Iter::numbers(*n, make::int64),
            Value::Uint8(n) => Iter::numbers(*n, make::uint8),
            Value::Uint64(n) => Iter::numbers(*n, make::uint64),
            Value::List(list) => {
                let data = self.ctx.heap.list(*list);
                let iface = data.ty.holds_any();
                Iter::List { list: *list, next: 0, len: data.items.len(), iface }
            }
            Value::Bytes(bytes) => Iter::Bytes { bytes: Arc::clone(bytes), next: 0 },
            Value::Map(map) => {
                let data = self.ctx.heap.map(*map);
                let iface = data.ty.holds_any();
                let copy =
                    |(key, value): (&crate::Str, &Value)| (key.clone().into(), value.clone());
                let entries: Vec<_> = data.entries.iter().map(copy).collect();
                Iter::Entries { count: entries.len(), entries: entries.into_iter(), iface }
            }
            Value::Object(object) => {
                let entries = object.entries(&mut self.ctx.heap)?;
                let iface = object.go_type().underlying.holds_any();
                Iter::Entries { count: entries.len(), entries: entries.into_iter(), iface }
            }
            _ => return None,
        })
    }

    pub(super) fn range_next(
        &mut self,
        dot: Slot,
        key: Option<Slot>,
        item: Option<Slot>,
        to: Label,
    ) -> Flow {
        let Some((index, value, iface)) = self.advance() else {
            self.end_range();
            return Flow::Jump(to);
        };
        if let Some(slot) = key {
            self.set_var(slot, index, false);
        }
        if let Some(slot) = item {
            self.set_var(slot, value.clone(), iface);
        }
        self.set_var(dot, value, iface);
        Flow::Next
    }

    pub(super) fn end_range(&mut self) {
        let held = self.iters.pop().map_or(0, |iter| iter.held());
        self.ranged = self.ranged.saturating_sub(held);
    }

    fn advance(&mut self) -> Option<(Value, Value, bool)> {
        match self.iters.last_mut()? {
            Iter::Numbers { next, end, make } => {
                let value = (*next < *end).then(|| make(*next))?;
                *next += 1;
                Some((Value::Nil, value, false))
            }
            Iter::List { list, next, len, iface } => {
                let value = self.ctx.heap.items(*list).get(*next).filter(|_| *next < *len)?;
                let index = Value::Int(i64::try_from(*next).unwrap_or(i64::MAX));
                *next += 1;
                Some((index, value.clone(), *iface))
            }
            Iter::Bytes { bytes, next } => {
                let byte = *bytes.get(*next)?;
                let index = Value::Int(i64::try_from(*next).unwrap_or(i64::MAX));
                *next += 1;
                Some((index, Value::Uint8(byte), false))
            }
            Iter::Entries { entries, iface, .. } => {
                let (key, value) = entries.next()?;
                Some((key, value, *iface))
            }
        }
    }
}
