//! A set of templates that share one namespace.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;

use crate::compile::Template;
use crate::error::Error;
use crate::func::{Ctx, Functions};
use crate::parse::{Parsed, parse};
use crate::value::{Str, Value};
use crate::vm::Machine;

/// Templates by name.
type Named = HashMap<Str, Arc<Template>, RandomState>;

/// What a missing key of a map gives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissingKey {
    /// Nothing; a field of it is nothing again. Go's default.
    #[default]
    Invalid,
    /// The zero value of the map's element type. Helm's way: a field of it is an error.
    Zero,
    /// An error. Helm's `--strict`.
    Error,
}

/// A text that has been parsed, its templates not in a set yet.
#[derive(Debug)]
pub struct ParsedText(Parsed);

impl ParsedText {
    /// How many bytes its code takes, at most.
    pub fn size(&self) -> usize {
        self.0.size
    }
}

/// Named templates, compiled. Share it behind an `Arc`; executing does not change it.
///
/// ```
/// use std::sync::Arc;
/// use std::time::SystemTime;
/// use catamaran_gotemplate::{Budget, Ctx, Functions, MissingKey, TemplateSet, Value};
///
/// let mut set = TemplateSet::new(Arc::new(Functions::new()), MissingKey::Zero);
/// set.parse("hello", r#"{{ printf "Hello, %s!" .name }}"#)?;
/// let mut ctx = Ctx::new(Budget::default(), SystemTime::UNIX_EPOCH, 0);
/// let data = ctx.heap.new_map();
/// ctx.heap.set(data, "name", "Kat");
/// assert_eq!(set.execute(&mut ctx, "hello", &data.into())?, "Hello, Kat!");
/// # Ok::<(), catamaran_gotemplate::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct TemplateSet {
    pub(crate) functions: Arc<Functions>,
    pub(crate) missing_key: MissingKey,
    templates: Named,
}

impl TemplateSet {
    /// An empty set. Templates may use `functions` and no others.
    pub fn new(functions: Arc<Functions>, missing_key: MissingKey) -> Self {
        Self { functions, missing_key, templates: Named::default() }
    }

    /// Adds the template `name` and every template its text defines. A template of the same name
    /// is replaced, unless the new body holds nothing but white space and comments.
    pub fn parse(&mut self, name: &str, text: impl AsRef<[u8]>) -> Result<(), Error> {
        self.parse_within(name, text.as_ref(), usize::MAX).map(|_| ())
    }

    /// As [`TemplateSet::parse`], into no more than `room` bytes of code; tells how many it took.
    ///
    /// # Errors
    /// Besides Go's, one of kind [`crate::ErrorKind::Memory`].
    pub fn parse_within(
        &mut self,
        name: &str,
        text: impl Into<Str>,
        room: usize,
    ) -> Result<usize, Error> {
        let parsed = self.parse_apart(name, text, room)?;
        let size = parsed.size();
        self.add(parsed);
        Ok(size)
    }

    /// As [`TemplateSet::parse_within`], and leaves it to [`TemplateSet::add`] to put the templates into
    /// the set: several texts may be parsed at once.
    ///
    /// # Errors
    /// Those of [`TemplateSet::parse_within`].
    pub fn parse_apart(
        &self,
        name: &str,
        text: impl Into<Str>,
        room: usize,
    ) -> Result<ParsedText, Error> {
        parse(&name.into(), text.into(), &self.functions, room).map(ParsedText)
    }

    /// Adds what [`TemplateSet::parse_apart`] gave, of this set or of one with the same functions.
    pub fn add(&mut self, parsed: ParsedText) {
        let Parsed { main, defined, .. } = parsed.0;
        for template in defined.into_iter().chain([main]) {
            associate(&mut self.templates, template, |_| false);
        }
    }

    /// What a missing key gives from now on.
    pub fn set_missing_key(&mut self, missing_key: MissingKey) {
        self.missing_key = missing_key;
    }

    /// Whether there is a template of that name.
    pub fn contains(&self, name: &str) -> bool {
        self.templates.contains_key(name.as_bytes())
    }

    /// The names of all templates, in no order.
    pub fn names(&self) -> impl Iterator<Item = &Str> {
        self.templates.keys()
    }

    pub(crate) fn get(&self, name: &Str) -> Option<&Arc<Template>> {
        self.templates.get(name)
    }

    /// Runs a template; `data` is its dot and `$`. The output may be no UTF-8 if values are not.
    pub fn execute(&self, ctx: &mut Ctx, name: &str, data: &Value) -> Result<Str, Error> {
        let template = self.templates.get(name.as_bytes());
        let template = template.ok_or_else(|| no_template(&name.into()))?;
        let output = Machine::new(ctx, self).execute(Arc::clone(template), data.clone())?;
        Ok(output.into())
    }

    /// As [`TemplateSet::execute`], for a caller that holds no map or list made since
    /// [`crate::Heap::seal`] but through those made before: what nobody refers to any more is
    /// emptied whenever it has become much.
    pub fn execute_alone(&self, ctx: &mut Ctx, name: &str, data: &Value) -> Result<Vec<u8>, Error> {
        let template = self.templates.get(name.as_bytes());
        let template = template.ok_or_else(|| no_template(&name.into()))?;
        Machine::new(ctx, self).alone().execute(Arc::clone(template), data.clone())
    }
}

/// Go's error for a template that is asked for by name and not there. The set's own name is that
/// of Helm's.
pub(crate) fn no_template(name: &Str) -> Error {
    let name = crate::fmt::quote(name);
    Error::plain(format!("template: no template {name} associated with template \"gotpl\""))
}

fn associate(
    templates: &mut Named,
    template: Arc<Template>,
    known_elsewhere: impl Fn(&Str) -> bool,
) {
    let known = templates.contains_key(&template.name) || known_elsewhere(&template.name);
    if !(template.empty && known) {
        templates.insert(template.name.clone(), template);
    }
}

/// What the texts of running `tpl` calls define, seen before the set itself.
#[derive(Debug)]
pub(crate) struct Overlay(Named);

impl Overlay {
    /// The definitions of a parsed text over those around it, and how many there are.
    pub fn new(outer: Option<&Arc<Self>>, parsed: &Parsed, set: &TemplateSet) -> (Self, usize) {
        let mut templates = outer.map(|outer| outer.0.clone()).unwrap_or_default();
        for template in parsed.defined.iter().chain([&parsed.main]) {
            associate(&mut templates, Arc::clone(template), |name| set.get(name).is_some());
        }
        let count = templates.len();
        (Self(templates), count)
    }

    pub fn get(&self, name: &Str) -> Option<&Arc<Template>> {
        self.0.get(name)
    }

    /// Bytes that the table takes; what it refers to is counted where it was parsed.
    pub fn size(&self) -> usize {
        self.0.capacity() * size_of::<(Str, Arc<Template>)>() + size_of::<Self>()
    }
}
