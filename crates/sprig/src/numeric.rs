//! Numbers. The plain functions count in `int64`, those with an `f` exactly in decimal.

use std::fmt::Write as _;

use catamaran_gotemplate::{Ctx, FuncError, Type, Value};

use crate::args::{Outcome, announce, any, charge_items, chars, float, from, int, string};
use crate::casts::{parse_int, to_float, to_int};
use crate::decimal::Decimal;

items! {
    /// A value as an `int`: numbers are cut, texts are read, what is no number is 0.
    sprig "VALUE -> int", r#"{{ int "42" }}"# => "42";
    "int"(Any) => |_, args| Ok(Value::Int(to_int(any(args, 0))));
    /// A value as an `int64`: numbers are cut, texts are read, what is no number is 0.
    sprig "VALUE -> int64", "{{ int64 1.9 }}" => "1";
    "int64"(Any) => |_, args| Ok(Value::Int64(to_int(any(args, 0))));
    /// A value as a `float64`: texts are read, what is no number is 0.
    sprig "VALUE -> float64", r#"{{ float64 "1.5" }}"# => "1.5";
    "float64"(Any) => |_, args| Ok(to_float(any(args, 0)).into());
    /// A decimal text as an `int`; 0 if it is none.
    sprig "TEXT -> int", r#"{{ atoi "42" }}"# => "42";
    "atoi"(String) => |_, args| {
        let text = chars(args, 0);
        Ok(Value::Int(parse_int(&text, 10).unwrap_or_else(|| out_of_range(&text))))
    };
    /// An octal text as a number; 0 if it is none.
    sprig "VALUE -> int64", r#"{{ toDecimal "755" }}"# => "493";
    "toDecimal"(Any) => |ctx, args| {
        let text = ctx.print(any(args, 0))?;
        Ok(Value::Int64(text.as_str().and_then(|text| parse_int(text, 8)).unwrap_or(0)))
    };
    /// The sum of the numbers, each made an `int64` first: fractions are cut off.
    sprig "NUMBER... -> int64", "{{ add 1 2 3 }}" => "6";
    "add"(; Any) => |_, args| Ok(Value::Int64(args.iter().map(to_int).fold(0, i64::wrapping_add)));
    /// One more than the number, as an `int64`.
    sprig "NUMBER -> int64", "{{ add1 41 }}" => "42";
    "add1"(Any) => |_, args| Ok(Value::Int64(to_int(any(args, 0)).wrapping_add(1)));
    /// The first number less the second, as `int64`.
    sprig "NUMBER NUMBER -> int64", "{{ sub 5 3 }}" => "2";
    "sub"(Any, Any) => |_, args| Ok(Value::Int64(to_int(any(args, 0)).wrapping_sub(to_int(any(args, 1)))));
    /// The product of the numbers, as `int64`.
    sprig "NUMBER NUMBER... -> int64", "{{ mul 2 3 7 }}" => "42";
    "mul"(Any; Any) => |_, args| Ok(Value::Int64(args.iter().map(to_int).fold(1, i64::wrapping_mul)));
    /// The quotient of two `int64`, cut towards zero. Division by 0 is an error.
    sprig "NUMBER NUMBER -> int64", "{{ div 7 2 }}" => "3";
    "div"(Any, Any) => |_, args| match to_int(any(args, 1)) {
        0 => Err(divide_by_zero()),
        by => Ok(Value::Int64(to_int(any(args, 0)).wrapping_div(by))),
    };
    /// The remainder of a division, with the sign of the first number.
    sprig "NUMBER NUMBER -> int64", "{{ mod 7 3 }}" => "1";
    "mod"(Any, Any) => |_, args| match to_int(any(args, 1)) {
        0 => Err(divide_by_zero()),
        by => Ok(Value::Int64(to_int(any(args, 0)).wrapping_rem(by))),
    };
    /// The largest of the numbers, as an `int64`.
    sprig "NUMBER NUMBER... -> int64", "{{ max 1 3 2 }}" => "3";
    "max" | "biggest"(Any; Any) => |_, args| Ok(Value::Int64(args.iter().map(to_int).max().unwrap_or(0)));
    /// The smallest of the numbers, as an `int64`.
    sprig "NUMBER NUMBER... -> int64", "{{ min 2 1 3 }}" => "1";
    "min"(Any; Any) => |_, args| Ok(Value::Int64(args.iter().map(to_int).min().unwrap_or(0)));
    /// The largest of the numbers, fractions kept.
    sprig "NUMBER NUMBER... -> float64", "{{ maxf 1.5 2 0.5 }}" => "2";
    "maxf"(Any; Any) => |_, args| Ok(extreme(args, |a, b| a > b).into());
    /// The smallest of the numbers, fractions kept.
    sprig "NUMBER NUMBER... -> float64", "{{ minf 1.5 2 0.5 }}" => "0.5";
    "minf"(Any; Any) => |_, args| Ok(extreme(args, |a, b| a < b).into());
    /// The next whole number below, as a `float64`.
    sprig "NUMBER -> float64", "{{ floor 1.9 }}" => "1";
    "floor"(Any) => |_, args| Ok(to_float(any(args, 0)).floor().into());
    /// The next whole number above, as a `float64`.
    sprig "NUMBER -> float64", "{{ ceil 1.1 }}" => "2";
    "ceil"(Any) => |_, args| Ok(to_float(any(args, 0)).ceil().into());
    /// Rounded to so many decimals; a third argument is where to round up, 0.5 if not given.
    sprig "NUMBER DECIMALS [UP] -> float64", "{{ round 3.14159 2 }}" => "3.14";
    "round"(Any, Int; Float64) => |_, args| Ok(round(args).into());
    /// The sum of numbers with fractions, exact in decimals.
    sprig "NUMBER... -> float64", "{{ addf 0.1 0.2 }}" => "0.3";
    "addf"(; Any) => |ctx, args| decimal(ctx, 0.0, args, |a, b| Ok(a.add(&b)));
    /// One more than a number with a fraction, exact in decimals.
    sprig "NUMBER -> float64", "{{ add1f 1.5 }}" => "2.5";
    "add1f"(Any) => |ctx, args| decimal(ctx, 1.0, args, |a, b| Ok(a.add(&b)));
    /// The first number less all others, fractions kept, exact in decimals.
    sprig "NUMBER NUMBER... -> float64", "{{ subf 1.5 0.2 }}" => "1.3";
    "subf"(Any; Any) => |ctx, args| decimal(ctx, to_float(any(args, 0)), from(args, 1), |a, b| Ok(a.sub(&b)));
    /// The product of numbers with fractions, exact in decimals.
    sprig "NUMBER NUMBER... -> float64", "{{ mulf 1.1 3 }}" => "3.3";
    "mulf"(Any; Any) => |ctx, args| decimal(ctx, to_float(any(args, 0)), from(args, 1), |a, b| Ok(a.mul(b)));
    /// The first number divided by all others, rounded to 16 decimals.
    sprig "NUMBER NUMBER... -> float64", "{{ divf 10 4 }}" => "2.5";
    "divf"(Any; Any) => |ctx, args| decimal(ctx, to_float(any(args, 0)), from(args, 1), |a, b| {
        a.div(b).ok_or_else(|| FuncError::new("decimal division by 0"))
    });
    /// The numbers from 0 up to (or down to) a number, which is not among them.
    sprig "STOP -> list", "{{ until 3 }}" => "[0 1 2]";
    "until"(Int) => |ctx, args| {
        let stop = int(args, 0);
        until(ctx, 0, stop, if stop < 0 { -1 } else { 1 })
    };
    /// The numbers from a start to a stop, which is not among them, by a step; none if the step leads
    /// away from the stop.
    sprig "START STOP STEP -> list", "{{ untilStep 0 10 3 }}" => "[0 3 6 9]";
    "untilStep"(Int, Int, Int) => |ctx, args| {
        until(ctx, int(args, 0), int(args, 1), int(args, 2))
    };
    /// Numbers as text with spaces: `seq END`, `seq START END`, `seq START STEP END`.
    sprig "[START] [STEP] END -> string", "{{ seq 1 2 7 }}" => "1 3 5 7";
    "seq"(; Int) => seq;
}

