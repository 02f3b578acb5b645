//! Post-renderers: steps between rendering and what becomes of it.
//!
//! Helm 4 hands over all documents, hooks included, each marked with the file it came from; Helm
//! 3.18 hands over the manifest and takes the answer as the new one, hooks are left alone.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::sync::Arc;

use catamaran_yaml::Numbers;
use serde_json::{Map, Value, json};

use super::{KnownHeads, Manifest, Rendered, base_name, split};
use crate::{ManifestError, Profile, RenderError, gojson};

/// The mark that tells a document's file, in the annotations of what Helm 4 hands over.
const FILE: &str = "postrenderer.helm.sh/postrender-filename";

/// A step after rendering: manifests in, manifests out. Any function of that shape is one.
///
/// ```
/// use std::sync::Arc;
/// use catamaran_chart::PostRender;
/// let step: Arc<dyn PostRender> = Arc::new(|text: &str| Ok(text.replace("docker.io", "mirror.example")));
/// assert_eq!(step.post_render("image: docker.io/a").unwrap(), "image: mirror.example/a");
/// ```
pub trait PostRender: Send + Sync {
    /// Changes the documents, separated by `---`. It must do the same for the same input: whether
    /// to upgrade is decided on what comes out.
    ///
    /// # Errors
    ///
    /// Whatever keeps it from doing so; the rendering fails with it.
    fn post_render(&self, manifests: &str) -> Result<String, Box<dyn Error + Send + Sync>>;
}

impl<F> PostRender for F
where
    F: Fn(&str) -> Result<String, Box<dyn Error + Send + Sync>> + Send + Sync,
{
    fn post_render(&self, manifests: &str) -> Result<String, Box<dyn Error + Send + Sync>> {
        self(manifests)
    }
}

/// Post-renderers, one after the other. Cheap to clone.
#[derive(Clone, Default)]
pub struct PostRenderers(Arc<[Arc<dyn PostRender>]>);

impl FromIterator<Arc<dyn PostRender>> for PostRenderers {
    fn from_iter<I: IntoIterator<Item = Arc<dyn PostRender>>>(steps: I) -> Self {
        Self(steps.into_iter().collect())
    }
}

impl fmt::Debug for PostRenderers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PostRenderers({})", self.0.len())
    }
}

impl PostRenderers {
    /// Takes rendered files apart, as [`Rendered::from_files`] does, after all steps.
    pub(crate) fn apply(
        &self,
        files: &BTreeMap<String, String>,
        profile: Profile,
        known: Option<&KnownHeads>,
    ) -> Result<Rendered, RenderError> {
        if self.0.is_empty() {
            return Ok(Rendered::from_files_knowing(files, profile, known)?);
        }
        match profile {
            Profile::Helm43 => {
                let text = self.run(merge(files)?)?;
                Ok(Rendered::from_files_knowing(&take_apart(&text)?, profile, known)?)
            }
            Profile::Helm318 => {
                let mut rendered = Rendered::from_files_knowing(files, profile, known)?;
                let text = self.run(rendered.manifest_text())?;
                rendered.manifests = manifests(&text, profile)?;
                rendered.post_rendered = Some(text);
                Ok(rendered)
            }
        }
    }

    fn run(&self, mut text: String) -> Result<String, RenderError> {
        for step in &*self.0 {
            let is_something = !text.trim().is_empty();
            text = step.post_render(&text).map_err(RenderError::PostRender)?;
            // Nothing would delete everything.
            if is_something && text.trim().is_empty() {
                return Err(RenderError::PostRender("post-renderer produced empty output".into()));
            }
        }
        Ok(text)
    }
}

/// All documents, in the order of their files, each marked with its file.
fn merge(files: &BTreeMap<String, String>) -> Result<String, RenderError> {
    let mut merged = String::new();
    for (path, text) in files {
        if base_name(path).starts_with('_') || text.trim().is_empty() {
            continue;
        }
        for document in split(text, Profile::Helm43) {
            let fault = |message| {
                let file = path.clone();
                RenderError::Manifest(ManifestError { file, message, ..ManifestError::default() })
            };
            let data = gojson::parse(document.as_bytes(), Numbers::Exact).map_err(fault)?;
            for (text, data) in items(document, data) {
                let Some(data) = data.map_err(fault)? else { continue };
                push(&mut merged, &marked(&text, data, path));
            }
        }
    }
    Ok(merged)
}

