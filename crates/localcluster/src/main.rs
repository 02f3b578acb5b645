//! `localcluster`: a real control plane for people, and the process behind those for tests.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use catamaran_localcluster::program_parts;
use clap::{Args, Parser, Subcommand};

mod commands;

/// A real Kubernetes control plane with simulated nodes on this machine, in seconds and without root.
///
/// Everything is on loopback and in a temporary folder. Nothing is left when it ends. As root, on
/// Debian, it can have a real node too.
#[derive(Parser)]
#[command(name = "localcluster", version, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Subcommands,
}

#[derive(Subcommand)]
enum Subcommands {
    /// Start a control plane and keep it until Ctrl-C
    Up {
        #[command(flatten)]
        cluster: Cluster,
        /// Write the kubeconfig to this file too (replacing it), and remove it at the end
        #[arg(long, value_name = "FILE")]
        kubeconfig: Option<PathBuf>,
    },
    /// Start a control plane, run a command on it, and end it
    ///
    /// The command finds the control plane by $KUBECONFIG, and kubectl and helm by $PATH. Its exit
    /// status is ours.
    Run {
        #[command(flatten)]
        cluster: Cluster,
        /// The command with its arguments
        #[arg(last = true, required = true, value_name = "COMMAND")]
        command: Vec<OsString>,
    },
    /// Load images into the real node of the cluster of $KUBECONFIG
    Load {
        /// Archives as `docker save` and `buildah push … docker-archive:` write them
        #[arg(required = true, value_name = "ARCHIVE")]
        archives: Vec<PathBuf>,
        /// The kubeconfig, in the cluster's own folder, as `run` sets it
        #[arg(long, env = "KUBECONFIG", value_name = "FILE")]
        kubeconfig: PathBuf,
    },
    /// Show the cluster that this checkout's tests share, if it runs
    Status,
    /// End the cluster that this checkout's tests share
    Stop,
    /// Own a control plane's processes as long as there are leases (started by the others)
    #[command(hide = true)]
    Supervise {
        /// What to start, as JSON
        specification: String,
    },
    /// Become a program that ends with its parent (started by the supervisor)
    #[command(hide = true)]
    Exec {
        #[arg(long)]
        parent: u32,
        #[arg(last = true, required = true)]
        command: Vec<OsString>,
    },
}

/// The kind of cluster.
#[derive(Args)]
struct Cluster {
    /// How many simulated nodes [default: 2, or 0 beside a real one]
    #[arg(long, value_name = "N")]
    nodes: Option<u16>,
    /// Add a real node: containers, on this machine (needs root and Debian's packages)
    ///
    /// If simulated nodes are asked for too and a real one is not possible, the cluster starts without
    /// it and says so.
    #[arg(long)]
    real_node: bool,
    /// Load an image into the real node (repeatable)
    #[arg(long, value_name = "ARCHIVE", requires = "real_node")]
    image: Vec<PathBuf>,
    /// Keep a log of all requests, beside the kubeconfig
    #[arg(long)]
    audit: bool,
}

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("localcluster: {error:?}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Subcommands) -> catamaran_localcluster::Result<ExitCode> {
    match command {
        Subcommands::Up { cluster, kubeconfig } => commands::up(&cluster, kubeconfig.as_deref()),
        Subcommands::Run { cluster, command } => commands::run(&cluster, &command),
        Subcommands::Load { archives, kubeconfig } => commands::load(&archives, &kubeconfig),
        Subcommands::Status => commands::status(),
        Subcommands::Stop => commands::stop(),
        Subcommands::Supervise { specification } => {
            program_parts::supervise(&specification).map(|()| ExitCode::SUCCESS)
        }
        Subcommands::Exec { parent, command } => {
            let (program, arguments) = command.split_first().unzip();
            let program = program.map(PathBuf::from).unwrap_or_default();
            Err(program_parts::exec(parent, &program, arguments.unwrap_or_default()))
        }
    }
}
