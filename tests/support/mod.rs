//! What the tests of the operator share: a namespace on a real API server, and the operator as a
//! process of its own, as a user runs it.

#![allow(dead_code)] // each test file uses its own part
#![allow(clippy::unwrap_used, clippy::panic)] // a helper of tests fails as a test does

use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use catamaran_localcluster::{ESTABLISHED, LocalCluster, Namespace, Tools};
use catamaran_testkit::Process;
#[allow(unused_imports)] // each test file uses its own part
pub use catamaran_testkit::{becomes, eventually, vanishes};
use kube::api::{ApiResource, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::core::{DynamicObject, GroupVersionKind};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

/// The longest that anything may take here; most take well under a second.
pub const DEADLINE: Duration = Duration::from_mins(1);

/// The root of the project.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A namespace of a test's own, with the CRDs in place.
pub struct Bench {
    pub namespace: Namespace,
    pub tools: Tools,
    pub cluster: LocalCluster,
}

impl Bench {
    /// A namespace on the cluster that all tests share.
    pub async fn shared(name: &str) -> Self {
        Self::on(catamaran_localcluster::shared().await.unwrap(), name).await
    }

    /// A namespace on a cluster.
    pub async fn on(cluster: LocalCluster, name: &str) -> Self {
        let namespace = cluster.namespace(name).await.unwrap();
        let bench = Self { namespace, tools: cluster.tools().unwrap(), cluster };
        bench.crds();
        bench
    }

    /// Puts the CRDs in place, and waits until they are served.
    pub fn crds(&self) {
        self.kubectl(&["apply", "--server-side", "--force-conflicts", "-k", "config/crd"]);
        let crds = ["crd/memcacheds.cache.my.domain", "crd/memcachedbackups.cache.my.domain"];
        self.kubectl(&["wait", ESTABLISHED, crds[0], crds[1], "--timeout=30s"]);
    }

    /// Runs kubectl in the namespace; what it prints.
    pub fn kubectl(&self, arguments: &[&str]) -> String {
        self.run(&self.tools.kubectl(), arguments)
    }

    /// Runs helm 4 in the namespace; what it prints.
    pub fn helm(&self, arguments: &[&str]) -> String {
        self.run(&self.tools.helm(), arguments)
    }

    /// Runs helm 3 in the namespace; what it prints.
    pub fn helm3(&self, arguments: &[&str]) -> String {
        self.run(&self.tools.helm3(), arguments)
    }

    fn run(&self, program: &Path, arguments: &[&str]) -> String {
        let output = Command::new(program)
            .args(["--namespace", &self.namespace])
            .args(arguments)
            .env("KUBECONFIG", self.cluster.kubeconfig())
            .current_dir(root())
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{} {arguments:?}: {told}", program.display());
        String::from_utf8(output.stdout).unwrap()
    }

    /// Starts the operator for this namespace alone.
    pub fn operator(&self) -> Operator {
        let mut command = Operator::command(self.cluster.kubeconfig());
        command.env("WATCH_NAMESPACE", self.namespace.name());
        Operator::start(command)
    }

    /// Starts the operator for this namespace alone, with the watches.yaml of a folder.
    pub fn operator_of(&self, folder: &tempfile::TempDir) -> Operator {
        let mut command = Operator::command(self.cluster.kubeconfig());
        command.arg("--watches-file").arg(folder.path().join("watches.yaml"));
        command.env("WATCH_NAMESPACE", self.namespace.name());
        Operator::start(command)
    }

    /// The API of a kind, in this namespace.
    pub fn api(&self, api_version: &str, kind: &str) -> Api<DynamicObject> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        Api::namespaced_with(self.cluster.client(), &self.namespace, &resource)
    }

    pub fn memcacheds(&self) -> Api<DynamicObject> {
        self.api("cache.my.domain/v1alpha1", "Memcached")
    }

    pub fn backups(&self) -> Api<DynamicObject> {
        self.api("cache.my.domain/v1", "MemcachedBackup")
    }

    pub fn deployments(&self) -> Api<DynamicObject> {
        self.api("apps/v1", "Deployment")
    }

    /// The names of the pods whose name begins with `prefix`, sorted; those that end are left out.
    pub async fn pods(&self, prefix: &str) -> Vec<String> {
        let pods = self.api("v1", "Pod").list(&ListParams::default()).await.unwrap();
        let living = pods.into_iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
        let mut names: Vec<_> =
            living.map(|pod| pod.name_any()).filter(|name| name.starts_with(prefix)).collect();
        names.sort();
        names
    }
}

