//! Hands that act on releases: ours, and the two helms.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use catamaran_localcluster::LocalCluster;
use serde_json::Value;
use tempfile::TempDir;

/// Who acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hand {
    Ours,
    Helm4,
    Helm3,
}

/// A namespace, and the ways to act on releases there.
#[derive(Clone)]
pub struct Place {
    pub namespace: String,
    kubeconfig: PathBuf,
    folder: PathBuf,
    helm: PathBuf,
    helm3: PathBuf,
    kubectl: PathBuf,
}

/// What came of a command.
#[derive(Debug)]
pub struct Said {
    pub out: String,
    pub err: String,
    pub code: Option<i32>,
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self { out: text(&output.stdout), err: text(&output.stderr), code: output.status.code() }
    }
}

impl Place {
    /// Commands run in `folder`, where charts lie.
    pub fn new(cluster: &LocalCluster, namespace: &str, folder: &Path) -> Self {
        let tools = cluster.tools().unwrap();
        Self {
            namespace: namespace.to_owned(),
            kubeconfig: cluster.kubeconfig().to_owned(),
            folder: folder.to_owned(),
            helm: tools.helm(),
            helm3: tools.helm3(),
            kubectl: tools.kubectl(),
        }
    }

    pub fn command(&self, hand: Hand, arguments: &[&str]) -> Command {
        let program = match hand {
            Hand::Ours => Path::new(env!("CARGO_BIN_EXE_catamaran")),
            Hand::Helm4 => &self.helm,
            Hand::Helm3 => &self.helm3,
        };
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(&self.folder)
            .env_remove("HELM_MAX_HISTORY")
            .env("HELM_NAMESPACE", &self.namespace)
            .env("KUBECONFIG", &self.kubeconfig)
            .env("HOME", &self.folder)
            .env("TZ", "UTC");
        command
    }

    pub fn run(&self, hand: Hand, line: &str) -> Said {
        let arguments: Vec<&str> = line.split_whitespace().collect();
        self.command(hand, &arguments).output().unwrap().into()
    }

    /// The same, which has to succeed; yields its output.
    #[track_caller]
    pub fn say(&self, hand: Hand, line: &str) -> String {
        let said = self.run(hand, line);
        assert_eq!(said.code, Some(0), "{hand:?} {line}: {}", said.err);
        said.out
    }

    /// The same, read as JSON.
    #[track_caller]
    pub fn json(&self, hand: Hand, line: &str) -> Value {
        let text = self.say(hand, &format!("{line} -o json"));
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{line}: {error}: {text}"))
    }

    #[track_caller]
    pub fn kubectl(&self, line: &str) -> String {
        let output: Said = Command::new(&self.kubectl)
            .args(["--namespace", &self.namespace])
            .args(line.split_whitespace())
            .env("KUBECONFIG", &self.kubeconfig)
            .output()
            .unwrap()
            .into();
        assert_eq!(output.code, Some(0), "kubectl {line}: {}", output.err);
        output.out
    }

    /// An object; null if it is not there.
    #[track_caller]
    pub fn live(&self, object: &str) -> Value {
        let text = self.kubectl(&format!("get {object} --ignore-not-found -o json"));
        if text.is_empty() { Value::Null } else { serde_json::from_str(&text).unwrap() }
    }

    /// The revisions and their statuses, oldest first: `1 superseded, 2 deployed`.
    #[track_caller]
    pub fn revisions(&self, name: &str) -> String {
        let said = self.run(Hand::Ours, &format!("history {name} -o json"));
        if said.code != Some(0) {
            return said.err;
        }
        let lines: Vec<Value> = serde_json::from_str(&said.out).unwrap();
        let line = |it: &Value| format!("{} {}", it["revision"], it["status"].as_str().unwrap());
        lines.iter().map(line).collect::<Vec<_>>().join(", ")
    }
}

/// A chart called `demo`, in the folder `demo` of a folder that goes with it.
pub struct Charts(TempDir);

impl Charts {
    /// With these templates besides NOTES.txt.
    pub fn new(templates: &[(&str, &str)]) -> Self {
        let charts = Self(tempfile::tempdir().unwrap());
        charts.write(
            "demo/Chart.yaml",
            "apiVersion: v2\nname: demo\nversion: 1.0.0\nappVersion: \"9\"\n",
        );
        charts.write("demo/values.yaml", "greeting: hello\nreplicas: 1\ntable: {x: 1, y: 2}\n");
        charts.write(
            "demo/templates/NOTES.txt",
            "Hello from {{ .Release.Name }} {{ .Release.Revision }}\n\n",
        );
        for (name, text) in templates {
            charts.write(&format!("demo/templates/{name}"), text);
        }
        charts
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn write(&self, name: &str, text: &str) {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

pub const CONFIG_MAP: (&str, &str) = (
    "map.yaml",
    "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}-map\ndata:\n  greeting: {{ .Values.greeting | quote }}\n",
);

/// Only if asked for, so that `status` has one kind: helm's order of them is random.
pub const SECRET: (&str, &str) = (
    "secret.yaml",
    "{{ if .Values.secret }}\napiVersion: v1\nkind: Secret\nmetadata: {name: {{ .Release.Name }}-secret, annotations: {helm.sh/resource-policy: keep}}\nstringData: {k: canary}\n{{ end }}\n",
);

pub const DEPLOYMENT: (&str, &str) = (
    "web.yaml",
    "\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}-web
spec:
  replicas: {{ .Values.replicas | int }}
  selector: {matchLabels: {app: {{ .Release.Name }}}}
  template:
    metadata:
      labels: {app: {{ .Release.Name }}}
      annotations: {fake.catamaran.test/never-ready: {{ .Values.never | default false | quote }}}
    spec:
      containers: [{name: c, image: nginx}]
",
);

pub const TEST: (&str, &str) = (
    "test.yaml",
    "\
apiVersion: v1
kind: Pod
metadata:
  name: {{ .Release.Name }}-test
  annotations:
    helm.sh/hook: test
    fake.catamaran.test/exit-code: {{ .Values.code | default 0 | quote }}
spec:
  restartPolicy: Never
  containers: [{name: c, image: busybox}]
",
);
