//! A namespace on a real API server, and the operator in it.

use std::fmt::Debug;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use catamaran_cluster::watch::PAGE;
use catamaran_localcluster::{LocalCluster, Namespace};
use catamaran_operator::{Manager, ManagerError, Options};
use clap::Parser;
use k8s_openapi::api::core::v1::PersistentVolume;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams};
use kube::core::NamespaceResourceScope;
use kube::runtime::conditions::is_crd_established;
use kube::runtime::wait::await_condition;
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::Process;

/// The longest that anything may take; most takes well under a second.
pub const DEADLINE: Duration = Duration::from_mins(1);

/// A namespace of a test's own on the cluster that all tests share, with the kinds in place.
#[derive(Debug)]
pub struct Bench {
    /// The namespace; it reads as its name.
    pub namespace: Namespace,
    /// The cluster.
    pub cluster: LocalCluster,
}

#[derive(Parser)]
struct Flags {
    #[command(flatten)]
    options: Options,
}

impl Bench {
    /// A namespace whose name begins with `name`, on a cluster that knows these kinds.
    pub async fn new(name: &str, definitions: &[CustomResourceDefinition]) -> Self {
        Self::on(catamaran_localcluster::shared().await.unwrap(), name, definitions).await
    }

    /// The same on a cluster of one's own, with a real node for instance, or to do to it what others
    /// must not see.
    pub async fn on(
        cluster: LocalCluster,
        name: &str,
        definitions: &[CustomResourceDefinition],
    ) -> Self {
        let crds: Api<CustomResourceDefinition> = Api::all(cluster.client());
        let params = PatchParams::apply("catamaran-testkit").force();
        for definition in definitions {
            let name = definition.name_any();
            crds.patch(&name, &params, &Patch::Apply(definition)).await.unwrap();
            let established = await_condition(crds.clone(), &name, is_crd_established());
            tokio::time::timeout(DEADLINE, established).await.unwrap().unwrap();
        }
        Self { namespace: cluster.namespace(name).await.unwrap(), cluster }
    }

    /// A connection with all rights.
    pub fn client(&self) -> Client {
        self.cluster.client()
    }

