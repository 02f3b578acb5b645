//! What belongs to others, what is gone or changed, and what must never be said.

use std::time::{Duration, Instant};

use catamaran_release::{ActionResult, Error, Owner, WhyKept};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::support::{
    CANARY, DesiredRelease, api, cluster, config_map, config_map_id, driver, live, revisions,
    secret,
};

#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_object_is_refused_in_helms_words_and_left_untouched() {
    let cluster = cluster().await;
    let namespace = cluster.namespace("foreign").await.expect("a namespace");
    let client = cluster.client();
    let driver = driver(&client);
    let theirs: kube::api::DynamicObject =
        serde_json::from_value(config_map("taken", "theirs")).expect("an object");
    let theirs =
        api(&client, &namespace, "ConfigMap").create(&PostParams::default(), &theirs).await;
    let before = theirs.expect("created").metadata.resource_version;

    let wish = DesiredRelease::new(
        &namespace,
        "rel",
        vec![config_map("free", "ours"), config_map("taken", "ours")],
    );
    let error = wish.reconcile(&driver).await.expect_err("refused");
    assert!(!error.is_transient());
    let expected = format!(
        "ConfigMap \"taken\" in namespace \"{0}\" exists and cannot be imported into the current release: \
         invalid ownership metadata; \
         label validation error: missing key \"app.kubernetes.io/managed-by\": must be set to \"Helm\"; \
         annotation validation error: missing key \"meta.helm.sh/release-name\": must be set to \"rel\"; \
         annotation validation error: missing key \"meta.helm.sh/release-namespace\": must be set to \"{0}\"",
        &*namespace
    );
    assert_eq!(error.to_string(), expected);
    let taken = live(&client, &namespace, "ConfigMap", "taken").await;
    assert_eq!(taken["metadata"]["resourceVersion"].as_str(), before.as_deref());
    let history = driver.history(&namespace, "rel").await.expect("a history");
    let newest = history.newest().expect("a record");
    assert_eq!(newest.info.status.as_str(), "failed");
    assert_eq!(newest.info.description, format!("Release \"rel\" failed: {expected}"));

    // Failing again writes nothing; once the way is free, the same revision comes to its end.
    wish.reconcile(&driver).await.expect_err("refused again");
    let same = driver.history(&namespace, "rel").await.expect("a history");
    assert_eq!(same.newest(), history.newest());
    api(&client, &namespace, "ConfigMap")
        .delete("taken", &DeleteParams::default())
        .await
        .expect("deleted");
    assert_eq!(wish.reconcile(&driver).await.expect("installed").done, ActionResult::Installed);
    assert_eq!(revisions(&driver, &namespace, "rel").await, [(1, "deployed".to_owned())]);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_is_still_ours_is_pruned_and_uninstalled() {
    let cluster = cluster().await;
    let namespace = cluster.namespace("prune").await.expect("a namespace");
    let client = cluster.client();
    let driver = driver(&client);
    let mut kept = config_map("kept", "v");
    kept["metadata"]["annotations"] = json!({"helm.sh/resource-policy": "keep"});
    let names = ["stays", "goes", "stolen"];
    let mut objects: Vec<Value> = names.iter().map(|name| config_map(name, "v")).collect();
    objects.push(kept);
    let mut wish = DesiredRelease::new(&namespace, "rel", objects);
    wish.reconcile(&driver).await.expect("installed");

    let steal = json!({"metadata": {"annotations": {"meta.helm.sh/release-name": "another"}}});
    let maps = api(&client, &namespace, "ConfigMap");
    maps.patch("stolen", &PatchParams::default(), &Patch::Merge(&steal)).await.expect("stolen");
    wish.objects.truncate(1);
    let applied = wish.reconcile(&driver).await.expect("upgraded");
    assert_eq!(applied.removed, [config_map_id(&namespace, "goes")]);
    let left: Vec<_> = applied.kept.iter().map(|kept| (kept.id.name.as_str(), &kept.why)).collect();
    assert_eq!(left, [("kept", &WhyKept::Policy), ("stolen", &WhyKept::NotOurs)]);

    let gone = driver.uninstall(&namespace, "rel").await.expect("uninstalled");
    assert_eq!(gone.deleted, [config_map_id(&namespace, "stays")]);
    for (name, there) in [("stays", false), ("goes", false), ("stolen", true), ("kept", true)] {
        assert_eq!(!live(&client, &namespace, "ConfigMap", name).await.is_null(), there, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn drift_is_undone_and_an_unchanged_release_costs_no_request() {
    let cluster = cluster().await;
    let namespace = cluster.namespace("drift").await.expect("a namespace");
    let client = cluster.client_called("drift-test").expect("a client");
    let driver = driver(&client);
    let log = cluster.audit().of_agent("drift-test");
    let mark = log.mark().expect("a mark");
    let objects = vec![config_map("gone", "v"), config_map("moved", "v")];
    let mut wish = DesiredRelease::new(&namespace, "rel", objects);
    wish.owner = Some(owner(&cluster.client(), &namespace).await);
    let history = wish.reconcile(&driver).await.expect("installed").history;
    let asked = log.since(mark).expect("requests");
    let asked: Vec<_> = asked.iter().filter(|r| !r.resource.is_empty()).collect();
    let verbs: Vec<_> = asked.iter().map(|r| (r.verb.as_str(), r.resource.as_str())).collect();
    let record = |verb| (verb, "secrets");
    let object = ("patch", "configmaps");
    assert_eq!(verbs, [record("list"), record("create"), object, object, record("update")]);

    let mark = log.mark().expect("a mark");
    let (rendered, facts) = (wish.rendered(), history.current_facts());
    let desired = wish.desired(&rendered, &facts);
    let unchanged = driver.apply(&history, &desired).await.expect("unchanged");
    assert_eq!(unchanged.done, ActionResult::Unchanged);
    assert_eq!(driver.objects(&desired).await.expect("objects").len(), 2);
    assert_eq!(log.since(mark).expect("requests").len(), 0);

    let maps = api(&cluster.client(), &namespace, "ConfigMap");
    maps.delete("gone", &DeleteParams::default()).await.expect("deleted");
    let change = json!({"data": {"k": "by hand"}});
    maps.patch("moved", &PatchParams::default(), &Patch::Merge(&change)).await.expect("changed");
    let which = [config_map_id(&namespace, "gone"), config_map_id(&namespace, "moved")];
    let repaired = driver.repair(&history, wish.owner.as_ref(), &which).await.expect("repaired");
    assert_eq!((repaired.done, repaired.objects.len()), (ActionResult::Repaired, 2));
    for name in ["gone", "moved"] {
        let map = live(&client, &namespace, "ConfigMap", name).await;
        assert_eq!(map["data"]["k"], "v", "{name}");
        assert_eq!(map["metadata"]["managedFields"][0]["manager"], "helm", "{name}");
        assert_eq!(map["metadata"]["ownerReferences"][0]["name"], "owner", "{name}");
        assert_eq!(map["metadata"]["ownerReferences"][0]["controller"], true, "{name}");
    }
}

/// Any object serves as a resource that has releases.
async fn owner(client: &kube::Client, namespace: &str) -> Owner {
    let object = serde_json::from_value(config_map("owner", "v")).expect("an object");
    let created = api(client, namespace, "ConfigMap").create(&PostParams::default(), &object).await;
    let reference = OwnerReference {
        api_version: "v1".into(),
        kind: "ConfigMap".into(),
        name: "owner".into(),
        uid: created.expect("created").metadata.uid.unwrap_or_default(),
        ..OwnerReference::default()
    };
    Owner { reference, namespace: Some(namespace.to_owned()), chart: None }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_at_once_one_goes_on_and_ten_revisions_are_kept() {
    let cluster = cluster().await;
    let namespace = cluster.namespace("race").await.expect("a namespace");
    let client = cluster.client();
    let (one, two) = (driver(&client), driver(&client));
    for number in 1..=12 {
        let wish =
            DesiredRelease::new(&namespace, "rel", vec![config_map("map", &number.to_string())]);
        let (first, second) = tokio::join!(wish.reconcile(&one), wish.reconcile(&two));
        for result in [first, second] {
            if let Err(error) = result {
                assert!(error.is_transient() && error.is_stale(), "{error}");
            }
        }
        wish.reconcile(&one).await.expect("in the end");
    }
    let all = revisions(&one, &namespace, "rel").await;
    let (last, before) = all.split_last().expect("revisions");
    assert_eq!(*last, (12, "deployed".to_owned()));
    assert_eq!(before.len(), 9);
    assert!(before.iter().all(|(_, status)| status == "superseded"), "{all:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chart_may_bring_a_crd_and_its_resources_in_one_manifest() {
    let cluster = cluster().await;
    let namespace = cluster.namespace("crd").await.expect("a namespace");
    let driver = driver(&cluster.client());
    // A group of its own disturbs nobody.
    let group = format!("{}.example.dev", &*namespace);
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("things.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"kind": "Thing", "plural": "things", "singular": "thing"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true,
            }}}],
        },
    });
    let thing =
        json!({"apiVersion": format!("{group}/v1"), "kind": "Thing", "metadata": {"name": "t"}});
    let wish = DesiredRelease::new(&namespace, "rel", vec![crd, thing]);
    let deadline = Instant::now() + Duration::from_secs(30);
    let applied = loop {
        match wish.reconcile(&driver).await {
            Ok(applied) => break applied,
            Err(error) => assert!(error.is_transient() && Instant::now() < deadline, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    let kinds: Vec<_> = applied.objects.iter().map(|object| object.id.kind.as_str()).collect();
    assert_eq!(kinds, ["CustomResourceDefinition", "Thing"]);
    assert_eq!(applied.release.version, 1);
    let gone = driver.uninstall(&namespace, "rel").await.expect("uninstalled");
    assert_eq!(gone.deleted.len() + gone.kept.len(), 2, "{gone:?}");
}

/// All ways in which the API server refuses a Secret, told without what is in it.
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_secret_is_never_quoted() {
    let cluster = cluster().await;
    let namespace = cluster.namespace("canary").await.expect("a namespace");
    let driver = driver(&cluster.client());
    let bad = [
        ("bad-key", json!({"stringData": {CANARY.replace('-', " "): CANARY}})),
        ("no-map", json!({"stringData": CANARY})),
        ("no-string", json!({"stringData": {"k": {"nested": CANARY}}})),
        ("no-base64", json!({"data": {"k": CANARY}})),
        ("strange-field", json!({"stringDate": {"k": CANARY}})),
        ("bad-type", json!({"type": "kubernetes.io/tls", "stringData": {"k": CANARY}})),
    ];
    for (name, content) in bad {
        let mut object = secret(name, CANARY);
        let fields = content.as_object().cloned().unwrap_or_default();
        object.as_object_mut().expect("a map").extend(fields);
        let wish = DesiredRelease::new(&namespace, name, vec![object]);
        let error = wish.reconcile(&driver).await.expect_err("refused");
        assert!(matches!(error, Error::Request(_)), "{name}: {error}");
        let history = driver.history(&namespace, name).await.expect("a history");
        let description = &history.newest().expect("a record").info.description;
        for text in [error.to_string(), format!("{error:?}"), description.clone()] {
            assert!(text.contains(name), "{name}: {error:?}: {text}");
            assert!(!text.contains(CANARY), "{text}");
        }
    }
}
