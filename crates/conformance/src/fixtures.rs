//! `conformance fixtures`: our cases of charts, by both commands.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use catamaran_fixtures::{Answer, Case, Helm, ask, ask_catamaran, in_parallel};

use crate::charts::show;
use crate::programs::Programs;

/// How often Helm is asked again where its answer is not the case's.
const ASKED_AGAIN: usize = 16;

/// Runs the cases that have a part in their name in both profiles, shows what differs, and tells
/// whether nothing does: neither we from Helm, nor Helm from what the case says of it.
pub fn compare(programs: &Programs, only: &str, workers: usize) -> Result<bool> {
    let cases = Case::matching(only)?;
    if cases.is_empty() {
        bail!("there is no case like {only:?}");
    }
    let found = in_parallel(cases.len(), workers, |at| {
        let Some(case) = cases.get(at) else { return Ok(None) };
        let folder = tempfile::tempdir()?;
        case.unpack(folder.path())?;
        let mut text = String::new();
        for helm in Helm::ALL {
            text += &differences(programs, helm, case, folder.path())
                .with_context(|| case.name.clone())?;
        }
        Ok((!text.is_empty()).then_some(text))
    })?;
    for text in &found {
        println!("{text}");
    }
    println!(
        "{} renderings of {} cases: {} cases different",
        cases.len() * Helm::ALL.len(),
        cases.len(),
        found.len()
    );
    Ok(found.is_empty())
}

fn differences(programs: &Programs, helm: Helm, case: &Case, folder: &Path) -> Result<String> {
    let program = programs.theirs(helm);
    let mut theirs = ask(&program, case, folder)?;
    // Some lists of faults come in the order of a Go map, another one in each run.
    for _ in 0..ASKED_AGAIN {
        if case.golden(helm).as_ref() == Some(&theirs) {
            break;
        }
        theirs = ask(&program, case, folder)?;
    }
    let ours = ask_catamaran(&programs.ours, helm, case, folder)?;
    let mut text = String::new();
    if case.golden(helm).as_ref() != Some(&theirs) {
        let golden = case.golden(helm).map(|golden| told(&golden)).unwrap_or_default();
        text += &show(&format!("{}: its golden", case.name), helm.name(), &told(&theirs), &golden);
    }
    // What COMPATIBILITY.md tells of.
    let expected = case.ours(helm).unwrap_or(theirs);
    if ours != expected {
        text += &show(&case.name, helm.name(), &told(&expected), &told(&ours));
    }
    Ok(text)
}

fn told(answer: &Answer) -> String {
    match answer {
        Answer::Output(text) => format!("{text}exit 0\n"),
        Answer::Error(text) => format!("{text}exit 1\n"),
    }
}
