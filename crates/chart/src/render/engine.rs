//! Runs the templates of a chart and of the charts in it.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use catamaran_gotemplate::{Ctx, MissingKey, Str, TemplateSet, Type, Value};

use super::files::Files;
use super::functions::{self, LOOKUP, State, without_no_value};
use super::{RenderInput, errors, objects, values_type};
use crate::values::{self, Node, Prepared};
use crate::{Chart, Crd, ManifestError, Profile, RenderError, Rendered};

const NOTES: &str = "NOTES.txt";

type Sets = HashMap<(Profile, Vec<String>), Arc<TemplateSet>>;

/// What is kept of a chart between renderings.
#[derive(Debug, Default)]
pub(super) struct Cache {
    /// By profile, and by the charts that take part: conditions and aliases
    /// change which templates there are, and their names.
    sets: Mutex<Sets>,
    /// `.Files` of each chart, by its address in the tree.
    files: HashMap<usize, Files>,
}

/// More than any chart's conditions bring about in practice; beyond, sets are not kept.
const MAX_SETS: usize = 32;

impl Cache {
    pub(super) fn of(chart: &Chart) -> Self {
        let mut cache = Self::default();
        cache.add_files(chart);
        cache
    }

    fn add_files(&mut self, chart: &Chart) {
        self.files.insert(address(chart), Files::of(chart));
        chart.dependencies.iter().for_each(|child| self.add_files(child));
    }

    /// The compiled templates of the charts that take part.
    fn set(
        &self,
        sources: &[Source<'_>],
        profile: Profile,
    ) -> Result<Arc<TemplateSet>, RenderError> {
        let names = sources.iter().map(|source| source.name.clone()).collect();
        let key = (profile, names);
        if let Some(set) = self.lock().get(&key) {
            return Ok(set.clone());
        }
        let mut set = TemplateSet::new(functions::registry(profile), MissingKey::Zero);
        for source in sources {
            let parsed = set.parse(&source.name, source.text);
            parsed.map_err(|error| errors::parse(&source.name, &error))?;
        }
        let set = Arc::new(set);
        let mut sets = self.lock();
        if sets.len() < MAX_SETS {
            sets.insert(key, set.clone());
        }
        Ok(set)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Sets> {
        // Nothing can be half done under this lock.
        self.sets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A chart does not move: it lies behind an `Arc`.
fn address(chart: &Chart) -> usize {
    std::ptr::from_ref(chart).addr()
}

/// A template file of a chart that takes part.
struct Source<'c> {
    /// `parent/charts/sub/templates/a.yaml`
    name: String,
    text: &'c [u8],
    /// The chart's data, `.`.
    data: usize,
}

/// Data of one chart.
struct Scope {
    data: catamaran_gotemplate::Map,
    /// `parent/charts/sub/templates`
    base_path: String,
}

#[derive(Default)]
struct Collected<'c> {
    sources: Vec<Source<'c>>,
    scopes: Vec<Scope>,
}

/// Helm's install up to the point where a cluster would be asked.
pub(super) fn render(
    chart: &Chart,
    cache: &Cache,
    input: &RenderInput<'_>,
) -> Result<Rendered, RenderError> {
    let mut ctx = Ctx::new(input.budget, input.clock, input.seed);
    let prepared = values::prepare(&mut ctx.heap, chart, input.values, input.profile)?;
    values::validate(&ctx.heap, &prepared)?;
    check_kube_version(chart, input)?;
    ctx.extend(State::new(input.lookups.clone()));
    let files = run_all(&mut ctx, &prepared, cache, input)?;
    finish(files, &prepared, input.profile)
}

/// Helm's rendering for its linter: what `fail` and `required` say is no fault but a note, and
/// neither the kind of the chart nor its `kubeVersion` matters. `None` if the values cannot be
/// merged, about which Helm's linter says nothing.
pub(crate) fn render_for_lint(
    chart: &Chart,
    input: &RenderInput<'_>,
    notes: &mut Vec<String>,
) -> Result<Option<BTreeMap<String, String>>, RenderError> {
    let cache = Cache::of(chart);
    let mut ctx = Ctx::new(input.budget, input.clock, input.seed);
    let prepared = values::prepare(&mut ctx.heap, chart, input.values, input.profile);
    let Ok(prepared) = prepared else { return Ok(None) };
    values::validate(&ctx.heap, &prepared)?;
    ctx.extend(State::for_lint());
    let files = run_all(&mut ctx, &prepared, &cache, input);
    if let Some(state) = ctx.extension_mut::<State>() {
        notes.append(&mut state.notes);
    }
    files.map(Some)
}

/// All files that are rendered, by name.
fn run_all(
    ctx: &mut Ctx,
    prepared: &Prepared<'_>,
    cache: &Cache,
    input: &RenderInput<'_>,
) -> Result<BTreeMap<String, String>, RenderError> {
    let collected = collect(ctx, prepared, cache, input);
    let set = cache.set(&collected.sources, input.profile)?;
    let mut files = BTreeMap::new();
    for source in &collected.sources {
        if !crate::manifest::base_name(&source.name).starts_with('_') {
            let text = run(ctx, &set, source, &collected.scopes, input.profile)?;
            files.insert(source.name.clone(), text);
        }
    }
    Ok(files)
}

fn check_kube_version(chart: &Chart, input: &RenderInput<'_>) -> Result<(), RenderError> {
    let constraint = &chart.metadata.kube_version;
    let version = &input.capabilities.kube_version.version;
    if constraint.is_empty() || values::compatible(constraint, version) {
        return Ok(());
    }
    Err(RenderError::KubeVersion { constraint: constraint.clone(), version: version.clone() })
}

/// Templates in Helm's order of parsing and running: the deepest path first,
/// within one depth backwards. The last definition of a name wins.
fn collect<'c>(
    ctx: &mut Ctx,
    prepared: &Prepared<'c>,
    cache: &Cache,
    input: &RenderInput<'_>,
) -> Collected<'c> {
    let mut collected = Collected::default();
    let shared = Shared {
        release: objects::release(&mut ctx.heap, input.release),
        capabilities: objects::capabilities(&mut ctx.heap, input.capabilities, input.profile),
        cache,
        profile: input.profile,
    };
    let root = typed_values(ctx, prepared.values, input.profile);
    add_chart(ctx, &shared, &prepared.root, None, &root, &mut collected);
    let depth = |source: &Source<'_>| source.name.matches('/').count();
    collected.sources.sort_by(|a, b| (depth(b), &b.name).cmp(&(depth(a), &a.name)));
    // One template may have been named twice (a chart by its name and by an alias).
    collected.sources.dedup_by(|a, b| a.name == b.name);
    collected
}

