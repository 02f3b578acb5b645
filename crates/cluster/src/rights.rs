//! Rights for extras that an operator lacks: told once, and gone on without.

use std::sync::atomic::{AtomicBool, Ordering};

/// Whether a right was found to be missing.
#[derive(Debug, Default)]
pub(crate) struct Lacking(AtomicBool);

impl Lacking {
    /// Says, the first time, that there is no right to do something, and what that means.
    pub fn tell(&self, to: &str, so: &str) {
        if !self.0.swap(true, Ordering::Relaxed) {
            tracing::warn!("no right to {to}: {so}");
        }
    }

    /// Whether it was told of.
    pub fn is_known(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
