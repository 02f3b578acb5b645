//! `conformance fixtures` and `conformance charts`: charts on disk, by both commands.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Context as _, Result, anyhow, bail};

use crate::programs::{PROFILES, Programs, Run, words};

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

/// The cases of `crates/chart/tests/fixtures`: each folder one, in the layout that
/// `regenerate-goldens.sh` describes.
pub fn fixtures(folder: &Path, only: &str) -> Result<Vec<Call>> {
    let mut calls = Vec::new();
    let folder = folder.canonicalize().with_context(|| folder.display().to_string())?;
    for case in entries(&folder)? {
        let name = name_of(&case);
        if !case.is_dir() || !name.contains(only) {
            continue;
        }
        let read = |file: &str| fs::read_to_string(case.join(file));
        let chart = match read("chart.path") {
            Ok(path) => case.join(path.trim()).canonicalize()?,
            Err(_) => case.join("chart"),
        };
        let args = read("args").unwrap_or_else(|_| "demo".into());
        let mut all = words(args.split_whitespace());
        all.push(chart.into());
        if case.join("values.yaml").exists() {
            all.extend(words(["--values", "values.yaml"]));
        }
        calls.push(Call { name, folder: case, words: all });
    }
    if calls.is_empty() {
        bail!("{} holds no case like {only:?}", folder.display());
    }
    Ok(calls)
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
    let next = AtomicUsize::new(0);
    let found: Mutex<Vec<(usize, String)>> = Mutex::new(Vec::new());
    let total = calls.len() * PROFILES.len();
    let work = || -> Result<()> {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let (Some(call), (profile, name)) =
                (calls.get(at / PROFILES.len()), PROFILES[at % PROFILES.len()])
            else {
                return Ok(());
            };
            if let Some((theirs, ours)) = programs.difference(profile, &call.folder, &call.words)? {
                let text = show(call, name, &theirs, &ours);
                found.lock().map_err(|_| anyhow!("a worker panicked"))?.push((at, text));
            }
        }
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..workers.max(1)).map(|_| scope.spawn(work)).collect();
        let join = |worker: thread::ScopedJoinHandle<'_, Result<()>>| {
            worker.join().map_err(|_| anyhow!("a worker panicked"))?
        };
        workers.into_iter().try_for_each(join)
    })?;
    let mut found = found.into_inner().map_err(|_| anyhow!("a worker panicked"))?;
    found.sort();
    for (_, text) in &found {
        println!("{text}");
    }
    println!("{total} renderings of {} cases: {} different", calls.len(), found.len());
    Ok(found.is_empty())
}

/// The first lines that differ.
fn show(call: &Call, profile: &str, theirs: &Run, ours: &Run) -> String {
    const LINES: usize = 12;
    let (theirs, ours) = (theirs.show(), ours.show());
    let same = theirs.lines().zip(ours.lines()).take_while(|(a, b)| a == b).count();
    let part = |text: &str| -> String {
        let lines = text.lines().skip(same.saturating_sub(1)).take(LINES);
        lines.map(|line| format!("{line}\n")).collect()
    };
    format!(
        "==== {} as in {profile}, from line {same}\n--- helm\n{}--- ours\n{}",
        call.name,
        part(&theirs),
        part(&ours)
    )
}
