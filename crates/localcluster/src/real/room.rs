//! Where a real node lives: in namespaces of its own, which are the whole of its cleaning up.
//!
//! Its processes, their children and all containers are in one process namespace. Whoever ends its
//! first process ends them all, and with the last of them go the mounts, links, routes and rules that
//! are in the other namespaces: whether the end was in order, a panic, or a SIGKILL, which the kernel
//! passes on. Nothing of it is ever seen by the machine but one link and two routes through it, which
//! go too, the processes themselves, and control groups, for which see [`cgroups`].

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use super::needs::search_path;
use super::settings::{self, CONTAINERD};
use super::{ADDRESS, HOST, LINK, NAME, PODS, SERVICES, cgroups};
use crate::error::{Error, Result};
use crate::processes::Processes;
use crate::readiness::POLL;

/// What `unshare` is to separate from the machine. If it is killed, so is what it has started.
pub(super) const NAMESPACES: [&str; 8] =
    ["--mount", "--pid", "--net", "--ipc", "--uts", "--fork", "--kill-child", "--mount-proc"];

/// How long the kernel may take to end all of a node's processes.
const END: Duration = Duration::from_secs(10);

/// How often to look whether it has.
const PAUSE: Duration = Duration::from_millis(5);

/// The namespaces of a node. They end when this is dropped, which waits for it.
pub(super) struct NodeSandbox {
    cluster: PathBuf,
    /// `unshare`, which is parent to the first process.
    outer: u32,
}

impl NodeSandbox {
    /// Makes the namespaces, and the link between them and the machine.
    ///
    /// To be called by the one who holds the [`Claim`](super::claim::Claim): there is one link.
    pub(super) async fn open(cluster: &Path, processes: &Processes) -> Result<Self> {
        cgroups::remove_stale();
        cgroups::create(cluster);
        let node = settings::folder(cluster);
        let command = ["--", "sh"].map(OsString::from);
        let arguments = NAMESPACES.map(OsString::from).into_iter().chain(command).chain([
            node.join("init.sh").into(),
            node.clone().into(),
            NAME.into(),
        ]);
        let outer = processes.spawn("node", Path::new("unshare"), arguments.collect())?;
        let room = Self { cluster: cluster.to_owned(), outer };
        // If it fails it ends, which the supervisor sees and tells, with its log.
        while !node.join("prepared").exists() {
            tokio::time::sleep(POLL / 5).await;
        }
        room.link().await?;
        Ok(room)
    }

    /// The first process, in the machine's numbers.
    pub(super) fn init(&self) -> Result<u32> {
        children(self.outer)
            .first()
            .copied()
            .ok_or_else(|| Error::Invalid("the node's first process is gone".into()))
    }

    /// What starts `program` in the node: its name and the arguments before the program's own.
    pub(super) fn enter(&self, program: &str) -> Result<(PathBuf, Vec<OsString>)> {
        Ok(("nsenter".into(), enter(self.init()?, program)))
    }

    /// What of the node's file system is to be seen from outside, as long as it runs.
    pub(super) fn path(&self, path: &str) -> Result<PathBuf> {
        Ok(PathBuf::from(format!("/proc/{}/root{path}", self.init()?)))
    }

    /// Runs a program of the node, with `input`, and waits for it.
    pub(super) async fn run(&self, program: &str, arguments: &[&str], input: &[u8]) -> Result<()> {
        let (nsenter, mut all) = self.enter(program)?;
        all.extend(arguments.iter().map(OsString::from));
        run(&nsenter, &all, input).await.map(drop)
    }

    /// Like that between a machine and its router: the host reaches pods and Services through the
    /// node. The node reaches the host, and nothing beyond it: it has no other route, so that what
    /// would go there is refused at once instead of being lost.
    async fn link(&self) -> Result<()> {
        unlink();
        let host = format!(
            "link add {LINK} type veth peer name eth0 netns {init}\n\
             address add {HOST}/30 dev {LINK}\n\
             link set {LINK} up alias {cluster}\n\
             route add {SERVICES} via {ADDRESS}\n\
             route add {PODS} via {ADDRESS}\n",
            init = self.init()?,
            // For people who wonder whose it is.
            cluster = self.cluster.display(),
        );
        let batch = ["-batch", "-"];
        run(Path::new("ip"), &batch.map(OsString::from), host.as_bytes()).await?;
        // To Services, because the way must be known before their addresses are replaced.
        let node = format!(
            "address add {ADDRESS}/30 dev eth0\n\
             link set lo up\n\
             link set eth0 up\n\
             route add {SERVICES} via {HOST}\n",
        );
        self.run("ip", &batch, node.as_bytes()).await
    }
}

impl Drop for NodeSandbox {
    fn drop(&mut self) {
        let begun = Instant::now();
        for init in children(self.outer) {
            let pid = i32::try_from(init).ok().and_then(Pid::from_raw);
            // Fails if it has ended already.
            let _ = pid.map(|pid| rustix::process::kill_process(pid, Signal::KILL));
            // It is the last of its namespace to end.
            let itself = PathBuf::from(format!("/proc/{init}"));
            while itself.exists() && begun.elapsed() < END {
                thread::sleep(PAUSE);
            }
        }
        // The kernel would do it, some milliseconds later.
        unlink();
        cgroups::remove(&self.cluster);
    }
}

/// Takes away our end of the link; the other one and the routes go with it.
fn unlink() {
    let _ = std::process::Command::new("ip")
        .args(["link", "delete", LINK])
        .env("PATH", search_path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
}

/// `nsenter`'s arguments to run `program` where process `init` is.
pub(super) fn enter(init: u32, program: &str) -> Vec<OsString> {
    let init = init.to_string();
    ["--target", &init, "--mount", "--pid", "--net", "--ipc", "--uts", "--", program]
        .map(OsString::from)
        .into()
}

/// The arguments of `ctr` that load an image from standard input.
pub(super) fn import() -> [&'static str; 7] {
    ["--address", CONTAINERD, "--namespace", "k8s.io", "images", "import", "-"]
}

/// Runs a program and says what it said.
///
/// # Errors
/// With what it said on standard error, if it fails.
pub(super) async fn run(program: &Path, arguments: &[OsString], input: &[u8]) -> Result<String> {
    let what = || {
        let arguments: Vec<_> = arguments.iter().map(|a| a.to_string_lossy()).collect();
        format!("run {} {}", program.display(), arguments.join(" "))
    };
    let mut child = Command::new(program)
        .args(arguments)
        .env("PATH", search_path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(Error::io(what()))?;
    let stdin = child.stdin.take();
    let feed = async {
        // If it does not want all of it, its exit status tells.
        if let Some(mut stdin) = stdin {
            let _ = stdin.write_all(input).await;
        }
    };
    let ((), output) = tokio::join!(feed, child.wait_with_output());
    let output = output.map_err(Error::io(what()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(Error::io(what())(std::io::Error::other(format!("{}: {said}", output.status))));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The children of a process that has one thread.
fn children(pid: u32) -> Vec<u32> {
    let list = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    list.split_whitespace().filter_map(|child| child.parse().ok()).collect()
}