/// The documents by the file that each is marked with; the marks are taken off.
fn take_apart(text: &str) -> Result<BTreeMap<String, String>, RenderError> {
    let fault =
        |message: String| RenderError::PostRendered(format!("error parsing YAML: {message}"));
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    let mut number = 0;
    for document in split(text, Profile::Helm43) {
        let data = gojson::parse(document.as_bytes(), Numbers::Exact);
        let data = data.map_err(|message| {
            let message = message.trim_start_matches("error converting YAML to JSON: ");
            fault(format!("MalformedYAMLError: {message}"))
        })?;
        for (text, data) in items(document, data) {
            let Some(data) = data.map_err(&fault)? else { continue };
            let (file, text) = unmarked(&text, data);
            let file = file.unwrap_or_else(|| format!("generated-by-postrender-{number}.yaml"));
            number += 1;
            push(files.entry(file).or_default(), &text);
        }
    }
    Ok(files)
}

type Item<'d> = (Cow<'d, str>, Result<Option<Map<String, Value>>, String>);

/// The objects of a document: the items of a `List`, nothing for comments alone.
fn items(document: &str, data: Value) -> Vec<Item<'_>> {
    match data {
        Value::Null => Vec::new(),
        Value::Object(mut object) if object.get("kind").is_some_and(|kind| kind == "List") => {
            let Some(Value::Array(items)) = object.remove("items") else { return Vec::new() };
            let item = |item: Value| (Cow::Owned(print(&item)), as_object(item));
            items.into_iter().map(item).collect()
        }
        data => vec![(Cow::Borrowed(document), as_object(data))],
    }
}

fn as_object(data: Value) -> Result<Option<Map<String, Value>>, String> {
    let wrong = |kind: &str, content: &Value| {
        let content = print(content);
        Err(format!(
            "wrong node kind: expected MappingNode but got {kind}: node contents:\n{content}\n"
        ))
    };
    let kind = |value: &Value| if value.is_array() { "SequenceNode" } else { "ScalarNode" };
    match data {
        Value::Null => Ok(None),
        Value::Object(object) => match object.get("metadata") {
            None | Some(Value::Null | Value::Object(_)) => Ok(Some(object)),
            Some(other) => wrong(kind(other), other),
        },
        other => wrong(kind(&other), &other),
    }
}

fn print(value: &Value) -> String {
    catamaran_yaml::to_string(value).unwrap_or_default()
}

/// Adds a document to a text of several.
fn push(text: &mut String, document: &str) {
    if !text.is_empty() {
        text.push_str("---\n");
    }
    text.push_str(document.trim_end());
    text.push('\n');
}

/// The document with the mark of its file. The text is kept as it is where that is possible:
/// whatever is done to it must say what the data say.
fn marked(text: &str, data: Map<String, Value>, file: &str) -> String {
    let mut wanted = data;
    let metadata = wanted.entry("metadata").or_insert_with(|| json!({}));
    if metadata.is_null() {
        *metadata = json!({});
    }
    if let Some(metadata) = metadata.as_object_mut() {
        let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
        if !annotations.is_object() {
            *annotations = json!({});
        }
        if let Some(annotations) = annotations.as_object_mut() {
            annotations.insert(FILE.to_owned(), json!(file));
        }
    }
    verified(insert(text, file), &Value::Object(wanted))
}

/// The document without the mark, and what the mark said.
fn unmarked(text: &str, data: Map<String, Value>) -> (Option<String>, Cow<'_, str>) {
    let mut wanted = data;
    let metadata = wanted.get_mut("metadata").and_then(Value::as_object_mut);
    let Some(annotations) =
        metadata.and_then(|metadata| metadata.get_mut("annotations")?.as_object_mut())
    else {
        return (None, Cow::Borrowed(text));
    };
    let Some(file) = annotations.remove(FILE) else { return (None, Cow::Borrowed(text)) };
    let is_last = annotations.is_empty();
    if is_last && let Some(metadata) = wanted.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("annotations");
    }
    let file = file.as_str().filter(|file| !file.is_empty()).map(str::to_owned);
    let text = verified(remove(text, is_last), &Value::Object(wanted));
    (file, Cow::Owned(text))
}

