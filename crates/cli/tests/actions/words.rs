//! The same command, once by helm 4 and once by ours, each in a namespace of its own: the same words.

use std::path::PathBuf;

use catamaran_yaml::Numbers;
use serde_json::Value;

use crate::support::{CONFIG_MAP, Charts, DEPLOYMENT, Hand, Place, SECRET, Said, TEST};

/// What both do, one after the other.
const LINES: &[&str] = &[
    "install a demo",
    "install a demo",
    "upgrade a demo --set greeting=x,table.y=3",
    "upgrade a demo --reuse-values --set table.x=null -o json",
    "upgrade zz demo",
    "upgrade -i b demo --hide-notes --description own",
    "upgrade -i b demo -o yaml --description own",
    "history a",
    "history a --max 1",
    "history a -o json",
    "history a -o yaml",
    "history nope",
    "status a",
    "status a --revision 1",
    "status nope",
    "rollback a 1",
    "rollback a",
    "rollback a 77",
    "rollback a x",
    "rollback nope",
    "rollback a --dry-run=server",
    "upgrade a demo --dry-run=client",
    "upgrade a demo --dry-run=server --set replicas",
    "history a --show-rollback-revision",
    "test a",
    "test a --filter name=nobody",
    "test nope",
    "uninstall a --dry-run",
    "uninstall a --keep-history --description bye",
    "uninstall a --keep-history",
    "history a",
    "status a",
    "install a demo",
    "upgrade a demo",
    "uninstall a nope",
    "uninstall nope --ignore-not-found",
    "install k demo --set secret=1",
    "uninstall k --dry-run",
    "uninstall k",
    "uninstall b --wait",
    "uninstall b --cascade=x",
    "install y demo --dry-run=client",
    "install y demo --dry-run=server -o json --set greeting=x",
    "install y demo --dry-run=client --hide-secret --set secret=1",
    "install y demo --dry-run=maybe",
    "install y demo --labels name=x",
    "install y demo --hide-secret",
    "install demo",
    "install A demo",
    "install y demo more",
    "install -g y demo",
    "install a",
    "install y missing",
    "install y demo --set replicas",
    "install",
    "upgrade a",
    "rollback",
    "uninstall",
    "test",
    "status",
    "status a b",
    "history",
    "install y demo -o xml",
    "install y demo --timeout x",
    "install y demo --timeout 5",
    "install y demo --wait=maybe",
    "install y demo --foo",
    "status a --revision",
];

