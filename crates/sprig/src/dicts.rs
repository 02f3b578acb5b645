//! Maps. `set`, `unset` and the `merge` family change the map they are given; everyone who holds it
//! sees that.

use catamaran_gotemplate::{Ctx, FuncError, MAX_VALUE_DEPTH, Str, Type, Value};

use crate::args::{Outcome, any, charge_items, from, is_nil_map, list, map, strings, text};
use crate::casts::to_text;
use crate::merge::merge;

items! {
    /// A map of its arguments: key, value, key, value; a last key without a value has `""`.
    sprig "KEY VALUE... -> map", r#"{{ dict "name" "web" "port" 80 }}"# => "map[name:web port:80]";
    "dict"(; Any) => |ctx, args| {
        charge_items(ctx, args.len().saturating_mul(3))?;
        let made = ctx.heap.new_map();
        for pair in args.chunks(2) {
            let key = to_text(ctx, any(pair, 0))?;
            let value = pair.get(1).cloned().unwrap_or_else(|| "".into());
            ctx.heap.set(made, key, value);
        }
        Ok(made.into())
    };
    /// The value of a key; `""` if it is missing.
    sprig "MAP KEY -> any", r#"{{ get (dict "a" 1) "a" }}"# => "1";
    "get"(Map, String) => |ctx, args| {
        let value = map(args, 0).and_then(|of| ctx.heap.get(of, text(args, 1)).cloned());
        Ok(value.unwrap_or_else(|| "".into()))
    };
    /// Sets a key of a map, and returns the map.
    sprig "MAP KEY VALUE -> map", r#"{{ set (dict "a" 1) "b" 2 }}"# => "map[a:1 b:2]";
    "set"(Map, String, Any) => |ctx, args| {
        let Some(of) = map(args, 0).filter(|of| !is_nil_map(ctx, *of)) else { return Err(FuncError::new("assignment to entry in nil map")) };
        charge_items(ctx, 3)?;
        ctx.heap.set(of, text(args, 1).clone(), any(args, 2).clone());
        Ok(of.into())
    };
    /// Removes a key of a map, and returns the map.
    sprig "MAP KEY -> map", r#"{{ unset (dict "a" 1 "b" 2) "a" }}"# => "map[b:2]";
    "unset"(Map, String) => |ctx, args| {
        if let Some(of) = map(args, 0) {
            ctx.heap.remove(of, text(args, 1));
        }
        Ok(any(args, 0).clone())
    };
    /// Whether a map has a key, whatever its value.
    sprig "MAP KEY -> bool", r#"{{ hasKey (dict "a" nil) "a" }}"# => "true";
    "hasKey"(Map, String) => |ctx, args| {
        Ok(map(args, 0).is_some_and(|of| ctx.heap.get(of, text(args, 1)).is_some()).into())
    };
    /// The values that maps have for a key.
    sprig "KEY MAP... -> list",
        r#"{{ pluck "a" (dict "a" 1) (dict "b" 2) (dict "a" 3) }}"# => "[1 3]";
    "pluck"(String; Map) => |ctx, args| {
        let maps = from(args, 1).iter().filter_map(Value::as_map);
        let found = maps.filter_map(|of| ctx.heap.get(of, text(args, 0)).cloned()).collect();
        list(ctx, found)
    };
    /// The keys of maps. (Helm's come in random order, ours sorted.)
    sprig "MAP... -> list", r#"{{ keys (dict "b" 1 "a" 2) | sortAlpha }}"# => "[a b]";
    "keys"(; Map) => |ctx, args| {
        let mut all: Vec<Str> = Vec::new();
        for of in args.iter().filter_map(Value::as_map) {
            charge_items(ctx, ctx.heap.map(of).entries.len())?;
            all.extend(ctx.heap.map(of).entries.keys().cloned());
        }
        strings(ctx, all)
    };
    /// The values of a map. (Helm's come in random order, ours in that of the keys.)
    sprig "MAP -> list", r#"{{ values (dict "a" 1) }}"# => "[1]";
    "values"(Map) => |ctx, args| {
        let all = map(args, 0).map(|of| ctx.heap.map(of).entries.values().cloned().collect());
        list(ctx, all.unwrap_or_default())
    };
    /// A new map with only these keys.
    sprig "MAP KEY... -> map", r#"{{ pick (dict "a" 1 "b" 2 "c" 3) "a" "c" }}"# => "map[a:1 c:3]";
    "pick"(Map; String) => |ctx, args| {
        charge_items(ctx, args.len().saturating_mul(3))?;
        let made = ctx.heap.new_map();
        for key in from(args, 1).iter().filter_map(Value::as_str) {
            if let Some(value) = map(args, 0).and_then(|of| ctx.heap.get(of, key).cloned()) {
                ctx.heap.set(made, key.clone(), value);
            }
        }
        Ok(made.into())
    };
    /// A new map without these keys.
    sprig "MAP KEY... -> map", r#"{{ omit (dict "a" 1 "b" 2 "c" 3) "a" "c" }}"# => "map[b:2]";
    "omit"(Map; String) => |ctx, args| {
        let made = ctx.heap.new_map();
        let Some(of) = map(args, 0).filter(|of| !is_nil_map(ctx, *of)) else { return Ok(made.into()) };
        charge_items(ctx, ctx.heap.map(of).entries.len().saturating_mul(3))?;
        let unwanted: Vec<&Str> = from(args, 1).iter().filter_map(Value::as_str).collect();
        let kept = ctx.heap.map(of).entries.iter().filter(|(key, _)| !unwanted.contains(key));
        let kept: Vec<(Str, Value)> = kept.map(|(key, value)| (key.clone(), value.clone())).collect();
        for (key, value) in kept {
            ctx.heap.set(made, key, value);
        }
        Ok(made.into())
    };
    /// Fills the first map from the others where it has nothing, or something empty. Nested maps of
    /// the others become part of the first, they are not copied.
    sprig "MAP MAP... -> map", r#"{{ merge (dict "a" 1) (dict "a" 2 "b" 3) }}"# => "map[a:1 b:3]";
    "merge" | "mustMerge"(Map; Map) => |ctx, args| merge(ctx, args, false);
    /// As `merge`, but what the later maps have wins.
    sprig "MAP MAP... -> map",
        r#"{{ mergeOverwrite (dict "a" 1) (dict "a" 2 "b" 3) }}"# => "map[a:2 b:3]";
    "mergeOverwrite" | "mustMergeOverwrite"(Map; Map) => |ctx, args| merge(ctx, args, true);
    /// A value deep in nested maps, or a default: `dig "a" "b" default map`.
    sprig "KEY... DEFAULT MAP -> any", r#"{{ dig "a" "b" "none" (dict "a" (dict "b" 1)) }}"# => "1";
    "dig"(; Any) => dig;
    /// A copy that shares nothing with the original.
    sprig "VALUE -> any",
        r#"{{ $a := dict "x" 1 }}{{ $b := deepCopy $a }}{{ $_ := set $b "x" 2 }}{{ $a.x }}"# => "1";
    "deepCopy" | "mustDeepCopy"(Any) => |ctx, args| match any(args, 0) {
        Value::Nil => Err(FuncError::new("reflect: call of reflect.Value.Type on zero Value")),
        value => deep_copy(ctx, value, 0),
    };
}

