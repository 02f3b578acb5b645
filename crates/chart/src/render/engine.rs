//! Runs the templates of a chart and of the charts in it.

use std::collections::BTreeMap;
use std::sync::Arc;

use catamaran_gotemplate::{Ctx, Heap, Type, Value};

use super::cache::Cache;
use super::functions::{LOOKUP, State, without_no_value};
use super::templates::{Ahead, Source, Templates};
use super::{RenderInput, Trace, errors, hbs, objects, values_type};
use crate::notice::Notice;
use crate::values::{self, Node, Prepared, Wanted};
use crate::{Chart, Crd, ManifestError, PostRenderers, Profile, RenderError, Rendered, gojson};

const NOTES: &str = "NOTES.txt";

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

/// Helm's install up to the point where a cluster would be asked; `None` if a template has looked at
/// a file that is unread.
pub(super) fn render(
    chart: &Chart,
    cache: &Cache,
    steps: &PostRenderers,
    input: &RenderInput<'_>,
) -> Result<Option<Rendered>, RenderError> {
    let api_version = chart.metadata.api_version.as_str();
    if input.profile == Profile::Helm43 && !matches!(api_version, "v1" | "v2") {
        return Err(RenderError::ApiVersion(api_version.to_owned()));
    }
    let mut ctx = Ctx::new(input.budget, input.clock, input.seed);
    let (given, profile, room) = (input.values, input.profile, input.budget.memory);
    let wanted = Wanted { given, profile, room };
    let prepare = || cache.values.prepare(chart, &cache.defaults, &cache.schemas, &wanted);
    let (ahead, prepared) = if cache.is_fresh() {
        Ahead::beside(chart, profile, prepare)
    } else {
        (Ahead::default(), prepare())
    };
    let (heap, prepared) = prepared?;
    ctx.heap = heap;
    check_kube_version(chart, input)?;
    let state = State::new(input.lookups.clone());
    let files = run_all(&mut ctx, &prepared, cache, ahead, input, state);
    if ctx.heap.is_touched() {
        // Whatever came of it.
        return Ok(None);
    }
    let files = files?;
    let drawn = catamaran_sprig::drawn(&ctx);
    // Values and output together would be more than either.
    drop(ctx);
    Ok(Some(Rendered { drawn, ..finish(files, &prepared, steps, input.profile)? }))
}

/// What Helm logs of values before it renders, in the end why it does not.
pub(super) fn warnings(chart: &Chart, cache: &Cache, input: &RenderInput<'_>) -> Vec<String> {
    let (given, profile, room) = (input.values, input.profile, input.budget.memory);
    let (mut heap, mut warnings) = (Heap::new(), Vec::new());
    let noticed = &mut warnings;
    let error =
        match values::prepare(&mut heap, chart, &cache.defaults, given, profile, room, noticed) {
            Ok(prepared) => return prepared.warnings,
            Err(error) => error.text(profile),
        };
    let why =
        error.strip_prefix(values::DEPENDENCIES_FAILED).and_then(|why| why.strip_prefix(": "));
    if let Some(why) = why {
        let attributes = &[("error", why)];
        let message = values::DEPENDENCIES_FAILED;
        warnings
            .push(Notice { level: "ERROR", message, attributes, helm3: ("", "") }.line(profile));
    }
    warnings
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
    let (given, room) = (input.values, input.budget.memory);
    let (defaults, mut noticed) = (&cache.defaults, Vec::new());
    let noticed = &mut noticed;
    let prepared =
        values::prepare(&mut ctx.heap, chart, defaults, given, input.profile, room, noticed);
    notes.append(noticed);
    let Ok(mut prepared) = prepared else { return Ok(None) };
    // Helm's linter merges twice, which a null among the defaults does not survive.
    let merged = values::merge_again(&mut ctx.heap, &mut prepared, input.profile, room);
    notes.append(&mut prepared.warnings);
    if merged.is_err() {
        return Ok(None);
    }
    values::validate(&ctx.heap, &cache.schemas, &prepared, input.profile)?;
    let (ahead, state) = (Ahead::default(), State::for_lint(input.profile));
    let files = run_all(&mut ctx, &prepared, &cache, ahead, input, state);
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
    ahead: Ahead,
    input: &RenderInput<'_>,
    state: State,
) -> Result<BTreeMap<String, String>, RenderError> {
    let collected = collect(ctx, prepared, cache, input)?;
    // What templates make from now on goes as soon as they have forgotten it.
    ctx.heap.seal();
    ctx.check_memory().map_err(|error| errors::values(&prepared.root.name, &error))?;
    let set = cache.set(&collected.sources, input.profile, ahead)?;
    ctx.extend(state.with(set.clone()));
    let mut files = BTreeMap::new();
    for source in &collected.sources {
        if !crate::manifest::base_name(&source.name).starts_with('_') {
            let text = run(ctx, &set, source, &collected, input.profile)?;
            files.insert(source.output_name().to_owned(), text);
        }
    }
    Ok(files)
}

