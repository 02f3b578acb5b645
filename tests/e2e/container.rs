//! Containers as this machine sees them: processes, with control groups.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The operator's program, inside its image.
pub const OPERATOR: &str = "/opt/operator/memcached-operator";

/// The first process of a container. The node's processes are this machine's, whatever namespaces
/// they are in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process(u32);

/// The most memory that a process, and its container, have had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Peak {
    /// What was resident, in bytes.
    pub resident: u64,
    /// What the kernel charged the container with, in bytes; 0 if the kernel does not tell. Pages of
    /// files are charged to whoever touched them first, mostly the one who unpacked the image.
    pub charged: u64,
}

impl Process {
    /// The process of a container, by its id as a pod's status has it (`containerd://…`).
    pub fn of(container: &str) -> Option<Self> {
        let id = container.rsplit('/').next().filter(|id| !id.is_empty())?;
        all().find(|process| process.read("cgroup").contains(id))
    }

    /// All processes that run this program in a container.
    pub fn running(program: &str) -> Vec<Self> {
        let exe = |process: &Self| fs::read_link(process.folder().join("exe"));
        let is_meant = |process: &Self| exe(process).is_ok_and(|exe| exe == Path::new(program));
        all().filter(is_meant).collect()
    }

    /// Whether it still runs. One that has ended but was not collected yet does not.
    pub fn is_alive(self) -> bool {
        let stat = self.read("stat");
        let state = stat.rsplit(") ").next().and_then(|rest| rest.chars().next());
        state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
    }

    /// Kills it where it stands.
    pub fn kill(self) {
        let sent = Command::new("kill").args(["-KILL", &self.0.to_string()]).status().unwrap();
        assert!(sent.success(), "kill -KILL {}", self.0);
    }

    /// The most memory that it has had so far; nothing if it has ended.
    pub fn peak(self) -> Peak {
        let status = self.read("status");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
        let kibibytes = line.trim().trim_end_matches(" kB").parse().unwrap_or(0);
        Peak { resident: kibibytes * 1024, charged: self.charged().unwrap_or(0) }
    }

    fn charged(self) -> Option<u64> {
        let groups = self.read("cgroup");
        // `4:memory:/path` is a hierarchy of version 1, `0::/path` that of version 2.
        let path = |of: &str| groups.lines().find_map(|line| line.split_once(of).map(|(_, p)| p));
        let read = |file: PathBuf| fs::read_to_string(file).ok()?.trim().parse().ok();
        let file = |mount: &str, path: &str, name: &str| {
            Path::new(mount).join(path.trim_start_matches('/')).join(name)
        };
        let first = path(":memory:").and_then(|path| {
            read(file("/sys/fs/cgroup/memory", path, "memory.max_usage_in_bytes"))
        });
        first.or_else(|| read(file("/sys/fs/cgroup", path("0::")?, "memory.peak")))
    }

    fn folder(self) -> PathBuf {
        Path::new("/proc").join(self.0.to_string())
    }

    /// A file about it; empty if it has ended.
    fn read(self, name: &str) -> String {
        fs::read_to_string(self.folder().join(name)).unwrap_or_default()
    }
}

fn all() -> impl Iterator<Item = Process> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok().map(Process))
}
