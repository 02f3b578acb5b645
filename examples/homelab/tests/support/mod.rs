//! The operator in a namespace, and servers outside.

#![allow(dead_code)] // each test binary uses some of it

use std::fmt::Debug;
use std::time::Duration;

use catamaran_testkit::{Bench, ESTABLISHED, HeldClock, Running, Server, becomes};
use homelab::api::{PostgresConnection, PostgresDatabase, definitions};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::core::NamespaceResourceScope;
use kube::{Api, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio_postgres::{Client, NoTls};

pub const CONFIG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/config");

/// A namespace with the operator in it and the clock it lives by.
pub struct Lab {
    pub bench: Bench,
    pub clock: HeldClock,
    pub secrets: Api<Secret>,
    pub connections: Api<PostgresConnection>,
    pub databases: Api<PostgresDatabase>,
    _operator: Running,
}

impl Lab {
    pub async fn start(name: &str) -> Self {
        let bench = prepared(name).await;
        let clock = HeldClock::default();
        let operator = bench.run(|mut options| {
            options.watches_file =
                Some(concat!(env!("CARGO_MANIFEST_DIR"), "/watches.yaml").into());
            homelab::manager(options).clock(clock.clock())
        });
        let (secrets, connections, databases) = (bench.api(), bench.api(), bench.api());
        Self { bench, clock, secrets, connections, databases, _operator: operator }
    }

    /// The time after which servers are asked again.
    pub fn poll(&self) {
        self.clock.advance(homelab::POLL);
    }

    /// The same again and again, for as long as the guard lives: a poll may come too early for who has
    /// not yet gone to sleep.
    pub fn ticking(&self) -> Ticking {
        let clock = self.clock.clone();
        Ticking(tokio::spawn(async move {
            loop {
                clock.advance(homelab::POLL);
                tokio::time::sleep(Duration::from_millis(200)).await; // pace, not a wait
            }
        }))
    }

    /// A sample of the document, in this namespace instead of its own.
    pub fn apply_sample(&self, file: &str) {
        apply_sample(&self.bench, file);
    }

    pub async fn create<K>(&self, name: &str, spec: Value) -> K
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + Debug
            + Serialize
            + DeserializeOwned,
    {
        create(&self.bench, name, spec).await
    }

    pub async fn secret(&self, name: &str, data: Value) {
        secret(&self.bench, name, data).await;
    }

    /// A connection `db` to a server, whose administrator is its superuser.
    pub async fn connect(&self, server: &Server) {
        connect(&self.bench, server).await;
    }

    pub async fn database(&self, name: &str, database: Option<&str>) {
        let mut spec = json!({ "connection": format!("{}/db", self.bench.namespace.name()) });
        if let Some(database) = database {
            spec["database"] = database.into();
        }
        self.create::<PostgresDatabase>(name, spec).await;
    }

    /// Waits until Ready has this reason.
    pub async fn told(&self, database: &str, reason: &str) -> PostgresDatabase {
        becomes(&self.databases, database, reason, |resource| ready(resource).1 == reason).await
    }

    /// Waits for a database, and what its Secret says.
    pub async fn ready(&self, database: &str) -> Login {
        becomes(&self.databases, database, "Ready", |resource| ready(resource).0 == "True").await;
        login(&self.secrets, database).await
    }

    pub async fn delete<K>(&self, api: &Api<K>, name: &str)
    where
        K: Resource + Clone + Debug + DeserializeOwned,
    {
        api.delete(name, &DeleteParams::default()).await.unwrap();
    }

    pub async fn quiet(&self) -> catamaran_testkit::Mark {
        self.bench.quiet("homelab", Duration::from_secs(1)).await
    }
}

/// What the Secret of a database says.
pub async fn login(secrets: &Api<Secret>, database: &str) -> Login {
    let data = secrets.get(&format!("{database}-connection")).await.unwrap().data.unwrap();
    let text = |key: &str| String::from_utf8(data[key].0.clone()).unwrap();
    Login {
        port: text("port").parse().unwrap(),
        database: text("database"),
        user: text("username"),
        password: text("password"),
        url: text("url"),
    }
}

/// Time goes by.
pub struct Ticking(tokio::task::JoinHandle<()>);

impl Drop for Ticking {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A namespace that knows the operator's kinds.
pub async fn prepared(name: &str) -> Bench {
    let bench = Bench::new(name, &definitions()).await;
    let redis = format!("{CONFIG}/crd/homelab.mortenolsen.pro_redises.yaml");
    bench.kubectl(&["apply", "--server-side", "-f", &redis]);
    bench.kubectl(&["wait", ESTABLISHED, "-f", &redis]);
    bench
}

pub fn apply_sample(bench: &Bench, file: &str) {
    let namespace = bench.namespace.name();
    let text = std::fs::read_to_string(format!("{CONFIG}/samples/{file}")).unwrap();
    let text = ["default", "homelab"].iter().fold(text, |text, theirs| {
        text.replace(&format!("namespace: {theirs}\n"), &format!("namespace: {namespace}\n"))
    });
    let text = text.replace("homelab/db", &format!("{namespace}/db"));
    let mine = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(mine.path(), text).unwrap();
    bench.kubectl(&["apply", "-f", &mine.path().display().to_string()]);
}

pub async fn create<K>(bench: &Bench, name: &str, spec: Value) -> K
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + Serialize
        + DeserializeOwned,
{
    let object = json!({ "apiVersion": K::api_version(&()), "kind": K::kind(&()),
        "metadata": { "name": name }, "spec": spec });
    let object: K = serde_json::from_value(object).unwrap();
    bench.api().create(&PostParams::default(), &object).await.unwrap()
}

pub async fn secret(bench: &Bench, name: &str, data: Value) {
    let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name },
        "stringData": data });
    let params = PatchParams::apply("test").force();
    let secrets: Api<Secret> = bench.api();
    secrets.patch(name, &params, &Patch::Apply(secret)).await.unwrap();
}

