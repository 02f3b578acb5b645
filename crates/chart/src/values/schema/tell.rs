//! What the validator found, as Helm's prints it.
//!
//! They agree on what is wrong. They differ in two ways: where one part of an `allOf`, `anyOf` or
//! `oneOf` fails the validator tells that part alone, and (as Helm 3's did) it counts items behind
//! `prefixItems` from the first, and forgets where a property with a wrong name lies. Both are put
//! right from where the errors lie in the schema.

use boon::{ErrorKind, ValidationError};
use serde_json::Value;

use super::words::{quote, words};
use crate::Profile;

/// A schema and the rules by which its errors are told.
pub(super) struct Teller<'s> {
    /// The document, to see whether items have others before them.
    pub(super) schema: &'s Value,
    /// What was held against it.
    pub(super) values: &'s Value,
    pub(super) profile: Profile,
}

/// Where an error lies.
#[derive(Clone, Default)]
struct Place {
    /// The schema's document.
    document: String,
    /// Names on the way to the schema in it.
    schema: Vec<String>,
    /// Names on the way to the value.
    value: Vec<String>,
    /// Whether it is told already that one part of several fails.
    parts_told: bool,
}

impl Place {
    fn of_schema(url: &str) -> Self {
        let (document, pointer) = url.split_once('#').unwrap_or((url, ""));
        let schema = pointer.split('/').skip(1).map(str::to_owned).collect();
        Self { document: document.to_owned(), schema, ..Self::default() }
    }
}

/// A line that the validator leaves out.
type Left = (Vec<String>, &'static str);

impl Teller<'_> {
    /// The lines below the one that names the schema; empty if there are none.
    pub(super) fn tell(&self, error: &ValidationError<'_, '_>) -> String {
        let mut text = String::new();
        let place = Place::of_schema(error.schema_url);
        for cause in &error.causes {
            self.show(cause, &place, 1, &mut text);
        }
        text
    }

    /// One line for each error, indented below the one it explains.
    fn show(
        &self,
        error: &ValidationError<'_, '_>,
        under: &Place,
        indent: usize,
        text: &mut String,
    ) {
        let (mut place, left_out) = self.locate(error, under);
        let mut indent = indent;
        for (value, words) in left_out {
            line(&value, words, indent, text);
            indent += 1;
        }
        let skipped = error.causes.len() == 1 && matches!(error.kind, ErrorKind::Reference { .. });
        if !skipped {
            line(&place.value, &words(&error.kind, self.pattern(error)), indent, text);
            indent += 1;
        }
        match &error.kind {
            ErrorKind::Reference { url, .. } => {
                place = Place { value: place.value, ..Place::of_schema(url) };
            }
            // The name is a value of its own.
            ErrorKind::PropertyName { .. } => place.value = Vec::new(),
            _ => {}
        }
        place.parts_told =
            matches!(error.kind, ErrorKind::AllOf | ErrorKind::AnyOf | ErrorKind::OneOf(None));
        for cause in &error.causes {
            self.show(cause, &place, indent, text);
        }
    }

    /// Follows the schema's names from the error above, and the value's with them.
    fn locate(&self, error: &ValidationError<'_, '_>, under: &Place) -> (Place, Vec<Left>) {
        let told = error.instance_location.to_string();
        let told: Vec<String> = told.split('/').skip(1).map(str::to_owned).collect();
        let mut place = Place::of_schema(error.schema_url);
        let mut left_out = Vec::new();
        let way = place.schema.strip_prefix(under.schema.as_slice());
        let Some(way) = way.filter(|_| place.document == under.document) else {
            place.value = told;
            return (place, left_out);
        };
        let mut value = under.value.clone();
        let mut at = 0;
        while let Some(name) = way.get(at) {
            let next = way.get(at + 1);
            let index = next.filter(|next| next.bytes().all(|byte| byte.is_ascii_digit()));
            let (steps, goes_down) = match name.as_str() {
                "allOf" | "anyOf" | "oneOf" => {
                    if at > 0 || !under.parts_told {
                        left_out.push((value.clone(), part(name)));
                    }
                    (2, false)
                }
                "properties" | "patternProperties" | "prefixItems" => (2, true),
                "items" if index.is_some() => (2, true),
                "items"
                | "additionalItems"
                | "contains"
                | "additionalProperties"
                | "unevaluatedProperties"
                | "unevaluatedItems" => (1, true),
                "dependentSchemas" | "dependencies" => (2, false),
                _ => (1, false),
            };
            if goes_down {
                let before = way.get(..at).unwrap_or_default();
                let step = self.step(name, next, before, under, told.get(value.len()));
                value.extend(step.or_else(|| self.holder(&value, &error.kind)));
            }
            at += steps;
        }
        place.value = match self.profile {
            Profile::Helm43 => value,
            Profile::Helm318 => told,
        };
        (place, left_out)
    }

    /// The name of the value one level down.
    fn step(
        &self,
        keyword: &str,
        next: Option<&String>,
        before: &[String],
        under: &Place,
        told: Option<&String>,
    ) -> Option<String> {
        let Some(told) = told else {
            return next.filter(|_| keyword == "properties").cloned();
        };
        let schema = under.schema.iter().chain(before);
        let schema = pointer(schema);
        let siblings = self.schema.pointer(&format!("{schema}/prefixItems"));
        let behind = siblings.and_then(Value::as_array).filter(|_| keyword == "items");
        match (behind, told.parse::<usize>()) {
            (Some(first), Ok(index)) => Some((first.len() + index).to_string()),
            _ => Some(told.clone()),
        }
    }

    /// Which of the values below one has the property of a wrong name.
    fn holder(&self, value: &[String], kind: &ErrorKind<'_, '_>) -> Option<String> {
        let ErrorKind::PropertyName { prop } = kind else { return None };
        match self.values.pointer(&pointer(value))? {
            Value::Array(items) => {
                let index = items.iter().position(|item| item.get(prop).is_some())?;
                Some(index.to_string())
            }
            Value::Object(fields) => {
                let mut names = fields.iter().filter(|(_, field)| field.get(prop).is_some());
                Some(names.next()?.0.replace('~', "~0").replace('/', "~1"))
            }
            _ => None,
        }
    }

    /// The pattern as the chart wrote it; the validator's is translated.
    fn pattern(&self, error: &ValidationError<'_, '_>) -> Option<&str> {
        let (_, pointer) = error.schema_url.split_once('#').unwrap_or_default();
        self.schema.pointer(pointer)?.get("pattern")?.as_str()
    }
}

/// A JSON pointer of names that are escaped already.
fn pointer<'n>(names: impl IntoIterator<Item = &'n String>) -> String {
    names.into_iter().flat_map(|name| ["/", name.as_str()]).collect()
}

fn part(keyword: &str) -> &'static str {
    match keyword {
        "allOf" => "'allOf' failed",
        "anyOf" => "'anyOf' failed",
        _ => "'oneOf' failed, none matched",
    }
}

fn line(value: &[String], words: &str, indent: usize, text: &mut String) {
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(&"  ".repeat(indent - 1));
    for part in ["- at ", &quote(&pointer(value)), ": ", words] {
        text.push_str(part);
    }
}
