//! A real node runs real containers, and nothing of it outlives it.
//!
//! Needs root and Debian's packages; without them every test here says so and does nothing. A machine
//! has room for one real node, so the clusters here wait for each other, and for those of other tests.

#![allow(clippy::unwrap_used, clippy::panic)] // a test ends by them

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use catamaran_localcluster::{Builder, Image, LocalCluster, Namespace};
use common::{SOON, eventually, gone, processes_of, signal};
use k8s_openapi::api::core::v1::{ContainerStatus, Pod, Service};
use kube::api::{Api, PostParams};
use rustix::process::Signal;
use serde_json::{Value, json};

const PROGRAM: &str = env!("CARGO_BIN_EXE_localcluster");

/// The image of the program that does what a pod's arguments say.
const ACTOR: &str = "localhost/actor:1";

/// The image's archive.
static ARCHIVE: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let program = folder.join(format!("actor-{}", std::process::id()));
    // Static: there is nothing else in the image.
    let status = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
        .args(["--edition=2024", "-Ctarget-feature=+crt-static", "-Cstrip=symbols", "-o"])
        .arg(&program)
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/actor.rs"))
        .status()
        .unwrap();
    assert!(status.success(), "rustc ended with {status}");
    let image = Image::scratch(ACTOR).file("actor", 0o755, &fs::read(&program).unwrap()).unwrap();
    fs::remove_file(&program).unwrap();
    image.entrypoint(["/actor"]).write(folder.join("actor.tar")).unwrap()
});

/// Whether to do nothing. Said past the test's captured output, because it must be seen.
fn skipped() -> bool {
    let Err(why) = LocalCluster::real_node_available() else { return false };
    let _ = writeln!(std::io::stderr(), "SKIPPED a test of the real node: {why}");
    true
}

fn builder() -> Builder {
    LocalCluster::builder().program(PROGRAM).real_node()
}

/// The cluster of all tests here that leave it as it was, with the image.
async fn shared() -> LocalCluster {
    let cluster = builder()
        .shared_in(env!("CARGO_TARGET_TMPDIR"))
        .linger(Duration::from_secs(3))
        .start()
        .await
        .unwrap();
    cluster.real_node().unwrap().load_image(&ARCHIVE).await.unwrap();
    cluster
}

/// A pod that does what `arguments` say, as the strictest of namespaces wants it.
fn pod(name: &str, arguments: &[&str]) -> Value {
    json!({
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            "nodeSelector": {"type": "real"},
            "securityContext": {
                "runAsNonRoot": true,
                "runAsUser": 65532,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [{
                "name": "main",
                "image": ACTOR,
                "args": arguments,
                "securityContext": {
                    "allowPrivilegeEscalation": false,
                    "capabilities": {"drop": ["ALL"]},
                    "readOnlyRootFilesystem": true,
                },
            }],
        },
    })
}

async fn create(cluster: &LocalCluster, namespace: &str, pod: Value) {
    let pods: Api<Pod> = Api::namespaced(cluster.client(), namespace);
    pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
}

/// Waits until the status of the only container of a pod is as wanted.
async fn container<T>(
    cluster: &LocalCluster,
    namespace: &str,
    name: &str,
    wanted: impl Fn(ContainerStatus) -> Option<T>,
) -> T {
    let pods: Api<Pod> = Api::namespaced(cluster.client(), namespace);
    eventually(&format!("the container of pod {name}"), SOON, async || {
        let status = pods.get(name).await.unwrap().status?;
        wanted(status.container_statuses?.pop()?)
    })
    .await
}

async fn running(cluster: &LocalCluster, namespace: &str, name: &str) {
    container(cluster, namespace, name, |status| status.ready.then_some(())).await;
}

