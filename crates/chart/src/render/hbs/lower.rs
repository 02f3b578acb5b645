//! From what the crate parsed to what it is to run: every name of a chart's becomes a helper of
//! ours, every path a value's handle. Raw text, blocks and white space stay the crate's.

use std::cell::Cell;
use std::collections::HashMap;

use handlebars::template::{
    BlockParam, DecoratorTemplate, HelperTemplate, Parameter, Subexpression, TemplateElement,
    TemplateMapping,
};
use handlebars::{Path, Template};
use serde_json::Value as Json;

use catamaran_gotemplate::Functions;

use super::helpers::{HandlebarsHelper, Run};
use super::path::{Split, split};
use super::scan::reveal;

/// What `{{> @partial-block}}` names.
pub(super) const PARTIAL_BLOCK: &str = "@partial-block";

/// Functions that exist for values that may be missing: strict mode lets those pass.
const TOLERANT: &[&str] = &["default", "coalesce", "empty", "required"];

/// Why a text cannot be run, and the tag.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) message: String,
    pub(super) at: Option<TemplateMapping>,
}

type Lowered<T = ()> = Result<T, String>;

/// Lowers a file's template.
pub(super) struct Lower<'a> {
    pub(super) functions: &'a Functions,
    /// The file: errors in its inline partials name it.
    pub(super) file: &'a str,
    /// Its chart, which `find` asks for.
    pub(super) chart: &'a str,
    pub(super) strict: bool,
    /// Block parameters in scope.
    pub(super) params: Vec<String>,
    /// Parentheses that are open.
    pub(super) parentheses: Cell<u64>,
}