/// What all charts of a rendering share.
struct Shared<'a> {
    release: Value,
    capabilities: Value,
    cache: &'a Cache,
    profile: Profile,
}

/// The root's values under Helm's own type; nested tables are not copied.
fn typed_values(ctx: &mut Ctx, values: catamaran_gotemplate::Map, profile: Profile) -> Value {
    let typed = ctx.heap.new_map_of(values_type::type_of(profile));
    for (key, value) in values::tables::entries(&ctx.heap, values) {
        ctx.heap.set(typed, key, value);
    }
    Value::Map(typed)
}

/// Builds a chart's data and those of the charts in it; returns it.
fn add_chart<'c>(
    ctx: &mut Ctx,
    shared: &Shared<'_>,
    node: &Node<'c>,
    parent: Option<&str>,
    values: &Value,
    collected: &mut Collected<'c>,
) -> Value {
    let path = path_of(node, parent);
    let heap = &mut ctx.heap;
    let subcharts = heap.new_map();
    let data = heap.new_map_of(values_type::type_of(shared.profile));
    let files = shared.cache.files.get(&address(node.chart)).cloned().unwrap_or_default();
    let chart = objects::chart(heap, node, parent.is_none(), shared.profile);
    let files = files.value(heap, shared.profile);
    for (key, value) in [
        ("Chart", chart),
        ("Files", files),
        ("Release", shared.release.clone()),
        ("Capabilities", shared.capabilities.clone()),
        ("Values", values.clone()),
        ("Subcharts", Value::Map(subcharts)),
    ] {
        heap.set(data, key, value);
    }
    for child in &node.children {
        // A subchart's values are the very table under its name in the parent's.
        let own = values.as_map().and_then(|map| ctx.heap.get(map, child.name.as_str()));
        let own = own.and_then(Value::as_map).unwrap_or_else(|| ctx.heap.new_map());
        let inner = add_chart(ctx, shared, child, Some(&path), &Value::Map(own), collected);
        ctx.heap.set(subcharts, child.name.as_str(), inner);
    }
    add_sources(node, &path, data, collected);
    Value::Map(data)
}

