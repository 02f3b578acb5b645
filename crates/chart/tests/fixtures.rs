//! Every case under `fixtures/` rendered in process, in both profiles, beside what the real helm
//! made of it. The command itself is held against the same cases in `crates/cli/tests/fixtures.rs`.
//!
//! `CASE=part cargo test -p catamaran-chart --test fixtures` runs some.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::UNIX_EPOCH;

use catamaran_chart::values::Sources;
use catamaran_chart::{
    Budget, Capabilities, Chart, KubeVersion, Lookups, Profile, ReleaseFacts, RenderInput, Rendered,
};
use catamaran_fixtures::{Answer, Case, Helm, hide_paths};

fn profile_of(helm: Helm) -> Profile {
    match helm {
        Helm::V4 => Profile::Helm43,
        Helm::V3 => Profile::Helm318,
    }
}

/// What the arguments of `helm template` ask of a chart.
struct Asked {
    chart: String,
    release: ReleaseFacts,
    capabilities: Capabilities,
    sources: Sources,
    skip_schemas: bool,
}

/// Nothing if some of the arguments are the command's alone.
fn asked(case: &Case, profile: Profile) -> Option<Asked> {
    let mut asked = Asked {
        chart: String::new(),
        release: ReleaseFacts {
            name: String::new(),
            namespace: "default".into(),
            revision: 1,
            is_install: true,
        },
        capabilities: Capabilities::offline(profile),
        sources: Sources::default(),
        skip_schemas: false,
    };
    let mut places = Vec::new();
    let mut words = case.arguments().unwrap().into_iter();
    while let Some(word) = words.next() {
        let sources = &mut asked.sources;
        let mut next = || words.next().unwrap();
        match word.as_str() {
            "-f" | "--values" => sources.files.extend(next().split(',').map(str::to_owned)),
            "--set" => sources.typed.push(next()),
            "--set-string" => sources.texts.push(next()),
            "--set-json" => sources.json.push(next()),
            "--set-file" => sources.from_files.push(next()),
            "--set-literal" => sources.literals.push(next()),
            "--is-upgrade" => asked.release.is_install = false,
            "--namespace" => asked.release.namespace = next(),
            "--kube-version" => {
                asked.capabilities.kube_version = KubeVersion::parse(&next(), profile).ok()?;
            }
            "--api-versions" => {
                asked.capabilities.api_versions.insert(next());
            }
            "--skip-schema-validation" => asked.skip_schemas = true,
            flag if flag.starts_with('-') => return None,
            _ => places.push(word),
        }
    }
    let [name, chart] = places.try_into().ok()?;
    (asked.release.name, asked.chart) = (name, chart);
    Some(asked)
}

fn render(asked: &Asked, folder: &Path, profile: Profile) -> Result<Rendered, String> {
    let read = |path: &str| fs::read(folder.join(path)).map_err(|error| error.to_string());
    let values = asked.sources.gather(profile, read)?;
    let path = folder.join(&asked.chart);
    let mut chart = Chart::load(&path).map_err(|error| error.text(profile))?;
    if asked.skip_schemas {
        chart = chart.without_schemas();
    }
    let chart = chart.compile().map_err(|error| error.text(profile))?;
    let input = RenderInput {
        values: &values,
        release: &asked.release,
        capabilities: &asked.capabilities,
        profile,
        lookups: &Lookups::offline(),
        clock: UNIX_EPOCH,
        seed: 0.into(),
        random_overrides: None,
        budget: Budget::default(),
    };
    chart.render(&input).map_err(|error| error.text(profile))
}

/// What is told apart by a case and a profile, or nothing.
fn difference(case: &Case, folder: &Path, helm: Helm) -> Option<String> {
    let profile = profile_of(helm);
    let asked = asked(case, profile)?;
    let rendered = render(&asked, folder, profile);
    let expected = case.ours(helm).or_else(|| case.golden(helm)).unwrap();
    match (expected, rendered) {
        (Answer::Error(expected), Ok(rendered)) => {
            Some(format!("expected error\n{expected}\ngot\n{}", rendered.template_text()))
        }
        (Answer::Error(expected), Err(error)) => {
            // What the command puts around it.
            let expected = expected.strip_prefix("Error: ").unwrap();
            let expected =
                expected.replace("\n\nUse --debug flag to render out invalid YAML\n", "");
            let error = hide_paths(&error, folder);
            let same = error.trim_end() == expected.trim_end();
            (!same).then(|| format!("expected error\n{expected}\ngot error\n{error}"))
        }
        (Answer::Output(expected), Err(error)) => {
            Some(format!("expected\n{expected}\ngot error\n{error}"))
        }
        (Answer::Output(expected), Ok(rendered)) => {
            let (text, notes) = (rendered.template_text(), case.notes());
            if text != expected {
                return Some(format!("expected\n{expected}\ngot\n{text}"));
            }
            let same = rendered.notes == notes || case.ours(helm).is_some();
            (!same).then(|| format!("expected notes\n{notes:?}\ngot\n{:?}", rendered.notes))
        }
    }
}

/// What is told apart by a case, in both profiles.
fn differences(case: &Case) -> String {
    let mut text = String::new();
    // What the command alone does is shown by its own test.
    if case.name.starts_with("command/") {
        return text;
    }
    let folder = tempfile::tempdir().unwrap();
    case.unpack(folder.path()).unwrap();
    for helm in Helm::ALL {
        if let Some(difference) = difference(case, folder.path(), helm) {
            writeln!(text, "\n==== {} as in {}: {difference}", case.name, helm.name()).unwrap();
        }
    }
    text
}

#[test]
fn every_fixture_equals_what_helm_made_of_it() {
    let only = std::env::var("CASE").unwrap_or_default();
    let cases = Case::matching(&only).unwrap();
    assert!(!cases.is_empty(), "no fixture matches {only:?}");
    let (next, failures) = (AtomicUsize::new(0), Mutex::new(String::new()));
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let different = differences(case);
                    failures.lock().unwrap().push_str(&different);
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{} differ:\n{failures}", failures.matches("\n==== ").count());
}
