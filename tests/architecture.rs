//! ARCHITECTURE.md names what is there, and the crates import as it says.

#![allow(clippy::unwrap_used)] // helpers of tests fail as tests do

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

const TEXT: &str = include_str!("../ARCHITECTURE.md");

/// Texts in backticks.
fn quoted() -> impl Iterator<Item = &'static str> {
    TEXT.split('`').skip(1).step_by(2).filter(|text| !text.contains('\n'))
}

/// Whether a text is the path of a Rust file.
fn is_source(text: &str) -> bool {
    !text.contains(' ') && Path::new(text).extension().is_some_and(|ending| ending == "rs")
}

/// `a/{b,c}.rs` names two paths.
fn alternatives(path: &str) -> Vec<String> {
    match path.split_once('{').zip(path.split_once('}')) {
        Some(((before, rest), (_, after))) => {
            let names = rest.split('}').next().unwrap().split(',');
            names.map(|name| format!("{before}{name}{after}")).collect()
        }
        None => vec![path.to_owned()],
    }
}

#[test]
fn every_source_file_that_a_document_names_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let at = |folder: &str| std::fs::read_dir(root.join(folder)).unwrap();
    let files = at("").chain(at("docs")).map(|entry| entry.unwrap().path());
    for file in files.filter(|file| file.extension().is_some_and(|ending| ending == "md")) {
        let text = std::fs::read_to_string(&file).unwrap();
        let named = text.split('`').filter(|text| is_source(text));
        let named = named.filter(|text| text.starts_with("crates/") || text.starts_with("tests/"));
        for path in named.flat_map(alternatives) {
            assert!(root.join(&path).exists(), "{} names {path}", file.display());
        }
    }
}

#[test]
fn every_path_that_it_names_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = ["crates/", "src/", "config/", "hack/", "fuzz/", "tests/", "examples/", "helm-"];
    let paths: Vec<String> = quoted()
        .filter(|text| folders.iter().any(|folder| text.starts_with(folder)))
        .filter(|text| !text.contains("NAME") && !text.contains('*'))
        .flat_map(alternatives)
        .collect();
    let missing: Vec<&String> = paths.iter().filter(|path| !root.join(path).exists()).collect();
    assert!(paths.len() > 40 && missing.is_empty(), "missing: {missing:?}");
    // A path that is not from the root on cannot be found by a reader, either.
    let short: Vec<&str> = quoted()
        .filter(|text| is_source(text) && text.contains('/'))
        .filter(|text| !folders.iter().any(|folder| text.starts_with(folder)))
        .collect();
    assert!(short.is_empty(), "not from the root on: {short:?}");
}

/// The crates in the order of the list, each with its place; those for tests are not among them.
fn order() -> BTreeMap<String, usize> {
    let list = TEXT.split("## The crates").nth(1).unwrap().split("```").nth(1).unwrap();
    let names = list.lines().take_while(|line| !line.starts_with("crates/localcluster"));
    let names = names.filter_map(|line| line.split_whitespace().next());
    let crates = names.filter_map(|name| name.strip_prefix("crates/"));
    crates.enumerate().map(|(at, name)| (format!("catamaran-{name}"), at)).collect()
}

#[test]
fn crates_import_only_what_stands_below_them() {
    let order = order();
    assert!(order.len() >= 9, "{order:?}");
    let told = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    let told: serde_json::Value = serde_json::from_slice(&told.stdout).unwrap();
    let mut seen = BTreeSet::new();
    for package in told["packages"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap();
        let Some(place) = order.get(name) else { continue };
        seen.insert(name.to_owned());
        for dependency in package["dependencies"].as_array().unwrap() {
            let imported = dependency["name"].as_str().unwrap();
            let is_shipped = dependency["kind"].is_null();
            if !is_shipped || !imported.starts_with("catamaran") {
                continue;
            }
            let below = order.get(imported).is_some_and(|at| at > place);
            assert!(below, "{name} imports {imported}, which does not stand below it");
        }
    }
    assert_eq!(seen, order.into_keys().collect(), "every crate of the list is there");
}
