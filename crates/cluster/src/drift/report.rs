//! Drift in words that may be shown.

use std::fmt;

use serde_json::Value;

use crate::fields::{Difference, Kind, Path};

/// One field that drifted, to be shown.
///
/// Of its values only numbers and booleans are told: any text may be a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldDrift {
    /// The field.
    pub path: String,
    /// Its value, and the one it should have.
    pub values: Option<(String, String)>,
}

impl FieldDrift {
    /// A field without its values.
    pub fn of(path: &Path) -> Self {
        Self { path: path.to_string(), values: None }
    }
}

impl fmt::Display for FieldDrift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)?;
        match &self.values {
            Some((is, should)) => write!(f, " is {is} and should be {should}"),
            None => Ok(()),
        }
    }
}

/// Differences as they are shown.
pub(super) fn field_drifts(
    differences: &[Difference],
    desired: &Value,
    live: &Value,
) -> Vec<FieldDrift> {
    let shown = |difference: &Difference| {
        let pointer = difference.path.pointer().filter(|_| difference.path.has_no_items());
        let values = pointer.filter(|_| difference.kind != Kind::NotApplied).and_then(|pointer| {
            let (is, should) = (live.pointer(&pointer)?, desired.pointer(&pointer)?);
            let both = (plain(is)?, plain(should)?);
            (both.0 != both.1).then_some(both)
        });
        FieldDrift { path: difference.path.to_string(), values }
    };
    differences.iter().map(shown).collect()
}

fn plain(value: &Value) -> Option<String> {
    matches!(value, Value::Number(_) | Value::Bool(_)).then(|| value.to_string())
}
