//! The control plane: which programs with which arguments, started in which order.
//!
//! Everything listens on loopback or on a socket in the cluster's folder; only the API server has a
//! port. A real node has a way in ([`real`]).

use std::cell::RefCell;
use std::ffi::OsString;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use tokio::time::timeout;

use crate::access::{self, Access, Credential};
use crate::error::{Error, Failure, Result};
use crate::nodes;
use crate::pki::{self, Authority};
use crate::processes::Processes;
use crate::protocol::{Info, Spec};
use crate::readiness;
use crate::real;

/// The group whose members may do everything.
pub(crate) const MASTERS: &str = "system:masters";

/// The name of the API server among the processes, and of its program.
pub(crate) const API_SERVER: &str = "kube-apiserver";

/// Where etcd listens, seen from the cluster's folder. A file, although etcd insists on the look of
/// host and port.
const ETCD: &str = "unix://etcd.sock:0";

/// What of the requests is logged: who, what and the answer's code, once the answer is there.
const AUDIT_POLICY: &str = "\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
";

/// What the start is busy with, for the error that says where it got stuck.
#[derive(Clone)]
pub(crate) struct Step {
    pub(crate) component: &'static str,
    pub(crate) waiting_for: String,
}

/// A port that nobody else on this machine gets while this lives.
///
/// It is bound with SO_REUSEPORT and never listens; the API server shares it
/// (`--permit-port-sharing`). A port that is found free and let go may be taken by anyone before the
/// API server has come up, seconds later.
pub(crate) struct Port {
    _held: OwnedFd,
    number: u16,
}

impl Port {
    fn reserve() -> Result<Self> {
        let reserve = || -> rustix::io::Result<(OwnedFd, u16)> {
            let socket = rustix::net::socket_with(
                AddressFamily::INET,
                SocketType::STREAM,
                SocketFlags::CLOEXEC,
                None,
            )?;
            sockopt::set_socket_reuseport(&socket, true)?;
            let any = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0));
            rustix::net::bind(&socket, &any)?;
            let bound: SocketAddr = rustix::net::getsockname(&socket)?.try_into()?;
            Ok((socket, bound.port()))
        };
        let (held, number) =
            reserve().map_err(|error| Error::io("reserve a port on 127.0.0.1")(error.into()))?;
        Ok(Self { _held: held, number })
    }
}

/// One start of a control plane.
pub(crate) struct ControlPlane<'a> {
    pub(crate) spec: &'a Spec,
    pub(crate) processes: &'a Processes,
    step: &'a RefCell<Step>,
    progress: &'a dyn Fn(String),
    begun: Instant,
}

/// A control plane that has come up.
pub(crate) struct Started {
    pub(crate) info: Info,
    pub(crate) client: kube::Client,
    // To be dropped before the folder is removed.
    _real_node: Option<real::Node>,
    _port: Port,
}

impl<'a> ControlPlane<'a> {
    pub(crate) fn new(
        spec: &'a Spec,
        processes: &'a Processes,
        step: &'a RefCell<Step>,
        progress: &'a dyn Fn(String),
    ) -> Self {
        Self { spec, processes, step, progress, begun: Instant::now() }
    }

    /// Starts everything and waits until it is of use, or the deadline is over.
    ///
    /// The processes are in `processes` as soon as they run; to give up, drop the future and end
    /// them.
    pub(crate) async fn start(&self) -> Result<Started> {
        let mut claim = None;
        if self.spec.real_node {
            self.at("node", "this machine's room for a real node");
            claim = Some(real::Claim::wait(|text| self.done(text)).await?);
        }
        let after = self.spec.deadline;
        timeout(after, self.start_with(claim)).await.map_err(|_| Error::Deadline {
            waiting_for: self.step.borrow().waiting_for.clone(),
            after,
        })?
    }

