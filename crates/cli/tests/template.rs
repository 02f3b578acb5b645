//! `catamaran template` beside the real helm: the same output, the same error, the same status.

#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests fail as tests do

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const OURS: &str = env!("CARGO_BIN_EXE_catamaran");

/// A program in a folder, which is its user's home.
fn program(path: &Path, folder: &Path) -> Command {
    let mut command = Command::new(path);
    command
        .current_dir(folder)
        .env_remove("HELM_NAMESPACE")
        .env("KUBECONFIG", "/nonexistent")
        .env("HOME", folder);
    command
}

/// What both do with the same arguments.
struct Pair {
    helm: Output,
    ours: Output,
}

fn both(helm: &Path, profile: &str, folder: &Path, arguments: &[&str]) -> Pair {
    let run = |path: &Path, more: &[&str]| {
        program(path, folder)
            .arg("template")
            .args(more)
            .args(arguments)
            .env("LANG_OF_TEST", "de")
            .output()
            .unwrap()
    };
    let ours = run(Path::new(OURS), &["--profile", profile]);
    Pair { helm: run(helm, &[]), ours }
}

/// What helm says after `Error: `; warnings come before it, and behind it, with `--debug`, where in
/// its own source Helm 3 was.
fn fault(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let text = text.split("\nhelm.go:").next().unwrap_or_default();
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
    "demo c --dry-run=none",
    "demo c --dry-run=maybe",
    "demo c --dry-run",
    "demo c --dry-run=true",
    "demo broken --debug",
    "demo broken",
    "demo failing --debug",
    "demo c --no-hooks=maybe",
    "demo c --output-dir c/values.yaml",
    "demo c --output-dir=",
    "demo c -f=",
    "demo c -f \"more.yaml\",last.yaml -a \"example.com/v2\",x",
    "demo c -a \"example.com/v2",
    "demo c -a example.com\"/v2",
    "c --name-template {{toYaml(list)}}",
    "c --name-template {{required(1)(2)}}",
    "demo c --kube-version 01.30",
    "demo c --kube-version 1.030.0x",
    "demo c --kube-version 1..30",
    "demo c --kube-version 1.99999999999999999999",
    "demo c --labels a",
    "demo c --timeout 1x",
    "demo c --qps x",
    "demo c --burst-limit x",
    "demo broken --debug -s templates/a.yaml",
    "demo broken --debug -s templates/b.yaml",
    "demo oci://127.0.0.1:1/x/y@sha256:abc",
    // Flags given twice, empty, before the command, or almost right.
    "demo c --no-hooks --no-hooks=false",
    "demo c --no-hooks=false --no-hooks",
    "demo c -n x --namespace y --timeout 1s --timeout 2s",
    "demo c --timeout -1s",
    "demo c --timeout -+1s",
    "demo c --kubeconfig= --ca-file= --keyring= --registry-config= --repository-config=",
    "demo c --labels=",
    "demo c --labels a=b,c --labels a=b=c,d=",
    "demo c --labels a=b,c,d=e",
    "demo c --labels ,",
    "demo c --burst-limit 99999999999999999999",
    "c --generate-name=maybe",
    "demo c -gf",
    "demo c -gz",
    "demo c ---",
    "demo c --=x",
    "demo c -=x",
    "demo ..",
    "demo ./c/../missing/../c",
    "demo c --output-dir /proc/x",
    "demo c --repo ://",
    "demo c --repo 127.0.0.1:1",
    "demo c --repo http://[::1",
    "demo missing --repo http://",
    "demo missing --repo https:///charts/",
    "demo http:///charts/missing-1.0.0.tgz",
    "demo c --wait=true",
    "demo c --wait=false",
    "demo c --wait=t",
    "demo c --wait=0",
    "demo c --wait=x",
    "demo c --wait=",
    "demo c --help=x",
    "demo c --help=",
    "demo c -h=x",
    "demo c --help=false",
    "demo c -h=F",
    "demo --help=f c",
    "demo c -f a%zz.yaml",
    "demo c -f 1:b.yaml",
    "demo c --set-file a=::",
    "demo c --set-file a=a%2",
    "demo c -f no-text.bin",
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
        ("broken/Chart.yaml", "apiVersion: v2\nname: broken\nversion: 1.2.3\n"),
        ("broken/templates/a.yaml", "a: [\n"),
        ("failing/Chart.yaml", "apiVersion: v2\nname: failing\nversion: 1.2.3\n"),
        ("failing/templates/a.yaml", "a: {{ fail \"no\" }}\n"),
        ("more.yaml", "a: {b: y, c: 2}\n---\nm: [1.5, null]\n"),
        ("last.yaml", "a: {b: null}\nm: 3\n"),
        ("note.txt", "a: note\nwith two: lines: here\n"),
    ];
    for (path, text) in files {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    fs::write(folder.join("no-text.bin"), b"a: \x00\xff\n").unwrap();
}

