//! Go's package fmt, as far as templates reach it.
//!
//! All functions are bounded: in depth ([`crate::MAX_VALUE_DEPTH`]) and by the memory that the
//! rendering's budget has left. An address (`%p`, a function, a pointer inside a list) is
//! always printed as the same one.

mod float;
mod print;
mod printf;
mod quote;
mod scalar;

pub use float::float;
pub use quote::quote;
pub(crate) use quote::{Unit, chars, is_print, quote_bytes, quote_str, unquote, unquote_char};

use crate::error::FuncError;
use crate::func::Ctx;
use crate::value::{Heap, Str, Value};
use print::Printer;

/// Bytes of nearly all that `printf` prints.
const EXPECTED: usize = 64;

/// Go's `fmt.Sprintf`.
pub fn sprintf(ctx: &mut Ctx, format: &Str, args: &[Value]) -> Result<Str, FuncError> {
    let mut printer = Printer::new(&ctx.heap, room(ctx));
    printer.w.out.reserve(EXPECTED);
    let mut format = printf::Format::new(printer, format.as_bytes(), args);
    format.run()?;
    let out = format.printer.w.out;
    finish(ctx, out)
}

/// Go's `fmt.Sprint`: a space between two operands that are both no strings.
pub fn sprint(ctx: &mut Ctx, args: &[Value]) -> Result<Str, FuncError> {
    if let [Value::String(text)] = args {
        return Ok(text.clone());
    }
    let out = print_all(&ctx.heap, args, room(ctx), false)?;
    finish(ctx, out)
}

/// Go's `%v` of a value outside of a rendering, for messages; cut at 64 KiB.
pub fn display(heap: &Heap, value: &Value) -> String {
    const LIMIT: usize = 64 << 10;
    let mut printer = Printer::new(heap, LIMIT);
    // What is too long, or too deep, is shown as far as it was printed.
    let _ = printer.operand(value, 'v');
    String::from_utf8_lossy(&printer.w.out).into_owned()
}

/// Go's `fmt.Sprintln`: spaces between all, a newline behind.
pub fn sprintln(ctx: &mut Ctx, args: &[Value]) -> Result<Str, FuncError> {
    let mut printer = Printer::new(&ctx.heap, room(ctx));
    for (i, arg) in args.iter().enumerate() {
        if i > 0 {
            printer.w.push_str(" ");
        }
        printer.operand(arg, 'v')?;
    }
    printer.w.push_str("\n");
    let out = printer.w.out;
    finish(ctx, out)
}

/// How long a printed text may be: it is there twice for a moment, as it grows and as a string.
pub(crate) fn room(ctx: &Ctx) -> usize {
    ctx.meter.bytes_left() / 2
}

fn finish(ctx: &mut Ctx, out: Vec<u8>) -> Result<Str, FuncError> {
    ctx.meter.charge_bytes(out.len())?;
    Ok(out.into())
}

/// `fmt.Sprint` into bytes; `indirect` as actions print: what a pointer points to.
pub(crate) fn print_all(
    heap: &Heap,
    args: &[Value],
    limit: usize,
    indirect: bool,
) -> Result<Vec<u8>, FuncError> {
    let mut printer = Printer::new(heap, limit);
    printer.indirect = indirect;
    let mut after_string = false;
    for (i, arg) in args.iter().enumerate() {
        let is_string = matches!(arg, Value::String(_));
        if i > 0 && !is_string && !after_string {
            printer.w.push_str(" ");
        }
        printer.operand(arg, 'v')?;
        after_string = is_string;
    }
    Ok(printer.w.out)
}
