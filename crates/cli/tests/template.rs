//! `catamaran template` beside the real helm: the same output, the same error, the same status.

#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests fail as tests do

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// What both do with the same arguments.
struct Pair {
    helm: Output,
    ours: Output,
}

fn both(helm: &Path, profile: &str, folder: &Path, arguments: &[&str]) -> Pair {
    let run = |program: &Path, more: &[&str]| {
        Command::new(program)
            .arg("template")
            .args(more)
            .args(arguments)
            .current_dir(folder)
            .env_remove("HELM_NAMESPACE")
            .env("KUBECONFIG", "/nonexistent")
            .env("HOME", folder)
            .output()
            .unwrap()
    };
    let ours = run(Path::new(env!("CARGO_BIN_EXE_catamaran")), &["--profile", profile]);
    Pair { helm: run(helm, &[]), ours }
}

/// What helm says after `Error: `; warnings come before it.
fn fault(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    text.find("Error: ").and_then(|at| text.get(at..)).unwrap_or_default().trim().to_owned()
}

#[track_caller]
fn equal(helm: &Path, profile: &str, folder: &Path, arguments: &[&str]) {
    let Pair { helm, ours } = both(helm, profile, folder, arguments);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert_eq!(
        text(&ours.stdout),
        text(&helm.stdout),
        "{profile} {arguments:?}: {}",
        text(&ours.stderr)
    );
    assert_eq!(fault(&ours), fault(&helm), "{profile} {arguments:?}");
    assert_eq!(ours.status.code(), helm.status.code(), "{profile} {arguments:?}");
}

/// Both generations, with the profile that follows them.
fn generations() -> [(PathBuf, &'static str); 2] {
    let tools = catamaran_localcluster::tools().unwrap();
    [(tools.helm(), "4.3"), (tools.helm3(), "3.18")]
}

/// Lines of arguments for the chart of `shows`, which prints its values and what it knows.
const LINES: &[&str] = &[
    "c",
    "demo c",
    "demo ./c/",
    "demo c -n elsewhere --is-upgrade",
    "demo c --namespace=elsewhere --is-upgrade=false",
    "demo c --kube-version 1.30 -a example.com/v1,example.com/v2 -a v3",
    "c --name-template {{\"made\"|trunc(3)}}",
    "c --generate-name",
    "demo c -f more.yaml",
    "demo c -f more.yaml,last.yaml --set a.b=1",
    "demo c --values more.yaml --set-string a.b=1,x=true --set-literal l=1,2",
    "demo c --set-json a={\"b\":1} --set-json {\"c\":[1,null]} --set a.c={x,2}",
    "demo c --set-file content=note.txt",
    "demo c --set a[2].b=1,n=null,sub.x=9 --set a[0]=0",
    "demo c --set list[0][1]=x,q=1.5,w=012,o=0",
    "demo c --include-crds",
    "demo c --include-crds=true --no-hooks",
    "demo c --skip-tests",
    "demo c -s templates/show.yaml",
    "demo c -s templates/*.yaml -s templates/hooks.yaml --skip-tests",
    "demo c --include-crds -s crds/*",
    "demo c --skip-schema-validation --set replicas=x",
    "demo c --wait --timeout 5m --create-namespace --skip-crds --description x --disable-openapi-validation",
    "demo c --output-dir out --include-crds",
    "demo c --output-dir out --release-name",
    // Faults.
    "demo c more.yaml",
    "demo c -zf",
    "demo c -n",
    "demo c --kube-version 1",
    "demo c --kube-version x.y",
    "demo note.txt",
    "demo c --foo",
    "demo c --set",
    "demo c --set a",
    "demo c --set a[x]=1",
    "demo c --set-json a=x",
    "demo c --set-json {x",
    "demo c --set-file a=missing.txt",
    "demo c -f missing.yaml",
    "demo c -f note.txt",
    "demo c -f c",
    "demo c --set replicas=x",
    "demo c -s templates/missing.yaml",
    "demo ./missing",
    "demo more.yaml",
    "demo ./c/templates",
    "Demo c",
    "demo- c",
    "demo c --generate-name",
    "demo c --name-template x",
    "demo c --kube-version 1.20",
    "c --name-template {{",
    "demo c --dry-run=false",
    "demo c --no-hooks=maybe",
];

/// A chart with a bit of everything that flags reach.
fn shows(folder: &Path) {
    let files = [
        ("c/Chart.yaml", "apiVersion: v2\nname: shows\nversion: 1.2.3\nkubeVersion: '>=1.25-0'\n"),
        ("c/values.yaml", "a: {b: x, d: [1]}\nn: 1\nsub: {x: 1}\nreplicas: 1\n"),
        ("c/values.schema.json", r#"{"properties": {"replicas": {"type": "integer"}}}"#),
        ("c/crds/crd.yaml", "kind: CustomResourceDefinition\n"),
        ("c/charts/sub/Chart.yaml", "apiVersion: v2\nname: sub\nversion: 0.1.0\n"),
        ("c/charts/sub/values.yaml", "x: 0\ny: 0\n"),
        ("c/charts/sub/templates/sub.yaml", "kind: Sub\nvalues: {{ toJson .Values }}\n"),
        ("c/charts/sub/crds/crd.yaml", "kind: CustomResourceDefinition\nof: sub\n"),
        (
            "c/templates/show.yaml",
            "kind: A\nvalues: {{ toJson .Values }}\nn: {{ .Values.n }}\nrelease: {{ toJson .Release }}\n\
             kube: {{ .Capabilities.KubeVersion }}\nhas: {{ .Capabilities.APIVersions.Has \"example.com/v2\" }}\n\
             ---\nkind: B\n",
        ),
        (
            "c/templates/hooks.yaml",
            "kind: T\nmetadata: {annotations: {helm.sh/hook: test}}\n---\nkind: I\nmetadata: {annotations: {helm.sh/hook: pre-install}}\n",
        ),
        ("more.yaml", "a: {b: y, c: 2}\n---\nm: [1.5, null]\n"),
        ("last.yaml", "a: {b: null}\nm: 3\n"),
        ("note.txt", "a: note\nwith two: lines: here\n"),
    ];
    for (path, text) in files {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

#[test]
fn flags_do_as_in_helm() {
    let folder = tempfile::tempdir().unwrap();
    shows(folder.path());
    for (helm, profile) in generations() {
        for line in LINES {
            let arguments: Vec<&str> = line.split(' ').collect();
            equal(&helm, profile, folder.path(), &arguments);
        }
    }
}

#[test]
fn what_is_not_done_yet_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    shows(folder.path());
    for line in [
        "demo c --validate",
        "demo c --dependency-update",
        "demo c --verify",
        "demo c --enable-dns",
        "demo c --dry-run=server",
        "demo c --post-renderer x",
        "demo chart --repo https://example.com",
        "demo oci://example.com/chart",
        "demo repository/chart",
        "demo c -f https://example.com/values.yaml",
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_catamaran"))
            .arg("template")
            .args(line.split(' '))
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1), "{line}");
        assert!(output.stdout.is_empty(), "{line}");
        assert!(fault(&output).contains("not supported yet"), "{line}: {}", fault(&output));
    }
}

#[test]
fn help_shows_what_works() {
    let output = Command::new(env!("CARGO_BIN_EXE_catamaran"))
        .args(["template", "--help"])
        .output()
        .unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    for word in
        ["--set-literal", "--show-only", "--profile", "[NAME] CHART", "as an operator renders it"]
    {
        assert!(help.contains(word), "{word} is missing in:\n{help}");
    }
    assert!(!help.contains("--atomic"));
}