#[test]
fn flags_do_as_in_helm() {
    // One line renders the parent folder: what other programs write beside it must not be read.
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("charts");
    shows(&folder);
    for (helm, profile) in generations() {
        for line in LINES {
            let arguments: Vec<&str> = line.split(' ').collect();
            equal(&helm, profile, &folder, &arguments);
        }
    }
}

#[test]
fn flags_may_come_before_the_command() {
    let folder = tempfile::tempdir().unwrap();
    shows(folder.path());
    let tools = catamaran_localcluster::tools().unwrap();
    for line in [
        "-n x template demo c",
        "--debug --namespace=x template demo c",
        "--kube-version 1.30 template demo c",
        "--kube-version 1.30 template",
        "--namespace x show --version 1 chart c",
        "--debug lint c",
        "-n x dependency --debug list c",
        "dependency list c --max-col-width 5",
        "dependency list c --max-col-width x",
        "dependency list ./c/. --foo",
        "dependency list missing",
        "template demo c --color=maybe",
        "lint c --colour=",
    ] {
        let ours = said(Path::new(OURS), line, folder.path());
        assert_eq!(ours, said(&tools.helm(), line, folder.path()), "{line}");
    }
}

/// What a program prints in a folder: all of standard output, of the other one what is wrong; and how
/// it ends.
fn said(path: &Path, line: &str, folder: &Path) -> (String, Vec<String>, Option<i32>) {
    let output = program(path, folder).args(line.split(' ')).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace("helm", "catamaran");
    let said = text(&output.stderr)
        .lines()
        .filter(|line| line.starts_with("Error") || line.contains("command failed"))
        .map(str::to_owned)
        .collect();
    (text(&output.stdout), said, output.status.code())
}

#[test]
fn a_mistake_on_a_line_counts_for_more_than_help() {
    let folder = tempfile::tempdir().unwrap();
    let tools = catamaran_localcluster::tools().unwrap();
    for line in [
        "template -hx",
        "template -xh",
        "template --help --bogus",
        "template --bogus --help",
        "template --help --set",
        "template -hn",
        "template --help=maybe",
        "template --help --create-namespace=maybe",
        "lint --help --strict=7",
        "show -hx",
        "show --bogus --help",
        "show values --help --jsonpath",
        "dependency -hx",
        "dependency list -hx",
        "dependency list a b",
        "dep up --help=false a b",
        "del -hx",
        "del --help=false",
        "hist -h --max x",
        "un --help --wait=7",
        "status -h --revision=x",
    ] {
        let ours = said(Path::new(OURS), line, folder.path());
        assert!(ours.0.is_empty() && ours.2 == Some(1), "{line}: {ours:?}");
        assert_eq!(ours, said(&tools.helm(), line, folder.path()), "{line}");
    }
    // How many words there are does not matter then, and commands made of others show what they have.
    for line in
        ["template -hn x", "upgrade -h a b c d", "dependency list a b -h", "show", "dep", "dep -h"]
    {
        let (shown, said, code) = said(Path::new(OURS), line, folder.path());
        assert!(shown.contains("Usage: catamaran "), "{line}: {shown}");
        assert_eq!((said, code), (Vec::new(), Some(0)), "{line}");
    }
    for line in ["show bogus", "dependency bogus --help"] {
        let (shown, _, code) = said(Path::new(OURS), line, folder.path());
        assert_eq!((shown.as_str(), code), ("", Some(2)), "{line}");
    }
}

