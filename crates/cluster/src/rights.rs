//! Rights that are missing: told once each, and gone on without.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Rights that were found to be missing.
#[derive(Debug, Default)]
pub struct Lacking(Mutex<HashSet<String>>);

impl Lacking {
    /// Says, the first time, that there is no right to do something, and what that means.
    pub fn tell(&self, to: &str, so: &str) {
        if self.told().insert(to.to_owned()) {
            tracing::warn!("no right to {to}: {so}");
        }
    }

    /// Whether it was told that there is no right to do this.
    pub fn has(&self, to: &str) -> bool {
        self.told().contains(to)
    }

    fn told(&self) -> MutexGuard<'_, HashSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
