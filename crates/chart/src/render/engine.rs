//! Runs the templates of a chart and of the charts in it.

use std::collections::BTreeMap;
use std::sync::Arc;

use catamaran_gotemplate::{Ctx, Heap, Value};

use super::cache::Cache;
use super::functions::{LOOKUP, State, without_no_value};
use super::templates::{Ahead, Source, Templates};
use super::{RenderInput, Trace, data, errors, hbs, objects};
use crate::log_line::LogLine;
use crate::manifest::KnownHeads;
use crate::values::{self, ChartData, Node, Prepared, Wanted};
use crate::{Chart, Crd, ManifestError, PostRenderers, Profile, RenderError, Rendered, gojson};

const NOTES: &str = "NOTES.txt";

#[derive(Default)]
struct Collected<'c> {
    sources: Vec<Source<'c>>,
    scopes: Vec<ChartData>,
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
    let build =
        |heap: &mut Heap, prepared: &Prepared<'_>| data::build(heap, prepared, cache, profile);
    let (defaults, schemas) = (&cache.defaults, &cache.schemas);
    let prepare = || cache.values.prepare(chart, defaults, schemas, &wanted, build);
    let again = !cache.is_fresh();
    let (ahead, prepared) =
        if again { (Ahead::default(), prepare()) } else { Ahead::beside(chart, profile, prepare) };
    let (heap, prepared) = prepared?;
    ctx.heap = heap;
    if let Some(overrides) = input.random_overrides {
        catamaran_sprig::override_random(&mut ctx, overrides.clone());
    }
    check_kube_version(chart, input)?;
    let state = State::new(input.lookups.clone());
    let files = run_all(&mut ctx, &prepared, cache, ahead, input, state);
    if ctx.heap.is_touched() {
        // Whatever came of it.
        return Ok(None);
    }
    let files = files?;
    let drawn = catamaran_sprig::drawn(&ctx);
    let random_texts = catamaran_sprig::random_texts(&mut ctx);
    // Values and output together would be more than either.
    drop(ctx);
    let known = again.then_some(&cache.heads);
    let rendered = finish(files, &prepared, steps, input.profile, known)?;
    Ok(Some(Rendered { drawn, random_texts, ..rendered }))
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
            .push(LogLine { level: "ERROR", message, attributes, helm3: ("", "") }.line(profile));
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
    prepared.data = data::build(&mut ctx.heap, &prepared, &cache, input.profile);
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
    let collected = collect(ctx, prepared, input)?;
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
    input: &RenderInput<'_>,
) -> Result<Collected<'c>, RenderError> {
    let mut collected = Collected::default();
    let release = objects::release(&mut ctx.heap, input.release);
    let capabilities = objects::capabilities(&mut ctx.heap, input.capabilities, input.profile);
    data::complete(&mut ctx.heap, &prepared.data, &release, &capabilities);
    let data = &mut prepared.data.iter().cloned();
    add_chart(&prepared.root, None, data, &mut collected)?;
    // A template may be there twice (in an archive, or of a chart by its name and by an alias): the
    // last one counts, which the stable order puts first.
    collected.sources.reverse();
    collected.sources.sort_by(|a, b| (b.depth, &b.name).cmp(&(a.depth, &a.name)));
    collected.sources.dedup_by(|a, b| a.name == b.name);
    Ok(collected)
}

/// Adds the sources of a chart after those of the charts in it.
fn add_chart<'c>(
    node: &Node<'c>,
    parent: Option<&str>,
    data: &mut impl Iterator<Item = ChartData>,
    collected: &mut Collected<'c>,
) -> Result<(), RenderError> {
    let path = node.path(parent);
    // Built in the same order, for all of them.
    let Some(own) = data.next() else { return Ok(()) };
    for child in &node.children {
        add_chart(child, Some(&path), data, collected)?;
    }
    add_sources(node, &path, own, collected)
}

fn add_sources<'c>(
    node: &Node<'c>,
    path: &str,
    data: ChartData,
    collected: &mut Collected<'c>,
) -> Result<(), RenderError> {
    let scope = collected.scopes.len();
    let mode = hbs::Mode::of(&node.chart.metadata)?;
    let chart: Arc<str> = path.into();
    collected.scopes.push(data);
    let library = node.chart.is_library();
    let lends = |name: &str| !library || crate::manifest::base_name(name).starts_with('_');
    let depth = |name: &str| name.bytes().filter(|byte| *byte == b'/').count();
    let above = depth(path) + 1;
    collected.sources.extend(node.chart.templates.iter().filter(|f| lends(&f.name)).map(|file| {
        Source {
            depth: above + depth(&file.name),
            name: [path, "/", &file.name].concat(),
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
    data::enter_file(&mut ctx.heap, scope, source.output_name(), profile);
    State::enter_chart(ctx, Arc::<[u8]>::from(source.chart.clone()).into());
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
    scope: &ChartData,
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
    known: Option<&KnownHeads>,
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
    let mut rendered = steps.apply(&files, profile, known).map_err(|error| match error {
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
    let path = node.path(parent);
    node.chart.own_crds(&path, found);
    node.children.iter().for_each(|child| add_crds(child, Some(&path), found));
}

/// Parses the templates of all charts, as if every one took part.
pub(super) fn check(chart: &Chart, cache: &Cache, profile: Profile) -> Result<(), RenderError> {
    let mut ctx = Ctx::new(super::Budget::default(), std::time::UNIX_EPOCH, 0_u64);
    let mut collected = Collected::default();
    let root =
        Node::new(&mut ctx.heap, chart, &cache.defaults, false).map_err(RenderError::Values)?;
    // Nothing is run.
    let nothing = ChartData { data: ctx.heap.new_map(), base_path: "".into() };
    let data = &mut std::iter::repeat(nothing);
    add_chart(&root, None, data, &mut collected)?;
    collected.sources.sort_by(|a, b| (b.depth, &b.name).cmp(&(a.depth, &a.name)));
    cache.set(&collected.sources, profile, Ahead::default()).map(|_| ())
}
