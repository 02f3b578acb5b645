//! Names that collide or are too long, kinds without namespaces, several versions of a kind, and records
//! that lie elsewhere.

use serde_json::{Value, json};

use crate::support::{MIRROR, Stage, config_map, field, is, until};

fn objects(name: &str) -> Value {
    json!({ "objects": [config_map(name, &json!({ "a": "b" }))] })
}

#[tokio::test]
async fn two_kinds_with_one_name_and_one_chart_do_not_meet() {
    let mut stage = Stage::of("kinds", MIRROR).await;
    stage.define("Stall", "Namespaced", &["v1"]);
    stage.watches(
        "- {group: GROUP, version: v1, kind: Shop, chart: helm-charts/demo}\n\
         - {group: GROUP, version: v1, kind: Stall, chart: helm-charts/demo}\n",
    );
    let _operator = stage.operator();
    stage.apply(&stage.shop("web", &objects("of-the-shop")));
    stage.apply(&stage.resource("Stall", "web", &objects("of-the-stall")));
    let deployed = |shop: &Value| is(shop, "Deployed", "True");
    let stalls = stage.kind("stalls");
    let shop = stage.shop_becomes("web", "deployed", deployed);
    let mut stall = Value::Null;
    until("the stall is deployed", || {
        stall = stage.get(&stalls, "web");
        if deployed(&stall) { Ok(()) } else { Err(stall["status"].to_string()) }
    });
    let name =
        |object: &Value| object["status"]["deployedRelease"]["name"].as_str().unwrap().to_owned();
    assert_ne!(name(&shop), name(&stall));
    assert!([name(&shop), name(&stall)].contains(&"web".to_owned()), "one keeps the plain name");
    assert_eq!(stage.records().len(), 2);

    stage.kubectl(&["delete", &stalls, "web", "--timeout=60s"]);
    assert!(stage.get("configmap", "of-the-stall").is_null());
    assert!(!stage.get("configmap", "of-the-shop").is_null());
    stage.kubectl(&["delete", &stage.kind("shops"), "web", "--timeout=60s"]);
    assert_eq!(stage.records(), [""; 0]);
}

#[tokio::test]
async fn a_long_name_gets_a_release_that_helm_knows() {
    let stage = Stage::of("long", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Release.Name }}'}\ndata: {a: '{{ .Values.a }}'}\n").await;
    let _operator = stage.operator();
    let name = format!("{}-{}", "long".repeat(20), "er".repeat(20));
    stage.apply(&stage.shop(&name, &json!({ "a": "1" })));
    let shop = stage.shop_becomes(&name, "deployed", |shop| is(shop, "Deployed", "True"));
    let release = shop["status"]["deployedRelease"]["name"].as_str().unwrap().to_owned();
    assert!(release.len() <= 53 && release.starts_with("longlong"), "{release}");
    assert!(stage.helm3(&["list", "-q"]).contains(&release));
    stage.apply(&stage.shop(&name, &json!({ "a": "2" })));
    stage.shop_becomes(&name, "upgraded", |shop| shop["status"]["deployedRelease"]["version"] == 2);
    stage.kubectl(&["delete", &stage.kind("shops"), &name, "--timeout=60s"]);
    assert_eq!(stage.records(), [""; 0]);
    assert!(stage.get("configmap", &release).is_null());
}

