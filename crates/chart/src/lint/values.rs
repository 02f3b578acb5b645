//! values.yaml, alone and against values.schema.json.

use catamaran_gotemplate::Heap;
use catamaran_yaml::Numbers;
use serde_json::Value;

use super::folder::Folder;
use super::{Options, Report, Severity};
use crate::{Profile, gojson, values};

const FILE: &str = "values.yaml";
const SCHEMA: &str = "values.schema.json";

pub(super) fn check(report: &mut Report, folder: &Folder, options: &Options<'_>) {
    if folder.kind(FILE).is_none() {
        report.check(Severity::Info, FILE, Err("file does not exist".into()));
        return;
    }
    let rule = file(folder, options, &mut report.notes);
    report.check(Severity::Error, FILE, rule);
}

/// Subcharts are left out, as in Helm: the values are only laid over each other.
fn file(folder: &Folder, options: &Options<'_>, notes: &mut Vec<String>) -> Result<(), String> {
    let go_type = match options.profile {
        Profile::Helm318 => "chartutil.Values",
        Profile::Helm43 => "common.Values",
    };
    let defaults = folder
        .read(FILE)
        .and_then(|bytes| gojson::parse(&bytes, Numbers::Float64))
        .and_then(|value| gojson::object(value, go_type))
        .map_err(|text| format!("unable to parse YAML: {text}"))?;
    let Ok(schema) = folder.read(SCHEMA) else { return Ok(()) };
    // Helm 3 pays no heed to the flag here.
    let skipped = options.skip_schema_validation && options.profile == Profile::Helm43;
    if schema.is_empty() || skipped {
        return Ok(());
    }
    let mut heap = Heap::new();
    let room = options.budget.memory;
    let merged =
        values::lay_over(&mut heap, options.values, &defaults, options.profile, notes, room)?;
    let merged: Value = values::plain(&heap, merged).map_err(|error| error.to_string())?;
    let checked = values::check_against(&schema, &merged, SCHEMA, options.profile);
    checked.map_err(|error| error.to_string())?
}
