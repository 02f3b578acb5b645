//! The functions: `size int uint double string bool dyn`, as methods of strings `size contains startsWith
//! endsWith matches lowerAscii upperAscii trim split replace`, of lists `size join`, of optional values
//! `hasValue value orValue or`; `optional.of` and its kin are not there.

use regex::RegexBuilder;

use super::CelError;
use super::eval::{Scope, integer, unfit};
use super::value::{Text, Val};

/// What a pattern may come to when it is made ready, in bytes.
const PATTERN_SIZE: usize = 1 << 16;

type Answer<'a> = Result<Val<'a>, CelError>;

pub(super) fn is_function(name: &str, args: usize) -> bool {
    matches!((name, args), ("size" | "int" | "uint" | "double" | "string" | "bool" | "dyn", 1))
}

pub(super) fn is_method(name: &str, args: usize) -> bool {
    matches!(
        (name, args),
        ("size" | "lowerAscii" | "upperAscii" | "trim" | "join" | "hasValue" | "value", 0)
            | (
                "contains"
                    | "startsWith"
                    | "endsWith"
                    | "matches"
                    | "split"
                    | "join"
                    | "orValue"
                    | "or",
                1
            )
            | ("replace", 2)
    )
}

pub(super) fn call<'a>(scope: &mut Scope<'a>, function: &str, args: &[Val<'a>]) -> Answer<'a> {
    let [value] = args else { return Err(unknown(function)) };
    let wrong = || unfit(function, value);
    let not_one = || CelError::Unfit(format!("{function} cannot read the string"));
    if let Val::Text(text) = value {
        scope.spend(text.len() / 16)?;
    }
    match (function, value) {
        ("size", value) => size(value),
        ("dyn", value) => Ok(value.clone()),
        ("string", Val::Text(_)) | ("int", Val::Int(_)) | ("uint", Val::Uint(_)) => {
            Ok(value.clone())
        }
        ("double", Val::Double(_)) | ("bool", Val::Bool(_)) => Ok(value.clone()),
        ("string", Val::Int(number)) => Ok(Val::text(number.to_string())),
        ("string", Val::Uint(number)) => Ok(Val::text(number.to_string())),
        ("string", Val::Double(number)) => Ok(Val::text(number.to_string())),
        ("string", Val::Bool(value)) => Ok(Val::text(value.to_string())),
        ("int", Val::Uint(number)) => i64::try_from(*number).map(Val::Int).map_err(|_| wrong()),
        ("int", Val::Double(number)) => integer(*number).map(Val::Int).ok_or_else(wrong),
        ("int", Val::Text(text)) => text.parse().map(Val::Int).map_err(|_| not_one()),
        ("uint", Val::Int(number)) => u64::try_from(*number).map(Val::Uint).map_err(|_| wrong()),
        ("uint", Val::Text(text)) => text.parse().map(Val::Uint).map_err(|_| not_one()),
        ("double", Val::Text(text)) => text.parse().map(Val::Double).map_err(|_| not_one()),
        #[expect(clippy::cast_precision_loss, reason = "as in CEL")]
        ("double", Val::Int(number)) => Ok(Val::Double(*number as f64)),
        #[expect(clippy::cast_precision_loss, reason = "as in CEL")]
        ("double", Val::Uint(number)) => Ok(Val::Double(*number as f64)),
        ("bool", Val::Text(text)) => match &**text {
            "true" | "True" | "TRUE" | "t" | "1" => Ok(Val::Bool(true)),
            "false" | "False" | "FALSE" | "f" | "0" => Ok(Val::Bool(false)),
            _ => Err(not_one()),
        },
        _ => Err(wrong()),
    }
}

fn size<'a>(value: &Val<'a>) -> Answer<'a> {
    let count = match value {
        Val::Text(text) => text.chars().count(),
        Val::Array(items) => items.len(),
        Val::List(items) => items.len(),
        Val::Object(fields) => fields.len(),
        Val::Map(entries) => entries.len(),
        other => return Err(unfit("size", other)),
    };
    Ok(Val::Int(i64::try_from(count).unwrap_or(i64::MAX)))
}

