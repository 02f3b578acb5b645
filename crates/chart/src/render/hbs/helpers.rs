//! The helpers that a lowered template is made of. None of their names is one that a chart can
//! write: lowering leaves none of a chart's.

use catamaran_gotemplate::{FuncError, Value};
use handlebars::{
    BlockContext, BlockParams, Context, Handlebars, Helper, HelperDef, HelperResult, Output,
    PathAndJson, RenderContext, RenderError, Renderable, ScopedJson, Template,
};
use serde_json::Value as Json;

use super::session::{Charged, Session, Shared, Slot, lock};
use super::walk;

/// Helpers that give a value, or the text of a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Give {
    /// `print VALUE`: the text of a tag.
    Print,
    /// `path BASE [FIELDS] STRICT`
    Path,
    /// `call NAME ARGS...`; a body that it may have is the last argument.
    Call,
    /// `method NAME RECEIVER ARGS...`
    Method,
    /// `and VALUE`, the other one as its body; what follows is evaluated if need be.
    And,
    /// `or VALUE`, the other one as its body.
    Or,
    /// `find NAME CHART`: the name under which the crate knows a partial.
    Find,
    /// `scope VALUE KEY VALUE...`: the context of a partial.
    Scope,
}

/// Helpers that run a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Run {
    /// `if VALUE ZERO`: whether 0 counts as true.
    If,
    /// `unless VALUE ZERO`
    Unless,
    /// `each VALUE`
    Each,
    /// `with VALUE`
    With,
    /// `late VALUE`: the body of `and` and `or`.
    Late,
    /// Around a partial.
    Partial,
    /// Around what the crate writes into a text of its own.
    Charge,
}

impl Give {
    pub(super) const ALL: [Self; 8] = [
        Self::Print,
        Self::Path,
        Self::Call,
        Self::Method,
        Self::And,
        Self::Or,
        Self::Find,
        Self::Scope,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Print => "print",
            Self::Path => "path",
            Self::Call => "call",
            Self::Method => "method",
            Self::And => "and",
            Self::Or => "or",
            Self::Find => "find",
            Self::Scope => "scope",
        }
    }
}

impl Run {
    pub(super) const ALL: [Self; 7] =
        [Self::If, Self::Unless, Self::Each, Self::With, Self::Late, Self::Partial, Self::Charge];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::If => "if",
            Self::Unless => "unless",
            Self::Each => "each",
            Self::With => "with",
            Self::Late => "late",
            Self::Partial => "partial",
            Self::Charge => "charge",
        }
    }
}

/// Gives the crate the helpers of a session.
pub(super) fn register<'reg: 'rc, 'rc, 's: 'rc, 'a: 's>(
    context: &mut RenderContext<'reg, 'rc>,
    shared: &'s Shared<'a>,
) {
    for kind in Give::ALL {
        context.register_local_helper(kind.name(), Box::new(Giver { kind, shared }));
    }
    for kind in Run::ALL {
        context.register_local_helper(kind.name(), Box::new(Runner { kind, shared }));
    }
}

struct Giver<'s, 'a> {
    kind: Give,
    shared: &'s Shared<'a>,
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
            (Give::And | Give::Or, Some(other)) => {
                return self.decide(helper, other, registry, context, rc);
            }
            (Give::Call, Some(body)) => Some(self.capture(body, registry, context, rc)?),
            _ => None,
        };
        let mut session = lock(self.shared);
        let given = match self.kind {
            Give::Print => print(&mut session, helper).map(Json::String),
            Give::Find => Ok(Json::String(find(&session, helper, rc))),
            Give::Path => walk::path(&mut session, helper).map(|slot| session.push(slot)),
            Give::Call => call(&mut session, helper, body).map(|slot| session.push(slot)),
            Give::Method => method(&mut session, helper).map(|slot| session.push(slot)),
            Give::Scope => scope(&mut session, helper),
            Give::And | Give::Or => Ok(Json::Null),
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
            let charged = session.ctx.meter.charge_steps(1);
            let first = charged.and_then(|()| first(&mut session, helper));
            let first = first.map_err(|error| session.fail(error))?;
            if session.ctx.heap.truth(&first.0) == (self.kind == Give::Or) {
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
            session.descend(1).map_err(|error| session.fail(error))?;
            // The arguments are above the floor, and wait.
            session.open()
        };
        let mut out = Charged::new(self.shared);
        body.render(registry, context, rc, &mut out)?;
        let mut session = lock(self.shared);
        session.sweep();
        session.reopen(floor);
        session.ascend(1);
        Ok(out.text)
    }
}

