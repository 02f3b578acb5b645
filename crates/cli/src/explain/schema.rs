//! Values that a chart's schema refuses: which, and where they come from.

use std::fs;

use catamaran_chart::Chart;

use super::Style;
use crate::charts::flags::ValueArgs;
use crate::charts::slices;

/// So many faults are explained; more are one mistake, most often.
const MAX_FAULTS: usize = 10;

/// Tells of each fault which value is meant, and the file and line that gives it.
pub(super) fn explain(style: Style, faults: &str, chart: &Chart, values: &ValueArgs) -> String {
    let mut name = String::new();
    let mut text = String::new();
    for line in faults.lines() {
        if let Some(chart) = line.strip_suffix(':').filter(|_| !line.starts_with([' ', '-'])) {
            chart.clone_into(&mut name);
            continue;
        }
        let Some((pointer, message)) = fault(line) else { continue };
        let mut path: Vec<String> = pointer.split('/').skip(1).map(unescape).collect();
        if name != chart.name() {
            // A subchart's values are under its name in the user's.
            path.insert(0, name.clone());
        }
        let shown = if path.is_empty() { "all values".to_owned() } else { path.join(".") };
        let source = source_of(&path, chart, values);
        let source = source.map(|source| format!(" ({source})")).unwrap_or_default();
        text.push_str(&style.help(&format!("values path {shown}{source}: {message}")));
        if text.lines().count() >= MAX_FAULTS {
            break;
        }
    }
    text
}

/// `- at '/image/tag': got number, want string`
fn fault(line: &str) -> Option<(&str, &str)> {
    line.trim_start().strip_prefix("- at '")?.split_once("': ")
}

fn unescape(part: &str) -> String {
    part.replace("~1", "/").replace("~0", "~")
}

/// Where a value comes from: a flag, the last file that has it, the chart.
fn source_of(path: &[String], chart: &Chart, values: &ValueArgs) -> Option<String> {
    let dotted = path.join(".");
    if path.is_empty() {
        return None;
    }
    let flags = [
        ("--set-literal", &values.literals),
        ("--set-file", &values.from_files),
        ("--set-string", &values.texts),
        ("--set", &values.typed),
        ("--set-json", &values.json),
    ];
    for (flag, lines) in flags {
        let sets =
            |line: &&String| line.split(',').any(|set| set.starts_with(&format!("{dotted}=")));
        if let Some(line) = lines.iter().rev().find(sets) {
            return Some(format!("{flag} {line}"));
        }
    }
    for file in slices::all(&values.files).iter().rev() {
        let line = fs::read_to_string(file).ok().and_then(|text| line_of(&text, path));
        if let Some(line) = line {
            return Some(format!("{file}:{line}"));
        }
    }
    let defaults = String::from_utf8_lossy(chart.values_text.as_deref()?);
    let line = line_of(&defaults, path)?;
    Some(format!("{}/values.yaml:{line}", chart.name()))
}

/// The line of a key in YAML written in blocks; from 1.
fn line_of(text: &str, path: &[String]) -> Option<usize> {
    let mut open: Vec<(usize, String)> = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let trimmed = line.trim_start();
        if trimmed.is_empty() || trimmed.starts_with('#') {
            continue;
        }
        let indent = line.len() - trimmed.len();
        let Some((key, _)) = trimmed.split_once(':') else { continue };
        open.retain(|(outer, _)| *outer < indent);
        open.push((indent, key.trim_matches(['"', '\'']).to_owned()));
        if open.iter().map(|(_, key)| key).eq(path) {
            return Some(at + 1);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_in_blocks() {
        let text = "# a\nimage:\n  # tag: no\n  \"tag\": 1\nother:\n  tag: 2\n";
        let line =
            |path: &str| line_of(text, &path.split('.').map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(line("image"), Some(2));
        assert_eq!(line("image.tag"), Some(4));
        assert_eq!(line("other.tag"), Some(6));
        assert_eq!(line("tag"), None);
    }
}
