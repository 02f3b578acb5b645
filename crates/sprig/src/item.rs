//! One function, in one place.

/// Declares the items of a family:
///
/// ```text
/// /// Text.
/// sprig "LENGTH TEXT -> string", "{{ trunc 2 `abc` }}" => "ab";
/// "trunc"(Int, String; Any) => |ctx, args| body;
/// ```
///
/// First whose function it is, its parameters as people read them, and examples with what they
/// print; then names, types of parameters (behind `;` that of any number of further arguments),
/// and the body.
macro_rules! items {
    ($(
        $(#[doc = $doc:literal])+
        $origin:ident $usage:literal $(, $template:literal => $output:literal)*;
        $($name:literal)|+ ($($ty:ident),* $(; $rest:ident)?) => $body:expr;
    )*) => {
        /// The items of this family.
        pub(crate) const ITEMS: &[&[catamaran_gotemplate::Item]] = &[$(items!(@names
            [concat!($($doc, "\n"),+)] [items!(@origin $origin)] [$usage]
            [items!(@first $($name)|+), &[$(($template, $output)),*]]
            [$($ty),* $(; $rest)?] [$body] $($name)|+
        )),*];
    };
    (@first $name:literal $(| $more:literal)*) => { $name };
    (@names $doc:tt $origin:tt $usage:tt $examples:tt $types:tt $body:tt $($name:literal)|+) => {
        &[$(items!(@item $doc $origin $usage $examples $types $body $name)),+]
    };
    (@item [$doc:expr] [$origin:expr] [$usage:expr] [$($examples:expr),*] $types:tt $body:tt $name:literal) => {
        catamaran_gotemplate::Item::new(
            items!(@func $name $types $body), $origin, $usage, $doc, ($($examples),*),
        )
    };
    (@func $name:literal [$($ty:ident),* ; $rest:ident] $body:tt) => {
        items!(@func $name [$($ty),*] $body).variadic(items!(@type $rest))
    };
    (@func $name:literal [$($ty:ident),*] [$body:expr]) => {
        {
            const PARAMS: &[catamaran_gotemplate::Type] = &[$(items!(@type $ty)),*];
            catamaran_gotemplate::Func::new($name, PARAMS, $body)
        }
    };
    (@origin sprig) => { catamaran_gotemplate::Origin::Sprig };
    (@origin helm) => { catamaran_gotemplate::Origin::Helm };
    (@type Certificate) => { catamaran_gotemplate::Type::Named(&crate::pki::CERTIFICATE) };
    (@type List) => { catamaran_gotemplate::Type::LIST };
    (@type Map) => { catamaran_gotemplate::Type::MAP };
    (@type Time) => { catamaran_gotemplate::Type::Named(&crate::dates::TIME) };
    (@type $ty:ident) => { catamaran_gotemplate::Type::$ty };
}
