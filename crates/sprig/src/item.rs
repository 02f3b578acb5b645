//! One function, in one place.

use catamaran_gotemplate::Func;

/// A function of the library: what the engine calls, and what people read.
#[derive(Debug)]
pub struct Item {
    /// Name, parameters and body.
    pub func: Func,
    /// What it does, in one or two sentences.
    pub doc: &'static str,
}

/// Declares the items of a family:
/// `/// Text.` `"name"(String, Int; Any) => |ctx, args| body;` -- behind `;` stands the type of any
/// number of further arguments.
macro_rules! items {
    ($($(#[doc = $doc:literal])+ $($name:literal)|+ ($($ty:ident),* $(; $rest:ident)?) => $body:expr;)*) => {
        /// The items of this family.
        pub(crate) const ITEMS: &[crate::item::Item] = items!(@ [] $($(#[$doc])+ $($name)|+ ($($ty),* $(; $rest)?) => $body;)*);
    };
    (@ [$($done:expr,)*]) => { &[$($done,)*] };
    (@ [$($done:expr,)*] $(#[$doc:literal])+ $name:literal $(| $more:literal)* ($($ty:ident),* $(; $rest:ident)?) => $body:expr; $($tail:tt)*) => {
        items!(@@ [
            $($done,)*
            crate::item::Item {
                func: items!(@func $name ($($ty),* $(; $rest)?) $body),
                doc: concat!($($doc, "\n"),+),
            },
        ] $(#[$doc])+ ($($more)|*) ($($ty),* $(; $rest)?) => $body; $($tail)*)
    };
    (@@ [$($done:expr,)*] $(#[$doc:literal])+ () ($($ty:ident),* $(; $rest:ident)?) => $body:expr; $($tail:tt)*) => {
        items!(@ [$($done,)*] $($tail)*)
    };
    (@@ [$($done:expr,)*] $(#[$doc:literal])+ ($($name:literal)|+) ($($ty:ident),* $(; $rest:ident)?) => $body:expr; $($tail:tt)*) => {
        items!(@ [$($done,)*] $(#[$doc])+ $($name)|+ ($($ty),* $(; $rest)?) => $body; $($tail)*)
    };
    (@func $name:literal ($($ty:ident),* ; $rest:ident) $body:expr) => {
        {
            const PARAMS: &[catamaran_gotemplate::Type] = &[$(items!(@type $ty)),*];
            catamaran_gotemplate::Func::new($name, PARAMS, $body).variadic(items!(@type $rest))
        }
    };
    (@func $name:literal ($($ty:ident),*) $body:expr) => {
        {
            const PARAMS: &[catamaran_gotemplate::Type] = &[$(items!(@type $ty)),*];
            catamaran_gotemplate::Func::new($name, PARAMS, $body)
        }
    };
    (@type Certificate) => { catamaran_gotemplate::Type::Named(&crate::pki::CERTIFICATE) };
    (@type List) => { catamaran_gotemplate::Type::LIST };
    (@type Map) => { catamaran_gotemplate::Type::MAP };
    (@type Time) => { catamaran_gotemplate::Type::Named(&crate::dates::TIME) };
    (@type $ty:ident) => { catamaran_gotemplate::Type::$ty };
}
