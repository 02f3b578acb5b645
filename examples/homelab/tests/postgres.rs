//! Databases on a real PostgreSQL server.

#![allow(clippy::unwrap_used)] // helpers of tests fail as tests do

mod support;

use catamaran_testkit::{Authority, Server, becomes, eventually, vanishes};
use homelab::api::{PostgresConnection, PostgresDatabase};
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use support::{Lab, Login, condition, connect_by, inventory, login, ready};

#[tokio::test]
async fn a_database_has_a_role_of_least_rights_and_goes_with_its_resource() {
    let (lab, server) = (Lab::start("database").await, Server::postgres());
    lab.connect(&server).await;
    becomes(&lab.connections, "db", "Ready", |c| ready(c).0 == "True").await;
    lab.apply_sample("postgresdatabase.yaml");
    let mine = lab.ready("test2").await;
    assert_eq!(mine.database, format!("{}_test2", lab.bench.namespace.name()));
    lab.database("other", None).await;
    let other = lab.ready("other").await;

    // What an application does.
    mine.run("CREATE TABLE t (i int); INSERT INTO t VALUES (1); CREATE SCHEMA s").await.unwrap();
    // And what it may not.
    let asked = "SELECT rolsuper OR rolcreatedb OR rolcreaterole OR rolreplication OR rolbypassrls \
        FROM pg_roles WHERE rolname = current_user";
    assert!(!mine.connect().await.query_one(asked, &[]).await.unwrap().get::<_, bool>(0));
    let elsewhere = Login { database: other.database.clone(), ..mine.clone() };
    for wrong in [
        elsewhere.run("").await,
        mine.run(&format!("DROP DATABASE \"{}\"", other.database)).await,
        mine.run(&format!("DROP DATABASE \"{}\"", mine.database)).await,
        mine.run(&format!("ALTER DATABASE \"{}\" RENAME TO mine", mine.database)).await,
        mine.run("CREATE ROLE r").await,
    ] {
        assert!(wrong.is_err());
    }

    // Nothing is asked of the API server while nothing moves, also when the server is asked.
    let mark = lab.quiet().await;
    lab.poll();
    lab.quiet().await;
    assert_eq!(lab.bench.requests("homelab", mark), [""; 0]);

    // An application that is still connected does not keep it.
    let _connected = mine.connect().await;
    for name in ["test2", "other"] {
        lab.delete(&lab.databases, name).await;
        vanishes(&lab.databases, name).await;
    }
    assert_eq!(inventory(&server).await, [""; 0]);
    assert!(!server.log().contains(&mine.password), "no password is in the server's log");
}

#[tokio::test]
async fn wrong_passwords_are_told_and_the_secret_is_what_counts() {
    let (lab, server) = (Lab::start("passwords").await, Server::postgres());
    lab.connect(&server).await;
    lab.secret("db-admin", json!({ "username": "postgres", "password": "wrong" })).await;
    let told =
        becomes(&lab.connections, "db", "told", |c| ready(c).1 == "AuthenticationFailed").await;
    assert!(ready(&told).2.contains("password authentication failed"), "{told:?}");
    assert!(!format!("{told:?}").contains(&server.password));
    lab.database("mine", None).await;
    lab.told("mine", "WaitingForDependency").await;
    // Its Secret is corrected: nobody waits for the next poll.
    lab.secret("db-admin", json!({ "username": "postgres", "password": server.password })).await;
    let first = lab.ready("mine").await;

    // By hand: a password of somebody's own is the role's from then on.
    lab.secret("mine-connection", json!({ "password": "by hand / ü" })).await;
    let by_hand = Login { password: "by hand / ü".to_owned(), ..first.clone() };
    eventually("the role has the password", async || {
        by_hand.run("").await.map_err(|e| e.to_string())
    })
    .await;
    assert!(first.run("").await.is_err());
    eventually("the url follows", async || {
        let url = login(&lab.secrets, "mine").await.url;
        if url.contains("by%20hand%20%2F%20%C3%BC@") { Ok(()) } else { Err(url) }
    })
    .await;
    // What follows from elsewhere is put back.
    lab.secret("mine-connection", json!({ "host": "example.com" })).await;
    eventually("the host is put back", async || {
        let url = lab.secrets.get("mine-connection").await.unwrap().data.unwrap();
        if url["host"].0 == b"127.0.0.1" { Ok(()) } else { Err(format!("{:?}", url["host"])) }
    })
    .await;
    // Deleted: made anew, and the role's.
    lab.delete(&lab.secrets, "mine-connection").await;
    eventually("another password", async || {
        let secret = lab.secrets.get_opt("mine-connection").await.unwrap();
        let data = secret.and_then(|secret| secret.data).unwrap_or_default();
        if !data.contains_key("url") {
            return Err("no Secret yet".to_owned());
        }
        login(&lab.secrets, "mine").await.run("").await.map_err(|error| error.to_string())
    })
    .await;
    assert!(by_hand.run("").await.is_err());
    // A key that is missing is told, and not guessed.
    lab.delete(&lab.secrets, "db-admin").await;
    becomes(&lab.connections, "db", "told", |c| ready(c).1 == "MissingDependency").await;
    lab.secret("db-admin", json!({ "username": "postgres" })).await;
    becomes(&lab.connections, "db", "told", |c| ready(c).1 == "IncompleteSecret").await;
}

