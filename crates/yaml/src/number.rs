//! Floats as Go prints them.

/// The shortest text that reads back as `value`, in scientific form. Where two are equally near,
/// Go takes the even one, and Rust's formatting the upper one.
fn scientific(value: f64) -> String {
    let short = format!("{value:e}");
    let digits = short.bytes().take_while(|byte| *byte != b'e').filter(u8::is_ascii_digit).count();
    if digits < 15 || !value.is_finite() {
        return short;
    }
    let even = format!("{value:.*e}", digits - 1);
    if even.parse() == Ok(value) { even } else { short }
}

/// The shortest digits of a finite, positive number and its decimal exponent: `d.ddd * 10^exponent`.
fn shortest(scientific: &str) -> (String, i32) {
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    (mantissa.replace('.', ""), exponent.parse().unwrap_or(0))
}

/// A float with an exponent where it is below -4 or not below `limit`.
fn general(value: f64, scientific: &str, limit: i32) -> String {
    if value.is_nan() {
        return "NaN".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf".into() } else { "-Inf".into() };
    }
    let (sign, body) = match scientific.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", scientific),
    };
    let (digits, exponent) = shortest(body);
    if exponent < -4 || exponent >= limit {
        return format!("{sign}{}", with_exponent(&digits, exponent));
    }
    format!("{sign}{}", positional(&digits, exponent))
}

fn with_exponent(digits: &str, exponent: i32) -> String {
    let (first, rest) = digits.split_at(1.min(digits.len()));
    let point = if rest.is_empty() { "" } else { "." };
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{first}{point}{rest}e{sign}{:02}", exponent.unsigned_abs())
}

fn positional(digits: &str, exponent: i32) -> String {
    let Ok(whole) = usize::try_from(exponent + 1) else {
        let zeros = usize::try_from(-exponent - 1).unwrap_or(0);
        return format!("0.{}{digits}", "0".repeat(zeros));
    };
    if whole == 0 {
        return format!("0.{digits}");
    }
    if digits.len() <= whole {
        return format!("{digits}{}", "0".repeat(whole - digits.len()));
    }
    let (before, after) = digits.split_at(whole);
    format!("{before}.{after}")
}

/// `strconv.FormatFloat(value, 'g', -1, 64)`: `1e+06`, `0.0001`, `1.0000005e+06`, `3`.
///
/// ```
/// assert_eq!(catamaran_yaml::go_float(1_000_000.0), "1e+06");
/// assert_eq!(catamaran_yaml::go_float(999_999.5), "999999.5");
/// ```
pub fn go_float(value: f64) -> String {
    general(value, &scientific(value), 6)
}

/// As [`go_float`], of the number rounded to 32 bits: how keys that are floats become strings.
#[allow(clippy::cast_possible_truncation)] // that is the point
pub(crate) fn go_float32(value: f64) -> String {
    let value = value as f32;
    general(f64::from(value), &format!("{value:e}"), 6)
}

/// A finite float as Go's JSON encoder prints it: positional for 1e-6 <= |x| < 1e21.
pub fn json_float(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude != 0.0 && !(1e-6..1e21).contains(&magnitude) {
        let text = general(value, &scientific(value), 21);
        // Go writes e-09 as e-9.
        return match text.split_once("e-0") {
            Some((mantissa, exponent)) => format!("{mantissa}e-{exponent}"),
            None => text,
        };
    }
    let text = scientific(value);
    let body = text.strip_prefix('-').unwrap_or(&text);
    let (digits, exponent) = shortest(body);
    let sign = if text.len() > body.len() { "-" } else { "" };
    format!("{sign}{}", positional(digits.trim_end_matches('0'), exponent))
}
