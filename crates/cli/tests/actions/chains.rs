//! Ten revisions in which objects come, go, and move: what is there is what the revision says.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use catamaran_localcluster::ESTABLISHED;
use serde_json::Value;

use crate::support::{Charts, Hand, Place};

/// The objects of each revision, by apiVersion, kind, namespace (`here` or `there`) and name.
const REVISIONS: [&[(&str, &str, &str, &str)]; 10] = [
    &[CM_A, CM_B, HPA_1, DEPLOYMENT, THING_1],
    // Removed and added.
    &[CM_A, HPA_1, DEPLOYMENT, THING_1, ("v1", "Secret", "here", "s")],
    // Renamed.
    &[("v1", "ConfigMap", "here", "a2"), HPA_1, DEPLOYMENT, THING_1],
    // Moved to another namespace.
    &[("v1", "ConfigMap", "there", "a2"), HPA_1, DEPLOYMENT, THING_1],
    // Moved to another version of its API.
    &[("v1", "ConfigMap", "there", "a2"), HPA_2, DEPLOYMENT, THING_2],
    // Another kind of the same name.
    &[CM_A, CM_B, HPA_2, ("apps/v1", "StatefulSet", "here", "web"), THING_2],
    // In both namespaces.
    &[CM_A, ("v1", "ConfigMap", "there", "a"), HPA_2, DEPLOYMENT, THING_2],
    // Back.
    &[CM_A, CM_B, HPA_1, DEPLOYMENT, THING_1],
    // Nearly nothing.
    &[CM_B],
    &[CM_A, CM_B, HPA_2, DEPLOYMENT, ("chain.test/v1", "Thing", "there", "t")],
];

const CM_A: (&str, &str, &str, &str) = ("v1", "ConfigMap", "here", "a");
const CM_B: (&str, &str, &str, &str) = ("v1", "ConfigMap", "here", "b");
const HPA_1: (&str, &str, &str, &str) = ("autoscaling/v1", "HorizontalPodAutoscaler", "here", "h");
const HPA_2: (&str, &str, &str, &str) = ("autoscaling/v2", "HorizontalPodAutoscaler", "here", "h");
const DEPLOYMENT: (&str, &str, &str, &str) = ("apps/v1", "Deployment", "here", "web");
const THING_1: (&str, &str, &str, &str) = ("chain.test/v1alpha1", "Thing", "here", "t");
const THING_2: (&str, &str, &str, &str) = ("chain.test/v1", "Thing", "here", "t");

const DEFINITION: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.chain.test}
spec:
  group: chain.test
  scope: Namespaced
  names: {plural: things, singular: thing, kind: Thing, listKind: ThingList}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
  - {name: v1alpha1, served: true, storage: false, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
";

const TYPES: &str =
    "configmaps,secrets,deployments,statefulsets,horizontalpodautoscalers,things.chain.test";

#[tokio::test(flavor = "multi_thread")]
async fn ten_revisions_leave_what_they_say_and_nothing_else() {
    let cluster = catamaran_localcluster::shared().await.unwrap();
    let mut chains = Vec::new();
    for flags in ["", "--server-side=false"] {
        let here = cluster.namespace("chain").await.unwrap();
        let there = cluster.namespace("chain").await.unwrap();
        let charts = Charts::new(&[]);
        let place = Place::new(&cluster, here.name(), charts.path());
        let other = Place::new(&cluster, there.name(), charts.path());
        charts.write("definition.yaml", DEFINITION);
        place.kubectl(&format!("apply -f {}/definition.yaml", charts.path().display()));
        place.kubectl(&format!("wait {ESTABLISHED} crd/things.chain.test"));
        let chain = tokio::task::spawn_blocking(move || chain(&place, &other, &charts, flags));
        chains.push((here, there, chain));
    }
    for (_here, _there, chain) in chains {
        chain.await.unwrap();
    }
}

fn chain(here: &Place, there: &Place, charts: &Charts, flags: &str) {
    let mut uids = BTreeMap::new();
    for (number, objects) in REVISIONS.iter().enumerate() {
        charts.write("demo/templates/all.yaml", &template(objects, there));
        let action = if number == 0 { "install" } else { "upgrade --history-max 0" };
        here.say(Hand::Ours, &format!("{action} a demo {flags}"));
        let now = found([here, there]);
        let about = format!("revision {} {flags}", number + 1);
        assert_eq!(names(&now), wanted(objects), "{about}");
        // What is the same object for the API, in whatever version, was neither deleted nor made anew.
        for (name, uid) in &now {
            assert_eq!(uids.get(name).unwrap_or(uid), uid, "{about}: {name}");
        }
        uids = now;
    }
    for back in [1, 5, 7, 4] {
        here.say(Hand::Ours, &format!("rollback a {back} {flags} --history-max 0"));
        assert_eq!(
            names(&found([here, there])),
            wanted(REVISIONS[back - 1]),
            "back to {back} {flags}"
        );
    }
    here.say(Hand::Ours, "uninstall a --wait");
    assert_eq!(names(&found([here, there])), BTreeSet::new(), "{flags}");
}

fn template(objects: &[(&str, &str, &str, &str)], there: &Place) -> String {
    let mut text = String::new();
    for (api_version, kind, namespace, name) in objects {
        let namespace = if *namespace == "there" {
            format!(", namespace: {}", there.namespace)
        } else {
            String::new()
        };
        let spec = match *kind {
            "Deployment" => {
                "spec: {selector: {matchLabels: {a: d}}, template: {metadata: {labels: {a: d}}, spec: {containers: [{name: c, image: nginx}]}}}"
            }
            "StatefulSet" => {
                "spec: {serviceName: s, selector: {matchLabels: {a: s}}, template: {metadata: {labels: {a: s}}, spec: {containers: [{name: c, image: nginx}]}}}"
            }
            "HorizontalPodAutoscaler" => {
                "spec: {maxReplicas: 2, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: none}}"
            }
            _ => "",
        };
        writeln!(text, "---\napiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: {name}{namespace}}}\n{spec}").unwrap();
    }
    text
}

/// Kind, place and name of the objects of releases that are there, with their uids.
fn found(places: [&Place; 2]) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for (place, word) in places.into_iter().zip(["here", "there"]) {
        let text =
            place.kubectl(&format!("get {TYPES} -l app.kubernetes.io/managed-by=Helm -o json"));
        let list: Value = serde_json::from_str(&text).unwrap();
        for object in list["items"].as_array().unwrap() {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let metadata = &object["metadata"];
            let name = format!("{} {word} {}", text(&object["kind"]), text(&metadata["name"]));
            all.insert(name, text(&metadata["uid"]));
        }
    }
    all
}

fn names(found: &BTreeMap<String, String>) -> BTreeSet<String> {
    found.keys().cloned().collect()
}

fn wanted(objects: &[(&str, &str, &str, &str)]) -> BTreeSet<String> {
    objects.iter().map(|(_, kind, place, name)| format!("{kind} {place} {name}")).collect()
}
