//! Databases that are databases: real PostgreSQL in real containers on a real node, one story from the
//! first set-up to a restore of what a deletion has left. It needs root, Debian's packages and images:
//! `make e2e` has them made, and runs it.

#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests fail as tests do

mod stage;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use catamaran_testkit::{Process, eventually};
use serde_json::{Value, json};
use stage::{Stage, briefly};

const OPERATOR: &str = env!("CARGO_BIN_EXE_database");

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs root, Debian's packages and images: make e2e"]
async fn a_database_lives_in_real_containers() {
    let stage = Stage::up().await;
    let rights = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/config/rbac"));
    let account = stage.bench.account("database", rights).await;
    let mut operator = stage.bench.start_as(OPERATOR, &account);

    set_up(&stage).await;
    let one_primary = stage.watch_primaries("shop");
    a_standby_follows(&stage).await;
    a_backup_is_told_of_and_restored(&stage).await;
    a_standby_takes_over(&stage).await;
    the_operator_dies_while_one_takes_over(&stage, &mut operator, &account).await;
    the_secret_is_what_counts(&stage).await;
    one_primary.ends().await;
    the_operator_dies_in_an_upgrade(&stage, &mut operator, &account).await;
    what_loses_data_is_refused(&stage).await;
    a_deletion_leaves_a_snapshot_that_can_be_restored(&stage).await;
    assert!(!operator.log().contains("is forbidden"), "{}", operator.log());
}

fn manifest(stage: &Stage, image: &str, more: &Value) -> Value {
    let mut spec = json!({
        "name": "shop", "image": image, "storage-size": "1Gi", "replicas": 2, "failover-seconds": 4,
        "backup": { "schedule": "* * * * *", "keep": 3 },
    });
    more.as_object().into_iter().flatten().for_each(|(name, value)| spec[name] = value.clone());
    json!({
        "apiVersion": "stable.imaginedata.com/v1", "kind": "Database",
        "metadata": { "name": "shop", "namespace": stage.bench.namespace.name() }, "spec": spec,
    })
}

async fn set_up(stage: &Stage) {
    stage.apply(&manifest(stage, &stage.images[0], &json!({})));
    stage.ready("shop").await;
    stage.sql("shop", "CREATE TABLE orders (i int PRIMARY KEY)").await;
    stage.sql("shop", "INSERT INTO orders SELECT generate_series(1, 1000)").await;
    let version = stage.sql("shop", "SHOW server_version").await;
    stage.tell(format!(
        "set up, Ready: psql by the Secret and the Service finds PostgreSQL {version}"
    ));
    for object in ["statefulset/shop", "pvc/data-shop-0", "pvc/data-shop-1", "service/shop"] {
        stage.bench.kubectl(&["get", object]);
    }
}

async fn a_standby_follows(stage: &Stage) {
    eventually("the standby has it all", async || {
        let standby =
            stage.ask_pod("shop-1", "SELECT pg_is_in_recovery(), count(*) FROM orders").await?;
        if standby == "t|1000" { Ok(()) } else { Err(standby) }
    })
    .await;
    let follows = "SELECT application_name, state FROM pg_stat_replication";
    assert_eq!(stage.sql("shop", follows).await, "shop-1|streaming");
    let write = stage.ask_pod("shop-1", "INSERT INTO orders VALUES (0)").await;
    assert!(write.unwrap_err().contains("read-only"));
    stage.tell("shop-1 follows by streaming replication, and takes no writes");
}

async fn a_backup_is_told_of_and_restored(stage: &Stage) {
    stage.bench.kubectl(&["create", "job", "now", "--from=cronjob/shop-backup"]);
    let last = stage
        .until("shop", "a backup", |db| {
            let last = &db["status"]["lastBackup"];
            // One of before the rows were there is smaller.
            let whole = last["succeeded"] == true && last["bytes"].as_i64() > Some(2000);
            whole.then(|| last.clone())
        })
        .await;
    let file = last["file"].as_str().unwrap();
    stage
        .tell(format!("a run of the CronJob: {file}, {} bytes, told by the status", last["bytes"]));
    stage.sql("shop", "DELETE FROM orders WHERE i > 10; CREATE TABLE junk ()").await;
    stage.patch("shop", &json!({ "restore": { "backup": file } }));
    stage.until("shop", "restored", |db| db["status"]["restored"].as_str().map(drop)).await;
    assert_eq!(stage.sql("shop", "SELECT count(*) FROM orders").await, "1000");
    stage.tell("990 rows deleted are back after a restore");
    stage.patch("shop", &json!({ "restore": null }));
}

