//! Kubernetes' quantities: the API server spells them its own way (`1000m` becomes `1`).

use serde_json::Value;

/// The factors of suffixes: a power of ten, or of two.
const SUFFIXES: [(&str, Factor); 14] = [
    ("Ki", Factor::Two(10)),
    ("Mi", Factor::Two(20)),
    ("Gi", Factor::Two(30)),
    ("Ti", Factor::Two(40)),
    ("Pi", Factor::Two(50)),
    ("Ei", Factor::Two(60)),
    ("n", Factor::Ten(-9)),
    ("u", Factor::Ten(-6)),
    ("m", Factor::Ten(-3)),
    ("k", Factor::Ten(3)),
    ("M", Factor::Ten(6)),
    ("G", Factor::Ten(9)),
    ("T", Factor::Ten(12)),
    ("P", Factor::Ten(15)),
];

/// No quantity is written with more characters than that.
const LONGEST: usize = 40;

#[derive(Clone, Copy)]
enum Factor {
    Ten(i32),
    Two(u32),
}

/// Whether two spellings are of the same quantity; false for what is none.
pub(super) fn same_quantity(one: &Value, other: &Value) -> bool {
    let nanos = |value: &Value| match value {
        Value::String(text) => nanos(text),
        Value::Number(number) => nanos(&number.to_string()),
        _ => None,
    };
    nanos(one).is_some_and(|one| nanos(other) == Some(one))
}

/// In units of 10⁻⁹, rounded away from zero as the API server does; `None` for what is no quantity.
fn nanos(text: &str) -> Option<i128> {
    if text.len() > LONGEST {
        return None;
    }
    let (number, factor) = split(text)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = format!("{whole}{fraction}");
    let unsigned = digits.trim_start_matches(['+', '-']);
    if unsigned.is_empty() || !unsigned.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let mantissa: i128 = digits.parse().ok()?;
    let (mantissa, exponent) = match factor {
        Factor::Ten(exponent) => (mantissa, exponent),
        Factor::Two(exponent) => (mantissa.checked_mul(1 << exponent)?, 0),
    };
    let exponent = exponent.checked_add(9)?.checked_sub(i32::try_from(fraction.len()).ok()?)?;
    let power = 10_i128.checked_pow(exponent.unsigned_abs())?;
    if exponent >= 0 {
        return mantissa.checked_mul(power);
    }
    let rest = mantissa.checked_rem(power)?.signum();
    mantissa.checked_div(power)?.checked_add(rest)
}

fn split(text: &str) -> Option<(&str, Factor)> {
    for (suffix, factor) in SUFFIXES {
        if let Some(number) = text.strip_suffix(suffix) {
            return Some((number, factor));
        }
    }
    match text.find(['e', 'E']) {
        // Exa, and not an exponent without digits.
        Some(at) if at + 1 == text.len() && text.ends_with('E') => {
            Some((text.get(..at)?, Factor::Ten(18)))
        }
        Some(at) => Some((text.get(..at)?, Factor::Ten(text.get(at + 1..)?.parse().ok()?))),
        None => Some((text, Factor::Ten(0))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn spellings_of_one_quantity_are_the_same() {
        for (one, other) in [
            (json!("1000m"), json!("1")),
            (json!(0.5), json!("500m")),
            (json!(2), json!("2")),
            (json!("1024Mi"), json!("1Gi")),
            (json!("1.5Gi"), json!("1536Mi")),
            (json!("1e3"), json!("1k")),
            (json!("1E"), json!("1000P")),
            (json!("0.1n"), json!("1n")),
            (json!("-0.5"), json!("-500m")),
            (json!(".5"), json!("500m")),
        ] {
            assert!(same_quantity(&one, &other), "{one} {other}");
        }
    }

    #[test]
    fn what_is_another_quantity_or_none_is_not() {
        for (one, other) in [
            (json!("1000m"), json!("2")),
            (json!("1M"), json!("1Mi")),
            (json!("a"), json!("a")),
            (json!(""), json!("")),
            (json!("m"), json!("m")),
            (json!("1e99"), json!("1e99")),
            (json!("1-2"), json!("1-2")),
            (json!(true), json!(true)),
            (json!("1".repeat(60)), json!("1".repeat(60))),
        ] {
            assert!(!same_quantity(&one, &other), "{one} {other}");
        }
    }
}
