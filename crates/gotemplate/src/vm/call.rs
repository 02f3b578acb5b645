//! Calls of functions.

use std::sync::Arc;

use super::{Capture, Flow, Machine};
use crate::error::FuncError;
use crate::func::{Body, Call, Func};
use crate::parse::ast::NodeId;
use crate::set::{Overlay, no_template};
use crate::value::{Type, Value};

impl Machine<'_> {
    /// A function's error, shown at its command.
    pub(super) fn calling(&mut self, name: &str, cmd: NodeId, mut error: FuncError) -> FuncError {
        self.at = cmd;
        error.text = format!("error calling {name}: {}", error.text);
        error
    }

    pub(super) fn push_result(&mut self, value: Value) {
        // A function that can give nil gives an `interface {}`.
        let iface = value.is_nil();
        self.push(value, iface);
    }

    /// Moves the pipeline's value behind the arguments written, and tells where they start.
    pub(super) fn arrange(&mut self, args: usize, has_final: bool) -> usize {
        let base = self.stack.len().saturating_sub(args + usize::from(has_final));
        if has_final {
            // There are few, which is not what a rotation is made for.
            if let Some(args) = self.stack.get_mut(base..) {
                (1..args.len()).for_each(|at| args.swap(at - 1, at));
            }
            if let Some(args) = self.ifaces.get_mut(base..) {
                (1..args.len()).for_each(|at| args.swap(at - 1, at));
            }
        }
        base
    }

    /// Checks a value on the stack against a type, by Go's rules and with its texts.
    pub(crate) fn check(&mut self, index: usize, ty: Type) -> Result<(), FuncError> {
        if matches!(ty, Type::Any | Type::Reflect) {
            return Ok(());
        }
        let iface = self.ifaces.get(index).copied().unwrap_or_default();
        let Some(value) = self.stack.get_mut(index) else { return Ok(()) };
        let Some(got) = self.ctx.heap.type_of(value) else {
            if iface {
                let text = format!("wrong type for value; expected {ty}; got interface {{}}");
                return Err(FuncError::new(text));
            }
            if !ty.can_be_nil() {
                return Err(FuncError::new(format!("invalid value; expected {ty}")));
            }
            match ty.underlying() {
                Type::List(Type::Uint8) => *value = Value::Bytes([].into()),
                Type::List(_) => *value = self.ctx.heap.new_nil_list(ty).into(),
                Type::Map(_) => *value = self.ctx.heap.new_nil_map(ty).into(),
                _ => {}
            }
            return Ok(());
        };
        if got.assignable_to(ty) {
            return Ok(());
        }
        Err(FuncError::new(format!("wrong type for value; expected {ty}; got {got}")))
    }

    pub(crate) fn call(
        &mut self,
        func: &Arc<Func>,
        args: usize,
        has_final: bool,
        cmd: NodeId,
    ) -> Result<Flow, FuncError> {
        let base = self.arrange(args, has_final);
        if has_final {
            self.check(base + args, func.param(args).unwrap_or(Type::Any))?;
        }
        self.charge_arguments(base)?;
        if !matches!(func.body, Body::Builtin(_)) {
            for value in self.stack.get_mut(base..).unwrap_or_default() {
                if let Value::Object(object) = value
                    && let Some(copy) = object.by_value()
                {
                    *value = copy;
                }
            }
        }
        let values = self.stack.get(base..).unwrap_or_default();
        let result = match func.body {
            Body::Plain(body) => body(self.ctx, values),
            Body::Builtin(body) => {
                body(self.ctx, values, self.ifaces.get(base..).unwrap_or_default())
            }
            Body::Engine(body) => {
                let call = body(self.ctx, values).map_err(|e| self.calling(func.name, cmd, e))?;
                return self.engine_call(func.name, call, base, cmd);
            }
            Body::And | Body::Or | Body::Call => {
                Err(FuncError::new("this function has no value of its own"))
            }
        };
        self.truncate(base);
        let value = result.map_err(|error| self.calling(func.name, cmd, error))?;
        self.push_result(value);
        self.account()?;
        Ok(Flow::Next)
    }

    /// Every function may look at its texts once; what does more charges for it.
    pub(super) fn charge_arguments(&mut self, base: usize) -> Result<(), FuncError> {
        let length = |value: &Value| match value {
            Value::String(text) => text.len(),
            Value::Bytes(bytes) => bytes.len(),
            _ => 0,
        };
        let values = self.stack.get(base..).unwrap_or_default();
        let bytes: usize = values.iter().map(length).sum();
        if bytes < LOOKED_AT_PER_STEP {
            Ok(())
        } else {
            self.ctx.meter.charge_steps((bytes / LOOKED_AT_PER_STEP) as u64)
        }
    }

    /// The builtin `call`: the first argument is the function.
    pub(crate) fn call_value(
        &mut self,
        name: &str,
        args: usize,
        has_final: bool,
        cmd: NodeId,
    ) -> Result<(), FuncError> {
        let base = self.arrange(args, has_final);
        self.charge_arguments(base)?;
        let values = self.stack.get(base..).unwrap_or_default();
        let name = &match values.first() {
            // A callee from the pipeline has no source; Go names its value.
            Some(Value::String(callee)) if args == 0 => callee.to_string(),
            Some(Value::Nil) if args == 0 => "<invalid Value>".to_owned(),
            Some(callee) if args == 0 => format!("<{} Value>", self.ctx.heap.type_name(callee)),
            _ => name.to_owned(),
        };
        let result = match values.split_first() {
            None | Some((Value::Nil, _)) => Err(FuncError::new("call of nil")),
            Some((Value::Func(func), args)) => match func.body {
                Body::Plain(body) => {
                    check_value_args(self, func, name, args).and_then(|()| body(self.ctx, args))
                }
                _ => Err(FuncError::new(format!("{name} cannot be called through a value"))),
            },
            Some((other, _)) => {
                let ty = self.ctx.heap.type_name(other);
                Err(FuncError::new(format!("non-function {name} of type {ty}")))
            }
        };
        self.truncate(base);
        let value = result.map_err(|error| self.calling("call", cmd, error))?;
        self.push_result(value);
        self.account()
    }

    /// Starts the template a function asks for.
    fn engine_call(
        &mut self,
        name: &'static str,
        call: Call,
        base: usize,
        cmd: NodeId,
    ) -> Result<Flow, FuncError> {
        let outer = self.frames.last().and_then(|frame| frame.overlay.clone());
        let (then, data, found) = match call {
            Call::Done(value) => {
                self.truncate(base);
                self.push_result(value);
                return Ok(Flow::Next);
            }
            Call::Template { name, data, then } => {
                let found = self.lookup(&name).ok_or_else(|| no_template(&name));
                (then, data, found.map(|template| (template, outer)))
            }
            Call::Text { name: text_name, text, data, then } => {
                let parsed = self.ctx.parse_text(text_name, &text, &self.set.functions);
                let parsed = parsed.map_err(|error| self.calling(name, cmd, error))?;
                let found = match parsed {
                    Ok(parsed) => {
                        let (overlay, count) = Overlay::new(outer.as_ref(), &parsed, self.set);
                        self.ctx.meter.charge_steps(count as u64)?;
                        self.ctx.meter.charge_bytes(overlay.size())?;
                        Ok((Arc::clone(&parsed.main), Some(Arc::new(overlay))))
                    }
                    Err(error) => Err(error),
                };
                (then, data, found)
            }
        };
        let capture = Capture {
            name,
            cmd,
            stack: base,
            args: self.stack.len().saturating_sub(base),
            then,
            out: self.out.len(),
            iters: self.iters.len(),
            methods: self.methods.len(),
        };
        match found {
            Ok((template, overlay)) => {
                self.check_depth().map_err(|error| self.calling(name, cmd, error))?;
                self.captures.push(capture);
                self.enter(template, data, overlay, 0, true);
                Ok(Flow::Switch)
            }
            Err(error) => {
                self.resume(&capture, Err(error))?;
                Ok(Flow::Next)
            }
        }
    }
}

/// Bytes that are compared or searched in the time of one step.
const LOOKED_AT_PER_STEP: usize = 32;

/// The checks of `call`, whose texts differ from those of a direct call.
fn check_value_args(
    machine: &Machine<'_>,
    func: &Func,
    name: &str,
    args: &[Value],
) -> Result<(), FuncError> {
    let (given, want) = (args.len(), func.params.len());
    if func.variadic.is_some() && given < want {
        let text = format!("wrong number of args for {name}: got {given} want at least {want}");
        return Err(FuncError::new(text));
    }
    if func.variadic.is_none() && given != want {
        let text = format!("wrong number of args for {name}: got {given} want {want}");
        return Err(FuncError::new(text));
    }
    for (i, arg) in args.iter().enumerate() {
        let want = func.param(i).unwrap_or(Type::Any);
        let text = match machine.ctx.heap.type_of(arg) {
            None if want.can_be_nil() => continue,
            None => format!("arg {i}: value is nil; should be of type {want}"),
            Some(got) if got.assignable_to(want) => continue,
            Some(got) => format!("arg {i}: value has type {got}; should be {want}"),
        };
        return Err(FuncError::new(text));
    }
    Ok(())
}
