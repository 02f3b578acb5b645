//! YAML in templates.

use catamaran_gotemplate::{Ctx, FuncError, Map, Object as _, Seed, Str, Value};
use catamaran_yaml::{Deserializer, ErrorKind, Numbers};
use serde::de::DeserializeSeed as _;

use crate::args::{Outcome, any, list, string, text};

items! {
    /// A value as YAML, without the last newline; `""` if it has no YAML form.
    helm "VALUE -> string",
        r#"{{ toYaml (dict "port" 80 "tags" (list "a")) }}"# => "port: 80\ntags:\n- a";
    "toYaml"(Any) => |ctx, args| match to_yaml(ctx, any(args, 0), false) {
        Ok(text) => string(ctx, text),
        Err(error) if error.is_budget() => Err(error),
        Err(_) => Ok("".into()),
    };
    /// As `toYaml`; what has no YAML form ends the rendering.
    helm "VALUE -> string",
        r#"{{ mustToYaml (dict "port" 80 "tags" (list "a")) }}"# => "port: 80\ntags:\n- a";
    "mustToYaml"(Any) => |ctx, args| {
        let text = to_yaml(ctx, any(args, 0), false)?;
        string(ctx, text)
    };
    /// As `toYaml`, with lists indented under their keys, and nothing folded.
    helm "VALUE -> string",
        r#"{{ toYamlPretty (dict "port" 80 "tags" (list "a")) }}"# => "port: 80\ntags:\n  - a";
    "toYamlPretty"(Any) => |ctx, args| match to_yaml(ctx, any(args, 0), true) {
        Ok(text) => string(ctx, text),
        Err(error) if error.is_budget() => Err(error),
        Err(_) => Ok("".into()),
    };
    /// A map from YAML; an error becomes its key `Error`.
    helm "TEXT -> map", r#"{{ (fromYaml "a: [1, 2]").a }}"# => "[1 2]";
    "fromYaml"(String) => |ctx, args| {
        let read = from_yaml(ctx, text(args, 0));
        // Null leaves the map as it was made: empty, but not nil.
        let read = read.map(|value| if value.is_nil() { ctx.heap.new_map().into() } else { value });
        map_or_error(ctx, read, "error unmarshaling JSON: while decoding JSON: ")
    };
    /// A list from YAML; an error becomes its only element.
    helm "TEXT -> list", r#"{{ fromYamlArray "[1, yes]" }}"# => "[1 true]";
    "fromYamlArray"(String) => |ctx, args| {
        let read = from_yaml(ctx, text(args, 0));
        // Null leaves the list as it was made: empty, but not nil.
        let read = read.map(|value| if value.is_nil() { ctx.heap.new_list(Vec::new()).into() } else { value });
        list_or_error(ctx, read, "error unmarshaling JSON: while decoding JSON: ")
    };
}

fn to_yaml(ctx: &mut Ctx, value: &Value, pretty: bool) -> Result<String, FuncError> {
    crate::json::charge_walk(ctx, value)?;
    if let Some(time) = value.downcast::<crate::dates::Time>().filter(|_| pretty) {
        // A kind of value that the pretty printer knows by itself.
        let text = time.plain().and_then(|text| text.as_str().map(Str::to_string));
        return Ok(text.unwrap_or_default());
    }
    let view = ctx.heap.view(value);
    let room = ctx.meter.bytes_left() / 2;
    let printed = if pretty {
        catamaran_yaml::to_string_pretty_within(&view.as_yaml3(), room)
    } else {
        catamaran_yaml::to_string_within(&view, room)
    };
    let mut text = match printed {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::Size => return ctx.meter.exhausted(),
        Err(error) => return Err(FuncError::new(error.to_string())),
    };
    // Keys that come in another order than they are kept in are put right at every level.
    ctx.meter.charge_scan(text.len())?;
    if text.ends_with('\n') {
        text.pop();
    }
    Ok(text)
}

fn from_yaml(ctx: &mut Ctx, text: &Str) -> Result<Value, String> {
    let text = catamaran_yaml::text_of(text.as_bytes())
        .map_err(|fault| format!("error converting YAML to JSON: yaml: {fault}"))?;
    // Reading looks at every character several times, and sets out anew for each text.
    if ctx.meter.charge_steps(text.len() as u64 * 4 + 200).is_err() {
        // Whoever made it looks at the budget next.
        return Err("exceeded the limit of steps".into());
    }
    let room = ctx.meter.bytes_left().saturating_sub(ctx.heap.allocated());
    let read = Deserializer::within(text, Numbers::Float64, room);
    let read = read.and_then(|reader| Seed::new(&mut ctx.heap).deserialize(reader));
    read.map_err(|error| {
        if error.kind() == ErrorKind::Size {
            ctx.meter.overdraw();
        }
        error.to_string()
    })
}

/// What `fromYaml` and `fromJson` make of what was read: a map, always.
pub(crate) fn map_or_error(ctx: &mut Ctx, read: Result<Value, String>, prefix: &str) -> Outcome {
    ctx.meter.charge_steps(1)?;
    ctx.check_memory()?;
    let failed = |ctx: &mut Ctx, message: String| -> Map {
        let map = ctx.heap.new_map();
        ctx.heap.set(map, "Error", message);
        map
    };
    let map = match read {
        Ok(Value::Map(map)) => map,
        Ok(Value::Nil) => ctx.heap.new_nil_map(catamaran_gotemplate::Type::MAP),
        Ok(other) => {
            let found = json_kind(&other);
            let message = format!(
                "{prefix}json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
            );
            failed(ctx, message)
        }
        Err(message) => failed(ctx, message),
    };
    Ok(map.into())
}

/// What `fromYamlArray` and `fromJsonArray` make of what was read: a list, always.
pub(crate) fn list_or_error(ctx: &mut Ctx, read: Result<Value, String>, prefix: &str) -> Outcome {
    ctx.meter.charge_steps(1)?;
    ctx.check_memory()?;
    let message = match read {
        Ok(Value::List(list)) => return Ok(list.into()),
        Ok(Value::Nil) => {
            return Ok(ctx.heap.new_nil_list(catamaran_gotemplate::Type::LIST).into());
        }
        Ok(other) => {
            let found = json_kind(&other);
            format!("{prefix}json: cannot unmarshal {found} into Go value of type []interface {{}}")
        }
        Err(message) => message,
    };
    list(ctx, vec![message.into()])
}

fn json_kind(value: &Value) -> &'static str {
    match value {
        Value::Bool(_) => "bool",
        Value::String(_) => "string",
        Value::List(_) => "array",
        Value::Map(_) => "object",
        _ => "number",
    }
}