pub(super) fn method<'a>(
    scope: &mut Scope<'a>,
    of: &Val<'a>,
    function: &str,
    args: &[Val<'a>],
) -> Answer<'a> {
    match (of, function, args) {
        (of, "size", []) => call(scope, "size", std::slice::from_ref(of)),
        (Val::Optional(inside), function, args) => optional(inside.as_deref(), function, args),
        (Val::Text(text), function, args) => {
            scope.spend(text.len() / 16)?;
            string(scope, text, function, args)
        }
        (Val::Array(_) | Val::List(_), "join", args) => join(scope, of, args),
        (of, function, _) => Err(unfit(function, of)),
    }
}

fn optional<'a>(inside: Option<&Val<'a>>, function: &str, args: &[Val<'a>]) -> Answer<'a> {
    match (inside, function, args) {
        (inside, "hasValue", []) => Ok(Val::Bool(inside.is_some())),
        (Some(inside), "value", []) | (Some(inside), "orValue", _) => Ok(inside.clone()),
        (None, "value", []) => Err(CelError::Absent("an optional value is not there".to_owned())),
        (None, "orValue" | "or", [otherwise]) => Ok(otherwise.clone()),
        (Some(inside), "or", _) => Ok(Val::Optional(Some(inside.clone().into()))),
        _ => Err(CelError::Unfit(format!("{function} is not for an optional value"))),
    }
}

fn string<'a>(scope: &mut Scope<'a>, text: &str, function: &str, args: &[Val<'a>]) -> Answer<'a> {
    match (function, args) {
        ("lowerAscii", []) => Ok(Val::text(text.to_ascii_lowercase())),
        ("upperAscii", []) => Ok(Val::text(text.to_ascii_uppercase())),
        ("trim", []) => Ok(Val::text(text.trim().to_owned())),
        ("contains", [Val::Text(part)]) => Ok(Val::Bool(text.contains(&**part))),
        ("startsWith", [Val::Text(part)]) => Ok(Val::Bool(text.starts_with(&**part))),
        ("endsWith", [Val::Text(part)]) => Ok(Val::Bool(text.ends_with(&**part))),
        ("matches", [Val::Text(pattern)]) => {
            // Making it ready costs more than finding it; and a short one may have many states, each
            // of which is looked at for each character.
            scope.spend(1000 + pattern.len() + text.len() * 8)?;
            let mut builder = RegexBuilder::new(pattern);
            builder.size_limit(PATTERN_SIZE).dfa_size_limit(PATTERN_SIZE);
            let pattern =
                builder.build().map_err(|_| CelError::Unfit("the pattern is none".to_owned()))?;
            Ok(Val::Bool(pattern.is_match(text)))
        }
        ("split", [Val::Text(by)]) => {
            scope.spend(text.len())?;
            let parts: Vec<Val<'a>> = match &**by {
                "" => text.chars().map(|c| Val::text(c.to_string())).collect(),
                by => text.split(by).map(|part| Val::text(part.to_owned())).collect(),
            };
            Ok(Val::list(parts))
        }
        ("replace", [Val::Text(old), Val::Text(new)]) => {
            // At most one replacement before each byte and one at the end.
            scope.spend((text.len() + 1).saturating_mul(new.len() + 1) / 16)?;
            Ok(Val::text(text.replace(&**old, new)))
        }
        _ => Err(CelError::Unfit(format!("{function} is not for a string and these arguments"))),
    }
}

fn join<'a>(scope: &mut Scope<'a>, of: &Val<'a>, args: &[Val<'a>]) -> Answer<'a> {
    let between = match args {
        [] => Text::Borrowed(""),
        [Val::Text(between)] => between.clone(),
        [other, ..] => return Err(unfit("join", other)),
    };
    let mut joined = String::new();
    for (at, item) in of.items(scope)?.unwrap_or_default().iter().enumerate() {
        let Val::Text(text) = item else { return Err(unfit("join", item)) };
        scope.spend((text.len() + between.len()) / 16)?;
        if at > 0 {
            joined.push_str(&between);
        }
        joined.push_str(text);
    }
    Ok(Val::text(joined))
}

fn unknown(function: &str) -> CelError {
    CelError::Unfit(format!("no function {function}"))
}
