//! watches.yaml: which kind is carried by which controller.
//!
//! Two phases: what the file says ([`raw`]), then what it means ([`Watch`]): kinds known to be complete
//! and unique, charts loaded and compiled, reconcilers found. Every problem is told at once, each with
//! its file and line, before anything touches the network.

mod isolation;
mod overrides;
mod raw;

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use catamaran_chart::{Chart, CompiledChart, PostRenderers, Profile};
use catamaran_cluster::cel::Program;
use catamaran_cluster::drift::IgnoreRule;
use catamaran_release::{CrdPolicy, Scope};
use catamaran_yaml::Numbers;
use kube::core::{GroupVersionKind, Selector};
use serde::de::IgnoredAny;
use serde_json::{Map, Value};
use serde_saphyr::Spanned;

use crate::charts::ChartKindConfig;
use crate::options::duration;
use isolation::isolation;
pub use overrides::{Override, OverrideTypes, Overrides};
use raw::{RawIgnore, RawWatch};

/// What one entry of watches.yaml means.
#[derive(Clone, Debug)]
pub struct Watch {
    /// The kind.
    pub gvk: GroupVersionKind,
    /// Who reconciles it.
    pub backend: KindBackend,
    /// Label selector in the form of `kubectl -l`; only resources that match are looked at.
    pub selector: Option<String>,
    /// The selectors of earlier entries of the same kind, whatever their version: what they match is
    /// theirs.
    pub earlier: Vec<Selector>,
    matches: Selector,
    /// How often a resource is looked at although nothing moved; `None` is never.
    pub reconcile_period: Option<Duration>,
    /// How many resources of this kind may be worked on at once; `None` is the manager's default.
    pub max_concurrent_reconciles: Option<usize>,
    /// Whether objects of a release are watched (default true).
    pub watch_dependent_resources: bool,
    /// What wins over the spec.
    pub overrides: Overrides,
    /// What is left to others of a release's objects.
    pub ignored: Vec<IgnoreRule>,
    /// What becomes of the definitions of the chart's `crds/`.
    pub crds: CrdPolicy,
    /// Whether records hold the whole chart, and not only what is needed of it.
    pub full_record: bool,
    /// Where records lie; `None` is the namespace of each resource.
    pub storage_namespace: Option<String>,
    /// Where the objects of a release, and what its chart looks up, may be.
    pub scope: Scope,
    /// The service account, in the namespace of each release, as which all requests of the release are made;
    /// `None` is the operator's own.
    pub service_account: Option<String>,
    /// What is configured of it in code.
    pub(crate) setup: ChartKindConfig,
}

impl Watch {
    /// A kind that watches.yaml does not mention, with defaults.
    pub(crate) fn new(gvk: GroupVersionKind, backend: KindBackend) -> Self {
        Self {
            gvk,
            backend,
            selector: None,
            earlier: Vec::new(),
            matches: Selector::default(),
            reconcile_period: None,
            max_concurrent_reconciles: None,
            watch_dependent_resources: true,
            overrides: Overrides::default(),
            ignored: Vec::new(),
            crds: CrdPolicy::default(),
            full_record: false,
            storage_namespace: None,
            scope: Scope::default(),
            service_account: None,
            setup: ChartKindConfig::default(),
        }
    }

    /// Serves only what these labels match.
    pub(crate) fn select(&mut self, matches: Selector) {
        self.selector = Some(matches.to_string()).filter(|text| !text.is_empty());
        self.matches = matches;
    }

    /// Lets what the chart renders go through these steps.
    pub(crate) fn post_render(&mut self, steps: PostRenderers) {
        if let KindBackend::Chart(chart) = &mut self.backend {
            *chart = Arc::new(chart.as_ref().clone().with_post_renderers(steps));
        }
    }
}

/// The two kinds of controllers.
#[derive(Clone)]
pub enum KindBackend {
    /// A Helm chart, compiled once and shared by all resources of the kind.
    Chart(Arc<CompiledChart>),
    /// A reconciler, by the name under which it was registered with the manager.
    Reconciler(String),
}

impl fmt::Debug for KindBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Chart(chart) => write!(f, "Chart({})", chart.metadata().name),
            Self::Reconciler(name) => write!(f, "Reconciler({name})"),
        }
    }
}

/// Why watches.yaml cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum WatchesError {
    /// The file cannot be read.
    #[error("{}: cannot read the file: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is not a list of entries; the message holds file and line.
    #[error("{0}")]
    Syntax(Problem),
    /// Entries that are wrong, each with its line.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Entries(Vec<Problem>),
}

/// One thing wrong with watches.yaml.
#[derive(Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file.
    pub path: PathBuf,
    /// The line, counted from 1.
    pub line: u64,
    /// What is wrong and what to do.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path.display(), self.line, self.message)
    }
}

