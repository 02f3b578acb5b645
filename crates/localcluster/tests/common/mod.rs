//! What the tests here have in common. Every wait is for a condition, with a deadline.
#![allow(dead_code)] // each test program uses its part

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a cluster may take to vanish: far more than it does, and than those who remove what a killed
/// one left may wait for its last processes.
pub const END: Duration = Duration::from_mins(1);

/// How long an ordinary thing may take.
pub const SOON: Duration = Duration::from_mins(1);

/// Asks until there is an answer, and panics if there is none in time.
pub async fn eventually<T>(
    what: &str,
    deadline: Duration,
    mut ask: impl AsyncFnMut() -> Option<T>,
) -> T {
    let begun = Instant::now();
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(begun.elapsed() < deadline, "waited {deadline:?} in vain for {what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The command lines of all processes that mention a folder.
pub fn processes_of(folder: &Path) -> Vec<String> {
    let folder = folder.to_str().unwrap();
    fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| fs::read(entry.path().join("cmdline")).ok())
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .filter(|line| line.contains(folder))
        .collect()
}

/// Waits until neither a process nor the folder is left of a cluster.
pub async fn gone(folder: &Path) {
    let begun = Instant::now();
    loop {
        let left = processes_of(folder);
        if left.is_empty() && !folder.exists() {
            return;
        }
        assert!(
            begun.elapsed() < END,
            "after {END:?}: folder is there: {}, processes: {left:#?}",
            folder.exists()
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Sends a signal to a process.
pub fn signal(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}
