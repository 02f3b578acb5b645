//! A real control plane, started in seconds: etcd, API server, controller-manager, scheduler, and
//! nodes: simulated ones, a real one, or both.
//!
//! ```no_run
//! # async fn example() -> Result<(), catamaran_localcluster::Error> {
//! // A share in the checkout's cluster; it runs as long as anybody has one.
//! let cluster = catamaran_localcluster::shared().await?;
//! let namespace = cluster.namespace("scale").await?;
//! let client = cluster.client();
//!
//! // Or one of my own, for what would disturb others: CRDs, webhooks, all namespaces.
//! let own = catamaran_localcluster::LocalCluster::builder().nodes(2).audit(true).start().await?;
//! let mark = own.audit().mark()?;
//! // ... the operator runs with own.service_account("ns", "operator") ...
//! let requests = own.audit().of_agent("memcached-operator").since(mark)?;
//! # Ok(())
//! # }
//! ```
//!
//! # A real node
//!
//! Simulated nodes show what is asked for; a real one shows that it works. It needs root and some of
//! Debian's packages (`hack/node.sh install`), and there is room for one on a machine.
//!
//! ```no_run
//! # async fn example() -> Result<(), catamaran_localcluster::Error> {
//! use catamaran_localcluster::LocalCluster;
//! if let Err(why) = LocalCluster::real_node_available() {
//!     eprintln!("SKIPPED: {why}");
//!     return Ok(());
//! }
//! let cluster = LocalCluster::builder().real_node().start().await?;
//! if let Some(node) = cluster.real_node() {
//!     node.load_image("operator.tar".as_ref()).await?; // or made on the spot: see `Image`
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Its containers, mounts, links and rules are in namespaces of its own, a machine in the machine.
//! Services and pods are reached from here by their addresses; from inside, the API server is, and
//! nothing beyond: no registry and no name server.
//!
//! # Nothing is left behind
//!
//! A process of its own, the *supervisor* (`localcluster supervise`), owns the control plane's
//! processes. Everyone else holds *leases*: open connections to it. The kernel closes a connection
//! whatever becomes of its holder (drop, panic, Ctrl-C, SIGKILL), and without leases the supervisor
//! ends the components in order, removes their folder and exits. If the supervisor itself is killed,
//! the kernel kills its children, as each has asked it to before it became etcd, kube-apiserver and
//! so on. The folder that remains in that case is swept by the next start. A real node's namespaces
//! end with its first process, which is such a child; its control groups are swept like the folder.
//!
//! This relies on Linux. To read the logs of a cluster that has ended, set
//! `CATAMARAN_LOCALCLUSTER_KEEP=1`: its folder remains in `/tmp/catamaran-UID`.

mod access;
mod audit;
mod builder;
mod cluster;
mod control_plane;
mod error;
mod image;
mod lease;
mod namespace;
mod nodes;
mod pki;
mod places;
mod ports;
mod processes;
mod program;
mod protocol;
mod readiness;
mod real;
mod supervisor;
mod tools;

/// For `kubectl wait`: until a definition is served. Asked for the condition by name, kubectl fails where
/// there are no conditions yet.
pub const ESTABLISHED: &str =
    "--for=jsonpath={.status.conditions[?(@.type==\"Established\")].status}=True";

pub use audit::{AuditLog, Mark, Request};
pub use builder::{Builder, shared};
pub use cluster::LocalCluster;
pub use error::{Error, Failure, Result};
pub use image::Image;
pub use namespace::Namespace;
pub use ports::free_port;
pub use protocol::Status;
pub use real::RealNode;
pub use tools::{Tools, tools};

/// For the program `localcluster`; nobody else needs it.
#[doc(hidden)]
pub mod program_parts {
    pub use crate::builder::shared_builder;
    pub use crate::processes::exec;
    pub use crate::supervisor::run as supervise;
}