#[tokio::test(flavor = "multi_thread")]
async fn every_action_says_what_helm_says() {
    let cluster = catamaran_localcluster::shared().await.unwrap();
    let charts = Charts::new(&[CONFIG_MAP, SECRET, TEST]);
    let (theirs, ours) =
        (cluster.namespace("words").await.unwrap(), cluster.namespace("words").await.unwrap());
    let place = |namespace: &str| Place::new(&cluster, namespace, charts.path());
    let (theirs, ours) = (place(theirs.name()), place(ours.name()));
    let run = |place: Place, hand: Hand| {
        move || LINES.iter().map(|line| place.run(hand, line)).collect::<Vec<Said>>()
    };
    let helms = tokio::task::spawn_blocking(run(theirs.clone(), Hand::Helm4));
    let said = tokio::task::spawn_blocking(run(ours.clone(), Hand::Ours)).await.unwrap();
    let helms = helms.await.unwrap();
    let mut different = Vec::new();
    for ((line, helm), own) in LINES.iter().zip(helms).zip(said) {
        let (helm, own) = (normalised(&helm, &theirs), normalised(&own, &ours));
        if helm != own {
            different.push(format!("--- {line}\nhelm: {helm}\nours: {own}"));
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}

/// Output, error and status, without what is never twice the same.
fn normalised(said: &Said, place: &Place) -> String {
    let fault = said.err.find("Error: ").and_then(|at| said.err.get(at..)).unwrap_or_default();
    let out = match serde_json::from_str(&said.out) {
        Ok(value) => plain(value).to_string(),
        Err(_) if said.out.starts_with("apply_method:") => {
            plain(catamaran_yaml::from_str(&said.out, Numbers::Exact).unwrap()).to_string()
        }
        Err(_) => said.out.lines().map(timeless).collect::<Vec<_>>().join("\n"),
    };
    format!("{out}\n{fault}{:?}", said.code)
        .replace(&place.namespace, "NAMESPACE")
        .replace("catamaran ", "helm ")
}

/// JSON with all numbers as Helm reads them, without times, and of a chart what a slim record has.
fn plain(value: Value) -> Value {
    match value {
        Value::Number(number) => number.as_f64().into(),
        Value::String(text) if text.parse::<jiff::Timestamp>().is_ok() => "TIME".into(),
        Value::Array(items) => items.into_iter().map(plain).collect(),
        Value::Object(mut map) => {
            if let Some(chart) = map.get_mut("chart").and_then(Value::as_object_mut) {
                chart.retain(|key, _| key == "metadata" || key == "values");
            }
            map.into_iter().map(|(key, value)| (key, plain(value))).collect()
        }
        other => other,
    }
}

const DAYS: [&str; 7] = ["Mon ", "Tue ", "Wed ", "Thu ", "Fri ", "Sat ", "Sun "];
/// How long a time is that begins with one of them.
const LENGTH: usize = "Mon Jan _2 15:04:05 2006".len();

/// A line without times, and without the last column of `status`, an age.
fn timeless(line: &str) -> String {
    if line.starts_with("a-") {
        return line.rsplit_once(' ').map_or(line, |(line, _)| line).to_owned();
    }
    let found = DAYS.iter().filter_map(|day| line.find(day)).min();
    let time = found.and_then(|at| line.get(at..at + LENGTH));
    let line = match time.filter(|time| time.matches(':').count() == 2) {
        Some(time) => line.replace(time, "TIME"),
        None => line.to_owned(),
    };
    let words = line.split(' ').map(|word| {
        let bare = word.trim_matches('"');
        if bare.parse::<jiff::Timestamp>().is_ok() {
            word.replace(bare, "TIME")
        } else {
            word.to_owned()
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

#[tokio::test(flavor = "multi_thread")]
async fn status_shows_the_objects_that_helm_shows() {
    let cluster = catamaran_localcluster::shared().await.unwrap();
    let namespace = cluster.namespace("status").await.unwrap();
    let charts = Charts::new(&[CONFIG_MAP, DEPLOYMENT]);
    let place = Place::new(&cluster, namespace.name(), charts.path());
    place.say(Hand::Ours, "install a demo --wait --set replicas=2");
    let lines = |hand| {
        let text = place.say(hand, "status a");
        let line = |line: &str| timeless(&line.split_whitespace().collect::<Vec<_>>().join(" "));
        let mut lines: Vec<String> = text.lines().map(line).collect();
        lines.sort();
        lines
    };
    assert_eq!(lines(Hand::Ours), lines(Hand::Helm4));
    let kinds = |hand| {
        let status = place.json(hand, "status a");
        let resources = status["info"]["resources"].as_object().unwrap().clone();
        let kind = |object: &Value| object["kind"].as_str().unwrap().to_owned();
        resources
            .into_iter()
            .map(|(key, objects)| {
                (key, objects.as_array().unwrap().iter().map(kind).collect::<Vec<_>>())
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(kinds(Hand::Ours), kinds(Hand::Helm4));
}

#[test]
fn a_cluster_that_is_not_there_is_told_as_by_helm() {
    let charts = Charts::new(&[CONFIG_MAP]);
    let config = "{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a}}], \
         clusters: [{name: a, cluster: {server: 'http://127.0.0.1:1'}}]}";
    charts.write("kubeconfig", config);
    charts.write(
        "library/Chart.yaml",
        "{apiVersion: v2, name: library, version: 1.0.0, type: library}",
    );
    charts.write("values/Chart.yaml", "{apiVersion: v2, name: values, version: 1.0.0}");
    charts.write("values/values.yaml", "a: [");
    let lacking = "{apiVersion: v2, name: lacking, version: 1.0.0, dependencies: [{name: b, version: 1.0.0}]}";
    charts.write("lacking/Chart.yaml", lacking);
    charts.write("failing/Chart.yaml", "{apiVersion: v2, name: failing, version: 1.0.0}");
    charts.write("failing/templates/a.yaml", "{{ fail \"no\" }}");
    // What is wrong with a chart comes first in some of them.
    let actions = [
        "install",
        "upgrade",
        "upgrade -i",
        "install --dry-run=server",
        "upgrade -i --dry-run=client",
    ];
    let faulty = ["demo", "missing", "values", "lacking", "library", "failing"];
    let lines = actions.iter().flat_map(|action| faulty.map(|chart| format!("{action} a {chart}")));
    for line in lines.chain(["rollback a", "uninstall a", "status a"].map(str::to_owned)) {
        let [helm, ours] = both(&charts, &line);
        let start = |said: &Said| {
            let fault = said.err.find("Error: ").and_then(|at| said.err.get(at..)).unwrap();
            fault.split("unreachable").next().unwrap().to_owned()
        };
        assert_eq!(start(&ours), start(&helm), "{line}: {}", ours.err);
        let refused = |said: &Said| said.err.to_lowercase().contains("connection refused");
        assert_eq!(refused(&ours), refused(&helm), "{line}: {}", ours.err);
        assert_eq!(ours.code, helm.code);
    }
    let refused = std::process::Command::new(env!("CARGO_BIN_EXE_catamaran"))
        .args(["status", "a"])
        .env("HELM_DRIVER", "configmap")
        .output()
        .unwrap();
    let told = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(
        told,
        "Error: HELM_DRIVER=configmap is not supported: releases are kept in Secrets\n"
    );
}

/// A line by helm 4 and by ours, with the charts' own kubeconfig.
fn both(charts: &Charts, line: &str) -> [Said; 2] {
    let tools = catamaran_localcluster::tools().unwrap();
    [tools.helm(), env!("CARGO_BIN_EXE_catamaran").into()].map(|program: PathBuf| {
        std::process::Command::new(program)
            .args(line.split(' '))
            .current_dir(charts.path())
            .env("HOME", charts.path())
            .env("KUBECONFIG", charts.path().join("kubeconfig"))
            .output()
            .unwrap()
            .into()
    })
}

#[test]
fn a_label_that_is_none_is_told_before_chart_and_cluster() {
    let charts = Charts::new(&[CONFIG_MAP]);
    for line in [
        "install a demo -l foo",
        "install a missing -l foo",
        "install a demo --labels a=b,c,d=e",
        "install a demo -l a=b -l c",
        "install -l foo",
        "upgrade a demo -l foo",
        "upgrade -i a demo --labels=",
    ] {
        let [helm, ours] = both(&charts, line);
        assert_eq!(ours.err, helm.err, "{line}");
        assert_eq!(ours.code, helm.code, "{line}");
    }
}

#[test]
fn help_teaches() {
    for (command, words) in [
        (
            "install",
            ["--create-namespace", "catamaran install demo", "goes on with it", "--take-ownership"],
        ),
        (
            "upgrade",
            [
                "--reset-then-reuse-values",
                "catamaran upgrade demo",
                "goes on with it",
                "--rollback-on-failure",
            ],
        ),
        (
            "rollback",
            [
                "[default: the one before the newest]",
                "catamaran rollback demo 3",
                "goes on",
                "--no-hooks",
            ],
        ),
        (
            "uninstall",
            ["--keep-history", "catamaran uninstall demo", "goes on with it", "foreground"],
        ),
        ("test", ["--filter", "catamaran test demo --logs", "goes on with it", "!name=a"]),
        ("status", ["--revision", "--output", "table, json or yaml", "its objects"]),
        ("history", ["--max", "--show-rollback-revision", "table, json or yaml", "--namespace"]),
    ] {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_catamaran"))
            .args([command, "--help"])
            .output()
            .unwrap();
        let help = String::from_utf8(output.stdout).unwrap();
        for word in words {
            assert!(help.contains(word), "{command}: {word} is missing in:\n{help}");
        }
    }
}
