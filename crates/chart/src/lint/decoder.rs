//! The documents of a manifest as Kubernetes' own reader takes them: JSON if it starts with a
//! brace, as long as that goes well, and YAML otherwise.

use catamaran_yaml::Numbers;
use serde_json::{Map, Value};

use crate::Profile;
use crate::gojson::{self, Fields};

/// How much is looked at for a brace.
const PEEKED: usize = 4096;

/// What the linter looks at of a document.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Head {
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) name: String,
}

/// Reads document after document; `None` inside is an empty one. Nothing good follows an error.
pub(super) struct Decoder<'t> {
    rest: &'t [u8],
    /// How far it was JSON.
    offset: usize,
    is_json: bool,
    count: usize,
    profile: Profile,
}

impl<'t> Decoder<'t> {
    pub(super) fn new(text: &'t [u8], profile: Profile) -> Self {
        let start = String::from_utf8_lossy(text.get(..PEEKED).unwrap_or(text));
        let is_json = start.trim_start().starts_with('{');
        Self { rest: text, offset: 0, is_json, count: 0, profile }
    }

    fn take(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or_default();
        self.offset += bytes;
    }

    fn json(&mut self) -> Option<Result<Option<Head>, String>> {
        let mut stream = serde_json::Deserializer::from_slice(self.rest).into_iter::<Value>();
        let fault = match stream.next()? {
            Ok(value) => match strict_head(&value, self.profile) {
                Ok(head) => {
                    let read = stream.byte_offset();
                    self.take(read);
                    self.count += 1;
                    return Some(Ok(head));
                }
                Err(text) => text,
            },
            Err(error) if self.count > 1 => return Some(Err(go_text(&error, self.rest))),
            Err(error) if error.is_eof() => "unexpected EOF".to_owned(),
            Err(error) => {
                let at = self.offset + place(&error, self.rest) + 1;
                format!("json: offset {at}: {}", go_text(&error, self.rest))
            }
        };
        if self.count > 1 {
            return Some(Err(fault));
        }
        // Perhaps it is YAML after all; of two errors the first one is told.
        self.is_json = false;
        self.skip_line_end();
        Some(self.yaml()?.map_err(|_| fault))
    }

    /// White space up to the end of the line.
    fn skip_line_end(&mut self) {
        while let Some(byte) = self.rest.first().copied().filter(u8::is_ascii_whitespace) {
            self.take(1);
            if byte == b'\n' {
                return;
            }
        }
    }

    fn yaml(&mut self) -> Option<Result<Option<Head>, String>> {
        let document = match self.yaml_document()? {
            Ok(document) => document,
            Err(text) => return Some(Err(text)),
        };
        self.count += 1;
        let value = gojson::parse(&document, Numbers::Exact);
        Some(value.and_then(|value| head(&value, self.profile)))
    }

    /// The text up to a separator. One before any text belongs to what follows it.
    fn yaml_document(&mut self) -> Option<Result<Vec<u8>, String>> {
        let mut document = Vec::new();
        while !self.rest.is_empty() {
            let end = self.rest.iter().position(|byte| *byte == b'\n');
            let line = self.rest.get(..end.unwrap_or(self.rest.len())).unwrap_or_default();
            self.take(end.map_or(line.len(), |end| end + 1));
            if let Some(after) = line.strip_prefix(b"---") {
                let after = String::from_utf8_lossy(after);
                let after = after.trim();
                if !after.is_empty() && !after.starts_with('#') {
                    return Some(Err(format!("invalid Yaml document separator: {after}")));
                }
                if !document.is_empty() {
                    return Some(Ok(document));
                }
            }
            document.extend_from_slice(line.strip_suffix(b"\r").unwrap_or(line));
            document.push(b'\n');
        }
        (!document.is_empty()).then_some(Ok(document))
    }
}

impl Iterator for Decoder<'_> {
    type Item = Result<Option<Head>, String>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_json { self.json() } else { self.yaml() }
    }
}

fn go_types(profile: Profile) -> (&'static str, &'static str) {
    match profile {
        Profile::Helm318 => ("K8sYamlStruct", "rules.K8sYamlStruct"),
        Profile::Helm43 => ("k8sYamlStruct", "rules.k8sYamlStruct"),
    }
}