fn dig(ctx: &mut Ctx, args: &[Value]) -> Outcome {
    let [keys @ .., default, start] = args else {
        return Err(FuncError::new("dig needs at least three arguments"));
    };
    if keys.is_empty() {
        return Err(FuncError::new("dig needs at least three arguments"));
    }
    let asserted = |ctx: &Ctx, value: &Value, wanted: &str| {
        let found = ctx.heap.type_name(value);
        let found = if value.is_nil() { "nil".to_owned() } else { found };
        FuncError::new(format!("interface conversion: interface {{}} is {found}, not {wanted}"))
    };
    let as_map = |ctx: &Ctx, value: &Value| match value.as_map() {
        Some(of) if ctx.heap.map(of).ty == Type::MAP => Ok(of),
        _ => Err(asserted(ctx, value, "map[string]interface {}")),
    };
    let mut current = as_map(ctx, start)?;
    if let Some(wrong) = keys.iter().find(|key| key.as_str().is_none()) {
        return Err(asserted(ctx, wrong, "string"));
    }
    let mut keys = keys.iter().filter_map(Value::as_str).peekable();
    while let Some(key) = keys.next() {
        let Some(value) = ctx.heap.get(current, key).cloned() else { return Ok(default.clone()) };
        if keys.peek().is_none() {
            return Ok(value);
        }
        current = as_map(ctx, &value)?;
    }
    Ok(default.clone())
}

/// A deep copy. Shared parts are copied once for every place, as in Go, so it is charged.
pub(crate) fn deep_copy(ctx: &mut Ctx, value: &Value, depth: usize) -> Outcome {
    if depth > MAX_VALUE_DEPTH {
        return Err(FuncError::new("value nests too deep to be copied"));
    }
    match value {
        Value::Map(of) if is_nil_map(ctx, *of) => {
            charge_items(ctx, 2)?;
            let ty = ctx.heap.map(*of).ty;
            Ok(ctx.heap.new_nil_map(ty).into())
        }
        Value::Map(of) => {
            charge_items(ctx, ctx.heap.map(*of).entries.len().saturating_mul(3).saturating_add(2))?;
            let copy = ctx.heap.copy_map(*of);
            ctx.check_memory()?;
            let entries: Vec<(Str, Value)> = ctx
                .heap
                .map(copy)
                .entries
                .iter()
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect();
            for (key, value) in entries {
                if matches!(value, Value::Map(_) | Value::List(_)) {
                    let value = deep_copy(ctx, &value, depth + 1)?;
                    ctx.heap.set(copy, key, value);
                }
            }
            Ok(copy.into())
        }
        Value::List(of) => {
            charge_items(ctx, ctx.heap.items(*of).len().saturating_add(2))?;
            let ty = ctx.heap.list(*of).ty;
            if ctx.heap.list(*of).nil {
                return Ok(ctx.heap.new_nil_list(ty).into());
            }
            let items = ctx.heap.items(*of).to_vec();
            let copies: Result<Vec<Value>, FuncError> =
                items.iter().map(|item| deep_copy(ctx, item, depth + 1)).collect();
            Ok(ctx.heap.new_list_of(ty, copies?).into())
        }
        Value::Object(object) => Ok(object.exported().unwrap_or_else(|| value.clone())),
        other => Ok(other.clone()),
    }
}