fn divide_by_zero() -> FuncError {
    FuncError::new("runtime error: integer divide by zero")
}

/// What Go returns beside the error: the nearest number for one that does not fit.
fn out_of_range(text: &str) -> i64 {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    match (
        digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()),
        text.starts_with('-'),
    ) {
        (true, _) => 0,
        (false, true) => i64::MIN,
        (false, false) => i64::MAX,
    }
}

fn extreme(args: &[Value], better: fn(f64, f64) -> bool) -> f64 {
    let mut numbers = args.iter().map(to_float);
    let first = numbers.next().unwrap_or(0.0);
    numbers.fold(first, |best, number| {
        if best.is_nan() || number.is_nan() {
            f64::NAN
        } else if better(number, best) {
            number
        } else {
            best
        }
    })
}

fn round(args: &[Value]) -> f64 {
    let limit = if args.len() > 2 { float(args, 2) } else { 0.5 };
    let scale = power_of_ten(int(args, 1));
    let scaled = scale * to_float(any(args, 0));
    let rounded = if scaled.fract() >= limit { scaled.ceil() } else { scaled.floor() };
    rounded / scale
}

/// Go's `math.Pow(10, n)`, last digits included.
fn power_of_ten(exponent: i64) -> f64 {
    if exponent > 400 {
        return f64::INFINITY;
    }
    if exponent < -400 {
        return 0.0;
    }
    // Ten is this times two to the fourth.
    let (mut base, mut base_shift) = (0.625_f64, 4_i32);
    let (mut result, mut shift) = (1.0_f64, 0_i32);
    let mut left = exponent.unsigned_abs();
    while left != 0 {
        if left & 1 == 1 {
            result *= base;
            shift += base_shift;
        }
        base *= base;
        base_shift *= 2;
        if base < 0.5 {
            base += base;
            base_shift -= 1;
        }
        left >>= 1;
    }
    if exponent < 0 {
        (result, shift) = (1.0 / result, -shift);
    }
    // In two steps: the power alone may be out of range.
    result * 2.0_f64.powi(shift / 2) * 2.0_f64.powi(shift - shift / 2)
}

