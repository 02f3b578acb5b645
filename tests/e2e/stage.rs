//! Where the story plays: a real node, the operator deployed on it, and a namespace for the samples.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use catamaran_localcluster::LocalCluster;
use catamaran_testkit::Names;
use k8s_openapi::api::core::v1::{ContainerStatus, PersistentVolume, Pod};
use kube::api::{Api, ListParams, Patch, PatchParams};
use kube::{Resource as _, ResourceExt as _};

use crate::container::{Peak, Process};
use crate::support::{Bench, eventually, root};

/// The namespace of config/default.
pub const SYSTEM: &str = "memcached-operator-system";
/// The operator's pods.
const MANAGER: &str = "control-plane=controller-manager";

/// A real node with the images on it, and what was measured of the operator.
pub struct Stage {
    pub bench: Bench,
    image: String,
    begun: Instant,
    past: Mutex<Past>,
    /// What backups are written to.
    _volume: tempfile::TempDir,
    _names: Names,
}

/// What is known of the operator's processes that have ended.
#[derive(Debug, Default)]
struct Past {
    peak: Peak,
    log: Vec<String>,
}

/// The operator's pod, ready, and its process.
#[derive(Clone, Debug)]
pub struct Manager {
    pub pod: String,
    pub process: Process,
}

impl Stage {
    /// Starts the node and gives it the images that hack/e2e.sh has made.
    pub async fn up() -> Self {
        let image = setting("CATAMARAN_E2E_IMAGE");
        let archives = PathBuf::from(setting("CATAMARAN_E2E_ARCHIVES"));
        let begun = Instant::now();
        let cluster = LocalCluster::builder()
            .real_node()
            .on_progress(|text| println!("          {text}"))
            .start()
            .await
            .unwrap_or_else(|error| panic!("no real node: {error}"));
        for archive in ["operator.tar", "memcached.tar"] {
            cluster.real_node().unwrap().load_image(&archives.join(archive)).await.unwrap();
        }
        let (names, volume) = (Names::serve(&cluster).await, volume(&cluster).await);
        let namespace = cluster.namespace("e2e").await.unwrap();
        let bench = Bench { namespace, tools: cluster.tools().unwrap(), cluster };
        let past = Mutex::default();
        Self { bench, image, begun, past, _volume: volume, _names: names }
    }

    /// Says what has just been seen to be so.
    pub fn tell(&self, what: impl AsRef<str>) {
        println!("{:7.1}s  {}", self.begun.elapsed().as_secs_f64(), what.as_ref());
    }

