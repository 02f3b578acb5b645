//! Go's `complex128`, which only a literal (`1i`) makes.

use super::{NamedType, Object, Type};

/// A complex number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Complex {
    pub re: f64,
    pub im: f64,
}

/// `complex128`
static COMPLEX: NamedType =
    NamedType { name: "complex128", underlying: Type::Complex128, methods: &[] };

impl Object for Complex {
    fn go_type(&self) -> &'static NamedType {
        &COMPLEX
    }

    fn equals(&self, other: &dyn Object) -> bool {
        let other: &dyn std::any::Any = other;
        other.downcast_ref::<Self>().is_some_and(|other| self == other)
    }

    fn is_zero(&self) -> bool {
        self.re == 0.0 && self.im == 0.0
    }
}
