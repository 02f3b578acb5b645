//! Bringing a real node up, beside the control plane.

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

use super::claim::Claim;
use super::gate::Gate;
use super::room::{NodeSandbox, import};
use super::settings::{self, CONTAINERD};
use super::{ADDRESS, HOST, NAME, RealNode, pause};
use crate::control_plane::ControlPlane;
use crate::error::{Error, Result};
use crate::pki::{Authority, SERVICE_IP, write_private};
use crate::readiness::until;

/// How long a connection within the machine may take.
const PATIENCE: Duration = Duration::from_millis(200);

/// A node that is coming up, or is up. Dropping it ends it, and waits for that.
pub(crate) struct Node {
    // In the order in which they end.
    gate: Option<Gate>,
    room: NodeSandbox,
    _claim: Claim,
}

impl Node {
    /// Makes the node's room, and starts containerd in it. Nothing of this needs the API server,
    /// which will be at `port` of loopback.
    pub(crate) async fn prepare(
        plane: &ControlPlane<'_>,
        claim: Claim,
        authority: &Authority,
        port: u16,
    ) -> Result<Self> {
        let folder = &plane.spec.folder;
        settings::write(folder, authority, &format!("https://{HOST}:{port}"))?;
        plane.at("node", "its namespaces and its link");
        let room = NodeSandbox::open(folder, plane.processes).await?;
        let node = Self { gate: None, room, _claim: claim };
        let config = settings::folder(folder).join("containerd.toml");
        node.spawn(plane, "containerd", Path::new("containerd"), &[("config", config.into())])?;
        plane.done("the real node has its namespaces");
        Ok(node)
    }

    /// Starts the rest, once the API server is ready.
    pub(crate) async fn join(&mut self, plane: &ControlPlane<'_>, port: u16) -> Result<RealNode> {
        let at = |address: Ipv4Addr| SocketAddr::from((address, port));
        self.gate = Some(Gate::open(at(HOST), at(Ipv4Addr::LOCALHOST)).await?);

        plane.at("containerd", "its socket");
        let socket = self.room.path(CONTAINERD)?;
        until(async || UnixStream::connect(&socket).await.ok()).await;
        plane.at("containerd", "the image of pods' first processes");
        self.room.run("ctr", &import(), &pause::archive()?).await?;

        let tools = plane.spec.node_tools.as_deref().unwrap_or(&plane.spec.tools);
        let file = |name: &str| settings::folder(&plane.spec.folder).join(name).into();
        let flags = [
            ("config", file("kubelet.yaml")),
            ("kubeconfig", file("kubelet.kubeconfig")),
            ("hostname-override", NAME.into()),
            ("node-ip", ADDRESS.to_string().into()),
            ("node-labels", format!("{}={}", super::LABEL.0, super::LABEL.1).into()),
        ];
        self.spawn(plane, "kubelet", &tools.join("kubelet"), &flags)?;
        let flags = [("config", file("kube-proxy.yaml"))];
        self.spawn(plane, "kube-proxy", &tools.join("kube-proxy"), &flags)?;

        let node = RealNode { name: NAME.into(), address: ADDRESS, init: self.room.init()? };
        let text = serde_json::to_string(&node)
            .map_err(|error| Error::Invalid(format!("cannot write the node down: {error}")))?;
        write_private(&super::description(&plane.spec.folder), &text)?;
        Ok(node)
    }

    /// Until the API server can be reached through its Service, as pods do it.
    pub(crate) async fn routes(&self, plane: &ControlPlane<'_>) {
        plane.at("kube-proxy", "the way to a Service");
        // Each time anew: what was sent before the rules were there stays on its wrong way.
        let connect = || timeout(PATIENCE, TcpStream::connect((SERVICE_IP, 443)));
        until(async || connect().await.ok()?.ok()).await;
    }

    fn spawn(
        &self,
        plane: &ControlPlane<'_>,
        name: &'static str,
        program: &Path,
        flags: &[(&str, OsString)],
    ) -> Result<()> {
        let (nsenter, mut arguments) = self.room.enter(&program.to_string_lossy())?;
        arguments.extend(flags.iter().map(|(flag, value)| {
            let mut argument = OsString::from(format!("--{flag}="));
            argument.push(value);
            argument
        }));
        plane.processes.spawn(name, &nsenter, arguments).map(drop)
    }
}
