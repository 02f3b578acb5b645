//! What the templates of each chart see as `.`.

use std::sync::LazyLock;

use catamaran_gotemplate::{Heap, Map, Str, Value};

use super::cache::Cache;
use super::{objects, values_type};
use crate::Profile;
use crate::values::{ChartData, Node, Prepared, tables};

/// Builds the data of all charts, each before those in it, as far as it is the same in all renderings
/// with the same values. [`complete`] adds the rest.
pub(super) fn build(
    heap: &mut Heap,
    prepared: &Prepared<'_>,
    cache: &Cache,
    profile: Profile,
) -> Vec<ChartData> {
    let mut builder = Builder { heap, cache, profile, built: Vec::new() };
    let root = builder.typed_values(prepared.values);
    builder.add(&prepared.root, None, root);
    builder.built
}

/// Puts into the data of all charts what differs between renderings.
pub(super) fn complete(heap: &mut Heap, all: &[ChartData], release: &Value, capabilities: &Value) {
    for chart in all {
        heap.replace(chart.data, "Release", release.clone());
        heap.replace(chart.data, "Capabilities", capabilities.clone());
    }
}

/// The same in all renderings.
static TEMPLATE: LazyLock<Str> = LazyLock::new(|| "Template".into());
static BASE_PATH: LazyLock<Str> = LazyLock::new(|| "BasePath".into());
static NAME: LazyLock<Str> = LazyLock::new(|| "Name".into());

/// Puts a file's own `.Template` into its chart's data: a new one, as templates may keep another's. A
/// chart of which no file has been run has none.
pub(super) fn enter_file(heap: &mut Heap, chart: &ChartData, name: &str, profile: Profile) {
    // In the order of the keys.
    let base_path = Value::String(chart.base_path.clone());
    let entries = [(BASE_PATH.clone(), base_path), (NAME.clone(), name.into())];
    let ty = values_type::type_of(profile);
    let template = heap.new_map_with(ty, entries.into_iter().collect());
    heap.set(chart.data, TEMPLATE.clone(), template);
}

struct Builder<'a> {
    heap: &'a mut Heap,
    cache: &'a Cache,
    profile: Profile,
    built: Vec<ChartData>,
}

impl Builder<'_> {
    /// The root's values under Helm's own type; nested tables are not copied.
    fn typed_values(&mut self, values: Map) -> Map {
        let typed = self.heap.new_map_of(values_type::type_of(self.profile));
        for (key, value) in tables::entries(self.heap, values) {
            self.heap.set(typed, key, value);
        }
        typed
    }

    /// Builds a chart's data and those of the charts in it; returns it.
    fn add(&mut self, node: &Node<'_>, parent: Option<&str>, values: Map) -> Map {
        let path = node.path(parent);
        let data = self.heap.new_map_of(values_type::type_of(self.profile));
        self.built.push(ChartData { data, base_path: format!("{path}/templates").into() });
        let chart = objects::chart(self.heap, node, parent.is_none(), self.profile);
        let files = self.cache.files_of(node.chart).value(self.heap, self.profile);
        let subcharts = self.heap.new_map();
        for (key, value) in [
            ("Capabilities", Value::Nil),
            ("Chart", chart),
            ("Files", files),
            ("Release", Value::Nil),
            ("Subcharts", Value::Map(subcharts)),
            ("Values", Value::Map(values)),
        ] {
            self.heap.set(data, key, value);
        }
        for child in &node.children {
            // A subchart's values are the very table under its name in the parent's.
            let own = self.heap.get(values, child.name.as_str()).and_then(Value::as_map);
            let own = own.unwrap_or_else(|| self.heap.new_map());
            let inner = self.add(child, Some(&path), own);
            self.heap.set(subcharts, child.name.as_str(), inner);
        }
        data
    }
}
