//! What a chart may make: rendered with its defaults, with the project's samples and with each of its
//! toggles on, and read.

use std::collections::BTreeSet;
use std::time::{Duration, Instant, UNIX_EPOCH};

use catamaran_chart::{
    Budget, Capabilities, Chart, CompiledChart, Lookups, Profile, ReleaseFacts, RenderInput,
    manifest::parse_objects,
};
use catamaran_release::Scope;
use serde_json::{Map, Value};

use super::scan;

/// More toggles than this are not tried one by one.
const MOST_TOGGLES: usize = 300;

/// No further toggle is tried after this: a chart may make a key in each rendering.
const PATIENCE: Duration = Duration::from_secs(20);

/// What a chart makes, and what it asks for.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Groups and kinds of objects, hooks among them.
    pub kinds: BTreeSet<(String, String)>,
    /// Kinds whose group nobody told.
    pub groupless: BTreeSet<String>,
    /// What is looked up: apiVersion, kind, and whether by name.
    pub lookups: BTreeSet<(String, String, bool)>,
    /// Rules of the roles that the chart makes: who gives rights must have them.
    pub rules: BTreeSet<String>,
    /// Whether there are roles, bindings, definitions.
    pub roles: bool,
    pub definitions: bool,
    /// Whether what a hook prints may be asked for.
    pub logs: bool,
    /// Resources by group and kind, as the chart's own definitions tell.
    pub resources: Vec<(String, String, String)>,
    /// Where its objects may be.
    pub scope: Scope,
    /// What cannot be known, for people.
    pub unknown: Vec<String>,
}

/// Looks at a chart, with its defaults and with these values of the project's own.
pub(super) fn probe(chart: &CompiledChart, samples: &[Map<String, Value>]) -> Found {
    let mut found = Found::default();
    read(chart.chart(), "", &mut found);
    let mut toggles = Vec::new();
    collect(&defaults(chart.chart()), &mut Vec::new(), &mut toggles);
    if toggles.len() > MOST_TOGGLES {
        found.unknown.push(format!("toggles: only {MOST_TOGGLES} of {}", toggles.len()));
        toggles.truncate(MOST_TOGGLES);
    }
    let begun = Instant::now();
    let mut failed = None;
    let mut base = None;
    let in_time = |_: &&Map<_, _>| begun.elapsed() < PATIENCE;
    for values in [&Map::new()].into_iter().chain(samples).take_while(in_time) {
        match render(chart, values, &mut found) {
            Ok(()) => _ = base.get_or_insert_with(|| values.clone()),
            Err(error) => _ = failed.get_or_insert(error),
        }
    }
    if let (None, Some(error)) = (&base, failed) {
        let first = error.lines().next().unwrap_or_default().to_owned();
        found.unknown.push(format!("what it makes by default, as it does not render: {first}"));
    }
    let base = base.unwrap_or_default();
    let mut all = base.clone();
    for path in &toggles {
        set(&mut all, path);
    }
    let alone = toggles.iter().map(|path| {
        let mut values = base.clone();
        set(&mut values, path);
        values
    });
    // One that does not render alone says nothing: others may have to be set with it.
    for (tried, values) in [all].into_iter().chain(alone).enumerate() {
        if begun.elapsed() > PATIENCE {
            let of = toggles.len();
            found.unknown.push(format!("toggles: only {tried} of {of}, each takes long"));
            break;
        }
        let _ = render(chart, &values, &mut found);
    }
    found
}

