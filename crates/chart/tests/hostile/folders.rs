//! Hostile chart folders: links, pipes, devices, files without end.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use crate::case::{Case, End, File, Input, chart_yaml, file};

fn pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

pub fn cases() -> Vec<Case> {
    let template = || file("templates/a.yaml", "a: {{ .Files.Get \"x\" | quote }}");
    let made = |name: &str, finish: fn(&Path), end: End| Case {
        name: name.to_owned(),
        input: Input::Made(vec![chart_yaml(), template()], finish),
        end,
    };
    const IRREGULAR: &str = "irregular file";
    let many: Vec<File> = (0..60_000).map(|n| file(&format!("f/{n}"), "")).collect();
    vec![
        made(
            "values.yaml is a pipe",
            |chart| pipe(&chart.join("values.yaml")),
            End::Error(IRREGULAR),
        ),
        made(
            "a template is a pipe",
            |chart| pipe(&chart.join("templates/b.yaml")),
            End::Error(IRREGULAR),
        ),
        made(
            ".helmignore is a pipe",
            |chart| pipe(&chart.join(".helmignore")),
            End::Error(IRREGULAR),
        ),
        made(
            "the chart is a pipe",
            |chart| {
                fs::remove_dir_all(chart).unwrap();
                pipe(chart);
            },
            End::Error(IRREGULAR),
        ),
        made(
            "the chart is a device",
            |chart| {
                fs::remove_dir_all(chart).unwrap();
                symlink("/dev/zero", chart).unwrap();
            },
            End::Error(IRREGULAR),
        ),
        made(
            "values.yaml leads to a device",
            |chart| symlink("/dev/zero", chart.join("values.yaml")).unwrap(),
            End::Error(IRREGULAR),
        ),
        made(
            ".helmignore leads to a device",
            |chart| symlink("/dev/zero", chart.join(".helmignore")).unwrap(),
            End::Error(IRREGULAR),
        ),
        made(
            "a file without a length, and without an end",
            |chart| symlink("/proc/self/pagemap", chart.join("x")).unwrap(),
            End::Error("cannot read"),
        ),
        made(
            "a socket",
            |chart| drop(std::os::unix::net::UnixListener::bind(chart.join("s")).unwrap()),
            End::Error(IRREGULAR),
        ),
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
        Case {
            name: "very many files".into(),
            input: Input::Folder([vec![chart_yaml()], many].concat()),
            end: End::Error("more than 50000 files"),
        },
        Case {
            name: "very many rules for very many files".into(),
            input: Input::Folder(
                [
                    vec![chart_yaml(), file(".helmignore", "x*y\n".repeat(60_000))],
                    (0..5000).map(|n| file(&format!("f/{n}"), "")).collect(),
                ]
                .concat(),
            ),
            end: End::Error("more than"),
        },
    ]
}
