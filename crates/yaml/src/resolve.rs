//! What a scalar means, by its text alone: the rules of YAML 1.1 as Go's library applies them.

use std::borrow::Cow;

use crate::Dialect;

/// A scalar's meaning.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Resolved {
    Null,
    Bool(bool),
    Int(i64),
    /// An integer above `i64::MAX`.
    Uint(u64),
    Float(f64),
    /// Looks like a date. It stays text when read, but is quoted when printed.
    Timestamp,
    Text,
}

impl Resolved {
    /// The tag's short name, as messages show it.
    pub fn tag(self) -> &'static str {
        match self {
            Self::Null => "!!null",
            Self::Bool(_) => "!!bool",
            Self::Int(_) | Self::Uint(_) => "!!int",
            Self::Float(_) => "!!float",
            Self::Timestamp => "!!timestamp",
            Self::Text => "!!str",
        }
    }
}

/// Resolves a plain scalar. `timestamps`: whether a date is recognized as one.
pub(crate) fn resolve(text: &str, dialect: Dialect, timestamps: bool) -> Resolved {
    let Some(first) = text.bytes().next() else { return Resolved::Null };
    match first {
        b'y' | b'Y' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'o' | b'O' | b'~' => {
            word(text, dialect)
        }
        b'.' => match special_float(text) {
            Some(value) => Resolved::Float(value),
            None => go_float(text).map_or(Resolved::Text, Resolved::Float),
        },
        b'+' | b'-' | b'0'..=b'9' => {
            if let Some(value) = special_float(text) {
                Resolved::Float(value)
            } else if timestamps && is_timestamp(text) {
                Resolved::Timestamp
            } else {
                number(text, dialect)
            }
        }
        _ => Resolved::Text,
    }
}

fn word(text: &str, dialect: Dialect) -> Resolved {
    match text {
        "true" | "True" | "TRUE" => Resolved::Bool(true),
        "false" | "False" | "FALSE" => Resolved::Bool(false),
        "~" | "null" | "Null" | "NULL" => Resolved::Null,
        _ if dialect == Dialect::V3 => Resolved::Text,
        "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => Resolved::Bool(true),
        "n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => Resolved::Bool(false),
        _ => Resolved::Text,
    }
}

