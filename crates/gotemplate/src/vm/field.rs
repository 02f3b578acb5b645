//! Fields, keys and methods of values.

use super::{LONG_NAME, Machine};
use crate::compile::{Names, wrong_count_for};
use crate::error::FuncError;
use crate::fmt::quote_bytes;
use crate::parse::ast::{Literal, NodeId};
use crate::set::MissingKey;
use crate::value::{Heap, Kind, Str, Type, Value};

type Slot = (Value, bool);

impl Machine<'_> {
    /// The Go type that an error names for a value.
    fn shown_type(&self, value: &Value, iface: bool) -> String {
        if iface { Type::Any.to_string() } else { self.ctx.heap.type_name(value) }
    }

    /// Pushes what fields of a variable lead to.
    pub(super) fn path(&mut self, slot: u32, mut names: Names<'_>) -> Result<(), FuncError> {
        let Some((of, iface)) = self.var(slot) else { return Ok(()) };
        let (of, iface, steps) = through_maps(&self.ctx.heap, of, *iface, &mut names);
        let of = of.clone();
        self.ctx.meter.charge_steps(steps)?;
        self.remaining_fields(of, iface, names, self.at)
    }

    /// Pushes what fields of a value lead to.
    pub(super) fn fields(
        &mut self,
        (of, iface): Slot,
        mut names: Names<'_>,
        owner: NodeId,
    ) -> Result<(), FuncError> {
        let (of, iface, steps) = through_maps(&self.ctx.heap, &of, iface, &mut names);
        self.ctx.meter.charge_steps(steps)?;
        self.remaining_fields(of.clone(), iface, names, owner)
    }

    fn remaining_fields(
        &mut self,
        mut of: Value,
        mut iface: bool,
        names: Names<'_>,
        owner: NodeId,
    ) -> Result<(), FuncError> {
        for (name, _) in names {
            self.ctx.meter.charge_steps(1)?;
            self.charge_name(name)?;
            (of, iface) = self.field(&of, iface, name, owner)?;
        }
        self.push(of, iface);
        Ok(())
    }

    /// `.name` of a value, without arguments.
    fn field(
        &mut self,
        receiver: &Value,
        iface: bool,
        name: &[u8],
        owner: NodeId,
    ) -> Result<Slot, FuncError> {
        if receiver.is_nil() {
            return self.field_of_nil(iface, name);
        }
        let ty = self.ctx.heap.type_of(receiver).unwrap_or(Type::Any);
        if let Some(method) = ty.method(name) {
            let (params, variadic) = (method.params.len(), method.variadic.is_some());
            if let Some(message) = wrong_count_for(params, variadic, method.name, 0, 0) {
                return Err(FuncError::new(message));
            }
            let result = (method.call)(self.ctx, receiver, &[]);
            let value = result.map_err(|error| self.calling(method.name, owner, error))?;
            let iface = value.is_nil();
            // Reading a field makes nothing that is worth sweeping for.
            self.check_memory()?;
            return Ok((value, iface));
        }
        match receiver {
            Value::Map(map) => match self.ctx.heap.get(*map, name) {
                Some(value) => Ok((value.clone(), ty.holds_any())),
                None => self.missing(ty, name),
            },
            Value::Object(object) if object.is_nil() => Err(self.nil_object(receiver, iface, name)),
            Value::Object(object) => match object
                .field(&mut self.ctx.heap, &String::from_utf8_lossy(name))
            {
                Some(value) => {
                    let iface = value.is_nil();
                    Ok((value, iface))
                }
                None if object.go_type().underlying.kind() == Kind::Map => self.missing(ty, name),
                None => Err(self.no_field(receiver, iface, name)),
            },
            _ => Err(self.no_field(receiver, iface, name)),
        }
    }

    fn nil_object(&self, receiver: &Value, iface: bool, name: &[u8]) -> FuncError {
        let name = String::from_utf8_lossy(name);
        let shown = self.shown_type(receiver, iface);
        FuncError::new(format!("nil pointer evaluating {shown}.{name}"))
    }

    fn no_field(&self, receiver: &Value, iface: bool, name: &[u8]) -> FuncError {
        let name = String::from_utf8_lossy(name);
        let shown = self.shown_type(receiver, iface);
        FuncError::new(format!("can't evaluate field {name} in type {shown}"))
    }

    fn field_of_nil(&self, iface: bool, name: &[u8]) -> Result<Slot, FuncError> {
        if iface {
            let name = String::from_utf8_lossy(name);
            return Err(FuncError::new(format!("nil pointer evaluating interface {{}}.{name}")));
        }
        if self.set.missing_key == MissingKey::Error {
            return Err(FuncError::new(format!(
                "nil data; no entry for key {}",
                quote_bytes(name, b'"', false)
            )));
        }
        Ok((Value::Nil, false))
    }

    /// What a map gives for a key that it does not have.
    fn missing(&self, ty: Type, name: &[u8]) -> Result<Slot, FuncError> {
        match self.set.missing_key {
            MissingKey::Invalid => Ok((Value::Nil, false)),
            MissingKey::Zero => Ok(zero(ty.elem().unwrap_or(Type::Any))),
            MissingKey::Error => Err(FuncError::new(format!(
                "map has no entry for key {}",
                quote_bytes(name, b'"', false)
            ))),
        }
    }

    /// Pops the receiver of a call with arguments. `false`: there is nothing to call, and nothing
    /// is the result.
    pub(crate) fn prepare_method(
        &mut self,
        name: &Str,
        args: usize,
        has_final: bool,
    ) -> Result<bool, FuncError> {
        let (receiver, iface) = self.pop();
        if receiver.is_nil() {
            let nothing = self.field_of_nil(iface, name.as_bytes())?;
            if has_final {
                self.pop();
            }
            self.push(nothing.0, nothing.1);
            return Ok(false);
        }
        let ty = self.ctx.heap.type_of(&receiver).unwrap_or(Type::Any);
        let Some(method) = ty.method(name) else {
            return Err(self.no_method(&receiver, iface, name));
        };
        let given = args + usize::from(has_final);
        let (params, variadic) = (method.params.len(), method.variadic.is_some());
        if let Some(message) = wrong_count_for(params, variadic, method.name, given, args) {
            return Err(FuncError::new(message));
        }
        self.methods.push((method, receiver));
        Ok(true)
    }

    fn no_method(&mut self, receiver: &Value, iface: bool, name: &Str) -> FuncError {
        match receiver {
            Value::Map(_) => FuncError::new(format!("{name} is not a method but has arguments")),
            Value::Object(object) if object.is_nil() => {
                self.nil_object(receiver, iface, name.as_bytes())
            }
            Value::Object(object)
                if object.field(&mut self.ctx.heap, &name.to_str_lossy()).is_some() =>
            {
                FuncError::new(format!("{name} has arguments but cannot be invoked as function"))
            }
            _ => self.no_field(receiver, iface, name.as_bytes()),
        }
    }

    /// The type of a parameter of the method prepared last.
    pub(crate) fn method_param(&self, index: usize) -> Type {
        let param = self
            .methods
            .last()
            .and_then(|(method, _)| method.params.get(index).copied().or(method.variadic));
        param.unwrap_or(Type::Any)
    }

    pub(crate) fn method_literal(
        &mut self,
        index: usize,
        literal: Option<&Literal<'_>>,
    ) -> Result<(), FuncError> {
        let ty = self.method_param(index);
        match literal {
            Some(literal) => {
                let value = literal.typed(ty).map_err(FuncError::new)?;
                self.push(value, false);
                Ok(())
            }
            None if ty.can_be_nil() => {
                self.push(Value::Nil, false);
                self.check(self.stack.len().saturating_sub(1), ty)
            }
            None => Err(FuncError::new(format!("cannot assign nil to {ty}"))),
        }
    }

    pub(crate) fn method_call(
        &mut self,
        name: &Str,
        args: usize,
        has_final: bool,
        owner: NodeId,
    ) -> Result<(), FuncError> {
        let Some((method, receiver)) = self.methods.pop() else { return Ok(()) };
        let base = self.arrange(args, has_final);
        if has_final {
            let ty = method.params.get(args).copied().or(method.variadic).unwrap_or(Type::Any);
            self.check(base + args, ty)?;
        }
        self.charge_arguments(base)?;
        let args = self.stack.get(base..).unwrap_or_default();
        let result = (method.call)(self.ctx, &receiver, args);
        self.truncate(base);
        let value = result.map_err(|error| self.calling(&name.to_str_lossy(), owner, error))?;
        self.push_result(value);
        self.account()
    }
}

