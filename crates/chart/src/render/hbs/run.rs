//! Helpers that run a body: blocks, and what stands around a partial.

use catamaran_gotemplate::{FuncError, Value};
use handlebars::{
    BlockContext, BlockParams, Context, Handlebars, Helper, HelperDef, HelperResult, Output,
    RenderContext, RenderError, Renderable,
};

use super::give::first;
use super::helpers::{HELPER_STEPS, Run};
use super::session::{Charged, Session, Shared, Slot, lock};
use super::walk;

/// What a turn of `each` takes, in steps of the budget.
const TURN_STEPS: u64 = 20;

pub(super) struct Runner<'s, 'a> {
    pub(super) kind: Run,
    pub(super) shared: &'s Shared<'a>,
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
        session.ascend(self.kind.stack());
        done
    }
}

/// Takes what a block is about off the table, and opens its scope.
fn enter(
    session: &mut Session<'_>,
    kind: Run,
    helper: &Helper<'_>,
) -> Result<(Slot, usize), FuncError> {
    session.ctx.meter.charge_steps(HELPER_STEPS)?;
    let value = match kind {
        Run::Partial | Run::Charge => Slot::default(),
        _ => first(session, helper)?,
    };
    if kind == Run::Late {
        // Its neighbours on the table are arguments that wait.
        return Ok((value, 0));
    }
    session.sweep();
    session.descend(kind.stack())?;
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
        {
            let mut session = lock(self.shared);
            let items = walk::items(&mut session, value).map_err(|error| session.fail(error))?;
            if items.is_empty() {
                drop(session);
                return self.choose(false, rc, out);
            }
            session.begin(items);
        }
        rc.push_block(BlockContext::new());
        let mut done = Ok(());
        for index in 0.. {
            match self.step(index, rc) {
                Ok(Some(floor)) => {
                    done = self.choose(true, rc, out);
                    lock(self.shared).close(floor);
                }
                Ok(None) => break,
                Err(error) => done = Err(error),
            }
            if done.is_err() {
                break;
            }
        }
        lock(self.shared).end();
        rc.pop_block();
        done
    }

    /// Sets the scope of the next turn; gives what ends it, or nothing if there is none.
    fn step(
        &self,
        index: i64,
        rc: &mut RenderContext<'reg, 'rc>,
    ) -> Result<Option<usize>, RenderError> {
        let mut session = lock(self.shared);
        session.ctx.meter.charge_steps(TURN_STEPS).map_err(|error| session.fail(error))?;
        let Some(((key, item), is_last)) = session.next_item() else { return Ok(None) };
        let before = session.open();
        let item = session.push(item);
        let first = session.push((Value::Bool(index == 0), false));
        let last = session.push((Value::Bool(is_last), false));
        let index = session.push((Value::Int(index), false));
        let key = key.map(|key| session.push((key, false)));
        session.open();
        drop(session);
        let Some(block) = rc.block_mut() else { return Ok(Some(before)) };
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
        Ok(Some(before))
    }
}