    /// The API of a kind in the namespace.
    pub fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.client(), &self.namespace)
    }

    /// The flags of an operator for this namespace.
    pub fn flags(&self) -> Vec<String> {
        let kubeconfig = self.cluster.kubeconfig().display().to_string();
        [
            ("--kubeconfig", kubeconfig.as_str()),
            ("--watch-namespace", self.namespace.name()),
            ("--health-probe-bind-address", "0"),
            ("--metrics-bind-address", "0"),
        ]
        .into_iter()
        .flat_map(|(flag, value)| [flag.to_owned(), value.to_owned()])
        .collect()
    }

    /// Runs a manager for this namespace inside of the test.
    pub fn run(&self, make: impl FnOnce(Options) -> Manager) -> Running {
        self.run_with(&[], make)
    }

    /// The same with more flags.
    pub fn run_with(&self, more: &[&str], make: impl FnOnce(Options) -> Manager) -> Running {
        let more = more.iter().map(|&flag| flag.to_owned());
        let flags = ["test".to_owned()].into_iter().chain(self.flags()).chain(more);
        let manager = make(Flags::parse_from(flags).options);
        let stop = CancellationToken::new();
        let task = tokio::spawn(manager.run_until(stop.clone()));
        Running { stop, task: Some(task) }
    }

    /// Runs a program for this namespace beside the test: `env!("CARGO_BIN_EXE_machines")`, say.
    pub fn start(&self, program: impl AsRef<Path>) -> Process {
        self.start_as(program, self.cluster.kubeconfig())
    }

    /// The same with the rights of a kubeconfig; see [`Bench::account`].
    pub fn start_as(&self, program: impl AsRef<Path>, kubeconfig: &Path) -> Process {
        let mut command = Command::new(program.as_ref());
        command.args(self.flags()).arg("--kubeconfig").arg(kubeconfig);
        command.env_remove("WATCH_NAMESPACE").env_remove("RUST_LOG");
        Process::start(&mut command)
    }

    /// The kubeconfig of an operator's service account, with exactly the rights of a folder's manifests.
    /// The account is called as the operator, its namespace `<operator>-system`.
    pub async fn account(&self, operator: &str, rights: &Path) -> PathBuf {
        let namespace = format!("{operator}-system");
        for file in ["namespace.yaml", "role.yaml"] {
            let file = rights.join(file).display().to_string();
            self.kubectl(&["apply", "--namespace", &namespace, "-f", &file]);
        }
        self.cluster.service_account(&namespace, operator).await.unwrap()
    }

    /// Runs kubectl in the namespace; what it prints.
    pub fn kubectl(&self, arguments: &[&str]) -> String {
        let kubectl = self.cluster.tools().unwrap().kubectl();
        let output = Command::new(kubectl)
            .args(["--namespace", &self.namespace])
            .args(arguments)
            .env("KUBECONFIG", self.cluster.kubeconfig())
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "kubectl {arguments:?}: {told}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Volumes for whoever claims one without a class, as nobody makes them here: simulated nodes run
    /// pods whose claims are bound, and no others.
    pub async fn volumes(&self, count: usize) {
        let volumes: Api<PersistentVolume> = Api::all(self.client());
        for number in 0..count {
            let name = format!("{}-{number}", self.namespace.name());
            let volume = serde_json::json!({
                "apiVersion": "v1", "kind": "PersistentVolume", "metadata": { "name": name },
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "capacity": { "storage": "100Gi" },
                    "hostPath": { "path": "/nowhere" },
                },
            });
            let params = PatchParams::apply("catamaran-testkit").force();
            volumes.patch(&name, &params, &Patch::Apply(volume)).await.unwrap();
        }
    }

    /// What a program asked of the API server in this namespace since `mark`, as `patch pods/status 200`;
    /// watches and the lists that they begin with are left out.
    pub fn requests(&self, program: &str, mark: catamaran_localcluster::Mark) -> Vec<String> {
        let audit = self.cluster.audit().of_agent(&format!("{program}/"));
        let page = format!("limit={PAGE}");
        let ours = audit.since(mark).unwrap().into_iter().filter(|request| {
            request.namespace == *self.namespace.name()
                && request.verb != "watch"
                && !(request.verb == "list" && request.uri.contains(&page))
        });
        let told = ours.map(|request| {
            let sub = if request.subresource.is_empty() { "" } else { "/" };
            format!(
                "{} {}{sub}{} {}",
                request.verb, request.resource, request.subresource, request.code
            )
        });
        told.collect()
    }

    /// Waits until a program has asked for nothing for `quiet`, and says where the log is then.
    pub async fn quiet(&self, program: &str, quiet: Duration) -> catamaran_localcluster::Mark {
        let audit = self.cluster.audit().of_agent(&format!("{program}/"));
        audit.until_quiet(quiet, DEADLINE).await.unwrap()
    }
}

/// A manager inside of a test; ends with it.
#[derive(Debug)]
pub struct Running {
    stop: CancellationToken,
    task: Option<JoinHandle<Result<(), ManagerError>>>,
}

impl Running {
    /// Ends it, gracefully.
    pub async fn stop(mut self) {
        self.stop.cancel();
        if let Some(task) = self.task.take() {
            task.await.unwrap().unwrap();
        }
    }

    /// Waits until it ends by itself, and says how.
    pub async fn ended(mut self) -> Result<(), ManagerError> {
        match self.task.take() {
            Some(task) => task.await.unwrap(),
            None => Ok(()),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Waits until `look` finds what it looks for; what it says otherwise is told at the deadline.
pub async fn eventually<T, F>(what: &str, mut look: impl FnMut() -> F) -> T
where
    F: Future<Output = Result<T, String>>,
{
    let begun = Instant::now();
    loop {
        match look().await {
            Ok(found) => return found,
            Err(instead) if begun.elapsed() > DEADLINE => {
                panic!("not within {DEADLINE:?}: {what}; instead: {instead}")
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

/// Waits until an object exists and `want` likes it.
pub async fn becomes<K>(api: &Api<K>, name: &str, what: &str, want: impl Fn(&K) -> bool) -> K
where
    K: Clone + Debug + DeserializeOwned,
{
    eventually(&format!("{name}: {what}"), async || {
        match api.get_opt(name).await.map_err(|error| error.to_string())? {
            Some(object) if want(&object) => Ok(object),
            Some(object) => Err(format!("{object:?}")),
            None => Err("it is not there".to_owned()),
        }
    })
    .await
}

/// Waits until an object is gone.
pub async fn vanishes<K>(api: &Api<K>, name: &str)
where
    K: Clone + Debug + DeserializeOwned + Resource,
{
    eventually(&format!("{name} is gone"), async || match api.get_opt(name).await {
        Ok(None) => Ok(()),
        Ok(Some(object)) => Err(format!("{:?}", object.meta().finalizers)),
        Err(error) => Err(error.to_string()),
    })
    .await;
}
