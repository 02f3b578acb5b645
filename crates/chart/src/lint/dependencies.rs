//! What Chart.yaml asks for against what lies under `charts/`.

use std::collections::BTreeSet;

use super::folder::Folder;
use super::{Report, Severity};
use crate::{Chart, LoadError, Profile};

pub(super) fn check(
    report: &mut Report,
    folder: &Folder,
    chart: &Result<Chart, LoadError>,
    profile: Profile,
) {
    let chart = match chart {
        Ok(chart) => chart,
        Err(error) => {
            let text = format!("unable to load chart\n\t{}", error.text_of_look(profile));
            report.check(Severity::Error, "", Err(text));
            return;
        }
    };
    let wanted: Vec<&str> =
        chart.metadata.dependencies.iter().flatten().map(|d| d.name.as_str()).collect();
    let there: Vec<&str> = chart.dependencies.iter().map(Chart::name).collect();
    for (severity, what, names) in [
        (Severity::Error, "chart metadata is missing these dependencies", without(&there, &wanted)),
        (Severity::Error, "multiple dependencies with name or alias", repeated(chart)),
        (
            Severity::Warning,
            "chart directory is missing these dependencies",
            without(&wanted, &there),
        ),
    ] {
        if !names.is_empty() {
            report.check(severity, &folder.path, Err(format!("{what}: {}", names.join(","))));
        }
    }
}

fn without<'n>(names: &[&'n str], others: &[&str]) -> Vec<&'n str> {
    names.iter().filter(|name| !others.contains(name)).copied().collect()
}

fn repeated(chart: &Chart) -> Vec<&str> {
    let mut seen = BTreeSet::new();
    let names = chart.metadata.dependencies.iter().flatten().map(|dependency| {
        if dependency.alias.is_empty() { &dependency.name } else { &dependency.alias }
    });
    names.filter(|name| !seen.insert(*name)).map(String::as_str).collect()
}
