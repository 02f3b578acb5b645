//! What the flags ask for is what becomes of the cluster.

use serde_json::{Value, json};

use crate::support::{CONFIG_MAP, Charts, DEPLOYMENT, Hand, Place, SECRET, Said, TEST};

async fn place(
    name: &str,
    templates: &[(&str, &str)],
) -> (catamaran_localcluster::LocalCluster, catamaran_localcluster::Namespace, Charts, Place) {
    let cluster = catamaran_localcluster::shared().await.unwrap();
    let namespace = cluster.namespace(name).await.unwrap();
    let charts = Charts::new(templates);
    let place = Place::new(&cluster, namespace.name(), charts.path());
    (cluster, namespace, charts, place)
}

/// Lines of flags of an upgrade, of a release that was installed with some values.
const REUSES: &[&str] = &[
    "",
    "--set greeting=new",
    "--reset-values",
    "--reset-values --set greeting=new",
    "--reuse-values",
    "--reuse-values --set greeting=new,table.z=7",
    "--reuse-values --set table.x=null,own.deep=null,never=null",
    "--reuse-values --set table=5",
    "--reset-then-reuse-values",
    "--reset-then-reuse-values --set greeting=new,table.z=7",
    "--reset-then-reuse-values --set table.x=null,own.deep=null,never=null",
    "--reset-then-reuse-values --set own=null",
];

#[tokio::test(flavor = "multi_thread")]
async fn values_are_reused_as_by_either_helm() {
    let (_cluster, _namespace, charts, place) = place("reuse", &[VALUES]).await;
    let given = "--set greeting=given,own.deep=1,own.more=2,table.y=null";
    place.say(Hand::Helm4, &format!("install theirs demo {given}"));
    place.say(Hand::Ours, &format!("install ours demo {given}"));
    // The chart of the upgrade has other defaults than that of the install.
    charts.write("demo/values.yaml", "greeting: changed\nadded: 1\ntable: {x: 5, y: 2, w: 3}\n");
    let mut all = Vec::new();
    for (release, hand, profile) in [
        ("theirs", Hand::Helm4, "4.3"),
        ("ours", Hand::Helm4, "4.3"),
        ("theirs", Hand::Helm3, "3.18"),
    ] {
        let place = place.clone();
        all.push(tokio::task::spawn_blocking(move || {
            for flags in REUSES {
                let line = format!("upgrade {release} demo --dry-run=server {flags}");
                let chosen = |hand: Hand, line: &str| {
                    let record = place.json(hand, line);
                    let config = record.get("config").cloned().unwrap_or_else(|| json!({}));
                    (floats(config), record["manifest"].as_str().unwrap().to_owned())
                };
                let ours = chosen(Hand::Ours, &format!("{line} --profile {profile}"));
                assert_eq!(ours, chosen(hand, &line), "{release} {profile}: {flags}");
            }
        }));
    }
    for one in all {
        one.await.unwrap();
    }
}

/// Numbers as Helm reads them.
fn floats(value: Value) -> Value {
    match value {
        Value::Number(number) => number.as_f64().into(),
        Value::Object(map) => map.into_iter().map(|(key, value)| (key, floats(value))).collect(),
        other => other,
    }
}

const VALUES: (&str, &str) = (
    "values.yaml",
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}-values}\ndata: {values: {{ toJson .Values | quote }}}\n",
);

