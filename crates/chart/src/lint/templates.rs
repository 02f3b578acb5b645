//! The templates: rendered, and what comes of them looked at.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::bytes::Regex;
use serde_json::{Map, Value};

use super::decoder::{Decoder, Head};
use super::folder::{Folder, Kind};
use super::{Options, Report, Severity, deprecations, names};
use crate::gojson::{self, Fields};
use crate::render::{output_name, render_for_lint};
use crate::{
    Capabilities, Chart, File, KubeVersion, LoadError, Lookups, Profile, ReleaseFacts, RenderInput,
};

const FOLDER: &str = "templates/";

/// The longest line Helm's reader takes, in bytes.
const MAX_LINE: usize = 64 << 10;

pub(super) fn check(
    report: &mut Report,
    folder: &Folder,
    chart: &Result<Chart, LoadError>,
    values: &Map<String, Value>,
    options: &Options<'_>,
) {
    let is_new = options.profile == Profile::Helm43;
    let fault = match folder.kind("templates") {
        None if is_new => Some((Severity::Warning, "directory does not exist")),
        Some(Kind::File) if is_new => Some((Severity::Error, "not a directory")),
        Some(Kind::File) => Some((Severity::Warning, "not a directory")),
        _ => None,
    };
    if let Some((severity, text)) = fault {
        report.check(severity, FOLDER, Err(text.to_owned()));
        return;
    }
    let chart = match chart {
        Ok(chart) => chart,
        Err(error) => {
            report.check(Severity::Error, FOLDER, Err(error.text_of_look(options.profile)));
            return;
        }
    };
    let mut capabilities = Capabilities::offline(options.profile);
    if let Some(version) = options.kube_version {
        capabilities.kube_version = version.clone();
    }
    match render(chart, &capabilities, values, options, &mut report.notes) {
        Ok(None) => {}
        Ok(Some(rendered)) => {
            let mut look = Look { report, kube_version: &capabilities.kube_version, options };
            look.at_all(chart, &rendered);
        }
        Err(text) => {
            report.check(Severity::Error, FOLDER, Err(text));
        }
    }
}

fn render(
    chart: &Chart,
    capabilities: &Capabilities,
    values: &Map<String, Value>,
    options: &Options<'_>,
    notes: &mut Vec<String>,
) -> Result<Option<BTreeMap<String, String>>, String> {
    let release = ReleaseFacts {
        name: "test-release".to_owned(),
        namespace: options.namespace.to_owned(),
        // Helm's linter says neither that it is an install nor which revision it is.
        revision: 0,
        is_install: false,
    };
    let input = RenderInput {
        values,
        release: &release,
        capabilities,
        profile: options.profile,
        lookups: &Lookups::offline(),
        clock: options.clock,
        seed: options.seed,
        random_overrides: None,
        budget: options.budget,
    };
    let rendered = if options.skip_schema_validation {
        render_for_lint(&chart.clone().without_schemas(), &input, notes)
    } else {
        render_for_lint(chart, &input, notes)
    };
    rendered.map_err(|error| error.text(options.profile))
}

/// A look at what was rendered.
struct Look<'a> {
    report: &'a mut Report,
    kube_version: &'a KubeVersion,
    options: &'a Options<'a>,
}

