//! Helpers that give a value: what paths, functions and tags come to.

use catamaran_gotemplate::{Argument, FuncError, Value};
use handlebars::{
    Context, Handlebars, Helper, HelperDef, PathAndJson, RenderContext, RenderError, Renderable,
    ScopedJson, Template,
};
use serde_json::Value as Json;

use super::helpers::{HELPER_STEPS, HandlebarsHelper};
use super::session::{Charged, Session, Shared, Slot, lock};
use super::{lower, walk};

/// What a body that is an argument takes of the native stack, and what parentheses around a call
/// do, in KiB.
const CAPTURE_STACK: usize = 16;
const PARENTHESES_STACK: usize = 6;

pub(super) struct Giver<'s, 'a> {
    pub(super) kind: HandlebarsHelper,
    pub(super) shared: &'s Shared<'a>,
}

impl HelperDef for Giver<'_, '_> {
    fn call_inner<'reg: 'rc, 'rc>(
        &self,
        helper: &Helper<'rc>,
        registry: &'reg Handlebars<'reg>,
        context: &'rc Context,
        rc: &mut RenderContext<'reg, 'rc>,
    ) -> Result<ScopedJson<'rc>, RenderError> {
        let body = match (self.kind, helper.template()) {
            (HandlebarsHelper::And | HandlebarsHelper::Or, Some(other)) => {
                return self.decide(helper, other, registry, context, rc);
            }
            (HandlebarsHelper::Call, Some(body)) => {
                Some(self.capture(body, registry, context, rc)?)
            }
            _ => None,
        };
        let mut session = lock(self.shared);
        let given = match self.kind {
            HandlebarsHelper::Print => print(&mut session, helper).map(Json::String),
            HandlebarsHelper::Find => Ok(Json::String(find(&session, helper, rc))),
            HandlebarsHelper::Path => {
                walk::path(&mut session, helper).map(|slot| session.push(slot))
            }
            HandlebarsHelper::Call => {
                call(&mut session, helper, body).map(|slot| session.push(slot))
            }
            HandlebarsHelper::Method => method(&mut session, helper).map(|slot| session.push(slot)),
            HandlebarsHelper::Scope => scope(&mut session, helper),
            HandlebarsHelper::And | HandlebarsHelper::Or => Ok(Json::Null),
        };
        given.map(ScopedJson::Derived).map_err(|error| session.fail(error))
    }
}

impl Giver<'_, '_> {
    /// `and` and `or`: the first value, or what the body comes to.
    fn decide<'reg: 'rc, 'rc>(
        &self,
        helper: &Helper<'rc>,
        other: &'rc Template,
        registry: &'reg Handlebars<'reg>,
        context: &'rc Context,
        rc: &mut RenderContext<'reg, 'rc>,
    ) -> Result<ScopedJson<'rc>, RenderError> {
        let first = {
            let mut session = lock(self.shared);
            let charged = session.ctx.meter.charge_steps(HELPER_STEPS);
            let first = charged.and_then(|()| first(&mut session, helper));
            let first = first.map_err(|error| session.fail(error))?;
            if session.ctx.heap.truth(&first.0) == (self.kind == HandlebarsHelper::Or) {
                return Ok(ScopedJson::Derived(session.push(first)));
            }
            first
        };
        drop(first);
        let mut nowhere = Charged::new(self.shared);
        other.render(registry, context, rc, &mut nowhere)?;
        let mut session = lock(self.shared);
        let late = std::mem::take(&mut session.late);
        Ok(ScopedJson::Derived(session.push(late)))
    }

    /// The text of a body.
    fn capture<'reg: 'rc, 'rc>(
        &self,
        body: &'rc Template,
        registry: &'reg Handlebars<'reg>,
        context: &'rc Context,
        rc: &mut RenderContext<'reg, 'rc>,
    ) -> Result<String, RenderError> {
        let floor = {
            let mut session = lock(self.shared);
            session.descend(CAPTURE_STACK).map_err(|error| session.fail(error))?;
            // The arguments are above the floor, and wait.
            session.open()
        };
        let mut out = Charged::new(self.shared);
        body.render(registry, context, rc, &mut out)?;
        let mut session = lock(self.shared);
        session.sweep();
        session.reopen(floor);
        session.ascend(CAPTURE_STACK);
        Ok(out.text)
    }
}