#[tokio::test]
async fn records_lie_where_the_entry_says() {
    let stage = Stage::of("stored", MIRROR).await;
    let place = stage.cluster.namespace("stored-elsewhere").await.unwrap();
    stage.watches(&format!(
        "- {{group: GROUP, version: v1, kind: Shop, chart: helm-charts/demo, storageNamespace: {}}}\n",
        place.name()
    ));
    let _operator = stage.operator();
    stage.apply(&stage.shop("web", &objects("web")));
    stage.shop_becomes("web", "deployed", |shop| is(shop, "Deployed", "True"));
    assert_eq!(stage.records(), [""; 0]);
    let records =
        || stage.kubectl(&["get", "secrets", "-n", place.name(), "-l", "owner=helm", "-o", "name"]);
    assert_eq!(records().lines().count(), 1);
    stage.apply(
        &stage.shop("web", &json!({ "objects": [config_map("web", &json!({ "a": "c" }))] })),
    );
    stage.shop_becomes("web", "upgraded", |shop| shop["status"]["deployedRelease"]["version"] == 2);
    // Who meddles with them is noticed there.
    stage.kubectl(&["delete", "secrets", "-n", place.name(), "-l", "owner=helm"]);
    until("recorded again", || match records() {
        none if none.is_empty() => Err("no record".to_owned()),
        _ => Ok(()),
    });
    stage.kubectl(&["delete", &stage.kind("shops"), "web", "--timeout=60s"]);
    assert_eq!(records(), "");
    assert!(stage.get("configmap", "web").is_null());
}

#[tokio::test]
async fn a_kind_without_namespaces_has_releases_too() {
    let mut stage = Stage::new("scope").await;
    stage.define("Realm", "Cluster", &["v1"]);
    stage.chart("demo", &[("templates/all.yaml", MIRROR)]);
    stage.watches(&format!(
        "- {{group: GROUP, version: v1, kind: Realm, chart: helm-charts/demo, storageNamespace: {}}}\n",
        stage.namespace.name()
    ));
    let _operator = stage.operator();
    stage.apply(&stage.resource("Realm", "one", &objects("of-the-realm")));
    let realms = stage.kind("realms");
    until("deployed", || {
        let realm = stage.get(&realms, "one");
        if is(&realm, "Ready", "True") { Ok(()) } else { Err(realm["status"].to_string()) }
    });
    let owners = stage.get("configmap", "of-the-realm")["metadata"]["ownerReferences"].clone();
    assert_eq!(owners[0]["kind"], "Realm");
    // Drift is noticed.
    stage.kubectl(&[
        "patch",
        "configmap",
        "of-the-realm",
        "--type=merge",
        "-p",
        r#"{"data":{"a":"x"}}"#,
    ]);
    until("put back", || {
        let data = stage.get("configmap", "of-the-realm")["data"].clone();
        if data == json!({ "a": "b" }) { Ok(()) } else { Err(data.to_string()) }
    });
    stage.kubectl(&["delete", &realms, "one", "--timeout=60s"]);
    assert_eq!(stage.records(), [""; 0]);
    assert!(stage.get("configmap", "of-the-realm").is_null());
}

#[tokio::test]
async fn several_versions_of_a_kind_are_the_same_resources() {
    let mut stage = Stage::new("versions").await;
    stage.define("Shop", "Namespaced", &["v1", "v2"]);
    stage.chart("demo", &[("templates/all.yaml", MIRROR)]);
    stage.chart("newer", &[("templates/all.yaml", MIRROR)]);
    stage.watches(
        "- {group: GROUP, version: v2, kind: Shop, chart: helm-charts/newer, selector: {matchLabels: {tier: new}}}\n\
         - {group: GROUP, version: v1, kind: Shop, chart: helm-charts/demo}\n",
    );
    let _operator = stage.operator();
    let mut new = stage.shop("new", &objects("new"));
    new["metadata"]["labels"] = json!({ "tier": "new" });
    stage.apply(&new);
    stage.apply(&stage.shop("old", &objects("old")));
    for name in ["new", "old"] {
        stage.shop_becomes(name, "deployed", |shop| is(shop, "Deployed", "True"));
    }
    let charts = stage.helm3(&["list"]);
    assert!(charts.contains("newer-1.0.0") && charts.contains("demo-1.0.0"), "{charts}");
    assert_eq!(stage.records().len(), 2);
    let shop = stage.shop_now("new");
    assert_eq!(field(&shop, "Deployed", "reason"), "InstallSuccessful");
}
