//! Go's types, as far as templates can tell them apart.

use std::fmt;

use super::Value;
use super::entries::same;
use crate::func::{Ctx, FuncError};

/// A Go type: what `%T`, `typeOf` and error texts name, and what a parameter asks for.
///
/// `Display` prints the type as Go does, e.g. `map[string]interface {}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Type {
    /// `interface {}`; as a parameter: anything, nil included.
    Any,
    /// `bool`
    Bool,
    /// `int`
    Int,
    /// `int64`
    Int64,
    /// `uint8`
    Uint8,
    /// `uint64`
    Uint64,
    /// `float64`
    Float64,
    /// `complex128`
    Complex128,
    /// `string`
    String,
    /// `[]T`
    List(&'static Type),
    /// `map[string]T`
    Map(&'static Type),
    /// A named type, with its methods: `common.Values`, `time.Duration`, `*semver.Version`.
    Named(&'static NamedType),
    /// Any struct type; only as the `underlying` of a [`NamedType`].
    Struct,
    /// Any pointer type; only as the `underlying` of a [`NamedType`].
    Pointer,
    /// A function value.
    Func,
    /// `reflect.Value`: as a parameter, anything as it is, and nothing counts as a value too.
    /// Go's own functions ask for it; a library's functions ask for [`Type::Any`].
    Reflect,
    /// `error`: an interface that only values made for it satisfy.
    Error,
}

impl Type {
    /// `[]interface {}`
    pub const LIST: Self = Self::List(&Self::Any);
    /// `[]string`
    pub const STRINGS: Self = Self::List(&Self::String);
    /// `[]int`
    pub const INTS: Self = Self::List(&Self::Int);
    /// `[]uint8`; its values are [`Value::Bytes`].
    pub const BYTES: Self = Self::List(&Self::Uint8);
    /// `map[string]interface {}`
    pub const MAP: Self = Self::Map(&Self::Any);

    /// The type without its name: `map[string]interface {}` for `common.Values`.
    #[must_use]
    pub fn underlying(self) -> Self {
        match self {
            Self::Named(named) => named.underlying,
            other => other,
        }
    }

    /// Go's kind of the type.
    pub fn kind(self) -> Kind {
        match self.underlying() {
            Self::Any | Self::Error => Kind::Interface,
            Self::Bool => Kind::Bool,
            Self::Int => Kind::Int,
            Self::Int64 => Kind::Int64,
            Self::Uint8 => Kind::Uint8,
            Self::Uint64 => Kind::Uint64,
            Self::Float64 => Kind::Float64,
            Self::Complex128 => Kind::Complex128,
            Self::String => Kind::String,
            Self::List(_) => Kind::Slice,
            Self::Map(_) => Kind::Map,
            Self::Pointer => Kind::Pointer,
            Self::Struct | Self::Reflect | Self::Named(_) => Kind::Struct,
            Self::Func => Kind::Func,
        }
    }

    /// The element type of a list or map.
    pub fn elem(self) -> Option<Self> {
        match self.underlying() {
            Self::List(elem) | Self::Map(elem) => Some(*elem),
            _ => None,
        }
    }

    /// Whether what a list or map holds are values of type `interface {}`.
    pub(crate) fn holds_any(self) -> bool {
        matches!(self.underlying(), Self::List(Self::Any) | Self::Map(Self::Any))
    }

    /// Whether a value of this type may be given where `to` is asked for, by Go's rules.
    pub fn assignable_to(self, to: Self) -> bool {
        match (self, to) {
            (_, Self::Any) => true,
            (a, b) if a == b => true,
            // Identical underlying types, and one side has no name.
            (Self::Named(named), Self::List(_) | Self::Map(_)) => named.underlying == to,
            (Self::List(_) | Self::Map(_), Self::Named(named)) => named.underlying == self,
            _ => false,
        }
    }

    /// Whether an untyped nil may stand for a value of this type.
    pub fn can_be_nil(self) -> bool {
        matches!(self, Self::Reflect)
            || matches!(
                self.kind(),
                Kind::Interface | Kind::Map | Kind::Slice | Kind::Pointer | Kind::Func
            )
    }

    /// The method of that name.
    #[inline]
    pub fn method(self, name: impl AsRef<[u8]>) -> Option<&'static Method> {
        let Self::Named(named) = self else { return None };
        let name = name.as_ref();
        // Go exports nothing else, and keys of maps mostly begin so.
        if name.first().is_none_or(u8::is_ascii_lowercase) {
            return None;
        }
        named.methods.iter().find(|method| same(method.name.as_bytes(), name))
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("interface {}"),
            Self::Bool => f.write_str("bool"),
            Self::Int => f.write_str("int"),
            Self::Int64 => f.write_str("int64"),
            Self::Uint8 => f.write_str("uint8"),
            Self::Uint64 => f.write_str("uint64"),
            Self::Float64 => f.write_str("float64"),
            Self::Complex128 => f.write_str("complex128"),
            Self::String => f.write_str("string"),
            Self::List(elem) => write!(f, "[]{elem}"),
            Self::Map(elem) => write!(f, "map[string]{elem}"),
            Self::Named(named) => f.write_str(named.name),
            Self::Struct => f.write_str("struct {}"),
            Self::Pointer => f.write_str("unsafe.Pointer"),
            Self::Func => f.write_str("func()"),
            Self::Reflect => f.write_str("reflect.Value"),
            Self::Error => f.write_str("error"),
        }
    }
}

/// Go's kinds of types (`reflect.Kind`). `Display` prints Go's name, as `kindOf` does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum Kind {
    Invalid,
    Bool,
    Int,
    Int64,
    Uint8,
    Uint64,
    Float64,
    Complex128,
    String,
    Slice,
    Map,
    Struct,
    Pointer,
    Interface,
    Func,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Invalid => "invalid",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Int64 => "int64",
            Self::Uint8 => "uint8",
            Self::Uint64 => "uint64",
            Self::Float64 => "float64",
            Self::Complex128 => "complex128",
            Self::String => "string",
            Self::Slice => "slice",
            Self::Map => "map",
            Self::Struct => "struct",
            Self::Pointer => "ptr",
            Self::Interface => "interface",
            Self::Func => "func",
        })
    }
}

/// A named Go type. Make it a `static`; two named types are the same if their names are.
#[derive(Debug)]
pub struct NamedType {
    /// As Go prints it, with its package and star: `*semver.Version`.
    pub name: &'static str,
    /// What the type is made of; [`Type::Struct`] or [`Type::Pointer`] for objects of their own.
    pub underlying: Type,
    /// The methods templates may call.
    pub methods: &'static [Method],
}

impl PartialEq for NamedType {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for NamedType {}

/// The body of a [`Method`]: receiver and arguments, already checked against `params`.
pub type MethodBody = fn(&mut Ctx, &Value, &[Value]) -> Result<Value, FuncError>;

/// A method of a [`NamedType`].
#[derive(Debug)]
pub struct Method {
    /// The name that templates write after the dot.
    pub name: &'static str,
    /// The types of the fixed parameters.
    pub params: &'static [Type],
    /// The type of each further argument, if the method takes any.
    pub variadic: Option<Type>,
    /// What it does.
    pub call: MethodBody,
}

impl Method {
    /// A method that takes these arguments and no more.
    pub const fn new(name: &'static str, params: &'static [Type], call: MethodBody) -> Self {
        Self { name, params, variadic: None, call }
    }
}
