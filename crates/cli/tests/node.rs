//! What hooks and tests print, on a node that runs them: beside the real helm.
//!
//! Needs a real node (root and Debian's packages); without one the test says so and does nothing.

#![allow(clippy::unwrap_used, clippy::panic)] // a test ends by them

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use catamaran_localcluster::{Image, LocalCluster};

/// The image of a program that does what its arguments say.
const ACTOR: &str = "localhost/actor:1";

/// The image's archive, in a folder of the test's.
fn archive(folder: &Path) -> PathBuf {
    let program = folder.join("actor");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../localcluster/tests/programs/actor.rs");
    // Static: there is nothing else in the image.
    let status = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
        .args(["--edition=2024", "-Ctarget-feature=+crt-static", "-Cstrip=symbols", "-o"])
        .arg(&program)
        .arg(source)
        .status()
        .unwrap();
    assert!(status.success(), "rustc ended with {status}");
    let image = Image::scratch(ACTOR).file("actor", 0o755, &fs::read(&program).unwrap()).unwrap();
    image.entrypoint(["/actor"]).write(folder.join("actor.tar")).unwrap()
}

/// Hooks that print, each with its policies; `code` makes the last one fail.
const HOOKS: &str = "\
{{- range $name, $what := dict \"one\" \"hook-succeeded\" \"two\" \"hook-succeeded,hook-failed\" \"zero\" \"hook-failed\" }}
---
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ $.Release.Name }}-{{ $name }}
  annotations:
    helm.sh/hook: post-install
    helm.sh/hook-output-log-policy: {{ $what }}
    helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded,hook-failed
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      nodeSelector: {type: real}
      containers:
      - {name: c, image: localhost/actor:1, args: [{{ if and $.Values.fails (eq $name \"zero\") }}complain{{ else }}say{{ end }}, \"{{ $name }} says so\"]}
{{- end }}
---
apiVersion: v1
kind: Pod
metadata:
  name: {{ .Release.Name }}-test
  annotations: {helm.sh/hook: test, helm.sh/hook-delete-policy: \"before-hook-creation,hook-succeeded\"}
spec:
  restartPolicy: Never
  nodeSelector: {type: real}
  initContainers: [{name: first, image: localhost/actor:1, args: [say, it begins]}]
  containers: [{name: c, image: localhost/actor:1, args: [say, it works]}]
";

#[tokio::test(flavor = "multi_thread")]
async fn what_hooks_and_tests_print_is_shown_as_by_helm() {
    if let Err(why) = LocalCluster::real_node_available() {
        // Past the test's captured output, because it must be seen.
        drop(writeln!(std::io::stderr(), "SKIPPED a test of the real node: {why}"));
        return;
    }
    let cluster = LocalCluster::builder().real_node().start().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    cluster.real_node().unwrap().load_image(&archive(folder.path())).await.unwrap();
    let chart = folder.path().join("demo");
    fs::create_dir_all(chart.join("templates")).unwrap();
    fs::write(chart.join("Chart.yaml"), "apiVersion: v2\nname: demo\nversion: 1.0.0\n").unwrap();
    fs::write(chart.join("templates/hooks.yaml"), HOOKS).unwrap();
    let (ours, theirs) =
        (cluster.namespace("logs").await.unwrap(), cluster.namespace("logs").await.unwrap());
    let tools = cluster.tools().unwrap();
    let run = |program: &Path, namespace: &str, line: &str| -> Output {
        Command::new(program)
            .args(line.split(' '))
            .args(["--namespace", namespace, "--timeout", "60s"])
            .current_dir(folder.path())
            .env("KUBECONFIG", cluster.kubeconfig())
            .env("HOME", folder.path())
            .output()
            .unwrap()
    };
    let own = Path::new(env!("CARGO_BIN_EXE_catamaran"));
    for line in ["install a demo", "install b demo --set fails=1", "test a --logs"] {
        let (ours, theirs) = (run(own, ours.name(), line), run(&tools.helm(), theirs.name(), line));
        assert_eq!(ours.status.code(), theirs.status.code(), "{line}: {ours:?} {theirs:?}");
        assert_eq!(printed(&ours), printed(&theirs), "{line}: {ours:?} {theirs:?}");
    }
    let told = printed(&run(own, ours.name(), "test a --logs"));
    let expected =
        ["POD LOGS: a-test (first)", "it begins", "", "POD LOGS: a-test (c)", "it works", ""];
    assert_eq!(told, expected, "again, although the pod was deleted");
}

/// What containers have printed: on standard error for hooks, on standard output for tests.
fn printed(output: &Output) -> Vec<String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    // Helm 4 wraps each piece in a line of its log; Helm 3, and ours, show it as it is.
    let plain = |line: &str| {
        let line = line.strip_prefix("level=INFO msg=\"").unwrap_or(line);
        line.strip_suffix('"').unwrap_or(line).to_owned()
    };
    let of_hooks = err.lines().map(plain).filter(|line| line.ends_with(" says so"));
    let of_tests = out.find("POD LOGS").and_then(|at| out.get(at..)).unwrap_or_default();
    of_hooks.chain(of_tests.lines().map(str::to_owned)).collect()
}
