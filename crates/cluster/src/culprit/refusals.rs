//! What may not be read is not asked for again and again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// For so long a refusal is believed: nobody tells of a right that is given.
const BELIEVED: Duration = Duration::from_mins(5);

/// Which resources (namespace and plural) may not be listed, and since when; clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Refusals(Arc<Mutex<HashMap<(String, String), Instant>>>);

impl Refusals {
    /// Whether that was refused a short while ago.
    pub fn tells(&self, namespace: &str, plural: &str) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = known.get(&(namespace.to_owned(), plural.to_owned()));
        at.is_some_and(|at| at.elapsed() < BELIEVED)
    }

    /// It was refused just now.
    pub fn note(&self, namespace: &str, plural: &str) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, at| at.elapsed() < BELIEVED);
        known.insert((namespace.to_owned(), plural.to_owned()), Instant::now());
    }
}