fn check_kube_version(chart: &Chart, input: &RenderInput<'_>) -> Result<(), RenderError> {
    let constraint = &chart.metadata.kube_version;
    let kube_version = &input.capabilities.kube_version;
    let shown = kube_version.shown();
    if constraint.is_empty() || values::compatible(constraint, shown, input.profile) {
        return Ok(());
    }
    let version = &kube_version.version;
    Err(RenderError::KubeVersion { constraint: constraint.clone(), version: version.clone() })
}

/// Templates in Helm's order of parsing and running: the deepest path first,
/// within one depth backwards. The last definition of a name wins.
fn collect<'c>(
    ctx: &mut Ctx,
    prepared: &Prepared<'c>,
    cache: &Cache,
    input: &RenderInput<'_>,
) -> Result<Collected<'c>, RenderError> {
    let mut collected = Collected::default();
    let shared = Shared {
        release: objects::release(&mut ctx.heap, input.release),
        capabilities: objects::capabilities(&mut ctx.heap, input.capabilities, input.profile),
        cache,
        profile: input.profile,
    };
    let root = typed_values(ctx, prepared.values, input.profile);
    add_chart(ctx, &shared, &prepared.root, None, &root, &mut collected)?;
    // A template may be there twice (in an archive, or of a chart by its name and by an alias): the
    // last one counts, which the stable order puts first.
    collected.sources.reverse();
    collected.sources.sort_by(|a, b| (b.depth, &b.name).cmp(&(a.depth, &a.name)));
    collected.sources.dedup_by(|a, b| a.name == b.name);
    Ok(collected)
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
) -> Result<Value, RenderError> {
    let path = path_of(node, parent);
    let heap = &mut ctx.heap;
    let subcharts = heap.new_map();
    let data = heap.new_map_of(values_type::type_of(shared.profile));
    let files = shared.cache.files_of(node.chart);
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
        let inner = add_chart(ctx, shared, child, Some(&path), &Value::Map(own), collected)?;
        ctx.heap.set(subcharts, child.name.as_str(), inner);
    }
    add_sources(node, &path, data, collected)?;
    Ok(Value::Map(data))
}

fn add_sources<'c>(
    node: &Node<'c>,
    path: &str,
    data: catamaran_gotemplate::Map,
    collected: &mut Collected<'c>,
) -> Result<(), RenderError> {
    let scope = collected.scopes.len();
    let mode = hbs::Mode::of(&node.chart.metadata)?;
    let chart: Arc<str> = path.into();
    collected.scopes.push(Scope { data, base_path: format!("{path}/templates") });
    let library = node.chart.is_library();
    let lends = |name: &str| !library || crate::manifest::base_name(name).starts_with('_');
    let depth = |name: &str| name.bytes().filter(|byte| *byte == b'/').count();
    let above = depth(path) + 1;
    collected.sources.extend(node.chart.templates.iter().filter(|f| lends(&f.name)).map(|file| {
        Source {
            depth: above + depth(&file.name),
            name: format!("{path}/{}", file.name),
            text: &file.data,
            data: scope,
            chart: chart.clone(),
            chart_name: node.chart.name(),
            mode: if mode.takes(&file.name) { mode } else { hbs::Mode::Off },
        }
    }));
    Ok(())
}

