//! Merging values: the user's over the parent's over the chart's own.
//!
//! `merge` keeps nulls; otherwise a null deletes the default it stands over.
//! The two profiles differ in what nulls of *defaults* do; each difference is
//! marked.

use catamaran_gotemplate::fmt::display;
use catamaran_gotemplate::{Heap, Map, Type, Value};

use super::guard::Guard;
use super::tables::entries;
use super::tree::Node;
use crate::Profile;
use crate::log_line::LogLine;

const GLOBAL: &str = "global";

/// Merges on one heap.
pub(crate) struct Coalescer<'h> {
    pub(crate) heap: &'h mut Heap,
    pub(crate) profile: Profile,
    /// What Helm would print to stderr.
    pub(crate) warnings: &'h mut Vec<String>,
    pub(crate) guard: Guard,
}

/// The values for a subchart are no table; Helm's text.
#[derive(Debug)]
pub(crate) struct Mismatch(pub(crate) String);

impl Coalescer<'_> {
    /// Helm's `CoalesceValues` (or `MergeValues`): a new table, the given one untouched.
    pub(crate) fn values(
        &mut self,
        chart: &Node<'_>,
        values: Map,
        merge: bool,
    ) -> Result<Map, Mismatch> {
        let copy = self.copy(values);
        self.chart(chart, copy, "", merge)?;
        self.check()?;
        Ok(copy)
    }

    /// Whether merging stopped half way because values contain themselves.
    pub(crate) fn check(&self) -> Result<(), Mismatch> {
        match self.guard.fault() {
            None => Ok(()),
            Some(fault) => Err(Mismatch(fault.to_owned())),
        }
    }

    /// A copy that shares nothing with the original.
    pub(crate) fn copy(&mut self, table: Map) -> Map {
        self.guard.hold(self.heap.allocated());
        if !self.guard.enter() {
            return self.heap.new_map();
        }
        let mut entries = self.heap.map(table).entries.clone();
        for value in entries.values_mut() {
            *value = self.copy_value(value);
        }
        self.guard.leave();
        self.heap.new_map_with(Type::MAP, entries)
    }

    fn copy_value(&mut self, value: &Value) -> Value {
        match value {
            Value::Map(table) => Value::Map(self.copy(*table)),
            Value::List(list) if self.guard.enter() => {
                let items = self.heap.items(*list).to_vec();
                let items = items.iter().map(|item| self.copy_value(item)).collect();
                self.guard.leave();
                Value::List(self.heap.new_list(items))
            }
            other => {
                self.guard.spend();
                other.clone()
            }
        }
    }

    fn chart(
        &mut self,
        chart: &Node<'_>,
        dest: Map,
        prefix: &str,
        merge: bool,
    ) -> Result<(), Mismatch> {
        self.defaults(chart, dest, prefix, merge);
        let inner = join(prefix, &chart.name);
        for child in &chart.children {
            let name = child.name.as_str();
            let table = match self.heap.get(dest, name) {
                None => {
                    let table = self.heap.new_map();
                    self.heap.set(dest, name, table);
                    table
                }
                Some(Value::Map(table)) => *table,
                Some(other) => {
                    let shown = show_as_bool(self.heap, &other.clone());
                    return Err(Mismatch(format!("type mismatch on {name}: {shown}")));
                }
            };
            self.globals(table, dest, &inner);
            self.chart(child, table, &inner, merge)?;
        }
        Ok(())
    }

    /// Gives a subchart the parent's globals. The first level is copied; what
    /// lies deeper is shared between the charts.
    fn globals(&mut self, dest: Map, src: Map, prefix: &str) {
        let Some(dest_globals) = self.globals_of(dest, "destination") else { return };
        let Some(src_globals) = self.globals_of(src, "source") else { return };
        for (key, value) in entries(self.heap, src_globals) {
            let there = self.heap.get(dest_globals, &key).cloned();
            match (&value, there) {
                (Value::Map(table), None) => {
                    self.guard.hold(self.heap.allocated());
                    if self.guard.fault().is_some() {
                        return;
                    }
                    let copy = self.heap.copy_map(*table);
                    self.heap.set(dest_globals, key, copy);
                }
                (Value::Map(table), Some(Value::Map(own))) => {
                    let copy = self.heap.copy_map(*table);
                    self.tables(copy, own, &join(prefix, &key.to_str_lossy()), true);
                    self.heap.set(dest_globals, key, copy);
                }
                (Value::Map(_), Some(_)) => {
                    let key = catamaran_gotemplate::fmt::quote(&key);
                    let text =
                        format!("Conflict: cannot merge map onto non-map for {key}. Skipping.");
                    self.warn(161, &text);
                }
                (_, Some(Value::Map(_))) => {
                    self.warn(175, &format!("key {key} is table. Skipping"));
                }
                _ => self.heap.set(dest_globals, key, value),
            }
        }
        self.heap.set(dest, GLOBAL, dest_globals);
    }

    fn globals_of(&mut self, table: Map, which: &str) -> Option<Map> {
        match self.heap.get(table, GLOBAL) {
            None => Some(self.heap.new_map()),
            Some(Value::Map(globals)) => Some(*globals),
            Some(_) => {
                let line = if which == "source" { 145 } else { 138 };
                let text =
                    format!("warning: skipping globals because {which} global is not a table.");
                self.warn(line, &text);
                None
            }
        }
    }

    /// Lays a chart's own defaults under `dest`.
    fn defaults(&mut self, chart: &Node<'_>, dest: Map, prefix: &str, merge: bool) {
        let prefix = join(prefix, &chart.name);
        let defaults = self.copy(chart.defaults);
        let new_rules = self.profile == Profile::Helm43;
        for (key, default) in entries(self.heap, defaults) {
            match (self.heap.get(dest, &key).cloned(), &default) {
                // Helm 4 leaves nulls of defaults out; Helm 3 keeps them as nulls.
                (None, Value::Nil) if new_rules && !merge => {}
                (None, _) => {
                    if let (true, Value::Map(src)) = (new_rules && !merge, &default) {
                        self.drop_nulls(*src);
                    }
                    self.heap.set(dest, key, default);
                }
                (Some(Value::Nil), _) if !merge => {
                    self.heap.remove(dest, &key);
                }
                (Some(Value::Map(own)), Value::Map(src)) => {
                    let name = key.to_str_lossy();
                    // Defaults meant for a subchart are merged: a null in them is not lost.
                    let merge = merge || chart.children.iter().any(|child| child.name == name);
                    if new_rules && !merge {
                        self.drop_nulls(*src);
                    }
                    self.tables(own, *src, &join(&prefix, &name), merge);
                }
                (Some(Value::Map(_)), default) if !default.is_nil() => {
                    self.warn(
                        237,
                        &format!("warning: skipped value for {prefix}.{key}: Not a table."),
                    );
                }
                _ => {}
            }
        }
    }

    /// Merges `src` under `dst`; `dst` wins.
    pub(crate) fn tables(&mut self, dst: Map, src: Map, prefix: &str, merge: bool) {
        if self.guard.enter() {
            self.tables_inside(dst, src, prefix, merge);
            self.guard.leave();
        }
    }

    fn tables_inside(&mut self, dst: Map, src: Map, prefix: &str, merge: bool) {
        let under = entries(self.heap, src);
        if self.profile == Profile::Helm43 {
            // Seen where `src` goes on living: imported values.
            for (key, _) in entries(self.heap, dst).into_iter().filter(|(_, v)| v.is_nil()) {
                self.heap.set(src, key, Value::Nil);
            }
        }
        for (key, value) in under {
            let path = || join(prefix, &key.to_str_lossy());
            match (self.heap.get(dst, &key).cloned(), &value) {
                (None, _) => self.heap.set(dst, key, value),
                (Some(Value::Nil), default) if !merge && self.deletes(default) => {
                    self.heap.remove(dst, &key);
                }
                (Some(Value::Nil), _) => {}
                (Some(Value::Map(dst)), Value::Map(src)) => self.tables(dst, *src, &path(), merge),
                (Some(Value::Map(_)), value) if !value.is_nil() => {
                    let (path, value) = (path(), display(self.heap, value));
                    let text = format!(
                        "warning: destination for {path} is a table. Ignoring non-table value ({value})"
                    );
                    self.warn(301, &text);
                }
                (Some(_), Value::Map(_)) => {
                    let (path, value) = (path(), display(self.heap, &value));
                    let text = format!(
                        "warning: cannot overwrite table with non table for {path} ({value})"
                    );
                    self.warn(298, &text);
                }
                _ => {}
            }
        }
    }

    /// Whether a null over this default takes the key away: in 4.3 only where
    /// the default was no null itself.
    fn deletes(&self, default: &Value) -> bool {
        self.profile == Profile::Helm318 || !default.is_nil()
    }

    fn drop_nulls(&mut self, table: Map) {
        if !self.guard.enter() {
            return;
        }
        for (key, value) in entries(self.heap, table) {
            match value {
                Value::Nil => {
                    self.heap.remove(table, &key);
                }
                Value::Map(inner) => self.drop_nulls(inner),
                _ => {}
            }
        }
        self.guard.leave();
    }

    /// `line` is where Helm 3 writes it.
    fn warn(&mut self, line: u32, text: &str) {
        let helm3 = format!("coalesce.go:{line}");
        self.notice(&LogLine {
            level: "INFO",
            message: text,
            attributes: &[],
            helm3: (&helm3, text),
        });
    }

    pub(crate) fn notice(&mut self, notice: &LogLine<'_>) {
        self.warnings.push(notice.line(self.profile));
    }
}

fn join(prefix: &str, name: &str) -> String {
    if prefix.is_empty() { name.to_owned() } else { format!("{prefix}.{name}") }
}

/// Go's `%t` of what is no boolean, as it stands in Helm's error.
fn show_as_bool(heap: &Heap, value: &Value) -> String {
    match value {
        Value::Nil => "%!t(<nil>)".to_owned(),
        value => show_inside(heap, value),
    }
}

/// The same of what lies in a list or a map, where nothing is printed as such.
fn show_inside(heap: &Heap, value: &Value) -> String {
    match value {
        Value::Nil => "<nil>".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Float64(n) => format!("%!t(float64={})", catamaran_gotemplate::fmt::float(*n)),
        Value::Int64(n) => format!("%!t(int64={n})"),
        Value::String(text) => format!("%!t(string={text})"),
        Value::List(list) => {
            let items: Vec<_> = heap.items(*list).iter().map(|v| show_inside(heap, v)).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Map(map) => {
            let entries: Vec<_> = entries(heap, *map)
                .iter()
                .map(|(key, value)| format!("%!t(string={key}):{}", show_inside(heap, value)))
                .collect();
            format!("map[{}]", entries.join(" "))
        }
        other => format!("%!t({})", heap.type_name(other)),
    }
}
