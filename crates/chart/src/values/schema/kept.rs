//! Schemas, each compiled once.

use std::collections::HashMap;
use std::error::Error;
use std::fmt;
use std::sync::{Arc, OnceLock};

use boon::{CompileError, Compiler, Draft, SchemaIndex, Schemas, UrlLoader};
use serde_json::Value;

use super::bounds::{self, Refusal};
use super::tell::Teller;
use super::words::quote;
use crate::values::defaults::address;
use crate::{Chart, Profile};

/// Where Helm says a schema lies; references are relative to it.
const LOCATION: &str = "file:///values.schema.json";

/// The schemas of a chart and of those in it, each compiled when it is first needed; by where the
/// chart lies: it must not move.
#[derive(Default)]
pub(crate) struct KeptSchemas(HashMap<(usize, Profile), OnceLock<Compiled>>);

/// What became of a schema.
pub(super) enum Compiled {
    Ready(Box<Ready>),
    /// It refers to another document.
    Remote(String),
    /// It is none; why.
    Faulty(String),
    /// It would take too much.
    Refused(Refusal),
}

/// A schema that values can be held against.
pub(super) struct Ready {
    pub(super) schema: Value,
    pub(super) schemas: Schemas,
    pub(super) index: SchemaIndex,
}

impl fmt::Debug for KeptSchemas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} schemas", self.0.len())
    }
}

impl KeptSchemas {
    pub(crate) fn of(chart: &Chart) -> Self {
        let mut kept = Self::default();
        kept.add(chart);
        kept
    }

    fn add(&mut self, chart: &Chart) {
        if chart.schema.is_some() {
            for profile in [Profile::Helm318, Profile::Helm43] {
                self.0.insert((address(chart), profile), OnceLock::new());
            }
        }
        chart.dependencies.iter().for_each(|child| self.add(child));
    }

    pub(super) fn of_chart(&self, chart: &Chart, profile: Profile) -> Option<&Compiled> {
        let (schema, kept) = (chart.schema.as_deref()?, self.0.get(&(address(chart), profile))?);
        Some(kept.get_or_init(|| compile(schema, Some(chart), profile)))
    }
}

/// Compiles a schema; references may name files of its chart.
pub(super) fn compile(text: &[u8], chart: Option<&Chart>, profile: Profile) -> Compiled {
    if let Err(refusal) = bounds::check_text(text) {
        return Compiled::Refused(refusal);
    }
    let schema: Value = match serde_json::from_slice(text) {
        Ok(schema) => schema,
        // In Go's words, or ours for what only our reader has something against.
        Err(error) => {
            let fault = catamaran_sprig::check_json(text).err();
            return Compiled::Faulty(fault.unwrap_or_else(|| error.to_string()));
        }
    };
    // Before it is compiled: that would take what it refuses. With values, it is asked again.
    if let Err(refusal) = bounds::check(&schema, &Value::Null) {
        return Compiled::Refused(refusal);
    }
    let mut compiler = Compiler::new();
    compiler.set_default_draft(Draft::V2020_12);
    let files = match chart {
        Some(chart) => match named(&schema, chart) {
            Ok(files) => files,
            Err(refusal) => return Compiled::Refused(refusal),
        },
        None => HashMap::new(),
    };
    compiler.use_loader(Box::new(NoRemote { profile, files }));
    if let Err(error) = compiler.add_resource(LOCATION, schema.clone()) {
        return Compiled::Faulty(error.to_string());
    }
    let mut schemas = Schemas::new();
    match compiler.compile(LOCATION, &mut schemas) {
        Ok(index) => Compiled::Ready(Box::new(Ready { schema, schemas, index })),
        Err(CompileError::LoadUrlError { url, .. })
            if profile == Profile::Helm318 && is_urn(&url) =>
        {
            let fault = format!("failing loading {url:?}: no URLLoader registered for {url:?}");
            Compiled::Faulty(fault)
        }
        Err(CompileError::LoadUrlError { url, .. }) => Compiled::Remote(url),
        Err(error) => Compiled::Faulty(compile_fault(&error, profile)),
    }
}

/// What is wrong with a schema.
fn compile_fault(error: &CompileError, profile: Profile) -> String {
    match error {
        CompileError::ValidationError { url, src } => {
            let nothing = &Value::Null;
            let teller = Teller { schema: nothing, values: nothing, profile };
            // The metaschema's own lines, below one that names it.
            let metaschema = match &src.kind {
                boon::ErrorKind::Schema { url } => *url,
                _ => src.schema_url,
            };
            format!(
                "{url:?} is not valid against metaschema: jsonschema validation failed with {}\n{}",
                quote(metaschema),
                teller.tell(src)
            )
        }
        CompileError::JsonPointerNotFound(url) => {
            format!("json-pointer in {url:?} not found")
        }
        other => other.to_string(),
    }
}

fn is_urn(url: &str) -> bool {
    url.starts_with("urn:")
}

/// Helm would fetch whatever a chart names; we never do, and take files of the chart alone. An unknown
/// URN accepts everything, as in Helm 4.
struct NoRemote {
    profile: Profile,
    files: HashMap<String, Value>,
}

impl UrlLoader for NoRemote {
    fn load(&self, url: &str) -> Result<Value, Box<dyn Error>> {
        if let Some(file) = self.files.get(url) {
            return Ok(file.clone());
        }
        if is_urn(url) && self.profile == Profile::Helm43 {
            Ok(Value::Bool(true))
        } else {
            Err("not fetched".into())
        }
    }
}

/// The files of the chart that its schema names, by the URLs that name them: Helm reads such a URL as a
/// path, seen from the working directory, and charts of operators name their own files so
/// (`file://./helm-charts/demo/definitions.json`).
fn named(schema: &Value, chart: &Chart) -> Result<HashMap<String, Value>, Refusal> {
    let mut urls = Vec::new();
    references(schema, &mut urls);
    let mut files = HashMap::new();
    for url in urls {
        let Some(text) = file_of(chart, url) else { continue };
        bounds::check_text(&text)?;
        let Ok(file) = serde_json::from_slice::<Value>(&text) else { continue };
        bounds::check(&file, &Value::Null)?;
        files.insert(url.to_owned(), file);
    }
    Ok(files)
}

/// The URLs of files that references lead to, without what they name inside of those.
fn references<'s>(schema: &'s Value, urls: &mut Vec<&'s str>) {
    match schema {
        Value::Array(items) => items.iter().for_each(|item| references(item, urls)),
        Value::Object(object) => {
            if let Some(Value::String(reference)) = object.get("$ref")
                && reference.starts_with("file://")
            {
                let url = reference.split_once('#').map_or(reference.as_str(), |(url, _)| url);
                if !urls.contains(&url) {
                    urls.push(url);
                }
            }
            object.values().for_each(|value| references(value, urls));
        }
        _ => {}
    }
}

/// The chart's file that a URL names, if it leads through a folder called like the chart.
fn file_of(chart: &Chart, url: &str) -> Option<Arc<[u8]>> {
    let path = url.strip_prefix("file://")?;
    let folder = format!("/{}/", chart.name());
    let (_, name) = path.rsplit_once(&folder)?;
    crate::load::bytes_of(chart, chart.files.iter().position(|file| file.name == name)?)
}