/// Loads and checks watches.yaml.
///
/// `reconcilers` are the names registered with the manager, with the kinds they are for;
/// `override_types` is how `overrideValues` reach charts. Chart paths are relative to the working
/// directory, as operator-sdk has them, or else to the folder of the file.
///
/// # Errors
/// [`WatchesError`], with every wrong entry in one go.
pub fn load(
    path: &Path,
    reconcilers: &[(&str, GroupVersionKind)],
    override_types: OverrideTypes,
) -> Result<Vec<Watch>, WatchesError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| WatchesError::Read { path: path.to_owned(), source })?;
    parse(path, &text, Some(reconcilers), override_types)
}

/// The same for somebody who only looks at the charts: reconcilers need not be there.
///
/// # Errors
/// As [`load`].
pub fn load_charts(path: &Path, override_types: OverrideTypes) -> Result<Vec<Watch>, WatchesError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| WatchesError::Read { path: path.to_owned(), source })?;
    parse(path, &text, None, override_types)
}

fn parse(
    path: &Path,
    text: &str,
    reconcilers: Option<&[(&str, GroupVersionKind)]>,
    override_types: OverrideTypes,
) -> Result<Vec<Watch>, WatchesError> {
    let at = |line, message| Problem { path: path.to_owned(), line, message };
    let entries =
        read_entries(text).map_err(|(line, message)| WatchesError::Syntax(at(line, message)))?;
    let mut loader = Loader { path, reconcilers, override_types, charts: HashMap::new() };
    let mut seen: HashMap<GroupVersionKind, u64> = HashMap::new();
    let mut watches = Vec::new();
    let mut problems = Vec::new();
    for (line, entry) in entries {
        let read = RawWatch::read(entry).map_err(|error| vec![error]);
        match read.and_then(|(raw, unknown)| loader.entry(raw, &unknown)) {
            Ok(watch) => match seen.insert(watch.gvk.clone(), line) {
                Some(first) => problems.push(at(
                    line,
                    format!("duplicate GVK: {} (first on line {first})", describe(&watch.gvk)),
                )),
                None => watches.push(watch),
            },
            Err(messages) => problems.extend(messages.into_iter().map(|message| at(line, message))),
        }
    }
    share_kinds(&mut watches);
    if problems.is_empty() { Ok(watches) } else { Err(WatchesError::Entries(problems)) }
}

/// An entry and its line.
type Entry = (u64, Map<String, Value>);

/// The entries, as Go's YAML library reads them, each with its line.
fn read_entries(text: &str) -> Result<Vec<Entry>, (u64, String)> {
    if text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
        return Ok(Vec::new());
    }
    let wrong = |line, reason: &str| {
        (
            line,
            format!(
                "watches must be a list of entries with group, version, kind and chart or reconciler: {reason}"
            ),
        )
    };
    // Its errors are the better ones, and it knows the lines.
    let lines: Vec<Spanned<IgnoredAny>> = serde_saphyr::from_str(text).map_err(|error| {
        let line = error.location().map_or(1, |location| location.line());
        let reason = error.to_string();
        wrong(line, reason.lines().next().unwrap_or("not valid YAML"))
    })?;
    let entries: Vec<Value> = catamaran_yaml::from_str(text, Numbers::Exact)
        .map_err(|error| wrong(error.line() as u64, &error.message()))?;
    let lines = lines.iter().map(|entry| entry.referenced.line());
    let entry = |(line, entry)| match entry {
        Value::Object(fields) => Ok((line, fields)),
        _ => Err(wrong(line, "an entry must be a map")),
    };
    lines.zip(entries).map(entry).collect()
}

/// Group, version and kind in the form `group/version, Kind=kind`, as Go prints them.
pub(crate) fn describe(gvk: &GroupVersionKind) -> String {
    format!("{}/{}, Kind={}", gvk.group, gvk.version, gvk.kind)
}

struct Loader<'a> {
    path: &'a Path,
    /// Those that are registered; `None` if that does not matter.
    reconcilers: Option<&'a [(&'a str, GroupVersionKind)]>,
    override_types: OverrideTypes,
    /// Charts by path: two kinds may share one.
    charts: HashMap<String, Arc<CompiledChart>>,
}

