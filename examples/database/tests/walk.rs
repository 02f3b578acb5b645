//! The document's walk, and what a person would do for a database, on a real API server. Its nodes are
//! simulated: pods run, Jobs end, and no container does anything; `tests/scripts.rs` has a real server.

#![allow(clippy::unwrap_used)] // helpers of tests fail as tests do

use std::path::Path;
use std::time::Duration;

use catamaran_testkit::{Bench, Dice, becomes, eventually, vanishes};
use database::api::{Database, DatabaseSpec, definitions};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, Secret, Service};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

const OPERATOR: &str = env!("CARGO_BIN_EXE_database");

struct Walk {
    bench: Bench,
    databases: Api<Database>,
    sets: Api<StatefulSet>,
    services: Api<Service>,
    jobs: Api<Job>,
    claims: Api<PersistentVolumeClaim>,
}

impl Walk {
    async fn new(name: &str) -> Self {
        let bench = Bench::new(name, &definitions()).await;
        bench.volumes(8).await;
        let (databases, sets, services) = (bench.api(), bench.api(), bench.api());
        let (jobs, claims) = (bench.api(), bench.api());
        Self { bench, databases, sets, services, jobs, claims }
    }

    fn operator(&self) -> catamaran_testkit::Running {
        self.bench.run(|options| {
            catamaran_operator::Manager::native("database", options)
                .reconciler("Database", database::Databases)
        })
    }

    async fn create(&self, name: &str, spec: Value) {
        let spec: DatabaseSpec = serde_json::from_value(spec).unwrap();
        self.databases.create(&PostParams::default(), &Database::new(name, spec)).await.unwrap();
    }

    async fn patch(&self, name: &str, spec: Value) {
        let patch = Patch::Merge(json!({ "spec": spec }));
        self.databases.patch(name, &PatchParams::default(), &patch).await.unwrap();
    }

    async fn ready(&self, name: &str) -> Database {
        becomes(&self.databases, name, "Ready", |db| condition(db, "Ready").0 == "True").await
    }

    async fn refused(&self, name: &str, reason: &str) {
        becomes(&self.databases, name, reason, |db| condition(db, "Spec").1 == reason).await;
    }

    async fn image(&self, name: &str) -> String {
        let set = self.sets.get(name).await.unwrap();
        set.spec.template.spec.unwrap().containers[0].image.clone().unwrap()
    }

    /// The pod that the Service leads to.
    async fn leads_to(&self, name: &str) -> String {
        let selector = self.services.get(name).await.unwrap().spec.unwrap().selector.unwrap();
        selector["statefulset.kubernetes.io/pod-name"].clone()
    }
}

fn condition(database: &Database, type_: &str) -> (String, String) {
    let conditions = database.status.iter().flat_map(|status| &status.conditions);
    let mut found = conditions.filter(|condition| condition.type_ == type_);
    found.next().map(|c| (c.status.clone(), c.reason.clone())).unwrap_or_default()
}