fn head(value: &Value, profile: Profile) -> Result<Option<Head>, String> {
    let (name, go_type) = go_types(profile);
    if value.is_null() {
        return Ok(None);
    }
    let object = gojson::object(value.clone(), go_type)?;
    let fields = Fields::new(&object, name, "");
    let mut head = Head {
        api_version: fields.text("apiVersion")?.unwrap_or_default(),
        kind: fields.text("Kind")?.unwrap_or_default(),
        name: String::new(),
    };
    if let Some(metadata) = fields.object("Metadata", "rules.k8sYamlMetadata")? {
        let fields = Fields::new(metadata, "k8sYamlMetadata", "Metadata.");
        head.name = fields.text("Name")?.unwrap_or_default();
        fields.text("Namespace")?;
    }
    Ok(Some(head))
}

/// Of JSON, where numbers are no texts.
fn strict_head(value: &Value, profile: Profile) -> Result<Option<Head>, String> {
    let Value::Object(object) = value else { return head(value, profile).map_err(bare) };
    let metadata = find(object, "metadata").and_then(Value::as_object);
    let texts = [find(object, "apiVersion"), find(object, "kind")];
    let inner = metadata.map(|map| [find(map, "name"), find(map, "namespace")]);
    let all = texts.into_iter().chain(inner.into_iter().flatten()).flatten();
    if let Some(odd) = all.into_iter().find(|v| matches!(v, Value::Number(_) | Value::Bool(_))) {
        let kind = if odd.is_boolean() { "bool" } else { "number" };
        let (name, _) = go_types(profile);
        return Err(format!(
            "json: cannot unmarshal {kind} into Go struct field {name} of type string"
        ));
    }
    head(value, profile).map_err(bare)
}

fn find<'v>(object: &'v Map<String, Value>, name: &str) -> Option<&'v Value> {
    object.iter().rfind(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

/// Without what the YAML reader puts in front.
fn bare(text: String) -> String {
    let prefix = "error unmarshaling JSON: while decoding JSON: ";
    text.strip_prefix(prefix).map(str::to_owned).unwrap_or(text)
}

/// Where in the text an error is, from 0.
fn place(error: &serde_json::Error, text: &[u8]) -> usize {
    let mut lines = text.split_inclusive(|byte| *byte == b'\n');
    let before: usize = lines.by_ref().take(error.line().saturating_sub(1)).map(<[u8]>::len).sum();
    before + error.column().saturating_sub(1)
}

/// The error in Go's words.
fn go_text(error: &serde_json::Error, text: &[u8]) -> String {
    let found = text.get(place(error, text)).copied().unwrap_or(b' ');
    let told = error.to_string();
    let context = [
        ("key must be a string", "looking for beginning of object key string"),
        ("expected `:`", "after object key"),
        ("expected `,` or `}`", "after object key:value pair"),
        ("expected `,` or `]`", "after array element"),
        ("trailing comma", "looking for beginning of object key string"),
    ];
    let context = context.iter().find(|(ours, _)| told.starts_with(ours));
    let context = context.map_or("looking for beginning of value", |(_, go)| go);
    let found = match found {
        b'\'' => "\\'".to_owned(),
        other => char::from(other).escape_default().to_string().replace("\\\"", "\""),
    };
    format!("invalid character '{found}' {context}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<Result<Option<String>, String>> {
        let decoder = Decoder::new(text.as_bytes(), Profile::Helm43);
        decoder.take(9).map(|head| head.map(|head| head.map(|head| head.kind))).collect()
    }

    #[test]
    fn documents_are_read_as_kubernetes_does() {
        let kind = |kind: &str| Ok(Some(kind.to_owned()));
        let separator = Err("invalid Yaml document separator: x".to_owned());
        for (text, wanted) in [
            ("", vec![]),
            ("# a\n", vec![Ok(None)]),
            ("---\nkind: A\n--- # x\nkind: B\n", vec![kind("A"), kind("B")]),
            ("---\n---\nkind: B\n", vec![Ok(None), kind("B")]),
            ("kind: A\r\n---\r\nkind: B", vec![kind("A"), kind("B")]),
            ("kind: A\n---x\n", vec![separator]),
            (r#"{"kind": "A"}{"kind": "B"}"#, vec![kind("A"), kind("B")]),
            ("{\"kind\": \"A\"}\n---\n{kind: B}\n", vec![kind("A"), kind("B")]),
            ("{kind: A}\n---\nkind: B\n", vec![kind("A"), kind("B")]),
            (r#"{"kind": 1}"#, vec![kind("1")]),
        ] {
            assert_eq!(kinds(text), wanted, "{text:?}");
        }
    }
}