#[tokio::test]
async fn a_server_that_comes_and_goes_is_told_of_and_used_again() {
    let (lab, mut server) = (Lab::start("flaps").await, Server::postgres());
    lab.connect(&server).await;
    let _ticking = lab.ticking();
    lab.database("mine", None).await;
    let mine = lab.ready("mine").await;
    mine.run("CREATE TABLE t (i int)").await.unwrap();
    for _ in 0..3 {
        server.stop();
        becomes(&lab.connections, "db", "down", |c| ready(c).1 == "Unreachable").await;
        becomes(&lab.databases, "mine", "down", |d| ready(d).0 == "False").await;
        server.start();
        becomes(&lab.connections, "db", "up", |c| ready(c).0 == "True").await;
        assert_eq!(lab.ready("mine").await.password, mine.password, "nothing is drawn anew");
    }
    mine.run("SELECT * FROM t").await.unwrap();

    // Deleted while the server is away: it waits, says so, and cleans up when the server is back.
    server.stop();
    lab.delete(&lab.databases, "mine").await;
    lab.told("mine", "Unreachable").await;
    server.start();
    vanishes(&lab.databases, "mine").await;
    assert_eq!(inventory(&server).await, [""; 0]);
}

#[tokio::test]
async fn what_belongs_to_others_is_left_to_them() {
    let (lab, server) = (Lab::start("clash").await, Server::postgres());
    let postgres = Login::administrator(&server, "postgres");
    postgres.run("CREATE DATABASE theirs").await.unwrap();
    postgres.run("CREATE ROLE somebody LOGIN PASSWORD 'x'").await.unwrap();
    let theirs = Login::administrator(&server, "theirs");
    theirs.run("CREATE TABLE precious (i int)").await.unwrap();
    lab.connect(&server).await;
    let _ticking = lab.ticking();
    let before = inventory(&server).await;

    for (name, database) in [("a", "theirs"), ("b", "somebody"), ("c", "postgres")] {
        lab.database(name, Some(database)).await;
        let told = lab.told(name, "NameTaken").await;
        assert!(ready(&told).2.contains(database), "{told:?}");
        lab.delete(&lab.databases, name).await;
        vanishes(&lab.databases, name).await;
    }
    assert_eq!(inventory(&server).await, before);
    theirs.run("SELECT * FROM precious").await.unwrap();

    // Of two resources that want one name the first has it; when it goes, the second gets it.
    lab.database("first", Some("wanted")).await;
    let first = lab.ready("first").await;
    lab.database("second", Some("wanted")).await;
    assert!(ready(&lab.told("second", "NameTaken").await).2.contains("/first"));
    first.run("CREATE TABLE mine (i int)").await.unwrap();

    // Somebody keeps a table of their own in our database.
    let inside = Login::administrator(&server, "wanted");
    inside.run("CREATE TABLE kept (i int)").await.unwrap();
    lab.delete(&lab.databases, "first").await;
    let told = lab.told("first", "HoldsOthersData").await;
    assert!(ready(&told).2.contains("kept"), "{told:?}");
    inside.run("SELECT * FROM kept; SELECT * FROM mine; DROP TABLE kept").await.unwrap();
    vanishes(&lab.databases, "first").await;
    let second = lab.ready("second").await;
    assert!(second.run("SELECT * FROM mine").await.is_err(), "another database of that name");

    // It cannot be moved: its data would be nobody's.
    let patch = Patch::Merge(json!({ "spec": { "database": "elsewhere" } }));
    lab.databases.patch("second", &PatchParams::default(), &patch).await.unwrap();
    lab.told("second", "CannotMove").await;
    lab.delete(&lab.databases, "second").await;
    vanishes(&lab.databases, "second").await;
    assert_eq!(inventory(&server).await, before);
}