impl Look<'_> {
    fn at_all(&mut self, chart: &Chart, rendered: &BTreeMap<String, String>) {
        for file in &chart.templates {
            let name = output_name(chart, &file.name);
            self.at_source(file, extension(name));
            if !is_yaml(name, self.options.profile) {
                continue;
            }
            let text = rendered.get(&format!("{}/{name}", chart.name()));
            let text = text.map(String::as_str).unwrap_or_default();
            // A document that is no YAML ends all; Helm looks no further.
            if !text.trim().is_empty() && !self.at_text(&file.name, text) {
                return;
            }
        }
    }

    fn at_source(&mut self, file: &File, extension: &str) {
        if ![".yaml", ".yml", ".tpl", ".txt"].contains(&extension) {
            let text = format!(
                "file extension '{extension}' not valid. Valid extensions are .yaml, .yml, .tpl, or .txt"
            );
            self.report.check(Severity::Error, &file.name, Err(text));
        }
        if self.options.profile == Profile::Helm318 {
            self.at_leftovers(file);
        }
    }

    /// What charts of Helm 2's time have.
    fn at_leftovers(&mut self, file: &File) {
        static CRD_HOOK: LazyLock<Option<Regex>> =
            LazyLock::new(|| Regex::new(r#""?helm\.sh/hook"?:[ \t\n\r\f]+crd-install"#).ok());
        let has_hook = CRD_HOOK.as_ref().is_some_and(|hook| hook.is_match(&file.data));
        if has_hook {
            let text = "manifest is a crd-install hook. This hook is no longer supported in v3 and all CRDs should also exist the crds/ directory at the top level of the chart";
            self.report.check(Severity::Warning, &file.name, Err(text.to_owned()));
        }
        let time = b".Release.Time";
        if file.data.windows(time.len()).any(|window| window == time) {
            let text = ".Release.Time has been removed in v3, please replace with the `now` function in your templates";
            self.report.check(Severity::Error, &file.name, Err(text.to_owned()));
        }
    }

    /// False if the text is no YAML.
    fn at_text(&mut self, file: &str, text: &str) -> bool {
        self.report.check(Severity::Warning, file, top_indent(text));
        let whole = Whole::new(text);
        for head in Decoder::new(text.as_bytes(), self.options.profile) {
            match head {
                Ok(None) => {}
                Ok(Some(head)) => self.at_object(file, &head, &whole),
                Err(fault) => {
                    let fault = format!("unable to parse YAML: {fault}");
                    return self.report.check(Severity::Error, file, Err(fault));
                }
            }
        }
        true
    }

    fn at_object(&mut self, file: &str, head: &Head, whole: &Whole<'_>) {
        let Options { profile, .. } = *self.options;
        self.report.check(Severity::Warning, file, names::check(&head.kind, &head.name));
        let deprecated =
            deprecations::check(&head.api_version, &head.kind, self.kube_version, profile);
        self.report.check(Severity::Warning, file, deprecated);
        self.report.check(Severity::Error, file, whole.selector(head));
        self.report.check(Severity::Error, file, whole.list_annotations(head, profile));
    }
}

/// Go's `filepath.Ext`.
fn extension(name: &str) -> &str {
    let base = name.rsplit('/').next().unwrap_or(name);
    base.rfind('.').and_then(|dot| base.get(dot..)).unwrap_or_default()
}

fn is_yaml(name: &str, profile: Profile) -> bool {
    match profile {
        Profile::Helm318 => extension(name) == ".yaml",
        Profile::Helm43 => [".yaml", ".yml"].contains(&extension(name).to_lowercase().as_str()),
    }
}

/// The first line that is not empty must not be indented.
fn top_indent(text: &str) -> Result<(), String> {
    for line in text.lines() {
        if line.len() >= MAX_LINE {
            return Err("bufio.Scanner: token too long".to_owned());
        }
        if line.trim().is_empty() {
            continue;
        }
        if line.starts_with([' ', '\t']) {
            let line = catamaran_gotemplate::fmt::quote(&line.into());
            return Err(format!(
                "document starts with an illegal indent: {line}, which may cause parsing problems"
            ));
        }
        return Ok(());
    }
    Ok(())
}

/// The text of a file, at all of which Helm looks for each of its documents; here once.
struct Whole<'t> {
    text: &'t str,
    selects: bool,
    lists: OnceCell<Result<(), String>>,
}

impl<'t> Whole<'t> {
    fn new(text: &'t str) -> Self {
        let selects = text.contains("matchLabels") || text.contains("matchExpressions");
        Self { text, selects, lists: OnceCell::new() }
    }

    fn selector(&self, head: &Head) -> Result<(), String> {
        let Head { kind, name, .. } = head;
        let wanted =
            matches!(kind.as_str(), "Deployment" | "ReplicaSet" | "DaemonSet" | "StatefulSet");
        if !wanted || self.selects {
            return Ok(());
        }
        let name = catamaran_gotemplate::fmt::quote(&name.as_str().into());
        Err(format!("a {kind} must contain matchLabels or matchExpressions, and {name} does not"))
    }

    fn list_annotations(&self, head: &Head, profile: Profile) -> Result<(), String> {
        if head.kind != "List" {
            return Ok(());
        }
        self.lists.get_or_init(|| list_annotations(self.text, profile)).clone()
    }
}

/// A policy inside of a List does nothing. Looks at the first document of the file, as Helm does.
fn list_annotations(text: &str, profile: Profile) -> Result<(), String> {
    let fault = |text: String| format!("unable to parse YAML: {text}");
    let value = gojson::parse(text.as_bytes(), catamaran_yaml::Numbers::Exact).map_err(fault)?;
    let object = gojson::object(value, LIST_TYPE).map_err(fault)?;
    let fields = Fields::new(&object, "", "");
    let items = fields.list("Items", ITEMS_TYPE).map_err(fault)?.unwrap_or_default();
    for item in items.iter().filter_map(Value::as_object) {
        let fields = Fields::new(item, "", "Items.");
        let metadata = fields.object("Metadata", METADATA_TYPE).map_err(fault)?;
        let Some(metadata) = metadata else { continue };
        let fields = Fields::new(metadata, "", "Items.Metadata.");
        let annotations = fields.text_map("Annotations").map_err(fault)?.unwrap_or_default();
        if annotations.contains_key("helm.sh/resource-policy") {
            let first = if profile == Profile::Helm318 { "Annotation" } else { "annotation" };
            return Err(format!(
                "{first} 'helm.sh/resource-policy' within List objects are ignored"
            ));
        }
    }
    Ok(())
}

const METADATA_TYPE: &str = "struct { Annotations map[string]string }";
const ITEMS_TYPE: &str = "[]struct { Metadata struct { Annotations map[string]string } }";
const LIST_TYPE: &str =
    "struct { Items []struct { Metadata struct { Annotations map[string]string } } }";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_line_with_content_counts() {
        assert_eq!(top_indent("\n  \nkind: A\n  b: 1\n"), Ok(()));
        assert_eq!(
            top_indent("\n  kind: A\n").unwrap_err(),
            r#"document starts with an illegal indent: "  kind: A", which may cause parsing problems"#
        );
    }

    #[test]
    fn extensions_are_those_of_the_base_name() {
        assert_eq!(extension("templates/a.b/c"), "");
        assert_eq!(extension("templates/a.tar.yml"), ".yml");
        assert_eq!(extension("templates/.gitignore"), ".gitignore");
    }
}