/// Follows names as long as they are keys of maps, which nearly all are; takes them, and counts them.
/// Nothing is copied on the way.
fn through_maps<'v>(
    heap: &'v Heap,
    mut of: &'v Value,
    mut iface: bool,
    names: &mut Names<'_>,
) -> (&'v Value, bool, u64) {
    let mut taken = 0;
    let mut ahead = names.clone();
    while let (Value::Map(map), Some((name, found_at))) = (of, ahead.next()) {
        let data = heap.peek(*map);
        if name.len() >= LONG_NAME || data.ty.method(name).is_some() {
            break;
        }
        let Some(found) = heap.entries(data).get_near(name, found_at) else { break };
        (of, iface) = (found, data.ty.holds_any());
        names.clone_from(&ahead);
        taken += 1;
    }
    (of, iface, taken)
}

/// The zero value of an element type.
pub(crate) fn zero(ty: Type) -> Slot {
    let value = match ty.underlying() {
        Type::Bool => Value::Bool(false),
        Type::Int => Value::Int(0),
        Type::Int64 => Value::Int64(0),
        Type::Uint8 => Value::Uint8(0),
        Type::Uint64 => Value::Uint64(0),
        Type::Float64 => Value::Float64(0.0),
        Type::String => Value::String(Str::default()),
        Type::List(Type::Uint8) => Value::Bytes([].into()),
        _ => return (Value::Nil, true),
    };
    (value, false)
}