fn kubectl(cluster: &LocalCluster, namespace: &str, arguments: &[&str]) -> String {
    let output = Command::new(cluster.tools().unwrap().kubectl())
        .args(["--namespace", namespace])
        .args(arguments)
        .env("KUBECONFIG", cluster.kubeconfig())
        .output()
        .unwrap();
    assert!(output.status.success(), "kubectl {arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A namespace with restricted pod security.
async fn restricted(cluster: &LocalCluster, prefix: &str) -> Namespace {
    let namespace = cluster.namespace(prefix).await.unwrap();
    let label = "pod-security.kubernetes.io/enforce=restricted";
    kubectl(cluster, &namespace, &["label", "namespace", &namespace, label]);
    namespace
}

#[tokio::test]
async fn a_restricted_pod_runs_logs_and_executes() {
    if skipped() {
        return;
    }
    let cluster = shared().await;
    let namespace = restricted(&cluster, "runs").await;
    create(&cluster, &namespace, pod("x", &["serve", "8080", "hello"])).await;
    running(&cluster, &namespace, "x").await;
    assert_eq!(kubectl(&cluster, &namespace, &["logs", "x"]), "serving \"hello\" on 8080");
    let said = kubectl(&cluster, &namespace, &["exec", "x", "--", "/actor", "say", "inside"]);
    assert_eq!(said, "inside");

    create(&cluster, &namespace, pod("y", &["say", "done"])).await;
    let code =
        container(&cluster, &namespace, "y", |status| Some(status.state?.terminated?.exit_code));
    assert_eq!(code.await, 0);
    assert_eq!(kubectl(&cluster, &namespace, &["logs", "y"]), "done");
}

#[tokio::test]
async fn a_service_routes_from_the_machine_and_from_pods() {
    if skipped() {
        return;
    }
    let cluster = shared().await;
    let namespace = cluster.namespace("routes").await.unwrap();
    create(&cluster, &namespace, pod("x", &["serve", "8080", "hello"])).await;
    create(&cluster, &namespace, pod("client", &["serve", "8080", "nothing"])).await;
    let services: Api<Service> = Api::namespaced(cluster.client(), &namespace);
    let service = json!({
        "metadata": {"name": "x"},
        "spec": {"selector": {"app": "x"}, "ports": [{"port": 80, "targetPort": 8080}]},
    });
    let service = serde_json::from_value(service).unwrap();
    let service = services.create(&PostParams::default(), &service).await.unwrap();
    let address = format!("{}:80", service.spec.unwrap().cluster_ip.unwrap());

    eventually("an answer at the Service's address", SOON, async || {
        let wait = Duration::from_millis(500);
        let mut stream = TcpStream::connect_timeout(&address.parse().unwrap(), wait).ok()?;
        stream.set_read_timeout(Some(wait)).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        (text == "hello").then_some(())
    })
    .await;
    running(&cluster, &namespace, "client").await;
    let ask = |pod: &str, address: &str| {
        kubectl(&cluster, &namespace, &["exec", pod, "--", "/actor", "ask", address])
    };
    assert_eq!(ask("client", &address), "hello", "from another pod");
    assert_eq!(ask("x", &address), "hello", "from the pod behind it");
    // It waits for a greeting; what counts is that there is a connection.
    assert_eq!(ask("client", "10.96.0.1:443"), "", "the API server, as every pod finds it");
}

#[tokio::test]
async fn a_memory_limit_kills() {
    if skipped() {
        return;
    }
    let cluster = shared().await;
    let namespace = cluster.namespace("memory").await.unwrap();
    let mut hog = pod("hog", &["allocate", "200"]);
    hog["spec"]["containers"][0]["resources"] = json!({"limits": {"memory": "32Mi"}});
    create(&cluster, &namespace, hog).await;
    create(&cluster, &namespace, pod("free", &["allocate", "200"])).await;
    for (name, expected) in [("hog", ("OOMKilled", 137)), ("free", ("Completed", 0))] {
        let end = container(&cluster, &namespace, name, |status| status.state?.terminated).await;
        assert_eq!(
            (end.reason.as_deref(), end.exit_code),
            (Some(expected.0), expected.1),
            "{name}"
        );
    }
}

#[tokio::test]
async fn an_image_that_is_not_there_is_told() {
    if skipped() {
        return;
    }
    let cluster = shared().await;
    let namespace = cluster.namespace("images").await.unwrap();
    let mut missing = pod("x", &[]);
    missing["spec"]["containers"][0]["image"] = "example.invalid/no/such:1".into();
    create(&cluster, &namespace, missing).await;
    let waiting = |status: ContainerStatus| {
        let waiting = status.state?.waiting?;
        (waiting.reason.as_deref() == Some("ImagePullBackOff")).then_some(waiting.message?)
    };
    let message = container(&cluster, &namespace, "x", waiting).await;
    assert!(message.contains("example.invalid/no/such:1"), "{message}");
}

/// What a real node could leave on the machine, by where it is.
#[derive(Debug)]
struct Traces {
    folder: PathBuf,
    /// Those that were in the node's process namespace: their ids, and when they were started. (The
    /// number of a namespace is soon another one's.)
    processes: BTreeSet<(String, String)>,
}

impl Traces {
    /// Of a cluster on whose real node a container runs.
    async fn of(cluster: &LocalCluster) -> Self {
        let node = cluster.real_node().unwrap();
        node.load_image(&ARCHIVE).await.unwrap();
        let pod = pod("x", &["serve", "8080", "hello"]);
        create(cluster, "default", pod).await;
        running(cluster, "default", "x").await;
        let name = node.command("readlink").arg("/proc/self/ns/pid").output().unwrap();
        let namespace = String::from_utf8(name.stdout).unwrap();
        let processes = processes_in(Path::new(namespace.trim()));
        let traces = Self { folder: cluster.folder().to_owned(), processes };
        let found = traces.found();
        for what in ["process", "link", "control group"] {
            assert!(
                found.contains_key(what),
                "{what} is looked for in the right place: {found:#?}"
            );
        }
        let text = format!("{found:?}");
        assert!(text.contains("containerd-shim"), "{text}");
        traces
    }

    fn found(&self) -> BTreeMap<&'static str, Vec<String>> {
        let folder = self.folder.to_str().unwrap();
        let cluster = self.folder.file_name().unwrap().to_str().unwrap();
        let lines = |text: String, part: &str| -> Vec<String> {
            text.lines().filter(|line| line.contains(part)).map(String::from).collect()
        };
        let said = |program: &str, arguments: &[&str]| {
            let output = Command::new(program).args(arguments).output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        let groups = ["/sys/fs/cgroup", "/sys/fs/cgroup/*"].map(|at| format!("{at}/*{cluster}*"));
        let groups = said("sh", &["-c", &format!("ls -d {} 2>/dev/null", groups.join(" "))]);
        let mut found = BTreeMap::from([
            ("process", self.processes()),
            ("mount", lines(fs::read_to_string("/proc/self/mountinfo").unwrap(), folder)),
            // Told by its alias, for another node's may be there by now. Routes go with it.
            ("link", lines(said("ip", &["-oneline", "link"]), folder)),
            ("table", lines(said("nft", &["list", "tables"]), "kube-proxy")),
            ("control group", lines(groups, "")),
        ]);
        found.retain(|_, what| !what.is_empty());
        found
    }

    /// All that mention the folder, or were in the namespace.
    fn processes(&self) -> Vec<String> {
        let still = self.processes.iter().filter(|(id, start)| started(id).as_ref() == Some(start));
        let lines = still.filter_map(|(id, _)| fs::read(format!("/proc/{id}/cmdline")).ok());
        let inside = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
        inside.chain(processes_of(&self.folder)).collect()
    }

    fn assert_none(&self) {
        assert_eq!(self.found(), BTreeMap::new());
        assert!(!self.folder.exists());
    }
}

fn processes_in(namespace: &Path) -> BTreeSet<(String, String)> {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let inside = all.filter(|entry| {
        fs::read_link(entry.path().join("ns/pid")).is_ok_and(|found| found == namespace)
    });
    inside
        .filter_map(|entry| {
            let id = entry.file_name().into_string().ok()?;
            let start = started(&id)?;
            Some((id, start))
        })
        .collect()
}

/// When a process was started, in the kernel's ticks.
fn started(id: &str) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let (_, after_name) = stat.rsplit_once(") ")?;
    after_name.split(' ').nth(19).map(String::from)
}

#[tokio::test]
async fn nothing_is_left_after_a_panic() {
    if skipped() {
        return;
    }
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let thread = std::thread::spawn(|| {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let cluster = builder().nodes(1).start().await.unwrap();
            sender.send(Traces::of(&cluster).await).unwrap();
            panic!("this panic is part of the test");
        });
    });
    let traces = receiver.await.unwrap();
    gone(&traces.folder).await;
    traces.assert_none();
    assert!(thread.join().is_err());
}

