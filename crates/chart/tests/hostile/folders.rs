//! Hostile chart folders: links, pipes, devices, files without end.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use crate::case::{Case, End, Input, chart_yaml, file, folder};

fn pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

const IRREGULAR: End = End::Error("irregular file");

/// A chart that prints its file `x`, with something more in its folder.
fn made(name: &str, finish: fn(&Path), end: End) -> Case {
    let template = file("templates/a.yaml", "a: {{ .Files.Get \"x\" | quote }}");
    let input = Input::Made(vec![chart_yaml(), template], finish);
    Case { name: name.to_owned(), input, end }
}

pub fn cases() -> Vec<Case> {
    [irregular(), linked(), large(), many()].into_iter().flatten().collect()
}

/// Pipes, devices, sockets.
fn irregular() -> Vec<Case> {
    vec![
        made("values.yaml is a pipe", |chart| pipe(&chart.join("values.yaml")), IRREGULAR),
        made("a template is a pipe", |chart| pipe(&chart.join("templates/b.yaml")), IRREGULAR),
        made(".helmignore is a pipe", |chart| pipe(&chart.join(".helmignore")), IRREGULAR),
        made(
            "the chart is a pipe",
            |chart| {
                fs::remove_dir_all(chart).unwrap();
                pipe(chart);
            },
            IRREGULAR,
        ),
        made(
            "the chart is a device",
            |chart| {
                fs::remove_dir_all(chart).unwrap();
                symlink("/dev/zero", chart).unwrap();
            },
            IRREGULAR,
        ),
        made(
            "values.yaml leads to a device",
            |chart| symlink("/dev/zero", chart.join("values.yaml")).unwrap(),
            IRREGULAR,
        ),
        made(
            ".helmignore leads to a device",
            |chart| symlink("/dev/zero", chart.join(".helmignore")).unwrap(),
            IRREGULAR,
        ),
        made(
            "a file without a length, and without an end",
            |chart| symlink("/proc/self/pagemap", chart.join("x")).unwrap(),
            End::Error("cannot read"),
        ),
        made(
            "a socket",
            |chart| drop(std::os::unix::net::UnixListener::bind(chart.join("s")).unwrap()),
            IRREGULAR,
        ),
    ]
}

/// Links that lead somewhere else.
fn linked() -> Vec<Case> {
    vec![
        made(
            "a folder that leads to itself",
            |chart| symlink(".", chart.join("loop")).unwrap(),
            End::Error("evaluating symlink"),
        ),
        made(
            "a folder that leads above, twice",
            |chart| {
                symlink("..", chart.join("up")).unwrap();
                symlink("..", chart.join("up2")).unwrap();
            },
            End::Error(""),
        ),
        made(
            "a link to nowhere",
            |chart| symlink("/nowhere", chart.join("x")).unwrap(),
            End::Error(""),
        ),
        // Helm follows links, so that charts may share files.
        made(
            "a link to a file",
            |chart| {
                fs::write(chart.join("../y"), "shared").unwrap();
                symlink("../y", chart.join("x")).unwrap();
            },
            End::Prints("a: \"shared\""),
        ),
    ]
}

/// Files that are larger than what they hold.
fn large() -> Vec<Case> {
    vec![
        made(
            "a sparse file of a terabyte",
            |chart| fs::File::create(chart.join("x")).unwrap().set_len(1 << 40).unwrap(),
            End::Error("larger than the maximum file size"),
        ),
        made(
            "thirty sparse files of five megabytes",
            |chart| {
                for n in 0..30 {
                    fs::File::create(chart.join(format!("x{n}")))
                        .unwrap()
                        .set_len(5 << 20)
                        .unwrap();
                }
            },
            End::Error("larger than the maximum size"),
        ),
        made(
            "a .helmignore of a gigabyte",
            |chart| fs::File::create(chart.join(".helmignore")).unwrap().set_len(1 << 30).unwrap(),
            End::Error("larger than the maximum file size"),
        ),
    ]
}

/// More files than a chart has.
fn many() -> Vec<Case> {
    let empty = |count: usize| (0..count).map(|n| file(&format!("f/{n}"), ""));
    let rules = file(".helmignore", "x*y\n".repeat(60_000));
    vec![
        folder("very many files", empty(60_000).collect(), End::Error("more than 50000 files")),
        folder(
            "very many rules for very many files",
            std::iter::once(rules).chain(empty(5000)).collect(),
            End::Error("more than"),
        ),
    ]
}
