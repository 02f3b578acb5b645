//! The template files of the charts that take part, and what they are compiled to.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use catamaran_gotemplate::{Ctx, Error, MissingKey, ParsedText, Str, TemplateSet, Value};

use super::{errors, functions, hbs};
use crate::{Chart, Profile, RenderError, share};

/// Bytes that the templates of a chart and its subcharts may take once they are compiled: several
/// times what the largest public umbrella charts need.
const MAX_CODE: usize = 64 << 20;

/// Bytes of templates that take much longer to parse than a thread to start.
const WORTH_THREADS: usize = 128 << 10;

/// Bytes of code that several threads make, and that any one text may take of it: more than an innocent
/// large chart has. The rest is parsed by one alone, so that a chart that takes all the room does not
/// take much of it twice.
const MAX_AHEAD: usize = 16 << 20;
const MAX_TEXT_AHEAD: usize = 4 << 20;

/// The compiled templates of the charts that take part, of both languages.
#[derive(Debug)]
pub(super) struct Templates {
    pub(super) go: TemplateSet,
    /// Nearly no chart has any.
    pub(super) handlebars: Option<hbs::Set>,
}

impl Templates {
    pub(super) fn compile(
        sources: &[Source<'_>],
        profile: Profile,
        mut ahead: Ahead,
    ) -> Result<Self, RenderError> {
        let functions = functions::registry(profile);
        let mut go = TemplateSet::new(functions.clone(), MissingKey::Zero);
        let mut handlebars = None;
        let mut room = MAX_CODE;
        ahead.add(&go, sources);
        for source in sources {
            let parsed = ahead.take(source).filter(|parsed| parsed.size() <= room);
            if let Some(input) = source.handlebars() {
                if sources.iter().any(|other| other.name == source.output_name()) {
                    return Err(hbs::twice(&source.name));
                }
                handlebars.get_or_insert_with(hbs::Set::default).add(&input, &functions)?;
            } else if let Some(parsed) = parsed {
                room -= parsed.size();
                go.add(parsed);
            } else {
                let parsed = go.parse_within(&source.name, Arc::clone(source.text), room);
                let parsed =
                    parsed.map_err(|error| errors::parse(&source.name, source.text, &error));
                room -= parsed?.min(room);
            }
        }
        Ok(Self { go, handlebars })
    }

    /// Runs a file.
    pub(super) fn execute(
        &self,
        ctx: &mut Ctx,
        source: &Source<'_>,
        data: &Value,
    ) -> Result<Vec<u8>, Error> {
        match &self.handlebars {
            Some(handlebars) if source.mode != hbs::Mode::Off => {
                let output = handlebars.execute(ctx, self, &source.name, data)?;
                Ok(output.as_bytes().to_vec())
            }
            _ => self.go.execute_alone(ctx, &source.name, data),
        }
    }

    /// Runs a Handlebars template by its name, unless there is a Go template of that name.
    pub(super) fn include_handlebars(
        &self,
        ctx: &mut Ctx,
        name: &Str,
        data: &Value,
    ) -> Option<Result<Str, Error>> {
        let handlebars = self.handlebars.as_ref()?;
        let name = name.as_str()?;
        let is_there = !self.go.contains(name) && handlebars.has(ctx, name);
        is_there.then(|| handlebars.include(ctx, self, name, data))
    }
}

/// Go templates of a large chart that several threads have parsed before their turn, by their names;
/// none of a small one. What fails, or would take more than its share of the room, is left.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    parsed: HashMap<String, (Arc<[u8]>, ParsedText)>,
    /// Bytes of code in them.
    size: usize,
}

impl Ahead {
    /// Parses the templates of the chart itself, which always take part, beside something else.
    pub(super) fn beside<M>(
        chart: &Chart,
        profile: Profile,
        first: impl FnOnce() -> M,
    ) -> (Self, M) {
        let Ok(mode) = hbs::Mode::of(&chart.metadata) else { return (Self::default(), first()) };
        let set = TemplateSet::new(functions::registry(profile), MissingKey::Zero);
        let go = chart.templates.iter().filter(|file| !mode.takes(&file.name));
        let texts = go.map(|file| (format!("{}/{}", chart.name(), file.name), &file.data));
        let mut ahead = Self::default();
        let first = ahead.parse(&set, &texts.collect::<Vec<_>>(), first);
        (ahead, first)
    }

    fn parse<M>(
        &mut self,
        set: &TemplateSet,
        texts: &[(String, &Arc<[u8]>)],
        first: impl FnOnce() -> M,
    ) -> M {
        if texts.iter().map(|(_, text)| text.len()).sum::<usize>() < WORTH_THREADS {
            return first();
        }
        let size = AtomicUsize::new(self.size);
        let parse = |(): &mut (), (name, text): &(String, &Arc<[u8]>)| {
            let left = MAX_AHEAD.saturating_sub(size.load(Ordering::Relaxed)).min(MAX_TEXT_AHEAD);
            let parsed = set.parse_apart(name, Arc::clone(text), left).ok()?;
            size.fetch_add(parsed.size(), Ordering::Relaxed);
            Some(parsed)
        };
        let (parsed, first) = share::map_beside(texts, || (), parse, first);
        let all = texts.iter().zip(parsed);
        self.parsed.extend(all.filter_map(|((name, text), parsed)| {
            Some((name.clone(), (Arc::clone(text), parsed?)))
        }));
        self.size = size.into_inner();
        first
    }

    /// Parses what is not parsed yet.
    fn add(&mut self, set: &TemplateSet, sources: &[Source<'_>]) {
        let go = sources.iter().filter(|source| source.mode == hbs::Mode::Off);
        let left = go.filter(|source| !self.parsed.contains_key(&source.name));
        let texts: Vec<_> = left.map(|source| (source.name.clone(), source.text)).collect();
        self.parse(set, &texts, || ());
    }

    fn take(&mut self, source: &Source<'_>) -> Option<ParsedText> {
        // Of a name that is there twice it may have been the other text.
        let (text, parsed) = self.parsed.remove(&source.name)?;
        Arc::ptr_eq(&text, source.text).then_some(parsed)
    }
}

/// A template file of a chart that takes part.
pub(super) struct Source<'c> {
    /// `parent/charts/sub/templates/a.yaml`
    pub(super) name: String,
    /// Slashes in the name.
    pub(super) depth: usize,
    pub(super) text: &'c Arc<[u8]>,
    /// The chart's data, `.`.
    pub(super) data: usize,
    /// Where the chart is, `parent/charts/sub`, and its own name.
    pub(super) chart: Arc<str>,
    pub(super) chart_name: &'c str,
    pub(super) mode: hbs::Mode,
}

impl Source<'_> {
    /// The name under which the file's text is known, `# Source:`.
    pub(super) fn output_name(&self) -> &str {
        match self.mode {
            hbs::Mode::Off => &self.name,
            _ => hbs::output_name(&self.name),
        }
    }

    fn handlebars(&self) -> Option<hbs::Input<'_>> {
        (self.mode != hbs::Mode::Off).then(|| hbs::Input {
            name: &self.name,
            text: self.text,
            chart: &self.chart,
            chart_name: self.chart_name,
            strict: self.mode == hbs::Mode::Strict,
        })
    }
}
