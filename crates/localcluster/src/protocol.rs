//! What the supervisor and those who hold leases say to each other: one JSON value per line.
//!
//! The connection itself is the lease. Its end is noticed whatever happens to the process at its
//! other side, because the kernel closes it.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::Failure;
use crate::real::RealNode;

/// What to start, given to `localcluster supervise`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Spec {
    /// Where everything of this cluster lies; removed at the end.
    pub(crate) folder: PathBuf,
    /// Where etcd, kube-apiserver and the others are.
    pub(crate) tools: PathBuf,
    /// How many simulated nodes.
    pub(crate) nodes: u16,
    /// Whether there is a real node too.
    pub(crate) real_node: bool,
    /// Where kubelet and kube-proxy are, if not with the other tools.
    pub(crate) node_tools: Option<PathBuf>,
    /// Whether an audit log is kept.
    pub(crate) audit: bool,
    /// Where others may come for a lease; `None`: the first one is the only one.
    pub(crate) socket: Option<PathBuf>,
    /// The cluster ends when this is gone.
    pub(crate) checkout: Option<PathBuf>,
    /// How long the cluster waits for the next lease after the last one.
    pub(crate) linger: Duration,
    /// How long a start may take.
    pub(crate) deadline: Duration,
    /// Leave the folder for a person who wants to read the logs.
    pub(crate) keep: bool,
}

/// From the supervisor.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Event {
    /// Others can connect from now on.
    Listening,
    /// A step of the start is done.
    Progress(String),
    /// The cluster is ready to be used.
    Ready(Info),
    /// It did not come up, or it broke. [`Event::Ended`] follows.
    Failed(Failure),
    /// The answer to [`Command::Status`].
    Status(Status),
    /// Every process has ended and the folder is gone.
    Ended,
}

/// To the supervisor.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Command {
    /// Delete this namespace, some time.
    DeleteNamespace(String),
    /// Kill the API server of a cluster that nobody shares.
    KillApiServer,
    /// Start it again.
    StartApiServer,
    /// Say how you are.
    Status,
    /// End now, whoever else holds a lease.
    Stop,
}

/// What a client must know of a cluster.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Info {
    pub(crate) folder: PathBuf,
    pub(crate) tools: PathBuf,
    /// As `https://127.0.0.1:34567`.
    pub(crate) server: String,
    /// As `v1.36.3`.
    pub(crate) version: String,
    pub(crate) audit: bool,
    /// The supervisor's process id.
    pub(crate) supervisor: u32,
    pub(crate) real_node: Option<RealNode>,
}

/// A running cluster, as `localcluster status` shows it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Status {
    /// Where its files are.
    pub folder: PathBuf,
    /// How many leases there are besides the one that asks.
    pub leases: usize,
    /// Whether it is ready.
    pub ready: bool,
    /// How long ago it was started.
    pub age: Duration,
    /// Its processes: name, process id.
    pub processes: Vec<(String, u32)>,
}

/// A message as it goes over the wire.
pub(crate) fn line(message: &impl Serialize) -> String {
    // These types have no maps with other keys than strings and no failing `Serialize`.
    let mut line = serde_json::to_string(message).unwrap_or_default();
    line.push('\n');
    line
}
