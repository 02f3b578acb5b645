//! Handlebars: templates whose name ends in `.hbs`, in charts that ask for it.
//!
//! The `handlebars` crate parses and runs them: text, white space, blocks, partials and their
//! scopes are its own. Everything about values is ours: what it parsed is [lowered](lower) so
//! that names call the functions of Helm and paths lead into the values of the rendering, and
//! what it carries about are [handles](session). Budget, errors and named templates are those of
//! the rendering, whichever engine runs.
//!
//! ```text
//! text ─ scan ─▶ crate's parser ─ lower ─▶ Set (kept)      Set + Session ─▶ crate's renderer ─▶ text
//! ```

mod give;
mod helpers;
mod lower;
mod path;
mod run;
mod scan;
mod session;
mod walk;

use std::cell::Cell;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use catamaran_gotemplate::{Ctx, Error, FuncError, Functions, Place, Str, Value};
use handlebars::{Context, Handlebars, RenderContext, Renderable, Template};
use serde_json::Value as Json;

use super::functions::State;
use super::templates::Templates;
use crate::error::Position;
use crate::manifest::base_name;
use crate::{Metadata, RenderError};
use session::{Charged, Session, lock};

/// The annotation of Chart.yaml by which a chart has its `.hbs` files rendered.
const ANNOTATION: &str = "catamaran.dev/handlebars";
const SUFFIX: &str = ".hbs";
/// What a run takes of the native stack, in KiB: see [`State::descend`].
const RUN_STACK: usize = 28;

/// How a chart wants its `.hbs` files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Mode {
    /// As Helm does: they are Go templates.
    #[default]
    Off,
    /// As Handlebars: what is missing is nothing.
    On,
    /// As Handlebars: what is missing is an error.
    Strict,
}

impl Mode {
    /// What Chart.yaml says.
    pub(super) fn of(metadata: &Metadata) -> Result<Self, RenderError> {
        let asked = metadata.annotations.iter().flatten().find(|(name, _)| *name == ANNOTATION);
        match asked.map_or("", |(_, value)| value.as_str()) {
            "" | "false" => Ok(Self::Off),
            "true" => Ok(Self::On),
            "strict" => Ok(Self::Strict),
            other => Err(RenderError::Annotation {
                chart: metadata.name.clone(),
                name: ANNOTATION,
                value: other.to_owned(),
                expected: "true, strict or false",
            }),
        }
    }

    /// Whether a file is Handlebars.
    pub(super) fn takes(self, file: &str) -> bool {
        self != Self::Off && file.ends_with(SUFFIX)
    }
}

/// The name of what a Handlebars file makes.
pub(super) fn output_name(file: &str) -> &str {
    file.strip_suffix(SUFFIX).unwrap_or(file)
}

/// A file to be compiled.
pub(super) struct Input<'c> {
    /// `parent/charts/sub/templates/a.yaml.hbs`
    pub(super) name: &'c str,
    pub(super) text: &'c [u8],
    /// Where the chart is, `parent/charts/sub`, and its own name.
    pub(super) chart: &'c str,
    pub(super) chart_name: &'c str,
    pub(super) strict: bool,
}

/// The Handlebars files of the charts that take part, compiled.
#[derive(Debug)]
pub(super) struct Set {
    registry: Handlebars<'static>,
    files: HashMap<String, File>,
    /// By chart and by a partial's own name.
    own: HashMap<(String, String), String>,
    /// `chart.partial`, and what a chart lends to others by its partial's own name; and what whole
    /// files make.
    shared: HashMap<String, String>,
}

#[derive(Debug)]
struct File {
    chart: Str,
    text: String,
}

impl Default for Set {
    fn default() -> Self {
        let mut registry = Handlebars::new();
        // What is made is YAML.
        registry.register_escape_fn(handlebars::no_escape);
        Self { registry, files: HashMap::new(), own: HashMap::new(), shared: HashMap::new() }
    }
}

impl Set {
    /// Compiles a file. Files come in the order in which Go templates are parsed, so that those of
    /// outer charts come last and win.
    pub(super) fn add(
        &mut self,
        input: &Input<'_>,
        functions: &Functions,
    ) -> Result<(), RenderError> {
        let text = std::str::from_utf8(input.text)
            .map_err(|_| parse_error(input.name, 0, 0, "the template is not UTF-8"))?;
        let template = compile(input, text, functions)?;
        self.registry.register_template(input.name, template);
        let file = File { chart: input.chart.into(), text: text.to_owned() };
        self.files.insert(input.name.to_owned(), file);
        let output = output_name(input.name);
        self.shared.insert(output.to_owned(), input.name.to_owned());
        if let Some(partial) = base_name(output).strip_prefix('_') {
            let key = (input.chart.to_owned(), partial.to_owned());
            if let Some(other) = self.own.insert(key, input.name.to_owned()) {
                let message =
                    format!("{other} is a partial of the same name in this chart: {partial}");
                return Err(parse_error(input.name, 1, 0, &message));
            }
            let qualified = format!("{}.{partial}", input.chart_name);
            self.shared.insert(qualified, input.name.to_owned());
            self.shared.insert(partial.to_owned(), input.name.to_owned());
        }
        Ok(())
    }

    /// The file behind a name, as a chart sees it: its own partials, then `chart.partial` and the
    /// outermost chart's, then the files by what they make.
    fn find(&self, chart: &str, name: &str) -> Option<&str> {
        let own = self.own.get(&(chart.to_owned(), name.to_owned()));
        own.or_else(|| self.shared.get(name)).map(String::as_str)
    }

    /// Whether a template of that name can be included, as the file that is running sees it.
    pub(super) fn has(&self, ctx: &Ctx, name: &str) -> bool {
        self.find(&State::chart(ctx), name).is_some()
    }

