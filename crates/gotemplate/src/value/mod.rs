//! Values as templates see them: Go's kinds and types, maps and lists by reference.

mod complex;
mod heap;
mod object;
mod plain;
mod sweep;
mod text;
mod types;

pub(crate) use complex::Complex;
pub use heap::{Heap, List, ListData, Map, MapData};
pub use object::{Object, TypedNil};
pub use plain::{Seed, View};
pub(crate) use sweep::Sweep;
pub use text::Str;
pub use types::{Kind, Method, MethodBody, NamedType, Type};

use std::sync::Arc;

use crate::func::Func;

/// One value of a rendering. Cloning is cheap; maps and lists are references into a [`Heap`].
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum Value {
    /// Nothing: an untyped nil, a null of YAML, a missing value.
    #[default]
    Nil,
    /// `bool`
    Bool(bool),
    /// `int`: literals, `len`, the function `int`.
    Int(i64),
    /// `int64`: integers of a resource's spec, of `--set`, of most of Sprig's arithmetic.
    Int64(i64),
    /// `uint8`: a byte of a string or of `[]uint8`.
    Uint8(u8),
    /// `uint64`: the parts of a semantic version.
    Uint64(u64),
    /// `float64`: every number of a values file.
    Float64(f64),
    /// `string`
    String(Str),
    /// `[]uint8`
    Bytes(Arc<[u8]>),
    /// `[]T`
    List(List),
    /// `map[string]T`
    Map(Map),
    /// Anything else that has fields or methods.
    Object(Arc<dyn Object>),
    /// A function as a value, for `call`.
    Func(&'static Func),
}

impl Value {
    /// A string value.
    pub fn string(text: impl Into<Str>) -> Self {
        Self::String(text.into())
    }

    /// An object value.
    pub fn object(object: impl Object) -> Self {
        Self::Object(Arc::new(object))
    }

    /// Whether this is nil without a type.
    pub fn is_nil(&self) -> bool {
        matches!(self, Self::Nil)
    }

    /// The string, if it is of Go type `string`.
    pub fn as_str(&self) -> Option<&Str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// The map, if it is one (named types too).
    pub fn as_map(&self) -> Option<Map> {
        match self {
            Self::Map(map) => Some(*map),
            _ => None,
        }
    }

    /// The list, if it is one (named types too; not bytes).
    pub fn as_list(&self) -> Option<List> {
        match self {
            Self::List(list) => Some(*list),
            _ => None,
        }
    }

    /// The object of that Rust type, if it is one.
    pub fn downcast<T: Object>(&self) -> Option<&T> {
        match self {
            Self::Object(object) => {
                let any: &dyn std::any::Any = object.as_ref();
                any.downcast_ref()
            }
            _ => None,
        }
    }

    /// The signed integer, whatever its Go type; objects of an integer kind included.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Self::Int(n) | Self::Int64(n) => Some(*n),
            Self::Object(object) => object.int(),
            _ => None,
        }
    }

    /// The unsigned integer, whatever its Go type.
    pub fn as_uint(&self) -> Option<u64> {
        match self {
            Self::Uint8(n) => Some(u64::from(*n)),
            Self::Uint64(n) => Some(*n),
            _ => None,
        }
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Float64(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::String(value.into())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Self::String(value.into())
    }
}

impl From<Str> for Value {
    fn from(value: Str) -> Self {
        Self::String(value)
    }
}

impl From<List> for Value {
    fn from(value: List) -> Self {
        Self::List(value)
    }
}

impl From<Map> for Value {
    fn from(value: Map) -> Self {
        Self::Map(value)
    }
}
