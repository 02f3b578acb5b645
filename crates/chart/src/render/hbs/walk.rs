//! Into values: fields of paths, elements for `each`.

use std::sync::Arc;

use catamaran_gotemplate::{FuncError, Type, Value};
use handlebars::Helper;
use serde_json::Value as Json;

use super::helpers::HELPER_STEPS;
use super::session::{Item, Session, Slot};

/// `path BASE [FIELDS] STRICT`
pub(super) fn path(session: &mut Session<'_>, helper: &Helper<'_>) -> Result<Slot, FuncError> {
    let base = helper.param(0).map(|param| session.value(param));
    let mut slot = base.unwrap_or_else(|| Ok(Slot::default()))?;
    let strict = helper.param(2).and_then(|param| param.value().as_bool()).unwrap_or_default();
    let fields = helper.param(1).and_then(|param| param.value().as_array());
    let fields = fields.map(Vec::as_slice).unwrap_or_default();
    session.ctx.meter.charge_steps(HELPER_STEPS + fields.len() as u64)?;
    for name in fields.iter().filter_map(Json::as_str) {
        match field(session, &slot.0, name)? {
            Some(found) => slot = found,
            None if strict => return Err(missing(session, &slot.0, name)),
            // As in Handlebars: nothing, and so is all that is looked up in it.
            None => return Ok((Value::Nil, true)),
        }
    }
    Ok(slot)
}

/// What strict mode says, in Go's words.
fn missing(session: &Session<'_>, value: &Value, name: &str) -> FuncError {
    FuncError::new(match value {
        Value::Nil => format!("nil pointer evaluating interface {{}}.{name}"),
        Value::Map(_) => format!("map has no entry for key {name:?}"),
        Value::List(_) | Value::Bytes(_) => format!("list has no element {name}"),
        other => {
            format!("can't evaluate field {name} in type {}", session.ctx.heap.type_name(other))
        }
    })
}

/// One field, element or method of a value.
fn field(session: &mut Session<'_>, value: &Value, name: &str) -> Result<Option<Slot>, FuncError> {
    let heap = &mut session.ctx.heap;
    let Some(ty) = heap.type_of(value) else { return Ok(None) };
    if let Some(method) = ty.method(name) {
        if !method.params.is_empty() {
            let text =
                format!("wrong number of args for {name}: want {} got 0", method.params.len());
            return Err(FuncError::new(text));
        }
        let result = (method.call)(session.ctx, value, &[]);
        let value = result.map_err(|e| FuncError::new(format!("error calling {name}: {e}")))?;
        let interface = value.is_nil();
        return Ok(Some((value, interface)));
    }
    let index = || name.parse::<usize>().ok();
    Ok(match value {
        Value::Map(map) => {
            let interface = ty.elem() == Some(Type::Any);
            heap.get(*map, name).map(|found| (found.clone(), interface))
        }
        Value::List(list) => {
            let interface = ty.elem() == Some(Type::Any);
            let found = index().and_then(|index| heap.items(*list).get(index));
            found.map(|found| (found.clone(), interface))
        }
        Value::Bytes(bytes) => {
            index().and_then(|at| bytes.get(at)).map(|byte| (Value::Uint8(*byte), false))
        }
        Value::Object(object) if !object.is_nil() => {
            let object = Arc::clone(object);
            object.field(heap, name).map(|found| {
                let interface = found.is_nil();
                (found, interface)
            })
        }
        _ => None,
    })
}

/// What `each` goes through, as it is now: elements with their keys, if it is a map.
pub(super) fn items(session: &mut Session<'_>, value: &Value) -> Result<Vec<Item>, FuncError> {
    let heap = &mut session.ctx.heap;
    let interface = heap.type_of(value).and_then(Type::elem) == Some(Type::Any);
    let count = match value {
        Value::Map(map) => heap.map(*map).entries.len(),
        Value::List(list) => heap.items(*list).len(),
        Value::Bytes(bytes) => bytes.len(),
        _ => 0,
    };
    session.ctx.meter.charge_steps(count as u64)?;
    session.ctx.meter.charge_bytes(count.saturating_mul(size_of::<Item>()))?;
    let heap = &mut session.ctx.heap;
    Ok(match value {
        Value::Map(map) => {
            let entries = heap.map(*map).entries.iter();
            entries
                .map(|(key, item)| (Some(Value::String(key.clone())), (item.clone(), interface)))
                .collect()
        }
        Value::List(list) => {
            heap.items(*list).iter().map(|item| (None, (item.clone(), interface))).collect()
        }
        Value::Bytes(bytes) => {
            bytes.iter().map(|byte| (None, (Value::Uint8(*byte), false))).collect()
        }
        Value::Object(object) => {
            let is_list = matches!(object.go_type().underlying, Type::List(_));
            let entries = object.entries(heap).unwrap_or_default();
            let keyed = |(key, item)| ((!is_list).then_some(key), (item, true));
            entries.into_iter().map(keyed).collect()
        }
        _ => Vec::new(),
    })
}