fn run(
    ctx: &mut Ctx,
    set: &Templates,
    source: &Source<'_>,
    collected: &Collected<'_>,
    profile: Profile,
) -> Result<String, RenderError> {
    let Some(scope) = collected.scopes.get(source.data) else { return Ok(String::new()) };
    let template = ctx.heap.new_map_of(values_type::type_of(profile));
    ctx.heap.set(template, "Name", source.output_name());
    ctx.heap.set(template, "BasePath", scope.base_path.as_str());
    ctx.heap.set(scope.data, "Template", template);
    State::enter_chart(ctx, source.chart.as_ref().into());
    catamaran_sprig::enter_template(ctx, &source.name);
    let output = set.execute(ctx, source, &Value::Map(scope.data));
    let output = output.map_err(|error| {
        let needs = ctx.extension_mut::<State>().map(|state| std::mem::take(&mut state.needs));
        match needs {
            Some(needs) if error.tag() == Some(LOOKUP) => RenderError::Needs(needs),
            _ => {
                let trace = trace(ctx, &error, source, scope, collected);
                errors::execute(&source.name, &error, profile, trace)
            }
        }
    })?;
    utf8(without_no_value(output), &source.name)
}

/// The error for people.
fn trace(
    ctx: &Ctx,
    error: &catamaran_gotemplate::Error,
    source: &Source<'_>,
    scope: &Scope,
    collected: &Collected<'_>,
) -> Trace {
    let text_of = |file: &str| {
        collected.sources.iter().find(|source| source.name == file).map(|source| &**source.text)
    };
    let mut trace = Trace::of(error, text_of);
    // `parent/charts/sub` has its values under `sub` in the parent's.
    let subcharts: Vec<&str> = source.chart.split("/charts/").skip(1).collect();
    let prefix = subcharts.iter().fold(String::new(), |path, chart| path + chart + ".");
    if let Some(values) = ctx.heap.get(scope.data, "Values").and_then(Value::as_map) {
        trace.find_missing(&ctx.heap, values, &prefix);
    }
    trace
}

fn utf8(text: Vec<u8>, file: &str) -> Result<String, RenderError> {
    match String::from_utf8(text) {
        Ok(text) => Ok(text),
        Err(error) if file.ends_with(NOTES) => {
            Ok(String::from_utf8_lossy(error.as_bytes()).into_owned())
        }
        Err(error) => {
            let message = gojson::utf8(error.as_bytes()).err().unwrap_or_default();
            let file = file.to_owned();
            Err(RenderError::Manifest(ManifestError { file, message, ..ManifestError::default() }))
        }
    }
}

/// Takes the notes out, and the rest apart.
fn finish(
    mut files: BTreeMap<String, String>,
    prepared: &Prepared<'_>,
    steps: &PostRenderers,
    profile: Profile,
) -> Result<Rendered, RenderError> {
    let notes = files.remove(&format!("{}/templates/{NOTES}", prepared.root.name));
    let mut subchart_notes = Vec::new();
    files.retain(|name, text| {
        let is_notes = name.ends_with(NOTES);
        if is_notes {
            subchart_notes.push(std::mem::take(text));
        }
        !is_notes
    });
    let mut rendered = steps.apply(&files, profile).map_err(|error| match error {
        RenderError::Manifest(error) => {
            RenderError::Manifest(ManifestError { rendered: Arc::new(files), ..error })
        }
        other => other,
    })?;
    rendered.notes = notes.unwrap_or_default();
    rendered.subchart_notes = subchart_notes;
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
    let Some(parent) = parent else { return node.name.clone() };
    match (&node.parent_before_alias, parent.rsplit_once('/')) {
        (Some(name), Some((above, _))) => format!("{above}/{name}/charts/{}", node.name),
        _ => format!("{parent}/charts/{}", node.name),
    }
}

/// Parses the templates of all charts, as if every one took part.
pub(super) fn check(chart: &Chart, cache: &Cache, profile: Profile) -> Result<(), RenderError> {
    let mut ctx = Ctx::new(super::Budget::default(), std::time::UNIX_EPOCH, 0_u64);
    let mut collected = Collected::default();
    let root =
        Node::new(&mut ctx.heap, chart, &cache.defaults, false).map_err(RenderError::Values)?;
    every_source(&root, None, ctx.heap.new_map_of(Type::MAP), &mut collected)?;
    collected.sources.sort_by(|a, b| (b.depth, &b.name).cmp(&(a.depth, &a.name)));
    cache.set(&collected.sources, profile, Ahead::default()).map(|_| ())
}

fn every_source<'c>(
    node: &Node<'c>,
    parent: Option<&str>,
    data: catamaran_gotemplate::Map,
    collected: &mut Collected<'c>,
) -> Result<(), RenderError> {
    let path = path_of(node, parent);
    for child in &node.children {
        every_source(child, Some(&path), data, collected)?;
    }
    add_sources(node, &path, data, collected)
}
