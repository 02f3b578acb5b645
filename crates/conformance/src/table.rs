//! Cases that differed once: templates with what Helm makes of them, in `tests/found.jsonl`. The
//! test needs no Helm; `conformance found` asks it again, and `--write` takes its answers.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use catamaran_chart::Profile;
use serde::{Deserialize, Serialize};

use crate::case::{Case, File, SetLine};
use crate::ours;
use crate::outcome::Outcome;
use crate::run::{oracle, oracles};

/// One line of the table.
#[derive(Debug, Serialize, Deserialize)]
struct Row {
    /// NOTES.txt.
    template: String,
    /// values.yaml.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    values: String,
    /// Other files of the chart, by name; Chart.yaml may be among them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    files: Vec<(String, String)>,
    /// Lines of `--set`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    set: Vec<String>,
    /// As in Helm 3.18, instead of 4.3.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    old: bool,
    /// Helm's answer.
    #[serde(default)]
    answer: String,
}

impl Row {
    fn case(&self) -> Case {
        let mut case = Case::new(if self.old { Profile::Helm318 } else { Profile::Helm43 });
        for (name, text) in &self.files {
            case.file(name, text);
        }
        if !case.files.iter().any(|file| file.name == "Chart.yaml") {
            case.file("Chart.yaml", "apiVersion: v2\nname: c\nversion: 0.1.0\n");
        }
        case.file("templates/NOTES.txt", &self.template);
        if !self.values.is_empty() {
            case.files.push(File::new("values.yaml", &self.values));
        }
        case.set.extend(self.set.iter().cloned().map(SetLine::Typed));
        case.sort();
        case
    }
}

/// Notes, or the error.
fn text(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Success { notes, .. } => String::from_utf8_lossy(notes).into_owned(),
        other => other.show(),
    }
}

fn rows(file: &Path) -> Result<Vec<Row>> {
    let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
    text.lines().map(|line| serde_json::from_str(line).with_context(|| line.to_owned())).collect()
}

/// Asks Helm for every row; tells whether the table and we agree with it.
pub fn check(tools: &Path, file: &Path, write: bool) -> Result<bool> {
    let mut oracles = oracles(tools);
    let mut rows = rows(file)?;
    let mut equal = true;
    for row in &mut rows {
        let case = row.case();
        let theirs = text(&oracle(&mut oracles, case.profile).render(&case)?);
        let ours = text(&ours::render(&case));
        if theirs != ours || (theirs != row.answer && !write) {
            equal = false;
            println!(
                "==== {}\n--- helm\n{theirs}\n--- ours\n{ours}\n--- table\n{}",
                row.template, row.answer
            );
        }
        row.answer = theirs;
    }
    if write {
        let lines: Result<Vec<String>, _> = rows.iter().map(serde_json::to_string).collect();
        fs::write(file, lines?.join("\n") + "\n")?;
    }
    println!(
        "{} cases that differed once: {}",
        rows.len(),
        if equal { "equal" } else { "DIFFERENT" }
    );
    Ok(equal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differed_once_is_as_in_helm() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/found.jsonl");
        let rows = rows(&file).unwrap();
        assert!(rows.len() >= 40, "the table has shrunk to {}", rows.len());
        for row in rows {
            assert_eq!(text(&ours::render(&row.case())), row.answer, "{}", row.template);
        }
    }
}