fn first(session: &mut Session<'_>, helper: &Helper<'_>) -> Result<Slot, FuncError> {
    match helper.param(0) {
        Some(param) => session.value(param),
        None => Err(FuncError::new("a value is missing")),
    }
}

fn text<'h>(helper: &'h Helper<'_>, at: usize) -> &'h str {
    helper.param(at).and_then(|param| param.value().as_str()).unwrap_or_default()
}

fn print(session: &mut Session<'_>, helper: &Helper<'_>) -> Result<String, FuncError> {
    session.ctx.meter.charge_steps(1)?;
    let (value, _) = first(session, helper)?;
    session.sweep();
    let text = session.print(&value)?;
    let text = text.as_str().ok_or_else(|| FuncError::new("can't print text that is not UTF-8"))?;
    Ok(text.to_owned())
}

fn call(
    session: &mut Session<'_>,
    helper: &Helper<'_>,
    body: Option<String>,
) -> Result<Slot, FuncError> {
    session.ctx.meter.charge_steps(1)?;
    let mut args = arguments(session, helper.params().get(1..).unwrap_or_default())?;
    args.extend(body.map(|body| catamaran_gotemplate::Argument::value(Value::from(body), false)));
    let value = session.templates.go.call(session.ctx, text(helper, 0), args)?;
    let interface = value.is_nil();
    Ok((value, interface))
}

fn method(session: &mut Session<'_>, helper: &Helper<'_>) -> Result<Slot, FuncError> {
    session.ctx.meter.charge_steps(1)?;
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
) -> Result<Vec<catamaran_gotemplate::Argument>, FuncError> {
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
    if name == super::lower::PARTIAL_BLOCK || rc.get_partial(&name).is_some() {
        return name;
    }
    let found = session.templates.handlebars.find(text(helper, 1), &name);
    found.map(ToOwned::to_owned).unwrap_or(name)
}

/// A partial's context: a value, and over a copy of it the named arguments.
fn scope(session: &mut Session<'_>, helper: &Helper<'_>) -> Result<Json, FuncError> {
    session.ctx.meter.charge_steps(1)?;
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

struct Runner<'s, 'a> {
    kind: Run,
    shared: &'s Shared<'a>,
}

impl HelperDef for Runner<'_, '_> {
    fn call<'reg: 'rc, 'rc>(
        &self,
        helper: &Helper<'rc>,
        registry: &'reg Handlebars<'reg>,
        context: &'rc Context,
        rc: &mut RenderContext<'reg, 'rc>,
        out: &mut dyn Output,
    ) -> HelperResult {
        let (value, floor) = {
            let mut session = lock(self.shared);
            let entered = enter(&mut session, self.kind, helper);
            entered.map_err(|error| session.fail(error))?
        };
        let body = Body { helper, registry, context, shared: self.shared };
        let done = match self.kind {
            Run::Late => {
                lock(self.shared).late = value;
                return Ok(());
            }
            Run::If | Run::Unless => body.choose(self.truth(helper, &value.0), rc, out),
            Run::With if self.truth(helper, &value.0) => body.with(value, rc, out),
            Run::With => body.choose(false, rc, out),
            Run::Each => body.each(&value.0, rc, out),
            Run::Partial => body.choose(true, rc, out),
            Run::Charge => {
                let mut charged = Charged::new(self.shared);
                body.choose(true, rc, &mut charged).and_then(|()| Ok(out.write(&charged.text)?))
            }
        };
        let mut session = lock(self.shared);
        session.close(floor);
        session.ascend(1);
        done
    }
}

/// Takes what a block is about off the table, and opens its scope.
fn enter(
    session: &mut Session<'_>,
    kind: Run,
    helper: &Helper<'_>,
) -> Result<(Slot, usize), FuncError> {
    session.ctx.meter.charge_steps(1)?;
    let value = match kind {
        Run::Partial | Run::Charge => Slot::default(),
        _ => first(session, helper)?,
    };
    if kind == Run::Late {
        // Its neighbours on the table are arguments that wait.
        return Ok((value, 0));
    }
    session.sweep();
    session.descend(1)?;
    Ok((value, session.open()))
}

