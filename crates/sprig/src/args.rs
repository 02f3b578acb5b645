//! Arguments, taken apart.
//!
//! The engine has checked number and types before a function runs, so none of these can fail: what
//! cannot be there reads as Go's zero value.

use std::borrow::Cow;
use std::sync::LazyLock;

use catamaran_gotemplate::{Ctx, FuncError, Kind, Map, Str, Value};

/// What a function returns.
pub(crate) type Outcome = Result<Value, FuncError>;

static NO_TEXT: LazyLock<Str> = LazyLock::new(Str::default);
static NOTHING: Value = Value::Nil;

/// The text of Go's panic on a nil where something must be.
pub(crate) const NIL_DEREFERENCE: &str =
    "runtime error: invalid memory address or nil pointer dereference";

/// An argument of any type; nil if it is missing.
pub(crate) fn any(args: &[Value], at: usize) -> &Value {
    args.get(at).unwrap_or(&NOTHING)
}

/// A string.
pub(crate) fn text(args: &[Value], at: usize) -> &Str {
    any(args, at).as_str().unwrap_or(&NO_TEXT)
}

/// A string as text; bytes that are no UTF-8 show as U+FFFD.
pub(crate) fn chars(args: &[Value], at: usize) -> Cow<'_, str> {
    text(args, at).to_str_lossy()
}

/// The bytes of a string.
pub(crate) fn bytes(args: &[Value], at: usize) -> &[u8] {
    text(args, at).as_bytes()
}

/// An `int`.
pub(crate) fn int(args: &[Value], at: usize) -> i64 {
    any(args, at).as_int().unwrap_or(0)
}

/// A `float64`.
pub(crate) fn float(args: &[Value], at: usize) -> f64 {
    match any(args, at) {
        Value::Float64(number) => *number,
        _ => 0.0,
    }
}

/// A `bool`.
pub(crate) fn flag(args: &[Value], at: usize) -> bool {
    matches!(any(args, at), Value::Bool(true))
}

/// A map; a nil one reads as an empty one.
pub(crate) fn map(args: &[Value], at: usize) -> Option<Map> {
    any(args, at).as_map()
}

/// Whether it is a nil map, which cannot be written to.
pub(crate) fn is_nil_map(ctx: &Ctx, map: Map) -> bool {
    ctx.heap.map(map).nil
}

/// The arguments from there on.
pub(crate) fn from(args: &[Value], at: usize) -> &[Value] {
    args.get(at..).unwrap_or_default()
}

/// A string made by a function, charged.
pub(crate) fn string(ctx: &mut Ctx, text: impl AsRef<[u8]> + Into<Str>) -> Outcome {
    ctx.meter.charge_bytes(text.as_ref().len())?;
    Ok(Value::String(text.into()))
}

/// A string that a function gives as it got it, charged as if it had been made.
pub(crate) fn unchanged(ctx: &mut Ctx, args: &[Value], at: usize) -> Outcome {
    ctx.meter.charge_bytes(bytes(args, at).len())?;
    Ok(any(args, at).clone())
}

/// Announces a text of at most so many bytes: it is there twice for a moment, as it grows and as a
/// string. [`string`] charges for what it has become.
pub(crate) fn announce(ctx: &mut Ctx, longest: usize) -> Result<(), FuncError> {
    ctx.meter.check_room(longest.saturating_mul(2))
}

/// What a short text takes besides its bytes, in bytes.
const TEXT_COST: usize = 48;

/// Charges a list of strings before it is made; `length` is that of all together.
pub(crate) fn charge_texts(ctx: &mut Ctx, count: usize, length: usize) -> Result<(), FuncError> {
    charge_items(ctx, count)?;
    ctx.meter.charge_bytes(count.saturating_mul(TEXT_COST).saturating_add(length))
}

/// A `[]interface {}` made by a function, charged.
pub(crate) fn list(ctx: &mut Ctx, items: Vec<Value>) -> Outcome {
    charge_items(ctx, items.len())?;
    Ok(ctx.heap.new_list(items).into())
}

/// A `[]string` made by a function, charged.
pub(crate) fn strings<T: Into<Str>>(ctx: &mut Ctx, items: Vec<T>) -> Outcome {
    charge_items(ctx, items.len())?;
    Ok(ctx.heap.new_strings(items).into())
}

/// Charges a list before it is made.
pub(crate) fn charge_items(ctx: &mut Ctx, count: usize) -> Result<(), FuncError> {
    ctx.meter.charge_steps(u64::try_from(count).unwrap_or(u64::MAX))?;
    ctx.meter.charge_bytes(count.saturating_mul(size_of::<Value>()))
}

/// The elements of a list; for anything else the error `{message} {kind}`, as Sprig words it.
pub(crate) fn items(ctx: &mut Ctx, value: &Value, message: &str) -> Result<Vec<Value>, FuncError> {
    if let Some(items) = try_items(ctx, value)? {
        return Ok(items);
    }
    match ctx.heap.kind_of(value) {
        Kind::Invalid => Err(FuncError::new(NIL_DEREFERENCE)),
        kind => Err(FuncError::new(format!("{message} {kind}"))),
    }
}

/// The elements of a list; none if it is none.
pub(crate) fn try_items(ctx: &mut Ctx, value: &Value) -> Result<Option<Vec<Value>>, FuncError> {
    Ok(match value {
        Value::List(list) => {
            let count = ctx.heap.items(*list).len();
            charge_items(ctx, count)?;
            Some(ctx.heap.items(*list).to_vec())
        }
        Value::Bytes(bytes) => {
            charge_items(ctx, bytes.len())?;
            Some(bytes.iter().map(|byte| Value::Uint8(*byte)).collect())
        }
        Value::Object(object) if ctx.heap.kind_of(value) == Kind::Slice => {
            let entries = object.entries(&mut ctx.heap).unwrap_or_default();
            Some(entries.into_iter().map(|(_, item)| item).collect())
        }
        _ => None,
    })
}

/// Go's slice error for `[start:end]` of something with `length` elements and that capacity.
pub(crate) fn slice_bounds(start: i64, end: i64, length: usize, of_string: bool) -> FuncError {
    let length_i = i64::try_from(length).unwrap_or(i64::MAX);
    let what = if of_string { "length" } else { "capacity" };
    FuncError::new(if end < 0 {
        format!("runtime error: slice bounds out of range [:{end}]")
    } else if end > length_i {
        format!("runtime error: slice bounds out of range [:{end}] with {what} {length}")
    } else if start < 0 {
        format!("runtime error: slice bounds out of range [{start}:]")
    } else {
        format!("runtime error: slice bounds out of range [{start}:{end}]")
    })
}
