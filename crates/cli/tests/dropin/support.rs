//! A project's folder, a namespace and a kind of its own, and the operator as its image starts it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use catamaran_localcluster::{ESTABLISHED, LocalCluster, Namespace};
use serde_json::{Value, json};

/// The longest that anything may take here.
const DEADLINE: Duration = Duration::from_mins(1);

/// Objects that the values tell, in a chart called `demo`.
pub const MIRROR: &str = "{{ range .Values.objects }}\n---\n{{ toYaml . }}\n{{ end }}\n";

pub struct Stage {
    pub cluster: LocalCluster,
    pub namespace: Namespace,
    pub folder: tempfile::TempDir,
    /// The API group of the test's kinds.
    pub group: String,
    kinds: Vec<String>,
}

impl Stage {
    pub async fn new(name: &str) -> Self {
        let cluster = catamaran_localcluster::shared().await.unwrap();
        let namespace = cluster.namespace(name).await.unwrap();
        let group = format!("{}.dropin.test", namespace.name());
        Self { cluster, namespace, folder: tempfile::tempdir().unwrap(), group, kinds: Vec::new() }
    }

    /// One with the kind Shop, which a chart of this template serves.
    pub async fn of(name: &str, template: &str) -> Self {
        let mut stage = Self::new(name).await;
        stage.define("Shop", "Namespaced", &["v1"]);
        stage.chart("demo", &[("templates/all.yaml", template)]);
        stage.watches("- {group: GROUP, version: v1, kind: Shop, chart: helm-charts/demo}\n");
        stage
    }

