//! Expressions to code that leaves one value on the stack.

use std::sync::Arc;

use super::show::show;
use super::{Builder, KEEP, Op, Path, Slot, index};
use crate::func::{Body, Func};
use crate::parse::ast::{Command, Expr, ExprKind, Fields, Literal, NodeId, Pipe};
use crate::value::{Str, Type, Value};

/// What an argument is for.
#[derive(Clone, Copy)]
enum Param {
    /// A function's parameter, known now.
    Known(Type),
    /// A method's parameter, known when the receiver is.
    OfMethod(usize),
    /// The base of a chain: anything.
    Base,
}

impl<'t> Builder<'t> {
    pub(super) fn pipe(&mut self, pipe: &Pipe<'t>) {
        for (i, command) in pipe.cmds.iter().enumerate() {
            let node = if i == 0 { pipe.node } else { KEEP };
            self.command(command, i > 0, node);
            self.emit(Op::Concrete, KEEP);
        }
        for name in &pipe.decl {
            if !pipe.is_assign {
                let slot = self.declare(Some(name));
                self.emit(Op::Store { slot, pop: false }, KEEP);
            } else if let Some(slot) = self.resolve(name) {
                self.emit(Op::Store { slot, pop: false }, KEEP);
            } else {
                self.emit(Op::Fail(format!("undefined variable: {name}")), KEEP);
            }
        }
    }

    /// `before` is the node to be current when the command's own do not take over at once.
    fn command(&mut self, command: &Command<'t>, has_final: bool, before: NodeId) {
        let Some((first, args)) = command.args.split_first() else { return };
        let call = Call { command, args, has_final };
        let node = first.node;
        match &first.kind {
            ExprKind::Field(fields) => self.chain(Some(self.dot), fields, node, &call),
            ExprKind::Chain(base, fields) => self.chain_command(first, base, fields, &call),
            ExprKind::Function(func) => self.function(func, node, &call),
            ExprKind::Pipe(inner) => {
                if self.not_a_function(first, &call, before) {
                    self.pipe(inner);
                }
            }
            ExprKind::Variable(name, fields) => {
                self.variable(name, fields, node, &call);
                if fields.names.is_empty() {
                    self.not_a_function(first, &call, node);
                }
            }
            ExprKind::Dot => {
                if self.not_a_function(first, &call, node) {
                    self.emit(Op::Load(self.dot), node);
                }
            }
            ExprKind::Nil => {
                if self.not_a_function(first, &call, node) {
                    self.emit(Op::Fail("nil is not a command".to_owned()), node);
                }
            }
            ExprKind::Literal(literal) => {
                if self.not_a_function(first, &call, node) {
                    self.literal(literal, Type::Any, node);
                }
            }
        }
    }

    /// Whether all is well: no arguments are given to what takes none.
    fn not_a_function(&mut self, first: &Expr<'_>, call: &Call<'_, '_>, node: NodeId) -> bool {
        let fine = call.args.is_empty() && !call.has_final;
        if !fine {
            let shown = show(first);
            let message = format!("can't give argument to non-function {shown}");
            self.emit(Op::Fail(message), node);
        }
        fine
    }

    /// A variable and the fields behind it.
    fn variable(&mut self, name: &str, fields: &Fields<'t>, node: NodeId, call: &Call<'_, 't>) {
        match self.resolve(name) {
            Some(slot) if fields.names.is_empty() => self.emit(Op::Load(slot), node),
            Some(slot) => self.chain(Some(slot), fields, node, call),
            // The parser saw it declared somewhere, but not on the way to here.
            None => self.emit(Op::Fail(format!("undefined variable: {name}")), node),
        }
    }

    fn chain_command(
        &mut self,
        chain: &Expr<'t>,
        base: &Expr<'t>,
        fields: &Fields<'t>,
        call: &Call<'_, 't>,
    ) {
        if matches!(base.kind, ExprKind::Nil) {
            let message = format!("indirection through explicit nil in {}", show(chain));
            self.emit(Op::Fail(message), chain.node);
            return;
        }
        self.arg(base, Param::Base);
        self.chain(None, fields, chain.node, call);
    }

    /// Fields of a variable or of the top; the last one may be a method with arguments.
    fn chain(&mut self, of: Option<Slot>, fields: &Fields<'t>, owner: NodeId, call: &Call<'_, 't>) {
        let names = fields.names.clone();
        if call.args.is_empty() && !call.has_final {
            self.fields(of, names, owner);
            return;
        }
        let Some((_, last)) = fields.text.rsplit_once('.') else { return };
        self.fields(of, names.start..names.end - 1, owner);
        let name = Str::from(last);
        let (args, has_final) = (index(call.args.len()), call.has_final);
        let start = self.here();
        let (skip, node) = (super::UNKNOWN, if of.is_some() { owner } else { KEEP });
        self.emit(Op::Method { name: name.clone(), args, has_final, skip }, node);
        for (i, arg) in call.args.iter().enumerate() {
            self.arg(arg, Param::OfMethod(i));
        }
        self.emit(Op::MethodCall { name, args, has_final, owner }, KEEP);
        self.land(start);
    }

    /// `.a.b`, or nothing at all, of a variable or of the top.
    fn fields(&mut self, of: Option<Slot>, names: Path, owner: NodeId) {
        match of {
            Some(slot) if names.is_empty() => self.emit(Op::Load(slot), owner),
            Some(slot) => self.emit(Op::Path { slot, names }, owner),
            None if names.is_empty() => {}
            None => self.emit(Op::Fields { names, owner }, KEEP),
        }
    }