#[tokio::test]
async fn nothing_is_left_after_a_supervisor_was_killed_and_the_next_start_works() {
    if skipped() {
        return;
    }
    let begun = Instant::now();
    let cluster = builder().start().await.unwrap();
    println!("up after {:.1?}", begun.elapsed());
    let first = Traces::of(&cluster).await;
    signal(cluster.supervisor(), Signal::KILL);
    // At once, while the first one is about to vanish.
    let next = builder().start().await.unwrap();
    gone(&first.folder).await;
    assert!(!first.found().contains_key("process"));
    assert!(!first.found().contains_key("control group"));

    let second = Traces::of(&next).await;
    let begun = Instant::now();
    next.stop().await;
    println!("ended after {:.1?}", begun.elapsed());
    second.assert_none();
    first.assert_none();
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_leaves_nothing_and_a_command_finds_its_images() {
    if skipped() {
        return;
    }
    // Without a lease of ours: a person's.
    let script = "localcluster load $1 && kubectl run x --image=$2 --restart=Never -- say hello \
                  && kubectl wait pod/x --for=jsonpath={.status.phase}=Succeeded --timeout=60s \
                  && kubectl logs x && trap 'exit 130' INT && echo FOLDER=$(dirname $KUBECONFIG) \
                  && while :; do sleep 0.2; done";
    let mut person = Command::new(PROGRAM)
        .args(["run", "--real-node", "--", "sh", "-c", script, "sh"])
        .args([ARCHIVE.as_path(), Path::new(ACTOR)])
        .env("PATH", path_with(Path::new(PROGRAM).parent().unwrap()))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap();
    let mut said = String::new();
    let mut stdout = person.stdout.take().unwrap();
    while !said.contains("FOLDER=") || !said.ends_with('\n') {
        let mut part = [0; 1024];
        let count = stdout.read(&mut part).unwrap();
        assert!(count > 0, "it ended: {said}");
        said.push_str(str::from_utf8(&part[..count]).unwrap());
    }
    assert!(said.contains("\nhello\n"), "{said}");
    let folder = said.trim().rsplit_once("FOLDER=").unwrap().1;
    // As a terminal does it: to the whole group.
    let group = rustix::process::Pid::from_raw(person.id().cast_signed()).unwrap();
    rustix::process::kill_process_group(group, Signal::INT).unwrap();
    eventually("the end", SOON, async || person.try_wait().unwrap()).await;
    Traces { folder: folder.into(), processes: BTreeSet::new() }.assert_none();
}

fn path_with(folder: &Path) -> std::ffi::OsString {
    let path = std::env::var_os("PATH").unwrap();
    std::env::join_paths([folder.to_owned()].into_iter().chain(std::env::split_paths(&path)))
        .unwrap()
}

/// Runs as nobody, which works everywhere where we are root.
#[test]
fn without_root_one_sentence_says_so() {
    if skipped() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // Nobody may look into our own folders.
    let program = folder.path().join("localcluster");
    fs::copy(PROGRAM, &program).unwrap();
    let all = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(folder.path(), all).unwrap();
    let output =
        Command::new(program).args(["up", "--real-node"]).uid(65534).gid(65534).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said, "localcluster: no real node is possible here: it needs root\n");
    assert_eq!(output.status.code(), Some(1));
}