impl Lower<'_> {
    /// All of a template.
    pub(super) fn template(&mut self, template: &mut Template) -> Result<(), Refused> {
        for (index, element) in template.elements.iter_mut().enumerate() {
            let at = template.mapping.get(index).cloned();
            self.element(element, at.as_ref()).map_err(|mut refused| {
                refused.at = refused.at.or(at);
                refused
            })?;
        }
        Ok(())
    }

    fn element(
        &mut self,
        element: &mut TemplateElement,
        at: Option<&TemplateMapping>,
    ) -> Result<(), Refused> {
        let here = |message| Refused { message, at: None };
        match element {
            TemplateElement::Expression(tag) | TemplateElement::HtmlExpression(tag) => {
                let value = self.tag(tag).map_err(here)?;
                *element = helper(HandlebarsHelper::Print.name(), vec![value]);
            }
            TemplateElement::HelperBlock(block) => {
                if let Some(value) = self.block(block)? {
                    *element = helper(HandlebarsHelper::Print.name(), vec![value]);
                }
            }
            TemplateElement::DecoratorBlock(block) if name_of(&block.name) == "inline" => {
                if let Some(body) = &mut block.template {
                    body.name = Some(self.file.to_owned());
                    self.template(body)?;
                }
            }
            TemplateElement::DecoratorBlock(tag) | TemplateElement::DecoratorExpression(tag) => {
                let name = name_of(&tag.name);
                return Err(here(format!("there is no decorator {name:?}, only inline")));
            }
            TemplateElement::PartialExpression(partial)
            | TemplateElement::PartialBlock(partial) => {
                self.partial(partial)?;
                let inner = std::mem::replace(element, TemplateElement::Comment(String::new()));
                let mut body = Template::new();
                body.elements.push(inner);
                body.mapping.extend(at.cloned());
                *element = around(Run::Partial, body);
            }
            _ => {}
        }
        Ok(())
    }

    /// `{{name args}}`, as a value.
    fn tag(&self, tag: &HelperTemplate) -> Lowered<Parameter> {
        let bare = tag.params.is_empty() && tag.hash.is_empty();
        match &tag.name {
            Parameter::Subexpression(inner) if bare => self.subexpression(inner),
            Parameter::Path(path) if bare => match self.constant(path) {
                Some(name) => Ok(self.call(name, Vec::new())),
                None => Ok(self.path(path, self.strict)),
            },
            Parameter::Name(name) => self.named(&reveal(name), &tag.params, &tag.hash),
            _ => Err("a tag starts with a path or the name of a function".to_owned()),
        }
    }

    /// The function that a name alone calls: one that takes no arguments, and is not hidden by a
    /// block parameter. All others are fields, whatever function has their name.
    fn constant<'p>(&self, path: &'p Path) -> Option<&'p str> {
        let Path::Relative((segments, raw)) = path else { return None };
        let function = self.functions.get(raw).filter(|_| segments.len() == 1)?;
        let hidden = self.params.iter().any(|param| param == raw);
        (function.params().is_empty() && !hidden).then_some(raw.as_str())
    }

    fn subexpression(&self, inner: &Subexpression) -> Lowered<Parameter> {
        match inner.as_element() {
            TemplateElement::Expression(tag) => {
                let outer = self.parentheses.get();
                self.parentheses.set(outer + 1);
                let value = self.tag(tag);
                self.parentheses.set(outer);
                value
            }
            _ => Err("this cannot stand in parentheses".to_owned()),
        }
    }

    fn value(&self, param: &Parameter, strict: bool) -> Lowered<Parameter> {
        match param {
            Parameter::Path(path) => Ok(self.path(path, strict)),
            Parameter::Subexpression(inner) => self.subexpression(inner),
            other => Ok(other.clone()),
        }
    }

    fn path(&self, path: &Path, strict: bool) -> Parameter {
        let Split { base, fields } = split(path, |name| self.params.iter().any(|p| p == name));
        // What was taken out of a path that parsed is one.
        let base = Path::parse(&base).map_or(Parameter::Literal(Json::Null), Parameter::Path);
        if fields.is_empty() {
            return base;
        }
        let fields = Parameter::Literal(Json::from(fields));
        give(HandlebarsHelper::Path, vec![base, fields, Parameter::Literal(Json::Bool(strict))])
    }

    /// A function or a method with its arguments.
    fn named(
        &self,
        name: &str,
        params: &[Parameter],
        hash: &HashMap<String, Parameter>,
    ) -> Lowered<Parameter> {
        if let Some(split) = name.rfind(['.', '/']) {
            return self.method(name, split, params, hash);
        }
        if matches!(name, "if" | "unless" | "each" | "with") {
            return Err(format!("{name} is a block: {{{{#{name} ...}}}}"));
        }
        if self.functions.get(name).is_none() {
            return Err(format!("function {name:?} not defined"));
        }
        let strict = self.strict && !TOLERANT.contains(&name);
        let args = params.iter().map(|param| self.value(param, strict));
        let mut args = args.collect::<Lowered<Vec<_>>>()?;
        if name == "dict" {
            args.extend(self.pairs(hash)?);
        } else {
            no_hash(name, hash)?;
        }
        match name {
            "and" => lazy(HandlebarsHelper::And, args),
            "or" => lazy(HandlebarsHelper::Or, args),
            _ => Ok(self.call(name, args)),
        }
    }

    fn call(&self, name: &str, args: Vec<Parameter>) -> Parameter {
        let nested = Parameter::Literal(Json::from(self.parentheses.get()));
        let mut params = vec![literal(name), nested];
        params.extend(args);
        give(HandlebarsHelper::Call, params)
    }

    /// `Files.Get "name"`
    fn method(
        &self,
        name: &str,
        split: usize,
        params: &[Parameter],
        hash: &HashMap<String, Parameter>,
    ) -> Lowered<Parameter> {
        no_hash(name, hash)?;
        let (receiver, method) = (name.get(..split), name.get(split + 1..));
        let receiver = receiver.and_then(|path| Path::parse(path).ok());
        let (Some(receiver), Some(method)) = (receiver, method) else {
            return Err(format!("{name:?} is no path"));
        };
        let mut args = vec![literal(method), self.path(&receiver, self.strict)];
        for param in params {
            args.push(self.value(param, self.strict)?);
        }
        Ok(give(HandlebarsHelper::Method, args))
    }

    /// Named arguments as keys and values, in the order of the keys: the crate's is random.
    fn pairs(&self, hash: &HashMap<String, Parameter>) -> Lowered<Vec<Parameter>> {
        let mut keys: Vec<_> = hash.iter().collect();
        keys.sort_by_key(|(key, _)| key.as_str());
        let mut pairs = Vec::new();
        for (key, value) in keys {
            pairs.extend([literal(key), self.value(value, self.strict)?]);
        }
        Ok(pairs)
    }

    /// A block; a function's is a value, to be printed.
    fn block(&mut self, block: &mut HelperTemplate) -> Result<Option<Parameter>, Refused> {
        let here = |message| Refused { message, at: None };
        let name = match &block.name {
            Parameter::Name(name) => reveal(name),
            other => name_of(other).to_owned(),
        };
        let known = [Run::If, Run::Unless, Run::Each, Run::With];
        if let Some(kind) = known.into_iter().find(|kind| kind.name() == name) {
            self.condition(kind, block).map_err(here)?;
            let count = self.params.len();
            self.params.extend(block_params(block.block_param.as_ref()));
            let body = block.template.as_mut().map(|body| self.template(body));
            self.params.truncate(count);
            body.transpose()?;
            if let Some(inverse) = &mut block.inverse {
                self.template(inverse)?;
            }
            return Ok(None);
        }
        if name == "raw" {
            return Ok(None);
        }
        let is_function = self.functions.get(&name).is_some();
        if !is_function || matches!(name.as_str(), "and" | "or") {
            let blocks = "the blocks are if, unless, each, with and functions";
            return Err(here(format!("there is no block {name:?}: {blocks}")));
        }
        if block.inverse.is_some() || block.block_param.is_some() {
            return Err(here(format!("the block of a function ({name}) has no else and no `as`")));
        }
        let mut body = block.template.take().unwrap_or_default();
        self.template(&mut body)?;
        let mut value = self.named(&name, &block.params, &block.hash).map_err(here)?;
        if let Some(tag) = inside(&mut value) {
            tag.template = Some(body);
        }
        Ok(Some(value))
    }

    fn condition(&self, kind: Run, block: &mut HelperTemplate) -> Lowered {
        let name = kind.name();
        let [param] = block.params.as_slice() else {
            return Err(format!("{name} takes one argument, not {}", block.params.len()));
        };
        let value = self.value(param, false)?;
        block.params = vec![value];
        if matches!(kind, Run::If | Run::Unless) {
            match block.hash.remove("includeZero") {
                None => {}
                Some(zero @ Parameter::Literal(Json::Bool(_))) => block.params.push(zero),
                Some(_) => return Err("includeZero is true or false".to_owned()),
            }
        }
        no_hash(name, &block.hash)
    }

    fn partial(&mut self, partial: &mut DecoratorTemplate) -> Result<(), Refused> {
        let here = |message| Refused { message, at: None };
        let name = match &partial.name {
            Parameter::Subexpression(inner) => self.subexpression(inner).map_err(here)?,
            other => literal(unquoted(name_of(other))),
        };
        partial.name =
            give(HandlebarsHelper::Find, vec![name, Parameter::Literal(Json::from(self.chart))]);
        if partial.params.len() > 1 {
            let count = partial.params.len();
            return Err(here(format!("a partial takes one context, not {count}")));
        }
        if !(partial.params.is_empty() && partial.hash.is_empty()) {
            let this = Path::parse("this").map_or(Parameter::Literal(Json::Null), Parameter::Path);
            let context = partial.params.first().map(|param| self.value(param, self.strict));
            let mut args = vec![context.unwrap_or(Ok(this)).map_err(here)?];
            args.extend(self.pairs(&partial.hash).map_err(here)?);
            partial.params = vec![give(HandlebarsHelper::Scope, args)];
            partial.hash.clear();
        }
        let Some(body) = &mut partial.template else { return Ok(()) };
        self.template(body)?;
        let inner = std::mem::take(body);
        body.elements.push(around(Run::Charge, inner));
        Ok(())
    }
}