fn special_float(text: &str) -> Option<f64> {
    match text {
        ".nan" | ".NaN" | ".NAN" => Some(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Some(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

fn number(text: &str, dialect: Dialect) -> Resolved {
    let plain =
        if text.contains('_') { Cow::Owned(text.replace('_', "")) } else { Cow::Borrowed(text) };
    let (negative, digits) = match plain.as_bytes().first() {
        Some(b'-') => (true, plain.get(1..).unwrap_or_default()),
        Some(b'+') => (false, plain.get(1..).unwrap_or_default()),
        _ => (false, &*plain),
    };
    if let Some(magnitude) = integer(digits) {
        if let Some(value) = signed(negative, magnitude) {
            return Resolved::Int(value);
        }
        // Go reads unsigned numbers without any sign.
        if !plain.starts_with(['+', '-']) {
            return Resolved::Uint(magnitude);
        }
    }
    if is_yaml_float(digits)
        && let Some(value) = go_float(&plain)
    {
        return Resolved::Float(value);
    }
    radix_after_sign(&plain, dialect).unwrap_or(Resolved::Text)
}

/// `0b` and (in version 3) `0o` are tried once more by hand, where a second sign may follow.
fn radix_after_sign(plain: &str, dialect: Dialect) -> Option<Resolved> {
    let (prefix, radix) = match plain.trim_start_matches('-').get(..2)? {
        "0b" => ("0b", 2),
        "0o" if dialect == Dialect::V3 => ("0o", 8),
        _ => return None,
    };
    let (text, negative) = match plain.strip_prefix('-') {
        Some(rest) => (format!("-{}", rest.strip_prefix(prefix)?), true),
        None => (plain.strip_prefix(prefix)?.to_owned(), false),
    };
    let body = text.strip_prefix(['+', '-']).unwrap_or(&text);
    if body.is_empty() || body.starts_with(['+', '-']) {
        return None;
    }
    match i64::from_str_radix(&text, radix) {
        Ok(value) => Some(Resolved::Int(value)),
        Err(_) if !negative && !text.starts_with('+') => {
            u64::from_str_radix(&text, radix).ok().map(Resolved::Uint)
        }
        Err(_) => None,
    }
}

/// The magnitude of an integer in Go's notation: decimal, or with a prefix of its base.
fn integer(digits: &str) -> Option<u64> {
    let bytes = digits.as_bytes();
    let (radix, body) = match (bytes.first(), bytes.get(1)) {
        (Some(b'0'), Some(b'x' | b'X')) => (16, digits.get(2..)?),
        (Some(b'0'), Some(b'b' | b'B')) => (2, digits.get(2..)?),
        (Some(b'0'), Some(b'o' | b'O')) => (8, digits.get(2..)?),
        (Some(b'0'), Some(_)) => (8, digits.get(1..)?),
        _ => (10, digits),
    };
    if body.starts_with(['+', '-']) { None } else { u64::from_str_radix(body, radix).ok() }
}

fn signed(negative: bool, magnitude: u64) -> Option<i64> {
    if negative { 0_i64.checked_sub_unsigned(magnitude) } else { i64::try_from(magnitude).ok() }
}

/// `1`, `1.`, `1.5`, `.5`, each with an exponent or without; the sign is cut off before.
fn is_yaml_float(text: &str) -> bool {
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(at) => (text.get(..at).unwrap_or_default(), text.get(at + 1..)),
        None => (text, None),
    };
    let all_digits =
        |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let mantissa_ok = match mantissa.split_once('.') {
        Some(("", fraction)) => all_digits(fraction),
        Some((whole, fraction)) => {
            all_digits(whole) && (fraction.is_empty() || all_digits(fraction))
        }
        None => all_digits(mantissa),
    };
    mantissa_ok
        && exponent.is_none_or(|text| all_digits(text.strip_prefix(['+', '-']).unwrap_or(text)))
}

/// A decimal float as Go reads it: one that is too large is none.
fn go_float(text: &str) -> Option<f64> {
    let body = text.strip_prefix(['+', '-']).unwrap_or(text);
    if !is_yaml_float(body) {
        return None;
    }
    text.parse::<f64>().ok().filter(|value| value.is_finite())
}

/// A number in base 60, which YAML 1.1 knows: read as text, but quoted for other readers.
pub(crate) fn is_base60(text: &str) -> bool {
    let body = text.strip_prefix(['+', '-']).unwrap_or(text);
    if !body.starts_with(|c: char| c.is_ascii_digit()) {
        return false;
    }
    let (whole, fraction) = body.split_once('.').unwrap_or((body, ""));
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
    let mut parts = whole.split(':');
    let first_ok = parts.next().is_some_and(digits);
    let mut more = false;
    let rest_ok = parts.all(|part| {
        more = true;
        matches!(part.as_bytes(), [b'0'..=b'9'] | [b'0'..=b'5', b'0'..=b'9'])
    });
    first_ok && rest_ok && more && digits(fraction)
}

/// Whether the text is a date, or a date and a time, in one of the forms Go's library accepts.
pub(crate) fn is_timestamp(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes.len() < 5 || bytes.iter().take_while(|byte| byte.is_ascii_digit()).count() != 4 {
        return false;
    }
    timestamp(text).is_some()
}

fn timestamp(text: &str) -> Option<()> {
    let year: u32 = text.get(..4)?.parse().ok()?;
    let (month, rest) = number_up_to_two(text.get(4..)?.strip_prefix('-')?)?;
    let (day, rest) = number_up_to_two(rest.strip_prefix('-')?)?;
    if !(1..=12).contains(&month) || day < 1 || day > days_in(year, month) {
        return None;
    }
    if rest.is_empty() {
        return Some(());
    }
    let zoned = rest.starts_with(['T', 't']);
    let (hour, rest) = number_up_to_two(rest.strip_prefix(['T', 't', ' '])?)?;
    let (minute, rest) = number_up_to_two(rest.strip_prefix(':')?)?;
    let (second, rest) = number_up_to_two(rest.strip_prefix(':')?)?;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let rest = match rest.strip_prefix(['.', ',']) {
        Some(fraction) => {
            let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
            if digits == 0 { rest } else { fraction.get(digits..)? }
        }
        None => rest,
    };
    match (zoned, rest) {
        (false, "") | (true, "Z") => Some(()),
        (true, offset) => is_offset(offset).then_some(()),
        _ => None,
    }
}

fn is_offset(text: &str) -> bool {
    let Some((hours, minutes)) =
        text.strip_prefix(['+', '-']).and_then(|text| text.split_once(':'))
    else {
        return false;
    };
    let in_range = |part: &str, limit: u32| {
        part.len() == 2
            && part.bytes().all(|b| b.is_ascii_digit())
            && part.parse().is_ok_and(|n: u32| n <= limit)
    };
    in_range(hours, 24) && in_range(minutes, 60)
}

fn number_up_to_two(text: &str) -> Option<(u32, &str)> {
    let digits = text.bytes().take(2).take_while(u8::is_ascii_digit).count();
    Some((text.get(..digits)?.parse().ok()?, text.get(digits..)?))
}

fn days_in(year: u32, month: u32) -> u32 {
    match month {
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => {
            29
        }
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}
