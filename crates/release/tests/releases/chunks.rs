//! Releases whose record no single Secret can hold.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use catamaran_localcluster::Namespace;
use catamaran_release::record::codec;
use catamaran_release::{Action, ActionResult, Driver, RecordKeys, RecordOwner, RecordPolicy};
use kube::Client;
use kube::api::{DeleteParams, ListParams, PostParams};
use serde_json::{Value, json};

use crate::support::{DesiredRelease, Helm, api, cluster, config_map, driver, live, revisions};

/// A ConfigMap of noise, as gzip makes nothing of repetition.
fn noise(name: &str, bytes: usize) -> Value {
    let mut state = name.bytes().fold(1_u64, |hash, byte| hash * 31 + u64::from(byte));
    let letters = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        char::from(b'0' + u8::try_from(state >> 58).expect("six bits"))
    });
    config_map(name, &letters.take(bytes).collect::<String>())
}

/// Six of 900 KB.
fn five_mib() -> Vec<Value> {
    (0..6).map(|number| noise(&format!("noise-{number}"), 900_000)).collect()
}

/// Names and types of all Secrets.
async fn secrets(client: &Client, namespace: &Namespace) -> Vec<(String, String)> {
    let all = api(client, namespace, "Secret").list(&ListParams::default()).await.expect("a list");
    let mut named: Vec<_> = all
        .into_iter()
        .map(|secret| {
            let kind = secret.data["type"].as_str().unwrap_or_default().to_owned();
            (secret.metadata.name.unwrap_or_default(), kind)
        })
        .collect();
    named.sort();
    named
}

