//! Where in an object something is.

use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};

/// The text of all paths that one comparison tells, in bytes. Names of fields may be as long as the
/// object, and each of its fields may differ.
const MOST_TEXT: usize = 4 << 20;

/// The way to a field: `spec.template.spec.containers[name=app].image`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path(pub(super) Vec<Step>);

/// One step of a way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Field(Arc<str>),
    /// An item of a list, as people tell it, and its place in the wanted list if it is there.
    Item {
        told: Arc<str>,
        at: Option<usize>,
    },
}

impl Step {
    /// An item told by its key.
    pub fn item(key: &Map<String, Value>, at: Option<usize>) -> Self {
        let told: Vec<String> =
            key.iter().map(|(name, value)| format!("{name}={}", plain(value))).collect();
        Self::Item { told: told.join(",").into(), at }
    }

    /// A scalar that is a member of a set.
    pub fn member(value: &Value, at: Option<usize>) -> Self {
        Self::Item { told: plain(value).into(), at }
    }

    /// An item told by its place, and by its name if it has one.
    pub fn index(at: usize, item: &Value) -> Self {
        let told = match item.get("name") {
            Some(name) => format!("name={}", plain(name)),
            None => at.to_string(),
        };
        Self::Item { told: told.into(), at: Some(at) }
    }

    /// A bound on its length in a pointer and in a text.
    fn text(&self) -> usize {
        let (Self::Field(text) | Self::Item { told: text, .. }) = self;
        text.len().saturating_add(8)
    }
}

/// The way from the root of an object to where a comparison is at work. It hands out paths until
/// their text is too much in all.
pub(crate) struct Trail {
    steps: Vec<Step>,
    /// The text of the steps.
    text: usize,
    /// How much text the paths may still have.
    left: usize,
    is_full: bool,
}

impl Default for Trail {
    fn default() -> Self {
        Self { steps: Vec::new(), text: 0, left: MOST_TEXT, is_full: false }
    }
}

impl Trail {
    pub(super) fn push(&mut self, step: Step) {
        self.text = self.text.saturating_add(step.text());
        self.steps.push(step);
    }

    pub(crate) fn push_field(&mut self, name: &str) {
        self.push(Step::Field(name.into()));
    }

    pub(crate) fn push_index(&mut self, at: usize, item: &Value) {
        self.push(Step::index(at, item));
    }

    pub(crate) fn pop(&mut self) {
        self.text = self.text.saturating_sub(self.steps.pop().map_or(0, |step| step.text()));
    }

    pub(super) fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The path to here; `None` once the paths are too long in all.
    pub(crate) fn here(&mut self) -> Option<Path> {
        match self.left.checked_sub(self.text) {
            Some(left) if !self.is_full => {
                self.left = left;
                Some(Path(self.steps.clone()))
            }
            _ => {
                self.is_full = true;
                None
            }
        }
    }

    /// Whether there were more paths than [`Trail::here`] gave.
    pub(crate) fn is_full(&self) -> bool {
        self.is_full
    }
}

impl Path {
    /// The same place as a JSON pointer (RFC 6901) into the wanted object; `None` where that has no
    /// such item.
    pub fn pointer(&self) -> Option<String> {
        let mut pointer = String::new();
        for step in &self.0 {
            pointer.push('/');
            match step {
                Step::Field(name) => pointer.push_str(&name.replace('~', "~0").replace('/', "~1")),
                Step::Item { at, .. } => pointer.push_str(&(*at)?.to_string()),
            }
        }
        Some(pointer)
    }

    /// Whether it leads through no list: then its pointer is the same for every such object.
    pub(crate) fn has_no_items(&self) -> bool {
        self.0.iter().all(|step| matches!(step, Step::Field(_)))
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("everything");
        }
        for (number, step) in self.0.iter().enumerate() {
            match step {
                Step::Field(name) if name.contains(['.', '/']) => write!(f, "[{name}]")?,
                Step::Field(name) if number == 0 => f.write_str(name)?,
                Step::Field(name) => write!(f, ".{name}")?,
                Step::Item { told, .. } => write!(f, "[{told}]")?,
            }
        }
        Ok(())
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
