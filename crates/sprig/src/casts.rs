//! Loose conversions: how Sprig makes numbers and strings of anything.

use catamaran_gotemplate::{Ctx, FuncError, Str, Value};

/// A number or bool as `int64`; text by [`parse_int`]; anything else is 0.
pub(crate) fn to_int(value: &Value) -> i64 {
    match value {
        Value::Int(n) | Value::Int64(n) => *n,
        Value::Uint8(n) => i64::from(*n),
        #[allow(clippy::cast_possible_wrap)] // as Go converts
        Value::Uint64(n) => *n as i64,
        Value::Float64(n) => float_to_int(*n),
        Value::Bool(flag) => i64::from(*flag),
        Value::String(text) => text.as_str().and_then(parse_int_without_zeros).unwrap_or(0),
        Value::Object(object) if matches!(object.go_type().name, "time.Month" | "time.Weekday") => {
            object.int().unwrap_or(0)
        }
        _ => 0,
    }
}

/// A number or bool as `float64`; text by [`parse_float`]; anything else is 0.
#[allow(clippy::cast_precision_loss)] // as Go converts
pub(crate) fn to_float(value: &Value) -> f64 {
    match value {
        Value::Int(n) | Value::Int64(n) => *n as f64,
        Value::Uint8(n) => f64::from(*n),
        Value::Uint64(n) => *n as f64,
        Value::Float64(n) => *n,
        Value::Bool(flag) => f64::from(u8::from(*flag)),
        Value::String(text) => text.as_str().and_then(parse_float).unwrap_or(0.0),
        Value::Object(_) => to_int(value) as f64,
        _ => 0.0,
    }
}

/// What amd64 does: everything out of range is the smallest number.
#[allow(clippy::cast_possible_truncation)] // checked
pub(crate) fn float_to_int(number: f64) -> i64 {
    if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&number) {
        number as i64
    } else {
        i64::MIN
    }
}

/// The text of a value, as `toString` has it: of nil `<nil>`.
pub(crate) fn to_text(ctx: &mut Ctx, value: &Value) -> Result<Str, FuncError> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Bytes(bytes) => {
            ctx.meter.charge_bytes(bytes.len())?;
            Ok(Str::from(bytes.clone()))
        }
        _ => ctx.print(value),
    }
}

/// `1.00` counts as `1`.
fn parse_int_without_zeros(text: &str) -> Option<i64> {
    let cut = text.trim_end_matches('0');
    match cut.strip_suffix('.') {
        Some(whole) if cut.len() < text.len() => parse_int(whole, 0),
        _ => parse_int(text, 0),
    }
}

/// `strconv.ParseInt(text, base, 64)`. Base 0: a prefix tells it, and `_` may separate digits.
pub(crate) fn parse_int(text: &str, base: u32) -> Option<i64> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, text.get(1..)?),
        b'+' => (false, text.get(1..)?),
        _ => (false, text),
    };
    let (radix, body) = match (base, digits.as_bytes()) {
        (0, [b'0', b'x' | b'X', ..]) => (16, digits.get(2..)?),
        (0, [b'0', b'b' | b'B', ..]) => (2, digits.get(2..)?),
        (0, [b'0', b'o' | b'O', ..]) => (8, digits.get(2..)?),
        (0, [b'0', _, ..]) => (8, digits.get(1..)?),
        (0, _) => (10, digits),
        (base, _) => (base, digits),
    };
    let magnitude = if base == 0 && body.contains('_') {
        if !underscores_separate(text) {
            return None;
        }
        u64::from_str_radix(&body.replace('_', ""), radix).ok()?
    } else if body.starts_with(['+', '-']) {
        return None;
    } else {
        u64::from_str_radix(body, radix).ok()?
    };
    if negative { 0_i64.checked_sub_unsigned(magnitude) } else { i64::try_from(magnitude).ok() }
}

/// Whether every `_` stands between digits, or between the base's prefix and a digit.
fn underscores_separate(text: &str) -> bool {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text).as_bytes();
    let (hex, start) = match digits {
        [b'0', b'x' | b'X', ..] => (true, 2),
        [b'0', b'b' | b'B' | b'o' | b'O', ..] => (false, 2),
        _ => (false, 0),
    };
    let mut after_digit = start > 0;
    let mut after_underscore = false;
    for byte in digits.iter().skip(start) {
        let digit = byte.is_ascii_digit() || (hex && byte.is_ascii_hexdigit());
        if (*byte == b'_' && !after_digit) || (after_underscore && !digit) {
            return false;
        }
        after_underscore = *byte == b'_';
        after_digit = digit;
    }
    !after_underscore
}

/// `strconv.ParseFloat(text, 64)`: decimal, hexadecimal, infinity and NaN; none if too large.
pub(crate) fn parse_float(text: &str) -> Option<f64> {
    if text.contains('_') {
        if !underscores_separate(text) {
            return None;
        }
        return parse_float(&text.replace('_', ""));
    }
    let body = text.strip_prefix(['+', '-']).unwrap_or(text);
    if body.starts_with("0x") || body.starts_with("0X") {
        return parse_hex_float(body.get(2..)?).map(|n| if text.starts_with('-') { -n } else { n });
    }
    let number: f64 = text.parse().ok()?;
    let named = body.starts_with(|c: char| c.is_ascii_alphabetic());
    (number.is_finite() || named).then_some(number)
}

/// `1.8p3`: a hexadecimal mantissa and an exponent of two.
fn parse_hex_float(body: &str) -> Option<f64> {
    let (mantissa, exponent) = body.split_once(['p', 'P'])?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let exponent: i32 = exponent.parse().ok()?;
    let mut value = 0.0_f64;
    for digit in whole.chars().chain(fraction.chars()) {
        value = value.mul_add(16.0, f64::from(digit.to_digit(16)?));
    }
    let shift = exponent.checked_sub(i32::try_from(fraction.len()).ok()?.checked_mul(4)?)?;
    let number = value * 2.0_f64.powi(shift.clamp(-2000, 2000));
    number.is_finite().then_some(number)
}