    /// Defines a kind as operator-sdk scaffolds it.
    pub fn define(&mut self, kind: &str, scope: &str, versions: &[&str]) {
        let open = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
        let properties = json!({ "spec": open, "status": open });
        let schema = json!({ "type": "object", "properties": properties });
        let version = |name: &&str| {
            json!({
                "name": name, "served": true, "storage": name == versions.first().unwrap(),
                "schema": { "openAPIV3Schema": schema }, "subresources": { "status": {} },
            })
        };
        let singular = kind.to_lowercase();
        let plural = format!("{singular}s");
        let name = format!("{plural}.{}", self.group);
        let crd = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": { "name": name },
            "spec": {
                "group": self.group, "scope": scope,
                "names": { "kind": kind, "listKind": format!("{kind}List"), "plural": plural, "singular": singular },
                "versions": versions.iter().map(version).collect::<Vec<_>>(),
            },
        });
        self.apply(&crd);
        self.kinds.push(name.clone());
        self.kubectl(&["wait", ESTABLISHED, &format!("crd/{name}"), "--timeout=30s"]);
    }

    /// Writes a chart to helm-charts.
    pub fn chart(&self, name: &str, files: &[(&str, &str)]) {
        let chart = format!("apiVersion: v2\nname: {name}\nversion: 1.0.0\n");
        self.write(&format!("helm-charts/{name}/Chart.yaml"), &chart);
        for (file, text) in files {
            self.write(&format!("helm-charts/{name}/{file}"), text);
        }
    }

    pub fn watches(&self, text: &str) {
        self.write("watches.yaml", &text.replace("GROUP", &self.group));
    }

    pub fn write(&self, path: &str, text: &str) {
        let path = self.folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// The kind for kubectl.
    pub fn kind(&self, plural: &str) -> String {
        format!("{plural}.{}", self.group)
    }

    /// A Shop with this spec.
    pub fn shop(&self, name: &str, spec: &Value) -> Value {
        self.resource("Shop", name, spec)
    }

    pub fn resource(&self, kind: &str, name: &str, spec: &Value) -> Value {
        json!({
            "apiVersion": format!("{}/v1", self.group), "kind": kind,
            "metadata": { "name": name }, "spec": spec,
        })
    }

    /// Applies an object; the answer of the API server.
    pub fn apply(&self, object: &Value) -> Value {
        let file = self.folder.path().join("object.json");
        std::fs::write(&file, object.to_string()).unwrap();
        let told = self.kubectl(&["apply", "-o", "json", "-f", file.to_str().unwrap()]);
        serde_json::from_str(&told).unwrap()
    }

    pub fn annotate(&self, name: &str, annotation: &str) {
        self.kubectl(&["annotate", "--overwrite", &self.kind("shops"), name, annotation]);
    }

    /// `run` under these rules alone.
    pub async fn under(&self, rules: &Value) -> Command {
        self.apply(&json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
            "metadata": { "name": "manager-role" }, "rules": rules }));
        self.as_bound_manager().await
    }

    /// What `generate rbac` prints for the project, and `run` under that alone.
    pub async fn under_the_printed_role(&self) -> (String, Command) {
        let namespace = self.namespace.name();
        let role = self.command(&["generate", "rbac", "--namespace", namespace]).output().unwrap();
        assert!(role.status.success(), "{role:?}");
        let role = String::from_utf8(role.stdout).unwrap();
        self.write("role.yaml", &role);
        self.kubectl(&["apply", "-f", "role.yaml"]);
        (role, self.as_bound_manager().await)
    }

    /// `run` as the service account `manager`, which is made, and has the role `manager-role`.
    async fn as_bound_manager(&self) -> Command {
        self.kubectl(&["create", "serviceaccount", "manager"]);
        let account = format!("--serviceaccount={}:manager", self.namespace.name());
        self.kubectl(&["create", "rolebinding", "manager", "--role=manager-role", &account]);
        self.as_manager().await
    }

    /// `run` as the service account `manager`.
    pub async fn as_manager(&self) -> Command {
        let kubeconfig = self.cluster.service_account(&self.namespace, "manager").await.unwrap();
        let mut command =
            self.command(&["run", "--health-probe-bind-address=0", "--metrics-bind-address=0"]);
        command.env("KUBECONFIG", kubeconfig);
        command
    }

    /// Runs kubectl in the namespace; what it prints.
    pub fn kubectl(&self, arguments: &[&str]) -> String {
        let program = self.cluster.tools().unwrap().kubectl();
        self.succeed(&program, arguments)
    }

    /// Runs helm 3; what it prints.
    pub fn helm3(&self, arguments: &[&str]) -> String {
        let program = self.cluster.tools().unwrap().helm3();
        self.succeed(&program, arguments)
    }

    /// Runs a program in the namespace; what it prints.
    pub fn succeed(&self, program: &Path, arguments: &[&str]) -> String {
        let output = self.output(program, arguments);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{} {arguments:?}: {told}", program.display());
        String::from_utf8(output.stdout).unwrap()
    }

    /// What kubectl tells on its standard error, however it ends.
    pub fn complaint(&self, arguments: &[&str]) -> String {
        let program = self.cluster.tools().unwrap().kubectl();
        String::from_utf8_lossy(&self.output(&program, arguments).stderr).into_owned()
    }

    fn output(&self, program: &Path, arguments: &[&str]) -> Output {
        Command::new(program)
            .args(["--namespace", self.namespace.name()])
            .args(arguments)
            .env("KUBECONFIG", self.cluster.kubeconfig())
            .current_dir(self.folder.path())
            .output()
            .unwrap()
    }

    /// An object as it is, or null.
    pub fn get(&self, kind: &str, name: &str) -> Value {
        let told = self.kubectl(&["get", kind, name, "--ignore-not-found", "-o", "json"]);
        if told.trim().is_empty() { Value::Null } else { serde_json::from_str(&told).unwrap() }
    }

    /// A Shop as it is, or null.
    pub fn shop_now(&self, name: &str) -> Value {
        self.get(&self.kind("shops"), name)
    }

    /// The names of all objects of a kind, sorted.
    pub fn names(&self, kind: &str, selector: &str) -> Vec<String> {
        let path = "-o=jsonpath={range .items[*]}{.metadata.name}{\"\\n\"}{end}";
        let told = self.kubectl(&["get", kind, "-l", selector, path]);
        let mut names: Vec<_> = told.lines().map(str::to_owned).collect();
        names.sort();
        names
    }

    /// The records of releases.
    pub fn records(&self) -> Vec<String> {
        self.names("secrets", "owner=helm")
    }

    /// The operator's program, by the name that it has in images.
    pub fn program(&self) -> PathBuf {
        let link = self.folder.path().join("helm-operator");
        if !link.exists() {
            std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_catamaran"), &link).unwrap();
        }
        link
    }

    /// A command line in the project's folder, for this namespace alone.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.program());
        command
            .args(arguments)
            .env("KUBECONFIG", self.cluster.kubeconfig())
            .env("WATCH_NAMESPACE", self.namespace.name())
            .env_remove("RUST_LOG")
            .current_dir(self.folder.path());
        command
    }

    /// Starts the operator as its image does.
    pub fn operator(&self) -> Operator {
        self.operator_with(&[])
    }

    pub fn operator_with(&self, more: &[&str]) -> Operator {
        let fixed = ["run", "--health-probe-bind-address=0", "--metrics-bind-address=0"];
        Operator::start(self.command(&[&fixed[..], more].concat()), self.folder.path())
    }

    /// Waits until a Shop exists and `want` likes it.
    pub fn shop_becomes(&self, name: &str, what: &str, want: impl Fn(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        until(&format!("{name}: {what}"), || {
            last = self.shop_now(name);
            if !last.is_null() && want(&last) {
                Ok(())
            } else {
                Err(format!("{:#}", last["status"]))
            }
        });
        last
    }

    /// Waits until a Shop is gone.
    pub fn shop_vanishes(&self, name: &str) {
        until(&format!("{name} is gone"), || match self.shop_now(name) {
            Value::Null => Ok(()),
            shop => Err(format!("{:#}", shop["status"])),
        });
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        for name in &self.kinds {
            let program = self.cluster.tools().unwrap().kubectl();
            let _ = self.output(&program, &["delete", "crd", name, "--wait=false"]);
        }
    }
}

