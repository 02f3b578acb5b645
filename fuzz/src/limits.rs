//! Asserts what a piece of work may take. CPU time and bytes, because they do not depend on who
//! else uses the machine.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Counts the bytes in use, and the most there ever were.
struct Counting;

static IN_USE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn grow(by: usize) {
    let now = IN_USE.fetch_add(by, Relaxed).wrapping_add(by);
    PEAK.fetch_max(now, Relaxed);
}

// SAFETY: everything is left to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // While a block moves there may be two.
        grow(size);
        // SAFETY: as the caller promises.
        let new = unsafe { System.realloc(old, layout, size) };
        IN_USE.fetch_sub(layout.size(), Relaxed);
        new
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(old, layout) }
    }
}

/// What a piece of work may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// CPU time of this thread. The code is instrumented, and checks for overflow.
    pub time: Duration,
    /// Bytes in use at one time, beyond those at the start.
    pub bytes: usize,
}

/// Does the work and asserts its limits.
pub fn within<T>(limits: Limits, work: impl FnOnce() -> T) -> T {
    let started = cpu_time();
    let base = IN_USE.load(Relaxed);
    PEAK.store(base, Relaxed);
    let result = work();
    let (time, bytes) =
        (cpu_time().saturating_sub(started), PEAK.load(Relaxed).saturating_sub(base));
    assert!(time <= limits.time, "took {time:?} of CPU time, more than {:?}", limits.time);
    assert!(bytes <= limits.bytes, "took {bytes} bytes, more than {}", limits.bytes);
    result
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}
