//! By hand on a release that is an operator's.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use catamaran_localcluster::{ESTABLISHED, LocalCluster};
use serde_json::Value;

use crate::support::{CONFIG_MAP, Charts, Hand, Place};

/// The longest that anything may take here.
const DEADLINE: Duration = Duration::from_mins(3);

const MORE: (&str, &str) = (
    "more.yaml",
    "{{ if .Values.more }}\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}-more}\n{{ end }}\n",
);

/// `catamaran run`, killed at the end.
pub struct Operator(Child);

impl Operator {
    pub fn start(cluster: &LocalCluster, namespace: &str, watches: &Path) -> Self {
        Self::told(cluster, namespace, watches, "info", Stdio::null())
    }

    /// With a log of this level.
    pub fn told(
        cluster: &LocalCluster,
        namespace: &str,
        watches: &Path,
        level: &str,
        log: Stdio,
    ) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_catamaran"));
        command
            // No ports: another operator of these tests may have them.
            .args(["run", "--health-probe-bind-address", "0", "--metrics-bind-address", "0"])
            .arg("--watches-file")
            .arg(watches)
            .env("KUBECONFIG", cluster.kubeconfig())
            .env("WATCH_NAMESPACE", namespace)
            .env("RUST_LOG", level)
            .stderr(log);
        Self(command.spawn().unwrap())
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

pub fn until(what: &str, done: impl Fn() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < DEADLINE, "not within {DEADLINE:?}: {what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Waits until a text has this part; at the deadline says what it was, and how the log ended.
pub fn until_told(part: &str, text: impl Fn() -> String, log: &Path) {
    let begun = Instant::now();
    loop {
        let told = text();
        if told.contains(part) {
            return;
        }
        let is_late = begun.elapsed() >= DEADLINE;
        let log = || std::fs::read_to_string(log).unwrap_or_default();
        let end = || log().lines().rev().take(40).collect::<Vec<_>>().join("\n");
        assert!(
            !is_late,
            "not within {DEADLINE:?}: {part:?} in {told}\nthe log, the end first:\n{}",
            end()
        );
        std::thread::sleep(Duration::from_millis(100));
    }
}

pub fn definition(group: &str) -> String {
    format!(
        "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: owners.{group}}}
spec:
  group: {group}
  scope: Namespaced
  names: {{plural: owners, singular: owner, kind: Owner, listKind: OwnerList}}
  versions: [{{name: v1, served: true, storage: true, subresources: {{status: {{}}}}, schema: {{openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}}}]
"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_done_by_hand_leaves_the_owner_on_every_object() {
    let cluster = catamaran_localcluster::shared().await.unwrap();
    let namespace = cluster.namespace("owned").await.unwrap();
    let charts = Charts::new(&[CONFIG_MAP, MORE]);
    let place = Place::new(&cluster, namespace.name(), charts.path());
    let group = format!("{}.test", namespace.name());
    charts.write("definition.yaml", &definition(&group));
    let chart = charts.path().join("demo");
    let watches =
        format!("- {{group: {group}, version: v1, kind: Owner, chart: {}}}\n", chart.display());
    charts.write("watches.yaml", &watches);
    charts.write(
        "owner.yaml",
        &format!(
            "apiVersion: {group}/v1\nkind: Owner\nmetadata: {{name: a}}\nspec: {{greeting: one}}\n"
        ),
    );
    let cluster = std::sync::Arc::new(cluster);
    let done = tokio::task::spawn_blocking(move || {
        let folder = charts.path().display().to_string();
        place.kubectl(&format!("apply -f {folder}/definition.yaml"));
        place.kubectl(&format!("wait {ESTABLISHED} crd/owners.{group}"));
        place.kubectl(&format!("apply -f {folder}/owner.yaml"));
        let watches = charts.path().join("watches.yaml");
        let start = || Operator::start(&cluster, &place.namespace, &watches);
        let greeting = || place.live("configmap/a-map")["data"]["greeting"].clone();
        let operator = start();
        until("the operator installed it", || place.revisions("a") == "1 deployed");
        drop(operator);

        let owner = place.live(&format!("owners.{group}/a"))["metadata"]["uid"].clone();
        let check = |about: &str, objects: &[&str]| {
            for object in objects {
                let references = place.live(object)["metadata"]["ownerReferences"].clone();
                let references = references.as_array().cloned().unwrap_or_default();
                assert_eq!(references.len(), 1, "{about}: {object}");
                assert_eq!(
                    (&references[0]["uid"], &references[0]["controller"]),
                    (&owner, &true.into())
                );
            }
        };
        let both = ["configmap/a-map", "configmap/a-more"];
        check("by the operator", &both[..1]);
        for line in [
            "upgrade a demo --set greeting=two,more=1",
            "upgrade a demo --set greeting=three,more=1 --server-side=false",
        ] {
            let said = place.run(Hand::Ours, line);
            assert_eq!(said.code, Some(0), "{line}: {}", said.err);
            let warning = "warning: this release belongs to Owner \"a\"";
            assert!(said.err.contains(warning), "{line}: {}", said.err);
            check(line, &both);
        }
        assert_eq!(greeting(), "three");
        place.say(Hand::Ours, "rollback a 2 --server-side=true");
        check("rollback", &both);
        assert_eq!(greeting(), "two");

        // Its operator brings it back, and takes all of it away with its resource.
        let operator = start();
        until("the operator brought it back", || greeting() == "one");
        until("what the operator does not want is gone", || place.live(both[1]) == Value::Null);
        check("by the operator again", &both[..1]);
        place.kubectl(&format!("delete owners.{group}/a --timeout=30s"));
        assert_eq!(place.live(both[0]), Value::Null);
        assert_eq!(place.revisions("a"), "Error: release: not found\n");
        drop(operator);
        place.kubectl(&format!("delete crd/owners.{group}"));
    });
    done.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_replaces_definitions_only_if_its_watch_says_so() {
    let cluster = catamaran_localcluster::shared().await.unwrap();
    let namespace = cluster.namespace("owned").await.unwrap();
    let charts = Charts::new(&[CONFIG_MAP]);
    let place = Place::new(&cluster, namespace.name(), charts.path());
    let group = format!("{}.test", namespace.name());
    charts.write("definition.yaml", &definition(&group));
    charts.write(
        "owner.yaml",
        &format!("apiVersion: {group}/v1\nkind: Owner\nmetadata: {{name: a}}\nspec: {{greeting: \"0\"}}\n"),
    );
    let done = tokio::task::spawn_blocking(move || {
        let folder = charts.path().display().to_string();
        place.kubectl(&format!("apply -f {folder}/definition.yaml"));
        place.kubectl(&format!("wait {ESTABLISHED} crd/owners.{group}"));
        place.kubectl(&format!("apply -f {folder}/owner.yaml"));
        let things = format!("things.{group}");
        let text = || {
            let live = place.live(&format!("crd/{things}"));
            live["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"].clone()
        };
        for (number, policy, expected) in [
            (1, "skip", Value::Null),
            (2, "create", "2".into()),
            (3, "create", "2".into()),
            (4, "create-replace", "4".into()),
        ] {
            let brought =
                definition(&group).replace("owner", "thing").replace("Owner", "Thing").replace(
                    "{type: object, ",
                    &format!("{{type: object, description: \"{number}\", "),
                );
            charts.write("demo/crds/things.yaml", &brought);
            charts.write(
                "watches.yaml",
                &format!(
                    "- {{group: {group}, version: v1, kind: Owner, chart: {folder}/demo, crds: {policy}, record: full}}\n"
                ),
            );
            let operator =
                Operator::start(&cluster, &place.namespace, &charts.path().join("watches.yaml"));
            place.kubectl(&format!(
                "patch owners.{group}/a --type=merge -p {{\"spec\":{{\"greeting\":\"{number}\"}}}}"
            ));
            let wanted = number.to_string();
            until("the operator has done it", || {
                place.live("configmap/a-map")["data"]["greeting"] == wanted.as_str()
            });
            until("the definition is as is asked for", || text() == expected);
            drop(operator);
        }
        let line = "get secrets -l owner=helm,status=deployed -o json";
        let deployed: Value = serde_json::from_str(&place.kubectl(line)).unwrap();
        let record = crate::records::decoded(&deployed["items"][0], &place, false);
        assert_eq!(
            record["chart"]["templates"][0]["name"], "templates/NOTES.txt",
            "all of the chart"
        );
        let operator =
            Operator::start(&cluster, &place.namespace, &charts.path().join("watches.yaml"));
        place.kubectl(&format!("delete owners.{group}/a --timeout=30s"));
        drop(operator);
        place.kubectl(&format!("delete crd/owners.{group} crd/{things}"));
    });
    done.await.unwrap();
}