/// The operator, running; ends with the test, whatever its outcome.
pub struct Operator {
    process: Child,
    log: PathBuf,
}

impl Operator {
    pub fn start(mut command: Command, folder: &Path) -> Self {
        let log = folder.join("operator.log");
        let stderr = File::options().create(true).append(true).open(&log).unwrap();
        let process = command.stdin(Stdio::null()).stderr(stderr).spawn().unwrap();
        Self { process, log }
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    /// Waits until the log has a line with this.
    pub fn says(&self, words: &str) {
        until(&format!("the log says {words:?}"), || {
            let log = self.log();
            if log.contains(words) { Ok(()) } else { Err(log) }
        });
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        if std::thread::panicking() {
            eprintln!("--- log of the operator ---\n{}", self.log());
        }
    }
}

/// Waits until `look` is content; what it says otherwise is told at the deadline.
pub fn until(what: &str, mut look: impl FnMut() -> Result<(), String>) {
    let begun = Instant::now();
    while let Err(instead) = look() {
        assert!(begun.elapsed() < DEADLINE, "not within {DEADLINE:?}: {what}; instead: {instead}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// A field of a condition, or "".
pub fn field<'a>(object: &'a Value, type_: &str, field: &str) -> &'a str {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    let found = conditions.into_iter().flatten().find(|condition| condition["type"] == type_);
    found.and_then(|condition| condition[field].as_str()).unwrap_or_default()
}

/// Whether a condition says so.
pub fn is(object: &Value, type_: &str, status: &str) -> bool {
    field(object, type_, "status") == status
}

/// A ConfigMap for the values of [`MIRROR`].
pub fn config_map(name: &str, data: &Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": data })
}