fn name_of(name: &Parameter) -> &str {
    name.as_name().unwrap_or_default()
}

/// A partial's name without the quotes or brackets it may be written in.
fn unquoted(name: &str) -> &str {
    let strip = |open, close| name.strip_prefix(open)?.strip_suffix(close);
    strip('\'', '\'').or_else(|| strip('[', ']')).unwrap_or(name)
}

fn literal(text: &str) -> Parameter {
    Parameter::Literal(Json::from(text))
}

fn no_hash(name: &str, hash: &HashMap<String, Parameter>) -> Lowered {
    match hash.keys().min() {
        None => Ok(()),
        Some(key) => Err(format!("{name} takes no argument by name ({key}=)")),
    }
}

fn block_params(params: Option<&BlockParam>) -> Vec<String> {
    let names = match params {
        Some(BlockParam::Single(name)) => vec![name],
        Some(BlockParam::Pair((name, key))) => vec![name, key],
        _ => Vec::new(),
    };
    names.into_iter().map(|name| name_of(name).to_owned()).collect()
}

/// A value that a helper gives.
fn give(kind: HandlebarsHelper, params: Vec<Parameter>) -> Parameter {
    let name = Parameter::Name(kind.name().to_owned());
    Parameter::Subexpression(Subexpression::new(name, params, HashMap::new()))
}

/// The helper inside a value made by [`give`].
fn inside(value: &mut Parameter) -> Option<&mut HelperTemplate> {
    match value {
        Parameter::Subexpression(inner) => match inner.element.as_mut() {
            TemplateElement::Expression(tag) => Some(tag),
            _ => None,
        },
        _ => None,
    }
}

/// A tag of a helper.
fn helper(name: &str, params: Vec<Parameter>) -> TemplateElement {
    let name = Parameter::Name(name.to_owned());
    *Subexpression::new(name, params, HashMap::new()).element
}

/// A block of a helper.
fn around(kind: Run, body: Template) -> TemplateElement {
    match helper(kind.name(), Vec::new()) {
        TemplateElement::Expression(mut tag) => {
            (tag.block, tag.template) = (true, Some(body));
            TemplateElement::HelperBlock(tag)
        }
        other => other,
    }
}

/// `and` or `or`: each value has the next one as its body.
fn lazy(kind: HandlebarsHelper, args: Vec<Parameter>) -> Lowered<Parameter> {
    let mut rest: Option<Parameter> = None;
    for arg in args.into_iter().rev() {
        rest = Some(match rest {
            None => arg,
            Some(next) => {
                let late = helper(Run::Late.name(), vec![next]);
                let mut body = Template::new();
                body.elements.push(late);
                let mut value = give(kind, vec![arg]);
                if let Some(tag) = inside(&mut value) {
                    tag.template = Some(body);
                }
                value
            }
        });
    }
    let name = kind.name();
    rest.ok_or_else(|| format!("wrong number of args for {name}: want at least 1 got 0"))
}
