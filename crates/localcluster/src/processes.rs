//! The control plane's processes: started so that they cannot outlive us, ended in order.

use std::cell::RefCell;
use std::ffi::OsString;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal};

use crate::error::{Error, Result};
use crate::pki::log_file;
use crate::real::search_path;

/// How many lines of a log an error shows.
const TAIL_LINES: usize = 20;

/// How much of a log's end is looked at for them, in bytes.
const TAIL_BYTES: u64 = 16 * 1024;

struct Running {
    what: What,
    child: Child,
}

/// How a process is started.
struct What {
    name: &'static str,
    program: PathBuf,
    arguments: Vec<OsString>,
}

/// The processes of one cluster, in the order of their start.
///
/// Must live on the main thread of its process: the kernel ties the signal that ends an orphan to
/// the *thread* that made it, not to the process.
pub(crate) struct Processes {
    folder: PathBuf,
    running: RefCell<Vec<Running>>,
    /// Ended on purpose, to be started again.
    ended: RefCell<Vec<What>>,
}

impl Processes {
    /// For a cluster whose files are in `folder`; logs go to `folder/logs`.
    pub(crate) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), running: RefCell::default(), ended: RefCell::default() }
    }

    /// Starts `program`, called `name` in errors and for its log. Says its process id.
    pub(crate) fn spawn(
        &self,
        name: &'static str,
        program: &Path,
        arguments: Vec<OsString>,
    ) -> Result<u32> {
        self.start(What { name, program: program.to_owned(), arguments })
    }

    /// Ends one where it stands; [`Processes::start_again`] starts it with the same arguments.
    pub(crate) fn kill(&self, name: &str) {
        let mut running = self.running.borrow_mut();
        let Some(at) = running.iter().position(|one| one.what.name == name) else { return };
        let mut one = running.remove(at);
        end(&mut one.child);
        self.ended.borrow_mut().push(one.what);
    }

    /// Starts one that was ended by [`Processes::kill`]; its log goes on.
    pub(crate) fn start_again(&self, name: &str) -> Result<()> {
        let mut ended = self.ended.borrow_mut();
        let Some(at) = ended.iter().position(|what| what.name == name) else { return Ok(()) };
        self.start(ended.remove(at)).map(drop)
    }

    fn start(&self, what: What) -> Result<u32> {
        let name = what.name;
        let log = log_file(&self.log(name))?;
        let errors = log.try_clone().map_err(Error::io(format!("open the log of {name}")))?;
        // Ourselves by this name, because our file may have been replaced since we were started.
        let child = Command::new("/proc/self/exe")
            .args(["exec", "--parent", &std::process::id().to_string(), "--"])
            .arg(&what.program)
            .args(&what.arguments)
            // Nothing of the user's settings (KUBECONFIG, GODEBUG, proxies) may change a cluster.
            .env_clear()
            .env("PATH", search_path())
            .env("HOME", &self.folder)
            .env("TMPDIR", &self.folder)
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(errors)
            .spawn()
            .map_err(Error::io(format!("start {name}")))?;
        let id = child.id();
        self.running.borrow_mut().push(Running { what, child });
        Ok(id)
    }

    /// One that has ended although nobody asked it to.
    pub(crate) fn dead(&self) -> Option<(&'static str, ExitStatus)> {
        let mut running = self.running.borrow_mut();
        running.iter_mut().find_map(|one| {
            let status = one.child.try_wait().ok().flatten()?;
            Some((one.what.name, status))
        })
    }

    /// Names and process ids of all, in the order of their start.
    pub(crate) fn list(&self) -> Vec<(String, u32)> {
        self.running.borrow().iter().map(|one| (one.what.name.to_owned(), one.child.id())).collect()
    }

    /// Ends all, the last started first, and waits for each.
    ///
    /// With SIGKILL: what they would save on a graceful end is thrown away with the folder, while an
    /// API server that is asked kindly waits for its watches, and for etcd if that went first.
    pub(crate) fn end(&self) {
        while let Some(mut one) = self.running.borrow_mut().pop() {
            end(&mut one.child);
        }
    }

    /// The last lines of a component's log.
    pub(crate) fn tail(&self, name: &str) -> String {
        tail(&self.log(name))
    }

    fn log(&self, name: &str) -> PathBuf {
        self.folder.join("logs").join(format!("{name}.log"))
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        self.end();
    }
}

fn end(child: &mut Child) {
    // Both fail only if it has ended already.
    let _ = child.kill();
    let _ = child.wait();
}

/// The last lines of a log; empty if it cannot be read.
pub(crate) fn tail(path: &Path) -> String {
    use std::io::{Read as _, Seek as _, SeekFrom};
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = fs::File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
        let mut end = Vec::new();
        file.take(TAIL_BYTES).read_to_end(&mut end)?;
        Ok(end)
    };
    let end = read().unwrap_or_default();
    let end = String::from_utf8_lossy(&end);
    let lines: Vec<&str> = end.lines().collect();
    let from = lines.len().saturating_sub(TAIL_LINES);
    lines.get(from..).unwrap_or_default().join("\n")
}

/// Becomes `program`, after having asked the kernel for SIGKILL at the end of `parent`.
///
/// Returns only on failure. A program of its own, because between fork and exec only unsafe code
/// could ask for it.
pub fn exec(parent: u32, program: &Path, arguments: &[OsString]) -> Error {
    if let Err(error) = rustix::process::set_parent_process_death_signal(Some(Signal::KILL)) {
        return Error::io("ask for a signal at the supervisor's end")(error.into());
    }
    // The parent may have ended before the kernel knew of our wish. Then we have another one now.
    let actual = rustix::process::getppid().map(Pid::as_raw_nonzero);
    if actual.map(|pid| pid.get().unsigned_abs()) != Some(parent) {
        return Error::Invalid("the supervisor has ended".into());
    }
    let error = Command::new(program).args(arguments).exec();
    Error::io(format!("run {}", program.display()))(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_of_a_log_is_its_last_lines() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.log");
        let lines: Vec<String> = (0..5000).map(|i| format!("line {i}")).collect();
        fs::write(&path, lines.join("\n")).unwrap();
        assert_eq!(tail(&path), lines[5000 - TAIL_LINES..].join("\n"));
        assert_eq!(tail(&folder.path().join("none")), "");
    }
}
