//! values.schema.json.
//!
//! The validator is by the author of the one in Helm; where their words
//! differ, Helm's are printed.

use std::error::Error;

use boon::{CompileError, Compiler, Draft, ErrorKind, Schemas, UrlLoader, ValidationError};
use catamaran_gotemplate::{Heap, Map, Value as GoValue};
use catamaran_yaml::go_float;
use serde_json::{Number, Value};

use super::plain;
use super::tree::Node;
use crate::RenderError;

/// Where Helm says a schema lies; references are relative to it.
const LOCATION: &str = "file:///values.schema.json";

/// Validates a chart's values and its subcharts'; faults are collected in
/// Helm's words.
pub(super) fn validate(
    heap: &Heap,
    chart: &Node<'_>,
    values: Map,
    faults: &mut String,
) -> Result<(), RenderError> {
    if let Some(schema) = &chart.chart.schema {
        let values = plain(heap, values)?;
        if let Err(fault) = check(schema, &values, &format!("{}/values.schema.json", chart.name))? {
            faults.push_str(&chart.name);
            faults.push_str(":\n");
            faults.push_str(&fault);
        }
    }
    for child in &chart.children {
        match heap.get(values, child.name.as_str()) {
            None | Some(GoValue::Nil) => {}
            Some(GoValue::Map(values)) => validate(heap, child, *values, faults)?,
            Some(other) => {
                let (name, kind) = (&child.name, heap.type_name(other));
                let fault = format!(
                    "{name}:\ninvalid type for values: expected object (map), got {kind}\n"
                );
                faults.push_str(&fault);
            }
        }
    }
    Ok(())
}

/// Checks one chart's values. `Err` inside is a fault of the values, or of the schema.
pub(crate) fn check(
    schema: &[u8],
    values: &Value,
    file: &str,
) -> Result<Result<(), String>, RenderError> {
    let schema: Value = match serde_json::from_slice(schema) {
        Ok(schema) => schema,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let mut compiler = Compiler::new();
    compiler.set_default_draft(Draft::V2020_12);
    compiler.use_loader(Box::new(NoRemote));
    if let Err(error) = compiler.add_resource(LOCATION, schema) {
        return Ok(Err(error.to_string()));
    }
    let mut schemas = Schemas::new();
    let index = match compiler.compile(LOCATION, &mut schemas) {
        Ok(index) => index,
        Err(CompileError::LoadUrlError { url, .. }) => {
            return Err(RenderError::Unsupported {
                what: format!("a reference to another document ({url})"),
                file: file.to_owned(),
            });
        }
        Err(error) => return Ok(Err(error.to_string())),
    };
    Ok(schemas.validate(values, index).map_err(|error| {
        let mut text = String::new();
        show(&error, 0, &mut text);
        // The first line only names the schema's location; Helm cuts it.
        let text = text.split_once('\n').map_or(text.as_str(), |(_, rest)| rest);
        format!("{text}\n")
    }))
}

/// Helm would fetch whatever a chart names; we never do. An unknown URN
/// accepts everything, as in Helm.
struct NoRemote;

impl UrlLoader for NoRemote {
    fn load(&self, url: &str) -> Result<Value, Box<dyn Error>> {
        if url.starts_with("urn:") { Ok(Value::Bool(true)) } else { Err("not fetched".into()) }
    }
}

/// One line for each error, indented below the one it explains.
fn show(error: &ValidationError<'_, '_>, indent: usize, text: &mut String) {
    let skipped = error.causes.len() == 1 && matches!(error.kind, ErrorKind::Reference { .. });
    if !skipped {
        if indent > 0 {
            text.push('\n');
            text.push_str(&"  ".repeat(indent - 1));
            text.push_str("- ");
        }
        if !matches!(error.kind, ErrorKind::Schema { .. }) {
            let at = quote(&error.instance_location.to_string());
            for part in ["at ", &at, ": ", &words(&error.kind)] {
                text.push_str(part);
            }
        }
    }
    for cause in &error.causes {
        show(cause, if skipped { indent } else { indent + 1 }, text);
    }
}

/// Helm's words for an error.
fn words(kind: &ErrorKind<'_, '_>) -> String {
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
            format!("{} is not valid {want}: {err}", display(got))
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
            format!("{} does not match pattern {}", quote(got), quote(want))
        }
        ErrorKind::ContentSchema => "'contentSchema' failed".into(),
        other => bounds(other).unwrap_or_else(|| other.to_string()),
    }
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

/// Helm prints these in English: digits in groups of three.
fn float(number: &Number) -> String {
    grouped(&go_float(number.as_f64().unwrap_or_default()))
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
fn quote(text: &str) -> String {
    let quoted = catamaran_gotemplate::fmt::quote(&text.into());
    let inner = quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default();
    format!("'{}'", inner.replace("\\\"", "\"").replace('\'', "\\'"))
}