/// The operator, running.
pub struct Operator(Process);

impl Operator {
    /// The operator's command line, as `make run` has it; a later `--watches-file` wins.
    pub fn command(kubeconfig: &Path) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_memcached-operator"));
        command
            .args(["--watches-file", "watches.yaml", "--health-probe-bind-address", "127.0.0.1:0"])
            .env("KUBECONFIG", kubeconfig)
            .env_remove("WATCH_NAMESPACE")
            .env("MALLOC_ARENA_MAX", "2") // as in config/manager
            .env_remove("RUST_LOG")
            .current_dir(root());
        command
    }

    /// Starts a command line.
    pub fn start(mut command: Command) -> Self {
        Self(Process::start(&mut command))
    }
}

impl Deref for Operator {
    type Target = Process;

    fn deref(&self) -> &Process {
        &self.0
    }
}

impl DerefMut for Operator {
    fn deref_mut(&mut self) -> &mut Process {
        &mut self.0
    }
}

/// A chart whose values are its objects, and a watches.yaml that serves Memcacheds with it; `more` are
/// further lines of its entry.
pub fn mirror(more: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let chart = folder.path().join("mirror");
    std::fs::create_dir_all(chart.join("templates")).unwrap();
    let objects = "{{ range .Values.objects }}\n---\n{{ toYaml . }}\n{{ end }}\n";
    std::fs::write(chart.join("templates/objects.yaml"), objects).unwrap();
    std::fs::write(chart.join("Chart.yaml"), "apiVersion: v2\nname: mirror\nversion: 1.0.0\n")
        .unwrap();
    let entry = format!(
        "- group: cache.my.domain\n  version: v1alpha1\n  kind: Memcached\n  chart: {}\n{more}",
        chart.display()
    );
    std::fs::write(folder.path().join("watches.yaml"), entry).unwrap();
    folder
}

/// Creates or changes a resource from a file of the project.
pub fn apply_file(bench: &Bench, file: &str) {
    bench.kubectl(&["apply", "-f", file]);
}

/// Changes a resource as `kubectl patch --type merge` does.
pub async fn patch(api: &Api<DynamicObject>, name: &str, patch: Value) {
    api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

/// Creates a resource.
pub async fn create(
    api: &Api<DynamicObject>,
    api_version: &str,
    kind: &str,
    name: &str,
    spec: Value,
) {
    let object = json!({ "apiVersion": api_version, "kind": kind, "metadata": { "name": name }, "spec": spec });
    api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
}

/// Deletes a resource, without waiting.
pub async fn delete(api: &Api<DynamicObject>, name: &str) {
    api.delete(name, &DeleteParams::default()).await.unwrap();
}

/// The status of a condition, or "" if there is none.
pub fn condition<'a>(object: &'a DynamicObject, type_: &str) -> &'a str {
    field(object, type_, "status")
}

/// A field of a condition, or "".
pub fn field<'a>(object: &'a DynamicObject, type_: &str, field: &str) -> &'a str {
    let conditions = object.data.pointer("/status/conditions").and_then(Value::as_array);
    let found = conditions.into_iter().flatten().find(|condition| condition["type"] == type_);
    found.and_then(|condition| condition[field].as_str()).unwrap_or_default()
}

/// The number at a pointer.
pub fn number(object: &DynamicObject, pointer: &str) -> Option<i64> {
    object.data.pointer(pointer).and_then(Value::as_i64)
}
