//! What the records say, field by field, beside those of both helms for the same commands.

use std::io::Read as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use serde_json::{Value, json};

use crate::support::{CONFIG_MAP, Charts, DEPLOYMENT, Hand, Place, TEST};

/// What is done, and whether it has to fail.
const LINES: [(&str, bool); 6] = [
    ("install a demo --set greeting=one,own.list={a,b} --description first", false),
    ("upgrade a demo --set greeting=two,replicas=2 --labels team=x", false),
    ("rollback a 1", false),
    ("upgrade a demo --set greeting=three,bad=true", true),
    ("upgrade a demo --reuse-values --set table.x=null", false),
    ("uninstall a --keep-history --description bye", false),
];

const HOOK: (&str, &str) = (
    "hook.yaml",
    "\
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-hook
  annotations:
    helm.sh/hook: pre-upgrade,post-install
    helm.sh/hook-weight: \"-3\"
    helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
    helm.sh/hook-output-log-policy: hook-failed
",
);

const BAD: (&str, &str) = (
    "bad.yaml",
    "{{ if .Values.bad }}\napiVersion: v1\nkind: Service\nmetadata: {name: {{ .Release.Name }}-bad}\nspec: {ports: [{port: 99999999}]}\n{{ end }}\n",
);

#[tokio::test(flavor = "multi_thread")]
async fn every_field_of_every_record_is_as_in_helms() {
    let cluster = catamaran_localcluster::shared().await.unwrap();
    let charts = Charts::new(&[CONFIG_MAP, DEPLOYMENT, TEST, HOOK, BAD]);
    charts.write("demo/values.schema.json", r#"{"type": "object"}"#);
    charts.write("demo/files/a.txt", "a file");
    let mut told = Vec::new();
    let hands = [
        (Hand::Helm4, ""),
        (Hand::Ours, ""),
        (Hand::Helm4, ""),
        (Hand::Ours, "--full-record"),
        (Hand::Helm3, ""),
        (Hand::Ours, "--server-side=false --profile=3.18"),
    ];
    for (number, (hand, flags)) in hands.into_iter().enumerate() {
        let namespace = cluster.namespace("records").await.unwrap();
        let place = Place::new(&cluster, namespace.name(), charts.path());
        told.push(
            tokio::task::spawn_blocking(move || records(&place, hand, flags, number / 2 != 1))
                .await
                .unwrap(),
        );
    }
    for (generation, pair) in told.chunks(2).enumerate() {
        let [theirs, ours] = pair else { panic!("they come in pairs") };
        assert_eq!(ours.len(), theirs.len());
        for ((line, ours), (_, theirs)) in ours.iter().zip(theirs) {
            for (ours, theirs) in ours.iter().zip(theirs) {
                let (mut ours, mut theirs) = (ours.clone(), theirs.clone());
                if generation == 2 {
                    // Helm 3 knows neither methods nor whereto a rollback was, and writes times that never were.
                    theirs["apply_method"] = "csa".into();
                    ours["info"].as_object_mut().unwrap().remove("rollback_revision");
                    leave_never_out(&mut theirs);
                }
                let differing = differences(&ours, &theirs, "");
                assert_eq!(differing, Vec::<String>::new(), "after {line}: ours, theirs");
            }
        }
    }
}

/// The records after each command, oldest first.
fn records(place: &Place, hand: Hand, flags: &str, is_slim: bool) -> Vec<(String, Vec<Value>)> {
    let mut all = Vec::new();
    for (line, fails) in LINES {
        let flags: Vec<&str> = flags
            .split(' ')
            .filter(|flag| {
                let of_all = flag.starts_with("--server-side");
                (of_all || !line.starts_with("rollback")) && !line.starts_with("uninstall")
            })
            .collect();
        let said = place.run(hand, &format!("{line} {}", flags.join(" ")));
        assert_eq!(said.code, Some(i32::from(fails)), "{hand:?} {line}: {}", said.err);
        let list: Value =
            serde_json::from_str(&place.kubectl("get secrets -l owner=helm -o json")).unwrap();
        let mut records: Vec<Value> = list["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|secret| decoded(secret, place, is_slim))
            .collect();
        records.sort_by_key(|record| record["version"].as_i64());
        all.push((line.to_owned(), records));
    }
    all
}

/// A record with the labels of its Secret, without what is never twice the same.
pub fn decoded(secret: &Value, place: &Place, is_slim: bool) -> Value {
    let payload = STANDARD.decode(secret["data"]["release"].as_str().unwrap()).unwrap();
    let packed = STANDARD.decode(payload).unwrap();
    let mut text = String::new();
    GzDecoder::new(&packed[..]).read_to_string(&mut text).unwrap();
    let mut record: Value = serde_json::from_str(&text).unwrap();
    let metadata = &secret["metadata"];
    let mut labels = metadata["labels"].clone();
    for time in ["createdAt", "modifiedAt"] {
        labels.as_object_mut().unwrap().remove(time);
    }
    record["secret"] =
        json!({ "name": metadata["name"], "type": secret["type"], "labels": labels });
    let chart = record["chart"].as_object_mut().unwrap();
    chart.retain(|key, _| !key.ends_with("modtime"));
    for files in ["templates", "files"] {
        for file in chart[files].as_array_mut().into_iter().flatten() {
            file.as_object_mut().unwrap().remove("modtime");
        }
    }
    if is_slim {
        chart.retain(|key, _| key == "metadata" || key == "values");
    }
    // How a request is named differs; whose failure it is and what the API server says does not.
    let description = record["info"]["description"].as_str().unwrap_or_default();
    if let Some((failed, why)) = description.split_once(" failed: ") {
        let told = why.find("Service \"a-bad\" is invalid").and_then(|at| why.get(at..));
        record["info"]["description"] = format!("{failed} failed: {}", told.unwrap_or(why)).into();
    }
    let text = record.to_string().replace(&place.namespace, "NAMESPACE");
    plain(serde_json::from_str(&text).unwrap())
}

/// Numbers as Helm reads them; times as whether there is one.
fn plain(value: Value) -> Value {
    match value {
        Value::Number(number) => number.as_f64().into(),
        Value::String(text) if text.parse::<jiff::Timestamp>().is_ok() => "TIME".into(),
        Value::Array(items) => items.into_iter().map(plain).collect(),
        Value::Object(map) => map.into_iter().map(|(key, value)| (key, plain(value))).collect(),
        other => other,
    }
}

fn leave_never_out(record: &mut Value) {
    let is_time = |key: &str| ["deleted", "started_at", "completed_at"].contains(&key);
    let leave = |part: &mut Value| {
        part.as_object_mut().unwrap().retain(|key, value| !(is_time(key) && value == ""));
    };
    leave(&mut record["info"]);
    for hook in record["hooks"].as_array_mut().unwrap() {
        leave(&mut hook["last_run"]);
    }
}

/// The paths at which two values differ, and how.
fn differences(one: &Value, other: &Value, path: &str) -> Vec<String> {
    match (one, other) {
        _ if one == other => Vec::new(),
        (Value::Object(one), Value::Object(other)) => {
            let mut keys: Vec<&String> = one.keys().chain(other.keys()).collect();
            keys.sort();
            keys.dedup();
            let below = keys.into_iter().flat_map(|key| {
                let of = |map: &serde_json::Map<String, Value>| {
                    map.get(key).cloned().unwrap_or(json!("(none)"))
                };
                differences(&of(one), &of(other), &format!("{path}.{key}"))
            });
            below.collect()
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            let pairs = one.iter().zip(other).enumerate();
            pairs
                .flat_map(|(at, (one, other))| differences(one, other, &format!("{path}[{at}]")))
                .collect()
        }
        _ => vec![format!("{path}: {one} / {other}")],
    }
}
