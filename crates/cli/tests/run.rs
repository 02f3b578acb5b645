//! `catamaran run`: an operator for a chart, without a Rust project.

#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests fail as tests do

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The longest that anything may take here.
const DEADLINE: Duration = Duration::from_mins(1);

fn catamaran() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_catamaran"));
    command.env_remove("WATCH_NAMESPACE").env_remove("RUST_LOG");
    command
}

fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn watches(folder: &Path, text: &str) -> PathBuf {
    let path = folder.join("watches.yaml");
    std::fs::write(&path, text).unwrap();
    path
}

/// Ends with the test, whatever its outcome.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn a_chart_and_a_watches_file_are_an_operator() {
    let cluster = catamaran_localcluster::shared().await.unwrap();
    let namespace = cluster.namespace("run").await.unwrap();
    let kubectl = |arguments: &[&str]| -> Output {
        Command::new(cluster.tools().unwrap().kubectl())
            .args(["--namespace", namespace.name()])
            .args(arguments)
            .env("KUBECONFIG", cluster.kubeconfig())
            .current_dir(project())
            .output()
            .unwrap()
    };
    assert!(
        kubectl(&["apply", "--server-side", "--force-conflicts", "-k", "config/crd"])
            .status
            .success()
    );

    let folder = tempfile::tempdir().unwrap();
    let chart = project().join("helm-charts/memcached");
    let entry = format!(
        "- group: cache.my.domain\n  version: v1alpha1\n  kind: Memcached\n  chart: {}\n",
        chart.display()
    );
    let file = watches(folder.path(), &entry);
    let mut operator = catamaran();
    operator
        .args(["run", "--health-probe-bind-address", "0", "--metrics-bind-address", "0"])
        .arg("--watches-file")
        .arg(&file)
        .env("KUBECONFIG", cluster.kubeconfig())
        .env("WATCH_NAMESPACE", namespace.name())
        .stderr(Stdio::null());
    let mut operator = Running(operator.spawn().unwrap());

    // The kind may not be served at once: the operator waits for it, and so does this.
    let sample = ["apply", "-f", "tests/fixtures/cache_v1alpha1_memcached.yaml"];
    until("the sample is applied", || kubectl(&sample).status.success()).await;
    let ready = ["wait", "--for=condition=Ready", "memcached/memcached-sample", "--timeout=1s"];
    until("the sample is Ready", || kubectl(&ready).status.success()).await;
    assert!(
        kubectl(&["delete", "memcached", "memcached-sample", "--timeout=30s"]).status.success()
    );
    let left = kubectl(&["get", "secrets", "--output=name"]).stdout;
    assert_eq!(String::from_utf8(left).unwrap(), "", "the release is gone");

    let asked =
        Command::new("kill").args(["-TERM", &operator.0.id().to_string()]).status().unwrap();
    assert!(asked.success());
    assert_eq!(operator.0.wait().unwrap().code(), Some(0));
}

async fn until(what: &str, done: impl Fn() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < DEADLINE, "not within {DEADLINE:?}: {what}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[test]
fn what_it_cannot_run_is_said_with_file_and_line() {
    let folder = tempfile::tempdir().unwrap();
    let table = [
        ("- version: v1\n  kind: A\n  reconciler: Backups\n", ":1: unknown reconciler \"Backups\""),
        ("- version: v1\n  kind: A\n  chart: nowhere\n", ":1: invalid chart directory nowhere"),
        ("# nothing\n", "there is nothing to watch"),
    ];
    for (text, expected) in table {
        let file = watches(folder.path(), text);
        let output = catamaran().args(["run", "--watches-file"]).arg(&file).output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{text}: {told}");
        assert!(
            told.contains(expected) && told.contains(&file.display().to_string()),
            "{text}: {told}"
        );
    }
}

#[test]
fn help_teaches() {
    let output = catamaran().args(["run", "--help"]).output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    for word in
        ["WATCH_NAMESPACE", "--watches-file", "A watches.yaml:", "chart: helm-charts/memcached"]
    {
        assert!(help.contains(word), "{word} is missing in:\n{help}");
    }
}
