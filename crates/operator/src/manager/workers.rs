//! Threads that run the reconciles, apart from those that serve probes, watches and leases.
//!
//! A reconcile works over data whose size others choose: values, manifests, records, live objects.
//! While it computes, the thread that runs it does nothing else. On threads of its own it delays
//! other reconciles at most; the operating system shares the processor between them and the runtime
//! that the manager was started on, also where there is one core.

use std::io;
use std::thread::available_parallelism;

use tokio::runtime::{Builder, Handle, Runtime};

/// So many at least: one reconcile that computes shall not delay all others.
const LEAST: usize = 2;

/// The threads of the reconciles. When they are dropped, what runs there ends at its next await.
pub(super) struct Workers {
    /// `None` only while it is dropped.
    runtime: Option<Runtime>,
    handle: Handle,
}

impl Workers {
    /// Starts a thread for each core.
    pub fn start() -> io::Result<Self> {
        let threads = available_parallelism().map_or(LEAST, |cores| cores.get().max(LEAST));
        let runtime = Builder::new_multi_thread()
            .thread_name("reconcile")
            .worker_threads(threads)
            .enable_all()
            .build()?;
        Ok(Self { handle: runtime.handle().clone(), runtime: Some(runtime) })
    }

    /// Where reconciles are spawned.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        // Dropping a runtime waits for its threads, which must not be done on another runtime.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
