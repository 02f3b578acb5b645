//! The values templates see: the user's over the parent's over the chart's.

mod coalesce;
mod defaults;
mod dependencies;
mod guard;
mod ready;
mod schema;
mod sources;
pub mod strvals;
pub(crate) mod tables;
mod tree;
mod user;

use catamaran_gotemplate::{Heap, Map as Table, Str, Value as GoValue};
use catamaran_sprig::semver::{Constraint, Edition, Version};
use serde_json::{Map, Value};

use crate::{Chart, Profile, RenderError};
pub use catamaran_yaml::{go_float, json_float};
use coalesce::Coalescer;
pub(crate) use defaults::Defaults;
pub(crate) use ready::{ReadyValues, Wanted};
pub(crate) use schema::{KeptSchemas, accepted_elsewhere, check_against};
pub use sources::Sources;
pub(crate) use tree::Node;
pub(crate) use user::read_json;
pub use user::{merge, read_file};

/// The user's values merged over the chart's defaults and its subcharts', as
/// `.Values` holds them and `helm get values --all` prints them.
///
/// # Errors
///
/// [`RenderError::Values`] when the values for a subchart are no table.
pub fn coalesce(
    chart: &Chart,
    values: &Map<String, Value>,
    profile: Profile,
) -> Result<Map<String, Value>, RenderError> {
    let mut heap = Heap::new();
    let (defaults, room) = (Defaults::of(chart), crate::Budget::default().memory);
    let prepared = prepare(&mut heap, chart, &defaults, values, profile, room, &mut Vec::new())?;
    match plain(&heap, prepared.values)? {
        Value::Object(map) => Ok(map),
        _ => Ok(Map::new()),
    }
}

/// Whether a version meets a constraint; false where either is none.
pub(crate) fn compatible(constraint: &str, version: &str, profile: Profile) -> bool {
    let edition = match profile {
        Profile::Helm318 => Edition::Helm3,
        Profile::Helm43 => Edition::Helm4,
    };
    match (Constraint::parse(constraint), Version::parse(version)) {
        (Ok(constraint), Ok(version)) => constraint.check_in(&version, edition),
        _ => false,
    }
}

/// What Helm 4 says where the values of a subchart are none.
pub(crate) const DEPENDENCIES_FAILED: &str = "chart dependencies processing failed";

/// Values on the heap, and the charts that take part.
pub(crate) struct Prepared<'c> {
    pub(crate) root: Node<'c>,
    pub(crate) values: Table,
    pub(crate) warnings: Vec<String>,
    /// What the templates of each chart see, in the order of the tree; none until it is built.
    pub(crate) data: Vec<ChartData>,
}

/// What the templates of a chart see as `.`, and the `.Template.BasePath` of all its files.
#[derive(Clone, Debug)]
pub(crate) struct ChartData {
    pub(crate) data: Table,
    pub(crate) base_path: Str,
}

/// Processes dependencies and merges values, as Helm's install does; they may take `room` bytes.
/// `warnings` has what was noticed if that fails.
pub(crate) fn prepare<'c>(
    heap: &mut Heap,
    chart: &'c Chart,
    defaults: &Defaults,
    values: &Map<String, Value>,
    profile: Profile,
    room: usize,
    warnings: &mut Vec<String>,
) -> Result<Prepared<'c>, RenderError> {
    let all_documents = profile == Profile::Helm43;
    let mut root = Node::new(heap, chart, defaults, all_documents).map_err(RenderError::Values)?;
    let user = tables::load(heap, values).map_err(RenderError::Values)?;
    let guard = guard::Guard::new(room);
    let mut coalescer = Coalescer { heap, profile, warnings, guard };
    coalescer.dependencies(&mut root, user).map_err(|coalesce::Mismatch(text)| {
        RenderError::Values(match profile {
            Profile::Helm318 => text,
            Profile::Helm43 => format!("{DEPENDENCIES_FAILED}: {text}"),
        })
    })?;
    let values = coalescer.values(&root, user, false);
    let values = values.map_err(|coalesce::Mismatch(text)| RenderError::Values(text))?;
    Ok(Prepared { root, values, warnings: std::mem::take(warnings), data: Vec::new() })
}

/// Checks the values of every chart that has a schema.
pub(crate) fn validate(
    heap: &Heap,
    schemas: &KeptSchemas,
    prepared: &Prepared<'_>,
    profile: Profile,
) -> Result<(), RenderError> {
    let mut faults = String::new();
    schema::validate(heap, schemas, &prepared.root, prepared.values, profile, &mut faults)?;
    if faults.is_empty() { Ok(()) } else { Err(RenderError::Schema(faults)) }
}

/// Merges prepared values with the charts' once more.
pub(crate) fn merge_again(
    heap: &mut Heap,
    prepared: &mut Prepared<'_>,
    profile: Profile,
    room: usize,
) -> Result<(), coalesce::Mismatch> {
    let guard = guard::Guard::new(room);
    let mut coalescer = Coalescer { heap, profile, warnings: &mut prepared.warnings, guard };
    prepared.values = coalescer.values(&prepared.root, prepared.values, false)?;
    Ok(())
}

/// Lays values over others without regard to charts, as Helm's linter does.
pub(crate) fn lay_over(
    heap: &mut Heap,
    over: &Map<String, Value>,
    under: &Map<String, Value>,
    profile: Profile,
    warnings: &mut Vec<String>,
    room: usize,
) -> Result<Table, String> {
    let over = tables::load(heap, over)?;
    let under = tables::load(heap, under)?;
    let guard = guard::Guard::new(room);
    let mut coalescer = Coalescer { heap, profile, warnings, guard };
    coalescer.tables(over, under, "", false);
    coalescer.check().map_err(|coalesce::Mismatch(text)| text)?;
    Ok(over)
}

pub(crate) fn plain(heap: &Heap, table: Table) -> Result<Value, RenderError> {
    let value = GoValue::Map(table);
    serde_json::to_value(heap.view(&value)).map_err(|error| RenderError::Values(error.to_string()))
}
