//! Numbers. The plain functions count in `int64`, those with an `f` exactly in decimal.

use catamaran_gotemplate::{Ctx, FuncError, Type, Value};

use crate::args::{Outcome, any, charge_items, chars, float, from, int, string};
use crate::casts::{parse_int, to_float, to_int};
use crate::decimal::Decimal;

items! {
    /// As an `int`; what is no number is 0.
    "int"(Any) => |_, args| Ok(Value::Int(to_int(any(args, 0))));
    /// As an `int64`; what is no number is 0.
    "int64"(Any) => |_, args| Ok(Value::Int64(to_int(any(args, 0))));
    /// As a `float64`; what is no number is 0.
    "float64"(Any) => |_, args| Ok(to_float(any(args, 0)).into());
    /// A decimal text as an `int`; 0 if it is none.
    "atoi"(String) => |_, args| {
        let text = chars(args, 0);
        Ok(Value::Int(parse_int(&text, 10).unwrap_or_else(|| out_of_range(&text))))
    };
    /// An octal text as a number; 0 if it is none.
    "toDecimal"(Any) => |ctx, args| {
        let text = ctx.print(any(args, 0))?;
        Ok(Value::Int64(text.as_str().and_then(|text| parse_int(text, 8)).unwrap_or(0)))
    };
    /// The sum.
    "add"(; Any) => |_, args| Ok(Value::Int64(args.iter().map(to_int).fold(0, i64::wrapping_add)));
    /// One more.
    "add1"(Any) => |_, args| Ok(Value::Int64(to_int(any(args, 0)).wrapping_add(1)));
    /// The difference.
    "sub"(Any, Any) => |_, args| Ok(Value::Int64(to_int(any(args, 0)).wrapping_sub(to_int(any(args, 1)))));
    /// The product.
    "mul"(Any; Any) => |_, args| Ok(Value::Int64(args.iter().map(to_int).fold(1, i64::wrapping_mul)));
    /// The quotient, cut towards zero.
    "div"(Any, Any) => |_, args| match to_int(any(args, 1)) {
        0 => Err(divide_by_zero()),
        by => Ok(Value::Int64(to_int(any(args, 0)).wrapping_div(by))),
    };
    /// The remainder, with the sign of the dividend.
    "mod"(Any, Any) => |_, args| match to_int(any(args, 1)) {
        0 => Err(divide_by_zero()),
        by => Ok(Value::Int64(to_int(any(args, 0)).wrapping_rem(by))),
    };
    /// The largest.
    "max" | "biggest"(Any; Any) => |_, args| Ok(Value::Int64(args.iter().map(to_int).max().unwrap_or(0)));
    /// The smallest.
    "min"(Any; Any) => |_, args| Ok(Value::Int64(args.iter().map(to_int).min().unwrap_or(0)));
    /// The largest, as a float.
    "maxf"(Any; Any) => |_, args| Ok(extreme(args, |a, b| a > b).into());
    /// The smallest, as a float.
    "minf"(Any; Any) => |_, args| Ok(extreme(args, |a, b| a < b).into());
    /// The next whole number below.
    "floor"(Any) => |_, args| Ok(to_float(any(args, 0)).floor().into());
    /// The next whole number above.
    "ceil"(Any) => |_, args| Ok(to_float(any(args, 0)).ceil().into());
    /// Rounded to so many decimals; a third argument is where to round up, 0.5 if not given.
    "round"(Any, Int; Float64) => |_, args| Ok(round(args).into());
    /// The sum, exactly.
    "addf"(; Any) => |ctx, args| decimal(ctx, 0.0, args, |a, b| Ok(a.add(&b)));
    /// One more, exactly.
    "add1f"(Any) => |ctx, args| decimal(ctx, 1.0, args, |a, b| Ok(a.add(&b)));
    /// The difference, exactly.
    "subf"(Any; Any) => |ctx, args| decimal(ctx, to_float(any(args, 0)), from(args, 1), |a, b| Ok(a.sub(&b)));
    /// The product, exactly.
    "mulf"(Any; Any) => |ctx, args| decimal(ctx, to_float(any(args, 0)), from(args, 1), |a, b| Ok(a.mul(b)));
    /// The quotient, rounded to 16 decimals.
    "divf"(Any; Any) => |ctx, args| decimal(ctx, to_float(any(args, 0)), from(args, 1), |a, b| {
        a.div(b).ok_or_else(|| FuncError::new("decimal division by 0"))
    });
    /// The numbers from 0 up to (or down to) a number, which is not among them.
    "until"(Int) => |ctx, args| {
        let stop = int(args, 0);
        let numbers = steps(ctx, 0, stop, if stop < 0 { -1 } else { 1 })?;
        Ok(ctx.heap.new_list_of(Type::INTS, numbers.into_iter().map(Value::Int).collect()).into())
    };
    /// The numbers from a start to a stop, which is not among them, by a step.
    "untilStep"(Int, Int, Int) => |ctx, args| {
        let numbers = steps(ctx, int(args, 0), int(args, 1), int(args, 2))?;
        Ok(ctx.heap.new_list_of(Type::INTS, numbers.into_iter().map(Value::Int).collect()).into())
    };
    /// Numbers as text with spaces: `seq END`, `seq START END`, `seq START STEP END`.
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
        ctx.meter.charge_steps(result.size())?;
    }
    Ok(result.to_float().into())
}

/// The numbers from `start` by `step` short of `end`, charged before they are made.
fn steps(ctx: &mut Ctx, start: i64, end: i64, step: i64) -> Result<Vec<i64>, FuncError> {
    let towards = if end < start { step < 0 } else { step > 0 };
    if !towards {
        return Ok(Vec::new());
    }
    let count = end.abs_diff(start).div_ceil(step.unsigned_abs());
    charge_items(ctx, usize::try_from(count).unwrap_or(usize::MAX))?;
    let mut numbers = Vec::new();
    let mut number = Some(start);
    while let Some(next) = number.filter(|n| if step > 0 { *n < end } else { *n > end }) {
        numbers.push(next);
        number = next.checked_add(step);
    }
    Ok(numbers)
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
    let numbers = steps(ctx, start, end.wrapping_add(direction), step.unwrap_or(direction))?;
    let texts: Vec<String> = numbers.into_iter().map(|number| number.to_string()).collect();
    string(ctx, texts.join(" "))
}
