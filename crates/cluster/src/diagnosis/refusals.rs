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
        self.tells_at(namespace, plural, Instant::now())
    }

    fn tells_at(&self, namespace: &str, plural: &str, now: Instant) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = known.get(&(namespace.to_owned(), plural.to_owned()));
        at.is_some_and(|at| now.saturating_duration_since(*at) < BELIEVED)
    }

    /// It was refused just now.
    pub fn note(&self, namespace: &str, plural: &str) {
        self.note_at(namespace, plural, Instant::now());
    }

    fn note_at(&self, namespace: &str, plural: &str, now: Instant) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, at| now.saturating_duration_since(*at) < BELIEVED);
        known.insert((namespace.to_owned(), plural.to_owned()), now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_believed_for_five_minutes_in_its_namespace() {
        let refusals = Refusals::default();
        let clone = refusals.clone();
        let now = Instant::now();
        clone.note_at("a", "pods", now);
        assert!(refusals.tells_at("a", "pods", now + Duration::from_secs(299)));
        for (namespace, plural) in [("a", "events"), ("b", "pods")] {
            assert!(!refusals.tells_at(namespace, plural, now));
        }
        let later = now + Duration::from_mins(5);
        assert!(!refusals.tells_at("a", "pods", later), "the right may have come");
        // What is over is not kept.
        refusals.note_at("b", "pods", later);
        assert_eq!(refusals.0.lock().unwrap().len(), 1);
    }
}
