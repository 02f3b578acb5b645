//! Ctrl-C, and worse: the next call goes on.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{CONFIG_MAP, Charts, Hand, Place};

/// The longest that anything may take here.
const DEADLINE: Duration = Duration::from_mins(1);

/// A hook that runs as long as nobody ends it.
const HOOK: (&str, &str) = (
    "hook.yaml",
    "\
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .Release.Name }}-hook
  annotations: {helm.sh/hook: 'pre-install,pre-upgrade,pre-rollback,pre-delete'}
spec:
  backoffLimit: 0
  template:
    metadata: {annotations: {fake.catamaran.test/run-for: {{ .Values.run | default `3s` }}}}
    spec: {restartPolicy: Never, containers: [{name: c, image: busybox}]}
",
);

/// What the chart draws anew in each rendering.
const DRAWN: (&str, &str) = (
    "drawn.yaml",
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}-drawn}\ndata: {k: {{ randAlpha 9 }}}\n",
);

/// Begins a command, and returns once its hook is there.
fn begin(place: &Place, hand: Hand, line: &str) -> Child {
    let arguments: Vec<&str> = line.split_whitespace().collect();
    let before = hook(place);
    let mut command = place.command(hand, &arguments);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    until(line, || {
        let now = hook(place);
        !now.is_empty() && now != before
    });
    child
}

/// Waits for its end. Yields its status, and what it complained of.
fn end(mut child: Child) -> (Option<i32>, String) {
    let mut told = String::new();
    std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut told).unwrap();
    (child.wait().unwrap().code(), told)
}

/// Begins a command, and ends it by a signal once its hook is there. Yields the hook's uid.
fn cut_short(place: &Place, line: &str, signal: &str) -> String {
    // It is waiting now, or about to be.
    let child = begin(place, Hand::Ours, line);
    send(&child, signal);
    let (code, told) = end(child);
    if signal == "-INT" {
        assert!(told.contains("interrupted; what was begun is kept"), "{line}: {told}");
        assert_eq!(code, Some(1), "{line}: {told}");
    }
    hook(place)
}

fn send(child: &Child, signal: &str) {
    let sent = std::process::Command::new("kill").args([signal, &child.id().to_string()]).status();
    assert!(sent.unwrap().success());
}

fn hook(place: &Place) -> String {
    let job = place.live("job/a-hook");
    job["metadata"]["uid"].as_str().unwrap_or_default().to_owned()
}

fn until(what: &str, done: impl Fn() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < DEADLINE, "not within {DEADLINE:?}: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_call_goes_on_with_what_was_cut_short() {
    let cluster = catamaran_localcluster::shared().await.unwrap();
    let charts = Charts::new(&[CONFIG_MAP, HOOK, DRAWN]);
    let mut all = Vec::new();
    for signal in ["-INT", "-KILL"] {
        let namespace = cluster.namespace("interrupted").await.unwrap();
        let place = Place::new(&cluster, namespace.name(), charts.path());
        all.push((namespace, tokio::task::spawn_blocking(move || go_on(&place, signal))));
    }
    for (_namespace, one) in all {
        one.await.unwrap();
    }
}