/// Takes in what the text of templates and definitions tells.
fn read(chart: &Chart, path: &str, found: &mut Found) {
    let path = format!("{path}{}", chart.name());
    for template in &chart.templates {
        let text = String::from_utf8_lossy(&template.data);
        let told = scan::scan(&text);
        for (group, kind) in told.kinds {
            match group {
                Some(group) => _ = found.kinds.insert((group, kind)),
                None => _ = found.groupless.insert(kind),
            }
        }
        found.lookups.extend(told.lookups);
        found.logs |= text.contains("helm.sh/hook-output-log-policy");
        for (line, what) in told.unknown {
            found.unknown.push(format!("{what}: {path}/{}:{line}", template.name));
        }
        if text.contains("toYaml .Values.extra") || text.contains("tpl (toYaml") {
            found.unknown.push(format!("objects that values hold: {path}/{}", template.name));
        }
    }
    for definition in chart.crds() {
        found.definitions = true;
        let text = String::from_utf8_lossy(&definition.data);
        for object in parse_objects(&text).unwrap_or_default() {
            define(&object, found);
        }
    }
    for child in &chart.dependencies {
        read(child, &format!("{path}/charts/"), found);
    }
}

fn define(object: &Value, found: &mut Found) {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let named = (text("/spec/group"), text("/spec/names/kind"), text("/spec/names/plural"));
    if let (Some(group), Some(kind), Some(plural)) = named {
        found.resources.push((group, kind, plural));
    }
}

/// The defaults of a chart, with those of its subcharts below their names.
fn defaults(chart: &Chart) -> Map<String, Value> {
    let mut values = chart.values.clone();
    for child in &chart.dependencies {
        let mut below = defaults(child);
        if let Some(Value::Object(own)) = values.remove(child.name()) {
            below.extend(own);
        }
        values.insert(child.name().to_owned(), Value::Object(below));
    }
    values
}

/// The paths of all values that are false.
fn collect(values: &Map<String, Value>, path: &mut Vec<String>, toggles: &mut Vec<Vec<String>>) {
    for (key, value) in values {
        path.push(key.clone());
        match value {
            Value::Bool(false) => toggles.push(path.clone()),
            Value::Object(below) => collect(below, path, toggles),
            _ => {}
        }
        path.pop();
    }
}

/// Sets a toggle.
fn set(values: &mut Map<String, Value>, path: &[String]) {
    match path {
        [] => {}
        [last] => _ = values.insert(last.clone(), Value::Bool(true)),
        [first, rest @ ..] => {
            let below = values.entry(first.clone()).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(below) = below {
                set(below, rest);
            }
        }
    }
}

fn render(
    chart: &CompiledChart,
    values: &Map<String, Value>,
    found: &mut Found,
) -> Result<(), String> {
    let (name, namespace) = ("release-name".to_owned(), "default".to_owned());
    let release = ReleaseFacts { name, namespace, revision: 1, is_install: true };
    let rendered = chart.render(&RenderInput {
        values,
        release: &release,
        capabilities: &Capabilities::offline(Profile::Helm318),
        profile: Profile::Helm318,
        lookups: &Lookups::offline(),
        clock: UNIX_EPOCH,
        seed: 1.into(),
        random_overrides: None,
        budget: Budget::default(),
    });
    let rendered = rendered.map_err(|error| error.to_string())?;
    let runs = |events: &[String]| events.iter().any(|event| event != "test");
    let hooks = rendered.hooks.iter().filter(|hook| runs(&hook.events));
    let texts = hooks.map(|hook| hook.manifest.clone());
    for text in [rendered.manifest_text()].into_iter().chain(texts) {
        for object in parse_objects(&text).map_err(|error| error.to_string())? {
            take_in(&object, found);
        }
    }
    Ok(())
}

fn take_in(object: &Value, found: &mut Found) {
    let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default();
    let (version, kind) = (text("apiVersion"), text("kind"));
    if kind.is_empty() {
        return;
    }
    let group = version.rsplit_once('/').map_or("", |(group, _)| group);
    found.kinds.insert((group.to_owned(), kind.to_owned()));
    if kind == "CustomResourceDefinition" {
        define(object, found);
    }
    if group == "rbac.authorization.k8s.io" {
        found.roles = true;
        let rules = object.get("rules").and_then(Value::as_array);
        found.rules.extend(rules.into_iter().flatten().map(Value::to_string));
    }
}