type Operation = fn(Decimal, Decimal) -> Result<Decimal, FuncError>;

fn decimal(ctx: &mut Ctx, start: f64, args: &[Value], operation: Operation) -> Outcome {
    let make = |number: f64| {
        let name = if number.is_nan() { "NaN" } else { "+Inf" };
        let text =
            format!("Cannot create a Decimal from {}", if number < 0.0 { "-Inf" } else { name });
        Decimal::from_float(number).ok_or_else(|| FuncError::new(text))
    };
    let mut result = make(start)?;
    for arg in args {
        result = operation(result, make(to_float(arg))?)?;
        // The next operation may take the square of the digits there are.
        let size = result.size();
        ctx.meter.charge_steps(size.saturating_mul(size).saturating_add(60))?;
    }
    Ok(result.to_float().into())
}

/// The numbers from `start` by `step` short of `end`, and how many they are.
fn steps(start: i64, end: i64, step: i64) -> (usize, impl Iterator<Item = i64>) {
    let towards = if end < start { step < 0 } else { step > 0 };
    let count = if towards { end.abs_diff(start).div_ceil(step.unsigned_abs()) } else { 0 };
    let numbers = std::iter::successors(Some(start), move |number| number.checked_add(step));
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    (count, numbers.take(count))
}

/// A list of numbers, charged before it is made.
fn until(ctx: &mut Ctx, start: i64, end: i64, step: i64) -> Outcome {
    let (count, numbers) = steps(start, end, step);
    charge_items(ctx, count)?;
    let numbers: Vec<Value> = numbers.map(Value::Int).collect();
    Ok(ctx.heap.new_list_of(Type::INTS, numbers).into())
}

fn seq(ctx: &mut Ctx, args: &[Value]) -> Outcome {
    let (start, step, end) = match args.len() {
        1 => (1, None, int(args, 0)),
        2 => (int(args, 0), None, int(args, 1)),
        3 => (int(args, 0), Some(int(args, 1)), int(args, 2)),
        _ => return Ok("".into()),
    };
    let direction = if end < start { -1 } else { 1 };
    if direction < 0 && step.is_some_and(|step| step > 0) {
        return Ok("".into());
    }
    let (count, numbers) = steps(start, end.wrapping_add(direction), step.unwrap_or(direction));
    let width = start.to_string().len().max(end.to_string().len()) + 1;
    announce(ctx, count.saturating_mul(width))?;
    ctx.meter.charge_steps(u64::try_from(count).unwrap_or(u64::MAX).saturating_mul(4))?;
    let mut out = String::new();
    for number in numbers {
        // Writing to a string cannot fail.
        let _ = write!(out, "{}{number}", if out.is_empty() { "" } else { " " });
    }
    string(ctx, out)
}
