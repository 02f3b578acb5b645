//! Functions and methods called from outside a Go template: by another engine that shares the
//! values, the budget and the named templates of a rendering.

use crate::compile::KEEP;
use crate::error::{Error, FuncError};
use crate::func::{Body, Ctx};
use crate::parse::ast::{Literal, Number};
use crate::parse::token::Kind;
use crate::set::TemplateSet;
use crate::value::{Str, Value};
use crate::vm::{Flow, Machine};

/// An argument of a call from outside.
#[derive(Clone, Debug)]
pub struct Argument(Inner);

#[derive(Clone, Debug)]
enum Inner {
    Value(Value, bool),
    Literal(Literal),
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
        let number = Number::parse(text.to_owned(), Kind::Number).ok()?;
        Some(Self(Inner::Literal(Literal::Number(number))))
    }

    /// A text as it is written in a template.
    pub fn text(text: &str) -> Self {
        let source = crate::fmt::quote_str(text);
        Self(Inner::Literal(Literal::String(source, text.into())))
    }

    /// `true` or `false` as it is written in a template.
    pub fn bool(value: bool) -> Self {
        Self(Inner::Literal(Literal::Bool(value)))
    }

    /// The value, where nothing asks for a type. The error is Go's.
    pub fn into_value(self) -> Result<Value, FuncError> {
        match self.0 {
            Inner::Value(value, _) => Ok(value),
            Inner::Literal(literal) => literal.ideal().map_err(FuncError::new),
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
        if let Some(message) = func.wrong_count(name, count, count) {
            return Err(FuncError::new(message));
        }
        if matches!(func.body, Body::And | Body::Or) {
            return Err(FuncError::new(format!("{name} cannot be called from outside")));
        }
        let mut machine = Machine::new(ctx, self);
        for (i, arg) in args.into_iter().enumerate() {
            let ty = func.param(i).unwrap_or(crate::Type::Any);
            match arg.0 {
                Inner::Literal(literal) => {
                    machine.push(literal.typed(ty).map_err(FuncError::new)?, false);
                }
                Inner::Value(value, interface) => {
                    machine.push(value, interface);
                    machine.check(i, ty)?;
                }
            }
        }
        if matches!(func.body, Body::Call) {
            machine.call_value(name, count, false, KEEP)?;
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
