//! The definitions of a chart's `crds/`, by hand: the three policies.

use serde_json::{Value, json};

use crate::support::{CONFIG_MAP, Charts, Hand, Place};

/// A definition with these versions, of which the last one is stored, and a text that tells it from
/// others.
fn definition(group: &str, versions: &[&str], text: &str) -> String {
    let versions: Vec<Value> = versions
        .iter()
        .enumerate()
        .map(|(number, name)| {
            json!({
                "name": name, "served": true, "storage": number + 1 == versions.len(),
                "schema": {"openAPIV3Schema": {
                    "type": "object", "description": text, "properties": {"three": {"type": "string"}},
                }},
            })
        })
        .collect();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("things.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced", "versions": versions,
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
        },
    })
    .to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn definitions_are_skipped_created_or_replaced_as_is_asked_for() {
    let cluster = catamaran_localcluster::shared().await.unwrap();
    let namespace = cluster.namespace("definitions").await.unwrap();
    let charts = Charts::new(&[CONFIG_MAP, THING]);
    let place = Place::new(&cluster, namespace.name(), charts.path());
    let done = tokio::task::spawn_blocking(move || {
        let group = format!("{}.test", place.namespace);
        let crd = format!("crd/things.{group}");
        let text = || {
            let live = place.live(&crd);
            let text = live.pointer("/spec/versions/0/schema/openAPIV3Schema/description");
            text.and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let chart = |versions: &[&str], text: &str| {
            charts.write("demo/crds/things.yaml", &definition(&group, versions, text));
        };
        chart(&["v1alpha1"], "one");
        place.say(Hand::Ours, "install skipped demo --crds=skip");
        place.say(Hand::Ours, "install skipped-too demo --skip-crds");
        assert_eq!(place.live(&crd), Value::Null);
        place.say(Hand::Ours, "install a demo");
        assert_eq!(text(), "one");

        // Created, and left alone after that.
        chart(&["v1alpha1"], "two");
        for policy in ["skip", "create"] {
            place.say(Hand::Ours, &format!("upgrade a demo --crds {policy}"));
            assert_eq!(text(), "one", "{policy}");
        }
        place.say(Hand::Ours, "upgrade a demo --crds create-replace");
        assert_eq!(text(), "two");
        let version = || place.live(&crd)["metadata"]["resourceVersion"].clone();
        let before = version();
        place.say(Hand::Ours, "upgrade a demo --crds create-replace");
        assert_eq!(version(), before, "nothing to do, nothing written");

        // An upgrade of the definition, and with it of an object of its kind.
        chart(&["v1alpha1", "v1"], "three");
        let flags = format!("--set group={group}");
        let said = place
            .run(Hand::Ours, &format!("upgrade a demo --crds create-replace {flags},version=v1"));
        assert_eq!(said.code, Some(0), "{} {}", said.err, place.live(&crd));
        assert_eq!(text(), "three");
        let thing = place.live(&format!("things.v1.{group}/a-thing"));
        assert_eq!(thing["three"], "set", "{thing}");
        assert_eq!(place.live(&crd)["status"]["storedVersions"], json!(["v1alpha1", "v1"]));

        // A version in which objects may be stored is not dropped; a dry run on the server says so, too.
        chart(&["v1"], "four");
        let dry = "upgrade a demo --dry-run=server --crds create-replace";
        let said = place.run(Hand::Ours, dry);
        assert!(said.code == Some(1) && said.err.contains("status.storedVersions"), "{}", said.err);
        charts.write("demo/crds/things.yaml", "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: wrong}\nspec: {group: x.test}\n");
        for dry in [dry, "install new demo --dry-run=server"] {
            let said = place.run(Hand::Ours, dry);
            assert!(said.code == Some(1) && said.err.contains("spec.scope"), "{dry}: {}", said.err);
        }
        chart(&["v1alpha1", "v1"], "never");
        place.say(Hand::Ours, dry);
        assert_eq!(text(), "three", "nothing is written");
        chart(&["v1"], "four");
        let said = place.run(Hand::Ours, "upgrade a demo --crds create-replace");
        assert_eq!(said.code, Some(1), "{}", said.out);
        for word in [
            &format!("things.{group}"),
            "v1alpha1",
            "status.storedVersions",
            "demo/crds/things.yaml",
        ] {
            assert!(said.err.contains(word), "{word}: {}", said.err);
        }
        assert_eq!(text(), "three");
        let history = place.revisions("a");
        assert!(history.ends_with("6 deployed"), "nothing was begun: {history}");
        place.kubectl(&format!(
            "patch {crd} --subresource=status --type=merge -p {{\"status\":{{\"storedVersions\":[\"v1\"]}}}}"
        ));
        place.say(Hand::Ours, &format!("upgrade a demo --crds create-replace {flags},version=v1"));
        assert_eq!(text(), "four");

        // What is an object of a release is nobody else's to replace.
        place.kubectl(&format!("annotate {crd} meta.helm.sh/release-name=other"));
        chart(&["v1"], "five");
        let said = place.run(Hand::Ours, "upgrade a demo --crds create-replace");
        assert!(said.code == Some(1) && said.err.contains("/other"), "{}", said.err);
        place.say(Hand::Ours, "uninstall a skipped skipped-too");
        assert_ne!(place.live(&crd), Value::Null, "none is ever deleted");
        place.kubectl(&format!("delete {crd}"));
        let said = place.run(Hand::Ours, "install b demo --crds maybe");
        assert!(said.err.contains("skip, create, create-replace"), "{}", said.err);
    });
    done.await.unwrap();
}

const THING: (&str, &str) = (
    "thing.yaml",
    "{{ if .Values.group }}\napiVersion: {{ .Values.group }}/{{ .Values.version }}\nkind: Thing\nmetadata: {name: {{ .Release.Name }}-thing}\nthree: set\n{{ end }}\n",
);