    fn function(&mut self, func: &Arc<Func>, node: NodeId, call: &Call<'_, 't>) {
        if let Some(message) = wrong_count(func, call) {
            self.emit(Op::Fail(message), node);
            return;
        }
        let cmd = call.command.node;
        match func.body {
            Body::And => self.short_circuit(call, false, node),
            Body::Or => self.short_circuit(call, true, node),
            _ => {
                for (i, arg) in call.args.iter().enumerate() {
                    let ty = func.param(i).unwrap_or(Type::Any);
                    self.arg(arg, Param::Known(ty));
                }
                let (args, has_final) = (index(call.args.len()), call.has_final);
                // Without arguments the function's own name is the last node seen.
                let at = if args == 0 { node } else { KEEP };
                let op = if matches!(func.body, Body::Call) {
                    let name = call.args.first().map(show);
                    let name = name.unwrap_or_default().into();
                    Op::CallValue { name, args, has_final, cmd }
                } else {
                    Op::Call { func: Arc::clone(func), args, has_final, cmd }
                };
                self.emit(op, at);
            }
        }
    }

    /// `and` and `or`: what decides is the result; what comes after it is not evaluated.
    fn short_circuit(&mut self, call: &Call<'_, 't>, when: bool, node: NodeId) {
        let Some((last, before)) = call.args.split_last() else {
            // Only a value from the pipeline: it is the result.
            self.emit(Op::Check(Type::Reflect), node);
            return;
        };
        let mut jumps = Vec::new();
        let decided_by_arg = if call.has_final { call.args } else { before };
        for arg in decided_by_arg {
            self.arg(arg, Param::Known(Type::Reflect));
            jumps.push(self.here());
            self.emit(Op::ShortCircuit { when, to: super::UNKNOWN }, KEEP);
        }
        if !call.has_final {
            self.arg(last, Param::Known(Type::Reflect));
            self.land_all(jumps);
            return;
        }
        let end = self.jump();
        self.land_all(jumps);
        self.emit(Op::DropUnder, KEEP);
        self.land(end);
    }

    fn arg(&mut self, arg: &Expr<'t>, param: Param) {
        let node = arg.node;
        let alone =
            Call { command: &Command { node, args: Vec::new() }, args: &[], has_final: false };
        match &arg.kind {
            ExprKind::Nil => return self.nil_arg(param, node),
            ExprKind::Literal(literal) => return self.literal_arg(literal, param, node),
            ExprKind::Dot => self.emit(Op::Load(self.dot), node),
            ExprKind::Field(fields) => self.chain(Some(self.dot), fields, node, &alone),
            ExprKind::Variable(name, fields) => self.variable(name, fields, node, &alone),
            ExprKind::Function(func) => self.function(func, node, &alone),
            ExprKind::Chain(base, fields) => self.chain_command(arg, base, fields, &alone),
            ExprKind::Pipe(pipe) => self.pipe(pipe),
        }
        match param {
            // What the check says is shown at the last node evaluated.
            Param::Known(Type::Any | Type::Reflect) | Param::Base => {}
            Param::Known(ty) => self.emit(Op::Check(ty), KEEP),
            Param::OfMethod(index) => self.emit(Op::MethodCheck(index), KEEP),
        }
    }

    fn nil_arg(&mut self, param: Param, node: NodeId) {
        match param {
            Param::Known(Type::Reflect) => self.emit(Op::Const(Value::Nil), node),
            Param::Known(Type::Any) | Param::Base => self.emit(Op::NilInterface, node),
            Param::Known(ty) if ty.can_be_nil() => {
                self.emit(Op::Const(Value::Nil), node);
                self.emit(Op::Check(ty), KEEP);
            }
            Param::Known(ty) => self.emit(Op::Fail(format!("cannot assign nil to {ty}")), node),
            Param::OfMethod(index) => self.emit(Op::MethodLiteral { index, literal: None }, node),
        }
    }

    fn literal_arg(&mut self, literal: &Literal<'_>, param: Param, node: NodeId) {
        match param {
            Param::Known(ty) => self.literal(literal, ty, node),
            Param::Base => self.literal(literal, Type::Any, node),
            Param::OfMethod(index) => {
                let literal = Some(Box::new(literal.to_owned()));
                self.emit(Op::MethodLiteral { index, literal }, node);
            }
        }
    }

    fn literal(&mut self, literal: &Literal<'_>, ty: Type, node: NodeId) {
        let op = match literal.typed(ty) {
            Ok(value) => Op::Const(value),
            Err(message) => Op::Fail(message),
        };
        self.emit(op, node);
    }
}

/// The arguments of a call: those written behind the function, and whether one comes down the
/// pipeline.
struct Call<'e, 't> {
    command: &'e Command<'t>,
    args: &'e [Expr<'t>],
    has_final: bool,
}

fn wrong_count(func: &Func, call: &Call<'_, '_>) -> Option<String> {
    let given = call.args.len() + usize::from(call.has_final);
    func.wrong_count(given, call.args.len())
}

impl Func {
    /// The type of an argument.
    pub(crate) fn param(&self, index: usize) -> Option<Type> {
        self.params.get(index).copied().or(self.variadic)
    }

    /// Go's complaint, if the number of arguments is wrong; `written` leaves out the pipeline's.
    pub(crate) fn wrong_count(&self, given: usize, written: usize) -> Option<String> {
        wrong_count_for(self.params.len(), self.variadic.is_some(), self.name, given, written)
    }
}

pub(crate) fn wrong_count_for(
    params: usize,
    variadic: bool,
    name: &str,
    given: usize,
    written: usize,
) -> Option<String> {
    if variadic {
        (given < params).then(|| {
            format!("wrong number of args for {name}: want at least {params} got {written}")
        })
    } else {
        (given != params)
            .then(|| format!("wrong number of args for {name}: want {params} got {given}"))
    }
}
