//! What the subcommands do.

use std::ffi::OsString;
use std::fs;
use std::future::Future;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus};

use catamaran_localcluster::{Error, LocalCluster, RealNode, Result, program_parts};
use rustix::process::{Pid, Signal};
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};

use crate::Cluster;

/// How many simulated nodes there are if nobody says otherwise.
const NODES: u16 = 2;

/// What a shell says for a process that was ended by a signal: this plus the signal's number.
const SIGNALLED: i32 = 128;

/// Starts a cluster, says how to use it, and waits for Ctrl-C.
pub(crate) fn up(cluster: &Cluster, kubeconfig: Option<&Path>) -> Result<ExitCode> {
    block_on(async {
        let mut signals = Signals::new()?;
        let Some(mut cluster) = start(cluster, &mut signals).await? else {
            return Ok(ExitCode::FAILURE);
        };
        if let Some(copy) = kubeconfig {
            fs::copy(cluster.kubeconfig(), copy).map_err(io_error("write", copy))?;
        }
        explain(&cluster, kubeconfig)?;
        let broken = tokio::select! {
            _ = signals.next() => None,
            broken = cluster.ended() => Some(broken),
        };
        if let Some(copy) = kubeconfig {
            remove_copy(&cluster, copy);
        }
        match broken {
            None => {
                eprintln!("\nEnding the control plane …");
                cluster.stop().await;
                eprintln!("Everything has ended, and nothing is left.");
                Ok(ExitCode::SUCCESS)
            }
            Some(None) => {
                eprintln!("\nThe control plane was ended from elsewhere.");
                Ok(ExitCode::FAILURE)
            }
            Some(Some(error)) => Err(error),
        }
    })
}

/// Starts a cluster, runs a command on it, and ends it.
pub(crate) fn run(cluster: &Cluster, command: &[OsString]) -> Result<ExitCode> {
    let (program, arguments) = command.split_first().unzip();
    let (program, arguments) =
        (program.cloned().unwrap_or_default(), arguments.unwrap_or_default());
    block_on(async {
        let mut signals = Signals::new()?;
        let Some(cluster) = start(cluster, &mut signals).await? else {
            return Ok(ExitCode::FAILURE);
        };
        let mut child = Command::new(&program)
            .args(arguments)
            .env("KUBECONFIG", cluster.kubeconfig())
            .env("CATAMARAN_TOOLS", cluster.tools()?.folder())
            .env("PATH", cluster.tools()?.search_path())
            .spawn()
            .map_err(io_error("run", Path::new(&program)))?;
        let status = attend(&mut child, &mut signals)
            .await
            .map_err(io_error("await", Path::new(&program)))?;
        cluster.stop().await;
        Ok(exit_code(status))
    })
}

/// Waits for a child. Ctrl-C reaches it without us, being in our process group; SIGTERM does not.
async fn attend(child: &mut Child, signals: &mut Signals) -> io::Result<ExitStatus> {
    loop {
        tokio::select! {
            status = child.wait() => return status,
            caught = signals.next() => if caught == SignalKind::terminate() {
                let pid = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
                // It may just have ended.
                let _ = pid.map(|pid| rustix::process::kill_process(pid, Signal::TERM));
            },
        }
    }
}

