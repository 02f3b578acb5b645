//! `.Files`: a chart's files that are no templates.

use std::sync::Arc;

use catamaran_gotemplate::{
    Ctx, FuncError, Heap, Map, Method, MethodBody, NamedType, Str, Type, Value,
};

use super::glob;
use crate::load::is_unread;
use crate::manifest::base_name;
use crate::{Chart, Profile};

/// The files of one chart, ready to be shown to any number of renderings.
#[derive(Clone, Debug, Default)]
pub(super) struct Files {
    files: Vec<(Str, Arc<[u8]>)>,
    /// Whether some of them have not been read.
    unread: bool,
}

impl Files {
    pub(super) fn of(chart: &Chart) -> Self {
        let share = |file: &crate::File| (Str::from(file.name.as_str()), Arc::clone(&file.data));
        let files = chart.files.iter().map(share).collect();
        Self { files, unread: !chart.unread.is_empty() }
    }

    pub(super) fn value(&self, heap: &mut Heap, profile: Profile) -> Value {
        let map = heap.new_map_of(match profile {
            Profile::Helm318 => Type::Named(&FILES_318),
            Profile::Helm43 => Type::Named(&FILES_43),
        });
        for (name, data) in &self.files {
            heap.set(map, name.clone(), Value::Bytes(data.clone()));
        }
        if self.unread {
            heap.guard(map);
        }
        Value::Map(map)
    }
}

static FILES_318: NamedType =
    NamedType { name: "engine.files", underlying: Type::Map(&Type::BYTES), methods: &METHODS_318 };
static FILES_43: NamedType =
    NamedType { name: "engine.files", underlying: Type::Map(&Type::BYTES), methods: &METHODS_43 };

static METHODS_318: [Method; 6] = methods(lines_318);
static METHODS_43: [Method; 6] = methods(lines);

const fn methods(lines: MethodBody) -> [Method; 6] {
    const NAME: &[Type] = &[Type::String];
    [
        Method::new("Get", NAME, get),
        Method::new("GetBytes", NAME, get_bytes),
        Method::new("Glob", NAME, glob_files),
        Method::new("AsConfig", &[], as_config),
        Method::new("AsSecrets", &[], as_secrets),
        Method::new("Lines", NAME, lines),
    ]
}

/// The file that the first argument names. That it is there is no look at what is in it.
fn named<'c>(ctx: &'c Ctx, files: &Value, args: &[Value]) -> Option<&'c Value> {
    let (map, name) = files.as_map().zip(args.first().and_then(Value::as_str))?;
    ctx.heap.peek(map).entries.get(name.as_bytes())
}

fn content(ctx: &Ctx, files: &Value, args: &[Value]) -> Arc<[u8]> {
    let found = match named(ctx, files, args) {
        Some(Value::Bytes(data)) => data.clone(),
        _ => Arc::from(&[][..]),
    };
    if is_unread(&found) {
        ctx.heap.touch();
    }
    found
}

fn get(ctx: &mut Ctx, files: &Value, args: &[Value]) -> Result<Value, FuncError> {
    let data = content(ctx, files, args);
    ctx.meter.charge_bytes(data.len())?;
    Ok(Value::String(data.into()))
}

#[allow(clippy::unnecessary_wraps, reason = "all bodies have one type")]
fn get_bytes(ctx: &mut Ctx, files: &Value, args: &[Value]) -> Result<Value, FuncError> {
    Ok(Value::Bytes(content(ctx, files, args)))
}

fn entries(ctx: &Ctx, files: &Value) -> Vec<(Str, Value)> {
    files.as_map().map_or_else(Vec::new, |map| crate::values::tables::entries(&ctx.heap, map))
}

fn glob_files(ctx: &mut Ctx, files: &Value, args: &[Value]) -> Result<Value, FuncError> {
    let pattern = args.first().and_then(Value::as_str).cloned().unwrap_or_default();
    let pattern = pattern.to_str_lossy();
    ctx.meter.check_room(glob::cost(&pattern))?;
    ctx.meter.charge_steps(pattern.len() as u64 * 8)?;
    let pattern = glob::Glob::new(&pattern);
    let ty = ctx.heap.type_of(files).unwrap_or(Type::Named(&FILES_43));
    let found = ctx.heap.new_map_of(ty);
    // Only what is found is looked at.
    let all = files.as_map().map(|map| ctx.heap.peek(map).entries.clone()).unwrap_or_default();
    for (name, data) in all {
        ctx.meter.charge_steps((pattern.size() as u64).saturating_mul(name.len() as u64) / 4)?;
        if pattern.matches(&name.to_str_lossy()) {
            if matches!(&data, Value::Bytes(data) if is_unread(data)) {
                ctx.heap.touch();
            }
            ctx.heap.set(found, name, data);
        }
    }
    Ok(Value::Map(found))
}

fn as_config(ctx: &mut Ctx, files: &Value, _: &[Value]) -> Result<Value, FuncError> {
    by_base_name(ctx, files, |data| Str::from(data))
}

fn as_secrets(ctx: &mut Ctx, files: &Value, _: &[Value]) -> Result<Value, FuncError> {
    by_base_name(ctx, files, |data| {
        Str::from(base64::Engine::encode(&base64::prelude::BASE64_STANDARD, data))
    })
}

/// YAML of base name -> text. Of two files of one base name the last stays;
/// Helm's choice is random.
fn by_base_name(ctx: &mut Ctx, files: &Value, text: fn(&[u8]) -> Str) -> Result<Value, FuncError> {
    let map: Map = ctx.heap.new_map();
    for (name, data) in entries(ctx, files) {
        let Value::Bytes(data) = data else { continue };
        ctx.meter.charge_bytes(data.len().saturating_mul(2))?;
        let key = name.to_str_lossy();
        ctx.heap.set(map, base_name(&key), Value::String(text(&data)));
    }
    let room = ctx.meter.bytes_left() / 2;
    let mut yaml = match catamaran_yaml::to_string_within(&ctx.heap.view(&Value::Map(map)), room) {
        Err(error) if error.kind() == catamaran_yaml::ErrorKind::Size => {
            return ctx.meter.exhausted();
        }
        // Helm swallows errors of printing.
        printed => printed.unwrap_or_default(),
    };
    yaml.pop();
    ctx.meter.charge_bytes(yaml.len())?;
    Ok(Value::from(yaml))
}

/// What a line takes besides its bytes, as a string of a list.
const LINE_COST: usize = 72;

fn lines(ctx: &mut Ctx, files: &Value, args: &[Value]) -> Result<Value, FuncError> {
    let data = content(ctx, files, args);
    ctx.meter.charge_bytes(data.len())?;
    if data.is_empty() {
        return Ok(Value::List(ctx.heap.new_strings(Vec::<Str>::new())));
    }
    let data = data.strip_suffix(b"\n").unwrap_or(&data);
    let count = memchr::memchr_iter(b'\n', data).count() + 1;
    ctx.meter.charge_bytes(count.saturating_mul(LINE_COST))?;
    let lines: Vec<Str> = data.split(|b| *b == b'\n').map(Str::from).collect();
    Ok(Value::List(ctx.heap.new_strings(lines)))
}

/// 3.18 stumbles over an empty file.
fn lines_318(ctx: &mut Ctx, files: &Value, args: &[Value]) -> Result<Value, FuncError> {
    if named(ctx, files, args).is_some() && content(ctx, files, args).is_empty() {
        return Err(FuncError::new("runtime error: index out of range [-1]"));
    }
    lines(ctx, files, args)
}
