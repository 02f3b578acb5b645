//! Helm's words for what breaks a schema.

use boon::ErrorKind;
use catamaran_sprig::{check_regex, check_time, check_url};
use catamaran_yaml::go_float;
use serde_json::{Number, Value};

/// Helm's words for an error.
///
/// `pattern` is what a text was held against, as the schema has it.
pub(super) fn words(kind: &ErrorKind<'_, '_>, pattern: Option<&str>) -> String {
    match kind {
        ErrorKind::Not => "'not' failed".into(),
        ErrorKind::AllOf => "'allOf' failed".into(),
        ErrorKind::AnyOf => "'anyOf' failed".into(),
        ErrorKind::OneOf(None) => "'oneOf' failed, none matched".into(),
        ErrorKind::OneOf(Some((i, j))) => format!("'oneOf' failed, subschemas {i}, {j} matched"),
        ErrorKind::Type { got, want } => {
            let want: Vec<_> = want.iter().map(|ty| ty.to_string()).collect();
            format!("got {got}, want {}", want.join(" or "))
        }
        ErrorKind::Enum { want } => one_of(want),
        ErrorKind::Const { want } if is_compound(want) => "'const' failed".into(),
        ErrorKind::Const { want } => format!("value must be {}", display(want)),
        ErrorKind::Format { got, want, err } => {
            let fault = got.as_str().and_then(|text| format_fault(want, text));
            let fault = fault.unwrap_or_else(|| err.to_string());
            format!("{} is not valid {want}: {fault}", display(got))
        }
        ErrorKind::PropertyName { prop } => format!("invalid propertyName {}", quote(prop)),
        ErrorKind::AdditionalProperties { got } => {
            format!("additional properties {} not allowed", joined(got.iter().map(AsRef::as_ref)))
        }
        ErrorKind::Required { want } if want.len() == 1 => {
            format!("missing property {}", joined(want.iter().copied()))
        }
        ErrorKind::Required { want } => {
            format!("missing properties {}", joined(want.iter().copied()))
        }
        ErrorKind::Dependency { prop, missing }
        | ErrorKind::DependentRequired { prop, missing } => {
            let missing = joined(missing.iter().copied());
            format!("properties {missing} required, if {} exists", quote(prop))
        }
        ErrorKind::Pattern { got, want } => {
            format!("{} does not match pattern {}", quote(got), quote(pattern.unwrap_or(want)))
        }
        ErrorKind::ContentSchema => "'contentSchema' failed".into(),
        other => bounds(other).unwrap_or_else(|| other.to_string()),
    }
}

/// What Helm's validator has against a text of a format, where the words differ.
fn format_fault(format: &str, text: &str) -> Option<String> {
    match format {
        "date" => check_time("2006-01-02", text).err(),
        "regex" => check_regex(text).err(),
        "uri" | "iri" => Some(check_url(text).err().unwrap_or_else(|| "relative url".to_owned())),
        "ipv4" => ipv4_fault(text),
        "ipv6" if !text.contains(':') => Some("missing colon".to_owned()),
        "json-pointer" if !text.starts_with('/') => Some("not starting with /".to_owned()),
        _ => None,
    }
}

fn ipv4_fault(text: &str) -> Option<String> {
    let groups: Vec<&str> = text.split('.').collect();
    if groups.len() != 4 {
        return Some("expected four decimals".to_owned());
    }
    groups.into_iter().find_map(|group| match group.parse::<u8>() {
        _ if group.len() > 1 && group.starts_with('0') => Some("leading zeros".to_owned()),
        Ok(_) => None,
        Err(_) if !group.is_empty() && group.bytes().all(|byte| byte.is_ascii_digit()) => {
            Some("decimal must be between 0 and 255".to_owned())
        }
        Err(_) => Some(format!("strconv.Atoi: parsing {group:?}: invalid syntax")),
    })
}

