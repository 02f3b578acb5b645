//! values.schema.json.
//!
//! The validator is by the author of the one in Helm; where their words
//! differ, Helm's are printed.

mod bounds;
mod tell;
mod words;

use std::error::Error;

use boon::{CompileError, Compiler, Draft, Schemas, UrlLoader};
use catamaran_gotemplate::{Heap, Map, Value as GoValue};
use serde_json::Value;

use super::plain;
use super::tree::Node;
use crate::{Position, Profile, RenderError};
use tell::Teller;
use words::quote;

/// Where Helm says a schema lies; references are relative to it.
const LOCATION: &str = "file:///values.schema.json";

/// Validates a chart's values and its subcharts'; faults are collected in
/// Helm's words.
pub(super) fn validate(
    heap: &Heap,
    chart: &Node<'_>,
    values: Map,
    profile: Profile,
    faults: &mut String,
) -> Result<(), RenderError> {
    if let Some(schema) = &chart.chart.schema {
        let values = plain(heap, values)?;
        if let Err(fault) = check(schema, &values, &chart.name, profile)? {
            faults.push_str(&chart.name);
            faults.push_str(":\n");
            faults.push_str(&fault);
        }
    }
    for child in &chart.children {
        match heap.get(values, child.name.as_str()) {
            None | Some(GoValue::Nil) => {}
            Some(GoValue::Map(values)) => validate(heap, child, *values, profile, faults)?,
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
fn check(
    schema: &[u8],
    values: &Value,
    chart: &str,
    profile: Profile,
) -> Result<Result<(), String>, RenderError> {
    let refused = |text: bounds::Refusal| RenderError::Budget {
        text: text.to_owned(),
        at: Position { file: format!("{chart}/values.schema.json"), line: 1, column: 0 },
    };
    bounds::check_text(schema).map_err(refused)?;
    let schema: Value = match serde_json::from_slice(schema) {
        Ok(schema) => schema,
        // In Go's words, or ours for what only our reader has something against.
        Err(error) => {
            let fault = catamaran_sprig::check_json(schema).err();
            return Ok(Err(fault.unwrap_or_else(|| error.to_string())));
        }
    };
    bounds::check(&schema, values).map_err(refused)?;
    let mut compiler = Compiler::new();
    compiler.set_default_draft(Draft::V2020_12);
    compiler.use_loader(Box::new(NoRemote(profile)));
    if let Err(error) = compiler.add_resource(LOCATION, schema.clone()) {
        return Ok(Err(error.to_string()));
    }
    let mut schemas = Schemas::new();
    let index = match compiler.compile(LOCATION, &mut schemas) {
        Ok(index) => index,
        Err(CompileError::LoadUrlError { url, .. })
            if profile == Profile::Helm318 && is_urn(&url) =>
        {
            let fault = format!("failing loading {url:?}: no URLLoader registered for {url:?}");
            return Ok(Err(fault));
        }
        Err(CompileError::LoadUrlError { url, .. }) => {
            return Err(RenderError::Unsupported {
                what: format!("a reference to another document ({url})"),
                file: format!("{chart}/values.schema.json"),
            });
        }
        Err(error) => return Ok(Err(compile_fault(&error, profile))),
    };
    let teller = Teller { schema: &schema, values, profile };
    Ok(schemas.validate(values, index).map_err(|error| format!("{}\n", teller.tell(&error))))
}

/// What is wrong with a schema.
fn compile_fault(error: &CompileError, profile: Profile) -> String {
    match error {
        CompileError::ValidationError { url, src } => {
            let nothing = &Value::Null;
            let teller = Teller { schema: nothing, values: nothing, profile };
            // The metaschema's own lines, below one that names it.
            let metaschema = match &src.kind {
                boon::ErrorKind::Schema { url } => *url,
                _ => src.schema_url,
            };
            format!(
                "{url:?} is not valid against metaschema: jsonschema validation failed with {}\n{}",
                quote(metaschema),
                teller.tell(src)
            )
        }
        CompileError::JsonPointerNotFound(url) => {
            format!("json-pointer in {url:?} not found")
        }
        other => other.to_string(),
    }
}

fn is_urn(url: &str) -> bool {
    url.starts_with("urn:")
}

/// Helm would fetch whatever a chart names; we never do. An unknown URN
/// accepts everything, as in Helm 4.
struct NoRemote(Profile);

impl UrlLoader for NoRemote {
    fn load(&self, url: &str) -> Result<Value, Box<dyn Error>> {
        if is_urn(url) && self.0 == Profile::Helm43 {
            Ok(Value::Bool(true))
        } else {
            Err("not fetched".into())
        }
    }
}
