//! Tables of values on a rendering's heap, and paths into them.
//!
//! Merging works on the heap itself, because Helm's merging shares nested
//! tables between a chart and its subcharts, and templates can tell.

use catamaran_gotemplate::{Heap, Map, Seed, Str, Value};
use serde::de::DeserializeSeed;

/// Reads plain data into a table.
pub(crate) fn load(
    heap: &mut Heap,
    data: &serde_json::Map<String, serde_json::Value>,
) -> Result<Map, String> {
    let table = heap.new_map();
    for (key, value) in data {
        let value = load_value(heap, value)?;
        heap.set(table, key.as_str(), value);
    }
    Ok(table)
}

/// Reads plain data.
pub(crate) fn load_value(heap: &mut Heap, data: &serde_json::Value) -> Result<Value, String> {
    Seed::new(heap).deserialize(data).map_err(|error| error.to_string())
}

/// The entries as they are now, so that the table may be changed on the way.
pub(crate) fn entries(heap: &Heap, table: Map) -> Vec<(Str, Value)> {
    heap.map(table).entries.iter().map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// The table at a dotted path.
pub(crate) fn table_at(heap: &Heap, root: Map, path: &str) -> Option<Map> {
    path.split('.').try_fold(root, |table, key| heap.get(table, key)?.as_map())
}

/// The value at a dotted path, if it is there and no table.
pub(crate) fn value_at<'h>(heap: &'h Heap, root: Map, path: &str) -> Option<&'h Value> {
    let (table, key) = match path.rsplit_once('.') {
        Some((parents, key)) => (table_at(heap, root, parents)?, key),
        None => (root, path),
    };
    heap.get(table, key).filter(|value| value.as_map().is_none())
}
