//! How many large resources are worked on at once.
//!
//! A reconcile holds several copies of its resource: of small ones as many as are worked on at once matter
//! to nobody, of the largest one takes most of the memory that the operator has. A large one whose turn has
//! come while others are under way goes back into the queue, so that it holds no place of a small one.

use std::sync::Arc;

use catamaran_cluster::bounds::Size;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What a value takes as part of a tree, in bytes; an object with one field takes twice as much.
const NODE: usize = 320;
/// Resources that take less are worked on whatever else is.
const LIGHT: usize = 128 << 10;
/// What all others may take together; one that takes more is worked on without another large one.
const TOGETHER: usize = 1536 << 10;

/// Admits large resources.
#[derive(Debug)]
pub(super) struct Heavy(Arc<Semaphore>);

/// Held while a resource is worked on.
#[derive(Debug)]
pub(super) struct Admitted(
    #[expect(dead_code, reason = "held to be dropped")] Option<OwnedSemaphorePermit>,
);

impl Default for Heavy {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(TOGETHER >> 10)))
    }
}

impl Heavy {
    /// Admits a resource of this size, unless it has to wait for other large ones.
    pub fn admit(&self, size: Size) -> Option<Admitted> {
        let bytes = size.bytes.saturating_add(size.nodes.saturating_mul(NODE));
        if bytes < LIGHT {
            return Some(Admitted(None));
        }
        let permits = u32::try_from(bytes.min(TOGETHER) >> 10).ok()?;
        self.0.clone().try_acquire_many_owned(permits).ok().map(|permit| Admitted(Some(permit)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_resources_wait_for_each_other_and_small_ones_for_nobody() {
        let heavy = Heavy::default();
        let large = Size { bytes: 1_400_000, nodes: 10, depth: 2 };
        let largest = Size { bytes: 1_400_000, nodes: 10_000, depth: 2 };
        let small = Size { bytes: 3_000, nodes: 100, depth: 5 };
        let one = heavy.admit(large);
        assert!(one.is_some() && heavy.admit(large).is_none() && heavy.admit(small).is_some());
        drop(one);
        let alone = heavy.admit(largest);
        assert!(alone.is_some() && heavy.admit(large).is_none() && heavy.admit(small).is_some());
    }
}
