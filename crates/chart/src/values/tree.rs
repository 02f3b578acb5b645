//! A chart and its subcharts as they take part in one rendering.

use catamaran_gotemplate::{Heap, Map};

use super::{Defaults, tables};
use crate::{Chart, Dependency};

/// One chart of a rendering. Processing dependencies renames, copies and drops
/// these; the [`Chart`] behind them never changes.
#[derive(Clone, Debug)]
pub(crate) struct Node<'c> {
    pub(crate) chart: &'c Chart,
    /// The chart's name, or the alias it goes by.
    pub(crate) name: String,
    /// What its parent was called before an alias, if templates are still named after that.
    pub(crate) parent_before_alias: Option<String>,
    /// Its defaults, on the heap on which values are merged; importing values rewrites them.
    pub(crate) defaults: Map,
    /// What Chart.yaml asks for; once processed, what is enabled, by the names
    /// they go by.
    pub(crate) requirements: Option<Vec<Dependency>>,
    pub(crate) children: Vec<Node<'c>>,
}

impl<'c> Node<'c> {
    /// A chart with everything under it, unprocessed.
    pub(crate) fn new(
        heap: &mut Heap,
        chart: &'c Chart,
        kept: &Defaults,
        all_documents: bool,
    ) -> Result<Self, String> {
        let defaults = kept.load(heap, chart)?;
        if all_documents {
            for document in &chart.more_values {
                let document = document.as_ref().map_err(|message| {
                    format!("cannot load values.yaml: cannot unmarshal yaml document: {message}")
                })?;
                let over = tables::load(heap, document)?;
                lay_over(heap, defaults, over);
            }
        }
        let children = chart.dependencies.iter().map(|c| Node::new(heap, c, kept, all_documents));
        Ok(Self {
            chart,
            name: chart.name().to_owned(),
            parent_before_alias: None,
            defaults,
            requirements: chart.metadata.dependencies.clone(),
            children: children.collect::<Result<_, _>>()?,
        })
    }

    /// `parent/charts/sub`
    pub(crate) fn path(&self, parent: Option<&str>) -> String {
        let Some(parent) = parent else { return self.name.clone() };
        match (&self.parent_before_alias, parent.rsplit_once('/')) {
            (Some(name), Some((above, _))) => format!("{above}/{name}/charts/{}", self.name),
            _ => format!("{parent}/charts/{}", self.name),
        }
    }
}

/// Lays a later document of values.yaml over an earlier one: tables merge,
/// everything else is replaced.
fn lay_over(heap: &mut Heap, under: Map, over: Map) {
    for (key, value) in tables::entries(heap, over) {
        let there = heap.get(under, &key).and_then(catamaran_gotemplate::Value::as_map);
        match (there, value.as_map()) {
            (Some(under), Some(over)) => lay_over(heap, under, over),
            _ => heap.set(under, key, value),
        }
    }
}