#[tokio::test]
async fn a_database_whose_dropping_was_cut_short_is_dropped_again() {
    let (lab, server) = (Lab::start("halfdropped").await, Server::postgres());
    lab.connect(&server).await;
    let administrator = Login::administrator(&server, "postgres");
    for name in ["goes", "stays"] {
        lab.database(name, Some(name)).await;
        lab.ready(name).await.run("CREATE TABLE t (i int)").await.unwrap();
        // As PostgreSQL leaves it when a server or its client dies within DROP DATABASE.
        let cut = format!("UPDATE pg_database SET datconnlimit = -2 WHERE datname = '{name}'");
        administrator.run(&cut).await.unwrap();
    }
    lab.delete(&lab.databases, "goes").await;
    vanishes(&lab.databases, "goes").await;
    // The other one may be dropped and made anew at any time.
    let left = inventory(&server).await;
    assert!(left.iter().all(|it| !it.contains("goes")), "{left:?}");

    // Nobody can read it any more: one that is still wanted is made anew.
    lab.poll();
    let stays = login(&lab.secrets, "stays").await;
    eventually("it can be used again", async || {
        stays.run("CREATE TABLE t (i int)").await.map_err(|error| error.to_string())
    })
    .await;
}

#[tokio::test]
async fn hostile_names_are_names() {
    let (lab, server) = (Lab::start("hostile").await, Server::postgres());
    lab.connect(&server).await;
    let names = [
        "x\"; DROP DATABASE postgres; --",
        "'); DROP ROLE postgres; --",
        "select",
        "Ünïcödé 数据库",
        "back\\slash 'and' \"quotes\"",
        "a/b?c=d&e@f:g#h%20",
        " ",
    ];
    for (number, name) in names.iter().enumerate() {
        lab.database(&format!("d{number}"), Some(name)).await;
    }
    for (number, name) in names.iter().enumerate() {
        let login = lab.ready(&format!("d{number}")).await;
        assert_eq!(login.database, *name);
        login.run("CREATE TABLE t (i int)").await.unwrap();
        // Every client reads the same from the URL.
        let config: tokio_postgres::Config = login.url.parse().unwrap();
        assert_eq!((config.get_dbname(), config.get_user()), (Some(*name), Some(*name)));
    }
    assert_eq!(inventory(&server).await.len(), 2 * names.len());
    for number in 0..names.len() {
        lab.delete(&lab.databases, &format!("d{number}")).await;
        vanishes(&lab.databases, &format!("d{number}")).await;
    }
    assert_eq!(inventory(&server).await, [""; 0]);

    // Reserved by the server, too long for it: said, and nothing is made.
    lab.database("reserved", Some("pg_mine")).await;
    lab.told("reserved", "Refused").await;
    lab.database("long", Some(&"ü".repeat(40))).await;
    let told = becomes(&lab.databases, "long", "told", |d| ready(d).0 == "False").await;
    assert!(ready(&told).2.contains("63 bytes"), "{told:?}");
    assert_eq!(inventory(&server).await, [""; 0]);
}

#[tokio::test]
async fn a_connection_that_vanishes_is_waited_for() {
    let (lab, server) = (Lab::start("vanishes").await, Server::postgres());
    lab.database("mine", None).await;
    let told = lab.told("mine", "MissingDependency").await;
    assert!(condition(&told, "Database").2.contains("PostgresConnection"), "{told:?}");
    lab.connect(&server).await;
    let mine = lab.ready("mine").await;

    lab.delete(&lab.connections, "db").await;
    lab.told("mine", "MissingDependency").await;
    mine.run("CREATE TABLE t (i int)").await.unwrap();
    lab.delete(&lab.databases, "mine").await;
    becomes(&lab.databases, "mine", "waits", |database: &PostgresDatabase| {
        database.metadata.deletion_timestamp.is_some() && ready(database).1 == "MissingDependency"
    })
    .await;
    mine.run("SELECT * FROM t").await.unwrap();
    lab.connect(&server).await;
    vanishes(&lab.databases, "mine").await;
    assert_eq!(inventory(&server).await, [""; 0]);

    // One that never came to anything goes at once.
    lab.delete(&lab.connections, "db").await;
    lab.database("never", None).await;
    let never = lab.told("never", "MissingDependency").await;
    assert_eq!(never.finalizers().len(), 1);
    lab.delete(&lab.databases, "never").await;
    vanishes(&lab.databases, "never").await;
}

