//! Defaults, choices, and ending a rendering.

use catamaran_gotemplate::{FuncError, Heap, Value};

use crate::args::{any, chars, from, text};
use crate::compare::deep_equal;

/// The tag of errors that `fail` made ([`catamaran_gotemplate::Error::tag`]).
const FAIL: &str = "fail";
/// The tag of errors that `required` made.
const REQUIRED: &str = "required";

items! {
    /// The second argument, or the first if the second is empty: false, 0, nil, or without content.
    "default"(Any; Any) => |ctx, args| {
        let given = any(args, 1);
        Ok(any(args, usize::from(!is_empty(&ctx.heap, given))).clone())
    };
    /// Whether a value is empty: false, 0, nil, or without content.
    "empty"(Any) => |ctx, args| Ok(is_empty(&ctx.heap, any(args, 0)).into());
    /// The first argument that is not empty; nil if all are.
    "coalesce"(; Any) => |ctx, args| {
        Ok(args.iter().find(|value| !is_empty(&ctx.heap, value)).cloned().unwrap_or_default())
    };
    /// Whether no argument is empty.
    "all"(; Any) => |ctx, args| Ok((!args.iter().any(|value| is_empty(&ctx.heap, value))).into());
    /// Whether any argument is not empty.
    "any"(; Any) => |ctx, args| Ok(args.iter().any(|value| !is_empty(&ctx.heap, value)).into());
    /// Whether two values have the same type and content.
    "deepEqual"(Any, Any) => |ctx, args| Ok(deep_equal(ctx, any(args, 0), any(args, 1))?.into());
    /// Ends the rendering with a message.
    "fail"(String) => |_, args| Err(FuncError::tagged(FAIL, chars(args, 0)));
    /// The value, or the end of the rendering with a message if it is nil or `""`.
    "required"(String, Any) => |_, args| match any(args, 1) {
        Value::Nil => Err(FuncError::tagged(REQUIRED, chars(args, 0))),
        Value::String(value) if value.is_empty() => Err(FuncError::tagged(REQUIRED, chars(args, 0))),
        value => Ok(value.clone()),
    };
    /// Asks the resolver for an address: never done here, the answer is always `""`, as Helm's
    /// without `--enable-dns`.
    "getHostByName"(String) => |_, args| {
        let _ = (text(args, 0), from(args, 1));
        Ok("".into())
    };
}

/// Sprig's idea of nothing: the zero value of every type.
pub(crate) fn is_empty(heap: &Heap, value: &Value) -> bool {
    !heap.truth(value)
}
