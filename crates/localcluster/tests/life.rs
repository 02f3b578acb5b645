//! Nothing is left behind, whoever dies first.

#![allow(clippy::unwrap_used, clippy::panic)] // a test ends by them

mod common;

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use catamaran_localcluster::{Builder, Error, LocalCluster};
use common::{END, eventually, gone, processes_of, signal};
use rustix::process::Signal;
use tokio::sync::{Semaphore, SemaphorePermit};

const PROGRAM: &str = env!("CARGO_BIN_EXE_localcluster");

/// So many clusters at once are enough for a small machine.
static ROOM: Semaphore = Semaphore::const_new(2);

/// Starts a cluster of the test's own.
async fn own() -> LocalCluster {
    builder().start().await.unwrap()
}

fn builder() -> Builder {
    LocalCluster::builder().program(PROGRAM)
}

/// Takes a place among those who start clusters.
async fn room() -> SemaphorePermit<'static> {
    ROOM.acquire().await.unwrap()
}

/// The process id of a component.
fn pid_of(folder: &Path, component: &str) -> u32 {
    let folder = folder.to_str().unwrap();
    let ids = std::fs::read_dir("/proc").unwrap().flatten();
    let mut ids = ids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    ids.find(|id| {
        let line = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line);
        let program = line.split('\0').next().unwrap_or_default();
        program.ends_with(&format!("/{component}")) && line.contains(folder)
    })
    .unwrap()
}

#[tokio::test]
async fn dropping_the_last_clone_ends_the_cluster() {
    let _room = room().await;
    let cluster = own().await;
    let folder = cluster.folder().to_owned();
    let clone = cluster.clone();
    drop(cluster);
    assert!(clone.client().apiserver_version().await.is_ok(), "a clone keeps it");
    drop(clone);
    gone(&folder).await;
}

#[tokio::test]
async fn a_panic_ends_the_cluster() {
    let _room = room().await;
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let thread = std::thread::spawn(|| {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let cluster = own().await;
            sender.send(cluster.folder().to_owned()).unwrap();
            panic!("this panic is part of the test");
        });
    });
    let folder = receiver.await.unwrap();
    gone(&folder).await;
    assert!(thread.join().is_err());
}

#[tokio::test]
async fn giving_up_a_start_ends_what_was_started() {
    // Alone: its folder is known as that of our only child.
    let _room = ROOM.acquire_many(2).await.unwrap();
    let folder = {
        let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
        let tell = move |_: &str| sender.send(newest_folder()).unwrap();
        let start = builder().on_progress(tell).start();
        tokio::select! {
            _ = start => panic!("the first step comes before the last"),
            folder = receiver.recv() => folder.unwrap(),
        }
    };
    gone(&folder).await;
}

/// The folder of the supervisor that is our newest child.
fn newest_folder() -> PathBuf {
    let ours = format!("PPid:\t{}", std::process::id());
    let home = std::env::temp_dir();
    let mut found: Vec<(u32, PathBuf)> = std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| {
            let id = entry.file_name().to_str()?.parse::<u32>().ok()?;
            let status = std::fs::read_to_string(entry.path().join("status")).ok()?;
            let folder = std::fs::read_link(entry.path().join("cwd")).ok()?;
            (status.contains(&ours) && folder.starts_with(&home)).then_some((id, folder))
        })
        .collect();
    found.sort();
    found.pop().unwrap().1
}

#[tokio::test]
async fn a_supervisor_that_is_killed_takes_all_with_it() {
    let _room = room().await;
    let mut cluster = own().await;
    let folder = cluster.folder().to_owned();
    signal(cluster.supervisor(), Signal::KILL);
    gone(&folder).await;
    assert!(cluster.ended().await.is_none());
}

#[tokio::test]
async fn a_component_that_dies_is_named_and_ends_the_cluster() {
    let _room = room().await;
    let mut cluster = own().await;
    let folder = cluster.folder().to_owned();
    signal(pid_of(&folder, "kube-scheduler"), Signal::KILL);
    match cluster.ended().await {
        Some(Error::Component(failure)) => {
            assert_eq!(failure.component, "kube-scheduler");
            assert!(failure.reason.contains("signal: 9"), "{failure}");
        }
        other => panic!("{other:?}"),
    }
    gone(&folder).await;
}

#[tokio::test]
async fn an_api_server_that_is_killed_on_purpose_comes_back_with_its_data() {
    let _room = room().await;
    let cluster = own().await;
    let before = cluster.namespace("kept").await.unwrap();
    for _ in 0..2 {
        cluster.kill_api_server().await.unwrap();
        assert!(processes_of(cluster.folder()).iter().all(|line| !line.contains("apiserver ")));
        cluster.start_api_server().await.unwrap();
    }
    let namespaces: kube::Api<k8s_openapi::api::core::v1::Namespace> =
        kube::Api::all(cluster.client());
    assert!(namespaces.get_opt(&before).await.unwrap().is_some());
    // The others have found it again: a namespace needs a controller to be of use.
    cluster.namespace("made").await.unwrap();
}