#[test]
fn help_shows_what_works() {
    let output = Command::new(OURS).args(["template", "--help"]).output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    for word in
        ["--set-literal", "--show-only", "--profile", "[NAME] CHART", "as an operator renders it"]
    {
        assert!(help.contains(word), "{word} is missing in:\n{help}");
    }
    assert!(!help.contains("--atomic"));
}

/// A chart that asks the cluster for all it can.
const ASKS: &[(&str, &str)] = &[
    ("c/Chart.yaml", "apiVersion: v2\nname: asks\nversion: 1.2.3\n"),
    (
        "c/templates/a.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  \
         has: \"{{ .Capabilities.APIVersions.Has \"apps/v1/Deployment\" }}\"\n  \
         kube: {{ .Capabilities.KubeVersion.Version | quote }}\n  \
         kube-system: {{ (lookup \"v1\" \"Namespace\" \"\" \"kube-system\").metadata.name | quote }}\n  \
         missing: {{ lookup \"v1\" \"Secret\" .Release.Namespace \"missing\" | toJson | quote }}\n  \
         services: {{ range (lookup \"v1\" \"Service\" \"default\" \"\").items }}{{ .metadata.name | quote }}{{ end }}\n\
         {{- if .Values.odd }}\n---\napiVersion: odd.example.com/v1\nkind: Odd\nmetadata: {name: odd, namespace: x}\n{{- end }}\n",
    ),
];

#[tokio::test]
async fn a_cluster_is_asked_as_by_helm() {
    let cluster = catamaran_localcluster::shared().await.unwrap();
    let namespace = cluster.namespace("template").await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in ASKS {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let kubeconfig = cluster.kubeconfig().display().to_string();
    for (helm, profile) in generations() {
        for line in [
            "demo c --dry-run=server",
            "demo c --dry-run=client",
            "demo c --validate",
            "demo c --dry-run=server --set odd=true",
            "demo c --dry-run=server --kube-version 1.20 -a x/v1",
        ] {
            if line.contains("--validate") && profile == "4.3" {
                continue; // hidden there, and taken
            }
            let mut arguments: Vec<&str> = line.split(' ').collect();
            arguments.extend(["--namespace", namespace.name(), "--kubeconfig", &kubeconfig]);
            equal(&helm, profile, folder.path(), &arguments);
        }
    }
}

/// A listener in the cluster's place accepts no connection, whatever the kubeconfig says.
#[test]
fn cve_2020_11013_lookup_asks_no_cluster_without_dry_run_server() {
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    server.set_nonblocking(true).unwrap();
    let address = server.local_addr().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let template = "found: {{ lookup \"v1\" \"Secret\" \"kube-system\" \"s\" | toJson | quote }}\n";
    fs::create_dir_all(folder.path().join("c/templates")).unwrap();
    fs::write(folder.path().join("c/Chart.yaml"), ASKS[0].1).unwrap();
    fs::write(folder.path().join("c/templates/a.yaml"), template).unwrap();
    let kubeconfig = folder.path().join("config");
    let text = format!(
        "apiVersion: v1\nkind: Config\nclusters: [{{name: c, cluster: {{server: \"http://{address}\"}}}}]\n\
         contexts: [{{name: c, context: {{cluster: c}}}}]\ncurrent-context: c\n"
    );
    fs::write(&kubeconfig, text).unwrap();
    for line in ["template demo c", "template demo c --dry-run=client"] {
        let output = program(Path::new(OURS), folder.path())
            .args(line.split(' '))
            .env("KUBECONFIG", &kubeconfig)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.contains("found: \"{}\""), "{line}: {text}");
        assert!(server.accept().is_err(), "{line} asked the cluster");
    }
}

