//! `catamaran template` on cases of `crates/chart/tests/fixtures`: the same output, the same error
//! and the same status as the real helm, in both profiles.
//!
//! All cases that have arguments, and some of the others, which `crates/chart/tests/fixtures.rs`
//! runs in process; `CASE=part` runs all those with a part of a name.

#![allow(clippy::unwrap_used)] // helpers of tests fail as tests do

use std::fmt::Write as _;
use std::path::Path;

use catamaran_fixtures::{Answer, Case, Helm, ask_catamaran, in_parallel};

/// What is told apart by a case, or nothing.
fn differences(case: &Case) -> String {
    let folder = tempfile::tempdir().unwrap();
    case.unpack(folder.path()).unwrap();
    let mut text = String::new();
    for helm in Helm::ALL {
        let expected = case.ours(helm).or_else(|| case.golden(helm)).unwrap();
        let program = Path::new(env!("CARGO_BIN_EXE_catamaran"));
        let ours = ask_catamaran(program, helm, case, folder.path()).unwrap();
        if ours != expected {
            let (expected, ours) = (show(&expected), show(&ours));
            writeln!(text, "\n==== {} as in {}: expected", case.name, helm.name()).unwrap();
            writeln!(text, "{expected}\ngot\n{ours}").unwrap();
        }
    }
    // What is stated as a difference and is none any more is no longer stated.
    let stated = Helm::ALL.map(|helm| (case.ours(helm), case.golden(helm)));
    if stated[0].0.is_some() && stated.iter().all(|(ours, golden)| ours == golden) {
        writeln!(text, "\n==== {}: no difference any more", case.name).unwrap();
    }
    text
}

fn show(answer: &Answer) -> String {
    match answer {
        Answer::Output(text) | Answer::Error(text) => text.clone(),
    }
}

#[test]
fn the_command_answers_as_helm_does() {
    let cases = if let Ok(part) = std::env::var("CASE") {
        Case::matching(&part).unwrap()
    } else {
        let all = Case::all().unwrap().into_iter().enumerate();
        let chosen =
            |(at, case): (usize, Case)| (at % 10 == 0 || case.has_arguments()).then_some(case);
        all.filter_map(chosen).collect()
    };
    let failures = in_parallel(cases.len(), 2, |at| Ok(Some(differences(&cases[at])))).unwrap();
    assert!(failures.concat().is_empty(), "{}", failures.concat());
}
