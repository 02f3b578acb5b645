//! Schemas, each compiled once.

use std::collections::HashMap;
use std::error::Error;
use std::fmt;
use std::sync::OnceLock;

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
        Some(kept.get_or_init(|| compile(schema, profile)))
    }
}

pub(super) fn compile(text: &[u8], profile: Profile) -> Compiled {
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
    compiler.use_loader(Box::new(NoRemote(profile)));
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

/// Helm would fetch whatever a chart names; we never do. An unknown URN
/// accepts everything, as in Helm 4.
struct NoRemote(Profile);

impl UrlLoader for NoRemote {
    fn load(&self, url: &str) -> Result<Value, Box<dyn Error>> {
        if is_urn(url) && self.0 == Profile::Helm43 {
            Ok(Value::Bool(true))
        } else {
            Err("not fetched".into())
        }
    }
}