    async fn start_with(&self, claim: Option<real::Claim>) -> Result<Started> {
        let port = Port::reserve()?;
        let server = format!("https://127.0.0.1:{}", port.number);
        let authority = self.write_files(&server)?;

        // The API server waits for etcd by itself, and most of its first second is its own.
        self.etcd()?;
        self.api_server(port.number)?;
        let client = Self::client(&authority, &server)?;
        let mut real_node = None;
        if let Some(claim) = claim {
            // Meanwhile, because the API server takes longer.
            real_node = Some(real::Node::prepare(self, claim, &authority, port.number).await?);
        }
        self.at(API_SERVER, "/readyz");
        let version = readiness::api_server(&client).await;
        self.done(&format!("API server {version} is ready"));

        // Not before: who asks an API server that is not ready, or has no roles yet, backs off for a
        // second or two. Seen: 5.2 s to a running pod instead of 3.5 s.
        self.controller_manager()?;
        self.scheduler()?;
        self.kwok()?;
        nodes::create(&client, self.spec.nodes).await?;
        let mut description = None;
        if let Some(node) = &mut real_node {
            description = Some(node.join(self, port.number).await?);
        }

        self.at("kube-controller-manager", "the default service accounts");
        readiness::service_account(&client, "default").await?;
        readiness::service_account(&client, "kube-system").await?;
        self.done("controller-manager is at work");
        self.at(API_SERVER, "discovery of all APIs");
        readiness::discovery(&client).await;
        self.first_pods(&client, real_node.as_ref()).await?;

        let info = Info {
            folder: self.spec.folder.clone(),
            tools: self.spec.tools.clone(),
            server,
            version,
            audit: self.spec.audit,
            supervisor: std::process::id(),
            real_node: description,
        };
        Ok(Started { info, client, _real_node: real_node, _port: port })
    }

    /// Until nodes are ready and have run a pod.
    async fn first_pods(
        &self,
        client: &kube::Client,
        real_node: Option<&real::Node>,
    ) -> Result<()> {
        let count = self.spec.nodes;
        if count > 0 {
            self.at("kwok", "the nodes to be ready");
            nodes::ready(client, nodes::SIMULATED_LABEL, count).await?;
            self.done(&format!("{count} simulated nodes are ready"));
            self.at("kube-scheduler", "a first pod to be scheduled and to run");
            nodes::first_pod(client, nodes::SIMULATED_LABEL, "pause").await?;
            self.done("a first pod was scheduled, ran and is gone");
        }
        if let Some(node) = real_node {
            self.at("kubelet", "the real node to be ready");
            nodes::ready(client, real::LABEL, 1).await?;
            self.done("the real node is ready");
            node.routes(self).await;
            self.at("kubelet", "a first pod to run on the real node");
            nodes::first_pod(client, real::LABEL, real::PAUSE).await?;
            self.done("a first pod ran on the real node and is gone");
        }
        Ok(())
    }

    /// What happened, from what the start was busy with.
    pub(crate) fn failure(&self, error: &Error) -> Failure {
        let step = self.step.borrow().clone();
        Failure {
            component: step.component.into(),
            waiting_for: step.waiting_for,
            reason: format!("failed ({error:?})"),
            log: self.processes.tail(step.component),
        }
    }

    /// Tells what the start is busy with from now on.
    pub(crate) fn at(&self, component: &'static str, waiting_for: &str) {
        *self.step.borrow_mut() = Step { component, waiting_for: waiting_for.into() };
    }

    /// Tells a person what has been done.
    pub(crate) fn done(&self, what: &str) {
        (self.progress)(format!("{:5.1} s  {what}", self.begun.elapsed().as_secs_f64()));
    }

    fn path(&self, name: &str) -> PathBuf {
        self.spec.folder.join(name)
    }

