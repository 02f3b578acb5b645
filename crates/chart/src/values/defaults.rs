//! The defaults of a chart and of those in it, ready to be put on any number of heaps.

use std::collections::{BTreeMap, HashMap};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use catamaran_gotemplate::{Heap, Map, Str, Type, Value};

use super::tables;
use crate::Chart;

/// The first document of each chart's values.yaml, by where the chart lies: it must not move.
#[derive(Debug, Default)]
pub(crate) struct Defaults(HashMap<usize, OfChart>);

/// Those of one chart. They are kept from the second time on: a process that renders once would put
/// them together for nobody.
#[derive(Debug, Default)]
struct OfChart {
    asked: AtomicBool,
    /// `None`: they cannot be read.
    kept: OnceLock<Option<Table>>,
}

/// Keys and texts are shared by all heaps.
type Table = BTreeMap<Str, Kept>;

#[derive(Debug)]
enum Kept {
    Scalar(Value),
    Table(Table),
    List(Vec<Kept>),
}

impl Defaults {
    pub(crate) fn of(chart: &Chart) -> Self {
        let mut kept = Self::default();
        kept.add(chart);
        kept
    }

    fn add(&mut self, chart: &Chart) {
        self.0.insert(address(chart), OfChart::default());
        chart.dependencies.iter().for_each(|child| self.add(child));
    }

    /// Puts a chart's defaults on a heap.
    pub(super) fn load(&self, heap: &mut Heap, chart: &Chart) -> Result<Map, String> {
        match self.0.get(&address(chart)).and_then(|own| own.again(chart)) {
            Some(table) => Ok(put_table(heap, table)),
            None => tables::load(heap, &chart.values),
        }
    }
}

impl OfChart {
    /// The table, unless it is asked for the first time.
    fn again(&self, chart: &Chart) -> Option<&Table> {
        if !self.asked.swap(true, Ordering::Relaxed) {
            return None;
        }
        let keep = || {
            let mut heap = Heap::new();
            let table = tables::load(&mut heap, &chart.values).ok()?;
            Some(keep_table(&heap, table))
        };
        self.kept.get_or_init(keep).as_ref()
    }
}

pub(super) fn address(chart: &Chart) -> usize {
    std::ptr::from_ref(chart).addr()
}

fn keep_table(heap: &Heap, table: Map) -> Table {
    let entries = heap.map(table).entries.iter();
    entries.map(|(key, value)| (key.clone(), keep(heap, value))).collect()
}

fn keep(heap: &Heap, value: &Value) -> Kept {
    match value {
        Value::Map(table) => Kept::Table(keep_table(heap, *table)),
        Value::List(list) => {
            Kept::List(heap.items(*list).iter().map(|item| keep(heap, item)).collect())
        }
        scalar => Kept::Scalar(scalar.clone()),
    }
}

fn put_table(heap: &mut Heap, table: &Table) -> Map {
    let entries = table.iter().map(|(key, value)| (key.clone(), put(heap, value))).collect();
    heap.new_map_with(Type::MAP, entries)
}

fn put(heap: &mut Heap, value: &Kept) -> Value {
    match value {
        Kept::Scalar(scalar) => scalar.clone(),
        Kept::Table(table) => Value::Map(put_table(heap, table)),
        Kept::List(items) => {
            let items = items.iter().map(|item| put(heap, item)).collect();
            Value::List(heap.new_list(items))
        }
    }
}
