//! What a value is.

use crate::args::{any, chars, string};

items! {
    /// The Go type of a value, such as `map[string]interface {}`.
    "typeOf"(Any) => |ctx, args| {
        let name = ctx.heap.type_name(any(args, 0));
        string(ctx, name)
    };
    /// Whether a value has that Go type.
    "typeIs"(String, Any) => |ctx, args| Ok((ctx.heap.type_name(any(args, 1)) == chars(args, 0)).into());
    /// Whether a value has that Go type, or is a pointer to it.
    "typeIsLike"(String, Any) => |ctx, args| {
        let name = ctx.heap.type_name(any(args, 1));
        let wanted = chars(args, 0);
        Ok((name == wanted || name.strip_prefix('*') == Some(&*wanted)).into())
    };
    /// The Go kind of a value: `map`, `slice`, `string`, `float64`, ...
    "kindOf"(Any) => |ctx, args| {
        let kind = ctx.heap.kind_of(any(args, 0)).to_string();
        string(ctx, kind)
    };
    /// Whether a value is of that Go kind.
    "kindIs"(String, Any) => |ctx, args| {
        Ok((ctx.heap.kind_of(any(args, 1)).to_string() == chars(args, 0)).into())
    };
}
