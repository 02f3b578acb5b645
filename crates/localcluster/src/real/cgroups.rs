//! Control groups, the one thing of a real node that the kernel does not take away with its
//! processes.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// Where they are mounted: the only hierarchy, or a folder for each of version 1's.
const MOUNT: &str = "/sys/fs/cgroup";

/// What the names of ours begin with.
const PREFIX: &str = "catamaran-";

/// How long processes that were killed may take to leave their groups.
const DEADLINE: Duration = Duration::from_secs(10);

/// How often to look whether they have.
const PAUSE: Duration = Duration::from_millis(10);

/// The name of the group that all containers of a cluster's node are in.
pub(super) fn name(folder: &Path) -> String {
    let cluster = folder.file_name().unwrap_or_default().to_string_lossy();
    format!("{PREFIX}{cluster}")
}

/// Creates the groups of the cluster in `folder`, in each hierarchy, because kubelet expects its root
/// to be there.
pub(super) fn create(folder: &Path) {
    let mount = Path::new(MOUNT);
    let only = mount.join("cgroup.controllers").exists();
    let hierarchies = if only { vec![mount.to_owned()] } else { folders(mount) };
    for hierarchy in hierarchies {
        // Where it fails, kubelet says so, and why.
        let _ = fs::create_dir(hierarchy.join(name(folder)));
    }
}

/// Removes the groups of the cluster in `folder`, as soon as its processes have left them.
pub(super) fn remove(folder: &Path) {
    let name = name(folder);
    let begun = Instant::now();
    while !remove_where(Path::new(MOUNT), |found| found == name) && begun.elapsed() < DEADLINE {
        thread::sleep(PAUSE);
    }
}

/// Removes the groups of all clusters, as far as they have no processes.
pub(super) fn remove_stale() {
    remove_where(Path::new(MOUNT), |found| found.starts_with(PREFIX));
}

/// Whether none is left of those whose names are wanted.
fn remove_where(mount: &Path, wanted: impl Fn(&str) -> bool) -> bool {
    let hierarchies = folders(mount).into_iter().chain([mount.to_owned()]);
    let ours = hierarchies
        .flat_map(|hierarchy| folders(&hierarchy))
        .filter(|group| group.file_name().and_then(|name| name.to_str()).is_some_and(&wanted));
    // All, although one may fail.
    ours.map(|group| remove_tree(&group)).filter(Result::is_err).count() == 0
}

/// Innermost first. The files in a group cannot and need not be removed.
fn remove_tree(group: &Path) -> io::Result<()> {
    for inner in folders(group) {
        remove_tree(&inner)?;
    }
    match fs::remove_dir(group) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

fn folders(of: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(of).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_found_in_every_hierarchy_and_others_stay() {
        let mount = tempfile::tempdir().unwrap();
        let make = |path: &str| fs::create_dir_all(mount.path().join(path)).unwrap();
        make("memory/catamaran-own-x/container/inner");
        make("cpu/catamaran-own-x");
        make("catamaran-own-x");
        make("memory/catamaran-own-y");
        make("memory/else");
        assert!(remove_where(mount.path(), |name| name == "catamaran-own-x"));
        let left = |path: &str| mount.path().join(path).exists();
        assert!(!left("memory/catamaran-own-x") && !left("cpu/catamaran-own-x"));
        assert!(!left("catamaran-own-x"));
        assert!(left("memory/catamaran-own-y") && left("memory/else"));
    }

    #[test]
    fn a_group_in_use_is_told() {
        let mount = tempfile::tempdir().unwrap();
        let group = mount.path().join("memory/catamaran-own-x");
        fs::create_dir_all(&group).unwrap();
        // As a process would: it makes the kernel refuse.
        fs::write(group.join("process"), "").unwrap();
        assert!(!remove_where(mount.path(), |name| name == "catamaran-own-x"));
    }
}
