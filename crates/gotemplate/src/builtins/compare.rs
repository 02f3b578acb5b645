//! eq, lt and le, of which the other comparisons are made.

use crate::error::FuncError;
use crate::fmt::sprintf;
use crate::func::Ctx;
use crate::value::{Complex, Kind, Type, Value};

type Truth = std::result::Result<bool, FuncError>;

/// The kinds that comparisons tell apart.
#[derive(Clone, Copy, PartialEq)]
enum Basic {
    Other,
    Bool,
    Int(i64),
    Uint(u64),
    Float(f64),
    Complex(Complex),
    String,
}

impl Basic {
    fn of(value: &Value) -> Self {
        match value {
            Value::Bool(_) => Self::Bool,
            Value::Float64(n) => Self::Float(*n),
            Value::String(_) => Self::String,
            Value::Object(object) if object.go_type().underlying == Type::Complex128 => {
                value.downcast().copied().map_or(Self::Other, Self::Complex)
            }
            other => match (other.as_int(), other.as_uint()) {
                (Some(n), _) => Self::Int(n),
                (_, Some(n)) => Self::Uint(n),
                _ => Self::Other,
            },
        }
    }
}

fn incompatible(ctx: &Ctx, a: &Value, b: &Value) -> FuncError {
    let (a, b) = (ctx.heap.type_name(a), ctx.heap.type_name(b));
    FuncError::new(format!("incompatible types for comparison: {a} and {b}"))
}

/// Whether the first equals any of the others.
pub(super) fn eq(ctx: &mut Ctx, args: &[Value]) -> Truth {
    let (first, others) = match args.split_first() {
        Some((first, others)) if !others.is_empty() => (first, others),
        _ => return Err(FuncError::new("missing argument for comparison")),
    };
    for other in others {
        if equal(ctx, first, other)? {
            return Ok(true);
        }
    }
    Ok(false)
}

#[allow(clippy::float_cmp)]
fn equal(ctx: &mut Ctx, a: &Value, b: &Value) -> Truth {
    match (Basic::of(a), Basic::of(b)) {
        (Basic::Int(a), Basic::Uint(b)) | (Basic::Uint(b), Basic::Int(a)) => {
            Ok(u64::try_from(a).is_ok_and(|a| a == b))
        }
        (Basic::Int(a), Basic::Int(b)) => Ok(a == b),
        (Basic::Uint(a), Basic::Uint(b)) => Ok(a == b),
        (Basic::Float(a), Basic::Float(b)) => Ok(a == b),
        (Basic::Complex(a), Basic::Complex(b)) => Ok(a == b),
        (Basic::Bool, Basic::Bool) | (Basic::String, Basic::String) => Ok(match (a, b) {
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::String(a), Value::String(b)) => a == b,
            _ => false,
        }),
        (Basic::Other, Basic::Other) => equal_others(ctx, a, b),
        _ if a.is_nil() || b.is_nil() => Ok(false),
        _ => Err(incompatible(ctx, a, b)),
    }
}

fn equal_others(ctx: &mut Ctx, a: &Value, b: &Value) -> Truth {
    let kinds = (ctx.heap.kind_of(a), ctx.heap.kind_of(b));
    if kinds.0 != kinds.1 && kinds.0 != Kind::Invalid && kinds.1 != Kind::Invalid {
        let (a_type, b_type) = (ctx.heap.type_name(a), ctx.heap.type_name(b));
        let format = "non-comparable types %s: %v, %s: %v".into();
        let args = [a.clone(), a_type.into(), b_type.into(), b.clone()];
        let text = sprintf(ctx, &format, &args)?;
        return Err(FuncError::new(text.to_string()));
    }
    let (a_nil, b_nil) = (is_nil(ctx, a), is_nil(ctx, b));
    if a_nil || b_nil {
        return Ok(a_nil == b_nil);
    }
    if let (Value::Object(a), Value::Object(b)) = (a, b) {
        return Ok(a.equals(b.as_ref()));
    }
    let ty = ctx.heap.type_name(b);
    let text = sprintf(ctx, &"non-comparable type %s: %v".into(), &[b.clone(), ty.into()])?;
    Err(FuncError::new(text.to_string()))
}

fn is_nil(ctx: &Ctx, value: &Value) -> bool {
    match value {
        Value::Nil => true,
        Value::List(list) => ctx.heap.list(*list).nil,
        Value::Map(map) => ctx.heap.map(*map).nil,
        Value::Object(object) => object.is_nil(),
        _ => false,
    }
}

pub(super) fn lt(ctx: &mut Ctx, args: &[Value]) -> Truth {
    let [a, b] = args else { return Err(FuncError::new("missing argument for comparison")) };
    let bad = || FuncError::new("invalid type for comparison");
    match (Basic::of(a), Basic::of(b)) {
        (Basic::Other, _)
        | (_, Basic::Other)
        | (Basic::Bool, Basic::Bool)
        | (Basic::Complex(_), Basic::Complex(_)) => Err(bad()),
        (Basic::Int(a), Basic::Uint(b)) => Ok(u64::try_from(a).map_or(true, |a| a < b)),
        (Basic::Uint(a), Basic::Int(b)) => Ok(u64::try_from(b).is_ok_and(|b| a < b)),
        (Basic::Int(a), Basic::Int(b)) => Ok(a < b),
        (Basic::Uint(a), Basic::Uint(b)) => Ok(a < b),
        (Basic::Float(a), Basic::Float(b)) => Ok(a < b),
        (Basic::String, Basic::String) => Ok(match (a, b) {
            (Value::String(a), Value::String(b)) => a < b,
            _ => false,
        }),
        _ => Err(incompatible(ctx, a, b)),
    }
}

pub(super) fn le(ctx: &mut Ctx, args: &[Value]) -> Truth {
    Ok(lt(ctx, args)? || eq(ctx, args)?)
}