impl Loader<'_> {
    /// Checks one entry; all that is wrong with it, in the order of the fields.
    fn entry(&mut self, raw: RawWatch, unknown: &[String]) -> Result<Watch, Vec<String>> {
        let mut wrong = Vec::new();
        let gvk = GroupVersionKind {
            group: raw.group.unwrap_or_default(),
            version: raw.version.unwrap_or_default(),
            kind: raw.kind.unwrap_or_default(),
        };
        for (field, value) in [("version", &gvk.version), ("kind", &gvk.kind)] {
            if value.is_empty() {
                wrong.push(format!("invalid GVK: {}: {field} must not be empty", describe(&gvk)));
            }
        }
        warn_unused(&gvk, unknown, raw.dry_run_option.as_deref());
        let raw_overrides = raw.override_values.unwrap_or_default();
        let environment = |name: &str| std::env::var(name).ok();
        let types = raw.override_value_types.unwrap_or(self.override_types);
        let overrides = note(&mut wrong, Overrides::read(&raw_overrides, types, environment));
        let isolation =
            isolation(raw.scope.as_deref(), raw.service_account_name, raw.reconciler.as_deref());
        let isolation = note(&mut wrong, isolation);
        let backend = note(&mut wrong, self.backend(&gvk, raw.chart, raw.reconciler));
        let selector = note(&mut wrong, raw.selector.map(selector).transpose());
        let period = note(&mut wrong, raw.reconcile_period.as_deref().map(period).transpose());
        let workers = note(&mut wrong, raw.max_concurrent_reconciles.map(workers).transpose());
        let rules = raw.ignore_drift.unwrap_or_default().into_iter().map(ignore).collect();
        let ignored = note(&mut wrong, rules);
        let crds = note(&mut wrong, raw.crds.as_deref().map_or(Ok(CrdPolicy::default()), policy));
        let full = note(&mut wrong, raw.record.as_deref().map_or(Ok(false), is_full));
        let ways = crds.zip(full).zip(isolation);
        match (backend, selector, period, workers, overrides, ignored, ways) {
            (
                Some(backend),
                Some(selector),
                Some(period),
                Some(max_concurrent_reconciles),
                Some(overrides),
                Some(ignored),
                Some(((crds, full_record), (scope, service_account))),
            ) if wrong.is_empty() => Ok(Watch {
                gvk,
                backend,
                selector: selector
                    .as_ref()
                    .map(ToString::to_string)
                    .filter(|text| !text.is_empty()),
                earlier: Vec::new(),
                matches: selector.unwrap_or_default(),
                reconcile_period: period.filter(|period| !period.is_zero()),
                max_concurrent_reconciles,
                watch_dependent_resources: raw.watch_dependent_resources.unwrap_or(true),
                overrides,
                ignored,
                crds,
                full_record,
                storage_namespace: raw.storage_namespace.filter(|name| !name.is_empty()),
                scope,
                service_account,
                setup: ChartKindConfig {
                    failure_rollbacks: raw.failure_rollbacks.unwrap_or(true),
                    ..ChartKindConfig::default()
                },
            }),
            _ => Err(wrong),
        }
    }

    fn backend(
        &mut self,
        gvk: &GroupVersionKind,
        chart: Option<String>,
        reconciler: Option<String>,
    ) -> Result<KindBackend, String> {
        match (chart, reconciler) {
            (Some(chart), None) => self.chart(&chart).map(KindBackend::Chart),
            (None, Some(name)) => self.reconciler(gvk, name).map(KindBackend::Reconciler),
            (Some(_), Some(_)) => {
                Err("an entry has either chart or reconciler, this one has both".to_owned())
            }
            (None, None) => {
                Err("an entry needs chart or reconciler, this one has neither".to_owned())
            }
        }
    }

    fn reconciler(&self, gvk: &GroupVersionKind, name: String) -> Result<String, String> {
        let Some(reconcilers) = self.reconcilers else { return Ok(name) };
        match reconcilers.iter().find(|(registered, _)| *registered == name) {
            Some((_, of)) if of == gvk => Ok(name),
            Some((_, of)) => {
                Err(format!("reconciler {name:?} is for {}, not {}", describe(of), describe(gvk)))
            }
            None if reconcilers.is_empty() => Err(format!(
                "unknown reconciler {name:?}: this program has none (`catamaran run` carries charts only)"
            )),
            None => {
                let names: Vec<&str> = reconcilers.iter().map(|(name, _)| *name).collect();
                Err(format!("unknown reconciler {name:?}: main.rs registers {}", names.join(", ")))
            }
        }
    }

    fn chart(&mut self, name: &str) -> Result<Arc<CompiledChart>, String> {
        if let Some(chart) = self.charts.get(name) {
            return Ok(chart.clone());
        }
        if name.is_empty() {
            return Err("chart must not be empty".to_owned());
        }
        // The projects of before 1.0 name their charts by where they are in the image.
        let named = name.strip_prefix("/opt/helm/").unwrap_or(name);
        let beside = self.path.parent().map(|folder| folder.join(named));
        let path = match beside {
            Some(beside) if !Path::new(name).exists() && beside.exists() => beside,
            _ => PathBuf::from(name),
        };
        let chart = Arc::new(compile(&path)?);
        self.charts.insert(name.to_owned(), chart.clone());
        Ok(chart)
    }
}

