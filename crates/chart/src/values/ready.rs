//! Values that are prepared once for all renderings with the same: whoever renders a chart again
//! mostly has the same values as before.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use catamaran_gotemplate::{Heap, Map as Table};
use serde_json::{Map, Value};

use super::{ChartData, Defaults, KeptSchemas, Node, Prepared, prepare, validate};
use crate::{Chart, Dependency, Profile, RenderError};

/// So many sets of values are kept, and so many bytes of tables and lists.
const MAX_KEPT: usize = 8;
const MAX_BYTES: usize = 4 << 20;
/// So many sets of values are known to have been asked for before; more, and all are forgotten.
const MAX_ASKED: usize = 4096;

/// What is wanted of the values of a rendering.
pub(crate) struct Wanted<'i> {
    /// The user's.
    pub(crate) given: &'i Map<String, Value>,
    pub(crate) profile: Profile,
    /// Bytes that all may take.
    pub(crate) room: usize,
}

/// Prepared and validated values of a chart. They are kept from the second time on that they are
/// asked for: a process that renders once would copy them for nobody.
#[derive(Debug, Default)]
pub(crate) struct ReadyValues(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    /// The last used first.
    ready: Vec<Arc<Ready>>,
    /// Hashes of what was asked for.
    asked: HashSet<u64>,
    hashing: RandomState,
}

#[derive(Debug)]
struct Ready {
    given: Map<String, Value>,
    profile: Profile,
    room: usize,
    heap: Heap,
    values: Table,
    root: Shape,
    warnings: Vec<String>,
    data: Vec<ChartData>,
}

/// A [`Node`] without its chart.
#[derive(Debug)]
struct Shape {
    /// Which of the charts in that of the node around.
    index: usize,
    name: String,
    parent_before_alias: Option<String>,
    requirements: Option<Vec<Dependency>>,
    children: Vec<Shape>,
}

impl ReadyValues {
    /// As [`prepare`] and [`validate`]: the values on a heap of their own, with nothing else on it but
    /// what `build` makes of them. The defaults of charts are not there any more.
    pub(crate) fn prepare<'c>(
        &self,
        chart: &'c Chart,
        defaults: &Defaults,
        schemas: &KeptSchemas,
        wanted: &Wanted<'_>,
        build: impl Fn(&mut Heap, &Prepared<'c>) -> Vec<ChartData>,
    ) -> Result<(Heap, Prepared<'c>), RenderError> {
        if let Some(ready) = self.find(wanted) {
            let prepared = Prepared {
                root: ready.root.node(chart, ready.values),
                values: ready.values,
                warnings: ready.warnings.clone(),
                data: ready.data.clone(),
            };
            return Ok((ready.heap.clone(), prepared));
        }
        let (profile, room) = (wanted.profile, wanted.room);
        let mut heap = Heap::new();
        let (given, warnings) = (wanted.given, &mut Vec::new());
        let mut prepared = prepare(&mut heap, chart, defaults, given, profile, room, warnings)?;
        let (mut heap, values) = heap.only(prepared.values);
        prepared.values = values;
        validate(&heap, schemas, &prepared, profile)?;
        prepared.data = build(&mut heap, &prepared);
        if heap.allocated() <= MAX_BYTES && self.asked_before(wanted) {
            self.keep(Ready {
                given: wanted.given.clone(),
                profile,
                room,
                heap: heap.clone().shared(),
                values,
                root: Shape::of(&prepared.root, 0),
                warnings: prepared.warnings.clone(),
                data: prepared.data.clone(),
            });
        }
        Ok((heap, prepared))
    }

    fn find(&self, wanted: &Wanted<'_>) -> Option<Arc<Ready>> {
        let all = &mut self.lock().ready;
        let at = all.iter().position(|ready| {
            (ready.profile, ready.room) == (wanted.profile, wanted.room)
                && same_tables(&ready.given, wanted.given)
        })?;
        all.get_mut(..=at)?.rotate_right(1);
        all.first().cloned()
    }

    fn keep(&self, ready: Ready) {
        let all = &mut self.lock().ready;
        all.insert(0, Arc::new(ready));
        let mut bytes = 0;
        let fits = |ready: &&Arc<Ready>| {
            bytes += ready.heap.allocated();
            bytes <= MAX_BYTES
        };
        let count = all.iter().take(MAX_KEPT).take_while(fits).count();
        all.truncate(count);
    }

    fn asked_before(&self, wanted: &Wanted<'_>) -> bool {
        let kept = &mut *self.lock();
        let hash = kept.hashing.hash_one((wanted.given, wanted.profile, wanted.room));
        if kept.asked.len() >= MAX_ASKED {
            kept.asked.clear();
        }
        !kept.asked.insert(hash)
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        // Nothing can be half done under this lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shape {
    fn of(node: &Node<'_>, index: usize) -> Self {
        let charts = &node.chart.dependencies;
        let index_of = |child: &Node<'_>| charts.iter().position(|c| std::ptr::eq(c, child.chart));
        let children = node.children.iter();
        Self {
            index,
            name: node.name.clone(),
            parent_before_alias: node.parent_before_alias.clone(),
            requirements: node.requirements.clone(),
            children: children
                .map(|child| Self::of(child, index_of(child).unwrap_or_default()))
                .collect(),
        }
    }

    fn node<'c>(&self, chart: &'c Chart, defaults: Table) -> Node<'c> {
        let child = |child: &Self| {
            let chart = chart.dependencies.get(child.index)?;
            Some(child.node(chart, defaults))
        };
        Node {
            chart,
            name: self.name.clone(),
            parent_before_alias: self.parent_before_alias.clone(),
            defaults,
            requirements: self.requirements.clone(),
            children: self.children.iter().filter_map(child).collect(),
        }
    }
}

fn same_tables(a: &Map<String, Value>, b: &Map<String, Value>) -> bool {
    let same_entry =
        |((a, x), (b, y)): ((&String, &Value), (&String, &Value))| a == b && same(x, y);
    a.len() == b.len() && a.iter().zip(b).all(same_entry)
}

/// Whether nobody could tell them apart: 0 and -0 print differently.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => same_tables(a, b),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Number(x), Value::Number(y)) => {
            let bits = |number: &serde_json::Number| number.as_f64().map(f64::to_bits);
            x == y && bits(x) == bits(y)
        }
        _ => a == b,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_the_same_only_if_they_print_the_same() {
        let value = json!({"a": [1, 0.0, {"b": null}], "c": "x"});
        assert!(same(&value, &value.clone()));
        for other in [
            json!({"a": [1, -0.0, {"b": null}], "c": "x"}),
            json!({"a": [1.0, 0.0, {"b": null}], "c": "x"}),
            json!({"a": [1, 0.0, {}], "c": "x"}),
            json!({"a": [1, 0.0, {"b": null}], "d": "x"}),
            json!({"a": [1, 0.0], "c": "x"}),
            json!(null),
        ] {
            assert!(!same(&value, &other), "{other}");
        }
    }
}
