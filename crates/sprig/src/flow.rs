//! Defaults, choices, and ending a rendering.

use catamaran_gotemplate::{FuncError, Heap, Value};

use crate::args::{any, chars};
use crate::compare::deep_equal;

/// The tag of errors that `fail` made ([`catamaran_gotemplate::Error::tag`]).
const FAIL: &str = "fail";
/// The tag of errors that `required` made.
const REQUIRED: &str = "required";

items! {
    /// The second argument, or the first if the second is empty: false, 0, nil, or without content.
    sprig "DEFAULT [VALUE] -> any", r#"{{ default "none" "" }}"# => "none";
    "default"(Any; Any) => |ctx, args| {
        let given = any(args, 1);
        Ok(any(args, usize::from(!is_empty(&ctx.heap, given))).clone())
    };
    /// Whether a value is empty: false, 0, nil, or without content.
    sprig "VALUE -> bool", "{{ empty (list) }}" => "true";
    "empty"(Any) => |ctx, args| Ok(is_empty(&ctx.heap, any(args, 0)).into());
    /// The first argument that is not empty; nil if all are.
    sprig "VALUE... -> any", r#"{{ coalesce 0 "" "a" "b" }}"# => "a";
    "coalesce"(; Any) => |ctx, args| {
        Ok(args.iter().find(|value| !is_empty(&ctx.heap, value)).cloned().unwrap_or_default())
    };
    /// Whether no argument is empty.
    sprig "VALUE... -> bool", r#"{{ all 1 "a" "" }}"# => "false";
    "all"(; Any) => |ctx, args| Ok((!args.iter().any(|value| is_empty(&ctx.heap, value))).into());
    /// Whether any argument is not empty.
    sprig "VALUE... -> bool", r#"{{ any 0 "" "a" }}"# => "true";
    "any"(; Any) => |ctx, args| Ok(args.iter().any(|value| !is_empty(&ctx.heap, value)).into());
    /// Whether two values have the same type and content.
    sprig "VALUE VALUE -> bool", "{{ deepEqual (list 1 2) (list 1 2) }}" => "true";
    "deepEqual"(Any, Any) => |ctx, args| Ok(deep_equal(ctx, any(args, 0), any(args, 1))?.into());
    /// Ends the rendering with a message.
    sprig "MESSAGE -> never", r#"{{ fail "no port is set" }}"# => "error: no port is set";
    "fail"(String) => |_, args| Err(FuncError::tagged(FAIL, chars(args, 0)));
    /// The value, or the end of the rendering with a message if it is nil or `""`.
    helm "MESSAGE VALUE -> any", r#"{{ required "a port is needed" 80 }}"# => "80";
    "required"(String, Any) => |_, args| match any(args, 1) {
        Value::Nil => Err(FuncError::tagged(REQUIRED, chars(args, 0))),
        Value::String(value) if value.is_empty() => Err(FuncError::tagged(REQUIRED, chars(args, 0))),
        value => Ok(value.clone()),
    };
}

/// Sprig's idea of nothing: the zero value of every type.
pub(crate) fn is_empty(heap: &Heap, value: &Value) -> bool {
    !heap.truth(value)
}
