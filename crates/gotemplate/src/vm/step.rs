//! One instruction.

use super::{Flow, LONG_NAME, MAX_TEMPLATE_DEPTH, Machine};
use crate::compile::{Op, Slot, Template};
use crate::error::FuncError;
use crate::fmt::{print_all, quote};
use crate::value::{Str, Value};

impl Machine<'_> {
    #[allow(clippy::inline_always, reason = "in the loop of the machine, its one caller")]
    #[inline(always)]
    pub(super) fn step(&mut self, template: &Template, op: &Op) -> Result<Flow, FuncError> {
        match op {
            Op::Text { start, end } => self.text(template, *start, *end)?,
            Op::Load(slot) => {
                let (value, iface) = self.var(*slot).cloned().unwrap_or_default();
                self.push(value, iface);
            }
            Op::Store { slot, pop } => {
                let value = if *pop { self.pop().0 } else { self.top() };
                self.set_var(*slot, value, false);
            }
            Op::Const(value) => self.push(value.clone(), false),
            Op::NilInterface => self.push(Value::Nil, true),
            Op::Path { slot, names } => self.path(*slot, template.path(names))?,
            Op::Fields { names, owner } => {
                let of = self.pop();
                self.fields(of, template.path(names), *owner)?;
            }
            Op::Method { name, args, has_final, skip } => {
                if !self.prepare_method(name, *args as usize, *has_final)? {
                    return Ok(Flow::Jump(*skip));
                }
            }
            Op::MethodLiteral { index, literal } => {
                self.method_literal(*index, literal.as_deref())?;
            }
            Op::MethodCheck(index) => {
                let ty = self.method_param(*index);
                self.check(self.stack.len().saturating_sub(1), ty)?;
            }
            Op::MethodCall { name, args, has_final, owner } => {
                self.method_call(name, *args as usize, *has_final, *owner)?;
            }
            Op::Check(ty) => self.check(self.stack.len().saturating_sub(1), *ty)?,
            Op::Call { func, args, has_final, cmd } => {
                return self.call(func, *args as usize, *has_final, *cmd);
            }
            Op::CallValue { name, args, has_final, cmd } => {
                self.call_value(name, *args as usize, *has_final, *cmd)?;
            }
            Op::Concrete => {
                if let Some(iface) = self.ifaces.last_mut() {
                    *iface = false;
                }
            }
            Op::ShortCircuit { when, to } => {
                let truth = self.stack.last().is_some_and(|top| self.ctx.heap.truth(top));
                if truth == *when {
                    return Ok(Flow::Jump(*to));
                }
                self.pop();
            }
            Op::DropUnder => {
                let (value, iface) = self.pop();
                self.pop();
                self.push(value, iface);
            }
            Op::Pop => {
                self.pop();
            }
            Op::Print => self.print()?,
            Op::Jump(to) => return Ok(Flow::Jump(*to)),
            Op::JumpFalse(to) => {
                let (value, _) = self.pop();
                if !self.ctx.heap.truth(&value) {
                    return Ok(Flow::Jump(*to));
                }
            }
            Op::With { dot, to } => {
                let (value, iface) = self.pop();
                if !self.ctx.heap.truth(&value) {
                    return Ok(Flow::Jump(*to));
                }
                self.set_var(*dot, value, iface);
            }
            Op::RangeStart { vars, to } => return self.range_start(*vars, *to),
            Op::RangeNext { dot, key, item, to } => {
                return Ok(self.range_next(*dot, *key, *item, *to));
            }
            Op::RangeEnd => self.end_range(),
            Op::CheckTemplate(name) => self.check_template(name)?,
            Op::Template(name) => return self.template(name),
            Op::Fail(message) => return Err(FuncError::new(message.clone())),
            Op::Return => return self.finish(),
        }
        Ok(Flow::Next)
    }

    fn top(&self) -> Value {
        self.stack.last().cloned().unwrap_or_default()
    }

    pub(super) fn var(&self, slot: Slot) -> Option<&(Value, bool)> {
        let base = self.frames.last().map_or(0, |frame| frame.vars);
        self.vars.get(base + slot as usize)
    }

    pub(super) fn set_var(&mut self, slot: Slot, value: Value, iface: bool) {
        let base = self.frames.last().map_or(0, |frame| frame.vars);
        if let Some(var) = self.vars.get_mut(base + slot as usize) {
            *var = (value, iface);
        }
    }

    fn text(&mut self, template: &Template, start: usize, end: usize) -> Result<(), FuncError> {
        self.ctx.meter.charge_output(end - start)?;
        let text = template.source.text.as_bytes().get(start..end).unwrap_or_default();
        self.out.extend_from_slice(text);
        Ok(())
    }

    fn print(&mut self) -> Result<(), FuncError> {
        let (value, _) = self.pop();
        let printed;
        let text = match &value {
            Value::String(text) => text.as_bytes(),
            Value::Nil => b"<no value>",
            Value::Func(_) => {
                let node = self.frames.last().map(|frame| frame.template.place(self.at));
                let shown = node.map(|place| place.expression).unwrap_or_default();
                return Err(FuncError::new(format!("can't print {shown} of type func()")));
            }
            _ => {
                let limit = self.ctx.meter.bytes_left();
                printed = print_all(&self.ctx.heap, std::slice::from_ref(&value), limit, true)?;
                &printed
            }
        };
        self.ctx.meter.charge_output(text.len())?;
        self.out.extend_from_slice(text);
        Ok(())
    }

    /// Names in the source are as long as their author likes.
    pub(super) fn charge_name(&mut self, name: &[u8]) -> Result<(), FuncError> {
        if name.len() < LONG_NAME { Ok(()) } else { self.ctx.meter.charge_scan(name.len()) }
    }

    fn check_template(&mut self, name: &Str) -> Result<(), FuncError> {
        self.charge_name(name.as_bytes())?;
        if self.lookup(name).is_none() {
            return Err(FuncError::new(format!("template {} not defined", quote(name))));
        }
        if self.frames.last().is_some_and(|frame| frame.depth >= MAX_TEMPLATE_DEPTH) {
            let text = format!("exceeded maximum template depth ({MAX_TEMPLATE_DEPTH})");
            return Err(FuncError::new(text));
        }
        self.check_depth()
    }

    fn template(&mut self, name: &Str) -> Result<Flow, FuncError> {
        let (data, _) = self.pop();
        let Some(template) = self.lookup(name) else {
            return Err(FuncError::new(format!("template {} not defined", quote(name))));
        };
        let frame = self.frames.last();
        let depth = frame.map_or(0, |frame| frame.depth + 1);
        let overlay = frame.and_then(|frame| frame.overlay.clone());
        self.enter(template, data, overlay, depth, false);
        Ok(Flow::Switch)
    }
}