#[tokio::test]
async fn an_administrator_needs_no_more_than_making_databases_and_roles() {
    let (lab, server) = (Lab::start("least").await, Server::postgres());
    let postgres = Login::administrator(&server, "postgres");
    postgres.run("CREATE ROLE maker LOGIN CREATEDB CREATEROLE PASSWORD 'm'").await.unwrap();
    lab.secret("db-admin", json!({ "username": "maker", "password": "m" })).await;
    let spec = json!({ "host": "127.0.0.1", "port": server.port, "secret": "db-admin",
        "tls": { "mode": "Disable" } });
    lab.create::<homelab::api::PostgresConnection>("db", spec).await;
    lab.database("mine", None).await;
    let mine = lab.ready("mine").await;
    mine.run("CREATE TABLE t (i int)").await.unwrap();
    lab.delete(&lab.databases, "mine").await;
    vanishes(&lab.databases, "mine").await;
    assert_eq!(inventory(&server).await, ["role maker"]);
}

#[tokio::test]
async fn a_connection_over_tls_is_ready_only_if_the_servers_certificate_is_verified() {
    let lab = Lab::start("tls").await;
    let (authority, other) = (Authority::default(), Authority::default());
    let identity = authority.issue(&["127.0.0.1"]);
    let server = Server::postgres_with_tls(&identity);
    let elsewhere = Server::postgres_with_tls(&authority.issue(&["db.example.com"]));
    let expired = Server::postgres_with_tls(&authority.issue_expired(&["127.0.0.1"]));
    let without = Server::postgres();
    lab.secret("db-admin", json!({ "username": Server::USER, "password": server.password })).await;
    lab.secret("ca", json!({ "ca.crt": authority.certificate() })).await;
    lab.secret("other-ca", json!({ "ca.crt": other.certificate() })).await;
    lab.secret("no-ca", json!({ "ca.crt": "none" })).await;

    let by = |secret: &str| json!({ "caSecret": secret });
    let plain = json!({ "mode": "Disable" });
    for (name, server, tls, reason, message) in [
        ("other-authority", &server, by("other-ca"), "TlsVerificationFailed", "UnknownIssuer"),
        ("other-name", &elsewhere, by("ca"), "TlsVerificationFailed", "not valid for name"),
        ("expired", &expired, by("ca"), "TlsVerificationFailed", "expired"),
        ("no-secret", &server, by("absent"), "MissingDependency", "absent"),
        ("no-certificate", &server, by("no-ca"), "IncompleteSecret", "ca.crt"),
        ("server-without-tls", &without, by("ca"), "Unreachable", "TLS"),
        ("plain", &server, plain, "AuthenticationFailed", "no encryption"),
    ] {
        connect_by(&lab.bench, name, server, tls).await;
        let told = becomes(&lab.connections, name, reason, |c| ready(c).1 == reason).await;
        assert!(ready(&told).2.contains(message), "{name}: {:?}", ready(&told));
    }
    // A connection made before there was `spec.tls` is not opened unencrypted.
    let old = json!({ "host": "127.0.0.1", "port": without.port, "secret": "db-admin" });
    lab.create::<PostgresConnection>("old", old).await;
    becomes(&lab.connections, "old", "refused", |c| ready(c).1 == "TlsNotConfigured").await;

    // The authority that the Secret names is what counts, also when it changes.
    connect_by(&lab.bench, "db", &server, by("ca")).await;
    becomes(&lab.connections, "db", "Ready", |c| ready(c).0 == "True").await;
    lab.secret("other-ca", json!({ "ca.crt": authority.certificate() })).await;
    becomes(&lab.connections, "other-authority", "Ready", |c| ready(c).0 == "True").await;

    // A database made through it tells applications how to verify the server.
    lab.database("mine", None).await;
    becomes(&lab.databases, "mine", "Ready", |resource| ready(resource).0 == "True").await;
    let data = lab.secrets.get("mine-connection").await.unwrap().data.unwrap();
    assert_eq!(data["sslmode"].0, b"verify-full");
    assert_eq!(data["ca.crt"].0, authority.certificate().into_bytes());
    assert!(data["url"].0.ends_with(b"?sslmode=verify-full"));
}
