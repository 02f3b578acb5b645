//! Every folder under `fixtures/` is a case: a chart, values, arguments, and
//! what the real helm made of them in both profiles (`regenerate-goldens.sh`).

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use catamaran_chart::{
    Budget, Capabilities, Chart, KubeVersion, Lookups, Profile, ReleaseFacts, RenderInput, Rendered,
};
use serde_json::{Map, Value};

const PROFILES: [(Profile, &str); 2] = [(Profile::Helm318, "3.18"), (Profile::Helm43, "4.3")];

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

/// The arguments of `helm template` that fixtures use.
struct Args {
    release: ReleaseFacts,
    capabilities: Capabilities,
}

fn args(case: &Path, profile: Profile) -> Args {
    let text = fs::read_to_string(case.join("args")).unwrap_or_else(|_| "demo".into());
    let mut words = text.split_whitespace();
    let mut release = ReleaseFacts {
        name: words.next().unwrap().to_owned(),
        namespace: "default".into(),
        revision: 1,
        is_install: true,
    };
    let mut capabilities = Capabilities::offline(profile);
    while let Some(word) = words.next() {
        match word {
            "--is-upgrade" => release.is_install = false,
            "--namespace" => words.next().unwrap().clone_into(&mut release.namespace),
            "--kube-version" => {
                capabilities.kube_version =
                    KubeVersion::parse(words.next().unwrap(), profile).unwrap();
            }
            "--api-versions" => {
                capabilities.api_versions.insert(words.next().unwrap().to_owned());
            }
            other => panic!("{}: unknown argument {other}", case.display()),
        }
    }
    Args { release, capabilities }
}

fn values(case: &Path) -> Map<String, Value> {
    let Ok(text) = fs::read_to_string(case.join("values.yaml")) else { return Map::new() };
    catamaran_yaml::from_str(&text, catamaran_yaml::Numbers::Float64).unwrap()
}

fn chart_path(case: &Path) -> PathBuf {
    match fs::read_to_string(case.join("chart.path")) {
        Ok(path) => case.join(path.trim()),
        Err(_) => case.join("chart"),
    }
}

fn render(case: &Path, profile: Profile) -> Result<Rendered, String> {
    let Args { release, capabilities } = args(case, profile);
    let chart = Chart::load(&chart_path(case)).map_err(|error| error.text(profile))?;
    let chart = chart.compile().map_err(|error| error.text(profile))?;
    let input = RenderInput {
        values: &values(case),
        release: &release,
        capabilities: &capabilities,
        profile,
        lookups: &Lookups::offline(),
        clock: UNIX_EPOCH,
        seed: 0.into(),
        budget: Budget::default(),
    };
    chart.render(&input).map_err(|error| error.text(profile))
}

/// What is told apart by a case and a profile, or nothing.
fn difference(case: &Path, profile: Profile, name: &str) -> Option<String> {
    let golden = |file: String| fs::read_to_string(case.join("golden").join(file)).ok();
    let rendered = render(case, profile);
    if let Some(expected) = golden(format!("{name}.error")) {
        let expected = expected.strip_prefix("Error: ").unwrap();
        // The last line is the command's.
        let expected = expected.replace("\n\nUse --debug flag to render out invalid YAML\n", "");
        return match rendered {
            Ok(rendered) => {
                Some(format!("expected error\n{expected}\ngot\n{}", rendered.template_text()))
            }
            Err(error) if error.trim_end() == expected.trim_end() => None,
            Err(error) => Some(format!("expected error\n{expected}\ngot error\n{error}")),
        };
    }
    let expected = golden(format!("{name}.yaml"))?;
    let notes = golden("notes.txt".into()).unwrap_or_default();
    match rendered {
        Err(error) => Some(format!("expected\n{expected}\ngot error\n{error}")),
        Ok(rendered) if rendered.template_text() != expected => {
            Some(format!("expected\n{expected}\ngot\n{}", rendered.template_text()))
        }
        Ok(rendered) if rendered.notes != notes => {
            Some(format!("expected notes\n{notes:?}\ngot\n{:?}", rendered.notes))
        }
        Ok(_) => None,
    }
}

#[test]
fn every_fixture_equals_what_helm_made_of_it() {
    let only = std::env::var("CASE").unwrap_or_default();
    let mut cases: Vec<_> = fs::read_dir(fixtures())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.file_name().unwrap().to_string_lossy().contains(&only))
        .collect();
    cases.sort();
    let mut failures = String::new();
    let (mut count, mut failed) = (0, 0);
    for case in &cases {
        for (profile, name) in PROFILES {
            count += 1;
            if let Some(difference) = difference(case, profile, name) {
                failed += 1;
                let case = case.file_name().unwrap().to_string_lossy();
                writeln!(failures, "\n==== {case} as in {name}: {difference}").unwrap();
            }
        }
    }
    assert!(count > 0, "no fixture matches {only:?}");
    assert!(failures.is_empty(), "{failed} of {count} differ:\n{failures}");
}