#[test]
fn the_environment_reaches_the_name_alone() {
    let folder = tempfile::tempdir().unwrap();
    shows(folder.path());
    for (helm, profile) in generations() {
        for template in ["{{env\"LANG_OF_TEST\"}}x", "a{{expandenv\"${LANG_OF_TEST}-$1-$\"}}x"] {
            equal(&helm, profile, folder.path(), &["c", "--name-template", template]);
        }
    }
}

#[test]
fn warnings_are_helms() {
    let folder = tempfile::tempdir().unwrap();
    shows(folder.path());
    let chart = "apiVersion: v1\nname: shows\nversion: 1.2.3\ndeprecated: true\n";
    fs::write(folder.path().join("c/Chart.yaml"), chart).unwrap();
    let hook = "metadata: {annotations: {helm.sh/hook: 'crd-install, test'}}\n";
    fs::write(folder.path().join("c/templates/hooks.yaml"), hook).unwrap();
    let fails = "{{ if .Values.fail }}{{ fail \"no\" }}{{ end }}\n";
    fs::write(folder.path().join("c/templates/fails.yaml"), fails).unwrap();
    let chart = "apiVersion: v2\nname: lacking\nversion: 1.2.3\ndeprecated: true\ndependencies: [{name: x, version: 1}]\n";
    let needs = "apiVersion: v2\nname: needs\nversion: 1.2.3\ndependencies: [{name: sub, version: 0.1.0}]\n";
    fs::create_dir_all(folder.path().join("needs/charts/sub")).unwrap();
    fs::write(folder.path().join("needs/Chart.yaml"), needs).unwrap();
    let sub = "apiVersion: v2\nname: sub\nversion: 0.1.0\n";
    fs::write(folder.path().join("needs/charts/sub/Chart.yaml"), sub).unwrap();
    fs::create_dir_all(folder.path().join("lacking")).unwrap();
    fs::write(folder.path().join("lacking/Chart.yaml"), chart).unwrap();
    fs::write(folder.path().join("more.yaml"), "global: text\nsub: {x: {y: 1}, global: {a: 1}}\n")
        .unwrap();
    for (helm, profile) in generations() {
        for line in [
            "demo c",
            "demo c --set a=text",
            "demo c --set n.a=1",
            "demo c --set sub.x.y=1",
            "demo c -f more.yaml",
            "demo c --atomic=false",
            "demo c --force",
            "demo c --validate=false",
            "demo c --hide-notes",
            "demo c --render-subchart-notes",
            // Of what fails later, too.
            "demo c --set a=text,replicas=x",
            "demo c --set n.a=1,fail=true",
            "demo lacking",
            "demo needs --set sub=text",
        ] {
            let arguments: Vec<&str> = line.split(' ').collect();
            let Pair { helm, ours } = both(&helm, profile, folder.path(), &arguments);
            let text =
                |bytes: &[u8]| String::from_utf8_lossy(bytes).replace("'helm ", "'catamaran ");
            assert_eq!(text(&ours.stderr), text(&helm.stderr), "{profile} {line}");
        }
    }
}

