//! Servers that go, Secrets that vanish, resources deleted by hand, and the operator killed at random:
//! it converges, with the rights of its manifests.

#![allow(clippy::unwrap_used)] // helpers of tests fail as tests do

mod support;

use std::path::Path;
use std::time::Duration;

use catamaran_testkit::{Dice, Server, becomes, eventually, vanishes};
use homelab::api::{MyResource, PostgresConnection, PostgresDatabase, Redis};
use k8s_openapi::api::core::v1::{Secret, Service};
use kube::Api;
use kube::api::{DeleteParams, ListParams};
use serde_json::json;
use support::{connect, create, inventory, login, prepared, ready};

const OPERATOR: &str = env!("CARGO_BIN_EXE_homelab");
const DATABASES: [&str; 3] = ["a", "b", "c"];

#[tokio::test]
async fn whatever_happens_it_converges() {
    let (bench, mut server) = (prepared("chaos").await, Server::postgres());
    let (databases, secrets): (Api<PostgresDatabase>, Api<Secret>) = (bench.api(), bench.api());
    let (connections, services): (Api<PostgresConnection>, Api<Service>) =
        (bench.api(), bench.api());
    let mut dice = Dice::new();
    let rights = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/config/rbac"));
    let account = bench.account("homelab", rights).await;
    // Tests run in the package's folder, where watches.yaml is.
    let start = || bench.start_as(OPERATOR, &account);
    let mut operator = start();
    connect(&bench, &server).await;
    let of_this = json!({ "connection": format!("{}/db", bench.namespace.name()) });
    for name in DATABASES {
        create::<PostgresDatabase>(&bench, name, of_this.clone()).await;
    }
    create::<MyResource>(&bench, "app", json!({ "hostname": "h", "port": 80 })).await;
    create::<Redis>(&bench, "redis", json!({})).await;
    let now = DeleteParams::default();
    for _ in 0..30 {
        let one = DATABASES[usize::try_from(dice.throw(3)).unwrap()];
        match dice.throw(6) {
            0 | 1 => {
                operator.kill();
                operator = start();
            }
            2 => {
                server.stop();
                tokio::time::sleep(Duration::from_millis(dice.throw(200))).await; // how long it is away
                server.start();
            }
            3 => _ = secrets.delete(&format!("{one}-connection"), &now).await,
            4 => _ = databases.delete(one, &now).await,
            _ => {
                _ = services.delete_collection(&now, &ListParams::default()).await;
                _ = connections.delete("db", &now).await;
                connect_again(&bench, &server).await;
            }
        }
        tokio::time::sleep(Duration::from_millis(dice.throw(300))).await; // pace, not a wait
    }
    for name in DATABASES {
        // What was deleted has to be gone before it can be made again.
        eventually(&format!("{name} is whole"), async || match databases.get_opt(name).await {
            Ok(Some(found)) if found.metadata.deletion_timestamp.is_none() => Ok(()),
            Ok(Some(found)) => Err(format!("{found:?}")),
            _ => {
                create::<PostgresDatabase>(&bench, name, of_this.clone()).await;
                Ok(())
            }
        })
        .await;
    }
    let mut wanted = Vec::new();
    for name in DATABASES {
        becomes(&databases, name, "Ready", |database| ready(database).0 == "True").await;
        let login = login(&secrets, name).await;
        eventually("the Secret opens it", async || {
            login.run("CREATE TABLE IF NOT EXISTS t (i int)").await.map_err(|e| e.to_string())
        })
        .await;
        wanted.push(format!("database {}", login.database));
        wanted.push(format!("role {}", login.database));
    }
    wanted.sort();
    assert_eq!(inventory(&server).await, wanted, "nothing half made is left");
    let (apps, redises): (Api<MyResource>, Api<Redis>) = (bench.api(), bench.api());
    becomes(&apps, "app", "Ready", |app| ready(app).0 == "True").await;
    becomes(&redises, "redis", "Ready", |redis| ready(redis).0 == "True").await;
    for name in DATABASES {
        databases.delete(name, &now).await.unwrap();
        vanishes(&databases, name).await;
    }
    assert_eq!(inventory(&server).await, [""; 0]);
    let log = operator.log();
    // Admission that does not know a new kind yet says the same word, and something else.
    let forbidden = |line: &str| line.contains("is forbidden") && !line.contains("RESTMapping");
    assert!(!log.lines().any(forbidden), "{log}");
    assert!(!log.contains(&server.password), "a password is in the log");
}

async fn connect_again(bench: &catamaran_testkit::Bench, server: &Server) {
    let connections: Api<PostgresConnection> = bench.api();
    vanishes(&connections, "db").await;
    connect(bench, server).await;
}
