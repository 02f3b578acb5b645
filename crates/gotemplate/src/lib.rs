//! The Go template language (`text/template` of Go 1.26) as a library: lex, parse, compile, run;
//! values; printf. No I/O, no Helm.
//!
//! # How it hangs together
//!
//! - [`Functions`] holds what templates may call: Go's own, and a library's [`Func`]s.
//! - [`TemplateSet`] holds compiled templates of one namespace; plain data, `Send + Sync`.
//! - [`Ctx`] is one rendering: the [`Heap`] of its maps and lists, its [`Budget`], clock and
//!   randomness. Functions get it as their first argument.
//! - [`Value`] is a value with its Go type. Maps and lists are references into the heap.
//! - [`Object`] is for anything that has fields and methods of its own.
//! - [`Seed`] reads plain data (any serde format) into a heap, [`Heap::view`] writes it out.
//! - [`Error`] has Go's exact text and the chain of places; [`FuncError`] is what functions return.
//!
//! # A function
//!
//! ```
//! use catamaran_gotemplate::{Ctx, Func, FuncError, Type, Value};
//!
//! fn repeat(ctx: &mut Ctx, args: &[Value]) -> Result<Value, FuncError> {
//!     let [Value::Int(count), Value::String(text)] = args else {
//!         return Err(FuncError::new("unreachable: the engine checks types"));
//!     };
//!     let count = usize::try_from(*count).map_err(|_| FuncError::new("negative count"))?;
//!     ctx.meter.charge_bytes(text.len().saturating_mul(count))?;
//!     Ok(Value::string(text.as_bytes().repeat(count)))
//! }
//! const REPEAT: Func = Func::new("repeat", &[Type::Int, Type::String], repeat);
//! const ALL: Func = Func::new("all", &[], |ctx, args| {
//!     Ok(args.iter().all(|arg| ctx.heap.truth(arg)).into())
//! })
//! .variadic(Type::Any);
//! # let _ = (REPEAT, ALL);
//! ```
//!
//! (A parameter of a [`NamedType`] needs a `static` list of types; constants cannot refer to
//! statics.)
//!
//! A function that runs a template (`include`, `tpl`) is made with [`Func::engine`] and returns a
//! [`Call`]; the engine runs it on the heap and hands the output to [`Call`]'s `then`.

//!
//! # Differences from Go
//!
//! - Parentheses nest 300 deep (Go: 10000); values are walked 400 deep (Go: without end).
//! - Addresses (`%p`, functions, pointers inside lists) are an error instead of a random number.
//! - Maps have string keys; lists have no capacity beyond their length; there are no channels,
//!   arrays, iterator functions, nor integers other than `int`, `int64`, `uint8` and `uint64`.
//! - A literal number is not taken for a parameter of a named type such as `time.Duration`, and
//!   `range` does not count up to a value of one.
//! - A field that the type of a nil pointer does not have is a nil pointer error, too.
//! - Go looks up at run time which variables an `and` or `or` that was cut short has declared; here
//!   they are nil.
//! - Text beyond ASCII in names follows Rust's classes of letters and digits.
//! - A used-up budget is an error no function can catch.

#![forbid(unsafe_code)]

mod budget;
mod builtins;
mod compile;
mod error;
pub mod fmt;
mod func;
mod item;
mod outside;
mod parse;
mod set;
mod value;
mod vm;

pub use budget::{Budget, Meter};
pub use error::{Error, ErrorKind, FuncError, Place};
pub use func::{Call, Ctx, EngineBody, Func, Functions, PlainBody, RandomSeed, Then};
pub use item::{Example, Item, Origin};
pub use outside::Argument;
pub use set::{MissingKey, ParsedText, TemplateSet};
pub use value::{
    Entries, Heap, Kind, List, ListData, Map, MapData, Method, MethodBody, NamedType, Object, Seed,
    Str, Type, TypedNil, Value, View,
};

/// Go's own functions, with what people read about them.
pub fn builtins() -> &'static [Item] {
    builtins::ITEMS
}

/// How deep values may nest where the engine walks them: printing, plain data, copies. What nests
/// deeper (a map that contains itself) is an error.
pub const MAX_VALUE_DEPTH: usize = 400;
