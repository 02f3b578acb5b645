//! The functions that need the chart or the engine: include, tpl, required,
//! fail, lookup.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use catamaran_gotemplate::{
    Call, Ctx, Error, ErrorKind, Func, FuncError, Functions, Str, Type, Value, fmt,
};

use super::{LookupKey, Lookups};
use crate::Profile;

/// How often one name may be included inside itself, as in Helm.
const MAX_INCLUDES: u32 = 1000;

/// Marks around the text of `fail` and `required`, by which Helm finds it again.
pub(super) const MARK_START: &str = "HELM_ERR_START";
pub(super) const MARK_END: &str = "HELM_ERR_END";

/// The mark of an error that ends a rendering for want of a looked-up object.
pub(super) const LOOKUP: &str = "lookup";

/// What these functions keep for one rendering.
#[derive(Debug, Default)]
pub(super) struct State {
    includes: HashMap<Str, u32>,
    pub(super) lookups: Lookups,
    pub(super) needs: Vec<LookupKey>,
    /// Whether `fail` and `required` only leave a note.
    lint: bool,
    /// What they had to say.
    pub(super) notes: Vec<String>,
}

impl State {
    pub(super) fn new(lookups: Lookups) -> Self {
        Self { lookups, ..Self::default() }
    }

    pub(super) fn for_lint() -> Self {
        Self { lint: true, ..Self::default() }
    }
}

/// All functions of a profile.
pub(super) fn registry(profile: Profile) -> Arc<Functions> {
    static OLD: LazyLock<Arc<Functions>> = LazyLock::new(|| build(Profile::Helm318));
    static NEW: LazyLock<Arc<Functions>> = LazyLock::new(|| build(Profile::Helm43));
    match profile {
        Profile::Helm318 => OLD.clone(),
        Profile::Helm43 => NEW.clone(),
    }
}

/// Names that Helm 3.18 does not have.
const SINCE_HELM_4: &[&str] = &[
    "mustToYaml",
    "mustToToml",
    "mustToDuration",
    "durationSeconds",
    "durationMilliseconds",
    "durationMicroseconds",
    "durationNanoseconds",
    "durationMinutes",
    "durationHours",
    "durationDays",
    "durationWeeks",
    "durationRoundTo",
    "durationTruncateTo",
];

fn build(profile: Profile) -> Arc<Functions> {
    let mut functions = catamaran_sprig::registry();
    if profile == Profile::Helm318 {
        for name in SINCE_HELM_4 {
            functions.remove(name);
        }
    }
    functions.extend([
        Func::engine("include", &[Type::String, Type::Any], include),
        Func::engine("tpl", &[Type::String, Type::Any], tpl),
        Func::new("required", &[Type::String, Type::Any], required),
        Func::new("fail", &[Type::String], fail),
        Func::new("lookup", &[Type::String, Type::String, Type::String, Type::String], lookup),
    ]);
    Arc::new(functions)
}

fn state(ctx: &mut Ctx) -> Result<&mut State, FuncError> {
    ctx.extension_mut().ok_or_else(|| FuncError::new("no rendering of a chart"))
}

fn text(args: &[Value], at: usize) -> Str {
    args.get(at).and_then(Value::as_str).cloned().unwrap_or_default()
}

fn include(ctx: &mut Ctx, args: &[Value]) -> Result<Call, FuncError> {
    let name = text(args, 0);
    let nested = state(ctx)?.includes.entry(name.clone()).or_default();
    if *nested > MAX_INCLUDES {
        return Err(FuncError::new(format!(
            "rendering template has a nested reference name: {name}: unable to execute template"
        )));
    }
    *nested += 1;
    let data = args.get(1).cloned().unwrap_or_default();
    Ok(Call::Template { name, data, then: included })
}

fn included(ctx: &mut Ctx, args: &[Value], output: Result<Str, Error>) -> Result<Value, FuncError> {
    if let Some(nested) = state(ctx)?.includes.get_mut(&text(args, 0)) {
        *nested = nested.saturating_sub(1);
    }
    Ok(Value::String(output?))
}

#[allow(clippy::unnecessary_wraps, reason = "all bodies have one type")]
fn tpl(_: &mut Ctx, args: &[Value]) -> Result<Call, FuncError> {
    let data = args.get(1).cloned().unwrap_or_default();
    Ok(Call::Text { name: "gotpl", text: text(args, 0), data, then: tpl_done })
}

fn tpl_done(_: &mut Ctx, args: &[Value], output: Result<Str, Error>) -> Result<Value, FuncError> {
    match output {
        Ok(output) => Ok(Value::String(without_no_value(output))),
        Err(error) => {
            let quoted = fmt::quote(&text(args, 0));
            // A parse error inside the text that ran has the place of an execution in front.
            let is_own = error.kind() == ErrorKind::Parse
                && error.places().first().is_none_or(|place| place.template.is_empty());
            let prefix = if is_own {
                format!("cannot parse template {quoted}: ")
            } else {
                format!("error during tpl function execution for {quoted}: ")
            };
            Err(FuncError::wrap(prefix, error))
        }
    }
}

/// Go prints `<no value>` for what is missing; Helm cuts it out of every text,
/// even where somebody wrote it on purpose.
pub(super) fn without_no_value(text: Str) -> Str {
    const MARK: &[u8] = b"<no value>";
    let bytes = text.as_bytes();
    if !bytes.windows(MARK.len()).any(|window| window == MARK) {
        return text;
    }
    let mut kept = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((first, tail)) = rest.split_first() {
        if let Some(after) = rest.strip_prefix(MARK) {
            rest = after;
        } else {
            kept.push(*first);
            rest = tail;
        }
    }
    kept.into()
}

fn required(ctx: &mut Ctx, args: &[Value]) -> Result<Value, FuncError> {
    let value = args.get(1).cloned().unwrap_or_default();
    match &value {
        Value::Nil => refused(ctx, "missing required value", &text(args, 0)),
        Value::String(given) if given.is_empty() => {
            refused(ctx, "missing required values", &text(args, 0))
        }
        _ => Ok(value),
    }
}

fn fail(ctx: &mut Ctx, args: &[Value]) -> Result<Value, FuncError> {
    refused(ctx, "funcMap fail", &text(args, 0))
}

/// Ends the rendering, or lets it go on with a note if the chart is only linted.
fn refused(ctx: &mut Ctx, what: &str, message: &Str) -> Result<Value, FuncError> {
    match ctx.extension_mut::<State>() {
        Some(state) if state.lint => {
            state.notes.push(format!("{what}: {}", message.to_str_lossy()));
            Ok(Value::String(Str::default()))
        }
        _ => Err(FuncError::new(format!("{MARK_START}{message}{MARK_END}"))),
    }
}

fn lookup(ctx: &mut Ctx, args: &[Value]) -> Result<Value, FuncError> {
    let part = |at| text(args, at).to_str_lossy().into_owned();
    let key = LookupKey { api_version: part(0), kind: part(1), namespace: part(2), name: part(3) };
    let state = state(ctx)?;
    match state.lookups.clone().get(&key) {
        Some(serde_json::Value::Null) => Ok(Value::Map(ctx.heap.new_map())),
        Some(found) => {
            crate::values::tables::load_value(&mut ctx.heap, found).map_err(FuncError::from)
        }
        None => {
            let message = format!("{key} has not been fetched");
            state.needs.push(key);
            Err(FuncError::tagged(LOOKUP, message))
        }
    }
}
