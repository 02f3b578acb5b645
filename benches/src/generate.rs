//! Charts of our own to measure with, written into a folder. The patterns in `charts/` are
//! repeated, with `@N@` for the number of the copy.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};

const STACK_HELPERS: &str = include_str!("../charts/stack/_helpers.tpl");
const STACK_VALUES: &str = include_str!("../charts/stack/values.yaml");
const STACK_RULES: &str = include_str!("../charts/stack/rules.yaml");
const STACK_ALERT: &str = include_str!("../charts/stack/alert.yaml");
const STACK_DASHBOARD: &str = include_str!("../charts/stack/dashboard.yaml");
const STACK_PANEL: &str = include_str!("../charts/stack/panel.json");
const STACK_MONITOR: &str = include_str!("../charts/stack/monitor.yaml");
const EXPORTER_HELPERS: &str = include_str!("../charts/exporter/_helpers.tpl");
const EXPORTER_VALUES: &str = include_str!("../charts/exporter/values.yaml");
const EXPORTER_WORKLOAD: &str = include_str!("../charts/exporter/workload.yaml");
const EXPORTER_REST: &str = include_str!("../charts/exporter/rest.yaml");

/// What `helm create` makes.
pub fn small(helm: &Path, scratch: &Path) -> Result<PathBuf> {
    fs::create_dir_all(scratch)?;
    let chart = scratch.join("small");
    let made = Command::new(helm).arg("create").arg(&chart).output()?;
    ensure!(made.status.success(), "helm create: {}", String::from_utf8_lossy(&made.stderr));
    Ok(chart)
}

/// As big as kube-prometheus-stack, and of the same make: rules whose texts are templates of
/// somebody else, dashboards of JSON, subcharts, megabytes of CRDs.
pub fn stack(scratch: &Path) -> Result<PathBuf> {
    let chart = scratch.join("stack");
    let exporters = ["dashboards", "state-metrics", "node-metrics", "windows-metrics"];
    write(&chart, "Chart.yaml", &about("stack", exporters.map(String::from)))?;
    write(&chart, "templates/_helpers.tpl", STACK_HELPERS)?;
    let mut values = STACK_VALUES.to_owned();
    for n in 0..35 {
        let alerts: String =
            (0..14).map(|alert| STACK_ALERT.replace("@ALERT@", &alert.to_string())).collect();
        let rules = STACK_RULES.replace("@ALERTS@", &alerts).replace("@N@", &n.to_string());
        write(&chart, &format!("templates/rules/{n}.yaml"), &rules)?;
    }
    for n in 0..28 {
        let panels: Vec<_> = (0..16)
            .map(|panel| STACK_PANEL.trim_end().replace("@PANEL@", &panel.to_string()))
            .collect();
        let board =
            STACK_DASHBOARD.replace("@PANELS@", &panels.join(",\n")).replace("@N@", &n.to_string());
        write(&chart, &format!("templates/dashboards/{n}.yaml"), &board)?;
    }
    for n in 0..14 {
        write(
            &chart,
            &format!("templates/monitors/{n}.yaml"),
            &STACK_MONITOR.replace("@N@", &n.to_string()),
        )?;
        commented(&mut values, &format!("component{n}"), 240)?;
    }
    write(&chart, "values.yaml", &values)?;
    for name in exporters {
        exporter(&chart.join("charts").join(name), name)?;
    }
    for n in 0..10 {
        write(&chart, &format!("crds/{n}.yaml"), &crd(n)?)?;
    }
    Ok(chart)
}

/// One chart over 120 others.
pub fn umbrella(scratch: &Path) -> Result<PathBuf> {
    let chart = scratch.join("umbrella");
    let names = (0..120).map(|n| format!("part{n:03}"));
    write(&chart, "Chart.yaml", &about("umbrella", names.clone()))?;
    write(&chart, "values.yaml", "global:\n  registry: registry.example.com\n")?;
    for name in names {
        exporter(&chart.join("charts").join(&name), &name)?;
    }
    Ok(chart)
}

fn exporter(chart: &Path, name: &str) -> Result<()> {
    let own = |text: &str| text.replace("@NAME@", name);
    write(chart, "Chart.yaml", &about(name, []))?;
    let mut values = own(EXPORTER_VALUES);
    commented(&mut values, "more", 60)?;
    write(chart, "values.yaml", &values)?;
    write(chart, "templates/_helpers.tpl", &own(EXPORTER_HELPERS))?;
    write(chart, "templates/workload.yaml", &own(EXPORTER_WORKLOAD))?;
    for (n, document) in own(EXPORTER_REST).split("\n---\n").enumerate() {
        write(chart, &format!("templates/rest-{n}.yaml"), document)?;
    }
    Ok(())
}

fn about(name: &str, parts: impl IntoIterator<Item = String>) -> String {
    let mut text = format!(
        "apiVersion: v2\nname: {name}\nversion: 1.0.0\nappVersion: \"2.1\"\ndependencies:\n"
    );
    for part in parts {
        let _ = writeln!(text, "- {{name: {part}, version: 1.x.x, condition: {part}.enabled}}");
    }
    text
}

/// A block of values as charts have them, half of it comments.
fn commented(text: &mut String, name: &str, keys: usize) -> Result<()> {
    writeln!(text, "\n## Configuration of {name}\n##\n{name}:\n  enabled: true")?;
    for key in 0..keys / 4 {
        writeln!(
            text,
            "  ## How {name} deals with option {key}; see the documentation\n  ## ref: https://example.com/docs/{name}#{key}\n  option{key}:\n    enabled: false\n    labels: {{}}\n    interval: \"{key}s\"\n    # limits: {{}}"
        )?;
    }
    Ok(())
}

/// A definition of some 400 KiB.
fn crd(n: usize) -> Result<String> {
    let mut text = format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: things{n}.example.com\nspec:\n  group: example.com\n  names: {{kind: Thing{n}, plural: things{n}}}\n  scope: Namespaced\n  versions:\n  - name: v1\n    served: true\n    storage: true\n    schema:\n      openAPIV3Schema:\n        type: object\n        properties:\n"
    );
    for field in 0..1800 {
        writeln!(
            text,
            "          field{field}:\n            description: |-\n              What field {field} is for, in the long sentences that\n              the definitions of real operators are made of.\n            type: string\n            enum:\n            - Always\n            - Never"
        )?;
    }
    Ok(text)
}

fn write(chart: &Path, path: &str, text: &str) -> Result<()> {
    let path = chart.join(path);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    Ok(fs::write(path, text)?)
}
