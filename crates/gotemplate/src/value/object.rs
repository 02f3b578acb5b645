//! Foreign objects: times, durations, versions, files, capabilities.

use std::any::Any;
use std::fmt::Debug;

use super::{Heap, NamedType, Value};

/// A Go value of a struct, pointer or other named type that the engine itself does not know.
///
/// Methods hang on the [`NamedType`]; their bodies get the receiver as a [`Value`] and reach the
/// Rust type through [`Value::downcast`].
pub trait Object: Any + Debug + Send + Sync {
    /// Name, kind and methods.
    fn go_type(&self) -> &'static NamedType;

    /// The exported field of that name.
    fn field(&self, _heap: &mut Heap, _name: &str) -> Option<Value> {
        None
    }

    /// What Go's `String` or `Error` method gives; `None` if the type has neither, and then `%v`
    /// prints the [`Object::fields`].
    fn text(&self) -> Option<String> {
        None
    }

    /// What its `GoString` method gives, which `%#v` asks.
    fn go_string(&self) -> Option<String> {
        None
    }

    /// All fields in Go's order, for printing and for plain data.
    fn fields(&self) -> Vec<(&'static str, Value)> {
        Vec::new()
    }

    /// The number, if the kind is an integer (`time.Duration`).
    fn int(&self) -> Option<i64> {
        None
    }

    /// Whether it counts as empty although it is not nil.
    fn is_zero(&self) -> bool {
        false
    }

    /// Whether it is a nil pointer, map or list.
    fn is_nil(&self) -> bool {
        false
    }

    /// Go's `==` between two values of this type.
    fn equals(&self, _other: &dyn Object) -> bool {
        false
    }

    /// What plain data (JSON, YAML) has for it; `None` = an object of [`Object::fields`].
    fn plain(&self) -> Option<Value> {
        None
    }

    /// The text that yaml.v3 writes for it, which knows some types that other encoders do not.
    fn yaml3_text(&self) -> Option<String> {
        None
    }

    /// What a function gets of it, if that is not the same: of a struct with methods on its pointer
    /// Go hands over a copy, which lacks them.
    fn by_value(&self) -> Option<Value> {
        None
    }

    /// What is left of it in a copy of its exported fields, if that is not all.
    fn exported(&self) -> Option<Value> {
        None
    }

    /// Keys and elements for `range` (and their number for `len`), if the type allows it: keys are
    /// integers for lists, strings for maps.
    fn entries(&self, _heap: &mut Heap) -> Option<Vec<(Value, Value)>> {
        None
    }
}

/// A nil of a named type, such as a nil `*chart.Maintainer`.
#[derive(Debug)]
pub struct TypedNil(pub &'static NamedType);

impl Object for TypedNil {
    fn go_type(&self) -> &'static NamedType {
        self.0
    }

    fn text(&self) -> Option<String> {
        Some("<nil>".to_owned())
    }

    fn is_nil(&self) -> bool {
        true
    }

    fn plain(&self) -> Option<Value> {
        Some(Value::Nil)
    }
}
