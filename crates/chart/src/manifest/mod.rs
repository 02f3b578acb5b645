//! What a rendering yields: documents, told apart and put in order.

mod head;
mod hooks;
mod known;
pub mod order;
mod post_render;
mod split;

use std::collections::BTreeMap;

use catamaran_sprig::{Drawn, RandomText};
use catamaran_yaml::Numbers;
use serde_json::Value;

pub use head::Head;
pub(crate) use known::KnownHeads;
pub use post_render::{PostRender, PostRenderers};
pub use split::split;

use crate::log_line::LogLine;
use crate::{Crd, ManifestError, Profile, gojson, share};
use hooks::Role;

/// One document that belongs to the release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// The template it came from: `memcached/templates/service.yaml`.
    pub source: String,
    /// The text, exactly as Helm stores it.
    pub content: String,
    /// `apps/v1`; empty if the document has none (one of comments alone).
    pub api_version: String,
    /// `Deployment`; empty if the document has none.
    pub kind: String,
    /// metadata.name; empty if the document has none.
    pub name: String,
}

/// One document that Helm runs at an event instead of keeping it in the release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hook {
    /// metadata.name.
    pub name: String,
    /// `Job`.
    pub kind: String,
    /// The template it came from.
    pub path: String,
    /// The text, exactly as Helm stores it.
    pub manifest: String,
    /// `pre-install`, `test`, ... in the order of the annotation.
    pub events: Vec<String>,
    /// Smaller runs first.
    pub weight: i64,
    /// `hook-succeeded`, ... as the annotation says; empty means Helm's default.
    pub delete_policies: Vec<String>,
    /// `hook-failed`, ... as the annotation says.
    pub output_log_policies: Vec<String>,
}

/// What a rendering yields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rendered {
    /// The release's documents in install order.
    pub manifests: Vec<Manifest>,
    /// What a post-renderer made of the manifest, where Helm stores that as it is (3.18).
    pub post_rendered: Option<String>,
    /// The hooks in install order of their kinds, all events mixed.
    pub hooks: Vec<Hook>,
    /// The files of `crds/` of the charts that take part. Not templated, and no part of the
    /// manifest.
    pub crds: Vec<Crd>,
    /// NOTES.txt.
    pub notes: String,
    /// Those of the subcharts, in the order of their paths.
    pub subchart_notes: Vec<String>,
    /// What Helm would have said on stderr, such as values that do not fit.
    pub warnings: Vec<String>,
    /// What was drawn by chance; `None` if nothing was.
    pub drawn: Option<Drawn>,
    /// The texts that random functions gave, in the order of the calls: at most 2000, of 64 KiB in all,
    /// and none of fewer than 5 characters.
    pub random_texts: Vec<RandomText>,
}

/// Bytes of documents whose heads take much longer to read than a thread to start.
const WORTH_THREADS: usize = 256 << 10;

/// How many documents a rendering may yield. A release of more could not be stored.
const MAX_DOCUMENTS: usize = 50_000;

impl Rendered {
    /// With the notes of subcharts after its own, as by `--render-subchart-notes` (Helm's order is
    /// random).
    #[must_use]
    pub fn with_subchart_notes(mut self) -> Self {
        for notes in std::mem::take(&mut self.subchart_notes) {
            if !self.notes.is_empty() {
                self.notes.push('\n');
            }
            self.notes.push_str(&notes);
        }
        self
    }

    /// Takes rendered files apart and puts their documents in order.
    ///
    /// # Errors
    ///
    /// A document is no YAML, or its head is not shaped like an object's.
    pub fn from_files(
        files: &BTreeMap<String, String>,
        profile: Profile,
    ) -> Result<Self, ManifestError> {
        Self::from_files_knowing(files, profile, None)
    }

    fn from_files_knowing(
        files: &BTreeMap<String, String>,
        profile: Profile,
        known: Option<&KnownHeads>,
    ) -> Result<Self, ManifestError> {
        let mut rendered = Self::default();
        let mut documents = Vec::new();
        let mut too_many = Ok(());
        for (path, text) in files {
            if base_name(path).starts_with('_') || text.trim().is_empty() {
                continue;
            }
            let found = split(text, profile);
            if documents.len() + found.len() > MAX_DOCUMENTS {
                let message = format!("exceeded the limit of {MAX_DOCUMENTS} documents");
                let file = path.clone();
                too_many = Err(ManifestError { file, message, ..ManifestError::default() });
                break;
            }
            documents.extend(found.into_iter().map(|document| (path, document)));
        }
        // Only what is plain, as reading takes many times the document's size.
        let of_plain = |document: &str| match known {
            Some(known) => known.of_plain(document),
            None => Head::of_plain(document),
        };
        let heads: Vec<_> = match files.values().map(String::len).sum() {
            0..WORTH_THREADS => documents.iter().map(|(_, document)| of_plain(document)).collect(),
            _ => share::map(&documents, || (), |(), (_, document)| Head::of_plain(document)),
        };
        for ((path, document), head) in documents.into_iter().zip(heads) {
            let head = match head {
                Some(head) => head,
                None => Head::of_any(path, document, profile)?,
            };
            rendered.add(path, document, head, profile);
        }
        too_many?;
        rendered.manifests.sort_by(|a, b| order::by_install(&a.kind, &b.kind, profile));
        rendered.hooks.sort_by(|a, b| order::by_install(&a.kind, &b.kind, profile));
        Ok(rendered)
    }