    /// Keys, certificates, kubeconfigs, and what else the components read.
    fn write_files(&self, server: &str) -> Result<Authority> {
        for name in ["pki", "conf", "users"] {
            let path = self.path(name);
            fs::create_dir(&path).map_err(Error::io(format!("create {}", path.display())))?;
        }
        let folder = self.path("pki");
        let authority = Authority::create(&folder)?;
        let advertised = self.spec.real_node.then(real::advertised);
        pki::store(&folder, "server", &authority.server(advertised)?)?;
        pki::service_account_keys(&folder)?;
        if self.spec.real_node {
            let kubelets_peer = authority.client("kube-apiserver-kubelet-client", &[MASTERS])?;
            pki::store(&folder, "kubelet-client", &kubelets_peer)?;
        }
        for (user, groups, file) in [
            ("admin", &[MASTERS][..], "kubeconfig"),
            ("kwok", &[MASTERS], "conf/kwok.kubeconfig"),
            ("system:kube-controller-manager", &[], "conf/kube-controller-manager.kubeconfig"),
            ("system:kube-scheduler", &[], "conf/kube-scheduler.kubeconfig"),
        ] {
            let credential = Credential::Certificate(authority.client(user, groups)?);
            Access { server, authority: &authority.certificate, user, credential }
                .write(self.path(file))?;
        }
        pki::write_private(&self.path("conf/audit.yaml"), AUDIT_POLICY)?;
        pki::write_private(&self.path("conf/stages.yaml"), nodes::STAGES)?;
        pki::write_private(&self.path("conf/scheduler.yaml"), &self.scheduler_configuration())?;
        Ok(authority)
    }

    /// The supervisor's own way in, told apart from the user's in the audit log.
    fn client(authority: &Authority, server: &str) -> Result<kube::Client> {
        let credential = Credential::Certificate(authority.client("localcluster", &[MASTERS])?);
        let access =
            Access { server, authority: &authority.certificate, user: "localcluster", credential };
        let mut config = access.config()?;
        // We poll by ourselves, faster than any backoff.
        config.default_retry = false;
        access::client(config, "localcluster-supervisor")
    }

    fn spawn(&self, name: &'static str, flags: &[(&str, &str)]) -> Result<()> {
        let arguments =
            flags.iter().map(|(flag, value)| OsString::from(format!("--{flag}={value}"))).collect();
        self.processes.spawn(name, &self.spec.tools.join(name), arguments).map(drop)
    }

    fn etcd(&self) -> Result<()> {
        // Sockets instead of ports: none to collide on, and no etcd that everyone on the machine may
        // write to. Relative to the folder, because a socket's path must be short.
        let (client, peer) = (ETCD, "unix://etcd-peer.sock:0");
        self.spawn(
            "etcd",
            &[
                ("name", "default"),
                ("data-dir", &text(&self.path("etcd"))),
                ("listen-client-urls", client),
                ("advertise-client-urls", client),
                ("listen-peer-urls", peer),
                ("initial-advertise-peer-urls", peer),
                ("initial-cluster", &format!("default={peer}")),
                // The data ends with the process.
                ("unsafe-no-fsync", "true"),
                ("log-level", "warn"),
            ],
        )
    }

    fn api_server(&self, port: u16) -> Result<()> {
        let pki = |name: &str| text(&self.path("pki").join(name));
        let port = port.to_string();
        let (authority, certificate, key) = (pki("ca.crt"), pki("server.crt"), pki("server.key"));
        let (signing, verifying) = (pki("sa.key"), pki("sa.pub"));
        let mut flags = vec![
            ("etcd-servers", ETCD),
            ("bind-address", "127.0.0.1"),
            ("secure-port", &port),
            ("permit-port-sharing", "true"),
            ("client-ca-file", &authority),
            ("tls-cert-file", &certificate),
            ("tls-private-key-file", &key),
            // Shows a right on finalizers that is missing, as OpenShift would.
            ("enable-admission-plugins", "OwnerReferencesPermissionEnforcement"),
            ("service-account-issuer", "https://kubernetes.default.svc"),
            ("service-account-signing-key-file", &signing),
            ("service-account-key-file", &verifying),
            ("service-cluster-ip-range", real::SERVICES),
            ("allow-privileged", "true"),
            ("profiling", "false"),
        ];
        let reach = self.reach();
        flags.extend(reach.iter().map(|(flag, value)| (*flag, value.as_str())));
        let (policy, log) = (text(&self.path("conf/audit.yaml")), text(&self.path("audit.log")));
        if self.spec.audit {
            flags.extend([
                ("audit-policy-file", policy.as_str()),
                ("audit-log-path", &log),
                // In the log before the answer is out: a test reads what it has just done.
                ("audit-log-mode", "blocking"),
                ("audit-log-maxsize", "0"),
            ]);
        }
        self.spawn(API_SERVER, &flags)
    }