    /// Runs make as a person does.
    pub fn make(&self, target: &str) {
        let mut make = Command::new("make");
        make.args([target, &format!("IMG={}", self.image)])
            .env("KUBECONFIG", self.bench.cluster.kubeconfig())
            .env("PATH", self.bench.tools.search_path())
            .current_dir(root());
        for (name, _) in std::env::vars_os().filter(|(name, _)| is_of_this_run(name)) {
            make.env_remove(name);
        }
        let output = make.output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "make {target}: {told}");
    }

    pub fn pods(&self, namespace: &str) -> Api<Pod> {
        Api::namespaced(self.bench.cluster.client(), namespace)
    }

    /// Waits until there are exactly so many pods with these labels, all of them ready.
    pub async fn ready_pods(&self, namespace: &str, labels: &str, count: usize) -> Vec<Pod> {
        let wanted = ListParams::default().labels(labels);
        eventually(&format!("{count} pods with {labels} ready"), async || {
            let pods = self.pods(namespace).list(&wanted).await.map_err(|e| e.to_string())?.items;
            if pods.len() == count && pods.iter().all(is_ready) {
                return Ok(pods);
            }
            Err(pods.iter().fold(String::new(), |mut all, pod| {
                let _ = writeln!(all, "{}", describe(pod));
                all
            }))
        })
        .await
    }

    /// Waits for the operator's only pod to be ready.
    pub async fn manager(&self) -> Manager {
        let pod = self.ready_pods(SYSTEM, MANAGER, 1).await.remove(0);
        let status = container(&pod).unwrap();
        assert_eq!(status.restart_count, 0, "the operator was started again: {}", describe(&pod));
        let process = process(&pod);
        Manager { pod: pod.name_any(), process }
    }

    /// Looks once more at the operator before it ends: afterwards, the kernel no longer tells its memory,
    /// nor Kubernetes its log.
    pub fn take_leave_of(&self, manager: &Manager) {
        let peak = manager.process.peak();
        assert!(peak.resident > 0, "the kernel tells the peak of {manager:?}");
        let log = self.bench.kubectl(&["logs", &manager.pod, &format!("--namespace={SYSTEM}")]);
        let mut past = self.past.lock().unwrap();
        past.peak.resident = past.peak.resident.max(peak.resident);
        past.peak.charged = past.peak.charged.max(peak.charged);
        past.log.extend(log.lines().map(str::to_owned));
    }

    /// The most memory that any of the operator's processes had.
    pub fn peak(&self) -> Peak {
        self.past.lock().unwrap().peak
    }

    /// What the operator's processes have logged, a line each.
    pub fn log(&self) -> Vec<String> {
        self.past.lock().unwrap().log.clone()
    }
}

/// A folder of this machine that everybody may write to, for whoever claims a volume.
async fn volume(cluster: &LocalCluster) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let volume = serde_json::json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": { "name": "backups" },
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": { "storage": "1Gi" },
            "hostPath": { "path": folder.path() },
        },
    });
    let volumes: Api<PersistentVolume> = Api::all(cluster.client());
    let params = PatchParams::apply("stage").force();
    volumes.patch("backups", &params, &Patch::Apply(volume)).await.unwrap();
    folder
}

/// The process of a pod's first container.
pub fn process(pod: &Pod) -> Process {
    let id = container(pod).and_then(|status| status.container_id.as_deref()).unwrap_or_default();
    Process::of(id).unwrap_or_else(|| panic!("no process of {id:?}: {}", describe(pod)))
}

/// The status of a pod's first container.
pub fn container(pod: &Pod) -> Option<&ContainerStatus> {
    pod.status.as_ref()?.container_statuses.as_ref()?.first()
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    pod.meta().deletion_timestamp.is_none()
        && conditions.into_iter().any(|c| c.type_ == "Ready" && c.status == "True")
}

/// A pod in a line, for those who look why it is not as it should be.
fn describe(pod: &Pod) -> String {
    let ending = if pod.meta().deletion_timestamp.is_some() { ", ending" } else { "" };
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or("new");
    let state = container(pod).and_then(|status| status.state.as_ref());
    let state = state.map(|state| {
        let waiting = state.waiting.as_ref().map(|w| (w.reason.clone(), w.message.clone()));
        let ended = state.terminated.as_ref().map(|t| (t.reason.clone(), t.message.clone()));
        let (reason, message) = waiting.or(ended).unwrap_or_default();
        format!("{} {}", reason.unwrap_or_default(), message.unwrap_or_default())
    });
    format!("{}: {phase}{ending} {}", pod.name_any(), state.unwrap_or_default())
}

/// Whether a variable is set by the make and the cargo that have started this test. With cargo's, another
/// cargo would build all that depends on ring once more, and the next one again.
fn is_of_this_run(variable: &OsStr) -> bool {
    let name = variable.to_string_lossy();
    let prefixes = ["MAKE", "CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_CRATE_", "CARGO_BIN_"];
    prefixes.iter().any(|prefix| name.starts_with(prefix))
}

fn setting(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set: start this with make e2e"))
}

/// Polls where there is no object to wait for.
pub async fn briefly() {
    tokio::time::sleep(Duration::from_millis(10)).await;
}
