//! values.yaml, alone and against values.schema.json.

use catamaran_gotemplate::Heap;
use catamaran_yaml::Numbers;
use serde_json::{Map, Value};

use super::folder::Folder;
use super::{Options, Report, Severity};
use crate::values as merging;
use crate::{Profile, gojson};

const FILE: &str = "values.yaml";
const SCHEMA: &str = "values.schema.json";

pub(super) fn check(
    report: &mut Report,
    folder: &Folder,
    values: &mut Map<String, Value>,
    options: &Options<'_>,
) {
    if folder.kind(FILE).is_none() {
        report.check(Severity::Info, FILE, Err("file does not exist".into()));
        return;
    }
    let rule = file(folder, values, options, &mut report.notes);
    report.check(Severity::Error, FILE, rule);
}

/// Subcharts are left out, as in Helm: the values are only laid over each other.
fn file(
    folder: &Folder,
    values: &mut Map<String, Value>,
    options: &Options<'_>,
    notes: &mut Vec<String>,
) -> Result<(), String> {
    let go_type = match options.profile {
        Profile::Helm318 => "chartutil.Values",
        Profile::Helm43 => "common.Values",
    };
    let defaults = folder
        .read(FILE)
        .and_then(|bytes| gojson::parse(&bytes, Numbers::Float64))
        .and_then(|value| gojson::object(value, go_type))
        .map_err(|text| format!("unable to parse YAML: {text}"))?;
    let mut heap = Heap::new();
    let room = options.budget.memory;
    let merged = merging::lay_over(&mut heap, values, &defaults, options.profile, notes, room)?;
    let merged: Value = merging::plain(&heap, merged).map_err(|error| error.to_string())?;
    keep_in_tables(values, &merged);
    let Ok(schema) = folder.read(SCHEMA) else { return Ok(()) };
    // Helm 3 pays no heed to the flag here.
    let skipped = options.skip_schema_validation && options.profile == Profile::Helm43;
    if schema.is_empty() || skipped {
        return Ok(());
    }
    let checked = merging::check_against(&schema, &merged, SCHEMA, options.profile);
    checked.map_err(|error| error.to_string())?
}

/// Helm copies the user's values one level deep before it lays them over the file's: what it puts
/// into a table of theirs stays there, nulls too, for the templates and for the charts linted next.
fn keep_in_tables(values: &mut Map<String, Value>, merged: &Value) {
    for (key, table) in values.iter_mut().filter(|(_, value)| value.is_object()) {
        if let Some(merged) = merged.get(key) {
            table.clone_from(merged);
        }
    }
}
