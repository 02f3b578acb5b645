//! len, index and slice.

use super::Result;
use crate::error::FuncError;
use crate::func::Ctx;
use crate::value::{Kind, Type, Value};
use crate::vm::zero;

pub(super) fn len(ctx: &mut Ctx, args: &[Value], ifaces: &[bool]) -> Result {
    let Some(value) = args.first() else { return Err(FuncError::new("len of nothing")) };
    let len = match value {
        Value::Nil if ifaces.first() == Some(&true) => {
            return Err(FuncError::new("len of nil pointer"));
        }
        // Go panics inside, and shows the panic.
        Value::Nil => {
            return Err(FuncError::new("reflect: call of reflect.Value.Type on zero Value"));
        }
        Value::Object(object) if object.is_nil() => {
            return Err(FuncError::new("len of nil pointer"));
        }
        _ => length(ctx, value),
    };
    let Some(len) = len else {
        let ty = pointed_type(ctx, value);
        return Err(FuncError::new(format!("len of type {ty}")));
    };
    Ok(Value::Int(i64::try_from(len).unwrap_or(i64::MAX)))
}

/// The type's name, of what is behind a pointer for one.
fn pointed_type(ctx: &Ctx, value: &Value) -> String {
    let name = ctx.heap.type_name(value);
    name.strip_prefix('*').map(ToOwned::to_owned).unwrap_or(name)
}

fn length(ctx: &mut Ctx, value: &Value) -> Option<usize> {
    Some(match value {
        Value::String(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        Value::List(list) => ctx.heap.items(*list).len(),
        Value::Map(map) => ctx.heap.map(*map).entries.len(),
        Value::Object(object) => object.entries(&mut ctx.heap)?.len(),
        _ => return None,
    })
}

pub(super) fn index(ctx: &mut Ctx, args: &[Value], ifaces: &[bool]) -> Result {
    let Some((item, indexes)) = args.split_first() else {
        return Err(FuncError::new("index of untyped nil"));
    };
    if item.is_nil() {
        return Err(FuncError::new("index of untyped nil"));
    }
    let _ = ifaces;
    let mut item = item.clone();
    for index in indexes {
        item = element(ctx, &item, index)?;
    }
    Ok(item)
}

fn element(ctx: &mut Ctx, item: &Value, index: &Value) -> Result {
    match item {
        Value::Nil => Err(FuncError::new("index of nil pointer")),
        Value::String(text) => byte(ctx, text.as_bytes(), index, "string"),
        Value::Bytes(bytes) => byte(ctx, bytes, index, "slice"),
        Value::List(list) => {
            let at = position(ctx, index, ctx.heap.items(*list).len())?;
            ctx.heap.items(*list).get(at).cloned().ok_or_else(|| out_of_range("slice"))
        }
        Value::Map(map) => {
            let key = key(ctx, index)?;
            let elem = ctx.heap.map(*map).ty.elem().unwrap_or(Type::Any);
            Ok(ctx.heap.get(*map, key).cloned().unwrap_or_else(|| zero(elem).0))
        }
        Value::Object(object) if object.is_nil() => Err(FuncError::new("index of nil pointer")),
        Value::Object(object) => {
            let Some(entries) = object.entries(&mut ctx.heap) else { return cannot(ctx, item) };
            if object.go_type().underlying.kind() == Kind::Map {
                let key = key(ctx, index)?;
                let is_key = |entry: &(Value, Value)| entry.0.as_str() == Some(&key);
                let elem = object.go_type().underlying.elem().unwrap_or(Type::Any);
                let found = entries.into_iter().find(is_key);
                return Ok(found.map_or_else(|| zero(elem).0, |(_, value)| value));
            }
            let at = position(ctx, index, entries.len())?;
            entries.into_iter().nth(at).map(|(_, value)| value).ok_or_else(|| out_of_range("slice"))
        }
        _ => cannot(ctx, item),
    }
}

fn cannot(ctx: &Ctx, item: &Value) -> Result {
    let ty = pointed_type(ctx, item);
    Err(FuncError::new(format!("can't index item of type {ty}")))
}

fn byte(ctx: &Ctx, bytes: &[u8], index: &Value, what: &str) -> Result {
    let at = position(ctx, index, bytes.len())?;
    bytes.get(at).map(|byte| Value::Uint8(*byte)).ok_or_else(|| out_of_range(what))
}

/// What Go's panic says for an index equal to the length, which its own check lets pass.
fn out_of_range(what: &str) -> FuncError {
    FuncError::new(format!("reflect: {what} index out of range"))
}

fn key(ctx: &Ctx, index: &Value) -> std::result::Result<crate::Str, FuncError> {
    match index {
        Value::String(key) => Ok(key.clone()),
        Value::Nil => Err(FuncError::new("value is nil; should be of type string")),
        other => {
            let ty = ctx.heap.type_name(other);
            Err(FuncError::new(format!("value has type {ty}; should be string")))
        }
    }
}

fn position(ctx: &Ctx, index: &Value, len: usize) -> std::result::Result<usize, FuncError> {
    // Go turns large unsigned indexes into negative ones.
    let number = index.as_int().or_else(|| index.as_uint().map(u64::cast_signed));
    let Some(number) = number else {
        let with = match index {
            Value::Nil => "nil".to_owned(),
            other => format!("type {}", ctx.heap.type_name(other)),
        };
        return Err(FuncError::new(format!("cannot index slice/array with {with}")));
    };
    usize::try_from(number)
        .ok()
        .filter(|at| *at <= len)
        .ok_or_else(|| FuncError::new(format!("index out of range: {number}")))
}

/// Unlike `index`, Go does not look into an `interface {}` for the bounds: `slice .list .n` fails.
pub(super) fn slice(ctx: &mut Ctx, args: &[Value], ifaces: &[bool]) -> Result {
    let (item, indexes) = match args.split_first() {
        None | Some((Value::Nil, _)) => return Err(FuncError::new("slice of untyped nil")),
        Some(split) => split,
    };
    if indexes.len() > 3 {
        return Err(FuncError::new(format!("too many slice indexes: {}", indexes.len())));
    }
    let len = match item {
        Value::String(_) if indexes.len() == 3 => {
            return Err(FuncError::new("cannot 3-index slice a string"));
        }
        Value::String(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        Value::List(list) => ctx.heap.items(*list).len(),
        other => {
            let ty = ctx.heap.type_name(other);
            return Err(FuncError::new(format!("can't slice item of type {ty}")));
        }
    };
    let mut bounds = [0, len, len];
    let ifaces = ifaces.iter().skip(1).copied();
    for ((bound, index), iface) in bounds.iter_mut().zip(indexes).zip(ifaces) {
        if iface {
            let text = "cannot index slice/array with type interface {}";
            return Err(FuncError::new(text));
        }
        *bound = position(ctx, index, len)?;
    }
    let [start, end, capacity] = bounds;
    if start > end {
        return Err(FuncError::new(format!("invalid slice index: {start} > {end}")));
    }
    if end > capacity {
        return Err(FuncError::new(format!("invalid slice index: {end} > {capacity}")));
    }
    ctx.meter.charge_bytes(end - start)?;
    Ok(match item {
        Value::String(text) => Value::string(text.as_bytes().get(start..end).unwrap_or_default()),
        Value::Bytes(bytes) => Value::Bytes(bytes.get(start..end).unwrap_or_default().into()),
        Value::List(list) => {
            let data = ctx.heap.list(*list);
            let (ty, items) = (data.ty, data.items.get(start..end).unwrap_or_default().to_vec());
            ctx.heap.new_list_of(ty, items).into()
        }
        other => other.clone(),
    })
}
