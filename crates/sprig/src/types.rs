//! What a value is.

use crate::args::{any, chars, string};

items! {
    /// The Go type of a value, such as `map[string]interface {}`.
    sprig "VALUE -> string", "{{ typeOf (dict) }}" => "map[string]interface {}";
    "typeOf"(Any) => |ctx, args| {
        let name = ctx.heap.type_name(any(args, 0));
        string(ctx, name)
    };
    /// Whether a value has that Go type.
    sprig "TYPE VALUE -> bool", r#"{{ typeIs "string" "a" }}"# => "true";
    "typeIs"(String, Any) => |ctx, args| Ok((ctx.heap.type_name(any(args, 1)) == chars(args, 0)).into());
    /// Whether a value has that Go type, or is a pointer to it.
    sprig "TYPE VALUE -> bool", r#"{{ typeIsLike "semver.Version" (semver "1.2.3") }}"# => "true";
    "typeIsLike"(String, Any) => |ctx, args| {
        let name = ctx.heap.type_name(any(args, 1));
        let wanted = chars(args, 0);
        Ok((name == wanted || name.strip_prefix('*') == Some(&*wanted)).into())
    };
    /// The Go kind of a value: `map`, `slice`, `string`, `float64`, ...
    sprig "VALUE -> string", "{{ kindOf (list 1) }}" => "slice";
    "kindOf"(Any) => |ctx, args| {
        let kind = ctx.heap.kind_of(any(args, 0)).to_string();
        string(ctx, kind)
    };
    /// Whether a value is of that Go kind.
    sprig "KIND VALUE -> bool", r#"{{ kindIs "map" (dict) }}"# => "true";
    "kindIs"(String, Any) => |ctx, args| {
        Ok((ctx.heap.kind_of(any(args, 1)).to_string() == chars(args, 0)).into())
    };
}
