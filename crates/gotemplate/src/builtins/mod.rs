//! Go's own functions.

mod compare;
mod escape;
mod index;

use crate::error::FuncError;
use crate::fmt;
use crate::func::{Body, Ctx, Func};
use crate::value::{Type, Value};

type Result = std::result::Result<Value, FuncError>;

const ANY: Type = Type::Reflect;
const ONE: &[Type] = &[ANY];
const TWO: &[Type] = &[ANY, ANY];

/// All of them.
pub(crate) fn all() -> Vec<Func> {
    let builtin = |name, params, body| Func::internal(name, params, Body::Builtin(body));
    vec![
        Func::internal("and", ONE, Body::And).variadic(ANY),
        Func::internal("or", ONE, Body::Or).variadic(ANY),
        Func::internal("call", ONE, Body::Call).variadic(ANY),
        Func::new("not", ONE, |ctx, args| Ok((!args.iter().any(|arg| ctx.heap.truth(arg))).into())),
        builtin("len", ONE, index::len),
        builtin("index", ONE, index::index).variadic(ANY),
        builtin("slice", ONE, index::slice).variadic(ANY),
        Func::new("eq", ONE, |ctx, args| compare::eq(ctx, args).map(Value::Bool)).variadic(ANY),
        Func::new("ne", TWO, |ctx, args| compare::eq(ctx, args).map(|eq| (!eq).into())),
        Func::new("lt", TWO, |ctx, args| compare::lt(ctx, args).map(Value::Bool)),
        Func::new("le", TWO, |ctx, args| compare::le(ctx, args).map(Value::Bool)),
        Func::new("gt", TWO, |ctx, args| compare::le(ctx, args).map(|le| (!le).into())),
        Func::new("ge", TWO, |ctx, args| compare::lt(ctx, args).map(|lt| (!lt).into())),
        Func::new("print", &[], |ctx, args| Ok(fmt::sprint(ctx, args)?.into())).variadic(Type::Any),
        Func::new("println", &[], |ctx, args| Ok(fmt::sprintln(ctx, args)?.into()))
            .variadic(Type::Any),
        Func::new("printf", &[Type::String], printf).variadic(Type::Any),
        Func::new("html", &[], |ctx, args| escaped(ctx, args, escape::html)).variadic(Type::Any),
        Func::new("js", &[], |ctx, args| escaped(ctx, args, escape::js)).variadic(Type::Any),
        Func::new("urlquery", &[], |ctx, args| escaped(ctx, args, escape::url_query))
            .variadic(Type::Any),
    ]
}

fn printf(ctx: &mut Ctx, args: &[Value]) -> Result {
    match args.split_first() {
        Some((Value::String(format), args)) => Ok(fmt::sprintf(ctx, format, args)?.into()),
        _ => Err(FuncError::new("the format is no string")),
    }
}

/// Prints the arguments together, nil as `<no value>`, and escapes the text.
fn escaped(ctx: &mut Ctx, args: &[Value], escape: fn(&[u8]) -> Vec<u8>) -> Result {
    let shown: Vec<Value> = args
        .iter()
        .map(|arg| if arg.is_nil() { "<no value>".into() } else { arg.clone() })
        .collect();
    let text = fmt::print_all(&ctx.heap, &shown, fmt::room(ctx), true)?;
    // The longest escape of one byte has six; the printed text is there beside it.
    ctx.meter.charge_scan(text.len())?;
    ctx.meter.check_room(text.len().saturating_mul(8))?;
    let text = escape(&text);
    ctx.meter.charge_bytes(text.len())?;
    Ok(Value::string(text))
}
