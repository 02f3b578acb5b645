//! The functions that need the chart or the engine: include, tpl, required,
//! fail, lookup.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use catamaran_gotemplate::{
    Call, Ctx, Error, ErrorKind, Func, FuncError, Functions, Item, Origin, Str, Type, Value, fmt,
};
use memchr::memmem::Finder;

use super::templates::Templates;
use super::{LookupKey, Lookups};
use crate::Profile;
use crate::log_line::LogLine;

/// How often one name may be included inside itself, as in Helm.
const MAX_INCLUDES: usize = 1000;

/// Marks around the text of `fail` and `required`, by which Helm finds it again.
pub(super) const MARK_START: &str = "HELM_ERR_START";
pub(super) const MARK_END: &str = "HELM_ERR_END";

/// The mark of an error that ends a rendering for want of a looked-up object.
pub(super) const LOOKUP: &str = "lookup";

/// What these functions keep for one rendering.
#[derive(Debug, Default)]
pub(super) struct State {
    includes: Includes,
    pub(super) lookups: Lookups,
    pub(super) needs: Vec<LookupKey>,
    templates: Option<Arc<Templates>>,
    /// What nests on the native stack takes of it, in KiB: see [`State::descend`].
    stack: usize,
    /// The chart whose file is running, `parent/charts/sub`.
    chart: Str,
    /// Set if `fail` and `required` only leave a note: in the words of this Helm.
    lint: Option<Profile>,
    /// What they had to say.
    pub(super) notes: Vec<String>,
}

/// The includes that are running.
#[derive(Debug, Default)]
struct Includes {
    /// Their names, the innermost last, as long as none can be there too often.
    running: Vec<Str>,
    /// How often each name is there, once one could be.
    counts: HashMap<Str, usize, foldhash::fast::RandomState>,
}

impl Includes {
    /// Begins one more; `false` if its name is there too often.
    fn begin(&mut self, name: &Str) -> bool {
        if self.counts.is_empty() {
            if self.running.len() <= MAX_INCLUDES {
                self.running.push(name.clone());
                return true;
            }
            for name in self.running.drain(..) {
                *self.counts.entry(name).or_default() += 1;
            }
        }
        let count = self.counts.entry(name.clone()).or_default();
        let may = *count <= MAX_INCLUDES;
        *count += usize::from(may);
        may
    }

    /// Ends the innermost, which bears this name.
    fn end(&mut self, name: &[u8]) {
        if let Some(count) = self.counts.get_mut(name) {
            *count = count.saturating_sub(1);
        } else {
            self.running.pop();
        }
    }
}

/// How much of the native stack Handlebars may take, in KiB as measured without optimisation:
/// threads have 2 MiB, and functions that walk values 400 levels deep take more than 1 MiB of it.
const MAX_NATIVE_STACK: usize = 400;

impl State {
    pub(super) fn new(lookups: Lookups) -> Self {
        Self { lookups, ..Self::default() }
    }

    /// With the templates that include each other.
    pub(super) fn with(self, templates: Arc<Templates>) -> Self {
        Self { templates: Some(templates), ..self }
    }

    /// Goes deeper in what nests on the native stack, by so many KiB.
    pub(super) fn descend(ctx: &mut Ctx, kib: usize) -> Result<(), FuncError> {
        let state = state(ctx)?;
        if state.stack + kib > MAX_NATIVE_STACK {
            let text = "exceeded the limit of nested blocks, partials and includes of Handlebars";
            return Err(FuncError::too_deep(text));
        }
        state.stack += kib;
        Ok(())
    }

    /// Comes back up.
    pub(super) fn ascend(ctx: &mut Ctx, kib: usize) {
        if let Ok(state) = state(ctx) {
            state.stack = state.stack.saturating_sub(kib);
        }
    }

    /// The chart whose file is running.
    pub(super) fn chart(ctx: &Ctx) -> String {
        let chart = ctx.extension::<Self>().map(|state| state.chart.to_string());
        chart.unwrap_or_default()
    }

    /// Tells whose file runs now; gives the one before.
    pub(super) fn enter_chart(ctx: &mut Ctx, chart: Str) -> Str {
        state(ctx).map_or(Str::default(), |state| std::mem::replace(&mut state.chart, chart))
    }