pub async fn connect(bench: &Bench, server: &Server) {
    let credentials = json!({ "username": Server::USER, "password": server.password });
    secret(bench, "db-admin", credentials).await;
    connect_by(bench, "db", server, json!({ "mode": "Disable" })).await;
}

/// A connection whose Secret `db-admin` is there already.
pub async fn connect_by(bench: &Bench, name: &str, server: &Server, tls: Value) {
    let spec =
        json!({ "host": "127.0.0.1", "port": server.port, "secret": "db-admin", "tls": tls });
    create::<PostgresConnection>(bench, name, spec).await;
}

/// What an application reads from a Secret.
#[derive(Clone, Debug)]
pub struct Login {
    pub port: u16,
    pub database: String,
    pub user: String,
    pub password: String,
    pub url: String,
}

impl Login {
    pub fn administrator(server: &Server, database: &str) -> Self {
        Self {
            port: server.port,
            database: database.to_owned(),
            user: Server::USER.to_owned(),
            password: server.password.clone(),
            url: String::new(),
        }
    }

    pub async fn try_connect(&self) -> Result<Client, tokio_postgres::Error> {
        let mut config = tokio_postgres::Config::new();
        config.host("127.0.0.1").port(self.port).dbname(&self.database);
        let connected = config.user(&self.user).password(&self.password).connect(NoTls).await?;
        tokio::spawn(connected.1);
        Ok(connected.0)
    }

    pub async fn connect(&self) -> Client {
        self.try_connect().await.unwrap()
    }

    pub async fn run(&self, statements: &str) -> Result<(), tokio_postgres::Error> {
        self.try_connect().await?.batch_execute(statements).await
    }
}

/// The databases and roles on a server that are not its own.
pub async fn inventory(server: &Server) -> Vec<String> {
    let client = Login::administrator(server, "postgres").connect().await;
    let asked = "SELECT 'database ' || datname FROM pg_database WHERE oid >= 16384 \
        UNION ALL SELECT 'role ' || rolname FROM pg_roles WHERE oid >= 16384 ORDER BY 1";
    let rows = client.query(asked, &[]).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

/// Status, reason and message of a condition.
pub fn condition<K: Serialize>(resource: &K, type_: &str) -> (String, String, String) {
    let object = serde_json::to_value(resource).unwrap();
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    let found = conditions.into_iter().flatten().find(|condition| condition["type"] == type_);
    let text = |key: &str| {
        found.and_then(|condition| condition[key].as_str()).unwrap_or_default().to_owned()
    };
    (text("status"), text("reason"), text("message"))
}

pub fn ready<K: Serialize>(resource: &K) -> (String, String, String) {
    condition(resource, "Ready")
}
