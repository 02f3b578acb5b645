//! Go's `reflect.DeepEqual`, on values.

use std::collections::HashMap;
use std::hash::{BuildHasher, DefaultHasher, Hash, Hasher, RandomState};

use catamaran_gotemplate::{Ctx, FuncError, MAX_VALUE_DEPTH, Value};

use crate::args::is_nil_map;

/// Whether two values are deeply equal: same Go types, same contents.
pub(crate) fn deep_equal(ctx: &mut Ctx, a: &Value, b: &Value) -> Result<bool, FuncError> {
    equal(ctx, a, b, 0)
}

/// Whether a list has an element deeply equal to this one.
pub(crate) fn contains(ctx: &mut Ctx, items: &[Value], needle: &Value) -> Result<bool, FuncError> {
    for item in items {
        if deep_equal(ctx, needle, item)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Values of which no two are deeply equal. A value is found in the time that it takes to read it, not in
/// that of all others.
#[derive(Default)]
pub(crate) struct EqualSet {
    /// By their hashes, which cannot be guessed.
    values: HashMap<u64, Vec<Value>>,
    state: RandomState,
}

impl EqualSet {
    /// All of these.
    pub fn of(ctx: &mut Ctx, values: &[Value]) -> Result<Self, FuncError> {
        let mut set = Self::default();
        for value in values {
            set.insert(ctx, value)?;
        }
        Ok(set)
    }

    /// Whether one is deeply equal to this.
    pub fn contains(&self, ctx: &mut Ctx, value: &Value) -> Result<bool, FuncError> {
        let hash = self.hash(ctx, value)?;
        self.values.get(&hash).map_or(Ok(false), |same| contains(ctx, same, value))
    }

    /// Adds a value; whether none was equal to it.
    pub fn insert(&mut self, ctx: &mut Ctx, value: &Value) -> Result<bool, FuncError> {
        let hash = self.hash(ctx, value)?;
        ctx.meter.check_room((self.values.len() + 1) * 4 * size_of::<Value>())?;
        let same = self.values.entry(hash).or_default();
        let is_new = !contains(ctx, same, value)?;
        if is_new {
            same.push(value.clone());
        }
        Ok(is_new)
    }

    fn hash(&self, ctx: &mut Ctx, value: &Value) -> Result<u64, FuncError> {
        let mut hasher = self.state.build_hasher();
        deep_hash(ctx, value, &mut hasher, &mut HASHED.clone(), HASHED_DEPTH)?;
        Ok(hasher.finish())
    }
}

/// How many values within a value count for its hash, and how deep: a map may contain itself.
const HASHED: usize = 1000;
const HASHED_DEPTH: usize = 32;

/// Hashes a value: what is deeply equal has the same hash. `rest` and `depth` say how much of it still
/// counts.
fn deep_hash(
    ctx: &mut Ctx,
    value: &Value,
    hasher: &mut DefaultHasher,
    rest: &mut usize,
    depth: usize,
) -> Result<(), FuncError> {
    if *rest == 0 || depth == 0 {
        return Ok(());
    }
    *rest -= 1;
    ctx.meter.charge_steps(8)?;
    std::mem::discriminant(value).hash(hasher);
    match value {
        Value::Bool(it) => it.hash(hasher),
        Value::Int(it) | Value::Int64(it) => it.hash(hasher),
        Value::Uint8(it) => it.hash(hasher),
        Value::Uint64(it) => it.hash(hasher),
        // Equal numbers need not have equal bits: 0 has two signs.
        Value::Float64(it) => (*it + 0.0).to_bits().hash(hasher),
        Value::String(it) => {
            ctx.meter.charge_scan(it.len())?;
            it.as_bytes().hash(hasher);
        }
        Value::Bytes(it) => {
            ctx.meter.charge_scan(it.len())?;
            it.as_ref().hash(hasher);
        }
        Value::List(list) => {
            let items = &ctx.heap.list(*list).items;
            items.len().hash(hasher);
            let items: Vec<_> = items.iter().take(*rest).cloned().collect();
            for item in &items {
                deep_hash(ctx, item, hasher, rest, depth - 1)?;
            }
        }
        Value::Map(map) => {
            let entries = &ctx.heap.map(*map).entries;
            entries.len().hash(hasher);
            let entries = entries.iter().take(*rest);
            let entries: Vec<_> = entries.map(|(key, it)| (key.clone(), it.clone())).collect();
            for (key, item) in &entries {
                ctx.meter.charge_scan(key.len())?;
                key.hash(hasher);
                deep_hash(ctx, item, hasher, rest, depth - 1)?;
            }
        }
        // What they hold is compared.
        _ => {}
    }
    Ok(())
}

fn equal(ctx: &mut Ctx, a: &Value, b: &Value, depth: usize) -> Result<bool, FuncError> {
    ctx.meter.charge_steps(8)?;
    if depth > MAX_VALUE_DEPTH {
        return Err(FuncError::new("values nest too deep to be compared"));
    }
    if ctx.heap.type_of(a) != ctx.heap.type_of(b) {
        return Ok(false);
    }
    Ok(match (a, b) {
        (Value::Object(x), Value::Object(y)) if !x.equals(y.as_ref()) => {
            // What pointers point to.
            let (first, second) = (x.fields(), y.fields());
            if first.is_empty() || first.len() != second.len() {
                return Ok(false);
            }
            let values = |(x, y): ((&str, Value), (&str, Value))| (x.1, y.1);
            let pairs: Vec<_> = first.into_iter().zip(second).map(values).collect();
            all_equal(ctx, &pairs, depth)?
        }
        (Value::Nil, Value::Nil) | (Value::Object(_), Value::Object(_)) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Int(a), Value::Int(b)) | (Value::Int64(a), Value::Int64(b)) => a == b,
        (Value::Uint8(a), Value::Uint8(b)) => a == b,
        (Value::Uint64(a), Value::Uint64(b)) => a == b,
        #[allow(clippy::float_cmp)] // what Go does
        (Value::Float64(a), Value::Float64(b)) => a == b,
        (Value::String(a), Value::String(b)) => {
            ctx.meter.charge_scan(if a.len() == b.len() { a.len() } else { 0 })?;
            a == b
        }
        (Value::Bytes(a), Value::Bytes(b)) => {
            ctx.meter.charge_scan(if a.len() == b.len() { a.len() } else { 0 })?;
            a == b
        }
        (Value::List(x), Value::List(y)) => {
            if x == y {
                return Ok(true);
            }
            let (first, second) = (ctx.heap.list(*x), ctx.heap.list(*y));
            if first.items.len() != second.items.len() || first.nil != second.nil {
                return Ok(false);
            }
            // Pairs are kept at every level.
            ctx.meter.check_room(first.items.len() * 2 * size_of::<Value>())?;
            ctx.meter.charge_steps(first.items.len() as u64)?;
            let (first, second) = (ctx.heap.list(*x), ctx.heap.list(*y));
            let pairs: Vec<_> =
                first.items.iter().cloned().zip(second.items.iter().cloned()).collect();
            all_equal(ctx, &pairs, depth)?
        }
        (Value::Map(x), Value::Map(y)) => {
            if x == y {
                return Ok(true);
            }
            if is_nil_map(ctx, *x) != is_nil_map(ctx, *y) {
                return Ok(false);
            }
            let (first, second) = (&ctx.heap.map(*x).entries, &ctx.heap.map(*y).entries);
            if first.len() != second.len() || first.keys().ne(second.keys()) {
                return Ok(false);
            }
            ctx.meter.check_room(first.len() * 2 * size_of::<Value>())?;
            ctx.meter.charge_steps(first.len() as u64)?;
            let (first, second) = (&ctx.heap.map(*x).entries, &ctx.heap.map(*y).entries);
            let pairs: Vec<_> = first.values().cloned().zip(second.values().cloned()).collect();
            all_equal(ctx, &pairs, depth)?
        }
        _ => false,
    })
}

fn all_equal(ctx: &mut Ctx, pairs: &[(Value, Value)], depth: usize) -> Result<bool, FuncError> {
    for (a, b) in pairs {
        if !equal(ctx, a, b, depth + 1)? {
            return Ok(false);
        }
    }
    Ok(true)
}
