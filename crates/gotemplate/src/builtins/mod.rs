//! Go's own functions.

mod compare;
mod escape;
mod index;

use crate::error::FuncError;
use crate::fmt;
use crate::func::{Body, BuiltinBody, Ctx, Func};
use crate::item::{Item, Origin};
use crate::value::{Type, Value};

type Result = std::result::Result<Value, FuncError>;

const ANY: Type = Type::Reflect;
const ONE: &[Type] = &[ANY];
const TWO: &[Type] = &[ANY, ANY];

/// Declares Go's functions: text; parameters as people read them and examples; the function.
macro_rules! go_items {
    ($(
        $(#[doc = $doc:literal])+
        $usage:literal $(, $template:literal => $output:literal)*;
        $func:expr;
    )*) => {
        /// All of them.
        pub(crate) const ITEMS: &[Item] = &[$({
            const FUNC: Func = $func;
            Item::new(
                FUNC, Origin::Go, $usage, concat!($($doc, "\n"),+),
                (FUNC.name, &[$(($template, $output)),*]),
            )
        }),*];
    };
}

go_items! {
    /// The first argument that is empty, or the last one. What stands behind an empty argument is not
    /// evaluated.
    "VALUE VALUE... -> any", r#"{{ and 1 "a" "" "b" | quote }}"# => r#""""#;
    Func::internal("and", ONE, Body::And).variadic(ANY);
    /// The first argument that is not empty, or the last one. What stands behind it is not evaluated.
    "VALUE VALUE... -> any", r#"{{ or 0 "" "a" "b" }}"# => "a";
    Func::internal("or", ONE, Body::Or).variadic(ANY);
    /// True for false, 0, nil, and what has no content; false for everything else.
    "VALUE -> bool", r#"{{ not "" }}"# => "true";
    Func::new("not", ONE, |ctx, args| Ok((!args.iter().any(|arg| ctx.heap.truth(arg))).into()));
    /// Calls a function value. Helm's objects hold none, so that all it can do in a chart is fail.
    "FUNCTION VALUE... -> any",
        r#"{{ call "trim" }}"# => r#"error: non-function "trim" of type string"#;
    Func::internal("call", ONE, Body::Call).variadic(ANY);
    /// How many bytes a string has, elements a list, keys a map.
    "VALUE -> int", "{{ len (list 1 2 3) }}" => "3";
    builtin("len", ONE, index::len);
    /// The element of a list, or the value of a map, and so on into what it holds. A key that a map
    /// lacks gives the zero value; a place beyond a list's end is an error.
    "VALUE KEY... -> any", r#"{{ index (dict "a" (list 1 2)) "a" 1 }}"# => "2";
    builtin("index", ONE, index::index).variadic(ANY);
    /// The bytes of a string, or elements of a list, from a start to an end.
    "VALUE START... -> any", r#"{{ slice "abcd" 1 3 }}"# => "bc";
    builtin("slice", ONE, index::slice).variadic(ANY);
    /// Whether the first argument equals any of the others. Numbers of different kinds (`int` and
    /// `float64`) cannot be compared.
    "VALUE VALUE... -> bool", r#"{{ eq "b" "a" "b" }}"# => "true";
    Func::new("eq", ONE, |ctx, args| compare::eq(ctx, args).map(Value::Bool)).variadic(ANY);
    /// Whether two values differ.
    "VALUE VALUE -> bool", "{{ ne 1 2 }}" => "true";
    Func::new("ne", TWO, |ctx, args| compare::eq(ctx, args).map(|eq| (!eq).into()));
    /// Whether the first number is less than the second, or the first string sorts before the second.
    "VALUE VALUE -> bool", "{{ lt 1 2 }}" => "true";
    Func::new("lt", TWO, |ctx, args| compare::lt(ctx, args).map(Value::Bool));
    /// Whether the first number or string is less than the second, or equal.
    "VALUE VALUE -> bool", "{{ le 2 2 }}" => "true";
    Func::new("le", TWO, |ctx, args| compare::le(ctx, args).map(Value::Bool));
    /// Whether the first number or string is greater than the second.
    "VALUE VALUE -> bool", r#"{{ gt "b" "a" }}"# => "true";
    Func::new("gt", TWO, |ctx, args| compare::le(ctx, args).map(|le| (!le).into()));
    /// Whether the first number or string is greater than the second, or equal.
    "VALUE VALUE -> bool", "{{ ge 1.5 1.5 }}" => "true";
    Func::new("ge", TWO, |ctx, args| compare::lt(ctx, args).map(|lt| (!lt).into()));
    /// The texts of the arguments, with a space between two neighbours that are no strings.
    "VALUE... -> string", r#"{{ print "a" 1 2 "b" }}"# => "a1 2b";
    Func::new("print", &[], |ctx, args| Ok(fmt::sprint(ctx, args)?.into())).variadic(Type::Any);
    /// The texts of the arguments with spaces between them and a newline at the end.
    "VALUE... -> string", r#"{{ println "a" 1 2 "b" | quote }}"# => r#""a 1 2 b\n""#;
    Func::new("println", &[], |ctx, args| Ok(fmt::sprintln(ctx, args)?.into())).variadic(Type::Any);
    /// The format with the arguments in place of its verbs: `%s`, `%d`, `%v`, `%q`, `%5.2f`, ...
    "FORMAT VALUE... -> string", r#"{{ printf "%s-%03d" "web" 7 }}"# => "web-007";
    Func::new("printf", &[Type::String], printf).variadic(Type::Any);
    /// The text of the arguments, escaped for HTML.
    "VALUE... -> string", r#"{{ html "<a & b>" }}"# => "&lt;a &amp; b&gt;";
    Func::new("html", &[], |ctx, args| escaped(ctx, args, escape::html)).variadic(Type::Any);
    /// The text of the arguments, escaped for a string of JavaScript.
    "VALUE... -> string", r#"{{ js "it's <b>" }}"# => r"it\'s \u003Cb\u003E";
    Func::new("js", &[], |ctx, args| escaped(ctx, args, escape::js)).variadic(Type::Any);
    /// The text of the arguments, escaped for the query of a URL.
    "VALUE... -> string", r#"{{ urlquery "a b&c" }}"# => "a+b%26c";
    Func::new("urlquery", &[], |ctx, args| escaped(ctx, args, escape::url_query)).variadic(Type::Any);
}

const fn builtin(name: &'static str, params: &'static [Type], body: BuiltinBody) -> Func {
    Func::internal(name, params, Body::Builtin(body))
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