    /// Runs the template of a name.
    pub(super) fn include(
        &self,
        ctx: &mut Ctx,
        templates: &Templates,
        name: &str,
        data: &Value,
    ) -> Result<Str, Error> {
        let file = self.find(&State::chart(ctx), name).unwrap_or(name);
        self.start(ctx, templates, file, data, false)
    }

    /// Runs a file, while nothing else of the rendering is running.
    pub(super) fn execute(
        &self,
        ctx: &mut Ctx,
        templates: &Templates,
        name: &str,
        data: &Value,
    ) -> Result<Str, Error> {
        self.start(ctx, templates, name, data, true)
    }

    fn start(
        &self,
        ctx: &mut Ctx,
        templates: &Templates,
        name: &str,
        data: &Value,
        alone: bool,
    ) -> Result<Str, Error> {
        let (Some(file), Some(template)) = (self.files.get(name), self.registry.get_template(name))
        else {
            return Err(Error::exec(Place::default(), FuncError::new(format!("no file {name}"))));
        };
        if let Err(error) = State::descend(ctx, RUN_STACK) {
            return Err(Error::exec(place(name, "", (1, 1)), error));
        }
        let outer = State::enter_chart(ctx, file.chart.clone());
        let result = self.run(ctx, templates, template, data, alone);
        State::enter_chart(ctx, outer);
        State::ascend(ctx, RUN_STACK);
        result.map_err(|(at, cause)| {
            let name = at.file.as_deref().unwrap_or(name);
            let text = self.files.get(name).map_or("", |file| file.text.as_str());
            Error::exec(place(name, text, at.position), cause)
        })
    }

    fn run(
        &self,
        ctx: &mut Ctx,
        templates: &Templates,
        template: &Template,
        data: &Value,
        alone: bool,
    ) -> Result<Str, (At, FuncError)> {
        let shared = std::sync::Mutex::new(Session::new(ctx, templates, data.clone(), alone));
        let root = Context::from(Json::from(0));
        let mut context = RenderContext::new(None);
        helpers::register(&mut context, &shared);
        let mut out = Charged::new(&shared);
        let result = template.render(&self.registry, &root, &mut context, &mut out);
        let text = std::mem::take(&mut out.text);
        result.map_err(|error| {
            let position = (error.line_no.unwrap_or(1), error.column_no.unwrap_or(1));
            let own = || FuncError::new(error.reason().to_string());
            let cause = lock(&shared).take_failure().unwrap_or_else(own);
            (At { file: error.template_name.clone(), position }, cause)
        })?;
        Ok(text.into())
    }
}

/// Where the crate says that it was.
struct At {
    file: Option<String>,
    position: (usize, usize),
}

/// A place as Go's errors show it: the file, the line, the column of what is in the tag.
fn place(file: &str, text: &str, (line, column): (usize, usize)) -> Place {
    let from = text.split('\n').take(line.saturating_sub(1)).map(|line| line.len() + 1).sum();
    let line_text = text.get(from..).unwrap_or_default();
    let tag = line_text.char_indices().nth(column.saturating_sub(1)).map_or(0, |(at, _)| at);
    let rest = line_text.get(tag..).unwrap_or_default();
    let inside = rest.trim_start_matches(['{', '~', '#', '>', '&', '^', ' ', '\n', '\t']);
    let end = inside.find("}}").unwrap_or(inside.len());
    let expression = inside.get(..end).unwrap_or_default().trim_end_matches(['~', ' ', '\n']);
    Place {
        file: file.to_owned(),
        line,
        column: tag + (rest.len() - inside.len()),
        template: file.to_owned(),
        expression: expression.to_owned(),
        message: String::new(),
    }
}

fn compile(input: &Input<'_>, text: &str, functions: &Functions) -> Result<Template, RenderError> {
    let prepared = scan::prepare(text).map_err(|refused| {
        let before = text.get(..refused.at).unwrap_or_default();
        let line = 1 + before.matches('\n').count();
        parse_error(input.name, line, 0, &refused.message)
    })?;
    // The parser asserts what its grammar promises; a text that shows it wrong must not end us.
    let name = input.name.to_owned();
    let parsed = catch_unwind(AssertUnwindSafe(|| Template::compile_with_name(prepared, name)));
    let parsed = parsed.map_err(|_| {
        parse_error(input.name, 1, 0, "the parser of Handlebars gave up on this template")
    })?;
    let mut template = parsed.map_err(|error| {
        let (line, column) = error.pos().unwrap_or_default();
        parse_error(input.name, line, column, &error.reason().to_string())
    })?;
    let mut lower = lower::Lower {
        functions,
        file: input.name,
        chart: input.chart,
        strict: input.strict,
        params: Vec::new(),
        parentheses: Cell::new(0),
    };
    lower.template(&mut template).map_err(|refused| {
        let (line, column) = refused.at.map_or((1, 1), |at| (at.0, at.1));
        parse_error(input.name, line, column, &refused.message)
    })?;
    Ok(template)
}

/// Two files that make one manifest.
pub(super) fn twice(file: &str) -> RenderError {
    let message = format!("{} is there too: one of them has to go", output_name(file));
    parse_error(file, 1, 0, &message)
}

/// In the layout of Helm's.
fn parse_error(file: &str, line: usize, column: usize, message: &str) -> RenderError {
    let at = Position {
        file: file.to_owned(),
        line: u32::try_from(line).unwrap_or(0),
        column: u32::try_from(column.saturating_sub(1)).unwrap_or(0),
    };
    let text = format!("parse error at ({file}:{line}): {message}");
    RenderError::Parse { text, at, trace: Box::default() }
}