/// A chart that fails in as many ways as there are modes.
const FAILS: &[(&str, &str)] = &[
    ("c/Chart.yaml", "apiVersion: v2\nname: c\nversion: 1.0.0\n"),
    ("c/values.yaml", "image:\n  tags: v1\n  port: 80\nlist: []\n"),
    ("c/templates/_h.tpl", "{{ define \"tag\" }}\n  {{- .Values.image.tag.name }}\n{{ end }}\n"),
    (
        "c/templates/a.yaml",
        "{{ if eq .Values.mode \"include\" }}\na: {{ include \"tag\" . }}\n{{ end }}\n",
    ),
    (
        "c/templates/b.yaml",
        "{{ if eq .Values.mode \"tpl\" }}\n\tb: {{ tpl \"{{ .Values.x.y }}\" . }}\n{{ end }}\n",
    ),
    (
        "c/templates/c.yaml",
        "{{ if eq .Values.mode \"yaml\" }}\nkind: A\nmetadata:\n  name: a: b\n{{ end }}\n",
    ),
    (
        "c/templates/d.yaml",
        "{{ if eq .Values.mode \"required\" }}{{ required \"a tag\" .Values.image.tag }}{{ end }}\n",
    ),
    ("c/charts/sub/Chart.yaml", "apiVersion: v2\nname: sub\nversion: 1.0.0\n"),
    (
        "c/charts/sub/templates/a.yaml",
        "{{ if eq .Values.global.mode \"sub\" }}{{ .Values.db.host }}{{ end }}\n",
    ),
    (
        "c/values.schema.json",
        r#"{"properties": {"image": {"properties": {"port": {"type": "integer"}}}}}"#,
    ),
    ("bad.yaml", "# mine\nimage:\n  port: x\n"),
];

/// What a person sees of it at a terminal, below Helm's text.
const TOLD: &[(&str, &[&str])] = &[
    (
        "--set mode=include,global.mode=x",
        &[
            "--> c/templates/a.yaml:2:7\n",
            "2 | a: {{ include \"tag\" . }}\n  |       --------------- from here\n",
            "--> c/templates/_h.tpl:2:7\n",
            "2 |   {{- .Values.image.tag.name }}\n  |       ^^^^^^^^^^^^^^^^^^^^^^ nil pointer evaluating interface {}.name\n",
            "help: values path image.tag is not set; did you mean `image.tags`?\n",
        ],
    ),
    (
        "--set mode=tpl,global.mode=x",
        &["--> gotpl:1:", ".Values.x.y", "help: values path x is not set\n"],
    ),
    (
        "--set mode=yaml,global.mode=x",
        &[
            "--> c/templates/c.yaml, rendered, line 3 of the document\n",
            "3 |   name: a: b\n",
            "^ mapping values are not allowed in this context\n",
            "--debug prints",
        ],
    ),
    (
        "--set mode=required,global.mode=x",
        &["a tag\n", "help: values path image.tag is not set; did you mean `image.tags`?\n"],
    ),
    ("--set mode=x,global.mode=sub", &["help: values path sub.db is not set\n", ".Values.db.host"]),
    (
        "--set mode=x,global.mode=x -f bad.yaml",
        &["help: values path image.port (bad.yaml:3): got string, want integer\n"],
    ),
];

#[test]
fn people_see_where_and_why() {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in FAILS {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let told = |line: &str, explain: &str| {
        let output = Command::new(OURS)
            .args(["template", "demo", "c"])
            .args(line.split(' '))
            .current_dir(folder.path())
            .env("CATAMARAN_EXPLAIN", explain)
            .env("KUBECONFIG", "/nonexistent")
            .output()
            .unwrap();
        String::from_utf8(output.stderr).unwrap()
    };
    for (line, wanted) in TOLD {
        let (plain, explained) = (told(line, "never"), told(line, "always"));
        assert!(explained.starts_with(&plain), "helm's text comes first:\n{explained}");
        assert_eq!(plain, told(line, ""), "a pipe gets helm's text alone");
        for part in *wanted {
            assert!(explained.contains(part), "{line}: {part:?} is missing in:\n{explained}");
        }
        assert!(!explained.contains('\u{1b}'), "no colours unless asked for: {explained:?}");
        let coloured = told(&format!("{line} --color=always"), "");
        assert!(coloured.contains("\u{1b}[1;"), "{coloured:?}");
    }
}
