//! Functions and methods called from outside a Go template: by another engine that shares the
//! values, the budget and the named templates of a rendering.

use crate::compile::KEEP;
use crate::error::{Error, FuncError};
use crate::fmt::print_all;
use crate::func::{Body, Ctx};
use crate::parse::ast::{Literal, Number};
use crate::parse::token::Kind;
use crate::set::TemplateSet;
use crate::value::{Str, Sweep, Type, Value};
use crate::vm::{Flow, Machine};

/// An argument of a call from outside.
#[derive(Clone, Debug)]
pub struct Argument(Inner);

#[derive(Clone, Debug)]
enum Inner {
    Value(Value, bool),
    Literal(Literal<'static>),
    Nil,
}

impl Argument {
    /// A value. `interface`: Go would hold it in an `interface {}` (an element of a map, say),
    /// which shows in errors about nil.
    pub fn value(value: Value, interface: bool) -> Self {
        Self(Inner::Value(value, interface))
    }

    /// A number as it is written in a template: takes the type that the parameter asks for, `int`
    /// or `float64` where none does. `None` if Go has no such literal.
    pub fn number(text: &str) -> Option<Self> {
        let number = Number::parse(text.to_owned().into(), Kind::Number).ok()?;
        Some(Self(Inner::Literal(Literal::Number(Box::new(number)))))
    }

    /// A text as it is written in a template.
    pub fn text(text: &str) -> Self {
        let source = crate::fmt::quote_str(text);
        Self(Inner::Literal(Literal::String(
            source.into_bytes().into(),
            text.as_bytes().to_vec().into(),
        )))
    }

    /// `true` or `false` as it is written in a template.
    pub fn bool(value: bool) -> Self {
        Self(Inner::Literal(Literal::Bool(value)))
    }

    /// `nil` as it is written in a template: a parameter that cannot be nil refuses it.
    pub fn nil() -> Self {
        Self(Inner::Nil)
    }

    /// The value, where nothing asks for a type. The error is Go's.
    pub fn into_value(self) -> Result<Value, FuncError> {
        match self.0 {
            Inner::Value(value, _) => Ok(value),
            Inner::Literal(literal) => literal.ideal().map_err(FuncError::new),
            Inner::Nil => Ok(Value::Nil),
        }
    }
}

impl TemplateSet {
    /// Calls a function as an action of a template would, its arguments checked by Go's rules. A
    /// function that runs a template (`include`) runs it in this set, on a native stack of its own
    /// call.
    ///
    /// `and` and `or` are not called like this: what follows the argument that decides must not be
    /// evaluated, and here all are.
    ///
    /// # Errors
    /// What the action would say behind its place: `error calling NAME: ...`, or that a number or
    /// type of arguments is wrong.
    pub fn call(&self, ctx: &mut Ctx, name: &str, args: Vec<Argument>) -> Result<Value, FuncError> {
        let Some(func) = self.functions.get(name) else {
            return Err(FuncError::new(format!("function {name:?} not defined")));
        };
        let count = args.len();
        if let Some(message) = func.wrong_count(count, count) {
            return Err(FuncError::new(message));
        }
        if matches!(func.body, Body::And | Body::Or) {
            return Err(FuncError::new(format!("{name} cannot be called from outside")));
        }
        // What `call` calls the thing that it cannot call.
        let callee = match args.first() {
            Some(Argument(Inner::Literal(literal))) => literal.show().into_owned(),
            _ => "value".to_owned(),
        };
        let mut machine = Machine::new(ctx, self);
        for (i, arg) in args.into_iter().enumerate() {
            let ty = func.param(i).unwrap_or(Type::Any);
            match arg.0 {
                Inner::Literal(literal) => {
                    machine.push(literal.typed(ty).map_err(FuncError::new)?, false);
                }
                Inner::Nil if !ty.can_be_nil() => {
                    return Err(FuncError::new(format!("cannot assign nil to {ty}")));
                }
                Inner::Nil => {
                    machine.push(Value::Nil, ty == Type::Any);
                    machine.check(i, ty)?;
                }
                Inner::Value(value, interface) => {
                    machine.push(value, interface);
                    machine.check(i, ty)?;
                }
            }
        }
        if matches!(func.body, Body::Call) {
            machine.call_value(&callee, count, false, KEEP)?;
        } else if let Flow::Switch = machine.call(func, count, false, KEEP)? {
            machine.run_to_end()?;
        }
        Ok(machine.pop().0)
    }

    /// Calls a method that takes arguments, as `.receiver.Name arg` would.
    ///
    /// # Errors
    /// What the action would say behind its place.
    pub fn call_method(
        &self,
        ctx: &mut Ctx,
        receiver: Value,
        name: &str,
        args: Vec<Argument>,
    ) -> Result<Value, FuncError> {
        let (count, name) = (args.len(), Str::from(name));
        let mut machine = Machine::new(ctx, self);
        machine.push(receiver, true);
        if machine.prepare_method(&name, count, false)? {
            for (i, arg) in args.into_iter().enumerate() {
                match arg.0 {
                    Inner::Literal(literal) => machine.method_literal(i, Some(&literal))?,
                    Inner::Nil => machine.method_literal(i, None)?,
                    Inner::Value(value, interface) => {
                        machine.push(value, interface);
                        machine.check(i, machine.method_param(i))?;
                    }
                }
            }
            machine.method_call(&name, count, false, KEEP)?;
        }
        Ok(machine.pop().0)
    }
}

impl Ctx {
    /// What an action prints of a value, bounded in depth and by the memory left; of a pointer it is
    /// what the pointer points to, unlike in [`Ctx::print`].
    ///
    /// # Errors
    /// The value nests too deep, or the memory budget is used up.
    pub fn print_action(&mut self, value: &Value) -> Result<Str, FuncError> {
        let limit = self.meter.bytes_left();
        let printed = print_all(&self.heap, std::slice::from_ref(value), limit, true)?;
        self.meter.charge_bytes(printed.len())?;
        Ok(printed.into())
    }

    /// Looks at what is held, and forgets what nobody refers to if that is much. `roots` are all
    /// values at work outside the heap: no template of Go's may be running.
    ///
    /// # Errors
    /// The memory budget is used up.
    pub fn sweep<'v>(
        &mut self,
        roots: impl IntoIterator<Item = &'v Value>,
    ) -> Result<(), FuncError> {
        if self.meter.wants_sweep(self.heap.allocated()) && self.heap.is_sealed() {
            let mut sweep = Sweep::new(&self.heap);
            roots.into_iter().for_each(|value| sweep.root(value));
            let reached = sweep.finish();
            self.heap.keep(&reached);
            self.meter.swept(reached.strings, self.heap.allocated());
            self.meter.charge_steps(self.heap.containers() as u64)?;
        }
        self.meter.check_memory(self.heap.allocated())
    }
}

impl Machine<'_> {
    /// Runs the templates that a call from outside has started.
    fn run_to_end(&mut self) -> Result<(), FuncError> {
        loop {
            match self.run() {
                Ok(()) => return Ok(()),
                Err(error) => self.unwind(error).map_err(|error: Error| FuncError::from(error))?,
            }
        }
    }
}