fn add_sources<'c>(
    node: &Node<'c>,
    path: &str,
    data: catamaran_gotemplate::Map,
    collected: &mut Collected<'c>,
) {
    let scope = collected.scopes.len();
    collected.scopes.push(Scope { data, base_path: format!("{path}/templates") });
    let library = node.chart.is_library();
    let lends = |name: &str| !library || crate::manifest::base_name(name).starts_with('_');
    collected.sources.extend(node.chart.templates.iter().filter(|f| lends(&f.name)).map(|file| {
        Source { name: format!("{path}/{}", file.name), text: &file.data, data: scope }
    }));
}

fn run(
    ctx: &mut Ctx,
    set: &TemplateSet,
    source: &Source<'_>,
    scopes: &[Scope],
    profile: Profile,
) -> Result<String, RenderError> {
    let Some(scope) = scopes.get(source.data) else { return Ok(String::new()) };
    let template = ctx.heap.new_map_of(values_type::type_of(profile));
    ctx.heap.set(template, "Name", source.name.as_str());
    ctx.heap.set(template, "BasePath", scope.base_path.as_str());
    ctx.heap.set(scope.data, "Template", template);
    let output = set.execute(ctx, &source.name, &Value::Map(scope.data));
    let output = output.map_err(|error| {
        let needs = ctx.extension_mut::<State>().map(|state| std::mem::take(&mut state.needs));
        match needs {
            Some(needs) if error.tag() == Some(LOOKUP) => RenderError::Needs(needs),
            _ => errors::execute(&source.name, &error, profile),
        }
    })?;
    utf8(&without_no_value(output), &source.name)
}

fn utf8(text: &Str, file: &str) -> Result<String, RenderError> {
    match text.as_str() {
        Some(text) => Ok(text.to_owned()),
        None if file.ends_with(NOTES) => Ok(text.to_str_lossy().into_owned()),
        None => Err(RenderError::Manifest(ManifestError {
            file: file.to_owned(),
            message: "error converting YAML to JSON: yaml: invalid UTF-8".into(),
            ..ManifestError::default()
        })),
    }
}

/// Takes the notes out, and the rest apart.
fn finish(
    mut files: BTreeMap<String, String>,
    prepared: &Prepared<'_>,
    profile: Profile,
) -> Result<Rendered, RenderError> {
    let notes = files.remove(&format!("{}/templates/{NOTES}", prepared.root.name));
    files.retain(|name, _| !name.ends_with(NOTES));
    let rendered = Rendered::from_files(&files, profile);
    let mut rendered =
        rendered.map_err(|error| ManifestError { rendered: Arc::new(files), ..error })?;
    rendered.notes = notes.unwrap_or_default();
    add_crds(&prepared.root, None, &mut rendered.crds);
    let mut warnings = prepared.warnings.clone();
    warnings.append(&mut rendered.warnings);
    rendered.warnings = warnings;
    Ok(rendered)
}

/// The CRDs of the charts that take part, parents first.
fn add_crds(node: &Node<'_>, parent: Option<&str>, found: &mut Vec<Crd>) {
    let path = path_of(node, parent);
    node.chart.own_crds(&path, found);
    node.children.iter().for_each(|child| add_crds(child, Some(&path), found));
}

/// `parent/charts/sub`
fn path_of(node: &Node<'_>, parent: Option<&str>) -> String {
    parent.map_or_else(|| node.name.clone(), |p| format!("{p}/charts/{}", node.name))
}

/// Parses the templates of all charts, as if every one took part.
pub(super) fn check(chart: &Chart, cache: &Cache, profile: Profile) -> Result<(), RenderError> {
    let mut ctx = Ctx::new(super::Budget::default(), std::time::UNIX_EPOCH, 0);
    let mut collected = Collected::default();
    let root = Node::new(&mut ctx.heap, chart, false).map_err(RenderError::Values)?;
    every_source(&root, None, ctx.heap.new_map_of(Type::MAP), &mut collected);
    let depth = |source: &Source<'_>| source.name.matches('/').count();
    collected.sources.sort_by(|a, b| (depth(b), &b.name).cmp(&(depth(a), &a.name)));
    cache.set(&collected.sources, profile).map(|_| ())
}

fn every_source<'c>(
    node: &Node<'c>,
    parent: Option<&str>,
    data: catamaran_gotemplate::Map,
    collected: &mut Collected<'c>,
) {
    let path = path_of(node, parent);
    for child in &node.children {
        every_source(child, Some(&path), data, collected);
    }
    add_sources(node, &path, data, collected);
}
