//! `catamaran lint` and `catamaran show` beside the real helm, on charts with every mistake.

#![allow(clippy::unwrap_used)] // helpers of tests fail as tests do

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn run(program: &Path, folder: &Path, arguments: &[&str], more: &[&str]) -> Output {
    Command::new(program)
        .args(arguments)
        .args(more)
        .current_dir(folder)
        .env_remove("HELM_NAMESPACE")
        .env("KUBECONFIG", "/nonexistent")
        .env("HOME", folder)
        .output()
        .unwrap()
}

/// What is said on standard error from `Error: ` on, helm's name changed to ours.
fn fault(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr).replace("helm", "catamaran");
    text.find("Error: ").and_then(|at| text.get(at..)).unwrap_or_default().trim().to_owned()
}

/// What differs from helm, of either generation, line of arguments by line.
fn differences(folder: &Path, lines: impl IntoIterator<Item = String>) -> Vec<String> {
    let tools = catamaran_localcluster::tools().unwrap();
    let mut found = Vec::new();
    for line in lines {
        let arguments: Vec<&str> = line.split(' ').collect();
        for (helm, profile) in [(tools.helm(), "4.3"), (tools.helm3(), "3.18")] {
            let helm = run(&helm, folder, &arguments, &[]);
            let ours = Path::new(env!("CARGO_BIN_EXE_catamaran"));
            let ours = run(ours, folder, &arguments, &["--profile", profile]);
            let told = |output: &Output| {
                let text = String::from_utf8_lossy(&output.stdout).into_owned();
                format!("{text}{}\nstatus {:?}", fault(output), output.status.code())
            };
            let (ours, helm) = (told(&ours), told(&helm));
            if ours != helm {
                found.push(format!("## {profile} {line}\nours: {ours}\nhelm: {helm}\n"));
            }
        }
    }
    found
}

#[track_caller]
fn equal(folder: &Path, lines: impl IntoIterator<Item = String>) {
    let found = differences(folder, lines);
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// The charts of one fixture file: lines `=== path` begin a file.
fn lay_out(text: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for file in text.split("=== ").skip(1) {
        let (path, content) = file.split_once('\n').unwrap();
        let path = folder.path().join(path.trim());
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    folder
}

fn charts() -> tempfile::TempDir {
    let folder = lay_out(include_str!("lint/charts.txt"));
    fs::create_dir_all(folder.path().join("chartfile-folder/Chart.yaml")).unwrap();
    fs::create_dir_all(folder.path().join("empty-folder")).unwrap();
    folder
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn packed(folder: &Path, chart: &str) -> PathBuf {
    let tools = catamaran_localcluster::tools().unwrap();
    assert!(run(&tools.helm(), folder, &["package", chart], &[]).status.success());
    folder.join(format!("{chart}-1.0.0.tgz"))
}

#[test]
fn every_rule_is_told_as_by_helm() {
    let folder = charts();
    let lines = names(folder.path()).into_iter().map(|name| format!("lint {name}"));
    equal(folder.path(), lines);
}

#[test]
fn flags_of_lint_do_as_in_helm() {
    let folder = charts();
    packed(folder.path(), "objects");
    let lines = [
        "lint good names",
        "lint ./good/ names --quiet",
        "lint good --quiet",
        "lint deprecated --strict",
        "lint deprecated --kube-version 1.15",
        "lint deprecated --kube-version 1.36",
        "lint deprecated --kube-version x",
        "lint umbrella --with-subcharts",
        "lint umbrella --with-subcharts --quiet",
        "lint schema --set replicas=x",
        "lint schema --set replicas=x --skip-schema-validation",
        "lint schema --set-string replicas=1 -f good/values.yaml",
        "lint good -f missing.yaml",
        "lint good --set a",
        "lint good --foo",
        "lint deprecated --strict --strict=false",
        "lint ./umbrella/ --with-subcharts",
        "lint nulls",
        "lint nulls --set a.q=1",
        "lint nulls -f nulls-values.yaml",
        // What the first chart puts into tables of the user's values is there for the second.
        "lint nulls good -f nulls-values.yaml",
        "lint leaks nulls -f nulls-values.yaml",
        "lint good -n elsewhere --debug=false",
        "lint objects-1.0.0.tgz",
        "lint missing.tgz",
        "lint missing",
        "lint charts.txt",
        "lint",
    ];
    equal(folder.path(), lines.map(str::to_owned));
}

#[test]
fn everything_is_shown_as_by_helm() {
    let folder = charts();
    // A chart that does not load fails in all parts alike.
    let charts = [
        "good",
        "bare",
        "strict",
        "unknown",
        "types",
        "crds-bad",
        "umbrella",
        "values-empty",
        "people-empty",
        "not-yaml",
        "not-an-object",
        "empty-folder",
        "no-name",
    ];
    equal(folder.path(), charts.map(|name| format!("show all ./{name}")));
    let parts = ["chart", "values", "readme", "crds"].map(|part| format!("show {part} ./good"));
    equal(folder.path(), parts);
    packed(folder.path(), "good");
    let lines = [
        "inspect chart ./good",
        "show chart good",
        "show chart good-1.0.0.tgz",
        "show all",
        "show values good names",
        "show values ./missing",
        "show values ./charts.txt",
        "show values good --jsonpath {.a.b}",
        "show values good --jsonpath {.list[*].name}{.a}",
        "show values good --jsonpath {.list[0:2].name}{.list[-1:].name}",
        "show values good --jsonpath {.list[0,1].name}",
        "show values good --jsonpath {.list[?(@.name==\"two\")].port}",
        "show values good --jsonpath {.list[?(@.port>8)].port}",
        "show values good --jsonpath {.list[?(@.port)].name}",
        "show values good --jsonpath {.a['b']}-{$.big}-{.list[9]}",
        "show values good --jsonpath {range.list[*]}{.name}{'\\n'}{end}!",
        "show values good --jsonpath {.missing}",
        "show values good --jsonpath {.a",
        "show values good --jsonpath {.a[x]}",
        "show values good --jsonpath {%}",
        "show chart good --jsonpath x",
    ];
    equal(folder.path(), lines.map(str::to_owned));
}

#[test]
fn show_alone_explains_itself() {
    let ours = Path::new(env!("CARGO_BIN_EXE_catamaran"));
    let output = run(ours, Path::new("."), &["show"], &[]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0));
    for word in ["Usage: catamaran show", "readme", "--jsonpath"] {
        assert!(text.contains(word), "{word} is missing in:\n{text}");
    }
}