impl Runner<'_, '_> {
    fn truth(&self, helper: &Helper<'_>, value: &Value) -> bool {
        let zero = helper.param(1).and_then(|param| param.value().as_bool()).unwrap_or_default();
        let is_number = match value {
            Value::Int(_) | Value::Int64(_) | Value::Uint8(_) | Value::Uint64(_) => true,
            Value::Float64(number) => !number.is_nan(),
            _ => false,
        };
        let truth = match value {
            Value::Float64(number) if number.is_nan() => false,
            _ => lock(self.shared).ctx.heap.truth(value) || zero && is_number,
        };
        truth != (self.kind == Run::Unless)
    }
}

struct Body<'h, 'reg: 'rc, 'rc, 's, 'a> {
    helper: &'h Helper<'rc>,
    registry: &'reg Handlebars<'reg>,
    context: &'rc Context,
    shared: &'s Shared<'a>,
}

impl<'reg: 'rc, 'rc> Body<'_, 'reg, 'rc, '_, '_> {
    /// The body, or what is behind `else`.
    fn choose(
        &self,
        truth: bool,
        rc: &mut RenderContext<'reg, 'rc>,
        out: &mut dyn Output,
    ) -> HelperResult {
        let chosen = if truth { self.helper.template() } else { self.helper.inverse() };
        chosen.map_or(Ok(()), |body| body.render(self.registry, self.context, rc, out))
    }

    fn with(
        &self,
        value: Slot,
        rc: &mut RenderContext<'reg, 'rc>,
        out: &mut dyn Output,
    ) -> HelperResult {
        let handle = {
            let mut session = lock(self.shared);
            let handle = session.push(value);
            session.open();
            handle
        };
        let mut block = BlockContext::new();
        if let Some(parent) = rc.block() {
            block.local_variables_mut().clone_from(parent.local_variables());
        }
        if let Some(name) = self.helper.block_param() {
            let mut params = BlockParams::new();
            params.add_value(name, handle.clone())?;
            block.set_block_params(params);
        }
        block.set_base_value(handle);
        rc.push_block(block);
        let done = self.choose(true, rc, out);
        rc.pop_block();
        done
    }

    fn each(
        &self,
        value: &Value,
        rc: &mut RenderContext<'reg, 'rc>,
        out: &mut dyn Output,
    ) -> HelperResult {
        let items = {
            let mut session = lock(self.shared);
            walk::items(&mut session, value).map_err(|error| session.fail(error))?
        };
        if items.is_empty() {
            return self.choose(false, rc, out);
        }
        rc.push_block(BlockContext::new());
        let count = items.len();
        let mut done = Ok(());
        for (index, (key, item)) in items.into_iter().enumerate() {
            let place = Place { index, is_last: index + 1 == count, key };
            let floor = match self.step(place, item, rc) {
                Ok(floor) => floor,
                Err(error) => {
                    done = Err(error);
                    break;
                }
            };
            done = self.choose(true, rc, out);
            lock(self.shared).close(floor);
            if done.is_err() {
                break;
            }
        }
        rc.pop_block();
        done
    }

    /// Sets the scope of one turn.
    fn step(
        &self,
        place: Place,
        item: Slot,
        rc: &mut RenderContext<'reg, 'rc>,
    ) -> Result<usize, RenderError> {
        let mut session = lock(self.shared);
        session.ctx.meter.charge_steps(1).map_err(|error| session.fail(error))?;
        let index = Value::Int(i64::try_from(place.index).unwrap_or(i64::MAX));
        let before = session.open();
        let item = session.push(item);
        let index = session.push((index, false));
        let first = session.push((Value::Bool(place.index == 0), false));
        let last = session.push((Value::Bool(place.is_last), false));
        let key = place.key.map(|key| session.push((key, false)));
        session.open();
        drop(session);
        let Some(block) = rc.block_mut() else { return Ok(before) };
        if let Some(key) = &key {
            block.set_local_var("key", key.clone());
        }
        let mut params = BlockParams::new();
        if let Some(name) = self.helper.block_param() {
            params.add_value(name, item.clone())?;
        } else if let Some((name, key_name)) = self.helper.block_param_pair() {
            params.add_value(name, item.clone())?;
            params.add_value(key_name, key.unwrap_or_else(|| index.clone()))?;
        }
        block.set_block_params(params);
        block.set_local_var("index", index);
        block.set_local_var("first", first);
        block.set_local_var("last", last);
        block.set_base_value(item);
        Ok(before)
    }
}

/// Where a turn of `each` is.
struct Place {
    index: usize,
    is_last: bool,
    /// Of a map.
    key: Option<Value>,
}
