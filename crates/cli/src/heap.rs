//! The heap of a command that runs once and ends.

use std::hint::black_box;

/// Bytes of the block: more than any buffer that rendering a large chart makes and drops.
const BLOCK: usize = 2 << 20;

/// Has the C library keep what is freed, up to some megabytes. glibc learns from the size of a large
/// block that it gets back what is large: by default that is 128 KiB, so that each longer text would
/// lie in memory fresh from the system and go back to it, with a page fault for every 4 KiB.
///
/// Not for what runs for long. With another allocator it does nothing.
pub(crate) fn keep_freed() {
    drop(black_box(Vec::<u8>::with_capacity(BLOCK)));
}
