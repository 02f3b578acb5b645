//! `conformance charts`: charts on disk, by both commands.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use catamaran_fixtures::{Helm, in_parallel};

use crate::programs::{Programs, words};

/// One call of both commands.
#[derive(Clone, Debug)]
pub struct Call {
    /// For people.
    name: String,
    /// Where it is run.
    folder: PathBuf,
    /// Behind `template`.
    words: Vec<OsString>,
}

/// All charts under folders: each is rendered as it is, and with each of its `ci/*.yaml`.
pub fn charts(places: &[PathBuf]) -> Result<Vec<Call>> {
    let mut calls = Vec::new();
    for place in places {
        let place = place.canonicalize().with_context(|| place.display().to_string())?;
        let before = calls.len();
        find(&place, 0, &mut calls)?;
        if calls.len() == before {
            bail!("there is no chart in {}", place.display());
        }
    }
    Ok(calls)
}

/// How deep charts may lie below a folder that is named.
const DEPTH: usize = 4;

fn find(place: &Path, depth: usize, calls: &mut Vec<Call>) -> Result<()> {
    let is_archive = place.extension().is_some_and(|extension| extension == "tgz");
    if is_archive || place.join("Chart.yaml").exists() {
        add(place, calls);
    } else if place.is_dir() && depth < DEPTH {
        for entry in entries(place)? {
            find(&entry, depth + 1, calls)?;
        }
    }
    Ok(())
}

fn add(chart: &Path, calls: &mut Vec<Call>) {
    let folder = chart.parent().unwrap_or(chart).to_owned();
    let call = |name: String, values: Option<&Path>| {
        let mut all = words(["demo"]);
        all.push(chart.into());
        if let Some(values) = values {
            all.extend(words(["--values"]));
            all.push(values.into());
        }
        Call { name, folder: folder.clone(), words: all }
    };
    let name = chart.display().to_string();
    calls.push(call(name.clone(), None));
    for values in entries(&chart.join("ci")).unwrap_or_default() {
        if values.extension().is_some_and(|extension| extension == "yaml" || extension == "yml") {
            calls.push(call(format!("{name} with {}", name_of(&values)), Some(&values)));
        }
    }
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut entries =
        entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, std::io::Error>>()?;
    entries.sort();
    Ok(entries)
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Runs all calls in both profiles, shows what differs, and tells whether nothing does.
pub fn compare(programs: &Programs, calls: &[Call], workers: usize) -> Result<bool> {
    let total = calls.len() * Helm::ALL.len();
    let found = in_parallel(total, workers, |at| {
        let helm = Helm::ALL[at % Helm::ALL.len()];
        let Some(call) = calls.get(at / Helm::ALL.len()) else {
            return Ok(None);
        };
        let difference = programs.difference(helm, &call.folder, &call.words)?;
        Ok(difference
            .map(|(theirs, ours)| show(&call.name, helm.name(), &theirs.show(), &ours.show())))
    })?;
    for text in &found {
        println!("{text}");
    }
    println!("{total} renderings of {} cases: {} different", calls.len(), found.len());
    Ok(found.is_empty())
}

/// The first lines that differ.
pub fn show(case: &str, profile: &str, theirs: &str, ours: &str) -> String {
    const LINES: usize = 12;
    let same = theirs.lines().zip(ours.lines()).take_while(|(a, b)| a == b).count();
    let part = |text: &str| -> String {
        let lines = text.lines().skip(same.saturating_sub(1)).take(LINES);
        lines.map(|line| format!("{line}\n")).collect()
    };
    format!(
        "==== {case} as in {profile}, from line {same}\n--- helm\n{}--- ours\n{}",
        part(theirs),
        part(ours)
    )
}