#[tokio::test(flavor = "multi_thread")]
async fn what_fails_is_said_and_taken_back() {
    let (_cluster, _namespace, charts, place) = place("failures", &[CONFIG_MAP, DEPLOYMENT]).await;
    charts.write(
        "demo/templates/more.yaml",
        "{{ if .Values.more }}\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}-more}\n{{ end }}\n",
    );
    let done = tokio::task::spawn_blocking(move || {
        let cause = "Deployment \"a-web\" in namespace";
        let fails = |line: &str, words: &[&str]| {
            let said = place.run(Hand::Ours, line);
            assert_eq!(said.code, Some(1), "{line}: {}", said.out);
            for word in words {
                assert!(said.err.contains(word), "{line}: {}", said.err);
            }
        };
        let never = "--set never=true,more=1 --timeout 2s";
        fails(
            &format!("install a demo {never} --rollback-on-failure"),
            &["INSTALLATION FAILED: release a failed, and has been uninstalled due to", cause],
        );
        assert_eq!(place.revisions("a"), "Error: release: not found\n");
        assert_eq!(place.live("configmap/a-map"), Value::Null);

        // Without it the failed revision stays, and an upgrade mends it.
        fails(
            &format!("install a demo {never} --wait"),
            &[cause, "container c runs and is not ready"],
        );
        assert_eq!(place.revisions("a"), "1 failed");
        place.say(Hand::Ours, "upgrade a demo --reset-values --wait");
        assert_eq!(place.revisions("a"), "1 failed, 2 deployed");

        fails(
            &format!("upgrade a demo {never} --atomic"),
            &["UPGRADE FAILED: release a failed, and has been rolled back due to", cause],
        );
        assert_eq!(place.revisions("a"), "1 failed, 2 superseded, 3 failed, 4 deployed");
        assert_eq!(place.live("configmap/a-more"), Value::Null);
        let web = place.live("deployment/a-web");
        let annotations = &web["spec"]["template"]["metadata"]["annotations"];
        assert_eq!(annotations["fake.catamaran.test/never-ready"], "false");

        fails(&format!("upgrade a demo {never} --wait --cleanup-on-fail"), &[cause]);
        assert_eq!(place.live("configmap/a-more"), Value::Null, "what it created is gone");
        assert_ne!(place.live("configmap/a-map"), Value::Null, "what was there is not");
        fails(&format!("upgrade a demo {never} --wait"), &[cause]);
        assert_ne!(place.live("configmap/a-more"), Value::Null);
    });
    done.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_keeps_an_object_or_a_hook_is_named() {
    let (_cluster, _namespace, _charts, place) = place("causes", &[NOWHERE, FAILING]).await;
    let done = tokio::task::spawn_blocking(move || {
        let fails = |line: &str, words: [&str; 2]| {
            let arguments: Vec<&str> = line.split(' ').collect();
            let mut command = place.command(Hand::Ours, &arguments);
            command.env("CATAMARAN_PROGRESS", "always");
            let said: Said = command.output().unwrap().into();
            let (waited, _) = said.err.split_once("\nError: ").unwrap();
            let waits = |line: &str| line.contains(" s  waiting for ");
            assert!(waited.lines().all(waits), "{line}: {}", said.err);
            assert_eq!(said.code, Some(1), "{line}: {}", said.out);
            for word in words {
                assert!(said.err.contains(word), "{line}: {}", said.err);
            }
        };
        fails(
            "install a demo --wait --timeout 3s",
            ["Deployment \"a-nowhere\" in namespace", "didn't match Pod's node affinity/selector"],
        );
        fails(
            "install b demo --set code=4",
            [
                "failed pre-install: Job \"b-hook\" in namespace",
                "container c ended with exit code 4",
            ],
        );
        let description = place.json(Hand::Helm4, "history b")[0]["description"].to_string();
        assert!(description.contains("container c ended with exit code 4"), "{description}");
    });
    done.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollback_hook_that_fails_blocks_nobody() {
    let (_cluster, _namespace, _charts, place) = place("hooks", &[CONFIG_MAP, FAILING]).await;
    let done = tokio::task::spawn_blocking(move || {
        for event in ["pre-rollback", "post-rollback"] {
            place.say(Hand::Ours, &format!("install a demo --set code=4,event={event}"));
            place.say(Hand::Ours, "upgrade a demo --set greeting=two");
            let said = place.run(Hand::Ours, "rollback a");
            let words = format!("{event} hooks failed: Job \"a-hook\"");
            assert!(said.code == Some(1) && said.err.contains(&words), "{}", said.err);
            assert_eq!(place.revisions("a"), "1 superseded, 2 deployed, 3 failed");
            // Helm's own would be in pending-rollback now, for ever.
            place.say(Hand::Helm4, "upgrade a demo --set greeting=three");
            place.say(Hand::Ours, "rollback a 1 --no-hooks");
            assert_eq!(place.live("configmap/a-map")["data"]["greeting"], "hello");
            place.say(Hand::Ours, "uninstall a");
        }
    });
    done.await.unwrap();
}

/// Pods that no node takes.
const NOWHERE: (&str, &str) = (
    "nowhere.yaml",
    "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}-nowhere}
spec:
  selector: {matchLabels: {app: {{ .Release.Name }}}}
  template:
    metadata: {labels: {app: {{ .Release.Name }}}}
    spec: {nodeSelector: {no: where}, containers: [{name: c, image: nginx}]}
",
);

const FAILING: (&str, &str) = (
    "failing.yaml",
    "\
{{ if .Values.code }}
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .Release.Name }}-hook
  annotations: {helm.sh/hook: {{ .Values.event | default `pre-install` }}}
spec:
  backoffLimit: 0
  template:
    metadata: {annotations: {fake.catamaran.test/exit-code: {{ .Values.code | quote }}}}
    spec: {restartPolicy: Never, containers: [{name: c, image: busybox}]}
{{ end }}
",
);