fn count(secrets: &[(String, String)], kind: &str) -> usize {
    secrets.iter().filter(|(_, of)| of == kind).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_of_five_mebibytes_lives_in_several_secrets_and_leaves_none() {
    let cluster = cluster().await;
    let namespace = cluster.namespace("chunks").await.expect("a namespace");
    let client = cluster.client();
    let driver: Driver = driver(&client);
    let mut wish = DesiredRelease::new(&namespace, "large", five_mib());
    let installed = wish.reconcile(&driver).await.expect("installed");
    assert_eq!((installed.done, installed.objects.len()), (ActionResult::Installed, 6));
    assert!(installed.history.is_hidden_from_helm());
    let there = secrets(&client, &namespace).await;
    let pieces = count(&there, "catamaran/release-chunk.v1");
    assert!(pieces > 4, "{there:?}");
    assert_eq!(count(&there, "catamaran/release-index.v1"), 1);
    assert_eq!(wish.reconcile(&driver).await.expect("unchanged").done, ActionResult::Unchanged);

    // Helm's own CLIs do not see it, and above all they do not "uninstall" it.
    for helm in Helm::both(&cluster, &namespace) {
        assert_eq!(helm.json(&["list", "--all-namespaces", "--filter", "^large$"]), json!([]));
        let error = helm.run(&["uninstall", "large"]).expect_err("no such release");
        assert!(error.contains("not found"), "{error}");
    }
    assert_eq!(revisions(&driver, &namespace, "large").await, [(1, "deployed".to_owned())]);

    // A revision that fits in one Secret is Helm's again; the one before it stays in pieces.
    wish.objects = vec![config_map("small", "v")];
    let upgraded = wish.reconcile(&driver).await.expect("upgraded");
    assert_eq!((upgraded.done, upgraded.removed.len()), (ActionResult::Upgraded, 6));
    assert!(!upgraded.history.is_hidden_from_helm());
    let expected = [(1, "superseded".to_owned()), (2, "deployed".to_owned())];
    assert_eq!(revisions(&driver, &namespace, "large").await, expected);
    let [helm, _] = Helm::both(&cluster, &namespace);
    assert_eq!(helm.json(&["list"])[0]["revision"], "2");
    let there = secrets(&client, &namespace).await;
    assert_eq!(count(&there, "catamaran/release-chunk.v1"), pieces, "those of revision 1 as it is");

    assert!(wish.leave(&driver).await.expect("uninstalled").found);
    assert_eq!(secrets(&client, &namespace).await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_lost_a_piece_is_told_and_nothing_is_done() {
    let cluster = cluster().await;
    let namespace = cluster.namespace("chunks-lost").await.expect("a namespace");
    let client = cluster.client();
    let driver = driver(&client);
    let wish = DesiredRelease::new(&namespace, "large", five_mib());
    wish.reconcile(&driver).await.expect("installed");
    let there = secrets(&client, &namespace).await;
    let (lost, _) = there.iter().rfind(|(_, of)| of.contains("chunk")).expect("a piece");
    api(&client, &namespace, "Secret")
        .delete(lost, &DeleteParams::default())
        .await
        .expect("deleted");
    let error = wish.reconcile(&driver).await.expect_err("an error").to_string();
    let expected = format!(
        "record sh.helm.release.v1.large.v1 cannot be read: its piece {lost:?} is missing or damaged; \
         restore the Secret or delete it to go on"
    );
    assert_eq!(error, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_with_forged_pieces_is_not_authenticated() {
    let cluster = cluster().await;
    let namespace = cluster.namespace("chunks-forged").await.expect("a namespace");
    let client = cluster.client();
    let keys = RecordKeys::new(&[[7_u8; 32]]);
    let policy = RecordPolicy::Authenticate { keys, owner: RecordOwner::default() };
    let driver = driver(&client).record_policy(policy);
    let wish = DesiredRelease::new(&namespace, "large", five_mib());
    wish.reconcile(&driver).await.expect("installed");
    let history = driver.history(&namespace, "large").await.expect("a history");
    assert!(history.is_newest_trusted());

    let mut forged = history.newest().map(|newest| (**newest).clone()).expect("a record");
    forged.manifest = forged.manifest.replace("noise-0", "forge-0");
    let packed = codec::pack(&forged).expect("packed");
    let index = live(&client, &namespace, "Secret", &forged.secret_name()).await;
    let names = STANDARD.decode(index["data"]["chunks"].as_str().expect("names")).expect("base64");
    let names: Vec<String> = serde_json::from_slice(&names).expect("names");
    let secrets = api(&client, &namespace, "Secret");
    for (name, piece) in names.iter().zip(packed.chunks(packed.len().div_ceil(names.len()))) {
        let mut secret = secrets.get(name).await.expect("a piece");
        secrets.delete(name, &DeleteParams::default()).await.expect("deleted");
        secret.data["data"]["chunk"] = STANDARD.encode(piece).into();
        (secret.metadata.resource_version, secret.metadata.uid) = (None, None);
        secrets.create(&PostParams::default(), &secret).await.expect("created");
    }
    let history = driver.history(&namespace, "large").await.expect("a history");
    let newest = history.newest().expect("a record");
    assert!(newest.manifest.contains("forge-0"), "it can be read");
    assert!(!history.is_newest_trusted());
    let error = driver.repair(&history, None, &[]).await.expect_err("an error").to_string();
    assert!(error.contains("not authenticated"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_helm_operator_plugins_cut_is_taken_over() {
    let cluster = cluster().await;
    let namespace = cluster.namespace("chunks-plugins").await.expect("a namespace");
    let client = cluster.client();
    let driver = driver(&client);
    let wish = DesiredRelease::new(
        &namespace,
        "old",
        vec![config_map("a", "one"), config_map("b", "two")],
    );
    wish.reconcile(&driver).await.expect("installed");
    cut_as_plugins_do(&client, &namespace, "old", 1).await;

    let history = driver.history(&namespace, "old").await.expect("a history");
    assert!(history.is_hidden_from_helm());
    let rendered = wish.rendered();
    let facts = history.current_facts();
    let action = history.decide(&wish.desired(&rendered, &facts)).expect("an action");
    assert_eq!(action, Action::Unchanged);

    let next = DesiredRelease { objects: vec![config_map("a", "three")], ..wish };
    let upgraded = next.reconcile(&driver).await.expect("upgraded");
    assert_eq!((upgraded.done, upgraded.removed.len()), (ActionResult::Upgraded, 1));
    assert_eq!(live(&client, &namespace, "ConfigMap", "b").await, Value::Null);
    for helm in Helm::both(&cluster, &namespace) {
        let history = helm.json(&["history", "old"]);
        let statuses: Vec<_> =
            history.as_array().into_iter().flatten().map(|r| &r["status"]).collect();
        assert_eq!(statuses, ["superseded", "deployed"]);
    }
    next.leave(&driver).await.expect("uninstalled");
    let left = secrets(&client, &namespace).await;
    assert_eq!(count(&left, "operatorframework.io/index.v1"), 0, "{left:?}");
}

/// Lays a record of ours out as helm-operator-plugins does.
async fn cut_as_plugins_do(client: &Client, namespace: &Namespace, release: &str, revision: u32) {
    let name = format!("sh.helm.release.v1.{release}.v{revision}");
    let old = live(client, namespace, "Secret", &name).await;
    let text = STANDARD.decode(old["data"]["release"].as_str().expect("data")).expect("base64");
    let packed = STANDARD.decode(text).expect("base64");
    let (first, second) = packed.split_at(packed.len() / 2);
    let secrets = api(client, namespace, "Secret");
    secrets.delete(&name, &DeleteParams::default()).await.expect("deleted");
    let piece = format!("{name}-abc");
    let index = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "operatorframework.io/index.v1",
        "metadata": {"name": name, "labels": {
            "name": release, "owner": "some-operator", "status": "deployed", "type": "index",
            "version": revision.to_string(), "key": name, "createdAt": "1700000000",
        }},
        "data": {
            "chunk": STANDARD.encode(first), "extraChunks": STANDARD.encode(json!([piece]).to_string()),
        },
    });
    let index = serde_json::from_value(index).expect("a secret");
    let index = secrets.create(&PostParams::default(), &index).await.expect("created");
    let chunk = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "operatorframework.io/chunk.v1", "immutable": true,
        "metadata": {
            "name": piece, "labels": {"owner": "some-operator", "type": "chunk", "key": name},
            "ownerReferences": [{
                "apiVersion": "v1", "kind": "Secret", "name": name, "uid": index.metadata.uid,
                "controller": true, "blockOwnerDeletion": false,
            }],
        },
        "data": {"chunk": STANDARD.encode(second)},
    });
    let chunk = serde_json::from_value(chunk).expect("a secret");
    secrets.create(&PostParams::default(), &chunk).await.expect("created");
}