/// Loads a chart.
pub(crate) fn compile(path: &Path) -> Result<CompiledChart, String> {
    let chart = Chart::load(path)
        .map_err(|error| format!("invalid chart directory {}: {error}", path.display()))?;
    let missing = chart.missing_dependencies().join(", ");
    if !missing.is_empty() {
        let chart = path.display();
        tracing::warn!(%chart, missing, "dependencies of Chart.yaml are not in charts/: going on without them, as helm-operator does; `helm dependency build` fetches them");
    }
    let mut elsewhere = BTreeSet::new();
    let chart = chart.without_schemas_elsewhere(&mut elsewhere);
    for document in elsewhere {
        let chart = path.display();
        tracing::warn!(%chart, document, "values.schema.json refers to a document on another server, which is not fetched: what it says is not checked");
    }
    let chart = chart
        .compile_incomplete()
        .map_err(|error| format!("invalid chart {}: {error}", path.display()))?;
    // A template that cannot be parsed is told now, not by every resource.
    chart
        .check(Profile::Helm318)
        .map_err(|error| format!("invalid chart {}: {error}", path.display()))?;
    Ok(chart)
}

fn note<T>(wrong: &mut Vec<String>, result: Result<T, String>) -> Option<T> {
    result.map_err(|message| wrong.push(message)).ok()
}

/// Says what of an entry means nothing here.
fn warn_unused(gvk: &GroupVersionKind, unknown: &[String], dry_run: Option<&str>) {
    let kind = gvk.kind.as_str();
    for field in unknown {
        tracing::warn!(kind, field, "field of watches.yaml is not known and ignored");
    }
    // helm's words; what operator-sdk does with others is to upgrade for real.
    let known = ["", "none", "false", "true", "client", "server"];
    if let Some(option) = dry_run.filter(|option| !known.contains(option)) {
        tracing::warn!(kind, option, "dryRunOption is not known and ignored");
    }
}

fn workers(number: i64) -> Result<usize, String> {
    let number = usize::try_from(number).ok().filter(|number| *number > 0);
    number.ok_or_else(|| "invalid maxConcurrentReconciles: it must be at least 1".to_owned())
}

fn period(text: &str) -> Result<Duration, String> {
    duration(text).map_err(|error| format!("invalid reconcilePeriod: {error}"))
}

fn is_full(text: &str) -> Result<bool, String> {
    match text {
        "full" => Ok(true),
        "slim" => Ok(false),
        other => Err(format!("invalid record: {other:?} is none of slim, full")),
    }
}

fn policy(text: &str) -> Result<CrdPolicy, String> {
    text.parse().map_err(|error| format!("invalid crds: {error}"))
}

fn selector(
    selector: k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector,
) -> Result<Selector, String> {
    Selector::try_from(selector).map_err(|error| format!("invalid selector: {error}"))
}

/// Several versions of a kind are the same resources, and each resource is carried by one entry: the
/// first that selects it. In which version its values are read is that entry's to say; the API server
/// converts.
pub(crate) fn share_kinds(watches: &mut Vec<Watch>) {
    let mut kinds: HashMap<(String, String), Vec<Selector>> = HashMap::new();
    watches.retain_mut(|watch| {
        let kind = (watch.gvk.group.clone(), watch.gvk.kind.clone());
        let earlier = kinds.entry(kind).or_default();
        if earlier.iter().any(Selector::selects_all) {
            let gvk = describe(&watch.gvk);
            tracing::warn!(
                gvk,
                "an earlier entry carries all resources of this kind, whatever their version"
            );
            return false;
        }
        watch.earlier.clone_from(earlier);
        earlier.push(watch.matches.clone());
        true
    });
}

fn ignore(raw: RawIgnore) -> Result<IgnoreRule, String> {
    let selector = raw.selector.map(Selector::try_from).transpose();
    let selector = selector.map_err(|error| format!("invalid ignoreDrift: selector: {error}"))?;
    let when = raw.when.as_deref().map(Program::read).transpose();
    let when = when.map_err(|error| format!("invalid ignoreDrift: when: {error}"))?;
    if raw.paths.is_empty() && when.is_none() {
        return Err("invalid ignoreDrift: a rule needs paths, such as [/spec/replicas]".to_owned());
    }
    if let Some(path) = raw.paths.iter().find(|path| !path.is_empty() && !path.starts_with('/')) {
        return Err(format!("invalid ignoreDrift: {path:?} is no JSON pointer: it begins with /"));
    }
    let (group, kind, name) = (raw.group, raw.kind, raw.name);
    let (selector, when) = (selector.unwrap_or_default(), when.map(Arc::new));
    Ok(IgnoreRule { group, kind, name, selector, paths: raw.paths, when })
}

#[cfg(test)]
mod tests;
