//! What a request asks for, from its path and query.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::answer::Refusal;

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Get,
    List,
    Create,
    Update,
    MergePatch,
    Apply,
    Delete,
    /// Discovery, or the version.
    Discover,
}

/// A request.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub verb: Verb,
    /// The path as it was asked for.
    pub path: String,
    pub group: String,
    pub version: String,
    pub resource: String,
    pub subresource: String,
    pub namespace: Option<String>,
    pub name: String,
    pub query: BTreeMap<String, String>,
    pub body: Value,
    pub dry_run: bool,
}

impl Request {
    pub fn read(method: &str, uri: &str, kind: &str, body: &[u8]) -> Result<Self, Refusal> {
        let path_and_query = uri
            .split_once("://")
            .map_or(uri, |(_, rest)| rest.find('/').and_then(|at| rest.get(at..)).unwrap_or("/"));
        let (path, query) = path_and_query.split_once('?').unwrap_or((path_and_query, ""));
        let query: BTreeMap<String, String> = query
            .split('&')
            .filter(|pair| !pair.is_empty())
            .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
            .map(|(key, value)| (plain(key), plain(value)))
            .collect();
        let body = if body.is_empty() {
            Value::Null
        } else {
            serde_json::from_slice(body).map_err(|_| Refusal::bad("the body is not JSON"))?
        };
        let dry_run = query.get("dryRun").is_some_and(|value| value == "All")
            || body.pointer("/dryRun/0").is_some_and(|value| value == "All");
        let mut request = Self {
            verb: Verb::Discover,
            path: path.to_owned(),
            group: String::new(),
            version: String::new(),
            resource: String::new(),
            subresource: String::new(),
            namespace: None,
            name: String::new(),
            query,
            body,
            dry_run,
        };
        request.locate()?;
        if !request.resource.is_empty() {
            request.verb = request.verb_of(method, kind)?;
        }
        Ok(request)
    }

    fn locate(&mut self) -> Result<(), Refusal> {
        let path = self.path.clone();
        let mut parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let rest: Vec<&str> = match parts.first() {
            Some(&"api") if parts.len() > 2 => parts.split_off(1),
            Some(&"apis") if parts.len() > 3 => {
                parts.remove(0);
                parts.remove(0).clone_into(&mut self.group);
                parts
            }
            Some(&("api" | "apis" | "version")) => return Ok(()),
            _ => return Err(Refusal::no_path()),
        };
        let text = |at: usize| rest.get(at).copied().unwrap_or_default().to_owned();
        self.version = text(0);
        let scoped = rest.get(1) == Some(&"namespaces") && rest.len() > 3;
        let at = if scoped { 3 } else { 1 };
        self.namespace = scoped.then(|| text(2));
        (self.resource, self.name, self.subresource) = (text(at), text(at + 1), text(at + 2));
        Ok(())
    }

    fn verb_of(&self, method: &str, kind: &str) -> Result<Verb, Refusal> {
        if self.query.get("watch").is_some_and(|watch| watch == "true" || watch == "1") {
            return Err(Refusal::unknown("watches"));
        }
        Ok(match (method, self.name.is_empty()) {
            ("GET", true) => Verb::List,
            ("GET", false) => Verb::Get,
            ("POST", true) => Verb::Create,
            ("PUT", false) => Verb::Update,
            ("DELETE", false) => Verb::Delete,
            ("PATCH", false) if kind.contains("apply-patch") => Verb::Apply,
            ("PATCH", false)
                if kind.contains("merge-patch+json") && !kind.contains("strategic") =>
            {
                Verb::MergePatch
            }
            _ => return Err(Refusal::unknown(&format!("{method} {} as {kind}", self.path))),
        })
    }

    /// As whom fields are set.
    pub fn manager(&self) -> String {
        self.query.get("fieldManager").cloned().unwrap_or_else(|| "unknown".to_owned())
    }

    pub fn is_forced(&self) -> bool {
        self.query.get("force").is_some_and(|force| force == "true")
    }
}

/// Without percent signs.
fn plain(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => {
                let mut hex = || rest.next().and_then(|digit| char::from(digit).to_digit(16));
                let both = hex().zip(hex());
                bytes.extend(both.and_then(|(high, low)| u8::try_from(high * 16 + low).ok()));
            }
            byte => bytes.push(byte),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
