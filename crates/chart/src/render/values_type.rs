//! `common.Values`: the map type of `.` and `.Values`, with its methods.
//!
//! A key named like one of them (`.Values.YAML`) cannot be reached by a dot.

use catamaran_gotemplate::{Ctx, FuncError, Map, Method, NamedType, Type, Value};

use crate::Profile;

/// The type of `.` and `.Values`.
pub(super) fn type_of(profile: Profile) -> Type {
    match profile {
        Profile::Helm318 => Type::Named(&VALUES_318),
        Profile::Helm43 => Type::Named(&VALUES_43),
    }
}

static VALUES_318: NamedType =
    NamedType { name: "chartutil.Values", underlying: Type::MAP, methods: METHODS };
static VALUES_43: NamedType =
    NamedType { name: "common.Values", underlying: Type::MAP, methods: METHODS };

const METHODS: &[Method] = &[
    Method::new("YAML", &[], yaml),
    Method::new("Table", &[Type::String], table),
    Method::new("AsMap", &[], as_map),
    Method::new("Encode", &[Type::Error], encode),
    Method::new("PathValue", &[Type::String], path_value),
];

fn yaml(ctx: &mut Ctx, values: &Value, _: &[Value]) -> Result<Value, FuncError> {
    let text = catamaran_yaml::to_string(&ctx.heap.view(values));
    let text = text.map_err(|error| FuncError::new(error.to_string()))?;
    ctx.meter.charge_bytes(text.len())?;
    Ok(Value::from(text))
}

/// The table at a dotted path.
fn table(ctx: &mut Ctx, values: &Value, args: &[Value]) -> Result<Value, FuncError> {
    let path = text(args);
    find(ctx, values, &path)
        .map(Value::Map)
        .map_err(|key| FuncError::new(format!("{key:?} is not a table")))
}

fn find(ctx: &Ctx, values: &Value, path: &str) -> Result<Map, String> {
    let mut table = values.as_map().ok_or_else(String::new)?;
    for key in path.split('.') {
        let inner = ctx.heap.get(table, key).and_then(Value::as_map);
        table = inner.ok_or_else(|| key.to_owned())?;
    }
    Ok(table)
}

#[allow(clippy::unnecessary_wraps, reason = "all bodies have one type")]
fn as_map(ctx: &mut Ctx, values: &Value, _: &[Value]) -> Result<Value, FuncError> {
    // A plain map of the same entries; in Go it would be the same map by another type.
    let copy = ctx.heap.new_map();
    for (key, value) in
        values.as_map().map_or_else(Vec::new, |m| crate::values::tables::entries(&ctx.heap, m))
    {
        ctx.heap.set(copy, key, value);
    }
    Ok(Value::Map(copy))
}

/// Wants an `io.Writer`, which no template has.
fn encode(_: &mut Ctx, _: &Value, _: &[Value]) -> Result<Value, FuncError> {
    Err(FuncError::new("no writer"))
}

/// The value at a dotted path, if it is no table.
fn path_value(ctx: &mut Ctx, values: &Value, args: &[Value]) -> Result<Value, FuncError> {
    let path = text(args);
    if path.is_empty() {
        return Err(FuncError::new("YAML path cannot be empty"));
    }
    let root = values.as_map().ok_or_else(|| FuncError::new("no table"))?;
    let found = crate::values::tables::value_at(&ctx.heap, root, &path).cloned();
    let key = path.rsplit('.').next().unwrap_or_default();
    found.ok_or_else(|| FuncError::new(format!("{key:?} is not a value")))
}

fn text(args: &[Value]) -> String {
    args.first().and_then(Value::as_str).map(|t| t.to_str_lossy().into_owned()).unwrap_or_default()
}
