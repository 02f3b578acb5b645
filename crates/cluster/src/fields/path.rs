//! Where in an object something is.

use std::fmt;

use serde_json::{Map, Value};

/// The way to a field: `spec.template.spec.containers[name=app].image`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path(pub(super) Vec<Step>);

/// One step of a way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Field(String),
    /// An item of a list, as people tell it, and its place in the wanted list if it is there.
    Item {
        told: String,
        at: Option<usize>,
    },
}

impl Step {
    /// An item told by its key.
    pub fn item(key: &Map<String, Value>, at: Option<usize>) -> Self {
        let told: Vec<String> =
            key.iter().map(|(name, value)| format!("{name}={}", plain(value))).collect();
        Self::Item { told: told.join(","), at }
    }

    /// A scalar that is a member of a set.
    pub fn member(value: &Value, at: Option<usize>) -> Self {
        Self::Item { told: plain(value), at }
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

    /// One field further.
    pub(crate) fn field(&self, name: &str) -> Self {
        self.and(Step::Field(name.to_owned()))
    }

    /// One item further, told by its place, and by its name if it has one.
    pub(crate) fn index(&self, at: usize, item: &Value) -> Self {
        let told = match item.get("name") {
            Some(name) => format!("name={}", plain(name)),
            None => at.to_string(),
        };
        self.and(Step::Item { told, at: Some(at) })
    }

    fn and(&self, step: Step) -> Self {
        let mut longer = self.clone();
        longer.0.push(step);
        longer
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