fn go_on(place: &Place, signal: &str) {
    let again = |line: &str, revisions: [&str; 2]| {
        let uid = cut_short(place, line, signal);
        assert_eq!(place.revisions("a"), revisions[0], "{signal} {line}");
        let said = place.run(Hand::Ours, line);
        assert_eq!(said.code, Some(0), "{signal} {line}: {}", said.err);
        assert_eq!(place.revisions("a"), revisions[1], "{signal} {line}");
        if !line.starts_with("uninstall") {
            assert_eq!(hook(place), uid, "{signal} {line}: the hook was not run again");
        }
    };
    again("install a demo --set greeting=one", ["1 pending-install", "1 deployed"]);
    again(
        "upgrade a demo --set greeting=two",
        ["1 deployed, 2 pending-upgrade", "1 superseded, 2 deployed"],
    );
    again(
        "rollback a",
        ["1 superseded, 2 deployed, 3 pending-rollback", "1 superseded, 2 superseded, 3 deployed"],
    );
    let gone = "Error: release: not found\n";
    again("uninstall a", ["1 superseded, 2 superseded, 3 uninstalling", gone]);
    assert_eq!(place.live("configmap/a-map"), Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_wish_takes_the_place_of_what_was_cut_short() {
    let cluster = catamaran_localcluster::shared().await.unwrap();
    let namespace = cluster.namespace("rewished").await.unwrap();
    let charts = Charts::new(&[CONFIG_MAP, HOOK, DRAWN]);
    let place = Place::new(&cluster, namespace.name(), charts.path());
    let done = tokio::task::spawn_blocking(move || {
        place.say(Hand::Ours, "install a demo --no-hooks");
        cut_short(&place, "upgrade a demo --set greeting=two", "-INT");
        place.say(Hand::Ours, "upgrade a demo --set greeting=three --no-hooks");
        assert_eq!(place.revisions("a"), "1 superseded, 2 failed, 3 deployed");
        assert_eq!(place.live("configmap/a-map")["data"]["greeting"], "three");
        cut_short(&place, "upgrade a demo --set greeting=four", "-INT");
        place.say(Hand::Ours, "rollback a 1 --no-hooks");
        assert_eq!(
            place.revisions("a"),
            "1 superseded, 2 failed, 3 superseded, 4 failed, 5 deployed"
        );
        assert_eq!(place.live("configmap/a-map")["data"]["greeting"], "hello");
        // So does another chart of the same version.
        cut_short(&place, "upgrade a demo --set greeting=five", "-INT");
        charts.write("demo/templates/map.yaml", &CONFIG_MAP.1.replace("greeting:", "changed:"));
        place.say(Hand::Ours, "upgrade a demo --set greeting=five --no-hooks");
        assert!(place.revisions("a").ends_with("5 superseded, 6 failed, 7 deployed"));
        assert_eq!(place.live("configmap/a-map")["data"]["changed"], "five");
    });
    done.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn two_calls_at_once_do_not_get_into_each_others_way() {
    let cluster = catamaran_localcluster::shared().await.unwrap();
    let namespace = cluster.namespace("at-once").await.unwrap();
    let charts = Charts::new(&[CONFIG_MAP, HOOK]);
    let place = Place::new(&cluster, namespace.name(), charts.path());
    let done = tokio::task::spawn_blocking(move || {
        place.say(Hand::Ours, "install a demo --no-hooks");
        // The same wish twice: both see it through, and the hook runs once.
        let line = "upgrade a demo --set greeting=two,run=8s";
        let first = begin(&place, Hand::Ours, line);
        let uid = hook(&place);
        place.say(Hand::Ours, line);
        assert_eq!(end(first), (Some(0), String::new()));
        assert_eq!(
            (place.revisions("a").as_str(), hook(&place)),
            ("1 superseded, 2 deployed", uid)
        );
        // Another wish: the later one wins, and the other is told.
        let first =
            begin(&place, Hand::Ours, "upgrade a demo --set greeting=three,run=1m --atomic");
        place.say(Hand::Ours, "upgrade a demo --set greeting=four --no-hooks");
        let (code, told) = end(first);
        assert!(told.contains("somebody else works on this release"), "{told}");
        assert_eq!(code, Some(1));
        assert_eq!(place.revisions("a"), "1 superseded, 2 superseded, 3 failed, 4 deployed");
        assert_eq!(place.live("configmap/a-map")["data"]["greeting"], "four");
    });
    done.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_helm_that_may_be_at_work_is_left_alone() {
    let cluster = catamaran_localcluster::shared().await.unwrap();
    let namespace = cluster.namespace("at-work").await.unwrap();
    let charts = Charts::new(&[CONFIG_MAP, HOOK]);
    let place = Place::new(&cluster, namespace.name(), charts.path());
    let done = tokio::task::spawn_blocking(move || {
        place.say(Hand::Ours, "install a demo --no-hooks");
        let helm = begin(&place, Hand::Helm4, "upgrade a demo --set greeting=two");
        send(&helm, "-KILL");
        end(helm);
        let words = "another operation (install/upgrade/rollback) is in progress";
        for hand in [Hand::Ours, Hand::Helm4] {
            let said = place.run(hand, "upgrade a demo --set greeting=three");
            let expected = format!("Error: UPGRADE FAILED: {words}");
            assert!(said.err.lines().any(|line| line.starts_with(&expected)), "{}", said.err);
            assert_eq!(said.code, Some(1));
        }
        let said = place.run(Hand::Ours, "rollback a").err;
        assert!(said.contains(words) && said.contains("it is taken over in "), "{said}");
        assert_eq!(place.revisions("a"), "1 deployed, 2 pending-upgrade");
        // What helm can do about it, it does, and we go on from there.
        place.say(Hand::Helm4, "rollback a 1 --no-hooks");
        place.say(Hand::Ours, "upgrade a demo --set greeting=three --no-hooks");
        let revisions = place.revisions("a");
        assert!(revisions.ends_with("3 superseded, 4 deployed"), "{revisions}");
    });
    done.await.unwrap();
}