/// The text, if it says what the data say; the data printed, if not.
fn verified(text: Option<String>, data: &Value) -> String {
    let says = |text: &String| gojson::parse(text.as_bytes(), Numbers::Exact).as_ref() == Ok(data);
    text.filter(says).unwrap_or_else(|| print(data))
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

fn is_blank(line: &str) -> bool {
    line.trim().is_empty() || line.trim_start().starts_with('#')
}

/// Whether the line is a key whose value stands on the lines below.
fn opens(line: &str, key: &str) -> bool {
    line.trim_start_matches(' ')
        .strip_prefix(key)
        .and_then(|rest| rest.strip_prefix(':'))
        .is_some_and(|rest| {
            rest.trim().is_empty() || rest.starts_with(' ') && rest.trim_start().starts_with('#')
        })
}

/// Writes the mark into a document in block style; `None` where its place is not plain to see.
fn insert(text: &str, file: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    let metadata = lines.iter().position(|line| indent(line) == 0 && opens(line, "metadata"))?;
    let below =
        |from: usize| lines.iter().enumerate().skip(from + 1).find(|(_, line)| !is_blank(line));
    let (_, child) = below(metadata)?;
    let width = indent(child);
    let mut block = lines.iter().enumerate().skip(metadata + 1);
    let block = block.by_ref().take_while(|(_, line)| is_blank(line) || indent(line) >= width);
    let annotations =
        block.into_iter().find(|(_, line)| indent(line) == width && opens(line, "annotations"));
    let quoted = format!("'{}'", file.replace('\'', "''"));
    let mark = |width: usize| format!("{}{FILE}: {quoted}", " ".repeat(width));
    let (after, new) = if let Some((at, _)) = annotations {
        let (_, first) = below(at)?;
        (at, vec![mark(indent(first))])
    } else {
        (metadata, vec![format!("{}annotations:", " ".repeat(width)), mark(width + 2)])
    };
    let mut all: Vec<&str> = lines.get(..=after)?.to_vec();
    all.extend(new.iter().map(String::as_str));
    all.extend(lines.get(after + 1..)?);
    Some(all.join("\n") + "\n")
}

/// Takes the line of the mark out, and the line above if nothing else is below that.
fn remove(text: &str, is_last: bool) -> Option<String> {
    let mut lines: Vec<&str> = text.lines().collect();
    let is_mark = |line: &&str| {
        let line = line.trim_start().trim_start_matches(['"', '\'']);
        line.strip_prefix(FILE)
            .is_some_and(|rest| rest.trim_start_matches(['"', '\'']).starts_with(':'))
    };
    let at = lines.iter().position(is_mark)?;
    lines.remove(at);
    if is_last {
        let above = at.checked_sub(1)?;
        if !opens(lines.get(above)?, "annotations") {
            return None;
        }
        lines.remove(above);
    }
    Some(lines.join("\n") + "\n")
}

/// The documents of a manifest as they are, with the template that a comment names.
fn manifests(text: &str, profile: Profile) -> Result<Vec<Manifest>, RenderError> {
    let mut manifests = Vec::new();
    for document in split(text, profile) {
        let source = document.lines().find_map(|line| line.strip_prefix("# Source: "));
        let source = source.unwrap_or("post-rendered").to_owned();
        let head = super::Head::parse(&source, document, profile)?;
        let content = match document.strip_prefix("# Source: ") {
            Some(rest) => rest.split_once('\n').map_or("", |(_, content)| content),
            None => document,
        };
        manifests.push(Manifest {
            source,
            content: content.to_owned(),
            api_version: head.api_version,
            kind: head.kind,
            name: head.name,
        });
    }
    Ok(manifests)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(text: &str) -> BTreeMap<String, String> {
        [("c/templates/a.yaml".to_owned(), text.to_owned())].into()
    }

    fn chain(steps: Vec<Arc<dyn PostRender>>) -> PostRenderers {
        steps.into_iter().collect()
    }

    fn step(
        run: impl Fn(&str) -> Result<String, Box<dyn Error + Send + Sync>> + Send + Sync + 'static,
    ) -> Arc<dyn PostRender> {
        Arc::new(run)
    }

    const DOCUMENTS: &[&str] = &[
        "# comment\nkind: A\nmetadata:\n  # more\n  name: a\nspec:\n- 'x'   # why\n",
        "kind: A\nmetadata:\n    name: a\n    annotations:\n        b: c\n",
        "kind: A\nmetadata: {name: a, annotations: {b: c}}\n",
        "kind: A\nmetadata: {name: a}\n",
        "kind: A\n",
        "kind: A\nmetadata:\nspec: 1\n",
        "kind: A\nmetadata:\n  annotations:\n  name: a\n",
        "kind: A\nmetadata:\n  name: a\n  annotations: {}\n",
        "kind: A\nspec:\n  text: |\n    metadata:\n      name: no\nmetadata:\n  labels: {x: y}\n",
        "{\"kind\": \"A\", \"metadata\": {\"name\": \"a\"}}\n",
        "kind: A\nmetadata: &m\n  name: a\nother: *m\n",
    ];

    fn data(text: &str) -> Value {
        gojson::parse(text.as_bytes(), Numbers::Exact).unwrap()
    }

    #[test]
    fn a_document_that_is_marked_and_unmarked_is_itself() {
        for document in DOCUMENTS {
            let merged = merge(&files(document)).unwrap();
            let marks = data(&merged);
            assert_eq!(marks["metadata"]["annotations"][FILE], "c/templates/a.yaml", "{merged}");
            let apart = take_apart(&merged).unwrap();
            let text = &apart["c/templates/a.yaml"];
            let prune = |mut value: Value| {
                let metadata = value["metadata"].take();
                let mut metadata = metadata.as_object().cloned().unwrap_or_default();
                metadata.retain(|_, value| !(value.is_null() || *value == json!({})));
                value["metadata"] = metadata.into();
                value
            };
            assert_eq!(prune(data(text)), prune(data(document)), "{text}");
        }
        // In block style, the very text.
        for document in &DOCUMENTS[..2] {
            let apart = take_apart(&merge(&files(document)).unwrap()).unwrap();
            assert_eq!(apart["c/templates/a.yaml"], **document);
        }
    }

    #[test]
    fn steps_follow_each_other_and_hooks_take_part_since_helm_4() {
        let text = "kind: A\nmetadata:\n  name: first\n---\nkind: Job\nmetadata:\n  name: first\n  annotations: {helm.sh/hook: test}\n";
        let steps = || {
            chain(vec![
                step(|text| Ok(text.replace("first", "second"))),
                step(|text| Ok(text.replace("second", "third"))),
            ])
        };
        let new = steps().apply(&files(text), Profile::Helm43, None).unwrap();
        assert_eq!(
            (new.manifests[0].name.as_str(), new.hooks[0].name.as_str()),
            ("third", "third")
        );
        assert!(!new.template_text().contains(FILE));
        let old = steps().apply(&files(text), Profile::Helm318, None).unwrap();
        assert_eq!(
            (old.manifests[0].name.as_str(), old.hooks[0].name.as_str()),
            ("third", "first")
        );
        let expected = "---\n# Source: c/templates/a.yaml\nkind: A\nmetadata:\n  name: third\n";
        assert_eq!(old.manifest_text(), expected);
        assert_eq!(old.manifests[0].source, "c/templates/a.yaml");
    }

    #[test]
    fn documents_come_and_go() {
        let text = "kind: List\nitems:\n- {kind: A, metadata: {name: a}}\n- {kind: B, metadata: {name: b}}\n---\n# nothing\n";
        let drop = chain(vec![step(|text| {
            let first = text.split("---\n").next().unwrap_or_default();
            Ok(format!("{first}---\nkind: New\nmetadata: {{name: n}}\n"))
        })]);
        let rendered = drop.apply(&files(text), Profile::Helm43, None).unwrap();
        let all: Vec<_> =
            rendered.manifests.iter().map(|m| (m.kind.as_str(), m.source.as_str())).collect();
        assert_eq!(all, [("A", "c/templates/a.yaml"), ("New", "generated-by-postrender-1.yaml")]);
    }

    #[test]
    fn what_is_no_manifest_is_an_error() {
        for (answer, expected) in [
            ("", "error while running post render on files: post-renderer produced empty output"),
            ("- 1", "expected MappingNode but got SequenceNode"),
            ("text", "expected MappingNode but got ScalarNode"),
            ("kind: A\nmetadata: 3", "expected MappingNode but got ScalarNode"),
            (
                "a: b: c",
                "error while parsing post rendered output: error parsing YAML: MalformedYAMLError: yaml:",
            ),
        ] {
            let chain = chain(vec![step(move |_| Ok(answer.to_owned()))]);
            let error =
                chain.apply(&files("kind: A"), Profile::Helm43, None).unwrap_err().to_string();
            assert!(error.contains(expected), "{answer:?}: {error}");
        }
        let chain = chain(vec![step(|_| Err("no".into()))]);
        for profile in [Profile::Helm43, Profile::Helm318] {
            let error = chain.apply(&files("kind: A"), profile, None).unwrap_err();
            assert_eq!(error.to_string(), "error while running post render on files: no");
        }
    }
}
