//! The heap. A command that renders a chart and ends spends a quarter of its time on memory: page by
//! page it comes from the system, and goes back. jemalloc takes it by pages of 2 MiB where the system
//! has them on request (`.cargo/config.toml` has its settings), and needs half the time besides.

use std::hint::black_box;

#[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
#[global_allocator]
static HEAP: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Bytes that rendering a large chart takes: a few large pages.
const BLOCK: usize = 7 << 20;

/// For a process that runs once and ends: all that follows is cut from one block, which is kept. Only
/// what is touched of it counts as taken.
pub(crate) fn for_once() {
    drop(black_box(Vec::<u8>::with_capacity(BLOCK)));
}

/// For a process that runs for long: pages of the usual size from now on, as most of a large one would
/// lie empty.
pub(crate) fn for_long() {
    // Where it cannot be said, an operator takes some megabytes more.
    #[cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}
