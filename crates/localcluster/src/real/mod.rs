//! A real node: kubelet, containerd, runc, CNI and kube-proxy, with real containers in real pods.
//!
//! It is a machine in the machine ([`room`]): all of its processes, mounts, links and rules are in
//! namespaces, so that nothing of it can outlive it or collide with anything else here. The machine
//! and the node are connected by a link; the machine reaches Services and pods through it, and pods
//! reach the API server ([`gate`]). They reach nothing else: images are loaded, not pulled.

mod cgroups;
mod claim;
mod gate;
mod needs;
mod pause;
mod room;
mod settings;
mod start;

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
pub(crate) use claim::{Claim, PATIENCE};
pub(crate) use needs::{check, search_path};
pub(crate) use pause::NAME as PAUSE;
pub(crate) use settings::advertised;
pub(crate) use start::Node;

/// The node's name.
const NAME: &str = "real-1";

/// The label by which pods choose the real node, if there are simulated ones too.
pub(crate) const LABEL: (&str, &str) = ("type", "real");

/// The machine's end of the link, by name and address.
const LINK: &str = "catamaran0";
const HOST: Ipv4Addr = Ipv4Addr::new(10, 98, 0, 1);

/// The node's end.
const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 98, 0, 2);

/// The addresses of pods.
const PODS: &str = "10.99.0.0/16";

/// The addresses of Services.
pub(crate) const SERVICES: &str = "10.96.0.0/16";

/// The real node of a cluster. From [`LocalCluster::real_node`](crate::LocalCluster::real_node).
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RealNode {
    name: String,
    address: Ipv4Addr,
    /// Its first process.
    init: u32,
}

impl RealNode {
    /// The real node of the cluster whose own kubeconfig this is (as `localcluster run` sets it): for
    /// programs that hold no lease.
    ///
    /// # Errors
    /// If it is not such a file, or the cluster has no real node.
    pub fn of_kubeconfig(kubeconfig: &Path) -> Result<Self> {
        let path = description(kubeconfig.parent().unwrap_or(Path::new("/")));
        let what = format!("find a real node beside {}", kubeconfig.display());
        let text = fs::read_to_string(&path).map_err(Error::io(what))?;
        serde_json::from_str(&text)
            .map_err(|error| Error::Invalid(format!("{} is damaged: {error}", path.display())))
    }

    /// Its name, as `kubectl get nodes` shows it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its address, which this machine reaches.
    pub fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// Loads an image from an archive as `docker save`, `buildah push … docker-archive:` and
    /// [`Image`](crate::Image) write it. Pods that name it need `imagePullPolicy: IfNotPresent`, or a
    /// tag other than `latest`.
    ///
    /// # Errors
    /// If the file cannot be read, or containerd refuses it.
    pub async fn load_image(&self, archive: &Path) -> Result<()> {
        let what = format!("read image {}", archive.display());
        let image = tokio::fs::read(archive).await.map_err(Error::io(what))?;
        let mut command = room::enter(self.init, "ctr");
        command.extend(room::import().map(Into::into));
        // Of two who load the same image at once, ctr has one fail where the other was quicker; once
        // the image is there, it is replaced.
        let mut tries = 10;
        loop {
            tries -= 1;
            match room::run(Path::new("nsenter"), &command, &image).await {
                Err(error) if tries > 0 && error.to_string().contains("already exists") => {}
                loaded => return loaded.map(drop),
            }
        }
    }

    /// A command that runs a program of this machine in the node: in its network, with its processes
    /// and its mounts. `ctr --namespace k8s.io …` lists and kills containers; `nft list ruleset` shows
    /// how Services are routed.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args(room::enter(self.init, program)).env("PATH", search_path());
        command
    }
}

/// Where the node of a cluster is written down for other processes.
fn description(cluster: &Path) -> PathBuf {
    settings::folder(cluster).join("node.json")
}

/// Removes what the kernel leaves of a real node if its supervisor was killed: with SIGKILL, so that
/// it could not do it. Does nothing to a cluster that has none.
pub(crate) fn sweep(cluster: &Path) {
    if settings::folder(cluster).exists() {
        cgroups::remove(cluster);
    }
}
