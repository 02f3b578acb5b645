//! Charts that mean harm, or might: each ends in an error (or in what Helm prints), with no panic, no
//! overflow of the native stack, and with less than 64 MiB more than an innocent chart of its size.
//!
//! Every chart is rendered in a process of its own, so that one that takes too much is seen. Helm 4.3.1
//! never ends, or dies, on many of these.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test's helpers")]
#![allow(clippy::items_after_statements, reason = "tables of cases")]
#![allow(
    clippy::format_collect,
    clippy::format_push_string,
    clippy::needless_for_each,
    reason = "read as what they make"
)]

#[path = "hostile/archives.rs"]
mod archives;
#[path = "hostile/case.rs"]
mod case;
#[path = "hostile/folders.rs"]
mod folders;
#[path = "hostile/metadata.rs"]
mod metadata;
#[path = "hostile/runner.rs"]
mod runner;
#[path = "hostile/schemas.rs"]
mod schemas;
#[path = "hostile/templates.rs"]
mod templates;
#[path = "hostile/yaml.rs"]
mod yaml;

use case::Case;

fn all(cases: &[Case]) {
    let faults: Vec<String> = cases.iter().filter_map(|case| runner::run(case).err()).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn templates_that_go_on_for_ever() {
    all(&templates::endless());
}

#[test]
fn templates_that_make_too_much() {
    all(&templates::growing());
}

#[test]
fn values_that_contain_themselves() {
    all(&templates::knots());
}

#[test]
fn functions_that_are_asked_for_too_much() {
    all(&templates::functions());
}

#[test]
fn sources_that_nest_too_deep() {
    all(&templates::nested());
}

#[test]
fn numbers_and_dates_that_are_too_large() {
    all(&templates::numbers());
}

#[test]
fn yaml_that_explodes() {
    all(&yaml::cases());
}

#[test]
fn schemas_without_end() {
    all(&schemas::cases());
}

#[test]
fn metadata_that_lies() {
    all(&metadata::cases());
}

#[test]
fn archives_that_explode_or_escape() {
    all(&archives::cases());
}

#[test]
fn folders_with_more_than_files() {
    all(&folders::cases());
}

/// Each row of SECURITY.md says `none` and why, or names files that have the id: in the name of a test
/// or in a row of a table.
#[test]
fn every_advisory_of_security_md_has_a_test() {
    let root = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let page = std::fs::read_to_string(root.join("SECURITY.md")).unwrap();
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| CVE-")).collect();
    assert_eq!(rows.len(), 28, "Helm's 27 and one of Flux");
    for row in rows {
        let mut columns = row.trim_matches('|').split('|').map(str::trim);
        let (id, here) = (columns.next().unwrap(), columns.next_back().unwrap());
        if here.starts_with("none: ") {
            continue;
        }
        let files: Vec<&str> = here.split('`').filter(|part| part.starts_with("crates/")).collect();
        assert!(!files.is_empty(), "{id}: no file is named");
        let name = format!("fn {}_", id.to_lowercase().replace('-', "_"));
        for file in files {
            let text = std::fs::read_to_string(root.join(file)).unwrap();
            let in_a_row = text
                .lines()
                .filter(|line| !line.trim_start().starts_with("//"))
                .any(|line| line.contains(id) && line.contains('"'));
            assert!(in_a_row || text.contains(&name), "{id}: {file} has no test that bears it");
        }
    }
}

/// Not a test: what [`runner::run`] starts in a process of its own.
#[test]
#[ignore = "started by the other tests"]
fn child() {
    runner::child();
}