    pub(super) fn for_lint(profile: Profile) -> Self {
        Self { lint: Some(profile), ..Self::default() }
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

/// The functions that are only here.
pub(crate) const ITEMS: &[Item] = &[
    Item::new(
        Func::engine("include", &[Type::String, Type::Any], include),
        Origin::Helm,
        "NAME DATA -> string",
        "The output of a named template, which gets the data as its dot. Unlike `template` it can \
         be piped on.",
        (
            "include",
            &[(
                r#"{{ define "label" }}app: {{ . }}{{ end }}{{ include "label" "web" | upper }}"#,
                "APP: WEB",
            )],
        ),
    ),
    Item::new(
        Func::engine("tpl", &[Type::String, Type::Any], tpl),
        Origin::Helm,
        "TEXT DATA -> string",
        "The output of a text that is itself a template, which gets the data as its dot. It sees \
         the chart's named templates; those that it defines end with it.",
        ("tpl", &[(r#"{{ tpl "{{ .name | upper }}" (dict "name" "web") }}"#, "WEB")]),
    ),
    Item::new(
        Func::new("lookup", &[Type::String, Type::String, Type::String, Type::String], lookup),
        Origin::Helm,
        "APIVERSION KIND NAMESPACE NAME -> map",
        "An object of the cluster, or with an empty name the list of them under `items`. An empty \
         map if there is none, and always without a cluster (`catamaran template`).",
        ("lookup", &[(r#"{{ lookup "v1" "Secret" "default" "tls" }}"#, "map[]")]),
    ),
];

fn build(profile: Profile) -> Arc<Functions> {
    let mut functions = catamaran_sprig::registry();
    if profile == Profile::Helm318 {
        for name in SINCE_HELM_4 {
            functions.remove(name);
        }
        functions.extend(catamaran_sprig::of_helm_3().cloned());
    }
    functions.extend([
        // Empty, unless whoever renders resolves names.
        Func::new("getHostByName", &[Type::String], host),
        // Known to Sprig's family, but their texts are marked here.
        Func::new("required", &[Type::String, Type::Any], required),
        Func::new("fail", &[Type::String], fail),
    ]);
    functions.extend(ITEMS.iter().map(|item| item.func.clone()));
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
    ctx.meter.charge_scan(name.len())?;
    let state = state(ctx)?;
    if !state.includes.begin(&name) {
        return Err(FuncError::new(format!(
            "rendering template has a nested reference name: {name}: unable to execute template"
        )));
    }
    let data = args.get(1).cloned().unwrap_or_default();
    if let Some(templates) = state.templates.clone()
        && let Some(output) = templates.include_handlebars(ctx, &name, &data)
    {
        return included(ctx, args, output).map(Call::Done);
    }
    Ok(Call::Template { name, data, then: included })
}

fn included(ctx: &mut Ctx, args: &[Value], output: Result<Str, Error>) -> Result<Value, FuncError> {
    let name = args.first().and_then(Value::as_str).map(Str::as_bytes);
    state(ctx)?.includes.end(name.unwrap_or_default());
    Ok(Value::String(output?))
}

#[allow(clippy::unnecessary_wraps, reason = "all bodies have one type")]
fn tpl(_: &mut Ctx, args: &[Value]) -> Result<Call, FuncError> {
    let data = args.get(1).cloned().unwrap_or_default();
    Ok(Call::Text { name: "gotpl", text: text(args, 0), data, then: tpl_done })
}

fn tpl_done(ctx: &mut Ctx, args: &[Value], output: Result<Str, Error>) -> Result<Value, FuncError> {
    match output {
        Ok(output) => {
            let bytes = output.as_bytes();
            if NO_VALUE.find(bytes).is_none() {
                return Ok(Value::String(output));
            }
            ctx.meter.charge_bytes(bytes.len())?;
            Ok(Value::string(without_no_value(bytes.to_vec())))
        }
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

static NO_VALUE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"<no value>"));

/// Go prints `<no value>` for what is missing; Helm cuts it out of every text,
/// even where somebody wrote it on purpose.
pub(super) fn without_no_value(mut text: Vec<u8>) -> Vec<u8> {
    let Some(first) = NO_VALUE.find(&text) else { return text };
    let (mut from, mut to) = (first, first);
    while let Some(byte) = text.get(from).copied() {
        if text.get(from..).is_some_and(|rest| rest.starts_with(NO_VALUE.needle())) {
            from += NO_VALUE.needle().len();
            continue;
        }
        if let Some(place) = text.get_mut(to) {
            *place = byte;
        }
        (from, to) = (from + 1, to + 1);
    }
    text.truncate(to);
    text
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
    if ctx.extension::<State>().is_some_and(|state| state.lint.is_some()) {
        // Notes stay until the end, in quotes that may make four bytes of one.
        ctx.meter.charge_kept(message.len().saturating_mul(4).saturating_add(200))?;
    }
    match ctx.extension_mut::<State>() {
        Some(state) if state.lint.is_some() => {
            let message = message.to_str_lossy();
            let (level, place, old) = match what {
                "funcMap fail" => ("INFO", "engine.go:227", "Fail"),
                "missing required value" => ("WARN", "engine.go:206", "Missing required value"),
                _ => ("WARN", "engine.go:214", "Missing required value"),
            };
            let old = format!("[INFO] {old}: {message}");
            let attributes = &[("message", &*message)];
            let notice = LogLine { level, message: what, attributes, helm3: (place, &old) };
            state.notes.push(notice.line(state.lint.unwrap_or_default()));
            Ok(Value::String(Str::default()))
        }
        _ => Err(FuncError::new(format!("{MARK_START}{message}{MARK_END}"))),
    }
}

fn lookup(ctx: &mut Ctx, args: &[Value]) -> Result<Value, FuncError> {
    let part = |at| text(args, at).to_str_lossy().into_owned();
    let key = LookupKey { api_version: part(0), kind: part(1), namespace: part(2), name: part(3) };
    match find(ctx, key)? {
        serde_json::Value::Null => Ok(Value::Map(ctx.heap.new_map())),
        found => crate::values::tables::load_value(&mut ctx.heap, &found).map_err(FuncError::from),
    }
}

fn host(ctx: &mut Ctx, args: &[Value]) -> Result<Value, FuncError> {
    let key = LookupKey::host(text(args, 0).to_str_lossy());
    match find(ctx, key)? {
        serde_json::Value::String(address) if address.is_empty() => {
            // Go takes one of no addresses.
            Err(FuncError::new("invalid argument to Intn"))
        }
        serde_json::Value::String(address) => Ok(Value::string(address)),
        _ => Ok(Value::string("")),
    }
}

/// What is known of a lookup; ends the rendering if that is nothing yet.
fn find(ctx: &mut Ctx, key: LookupKey) -> Result<serde_json::Value, FuncError> {
    let state = state(ctx)?;
    if let Some(found) = state.lookups.get(&key) {
        return Ok(found.clone());
    }
    let message = format!("{key} has not been fetched");
    state.needs.push(key);
    Err(FuncError::tagged(LOOKUP, message))
}