/// Shows the shared cluster.
pub(crate) fn status() -> Result<ExitCode> {
    block_on(async {
        let Some(status) = program_parts::shared_builder()?.status().await? else {
            println!("no shared cluster is running");
            return Ok(ExitCode::FAILURE);
        };
        let state = if status.ready { "ready" } else { "starting" };
        println!("{state}, {} leases, since {} s", status.leases, status.age.as_secs());
        println!("KUBECONFIG={}", status.folder.join("kubeconfig").display());
        for (name, pid) in status.processes {
            println!("{pid:>8}  {name}");
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// Ends the shared cluster.
pub(crate) fn stop() -> Result<ExitCode> {
    block_on(async {
        let was_there = program_parts::shared_builder()?.stop_shared().await?;
        println!("{}", if was_there { "ended" } else { "no shared cluster is running" });
        Ok(ExitCode::SUCCESS)
    })
}

/// Starts a cluster of our own, and tells how it goes. `None`: interrupted.
async fn start(cluster: &Cluster, signals: &mut Signals) -> Result<Option<LocalCluster>> {
    let real_node = wants_real_node(cluster)?;
    let nodes = cluster.nodes.unwrap_or(if real_node { 0 } else { NODES });
    let real = if real_node { "a real and " } else { "" };
    eprintln!("Starting a control plane with {real}{nodes} simulated nodes …");
    let builder = LocalCluster::builder()
        .nodes(nodes)
        .audit(cluster.audit)
        .on_progress(|text| eprintln!("  {text}"));
    let builder = if real_node { builder.real_node() } else { builder };
    let start = async {
        let started = builder.start().await?;
        if let Some(node) = started.real_node() {
            load_images(node, &cluster.image).await?;
        }
        Ok(started)
    };
    tokio::select! {
        started = start => started.map(Some),
        // The lease goes with the future, and the control plane with the lease.
        _ = signals.next() => {
            eprintln!("\nInterrupted; what was started ends now.");
            Ok(None)
        }
    }
}

/// Whether there is to be a real node: not if it cannot be, and there are others to do without.
fn wants_real_node(cluster: &Cluster) -> Result<bool> {
    if !cluster.real_node {
        return Ok(false);
    }
    match LocalCluster::real_node_available() {
        Ok(()) => Ok(true),
        Err(why) if cluster.nodes.is_some_and(|count| count > 0) && cluster.image.is_empty() => {
            eprintln!("{why}; the simulated nodes remain");
            Ok(false)
        }
        Err(why) => Err(Error::RealNode(why)),
    }
}

/// Loads images into the real node of a running cluster.
pub(crate) fn load(archives: &[PathBuf], kubeconfig: &Path) -> Result<ExitCode> {
    let node = RealNode::of_kubeconfig(kubeconfig)?;
    block_on(load_images(&node, archives))?;
    Ok(ExitCode::SUCCESS)
}

async fn load_images(node: &RealNode, archives: &[PathBuf]) -> Result<()> {
    for archive in archives {
        node.load_image(archive).await?;
        eprintln!("  loaded {}", archive.display());
    }
    Ok(())
}

/// How to use it.
fn explain(cluster: &LocalCluster, kubeconfig: Option<&Path>) -> Result<()> {
    let kubeconfig = kubeconfig.unwrap_or(cluster.kubeconfig());
    println!("\nKubernetes {} is up. In another terminal:\n", cluster.version());
    println!("    export KUBECONFIG={}", kubeconfig.display());
    println!(
        "    export PATH={}:$PATH    # kubectl, helm, helm3\n",
        cluster.tools()?.folder().display()
    );
    println!("Logs: {}", cluster.folder().join("logs").display());
    if let Ok(log) = cluster.audit().mark().map(|_| cluster.folder().join("audit.log")) {
        println!("Requests: {}", log.display());
    }
    println!("Ctrl-C ends it.");
    Ok(())
}

/// Removes our copy of the kubeconfig, unless it is somebody else's by now.
fn remove_copy(cluster: &LocalCluster, copy: &Path) {
    let ours = fs::read_to_string(copy).is_ok_and(|text| text.contains(cluster.server()));
    if ours {
        let _ = fs::remove_file(copy);
    }
}

/// The signals by which people and their programs end us.
struct Signals(Vec<(SignalKind, tokio::signal::unix::Signal)>);

impl Signals {
    fn new() -> Result<Self> {
        [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()]
            .into_iter()
            .map(|kind| Ok((kind, signal(kind)?)))
            .collect::<io::Result<_>>()
            .map(Self)
            .map_err(|source| Error::Io { what: "listen to signals".into(), source })
    }

    async fn next(&mut self) -> SignalKind {
        std::future::poll_fn(|context| {
            for (kind, signal) in &mut self.0 {
                if signal.poll_recv(context).is_ready() {
                    return std::task::Poll::Ready(*kind);
                }
            }
            std::task::Poll::Pending
        })
        .await
    }
}

fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().or(status.signal().map(|number| SIGNALLED + number)).unwrap_or(1);
    ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX))
}

fn io_error(verb: &str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let what = format!("{verb} {}", path.display());
    |source| Error::Io { what, source }
}

fn block_on<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| Error::Io { what: "start the runtime".into(), source })?
        .block_on(work)
}