#[tokio::test]
async fn a_component_that_does_not_start_is_named_with_its_log() {
    let _room = room().await;
    let tools = tempfile::tempdir().unwrap();
    let real = catamaran_localcluster::tools().unwrap();
    for entry in std::fs::read_dir(real.folder()).unwrap().flatten() {
        let link = tools.path().join(entry.file_name());
        std::os::unix::fs::symlink(entry.path(), link).unwrap();
    }
    let broken = tools.path().join("kube-controller-manager");
    std::fs::remove_file(&broken).unwrap();
    std::os::unix::fs::symlink("/bin/ls", &broken).unwrap();

    let error = builder().tools(tools.path()).start().await.unwrap_err();
    let text = format!("{error:?}");
    assert!(text.contains("kube-controller-manager ended (exit status: 2)"), "{text}");
    assert!(text.contains("the end of its log:\n    "), "{text}");
}

#[tokio::test]
async fn two_at_once_do_not_collide() {
    let _room = ROOM.acquire_many(2).await.unwrap();
    let (one, two) = tokio::join!(own(), own());
    assert_ne!(one.server(), two.server());
    assert_ne!(one.folder(), two.folder());
    for cluster in [&one, &two] {
        assert!(cluster.client().apiserver_version().await.is_ok());
    }
    let folders = [one.folder().to_owned(), two.folder().to_owned()];
    drop(one);
    gone(&folders[0]).await;
    assert!(two.client().apiserver_version().await.is_ok(), "the other does not notice");
    drop(two);
    gone(&folders[1]).await;
}

/// `localcluster …` with a cluster that is ready. Killed if the test panics.
struct Person {
    child: Child,
    folder: PathBuf,
}

impl Person {
    /// The folder is told on standard output: the first line with `KUBECONFIG=`.
    fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new(PROGRAM)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let mut lines = stdout.lines().map_while(Result::ok);
        let path = lines.find_map(|line| line.split_once("KUBECONFIG=").map(|x| x.1.to_owned()));
        // What it says further must have a place to go.
        std::thread::spawn(move || lines.for_each(drop));
        let folder = Path::new(&path.unwrap()).parent().unwrap().to_owned();
        Self { child, folder }
    }

    async fn ended(&mut self) -> ExitStatus {
        eventually("localcluster to end", END, async || self.child.try_wait().unwrap()).await
    }
}

impl Drop for Person {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_ends_what_a_person_has_started() {
    let _room = room().await;
    let mut person = Person::start(&["up", "--nodes", "1"]);
    assert!(!processes_of(&person.folder).is_empty());
    signal(person.child.id(), Signal::INT);
    assert_eq!(person.ended().await.code(), Some(0));
    assert_eq!(processes_of(&person.folder), Vec::<String>::new(), "it has waited to the end");
    gone(&person.folder).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killing_the_holder_ends_the_cluster() {
    let _room = room().await;
    // The command ends when we close its standard input.
    let mut person = Person::start(&["run", "--", "sh", "-c", "echo KUBECONFIG=$KUBECONFIG; cat"]);
    signal(person.child.id(), Signal::KILL);
    person.ended().await;
    gone(&person.folder).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn run_hands_on_tools_and_exit_status() {
    let _room = room().await;
    let script = "echo KUBECONFIG=$KUBECONFIG; \
                  kubectl version >/dev/null && helm list >/dev/null && exit 7";
    let mut person = Person::start(&["run", "--", "sh", "-c", script]);
    assert_eq!(person.ended().await.code(), Some(7));
    gone(&person.folder).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sigterm_reaches_the_command_that_runs() {
    let _room = room().await;
    let script = "trap 'exit 3' TERM; echo KUBECONFIG=$KUBECONFIG; while :; do read x; done";
    let mut person = Person::start(&["run", "--", "sh", "-c", script]);
    signal(person.child.id(), Signal::TERM);
    assert_eq!(person.ended().await.code(), Some(3));
    gone(&person.folder).await;
}

#[tokio::test]
async fn up_keeps_a_copy_of_the_kubeconfig_as_long_as_the_cluster() {
    let _room = room().await;
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("kubeconfig");
    let person = Command::new(PROGRAM)
        .args(["up", "--nodes", "0", "--kubeconfig", copy.to_str().unwrap()])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut person = Person { child: person, folder: PathBuf::new() };
    eventually("the copy", Duration::from_mins(1), async || copy.exists().then_some(())).await;
    signal(person.child.id(), Signal::TERM);
    assert_eq!(person.ended().await.code(), Some(0));
    assert!(!copy.exists());
}
