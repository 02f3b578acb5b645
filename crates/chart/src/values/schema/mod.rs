//! values.schema.json.
//!
//! The validator is by the author of the one in Helm; where their words
//! differ, Helm's are printed.

mod bounds;
mod foreign;
mod kept;
mod tell;
mod words;

use catamaran_gotemplate::{Heap, Map, Value as GoValue};
use serde_json::Value;

use super::plain;
use super::tree::Node;
use crate::{Position, Profile, RenderError};
pub(crate) use foreign::accepted as accepted_elsewhere;
use kept::Compiled;
pub(crate) use kept::KeptSchemas;
use tell::Teller;

/// Validates a chart's values and its subcharts'; faults are collected in
/// Helm's words.
pub(super) fn validate(
    heap: &Heap,
    kept: &KeptSchemas,
    chart: &Node<'_>,
    values: Map,
    profile: Profile,
    faults: &mut String,
) -> Result<(), RenderError> {
    if let Some(schema) = kept.of_chart(chart.chart, profile) {
        let values = plain(heap, values)?;
        let file = format!("{}/values.schema.json", chart.name);
        if let Err(fault) = check(schema, &values, &file, profile)? {
            faults.push_str(&chart.name);
            faults.push_str(":\n");
            faults.push_str(&fault);
        }
    }
    for child in &chart.children {
        match heap.get(values, child.name.as_str()) {
            None | Some(GoValue::Nil) => {}
            Some(GoValue::Map(values)) => validate(heap, kept, child, *values, profile, faults)?,
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

/// Holds values against the text of a schema. `Err` inside is a fault of the values, or of the schema.
pub(crate) fn check_against(
    schema: &[u8],
    values: &Value,
    file: &str,
    profile: Profile,
) -> Result<Result<(), String>, RenderError> {
    check(&kept::compile(schema, None, profile), values, file, profile)
}

/// `Err` inside is a fault of the values, or of the schema.
fn check(
    schema: &Compiled,
    values: &Value,
    file: &str,
    profile: Profile,
) -> Result<Result<(), String>, RenderError> {
    let refused = |text: &str| RenderError::Budget {
        text: text.to_owned(),
        at: Position { file: file.to_owned(), line: 1, column: 0 },
    };
    let ready = match schema {
        Compiled::Ready(ready) => ready,
        Compiled::Faulty(fault) => return Ok(Err(fault.clone())),
        Compiled::Refused(text) => return Err(refused(text)),
        Compiled::Remote(url) => {
            let what = format!("a reference to another document ({url})");
            return Err(RenderError::Unsupported { what, file: file.to_owned() });
        }
    };
    bounds::check(&ready.schema, values).map_err(refused)?;
    let teller = Teller { schema: &ready.schema, values, profile };
    let result = ready.schemas.validate(values, ready.index);
    Ok(result.map_err(|error| format!("{}\n", teller.tell(&error))))
}