    fn add(&mut self, path: &str, document: &str, head: Head, profile: Profile) {
        match hooks::role_of(&head, path, document) {
            Role::Manifest => self.manifests.push(Manifest {
                source: path.to_owned(),
                content: document.to_owned(),
                api_version: head.api_version,
                kind: head.kind,
                name: head.name,
            }),
            Role::Hook(hook) => self.hooks.push(*hook),
            Role::Unknown(events) => {
                let old = format!("info: skipping unknown hook: {events:?}");
                let notice = LogLine {
                    level: "INFO",
                    message: "skipping unknown hooks",
                    attributes: &[("hookTypes", &events)],
                    helm3: ("manifest_sorter.go:199", &old),
                };
                self.warnings.push(notice.line(profile));
            }
        }
    }

    /// The hooks of an event in the order in which Helm runs them: by weight,
    /// then by name, then by kind.
    pub fn hooks_of(&self, event: &str) -> Vec<&Hook> {
        let mut hooks: Vec<&Hook> =
            self.hooks.iter().filter(|hook| hook.events.iter().any(|e| e == event)).collect();
        hooks.sort_by(|a, b| (a.weight, &a.name).cmp(&(b.weight, &b.name)));
        hooks
    }

    /// Byte for byte the `manifest` of Helm's release record.
    pub fn manifest_text(&self) -> String {
        if let Some(text) = &self.post_rendered {
            return text.clone();
        }
        let sizes = self.manifests.iter().map(|m| m.source.len() + m.content.len() + MARKS);
        let mut text = String::with_capacity(sizes.sum());
        for manifest in &self.manifests {
            push_document(&mut text, &manifest.source, &manifest.content);
        }
        text
    }

    /// Byte for byte what `helm template` prints: the manifest, then the hooks.
    pub fn template_text(&self) -> String {
        let mut text = self.manifest_text();
        text.truncate(text.trim_end().len());
        let start = text.len() - text.trim_start().len();
        text.drain(..start);
        text.push('\n');
        for hook in &self.hooks {
            push_document(&mut text, &hook.path, &hook.manifest);
        }
        text
    }
}

pub(crate) fn base_name(path: &str) -> &str {
    let slash = memchr::memrchr(b'/', path.as_bytes());
    slash.and_then(|at| path.get(at + 1..)).unwrap_or(path)
}

/// Whether the path of a template inside its chart is meant by what follows `--show-only`: a
/// shell's pattern, in which stars stop at slashes.
pub fn path_matches(pattern: &str, path: &str) -> bool {
    crate::load::glob_matches(pattern, path)
}

/// Bytes that come with a document: its start, `# Source: `, two ends of lines.
const MARKS: usize = 16;

fn push_document(text: &mut String, source: &str, content: &str) {
    for part in ["---\n# Source: ", source, "\n", content, "\n"] {
        text.push_str(part);
    }
}

impl Manifest {
    /// The document as data, integers kept; null for a document of comments alone.
    ///
    /// # Errors
    ///
    /// The document is not YAML.
    pub fn object(&self) -> Result<Value, ManifestError> {
        parse(&self.source, &self.content)
    }

    /// The objects of the document: none for comments alone, the items of a `List`.
    ///
    /// # Errors
    ///
    /// The document is not YAML.
    pub fn objects(&self) -> Result<Vec<Value>, ManifestError> {
        Ok(unwrap_list(self.object()?))
    }
}

impl Hook {
    /// The document as data, integers kept.
    ///
    /// # Errors
    ///
    /// The document is not YAML.
    pub fn object(&self) -> Result<Value, ManifestError> {
        parse(&self.path, &self.manifest)
    }
}

/// The objects of a text of several documents, such as a stored release's
/// manifest, in their order; documents of comments alone are left out, `List`s
/// are unwrapped.
///
/// # Errors
///
/// A document is not YAML.
pub fn parse_objects(text: &str) -> Result<Vec<Value>, ManifestError> {
    let mut objects = Vec::new();
    for document in split(text, Profile::Helm43) {
        let source = document.lines().find_map(|line| line.strip_prefix("# Source: "));
        objects.extend(unwrap_list(parse(source.unwrap_or("manifest"), document)?));
    }
    Ok(objects)
}

fn parse(file: &str, text: &str) -> Result<Value, ManifestError> {
    gojson::parse(text.as_bytes(), Numbers::Exact).map_err(|message| fault(file, text, message))
}

fn fault(file: &str, document: &str, message: String) -> ManifestError {
    let (file, document) = (file.to_owned(), document.into());
    ManifestError { file, message, document, ..ManifestError::default() }
}

/// A `v1` `List` stands for its items, which may be lists themselves; typed
/// lists (`ConfigMapList`) too, as in kubectl's builder.
fn unwrap_list(object: Value) -> Vec<Value> {
    match object {
        Value::Null => Vec::new(),
        Value::Object(mut map) if is_list(&map) => match map.remove("items") {
            Some(Value::Array(items)) => items.into_iter().flat_map(unwrap_list).collect(),
            _ => Vec::new(),
        },
        object => vec![object],
    }
}

fn is_list(map: &serde_json::Map<String, Value>) -> bool {
    let kind = map.get("kind").and_then(Value::as_str).unwrap_or_default();
    kind.ends_with("List") && map.get("items").is_some_and(Value::is_array)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_stands_for_its_items_and_comments_for_nothing() {
        let text = "# Source: a\n# nothing\n---\napiVersion: v1\nkind: List\nitems:\n- {kind: A}\n- {kind: B, count: 1}\n";
        let objects = parse_objects(text).unwrap();
        assert_eq!(
            objects,
            [serde_json::json!({"kind": "A"}), serde_json::json!({"kind": "B", "count": 1})]
        );
    }
}