pub(super) fn first(session: &mut Session<'_>, helper: &Helper<'_>) -> Result<Slot, FuncError> {
    match helper.param(0) {
        Some(param) => session.value(param),
        None => Err(FuncError::new("a value is missing")),
    }
}

fn text<'h>(helper: &'h Helper<'_>, at: usize) -> &'h str {
    helper.param(at).and_then(|param| param.value().as_str()).unwrap_or_default()
}

fn print(session: &mut Session<'_>, helper: &Helper<'_>) -> Result<String, FuncError> {
    session.ctx.meter.charge_steps(HELPER_STEPS)?;
    let (value, _) = first(session, helper)?;
    session.sweep();
    let text = session.print(&value)?;
    session.account()?;
    let text = text.as_str().ok_or_else(|| FuncError::new("can't print text that is not UTF-8"))?;
    Ok(text.to_owned())
}

fn call(
    session: &mut Session<'_>,
    helper: &Helper<'_>,
    body: Option<String>,
) -> Result<Slot, FuncError> {
    session.ctx.meter.charge_steps(HELPER_STEPS)?;
    let mut args = arguments(session, helper.params().get(2..).unwrap_or_default())?;
    args.extend(body.map(|body| Argument::value(Value::from(body), false)));
    // A function may walk deep values or run a template: it must leave room for itself.
    let nested = helper.param(1).and_then(|param| param.value().as_u64()).unwrap_or_default();
    let stack = usize::try_from(nested).unwrap_or_default() * PARENTHESES_STACK;
    session.descend(stack)?;
    let value = session.templates.go.call(session.ctx, text(helper, 0), args)?;
    session.ascend(stack);
    let interface = value.is_nil();
    Ok((value, interface))
}

fn method(session: &mut Session<'_>, helper: &Helper<'_>) -> Result<Slot, FuncError> {
    session.ctx.meter.charge_steps(HELPER_STEPS)?;
    let receiver = match helper.param(1) {
        Some(param) => session.value(param)?.0,
        None => Value::Nil,
    };
    let args = arguments(session, helper.params().get(2..).unwrap_or_default())?;
    let value = session.templates.go.call_method(session.ctx, receiver, text(helper, 0), args)?;
    let interface = value.is_nil();
    Ok((value, interface))
}

fn arguments(
    session: &mut Session<'_>,
    params: &[PathAndJson<'_>],
) -> Result<Vec<Argument>, FuncError> {
    params.iter().map(|param| session.argument(param)).collect()
}

/// A partial's name: one that is defined inline comes before a file's.
fn find(session: &Session<'_>, helper: &Helper<'_>, rc: &RenderContext<'_, '_>) -> String {
    let name = match helper.param(0) {
        Some(param) if param.try_get_constant_value().is_none() => {
            match session.slot(param.value()) {
                (Value::String(name), _) => name.to_str_lossy().into_owned(),
                _ => String::new(),
            }
        }
        _ => text(helper, 0).to_owned(),
    };
    if name == lower::PARTIAL_BLOCK || rc.get_partial(&name).is_some() {
        return name;
    }
    let files = session.templates.handlebars.as_ref();
    let found = files.and_then(|files| files.find(text(helper, 1), &name));
    found.map(ToOwned::to_owned).unwrap_or(name)
}

/// A partial's context: a value, and over a copy of it the named arguments.
fn scope(session: &mut Session<'_>, helper: &Helper<'_>) -> Result<Json, FuncError> {
    session.ctx.meter.charge_steps(HELPER_STEPS)?;
    let base = first(session, helper)?;
    let named = helper.params().get(1..).unwrap_or_default();
    let slot = if named.is_empty() {
        base
    } else {
        let map = match base.0 {
            Value::Map(map) => {
                let entries = session.ctx.heap.map(map).entries.len();
                session.ctx.meter.charge_steps(entries as u64)?;
                session.ctx.heap.copy_map(map)
            }
            _ => session.ctx.heap.new_map(),
        };
        for pair in named.chunks_exact(2) {
            let [key, value] = pair else { continue };
            let value = session.value(value)?.0;
            session.ctx.heap.set(map, key.value().as_str().unwrap_or_default(), value);
        }
        session.ctx.meter.charge_bytes(0)?;
        (Value::Map(map), false)
    };
    let handle = session.push(slot);
    // The partial's own tags must not sweep it away; the helper around the partial closes this.
    session.open();
    Ok(handle)
}