/// Errors that name a number that was found and one that is wanted.
fn bounds(kind: &ErrorKind<'_, '_>) -> Option<String> {
    let counts = |name: &str, got: usize, want: usize| {
        Some(format!(
            "{name}: got {}, want {}",
            grouped(&got.to_string()),
            grouped(&want.to_string())
        ))
    };
    let numbers = |name: &str, got: &Number, want: &Number| {
        Some(format!("{name}: got {}, want {}", float(got), float(want)))
    };
    match kind {
        ErrorKind::MinProperties { got, want } => counts("minProperties", *got, *want),
        ErrorKind::MaxProperties { got, want } => counts("maxProperties", *got, *want),
        ErrorKind::MinItems { got, want } => counts("minItems", *got, *want),
        ErrorKind::MaxItems { got, want } => counts("maxItems", *got, *want),
        ErrorKind::MinLength { got, want } => counts("minLength", *got, *want),
        ErrorKind::MaxLength { got, want } => counts("maxLength", *got, *want),
        ErrorKind::Minimum { got, want } => numbers("minimum", got, want),
        ErrorKind::Maximum { got, want } => numbers("maximum", got, want),
        ErrorKind::ExclusiveMinimum { got, want } => numbers("exclusiveMinimum", got, want),
        ErrorKind::ExclusiveMaximum { got, want } => numbers("exclusiveMaximum", got, want),
        ErrorKind::MultipleOf { got, want } => numbers("multipleOf", got, want),
        ErrorKind::AdditionalItems { got } => {
            Some(format!("last {got} additionalItem(s) not allowed"))
        }
        ErrorKind::MinContains { got, want } if got.is_empty() => {
            Some(format!("min {want} items required to match contains schema, but none matched"))
        }
        ErrorKind::MinContains { got, want } => Some(format!(
            "min {want} items required to match contains schema, but matched {} items at {}",
            got.len(),
            indexes(got)
        )),
        ErrorKind::MaxContains { got, want } => Some(format!(
            "max {want} items required to match contains schema, but matched {} items at {}",
            got.len(),
            indexes(got)
        )),
        _ => None,
    }
}

fn indexes(items: &[usize]) -> String {
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

fn one_of(want: &[Value]) -> String {
    match want {
        _ if want.iter().any(is_compound) => "'enum' failed".into(),
        [only] => format!("value must be {}", display(only)),
        many => {
            let many: Vec<_> = many.iter().map(display).collect();
            format!("value must be one of {}", many.join(", "))
        }
    }
}

fn is_compound(value: &Value) -> bool {
    value.is_array() || value.is_object()
}

fn display(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".into(),
        Value::String(text) => quote(text),
        Value::Array(_) | Value::Object(_) => "value".into(),
        Value::Number(number) if number.is_f64() => go_float(number.as_f64().unwrap_or_default()),
        other => other.to_string(),
    }
}

/// Helm prints these in English: digits in groups of three, powers of ten by small digits.
fn float(number: &Number) -> String {
    let text = catamaran_gotemplate::fmt::float(number.as_f64().unwrap_or_default());
    let Some((digits, power)) = text.split_once('e') else { return grouped(&text) };
    let small = |c: char| match c {
        '-' => Some('⁻'),
        c => c.to_digit(10).and_then(|digit| "⁰¹²³⁴⁵⁶⁷⁸⁹".chars().nth(digit as usize)),
    };
    format!("{digits}×10{}", power.chars().filter_map(small).collect::<String>())
}

fn grouped(number: &str) -> String {
    let end = number.find(['.', 'e']).unwrap_or(number.len());
    let (whole, rest) = number.split_at(end);
    let (sign, digits) = whole.strip_prefix('-').map_or(("", whole), |digits| ("-", digits));
    let mut text = sign.to_owned();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text + rest
}

fn joined<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    texts.map(quote).collect::<Vec<_>>().join(", ")
}

/// Go's `%q` in single quotes.
pub(super) fn quote(text: &str) -> String {
    let quoted = catamaran_gotemplate::fmt::quote(&text.into());
    let inner = quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default();
    format!("'{}'", inner.replace("\\\"", "\"").replace('\'', "\\'"))
}