/// The pod, and its volume: what the primary had is gone for good.
fn destroy(stage: &Stage, pod: &str) {
    let claim = format!("data-{pod}");
    stage.bench.kubectl(&["delete", "pvc", &claim, "--wait=false"]);
    stage.bench.kubectl(&["delete", "pod", pod, "--grace-period=1"]);
}

async fn has_taken_over(stage: &Stage, new: &str, rows: &str) {
    let led = stage.until("shop", "another primary", |db| {
        let (status, is) = (&db["status"], |field: &Value| field.as_str() == Some(new));
        (is(&status["primary"]) && status["promoted"] == status["term"]).then_some(())
    });
    led.await;
    eventually("the Service follows", async || {
        stage.ask("shop", "INSERT INTO orders SELECT max(i) + 1 FROM orders").await.map(drop)
    })
    .await;
    assert_eq!(stage.sql("shop", "SELECT count(*) FROM orders").await, rows);
    stage
        .tell(format!("{new} is the primary, the Service leads to it, all rows are there: {rows}"));
}

async fn all_follow(stage: &Stage, standby: &str, rows: &str) {
    stage.ready("shop").await;
    eventually("the one of before follows", async || {
        let asked = "SELECT pg_is_in_recovery(), count(*) FROM orders";
        let told = stage.ask_pod(standby, asked).await?;
        if told == format!("t|{rows}") { Ok(()) } else { Err(told) }
    })
    .await;
    stage.tell(format!("{standby} is back, as a copy that follows"));
}

async fn a_standby_takes_over(stage: &Stage) {
    destroy(stage, "shop-0");
    stage.tell("the primary's pod and volume are destroyed");
    has_taken_over(stage, "shop-1", "1001").await;
    all_follow(stage, "shop-0", "1001").await;
}

async fn the_operator_dies_while_one_takes_over(
    stage: &Stage,
    operator: &mut Process,
    account: &Path,
) {
    destroy(stage, "shop-1");
    for _ in 0..4 {
        stage
            .until("shop", "a step", |db| {
                let decides = db["status"]["deposed"].is_string();
                (decides
                    || db["status"]["promoted"] != db["status"]["term"]
                    || db["status"]["primary"] == "shop-0")
                    .then_some(())
            })
            .await;
        operator.kill();
        *operator = stage.bench.start_as(OPERATOR, account);
        tokio::time::sleep(Duration::from_secs(1)).await; // pace, not a wait
    }
    has_taken_over(stage, "shop-0", "1002").await;
    all_follow(stage, "shop-1", "1002").await;
    stage.tell("and back again, with the operator killed four times meanwhile");
}

async fn the_secret_is_what_counts(stage: &Stage) {
    let before = stage.password("shop").await;
    let edited = json!({ "stringData": { "password": "it's \"edited\" by \\hand" } }).to_string();
    stage.bench.kubectl(&["patch", "secret", "shop-credentials", "--type=merge", "-p", &edited]);
    // kubelet takes up to a minute and a half to tell a pod.
    stage
        .long("the server takes the new password", async || {
            stage.ask("shop", "SELECT 1").await.map(drop)
        })
        .await;
    assert!(stage.ask_with("shop", &before, "SELECT 1").await.is_err(), "the old one is refused");
    stage
        .long("a scheduled backup with the new password", async || {
            let db = stage.get("shop").await;
            let last = &db["status"]["lastBackup"];
            if last["succeeded"] == true { Ok(()) } else { Err(last.to_string()) }
        })
        .await;
    stage.tell("a Secret that is edited by hand is the server's password soon");
}

/// Writes all the time, as an application does; what was acknowledged has to stay.
async fn write_on(stage: &Stage, stop: &AtomicBool) -> Vec<u32> {
    let (mut acknowledged, mut next) = (Vec::new(), 10_000);
    while !stop.load(Ordering::Relaxed) {
        next += 1;
        if stage.ask("shop", &format!("INSERT INTO orders VALUES ({next})")).await.is_ok() {
            acknowledged.push(next);
        }
        briefly().await;
    }
    acknowledged
}