fn sample(bench: &Bench, file: &str) {
    let path = format!("{}/config/samples/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    let text =
        text.replace("namespace: default", &format!("namespace: {}", bench.namespace.name()));
    let mine = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(mine.path(), text).unwrap();
    bench.kubectl(&["apply", "-f", &mine.path().display().to_string()]);
}

#[tokio::test]
async fn the_document_is_followed() {
    let walk = Walk::new("document").await;
    let _operator = walk.operator();
    sample(&walk.bench, "database.yaml");
    let table = walk.bench.kubectl(&["get", "db"]);
    let rows: Vec<Vec<&str>> = table.lines().map(|row| row.split_whitespace().collect()).collect();
    assert_eq!(
        (rows[0].as_slice(), rows[1][0]),
        (["NAME", "AGE"].as_slice(), "my-first-crd-database")
    );
    let database = walk.ready("my-first-crd-database").await;
    let set = walk.sets.get("my-first-crd-database").await.unwrap();
    assert_eq!(set.spec.replicas, Some(3));
    let text = serde_json::to_string(&set).unwrap();
    for part in ["super-great-docker-image", "50G", "5432"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(database.status.unwrap().fields.primary.unwrap(), "my-first-crd-database-0");
    assert_eq!(walk.leads_to("my-first-crd-database").await, "my-first-crd-database-0");
    let secrets: Api<Secret> = walk.bench.api();
    let secret = secrets.get("my-first-crd-database-credentials").await.unwrap();
    let password = String::from_utf8(secret.data.unwrap()["password"].0.clone()).unwrap();
    assert!(!text.contains(&password));

    // Deleted: a snapshot is taken, everything goes, the volume of backups stays.
    let delete = DeleteParams::default();
    walk.databases.delete("my-first-crd-database", &delete).await.unwrap();
    vanishes(&walk.databases, "my-first-crd-database").await;
    vanishes(&walk.sets, "my-first-crd-database").await;
    walk.claims.get("my-first-crd-database-backups").await.unwrap();
}

#[tokio::test]
async fn what_would_lose_data_is_refused_and_the_rest_goes_on() {
    let walk = Walk::new("refusals").await;
    let _operator = walk.operator();
    walk.create("db", json!({ "name": "shop", "image": "postgres:16" })).await;
    walk.ready("db").await;
    for (reason, wrong, right) in [
        ("NameCannotChange", json!({ "name": "other" }), json!({ "name": "shop" })),
        ("StorageCannotChange", json!({ "storage-size": "1Mi" }), json!({ "storage-size": "1Gi" })),
        (
            "DowngradeRefused",
            json!({ "image": "postgres:15.9" }),
            json!({ "image": "postgres:16" }),
        ),
    ] {
        walk.patch("db", wrong).await;
        walk.refused("db", reason).await;
        assert_eq!(walk.image("db").await, "postgres:16");
        walk.patch("db", right).await;
        walk.ready("db").await;
    }
    for wrong in [json!({ "replicas": 0 }), json!({ "port": 0 }), json!({ "name": "" })] {
        let patch = Patch::Merge(json!({ "spec": wrong }));
        let refused = walk.databases.patch("db", &PatchParams::default(), &patch).await;
        assert!(matches!(refused, Err(kube::Error::Api(status)) if status.code == 422));
    }
    walk.patch("db", json!({ "replicas": 2 })).await;
    becomes(&walk.sets, "db", "two", |set| set.spec.replicas == Some(2)).await;
}

#[tokio::test]
async fn an_upgrade_is_a_dump_a_new_server_and_a_load() {
    let walk = Walk::new("upgrade").await;
    let operator = walk.operator();
    walk.create("db", json!({ "name": "shop", "image": "postgres:15" })).await;
    walk.ready("db").await;
    let folder = async || {
        let set = walk.sets.get("db").await.unwrap();
        let environment = set.spec.template.spec.unwrap().containers.remove(0).env.unwrap();
        environment.into_iter().find(|variable| variable.name == "PGDATA").unwrap().value
    };
    let before = folder().await;
    operator.stop().await;
    // A Job that cannot end: nothing can, without a quota.
    walk.bench.kubectl(&["create", "quota", "none", "--hard=count/jobs.batch=0"]);
    let operator = walk.operator();
    walk.patch("db", json!({ "image": "postgres:16" })).await;
    becomes(&walk.services, "db", "closed", |service| {
        let selector = service.spec.as_ref().unwrap().selector.as_ref().unwrap();
        selector["statefulset.kubernetes.io/pod-name"] == "closed"
    })
    .await;
    assert_eq!(walk.image("db").await, "postgres:15", "not before the dump");
    operator.stop().await;
    walk.bench.kubectl(&["delete", "quota", "none"]);
    let _operator = walk.operator();
    let after = becomes(&walk.databases, "db", "upgraded", |db| {
        let fields = &db.status.as_ref().unwrap().fields;
        fields.image.as_deref() == Some("postgres:16")
            && fields.set_up.as_deref() == Some("postgres:16")
            && fields.loads.is_none()
            && condition(db, "Ready").0 == "True"
    })
    .await;
    assert_eq!(condition(&after, "Upgrade").0, "True");
    assert_eq!(walk.image("db").await, "postgres:16");
    assert_ne!(folder().await, before, "the new server begins with an empty folder");
    assert_eq!(walk.leads_to("db").await, "db-0");
    let events = walk.bench.kubectl(&["get", "events", "-o", "jsonpath={.items[*].reason}"]);
    assert!(events.contains("Upgraded"), "{events}");
}

#[tokio::test]
async fn a_standby_takes_over_from_a_primary_that_stays_away() {
    let walk = Walk::new("failover").await;
    let rights = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/config/rbac"));
    let account = walk.bench.account("database", rights).await;
    let mut operator = walk.bench.start_as(OPERATOR, &account);
    let spec = json!({ "name": "s", "image": "postgres:16", "replicas": 2, "failover-seconds": 1 });
    walk.create("db", spec).await;
    walk.ready("db").await;
    let pods: Api<Pod> = walk.bench.api();
    let first = becomes(&pods, "db-0", "there", |_| true).await;
    let finalizers = |all: serde_json::Value| {
        let patch = json!({ "metadata": { "finalizers": all } }).to_string();
        walk.bench.kubectl(&["patch", "pod", "db-0", "--type=merge", "-p", &patch]);
    };
    // Its node does not answer: the pod is not ready, and cannot be seen to end either.
    finalizers(json!(["test/held"]));
    walk.bench.kubectl(&["delete", "pod", "db-0", "--wait=false"]);
    becomes(&walk.databases, "db", "fences", |db| condition(db, "Primary").1 == "Fencing").await;
    assert_eq!(walk.leads_to("db").await, "closed", "nobody takes writes");
    operator.kill();
    operator = walk.bench.start_as(OPERATOR, &account);
    becomes(&walk.databases, "db", "fences again", |db| condition(db, "Primary").1 == "Fencing")
        .await;
    let set = walk.sets.get("db").await.unwrap();
    assert!(!serde_json::to_string(&set).unwrap().contains(r#""PRIMARY","value":"db"#));

    // It is seen to be gone: now another one may.
    finalizers(json!(null));
    let after = becomes(&walk.databases, "db", "led by another", |db| {
        let fields = &db.status.as_ref().unwrap().fields;
        fields.primary.as_deref() == Some("db-1") && condition(db, "Ready").0 == "True"
    })
    .await;
    assert_eq!(walk.leads_to("db").await, "db-1");
    let second =
        becomes(&pods, "db-0", "made anew", |pod| pod.metadata.uid != first.metadata.uid).await;
    assert_eq!(second.annotations()["stable.imaginedata.com/term"], "2");
    assert_eq!(after.status.unwrap().fields.promoted, 2);
    let events = walk.bench.kubectl(&["get", "events", "-o", "jsonpath={.items[*].reason}"]);
    assert!(events.contains("FailedOver"), "{events}");

    // One replica too many is replaced as primary before it goes.
    walk.patch("db", json!({ "replicas": 1 })).await;
    becomes(&walk.sets, "db", "one", |set| set.spec.replicas == Some(1)).await;
    becomes(&walk.databases, "db", "led by the first", |db| {
        db.status.as_ref().unwrap().fields.primary.as_deref() == Some("db-0")
    })
    .await;
    assert!(!operator.log().contains("is forbidden"), "{}", operator.log());
}

#[tokio::test]
async fn backups_are_scheduled_told_of_and_restored_once() {
    let walk = Walk::new("backups").await;
    let _operator = walk.operator();
    sample(&walk.bench, "database_backup.yaml");
    walk.ready("shop").await;
    walk.claims.get("shop-backups").await.unwrap();
    let cron_jobs: Api<CronJob> = walk.bench.api();
    let cron_job = cron_jobs.get("shop-backup").await.unwrap();
    assert_eq!(cron_job.spec.schedule, "0 3 * * *");
    walk.bench.kubectl(&["create", "job", "now", "--from=cronjob/shop-backup"]);
    becomes(&walk.databases, "shop", "a backup", |db| {
        db.status.as_ref().unwrap().fields.last_backup.as_ref().is_some_and(|last| last.succeeded)
    })
    .await;
    walk.patch("shop", json!({ "restore": {} })).await;
    let first = becomes(&walk.databases, "shop", "restored", |db| {
        db.status.as_ref().unwrap().fields.restored.is_some() && condition(db, "Ready").0 == "True"
    })
    .await;
    let first = first.status.unwrap().fields.restored;
    walk.patch("shop", json!({ "restore": { "request": "again" } })).await;
    becomes(&walk.databases, "shop", "restored again", |db| {
        db.status.as_ref().unwrap().fields.restored != first
    })
    .await;
    walk.patch("shop", json!({ "backup": null, "restore": null })).await;
    vanishes(&cron_jobs, "shop-backup").await;
    walk.claims.get("shop-backups").await.unwrap();
}

#[tokio::test]
async fn a_deletion_waits_for_its_snapshot() {
    let walk = Walk::new("snapshot").await;
    let _operator = walk.operator();
    walk.create("db", json!({ "name": "shop", "image": "postgres:16" })).await;
    walk.ready("db").await;
    // A Job that is never allowed to begin.
    walk.bench.kubectl(&["create", "quota", "none", "--hard=pods=0"]);
    walk.databases.delete("db", &DeleteParams::default()).await.unwrap();
    becomes(&walk.jobs, "db-snapshot-dump", "there", |_| true).await;
    becomes(&walk.databases, "db", "waits", |db| condition(db, "Ready").0 == "False").await;
    walk.sets.get("db").await.unwrap();
    walk.bench.kubectl(&["delete", "quota", "none"]);
    vanishes(&walk.databases, "db").await;

    // Also where the garbage collector would take everything at once, and while another Job runs.
    walk.create("db", json!({ "name": "shop", "image": "postgres:16", "restore": {} })).await;
    walk.ready("db").await;
    walk.bench.kubectl(&["create", "quota", "none", "--hard=pods=0"]);
    walk.patch("db", json!({ "restore": { "request": "again" } })).await;
    becomes(&walk.databases, "db", "restores", |db| condition(db, "Restore").0 == "False").await;
    walk.bench.kubectl(&["delete", "db", "db", "--cascade=foreground", "--wait=false"]);
    becomes(&walk.jobs, "db-snapshot-dump", "there", |_| true).await;
    let secrets: Api<Secret> = walk.bench.api();
    for _ in 0..10 {
        // It had the time to.
        tokio::time::sleep(Duration::from_millis(100)).await;
        let set = walk.sets.get("db").await.unwrap();
        assert!(set.metadata.deletion_timestamp.is_none());
        secrets.get("db-credentials").await.unwrap();
    }
    walk.bench.kubectl(&["delete", "quota", "none"]);
    vanishes(&walk.databases, "db").await;
    vanishes(&walk.sets, "db").await;
    vanishes(&secrets, "db-credentials").await;

    // Without one if nobody wants it.
    walk.create("db", json!({ "name": "s", "image": "postgres:16", "snapshot": false })).await;
    walk.ready("db").await;
    walk.databases.delete("db", &DeleteParams::default()).await.unwrap();
    vanishes(&walk.databases, "db").await;
}

#[tokio::test]
async fn killed_at_random_it_gets_there() {
    let walk = Walk::new("chaos").await;
    let mut dice = Dice::new();
    let rights = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/config/rbac"));
    let account = walk.bench.account("database", rights).await;
    let start = || walk.bench.start_as(OPERATOR, &account);
    let mut operator = start();
    walk.create("db", json!({ "name": "shop", "image": "postgres:13", "replicas": 2 })).await;
    let everything = (DeleteParams::default(), ListParams::default());
    let pods: Api<Pod> = walk.bench.api();
    for major in 14..=17 {
        walk.patch("db", json!({ "image": format!("postgres:{major}") })).await;
        for _ in 0..4 {
            match dice.throw(4) {
                0 => _ = walk.jobs.delete_collection(&everything.0, &everything.1).await,
                1 => _ = pods.delete_collection(&everything.0, &everything.1).await,
                _ => {
                    operator.kill();
                    operator = start();
                }
            }
            tokio::time::sleep(Duration::from_millis(dice.throw(500))).await; // pace, not a wait
        }
    }
    becomes(&walk.databases, "db", "upgraded", |db| {
        // It may have been killed before it ever wrote one.
        db.status.as_ref().is_some_and(|status| {
            status.fields.set_up.as_deref() == Some("postgres:17")
                && status.fields.loads.is_none()
                && condition(db, "Ready").0 == "True"
        })
    })
    .await;
    walk.databases.delete("db", &DeleteParams::default()).await.unwrap();
    vanishes(&walk.databases, "db").await;
    eventually("nothing is left", async || {
        match walk.jobs.list(&everything.1).await.unwrap().items {
            left if left.is_empty() => Ok(()),
            left => Err(left.iter().map(ResourceExt::name_any).collect::<Vec<_>>().join(", ")),
        }
    })
    .await;
    assert!(!operator.log().contains("is forbidden"), "{}", operator.log());
}
