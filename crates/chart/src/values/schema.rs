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
        if let Err(fault) = check(schema, &values, &chart.name)? {
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

/// `Err` inside is a fault of the values, or of the schema.
fn check(schema: &[u8], values: &Value, chart: &str) -> Result<Result<(), String>, RenderError> {
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
                file: format!("{chart}/values.schema.json"),
            });
        }
        Err(CompileError::ValidationError { url, src }) => {
            let ErrorKind::Schema { url: meta } = src.kind else {
                return Ok(Err(format!("{url:?} is not valid against metaschema")));
            };
            return Ok(Err(format!(
                "{url:?} is not valid against metaschema: jsonschema validation failed with {}\n{}",
                quote(&format!("{}#", meta.trim_end_matches('#'))),
                tree(&src)
            )));
        }
        Err(error) => return Ok(Err(error.to_string())),
    };
    let result = schemas.validate(values, index);
    Ok(result.map_err(|error| format!("{}\n", tree(&error))))
}

/// All errors, without the first line, which only names the schema's location; Helm cuts it.
fn tree(error: &ValidationError<'_, '_>) -> String {
    let mut text = String::new();
    show(error, None, 0, &mut text);
    text.split_once('\n').map_or(text.clone(), |(_, rest)| rest.to_owned())
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
fn show(
    error: &ValidationError<'_, '_>,
    parent: Option<&ValidationError<'_, '_>>,
    mut indent: usize,
    text: &mut String,
) {
    for (at, words) in parent.map_or_else(Vec::new, |parent| left_out(parent, error)) {
        line(text, indent, &at, words);
        indent += 1;
    }
    let skipped = error.causes.len() == 1 && matches!(error.kind, ErrorKind::Reference { .. });
    if matches!(error.kind, ErrorKind::Schema { .. }) {
        bullet(text, indent);
    } else if !skipped {
        let at = match error.kind {
            // The crate gives no place for these.
            ErrorKind::PropertyName { .. }
                if parent.is_some_and(|parent| !matches!(parent.kind, ErrorKind::Group)) =>
            {
                properties_on_the_way(error.schema_url)
            }
            _ => error.instance_location.to_string(),
        };
        line(text, indent, &at, &words(&error.kind));
    }
    for cause in &error.causes {
        show(cause, Some(error), if skipped { indent } else { indent + 1 }, text);
    }
}

fn bullet(text: &mut String, indent: usize) {
    if indent > 0 {
        text.push('\n');
        text.push_str(&"  ".repeat(indent - 1));
        text.push_str("- ");
    }
}

fn line(text: &mut String, indent: usize, at: &str, words: &str) {
    bullet(text, indent);
    for part in ["at ", &quote(at), ": ", words] {
        text.push_str(part);
    }
}

/// The crate leaves an `allOf`, `anyOf` or `oneOf` out that has one cause alone; Helm tells it. It
/// shows in the location of the schema: what lies between that of the parent and the error's own.
/// Gives the place in the values, and the words.
fn left_out(
    parent: &ValidationError<'_, '_>,
    error: &ValidationError<'_, '_>,
) -> Vec<(String, &'static str)> {
    let (base, told) = match &parent.kind {
        ErrorKind::Reference { url, .. } => (*url, false),
        ErrorKind::AllOf | ErrorKind::AnyOf | ErrorKind::OneOf(_) => (parent.schema_url, true),
        _ => (parent.schema_url, false),
    };
    let Some(way) = error.schema_url.strip_prefix(base) else { return Vec::new() };
    let way: Vec<&str> = way.trim_start_matches(['#', '/']).split('/').collect();
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(keyword) = way.get(at) {
        let is_number = way.get(at + 1).is_some_and(|next| next.parse::<usize>().is_ok());
        let words = match *keyword {
            "allOf" => "'allOf' failed",
            "anyOf" => "'anyOf' failed",
            "oneOf" => "'oneOf' failed, none matched",
            _ => "",
        };
        if !words.is_empty() && is_number {
            if at > 0 || !told {
                let deeper = steps_into_values(way.get(at + 2..).unwrap_or_default());
                found.push((above(&error.instance_location.to_string(), deeper), words));
            }
            at += 2;
        } else {
            at += if has_name(keyword) || is_number { 2 } else { 1 };
        }
    }
    found
}

/// The place in the values, as far as the schema's location tells it.
fn properties_on_the_way(schema: &str) -> String {
    let way: Vec<&str> = schema.split('/').collect();
    let (mut at, mut place) = (0, String::new());
    while let Some(keyword) = way.get(at) {
        if *keyword == "properties" {
            place.extend(["/", way.get(at + 1).copied().unwrap_or_default()]);
        }
        at += if has_name(keyword) { 2 } else { 1 };
    }
    place
}

/// Keywords behind which the name of a property or pattern stands.
fn has_name(keyword: &str) -> bool {
    matches!(
        keyword,
        "properties" | "patternProperties" | "dependentSchemas" | "$defs" | "definitions"
    )
}

/// How many of the steps through a schema are steps into the values.
fn steps_into_values(way: &[&str]) -> usize {
    let (mut count, mut at) = (0, 0);
    while let Some(keyword) = way.get(at) {
        let is_number = way.get(at + 1).is_some_and(|next| next.parse::<usize>().is_ok());
        count += usize::from(matches!(
            *keyword,
            "properties"
                | "patternProperties"
                | "additionalProperties"
                | "unevaluatedProperties"
                | "items"
                | "prefixItems"
                | "additionalItems"
                | "unevaluatedItems"
                | "contains"
        ));
        at += if has_name(keyword) || is_number { 2 } else { 1 };
    }
    count
}

/// A location some levels further up.
fn above(location: &str, levels: usize) -> String {
    let mut location = location;
    for _ in 0..levels {
        location = location.rsplit_once('/').map_or("", |(above, _)| above);
    }
    location.to_owned()
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
        ErrorKind::Format { got, want: "ipv4", .. } if got.is_string() => {
            let got = got.as_str().unwrap_or_default();
            format!("{} is not valid ipv4: {}", quote(got), no_ipv4(got))
        }
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

/// Why a text is no IPv4 address.
fn no_ipv4(text: &str) -> String {
    let groups: Vec<&str> = text.split('.').collect();
    if groups.len() != 4 {
        return "expected four decimals".to_owned();
    }
    for group in groups {
        if group.len() > 1 && group.starts_with('0') {
            return "leading zeros".to_owned();
        }
        match group.parse::<i64>() {
            Ok(0..=255) => {}
            Ok(_) => return "decimal must be between 0 and 255".to_owned(),
            Err(_) => return format!("strconv.Atoi: parsing {group:?}: invalid syntax"),
        }
    }
    String::new()
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
