//! Whether this machine can have a real node, and what it lacks.

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsString;
use std::process::{Command, Stdio};

use super::room::NAMESPACES;

/// Debian's packages and the programs that are needed of them.
const PACKAGES: &str = include_str!("../../../../hack/node-packages.txt");

/// Where the administrator's programs are, which not everybody has on the PATH.
const ADMINISTRATION: [&str; 2] = ["/usr/sbin", "/sbin"];

/// The environment's PATH, with the administrator's programs.
pub(crate) fn search_path() -> OsString {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain(ADMINISTRATION.map(Into::into));
    env::join_paths(folders).unwrap_or(path)
}

/// What is missing, as one sentence.
pub(crate) fn check() -> Result<(), String> {
    let path = search_path();
    let mut missing = Vec::new();
    let root = rustix::process::geteuid().is_root();
    if !root {
        missing.push("root".to_owned());
    }
    let packages = lacking(PACKAGES, |program| is_there(program, &path));
    if !packages.is_empty() {
        let packages: Vec<_> = packages.into_iter().collect();
        missing.push(format!("Debian's packages {} (hack/node.sh install)", packages.join(", ")));
    } else if root && !can_separate() {
        missing.push("the right to make namespaces".into());
    }
    if missing.is_empty() {
        return Ok(());
    }
    Err(format!("no real node is possible here: it needs {}", missing.join(", and ")))
}

/// The packages that a node needs and of which a program is not there.
fn lacking(list: &str, there: impl Fn(&str) -> bool) -> BTreeSet<&str> {
    let lines = list.lines().map(|line| line.split_whitespace());
    let packages = lines.filter_map(|mut words| match (words.next(), words.next()) {
        (Some("node"), Some(package)) => Some((package, words)),
        _ => None,
    });
    packages
        .filter(|(_, programs)| !programs.clone().all(&there))
        .map(|(package, _)| package)
        .collect()
}

fn is_there(program: &str, path: &OsString) -> bool {
    // An absolute path, joined to any folder, is itself.
    env::split_paths(path).any(|folder| folder.join(program).is_file())
}

/// Tried rather than guessed from capabilities: a container's rules may forbid it all the same.
fn can_separate() -> bool {
    Command::new("unshare")
        .args(NAMESPACES)
        .arg("true")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_lacking_if_one_of_its_programs_is() {
        let list = "# use package programs\n\nnode a a1 a2\nnode b /b\nimage c c1\n";
        assert_eq!(lacking(list, |_| true), BTreeSet::new());
        assert_eq!(lacking(list, |program| program != "a2"), BTreeSet::from(["a"]));
        assert_eq!(lacking(list, |_| false), BTreeSet::from(["a", "b"]), "no node needs c");
    }

    #[test]
    fn the_list_names_what_is_needed() {
        let all = lacking(PACKAGES, |_| false);
        assert!(all.contains("containerd") && all.contains("nftables"), "{all:?}");
        assert!(!all.contains("buildah"), "it builds images, no node");
    }
}
