//! Literals where a type is asked for.

use crate::parse::ast::Literal;
use crate::value::{Kind, Type, Value};

impl Literal<'_> {
    /// The value the literal has where nothing asks for a type. The error is Go's.
    pub(crate) fn ideal(&self) -> Result<Value, String> {
        Ok(match self {
            Self::Bool(value) => Value::Bool(*value),
            Self::String(_, text) => Value::String(text.as_ref().into()),
            Self::Number(number) => match (number.complex, number.int, number.float) {
                (Some(complex), ..) => Value::object(complex),
                (_, _, Some(float)) if number.looks_like_float() => Value::Float64(float),
                (_, Some(int), _) => Value::Int(int),
                _ => return Err(format!("{} overflows int", number.text)),
            },
        })
    }

    /// The value the literal has as an argument for a parameter. The error is Go's.
    pub(crate) fn typed(&self, ty: Type) -> Result<Value, String> {
        let expected = |what: &str| format!("expected {what}; found {}", self.show());
        let number = match self {
            Self::Number(number) => Some(&**number),
            _ => None,
        };
        let int = number.and_then(|number| number.int);
        let uint = number.and_then(|number| number.uint);
        match (ty.kind(), ty) {
            (_, Type::Any | Type::Reflect) => self.ideal(),
            (_, Type::Named(_)) => self.cannot_handle(ty),
            (Kind::Bool, _) => match self {
                Self::Bool(value) => Ok(Value::Bool(*value)),
                _ => Err(expected("bool")),
            },
            (Kind::String, _) => match self {
                Self::String(_, text) => Ok(Value::String(text.as_ref().into())),
                _ => Err(expected("string")),
            },
            (Kind::Int, _) => int.map(Value::Int).ok_or_else(|| expected("integer")),
            (Kind::Int64, _) => int.map(Value::Int64).ok_or_else(|| expected("integer")),
            // Go cuts to the width of the type.
            #[allow(clippy::cast_possible_truncation)]
            (Kind::Uint8, _) => {
                uint.map(|n| Value::Uint8(n as u8)).ok_or_else(|| expected("unsigned integer"))
            }
            (Kind::Uint64, _) => {
                uint.map(Value::Uint64).ok_or_else(|| expected("unsigned integer"))
            }
            (Kind::Float64, _) => number
                .and_then(|number| number.float)
                .map(Value::Float64)
                .ok_or_else(|| expected("float")),
            _ => self.cannot_handle(ty),
        }
    }

    fn cannot_handle(&self, ty: Type) -> Result<Value, String> {
        Err(format!("can't handle {} for arg of type {ty}", self.show()))
    }
}
