//! A folder of other people's charts.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::{Case, process};

/// All cases of a folder in sum.
#[derive(Default)]
pub struct Sum {
    pub cases: usize,
    /// Of these, how many gave the same output and exit status on both sides.
    pub equal: usize,
    pub helm: Duration,
    pub ours: Duration,
    /// The greatest peak of any case.
    pub helm_bytes: u64,
    pub our_bytes: u64,
}

/// The cases of a folder: those of chartdiff's charts.json, else every chart with its defaults.
pub fn cases(folder: &Path) -> Result<Vec<Case>> {
    let folder = &std::path::absolute(folder)?;
    let list = folder.join("charts.json");
    if !list.exists() {
        let mut found = Vec::new();
        walk(folder, folder, &mut found)?;
        return Ok(found);
    }
    let list: Vec<Value> = serde_json::from_slice(&fs::read(list)?)?;
    let mut cases = Vec::new();
    for entry in list.iter().filter(|entry| entry["type"] != "library") {
        let name = entry["dir"].as_str().context("charts.json: no dir")?;
        for set in entry["values"].as_array().context("charts.json: no values")? {
            let files = set.as_array().into_iter().flatten().filter_map(Value::as_str);
            let values = files.map(PathBuf::from).collect();
            cases.push(Case { name: name.to_owned(), chart: folder.join(name), values });
        }
    }
    Ok(cases)
}

fn walk(root: &Path, folder: &Path, found: &mut Vec<Case>) -> Result<()> {
    if folder.join("Chart.yaml").is_file() {
        let name = folder.strip_prefix(root).unwrap_or(folder).display().to_string();
        found.push(Case { name, chart: folder.to_owned(), values: Vec::new() });
        return Ok(());
    }
    let mut inside: Vec<_> = fs::read_dir(folder)?.collect::<Result<_, _>>()?;
    inside.sort_by_key(fs::DirEntry::path);
    for entry in inside {
        if entry.file_type()?.is_dir() {
            walk(root, &entry.path(), found)?;
        }
    }
    Ok(())
}

/// Runs every case once with each, those that end in an error too.
pub fn sum(helm: &Path, ours: &Path, cases: &[Case]) -> Result<Sum> {
    let mut sum = Sum::default();
    for case in cases {
        let (theirs, own) = (process::run(helm, case)?, process::run(ours, case)?);
        sum.cases += 1;
        sum.equal += usize::from(theirs.answer == own.answer);
        sum.helm += theirs.wall;
        sum.ours += own.wall;
        sum.helm_bytes = sum.helm_bytes.max(theirs.bytes);
        sum.our_bytes = sum.our_bytes.max(own.bytes);
    }
    Ok(sum)
}
