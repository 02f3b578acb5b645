//! The programs that the control plane consists of, and the real peers beside it.

use std::env;
use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::places::checkout;

/// Names the folder with all tools, and is believed.
const VARIABLE: &str = "CATAMARAN_TOOLS";

/// A search that takes longer than this has something to tell.
const SILENCE: Duration = Duration::from_secs(3);

/// Every tool that must be there.
const NEEDED: [&str; 8] = [
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kwok",
    "kubectl",
    "helm",
    "helm3",
];

/// Where the pinned tools are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tools {
    folder: PathBuf,
}

impl Tools {
    /// The folder that holds them all.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The real `kubectl`, of the control plane's version.
    pub fn kubectl(&self) -> PathBuf {
        self.folder.join("kubectl")
    }

    /// The real `helm` 4.
    pub fn helm(&self) -> PathBuf {
        self.folder.join("helm")
    }

    /// The real `helm` 3.18.
    pub fn helm3(&self) -> PathBuf {
        self.folder.join("helm3")
    }

    /// The environment's `PATH` with the tools first.
    pub fn search_path(&self) -> OsString {
        let rest = env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(self.folder.clone()).chain(env::split_paths(&rest));
        // Fails for a folder with a colon in its name, which then could not be on a PATH anyway.
        env::join_paths(folders).unwrap_or(rest)
    }

    fn check(self) -> Result<Self> {
        let missing: Vec<_> =
            NEEDED.into_iter().filter(|name| !self.folder.join(name).is_file()).collect();
        if missing.is_empty() {
            return Ok(self);
        }
        let (folder, missing) = (self.folder.display(), missing.join(", "));
        Err(Error::Tools(format!("{folder} lacks {missing}")))
    }
}

/// Finds the tools: in `$CATAMARAN_TOOLS`, else by `hack/tools.sh`, which builds what is missing.
///
/// Blocks: for a fraction of a second if they are there, for a dozen minutes on a fresh machine, with
/// the progress on standard error. Asked once per process.
///
/// # Errors
/// [`Error::Tools`] if a tool is missing and cannot be built.
pub fn tools() -> Result<Tools> {
    static FOUND: Mutex<Option<Tools>> = Mutex::new(None);
    let mut found = FOUND.lock().map_err(|_| Error::Tools("an earlier search panicked".into()))?;
    if let Some(tools) = found.as_ref() {
        return Ok(tools.clone());
    }
    let folder = match env::var_os(VARIABLE) {
        Some(folder) => folder.into(),
        None => search(&["path"])?,
    };
    Ok(found.insert(Tools { folder }.check()?).clone())
}

/// The folder with kubelet and kube-proxy: as [`tools`], which it need not be, because few need them.
pub(crate) fn node_tools() -> Result<PathBuf> {
    static FOUND: Mutex<Option<PathBuf>> = Mutex::new(None);
    let mut found = FOUND.lock().map_err(|_| Error::Tools("an earlier search panicked".into()))?;
    if let Some(folder) = found.as_ref() {
        return Ok(folder.clone());
    }
    let named = env::var_os(VARIABLE).map(PathBuf::from).filter(|folder| has_node_tools(folder));
    let folder = named.map_or_else(|| search(&["--node", "path"]), Ok)?;
    Ok(found.insert(folder).clone())
}

/// Whether a folder has what a real node needs.
pub(crate) fn has_node_tools(folder: &Path) -> bool {
    ["kubelet", "kube-proxy"].iter().all(|name| folder.join(name).is_file())
}

/// As [`tools`], for a folder that the caller knows.
pub(crate) fn tools_in(folder: &Path) -> Result<Tools> {
    Tools { folder: folder.to_owned() }.check()
}

/// Asks `hack/tools.sh`.
fn search(arguments: &[&str]) -> Result<PathBuf> {
    let root = checkout().ok_or_else(|| {
        Error::Tools(format!("the checkout is gone; set ${VARIABLE} to their folder"))
    })?;
    let script = root.join("hack/tools.sh");
    let failed = |error: &dyn std::fmt::Display| {
        Error::Tools(format!("{} failed: {error}", script.display()))
    };
    let mut child = Command::new(&script)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| failed(&error))?;
    let said = relay(&mut child);
    let mut folder = String::new();
    if let Some(mut stdout) = child.stdout.take() {
        stdout.read_to_string(&mut folder).map_err(|error| failed(&error))?;
    }
    let status = child.wait().map_err(|error| failed(&error))?;
    if !status.success() {
        let said = said.and_then(|thread| thread.join().ok()).unwrap_or_default();
        return Err(failed(&format!("{status}\n{said}")));
    }
    Ok(folder.trim().into())
}

/// Passes on what the search says, unless it is done at once: then all were there, and nobody wants
/// to read that at each start of each test.
fn relay(child: &mut Child) -> Option<thread::JoinHandle<String>> {
    let stderr = child.stderr.take()?;
    let begun = Instant::now();
    Some(thread::spawn(move || {
        let mut held = String::new();
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            if begun.elapsed() > SILENCE {
                eprintln!("{}{line}", std::mem::take(&mut held));
            } else {
                held.push_str(&line);
                held.push('\n');
            }
        }
        held
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_lacks_tools_is_an_error_that_names_them() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("etcd"), "").unwrap();
        let error = tools_in(folder.path()).unwrap_err().to_string();
        assert!(error.ends_with("lacks kube-apiserver, kube-controller-manager, kube-scheduler, kwok, kubectl, helm, helm3"), "{error}");
    }

    #[test]
    fn the_tools_come_first_on_the_search_path() {
        let tools = Tools { folder: "/tools".into() };
        assert!(tools.search_path().to_string_lossy().starts_with("/tools:"));
    }
}
