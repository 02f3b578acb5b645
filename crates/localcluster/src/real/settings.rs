//! What the node's programs read: where everything is, and who they are.

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use rustix::fs::statfs;
use serde_json::{Value, json};

use super::{ADDRESS, HOST, NAME, PODS, cgroups, pause};
use crate::access::{Access, Credential};
use crate::error::{Error, Result};
use crate::pki::{Authority, store, write_private};

/// Where containerd listens, in the node.
pub(super) const CONTAINERD: &str = "/run/containerd/containerd.sock";

/// Where Debian puts CNI's programs.
const CNI_PROGRAMS: &str = "/usr/lib/cni";

/// Where a cluster's name server would be. There is none, and the node refuses its address at once.
const NAME_SERVER: Ipv4Addr = Ipv4Addr::new(10, 96, 0, 10);

/// What statfs says of a folder on an overlay, on which no other one can be put.
const OVERLAY: u64 = 0x794c_7630;

/// The node's folder, in that of the cluster.
pub(super) fn folder(cluster: &Path) -> PathBuf {
    cluster.join("node")
}

/// Writes all of it. `server` is the API server's address as the node sees it.
pub(super) fn write(cluster: &Path, authority: &Authority, server: &str) -> Result<()> {
    let node = folder(cluster);
    for name in ["", "lib", "log", "sysctl", "cni"] {
        let path = node.join(name);
        fs::create_dir(&path).map_err(Error::io(format!("create {}", path.display())))?;
    }
    let pki = cluster.join("pki");
    store(&pki, "kubelet", &authority.serving(NAME, &[NAME], &[ADDRESS])?)?;
    for (user, groups, file) in [
        (format!("system:node:{NAME}"), &["system:nodes"][..], "kubelet.kubeconfig"),
        ("system:kube-proxy".into(), &[], "kube-proxy.kubeconfig"),
    ] {
        let credential = Credential::Certificate(authority.client(&user, groups)?);
        Access { server, authority: &authority.certificate, user: &user, credential }
            .write(node.join(file))?;
    }
    write_private(&node.join("init.sh"), include_str!("init.sh"))?;
    write_private(&node.join("resolv.conf"), "")?;
    write_private(&node.join("containerd.toml"), &containerd(&node))?;
    write_private(&node.join("cni/node.conflist"), &cni().to_string())?;
    write_private(&node.join("kubelet.yaml"), &kubelet(cluster).to_string())?;
    write_private(&node.join("kube-proxy.yaml"), &kube_proxy(&node).to_string())
}

fn containerd(node: &Path) -> String {
    // A folder that is on an overlay itself, as in a container, takes copies instead.
    let nested = statfs(node).is_ok_and(|found| found.f_type.cast_unsigned() == OVERLAY);
    let snapshotter = if nested { "native" } else { "overlayfs" };
    let (cni, pause) = (node.join("cni"), pause::NAME);
    format!(
        r#"version = 2
root = "/var/lib/containerd"
state = "/run/containerd"

[grpc]
address = "{CONTAINERD}"

[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{pause}"
# Without CAP_SYS_RESOURCE runc cannot lower a score, and no sandbox would start ("can't get final
# child's PID from pipe: EOF").
restrict_oom_score_adj = true

[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "{snapshotter}"
default_runtime_name = "runc"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{CNI_PROGRAMS}"
conf_dir = {cni}
"#,
        cni = Value::from(cni.to_string_lossy()),
    )
}

/// Every pod has a link of its own to the node, which routes between them. With a bridge, answers
/// within the node would miss the way back through a Service's address, unless a kernel module that
/// may be missing sends them there.
fn cni() -> Value {
    json!({
        "cniVersion": "1.0.0",
        "name": "node",
        "plugins": [
            {
                "type": "ptp",
                "ipam": {
                    "type": "host-local",
                    "ranges": [[{"subnet": PODS}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            },
            {"type": "portmap", "capabilities": {"portMappings": true}},
        ],
    })
}

fn kubelet(cluster: &Path) -> Value {
    let pki = |name: &str| cluster.join("pki").join(name);
    json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": ADDRESS,
        "containerRuntimeEndpoint": format!("unix://{CONTAINERD}"),
        "authentication": {
            "anonymous": {"enabled": false},
            "webhook": {"enabled": true},
            "x509": {"clientCAFile": pki("ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": pki("kubelet.crt"),
        "tlsPrivateKeyFile": pki("kubelet.key"),
        "clusterDNS": [NAME_SERVER],
        "clusterDomain": "cluster.local",
        "resolvConf": folder(cluster).join("resolv.conf"),
        // No systemd, and no accounting of classes of pods: a container's own limits hold, in one
        // group for the whole node, by whose name it is found and removed.
        "failCgroupV1": false,
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": format!("/{}", cgroups::name(cluster)),
        "cgroupsPerQOS": false,
        "enforceNodeAllocatable": [],
        "failSwapOn": false,
        "oomScoreAdj": 0,
        // The machine's disk is not the node's to tidy up, and an image that is gone cannot be
        // pulled again.
        "localStorageCapacityIsolation": false,
        "imageGCHighThresholdPercent": 100,
        "evictionHard": {
            "memory.available": "10Mi",
            "nodefs.available": "1%",
            "nodefs.inodesFree": "1%",
            "imagefs.available": "1%",
        },
        "volumePluginDir": "/var/lib/kubelet/volume-plugins",
        "serializeImagePulls": false,
        "healthzPort": 0,
        "kubeAPIQPS": 300,
        "kubeAPIBurst": 500,
        // What is deleted is to be seen gone soon.
        "nodeStatusUpdateFrequency": "5s",
        "enableProfilingHandler": false,
    })
}

fn kube_proxy(node: &Path) -> Value {
    json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "hostnameOverride": NAME,
        "clientConnection": {"kubeconfig": node.join("kube-proxy.kubeconfig")},
        "clusterCIDR": PODS,
        "detectLocalMode": "ClusterCIDR",
        // Those are the whole machine's.
        "conntrack": {"maxPerCore": 0, "min": 0},
        "oomScoreAdj": 0,
        "healthzBindAddress": "127.0.0.1:10256",
        "metricsBindAddress": "127.0.0.1:10249",
    })
}

/// Where the API server says it is, for pods: at the host's end of the link.
pub(crate) fn advertised() -> Ipv4Addr {
    HOST
}