#[tokio::test(flavor = "multi_thread")]
async fn what_is_there_already_is_taken_over_only_if_that_is_said() {
    let (_cluster, _namespace, _charts, place) = place("adopt", &[CONFIG_MAP]).await;
    let done = tokio::task::spawn_blocking(move || {
        place.kubectl("create configmap a-map --from-literal=greeting=mine --from-literal=k=v");
        for line in ["install a demo", "install a demo --dry-run=server"] {
            let (ours, helms) = (place.run(Hand::Ours, line), place.run(Hand::Helm4, line));
            let fault = |text: &str| text.lines().last().unwrap_or_default().to_owned();
            assert_eq!(ours.code, Some(1));
            let words = "Error: INSTALLATION FAILED: unable to continue with install: ConfigMap \"a-map\" in namespace";
            assert!(fault(&ours.err).starts_with(words), "{}", ours.err);
            assert_eq!(fault(&ours.err), fault(&helms.err));
        }
        assert_eq!(place.revisions("a"), "Error: release: not found\n", "nothing was written");
        assert_eq!(place.live("configmap/a-map")["data"]["greeting"], "mine");

        place.say(Hand::Ours, "install a demo --take-ownership");
        let map = place.live("configmap/a-map");
        assert_eq!(map["data"], json!({"greeting": "hello", "k": "v"}));
        assert_eq!(map["metadata"]["labels"]["app.kubernetes.io/managed-by"], "Helm");
        place.say(Hand::Helm4, "upgrade a demo --set greeting=x");
        place.say(Hand::Ours, "uninstall a");
        assert_eq!(place.live("configmap/a-map"), Value::Null);
    });
    done.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_uninstall_goes_the_way_that_is_asked_for() {
    let (_cluster, _namespace, _charts, place) = place("cascade", &[DEPLOYMENT, SECRET]).await;
    let done = tokio::task::spawn_blocking(move || {
        for (cascade, left) in [("orphan", true), ("foreground", false), ("background", false)] {
            place.say(Hand::Ours, "install a demo --wait --set secret=1");
            let said = place.say(Hand::Ours, &format!("uninstall a --cascade {cascade} --wait"));
            let kept =
                "These resources were kept due to the resource policy:\n[Secret] a-secret\n\n";
            assert_eq!(said, format!("{kept}release \"a\" uninstalled\n"));
            assert_eq!(place.live("deployment/a-web"), Value::Null);
            let sets = place.kubectl("get replicasets -o name");
            assert_eq!(
                !sets.is_empty(),
                left || cascade == "background" && !sets.is_empty(),
                "{cascade}: {sets}"
            );
            place.kubectl("delete replicasets --all");
            assert_ne!(place.live("secret/a-secret"), Value::Null);
        }
        // What somebody else made of an object is left, and said.
        place.say(Hand::Ours, "install a demo");
        place.kubectl("annotate deployment/a-web meta.helm.sh/release-name=other --overwrite");
        let said = place.say(Hand::Ours, "uninstall a");
        assert!(said.contains("1 resource(s) were not deleted because they are not owned by this release:\n[Deployment] a-web\n"), "{said}");
        assert_ne!(place.live("deployment/a-web"), Value::Null);
    });
    done.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_does_not_go_is_named_with_what_holds_it() {
    let (_cluster, _namespace, _charts, place) = place("held", &[CONFIG_MAP]).await;
    let done = tokio::task::spawn_blocking(move || {
        place.say(Hand::Ours, "install a demo");
        let finalizers = r#"{"metadata":{"finalizers":["test.dev/held"]}}"#;
        place.kubectl(&format!("patch configmap/a-map --type=merge -p {finalizers}"));
        let said = place.run(Hand::Ours, "uninstall a --wait --timeout 1s");
        assert_eq!(said.code, Some(1));
        assert!(
            said.err.contains("ConfigMap \"a-map\"") && said.err.contains("test.dev/held"),
            "{}",
            said.err
        );
        assert_eq!(
            place.revisions("a"),
            "1 uninstalling",
            "and the record is there for another try"
        );
        let finalizers = r#"{"metadata":{"finalizers":null}}"#;
        place.kubectl(&format!("patch configmap/a-map --type=merge -p {finalizers}"));
        place.say(Hand::Ours, "uninstall a --wait");
        assert_eq!(place.revisions("a"), "Error: release: not found\n");
    });
    done.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_writes_nothing_and_labels_and_limits_are_kept() {
    let (_cluster, _namespace, charts, place) = place("records", &[CONFIG_MAP, TEST]).await;
    let done = tokio::task::spawn_blocking(move || {
        let version = || {
            place.kubectl("get secrets,configmaps -o jsonpath={.items[*].metadata.resourceVersion}")
        };
        place.say(Hand::Ours, "install a demo --labels team=x,tier=one --description first");
        let before = version();
        for line in [
            "install b demo --dry-run=server",
            "install b demo --dry-run=client",
            "upgrade a demo --dry-run=server --set greeting=x",
            "upgrade a demo --dry-run=client",
            "rollback a 1 --dry-run=server",
            "uninstall a --dry-run",
        ] {
            place.say(Hand::Ours, line);
        }
        assert_eq!(version(), before);
        for _ in 0..3 {
            place.say(Hand::Ours, "upgrade a demo --history-max 2 --labels tier=null,zone=y");
        }
        assert_eq!(place.revisions("a"), "3 superseded, 4 deployed");
        let labels = &place.live("secret/sh.helm.release.v1.a.v4")["metadata"]["labels"];
        assert_eq!(
            (&labels["team"], &labels["zone"], &labels["tier"]),
            (&json!("x"), &json!("y"), &Value::Null)
        );
        // A chart of another name may take the release over, as with helm.
        charts.write("demo/Chart.yaml", "apiVersion: v2\nname: other\nversion: 1.0.0\n");
        place.say(Hand::Ours, "upgrade a demo");
        assert_eq!(place.json(Hand::Helm4, "get metadata a")["chart"], "other");
    });
    done.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_never_changes_is_created_anew_only_if_that_is_said() {
    let (_cluster, _namespace, _charts, place) = place("immutable", &[IMMUTABLE]).await;
    let done = tokio::task::spawn_blocking(move || {
        place.say(Hand::Ours, "install a demo");
        let before = place.live("configmap/a-fixed");
        let said = place.run(Hand::Ours, "upgrade a demo --set greeting=new");
        assert_eq!(said.code, Some(1));
        assert!(said.err.contains("immutable"), "{}", said.err);
        place.say(Hand::Ours, "upgrade a demo --set greeting=new --recreate-on-immutable");
        let now = place.live("configmap/a-fixed");
        assert_eq!(now["data"]["greeting"], "new");
        assert_ne!(now["metadata"]["uid"], before["metadata"]["uid"]);
        // What others have set is gone if objects are replaced.
        place.kubectl("annotate configmap/a-map somebody=else");
        place.say(Hand::Ours, "upgrade a demo --set greeting=new");
        assert_eq!(place.live("configmap/a-map")["metadata"]["annotations"]["somebody"], "else");
        place.say(Hand::Ours, "upgrade a demo --set greeting=new,replicas=2 --force-replace");
        let map = place.live("configmap/a-map");
        assert_eq!(map["metadata"]["annotations"].get("somebody"), None);
        assert_eq!(map["data"]["replicas"], "2");
        // A helm goes on without a conflict, and takes away what the chart drops.
        place.say(Hand::Helm4, "upgrade a demo --set greeting=new,replicas=3");
        let map = place.live("configmap/a-map");
        assert_eq!(map["data"], json!({"replicas": "3"}));
        for method in ["--server-side=false", "--server-side=true"] {
            place.kubectl("annotate configmap/a-map somebody=else");
            let line = "upgrade a demo --set greeting=new,more=1 --force-replace";
            place.say(Hand::Ours, &format!("{line} {method}"));
            let map = place.live("configmap/a-map");
            assert_eq!(map["metadata"]["annotations"].get("somebody"), None, "{method}");
            assert_eq!(map["data"], json!({"replicas": "1", "more": "1"}), "{method}");
            place.say(Hand::Helm4, "upgrade a demo --set greeting=new,replicas=2");
            assert_eq!(place.live("configmap/a-map")["data"], json!({"replicas": "2"}), "{method}");
        }
        let said = place.run(
            Hand::Ours,
            "upgrade a demo --set greeting=newer --recreate-on-immutable --server-side=false",
        );
        assert_eq!(said.code, Some(0), "{}", said.err);
        assert_eq!(place.live("configmap/a-fixed")["data"]["greeting"], "newer");
    });
    done.await.unwrap();
}

const IMMUTABLE: (&str, &str) = (
    "fixed.yaml",
    "\
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}-fixed}
immutable: true
data: {greeting: {{ .Values.greeting }}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}-map}
data: {replicas: {{ .Values.replicas | quote }}{{ with .Values.more }}, more: {{ . | quote }}{{ end }}}
",
);

#[tokio::test(flavor = "multi_thread")]
async fn no_error_and_no_history_quotes_a_secret() {
    const CANARY: &str = "canary-in-the-coal-mine";
    let (_cluster, _namespace, _charts, place) = place("canary", &[CANARIES]).await;
    let done = tokio::task::spawn_blocking(move || {
        place.say(Hand::Ours, &format!("install a demo --set text={CANARY}"));
        for flags in [
            format!("--set text={CANARY}-2"),            // it is immutable
            format!("--set text={CANARY},raw={CANARY}"), // no base64
            format!("--set text.deep={CANARY}"),         // no text
        ] {
            for mode in ["--debug", "--force-replace", "--recreate-on-immutable --dry-run=server"] {
                let line = format!("upgrade a demo {flags} {mode}");
                let said = place.run(Hand::Ours, &line);
                assert!(!said.err.contains(CANARY), "{line}: {}", said.err);
            }
        }
        let history = place.say(Hand::Ours, "history a -o json");
        assert!(history.contains("failed"), "{history}");
        assert!(!history.contains(CANARY), "{history}");
    });
    done.await.unwrap();
}

const CANARIES: (&str, &str) = (
    "canary.yaml",
    "\
apiVersion: v1
kind: Secret
metadata: {name: {{ .Release.Name }}-secret}
immutable: true
stringData: {text: {{ toJson .Values.text }}}
{{ with .Values.raw }}data: {raw: {{ . }}}{{ end }}
",
);

#[tokio::test(flavor = "multi_thread")]
async fn notes_of_subcharts_are_shown_only_if_that_is_said() {
    let (_cluster, _namespace, charts, place) = place("notes", &[CONFIG_MAP]).await;
    charts.write("demo/charts/sub/Chart.yaml", "apiVersion: v2\nname: sub\nversion: 1.0.0\n");
    charts.write("demo/charts/sub/templates/NOTES.txt", "From below\n");
    let done = tokio::task::spawn_blocking(move || {
        place.say(Hand::Ours, "install a demo");
        let notes = |line: &str| -> Vec<String> {
            let text = place.json(Hand::Helm4, line)["info"]["notes"].as_str().unwrap().to_owned();
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines.sort(); // helm's order of charts is random
            lines
        };
        assert_eq!(notes("status a"), ["", "Hello from a 1"]);
        place.say(Hand::Ours, "upgrade a demo --render-subchart-notes");
        let ours = notes("status a");
        place.say(Hand::Helm4, "upgrade a demo --render-subchart-notes");
        let theirs: Vec<String> =
            notes("status a").iter().map(|line| line.replace("a 3", "a 2")).collect();
        assert_eq!(ours, theirs);
        assert!(ours.contains(&"From below".to_owned()), "{ours:?}");
    });
    done.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_strategy_is_no_conflict() {
    let strategies = DEPLOYMENT.1.replace(
        "spec:\n  replicas",
        "spec:\n  {{ with .Values.strategy }}strategy: {type: {{ . }}}{{ end }}\n  replicas",
    );
    let (_cluster, _namespace, _charts, place) =
        place("strategies", &[("web.yaml", &strategies)]).await;
    let done = tokio::task::spawn_blocking(move || {
        place.say(Hand::Ours, "install a demo");
        for (strategy, rolling) in
            [("Recreate", false), ("RollingUpdate", true), ("Recreate", false)]
        {
            place.say(Hand::Ours, &format!("upgrade a demo --set strategy={strategy}"));
            let live = place.live("deployment/a-web")["spec"]["strategy"].clone();
            assert_eq!(
                (&live["type"], live.get("rollingUpdate").is_some()),
                (&json!(strategy), rolling)
            );
        }
        // And no hindrance to a helm.
        place.say(Hand::Helm4, "upgrade a demo --set strategy=Recreate,replicas=2");
        place.say(Hand::Ours, "uninstall a");
    });
    done.await.unwrap();
}
