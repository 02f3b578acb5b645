//! Number literals.

use std::borrow::Cow;

use super::ast::Number;
use super::token::Kind;
use crate::fmt::{Unit, quote_str, unquote_char};
use crate::value::Complex;

impl<'t> Number<'t> {
    /// Reads a literal; the error is Go's text.
    pub fn parse(text: Cow<'t, str>, kind: Kind) -> Result<Self, String> {
        if kind == Kind::CharConstant {
            return Self::character(text);
        }
        if kind == Kind::Complex || text.ends_with('i') {
            let complex = parse_complex(&text);
            let complex =
                complex.ok_or_else(|| format!("illegal number syntax: {}", quote_str(&text)))?;
            return Ok(Self::complex(text, complex));
        }
        let mut uint = parse_uint(&text);
        let int = parse_int(&text);
        if int == Some(0) {
            uint = Some(0);
        }
        #[allow(clippy::cast_precision_loss)]
        let float = int.map(|n| n as f64).or(uint.map(|n| n as f64));
        if float.is_some() {
            return Ok(Self { text, int, uint, float, complex: None });
        }
        let Some(float) = parse_float(&text) else {
            return Err(format!("illegal number syntax: {}", quote_str(&text)));
        };
        if !text.contains(['.', 'e', 'E', 'p', 'P']) {
            return Err(format!("integer overflow: {}", quote_str(&text)));
        }
        let (int, uint) = integers(float);
        Ok(Self { text, int, uint, float: Some(float), complex: None })
    }

    /// A complex number without an imaginary part may stand for all that its real part can.
    fn complex(text: Cow<'t, str>, complex: Complex) -> Self {
        let float = (complex.im == 0.0).then_some(complex.re);
        let (int, uint) = float.map_or((None, None), integers);
        Self { text, int, uint, float, complex: Some(complex) }
    }

    fn character(text: Cow<'t, str>) -> Result<Self, String> {
        let body = text.get(1..).unwrap_or_default();
        let (unit, rest) = unquote_char(body, '\'').ok_or("invalid syntax")?;
        if rest != "'" {
            return Err(format!("malformed character constant: {text}"));
        }
        let code = match unit {
            Unit::Char(c) => u32::from(c),
            Unit::Byte(byte) => u32::from(byte),
        };
        let (int, uint) = (Some(i64::from(code)), Some(u64::from(code)));
        Ok(Self { int, uint, float: Some(f64::from(code)), text, complex: None })
    }

    /// Whether the spelling makes it a float where nothing else decides.
    pub fn looks_like_float(&self) -> bool {
        let text = self.text.as_bytes();
        let hex = matches!(text, [b'0', b'x' | b'X', _, ..]) && !self.text.contains(['p', 'P']);
        let rune = self.text.starts_with('\'');
        !hex && !rune && self.text.contains(['.', 'e', 'E', 'p', 'P'])
    }
}

/// The integers that are the same number.
// Casts saturate where Go's wrap; neither round-trips, so neither counts as an integer.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
#[allow(clippy::cast_precision_loss, clippy::float_cmp)]
fn integers(float: f64) -> (Option<i64>, Option<u64>) {
    let in_range = float.abs() < 9.3e18;
    let int = Some(float as i64).filter(|n| in_range && *n as f64 == float);
    (int, Some(float as u64).filter(|n| float >= 0.0 && *n as f64 == float))
}

/// `1i`, `1+2i`
fn parse_complex(text: &str) -> Option<Complex> {
    let digits = text.strip_suffix('i')?;
    let sign = |(at, c): &(usize, char)| {
        let exponent =
            digits.get(..*at).is_some_and(|before| before.ends_with(['e', 'E', 'p', 'P']));
        *at > 0 && matches!(c, '+' | '-') && !exponent
    };
    let middle = digits.char_indices().rfind(sign);
    let (re, im) = middle.map_or(("0", digits), |(at, _)| digits.split_at(at));
    Some(Complex { re: parse_float(re)?, im: parse_float(im)? })
}

/// Splits off sign and base as Go's `ParseInt(s, 0, 64)` reads them.
fn split(text: &str) -> Option<(bool, u32, String)> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if !underscores_ok(digits) {
        return None;
    }
    let lower = digits.to_ascii_lowercase();
    let (radix, digits) = match lower.as_bytes() {
        [b'0', b'x', ..] => (16, lower.get(2..)?),
        [b'0', b'b', ..] => (2, lower.get(2..)?),
        [b'0', b'o', ..] => (8, lower.get(2..)?),
        [b'0', _, ..] => (8, lower.get(1..)?),
        _ => (10, lower.as_str()),
    };
    Some((negative, radix, digits.replace('_', "")))
}

fn parse_uint(text: &str) -> Option<u64> {
    if text.starts_with(['+', '-']) {
        return None;
    }
    let (_, radix, digits) = split(text)?;
    digits.starts_with(|c: char| c.is_digit(radix)).then_some(())?;
    u64::from_str_radix(&digits, radix).ok()
}

fn parse_int(text: &str) -> Option<i64> {
    let (negative, radix, digits) = split(text)?;
    digits.starts_with(|c: char| c.is_digit(radix)).then_some(())?;
    let magnitude = i128::from_str_radix(&digits, radix).ok()?;
    i64::try_from(if negative { -magnitude } else { magnitude }).ok()
}

/// Underscores may separate digits, and the base prefix from them, and nothing else.
fn underscores_ok(digits: &str) -> bool {
    let text = digits.as_bytes();
    let prefixed = matches!(text, [b'0', b'x' | b'X' | b'o' | b'O' | b'b' | b'B', ..]);
    let digit = |c: Option<&u8>| c.is_some_and(u8::is_ascii_hexdigit);
    text.iter().enumerate().filter(|(_, c)| **c == b'_').all(|(i, _)| {
        let before = i > 0 && digit(text.get(i - 1)) || prefixed && i == 2;
        before && digit(text.get(i + 1))
    })
}

fn parse_float(text: &str) -> Option<f64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if !underscores_ok(digits) {
        return None;
    }
    let hex = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"));
    let value = match hex {
        Some(hex) => parse_hex_float(hex)?,
        None if digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') => {
            digits.replace('_', "").parse::<f64>().ok().filter(|value| value.is_finite())?
        }
        None => return None,
    };
    Some(if negative { -value } else { value })
}

/// `1.8p3`, exact for up to 15 hexadecimal digits (more are refused, rather than misrounded).
fn parse_hex_float(text: &str) -> Option<f64> {
    let text = text.replace('_', "");
    let (mantissa, exponent) = text.split_once(['p', 'P'])?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    if digits.trim_start_matches('0').len() > 13 {
        return None;
    }
    let value = u64::from_str_radix(&digits, 16).ok()?;
    let shift = i32::try_from(fraction.len()).ok()?.checked_mul(4)?;
    let exponent = exponent.parse::<i32>().ok()?.checked_sub(shift)?;
    #[allow(clippy::cast_precision_loss)]
    Some(value as f64 * 2f64.powi(exponent)).filter(|value| value.is_finite())
}