async fn the_operator_dies_in_an_upgrade(stage: &Stage, operator: &mut Process, account: &Path) {
    let stop = Arc::new(AtomicBool::new(false));
    let story = async {
        let new = &stage.images[1];
        stage.patch("shop", &json!({ "image": new }));
        for reason in ["BackingUp", "Loading"] {
            stage
                .long(reason, async || {
                    let db = stage.get("shop").await;
                    let told = db["status"]["conditions"].to_string();
                    if told.contains(reason) { Ok(()) } else { Err(told) }
                })
                .await;
            operator.kill();
            *operator = stage.bench.start_as(OPERATOR, account);
            stage.tell(format!("the operator is killed in an upgrade: {reason}"));
        }
        stage
            .long("upgraded", async || {
                let db = stage.get("shop").await;
                let status = &db["status"];
                let done =
                    status["setUp"] == **new && status["loads"].is_null() && stage::is_ready(&db);
                if done { Ok(()) } else { Err(status.to_string()) }
            })
            .await;
        stop.store(true, Ordering::Relaxed);
    };
    let ((), acknowledged) = tokio::join!(story, write_on(stage, &stop));
    let version = stage.sql("shop", "SHOW server_version").await;
    let there = stage.sql("shop", "SELECT count(*) FROM orders WHERE i <= 1002").await;
    assert_eq!(there, "1002");
    let there = stage.sql("shop", "SELECT i FROM orders WHERE i > 10000").await;
    let there: Vec<u32> = there.lines().map(|line| line.parse().unwrap()).collect();
    let lost: Vec<_> = acknowledged.iter().filter(|i| !there.contains(i)).collect();
    assert!(lost.is_empty(), "{lost:?} of {} were lost", acknowledged.len());
    assert!(stage.backups("shop").await.iter().any(|file| file.contains("-upgrade-")));
    stage.tell(format!(
        "PostgreSQL {version}: nothing is lost, of what was there and of {} rows written meanwhile",
        acknowledged.len()
    ));
}

async fn what_loses_data_is_refused(stage: &Stage) {
    for (reason, wrong, right) in [
        (
            "DowngradeRefused",
            json!({ "image": stage.images[0] }),
            json!({ "image": stage.images[1] }),
        ),
        ("StorageCannotChange", json!({ "storage-size": "2Gi" }), json!({ "storage-size": "1Gi" })),
    ] {
        stage.patch("shop", &wrong);
        stage
            .until("shop", reason, |db| {
                db["status"]["conditions"].to_string().contains(reason).then_some(())
            })
            .await;
        stage.patch("shop", &right);
        stage.ready("shop").await;
    }
    stage.tell("an older image and another size are refused, by conditions that say why");
}

async fn a_deletion_leaves_a_snapshot_that_can_be_restored(stage: &Stage) {
    let rows = stage.sql("shop", "SELECT count(*) FROM orders").await;
    stage.bench.kubectl(&["create", "job", "running", "--from=cronjob/shop-backup"]);
    stage.bench.kubectl(&["delete", "db", "shop", "--cascade=foreground", "--wait=false"]);
    stage.gone("shop").await;
    let files = stage.backups("shop").await;
    assert!(files.iter().any(|file| file.ends_with("-snapshot.dump")), "{files:?}");
    eventually("no server is left", async || {
        let left =
            stage.bench.kubectl(&["get", "statefulsets,pods,services,secrets", "-o", "name"]);
        if left.contains("shop") { Err(left) } else { Ok(()) }
    })
    .await;
    stage.tell(
        "deleted in the foreground while a backup ran: a snapshot first, then everything goes",
    );
    let more = json!({ "restore": {}, "snapshot": false, "replicas": 1, "backup": null });
    stage.apply(&manifest(stage, &stage.images[1], &more));
    stage.until("shop", "restored", |db| db["status"]["restored"].as_str().map(drop)).await;
    stage.ready("shop").await;
    assert_eq!(stage.sql("shop", "SELECT count(*) FROM orders").await, rows);
    stage.tell(format!("made anew, with all {rows} rows of the snapshot"));
    stage.bench.kubectl(&["delete", "db", "shop", "--wait=false"]);
    stage.gone("shop").await;
}
