//! A Secret's content is a canary, and nothing that is said sings of it: an operator's log, events,
//! conditions, records' descriptions, and what commands print.

use std::fs;
use std::process::Stdio;

use catamaran_localcluster::ESTABLISHED;

use crate::owned::{Operator, definition, until, until_told};
use crate::support::{Charts, Hand, Place};

const CANARY: &str = "canary-in-the-coal-mine";
/// The same as the API has it.
const ENCODED: &str = "Y2FuYXJ5LWluLXRoZS1jb2FsLW1pbmU=";

const TEMPLATES: [(&str, &str); 3] = [
    (
        "secret.yaml",
        "\
apiVersion: v1
kind: Secret
metadata: {name: {{ .Release.Name }}-secret}
stringData: {text: {{ toJson .Values.text }}, fixed: canary-in-the-coal-mine}
",
    ),
    (
        "refused.yaml",
        "\
{{ with .Values.refused }}
apiVersion: v1
kind: Secret
metadata: {name: {{ $.Release.Name }}-refused}
{{ . }}
{{ end }}
",
    ),
    (
        "hook.yaml",
        "\
{{ if .Values.hook }}
apiVersion: v1
kind: Secret
metadata:
  name: {{ .Release.Name }}-hook
  annotations: {helm.sh/hook: \"pre-upgrade\", helm.sh/hook-weight: \"-1\"}
stringData: {text: canary-in-the-coal-mine}
---
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .Release.Name }}-job
  annotations: {helm.sh/hook: pre-upgrade, helm.sh/hook-output-log-policy: \"hook-failed\"}
spec:
  backoffLimit: 0
  template:
    metadata: {annotations: {fake.catamaran.test/exit-code: \"3\"}}
    spec:
      restartPolicy: Never
      containers: [{name: c, image: busybox, env: [{name: P, valueFrom: {secretKeyRef: {name: {{ .Release.Name }}-hook, key: text}}}]}]
{{ end }}
",
    ),
];

/// Secrets that the API server refuses, each in another way, as a value of the chart.
const REFUSED: [&str; 4] = [
    "data: {raw: canary-in-the-coal-mine}",
    "stringData: {deep: {er: canary-in-the-coal-mine}}",
    "{type: kubernetes.io/tls, stringData: {k: canary-in-the-coal-mine}}",
    "stringDate: {k: canary-in-the-coal-mine}",
];

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_is_said_quotes_a_secret() {
    let cluster = catamaran_localcluster::shared().await.unwrap();
    let namespace = cluster.namespace("canary").await.unwrap();
    let charts = Charts::new(&TEMPLATES);
    let place = Place::new(&cluster, namespace.name(), charts.path());
    let group = format!("{}.test", namespace.name());
    charts.write("definition.yaml", &definition(&group));
    let done = tokio::task::spawn_blocking(move || {
        let folder = charts.path().display().to_string();
        charts.write(
            "watches.yaml",
            &format!("- {{group: {group}, version: v1, kind: Owner, chart: {folder}/demo}}\n"),
        );
        // The resource itself says nothing of it: the chart does.
        let resource = |spec: &str| {
            let text = format!(
                "apiVersion: {group}/v1\nkind: Owner\nmetadata: {{name: a}}\nspec: {spec}\n"
            );
            charts.write("owner.yaml", &text);
            place.kubectl(&format!("apply -f {folder}/owner.yaml"));
        };
        charts.write("demo/values.yaml", &format!("text: {CANARY}\n"));
        place.kubectl(&format!("apply -f {folder}/definition.yaml"));
        place.kubectl(&format!("wait {ESTABLISHED} crd/owners.{group}"));
        let log = charts.path().join("log");
        let start = |charts: &Charts| {
            let file = fs::File::options().create(true).append(true).open(&log).unwrap();
            let watches = charts.path().join("watches.yaml");
            Operator::told(&cluster, &place.namespace, &watches, "trace", Stdio::from(file))
        };
        let status = || place.live(&format!("owners.{group}/a"))["status"].to_string();
        let mut said = Vec::new();

        let operator = start(&charts);
        resource("{}");
        until("it is deployed", || place.revisions("a") == "1 deployed");
        // Drift is told, and put back.
        let patch =
            "{\"data\":{\"text\":\"Y2FuYXJ5\",\"theirs\":\"Y2FuYXJ5LWluLXRoZS1jb2FsLW1pbmU=\"}}";
        place.kubectl(&format!("patch secret/a-secret --type=merge -p {patch}"));
        until("it is put back", || place.live("secret/a-secret")["data"]["text"] == ENCODED);
        drop(operator);
        for (number, refused) in REFUSED.iter().enumerate() {
            charts.write("demo/values.yaml", &format!("text: {CANARY}\nrefused: {refused:?}\n"));
            let operator = start(&charts);
            resource(&format!("{{try: {number}}}"));
            until_told("a-refused", status, &log);
            said.push((format!("the status with {refused}"), status()));
            drop(operator);
        }
        charts.write("demo/values.yaml", &format!("text: {CANARY}\nhook: true\n"));
        let operator = start(&charts);
        resource("{try: hook}");
        until_told("a-job", status, &log);
        said.push(("the status with a hook".to_owned(), status()));
        drop(operator);

        for line in [
            "history a -o json".to_owned(),
            "status a --debug".to_owned(),
            format!("upgrade a demo --debug --set-string refused.data.k={CANARY}"),
            "upgrade a demo --debug --dry-run=server --hide-secret".to_owned(),
            "upgrade a demo --debug --server-side=false --set hook=false".to_owned(),
            format!("upgrade a demo --debug --set hook=false,text.deep={CANARY}"),
            "rollback a 1 --debug".to_owned(),
            "uninstall a --debug --wait".to_owned(),
        ] {
            let told = place.run(Hand::Ours, &line);
            let out = if line.starts_with("history") { told.out.as_str() } else { "" };
            said.push((line, format!("{}\n{out}", told.err)));
        }
        said.push(("events".to_owned(), place.kubectl("get events -o json")));
        said.push(("the operator's log".to_owned(), fs::read_to_string(&log).unwrap()));
        for (what, text) in &said {
            assert!(!text.is_empty(), "{what} says nothing");
            for secret in [CANARY, ENCODED] {
                // The command line is the person's own.
                let at = text.find(secret);
                assert_eq!(
                    at,
                    None,
                    "{what}: …{}…",
                    at.and_then(|at| text.get(at.saturating_sub(300)..at + 30)).unwrap_or_default()
                );
            }
        }
        let operator = start(&charts);
        place.kubectl(&format!("delete owners.{group}/a --timeout=60s"));
        drop(operator);
        place.kubectl(&format!("delete crd/owners.{group}"));
    });
    done.await.unwrap();
}
