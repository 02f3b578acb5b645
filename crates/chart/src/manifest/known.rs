//! Heads of documents that earlier renderings of a chart have made as well.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use foldhash::fast::RandomState;

use super::Head;

/// Bytes of documents that are known; more, and all are forgotten.
const MAX_BYTES: usize = 256 << 10;

/// Heads of plain documents by their texts: rendered again, most documents of a chart come out as they
/// did before. Only short texts belong here, and only from the second rendering on: a process that
/// renders once would keep them for nobody.
#[derive(Debug, Default)]
pub(crate) struct KnownHeads(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    heads: HashMap<Box<str>, Head, RandomState>,
    /// Of the texts.
    bytes: usize,
}

impl KnownHeads {
    /// As [`Head::of_plain`].
    pub(super) fn of_plain(&self, document: &str) -> Option<Head> {
        // Nothing can be half done under this lock.
        let known = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(head) = known().heads.get(document) {
            return Some(head.clone());
        }
        let head = Head::of_plain(document)?;
        if document.len() > MAX_BYTES {
            return Some(head);
        }
        let mut known = known();
        if known.bytes + document.len() > MAX_BYTES {
            *known = Known::default();
        }
        if known.heads.insert(document.into(), head.clone()).is_none() {
            known.bytes += document.len();
        }
        Some(head)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_head_is_the_head() {
        let known = KnownHeads::default();
        let large = format!("kind: A\ndata: {}\n", "x".repeat(MAX_BYTES));
        let middle = format!("kind: B\ndata: {}\n", "x".repeat(MAX_BYTES / 2));
        for document in
            ["kind: A\n", "kind: 1\n", &large, &middle, "kind: C\n", &middle, "kind: A\n"]
        {
            for _ in 0..2 {
                assert_eq!(known.of_plain(document), Head::of_plain(document), "{document:.20}");
            }
            assert!(known.0.lock().unwrap().bytes <= MAX_BYTES);
        }
    }
}