    /// The API server's flags that depend on whether nodes and pods are to reach it, and it them.
    fn reach(&self) -> Vec<(&'static str, String)> {
        if !self.spec.real_node {
            return vec![
                ("authorization-mode", "RBAC".into()),
                ("advertise-address", "127.0.0.1".into()),
                // Nobody reaches a loopback address through a Service.
                ("endpoint-reconciler-type", "none".into()),
            ];
        }
        let pki = |name: &str| text(&self.path("pki").join(name));
        vec![
            ("authorization-mode", "Node,RBAC".into()),
            // Not where it listens, but where the node finds it.
            ("advertise-address", real::advertised().to_string()),
            ("endpoint-reconciler-type", "lease".into()),
            ("kubelet-preferred-address-types", "InternalIP".into()),
            ("kubelet-certificate-authority", pki("ca.crt")),
            ("kubelet-client-certificate", pki("kubelet-client.crt")),
            ("kubelet-client-key", pki("kubelet-client.key")),
        ]
    }

    fn controller_manager(&self) -> Result<()> {
        let pki = |name: &str| text(&self.path("pki").join(name));
        self.spawn(
            "kube-controller-manager",
            &[
                ("kubeconfig", &text(&self.path("conf/kube-controller-manager.kubeconfig"))),
                ("secure-port", "0"),
                ("leader-elect", "false"),
                ("use-service-account-credentials", "true"),
                ("service-account-private-key-file", &pki("sa.key")),
                ("root-ca-file", &pki("ca.crt")),
                ("cluster-signing-cert-file", &pki("ca.crt")),
                ("cluster-signing-key-file", &pki("ca.key")),
                ("profiling", "false"),
                // The defaults (20, 30) are for clusters that share an API server with others.
                ("kube-api-qps", "300"),
                ("kube-api-burst", "500"),
            ],
        )
    }

    fn scheduler(&self) -> Result<()> {
        let configuration = text(&self.path("conf/scheduler.yaml"));
        self.spawn("kube-scheduler", &[("config", &configuration), ("secure-port", "0")])
    }

    fn scheduler_configuration(&self) -> String {
        format!(
            "apiVersion: kubescheduler.config.k8s.io/v1\n\
             kind: KubeSchedulerConfiguration\n\
             enableProfiling: false\n\
             leaderElection: {{leaderElect: false}}\n\
             clientConnection: {{kubeconfig: {}, qps: 300, burst: 500}}\n\
             podInitialBackoffSeconds: 1\n\
             podMaxBackoffSeconds: 2\n",
            serde_json::Value::from(text(&self.path("conf/kube-scheduler.kubeconfig"))),
        )
    }

    fn kwok(&self) -> Result<()> {
        let (key, value) = nodes::SIMULATED;
        let simulated = format!("{key}={value}");
        self.spawn(
            "kwok",
            &[
                ("kubeconfig", &text(&self.path("conf/kwok.kubeconfig"))),
                ("config", &text(&self.path("conf/stages.yaml"))),
                // Never `manage-all-nodes`: a real kubelet may be beside us.
                ("manage-nodes-with-annotation-selector", &simulated),
                ("enable-crds", ""),
                ("node-ip", "10.244.0.1"),
                ("cidr", "10.244.0.0/16"),
                ("node-lease-duration-seconds", "40"),
                ("v", "WARN"),
            ],
        )
    }
}

/// A path as a flag's value. The folder's path is ours and plain.
fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_reserved_port_is_for_those_who_share_it() {
        let port = Port::reserve().unwrap();
        assert!(
            TcpListener::bind((Ipv4Addr::LOCALHOST, port.number)).is_err(),
            "others are kept out"
        );
        let number = port.number;
        drop(port);
        assert!(TcpListener::bind((Ipv4Addr::LOCALHOST, number)).is_ok(), "until it is let go");
    }
}
