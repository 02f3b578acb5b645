//! Rights that are missing: told once each, and gone on without.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A permission that is refused for this long is missing. The caches of an API server that has just
/// started, or was told of a role a moment ago, are behind by less.
const MISSING_AFTER: Duration = Duration::from_secs(5);
/// Refusals further apart than this have nothing to do with one another.
const APART: Duration = Duration::from_mins(1);
/// More refusals than these are not remembered.
const MOST_REMEMBERED: usize = 1024;

/// Rights that were found to be missing.
#[derive(Debug, Default)]
pub struct MissingPermissions {
    told: Mutex<HashSet<String>>,
    refused: Mutex<HashMap<String, Refusals>>,
}

/// When a request was refused.
#[derive(Debug, Clone, Copy)]
struct Refusals {
    first: Instant,
    last: Instant,
}

impl MissingPermissions {
    /// Says, the first time, that there is no right to do something, and what that means.
    pub fn warn_once(&self, to: &str, so: &str) {
        if lock(&self.told).insert(to.to_owned()) {
            tracing::warn!("no right to {to}: {so}");
        }
    }

    /// Whether it was told that there is no right to do this.
    pub fn has(&self, to: &str) -> bool {
        lock(&self.told).contains(to)
    }

    /// Whether a permission that was refused just now is missing: it has been refused for
    /// several seconds. Before that the refusal may pass, and the caller has to try again.
    pub fn is_missing(&self, to: &str) -> bool {
        self.has(to) || self.is_missing_at(to, Instant::now())
    }

    fn is_missing_at(&self, to: &str, now: Instant) -> bool {
        let mut refused = lock(&self.refused);
        if refused.len() >= MOST_REMEMBERED {
            refused.retain(|_, it| now.saturating_duration_since(it.last) < APART);
        }
        if refused.len() >= MOST_REMEMBERED && !refused.contains_key(to) {
            return true; // nobody has so many kinds of requests refused for a moment
        }
        let it = refused.entry(to.to_owned()).or_insert(Refusals { first: now, last: now });
        if now.saturating_duration_since(it.last) >= APART {
            it.first = now;
        }
        it.last = now;
        now.saturating_duration_since(it.first) >= MISSING_AFTER
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permission_is_missing_after_refusals_over_several_seconds() {
        let (rights, start) = (MissingPermissions::default(), Instant::now());
        let refused =
            |to: &str, seconds: u64| rights.is_missing_at(to, start + Duration::from_secs(seconds));
        assert!(!refused("get a", 0), "the first refusal may pass");
        assert!(!refused("get a", 2));
        assert!(refused("get a", 6));
        assert!(!refused("get b", 6), "another permission");
        assert!(!refused("get a", 600), "a refusal long after is the first one of its own");
        rights.warn_once("get c", "so it is");
        assert!(rights.is_missing("get c"), "what was found once stays found");
    }
}
