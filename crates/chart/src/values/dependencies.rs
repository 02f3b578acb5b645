//! Which subcharts take part, and the values they give to their parents.

use catamaran_gotemplate::{Heap, Map, Value};
use serde_json::Value as Json;

use super::coalesce::{Coalescer, Mismatch};
use super::tables::{table_at, value_at};
use super::tree::Node;
use crate::log_line::LogLine;
use crate::{Dependency, Profile};

impl Coalescer<'_> {
    /// Helm's `ProcessDependencies`: aliases, conditions and tags, then values
    /// imported from the bottom up.
    pub(crate) fn dependencies(
        &mut self,
        root: &mut Node<'_>,
        values: Map,
    ) -> Result<(), Mismatch> {
        self.enable(root, values, "")?;
        self.import(root)
    }

    /// A chart without a list of requirements takes everything under `charts/` as it is, requirements
    /// of those included: Helm looks no further there. With a list it does, be it empty.
    fn enable(&mut self, chart: &mut Node<'_>, values: Map, path: &str) -> Result<(), Mismatch> {
        let Some(mut requirements) = chart.requirements.take() else { return Ok(()) };
        take_aliases(chart, &mut requirements, self.profile);
        let values = self.values(chart, values, false)?;
        let mut disabled = Vec::new();
        for requirement in &mut requirements {
            let mut enabled = by_tags(self.heap, values, requirement);
            if let Some(decided) = self.by_condition(values, path, requirement) {
                enabled = decided;
            }
            requirement.enabled = enabled;
            if !enabled {
                disabled.push(requirement.name.clone());
            }
        }
        chart.children.retain(|child| !disabled.contains(&child.name));
        requirements.retain(|requirement| !disabled.contains(&requirement.name));
        for child in &mut chart.children {
            let path = format!("{path}{}.", child.name);
            self.enable(child, values, &path)?;
        }
        chart.requirements = Some(requirements).filter(|left| !left.is_empty());
        Ok(())
    }

    /// The first path of the condition that holds a boolean decides.
    fn by_condition(&mut self, values: Map, path: &str, requirement: &Dependency) -> Option<bool> {
        for condition in requirement.condition.trim().split(',').filter(|c| !c.is_empty()) {
            match value_at(self.heap, values, &format!("{path}{condition}")) {
                Some(Value::Bool(enabled)) => return Some(*enabled),
                Some(_) => {
                    let chart = requirement.name.as_str();
                    let old = format!(
                        "Warning: Condition path '{condition}' for chart {chart} returned non-bool value"
                    );
                    self.notice(&LogLine {
                        level: "WARN",
                        message: "returned non-bool value",
                        attributes: &[("path", condition), ("chart", chart)],
                        helm3: ("dependencies.go:64", &old),
                    });
                }
                None => {}
            }
        }
        None
    }

    fn import(&mut self, chart: &mut Node<'_>) -> Result<(), Mismatch> {
        for child in &mut chart.children {
            self.import(child)?;
        }
        if chart.requirements.is_none() {
            return Ok(());
        }
        let nothing = self.heap.new_map();
        let values = self.values(chart, nothing, true)?;
        let imported = self.heap.new_map();
        for requirement in chart.requirements.iter().flatten() {
            for import in &requirement.import_values {
                let Some((child, parent)) = import_paths(import) else { continue };
                match table_at(self.heap, values, &format!("{}.{child}", requirement.name)) {
                    Some(table) => {
                        // An empty table is not shared with the child; all others are.
                        let empty = self.heap.map(table).entries.is_empty();
                        let table = if empty { self.heap.new_map() } else { table };
                        let nested = nest(self.heap, &parent, table);
                        self.tables(imported, nested, "", true);
                    }
                    None => self.missing_import(values, &requirement.name, &child, import),
                }
            }
        }
        let defaults = self.copy(values);
        self.tables(defaults, imported, "", true);
        chart.defaults = defaults;
        self.check()
    }
}

impl Coalescer<'_> {
    fn missing_import(&mut self, values: Map, chart: &str, child: &str, import: &Json) {
        let path = format!("{chart}.{child}");
        // The first part that is no table.
        let ends = path.match_indices('.').map(|(at, _)| at).chain([path.len()]);
        let table = |end: &usize| table_at(self.heap, values, path.get(..*end)?);
        let end = ends.into_iter().find(|end| table(end).is_none()).unwrap_or(path.len());
        let part = path.get(..end).unwrap_or_default().rsplit('.').next().unwrap_or_default();
        let error = format!("{part:?} is not a table");
        if import.is_string() {
            self.notice(&LogLine {
                level: "WARN",
                message: "ImportValues missing table",
                attributes: &[("error", &error)],
                helm3: (
                    "dependencies.go:287",
                    &format!("Warning: ImportValues missing table: {error}"),
                ),
            });
        } else {
            let old = format!("Warning: ImportValues missing table from chart {chart}: {error}");
            self.notice(&LogLine {
                level: "WARN",
                message: "ImportValues missing table from chart",
                attributes: &[("chart", chart), ("error", &error)],
                helm3: ("dependencies.go:270", &old),
            });
        }
    }
}

/// Puts a copy of each required chart in the place of the originals, under the
/// alias. What nobody requires (a version out of range counts as that) stays.
fn take_aliases(chart: &mut Node<'_>, requirements: &mut [Dependency], profile: Profile) {
    let fits = |child: &Node<'_>, requirement: &Dependency| {
        child.name == requirement.name
            && super::compatible(&requirement.version, &child.chart.metadata.version, profile)
    };
    let mut children: Vec<_> = chart
        .children
        .iter()
        .filter(|child| !requirements.iter().any(|requirement| fits(child, requirement)))
        .cloned()
        .collect();
    for requirement in requirements {
        if let Some(found) = chart.children.iter().find(|child| fits(child, requirement)) {
            let mut copy = found.clone();
            if !requirement.alias.is_empty() {
                // Helm 3 leaves what the copy holds with the original, unless it looks at it again.
                if profile == Profile::Helm318 && copy.requirements.is_none() {
                    for child in &mut copy.children {
                        child.parent_before_alias = Some(copy.name.clone());
                    }
                }
                copy.name.clone_from(&requirement.alias);
            }
            children.push(copy);
        }
        if !requirement.alias.is_empty() {
            requirement.name.clone_from(&requirement.alias);
        }
    }
    chart.children = children;
}

/// Any true tag enables; else any false one disables; else it is enabled.
fn by_tags(heap: &Heap, values: Map, requirement: &Dependency) -> bool {
    let Some(tags) = table_at(heap, values, "tags") else { return true };
    let mut set = requirement.tags.iter().filter_map(|tag| match heap.get(tags, tag) {
        Some(Value::Bool(on)) => Some(*on),
        _ => None,
    });
    let Some(first) = set.next() else { return true };
    first || set.any(|on| on)
}

/// The child's path and the parent's (`.` is its root).
fn import_paths(import: &Json) -> Option<(String, String)> {
    match import {
        Json::String(name) => Some((format!("exports.{name}"), ".".to_owned())),
        Json::Object(map) => Some((text(map.get("child")), text(map.get("parent")))),
        _ => None,
    }
}

/// Go's `%v` of what should be a text.
fn text(value: Option<&Json>) -> String {
    match value {
        None | Some(Json::Null) => "<nil>".to_owned(),
        Some(Json::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

fn nest(heap: &mut Heap, path: &str, table: Map) -> Map {
    if path == "." {
        return table;
    }
    path.split('.').rev().fold(table, |inner, key| {
        let outer = heap.new_map();
        heap.set(outer, key, inner);
        outer
    })
}
