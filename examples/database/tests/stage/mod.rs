//! A real node with images of PostgreSQL, volumes, names, and a person at psql.

#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests fail as tests do

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use catamaran_localcluster::LocalCluster;
use catamaran_testkit::{Bench, Names, eventually};
use database::api::{Database, definitions};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod, Secret, Service};
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

/// What takes minutes by its nature, such as a Secret's way into a pod.
const LONG: Duration = Duration::from_mins(4);

pub struct Stage {
    pub bench: Bench,
    /// Two images of PostgreSQL, the older one first.
    pub images: Vec<String>,
    volumes: tempfile::TempDir,
    begun: Instant,
    _names: Names,
}

impl Stage {
    pub async fn up() -> Self {
        let setting = |name: &str| {
            std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set: use make e2e"))
        };
        let archives = PathBuf::from(setting("CATAMARAN_E2E_ARCHIVES"));
        let images = setting("CATAMARAN_E2E_POSTGRES");
        let images: Vec<_> = images.split_whitespace().map(str::to_owned).collect();
        let begun = Instant::now();
        let cluster = LocalCluster::builder().real_node().start().await;
        let cluster = cluster.unwrap_or_else(|error| panic!("no real node: {error}"));
        for number in 1..=images.len() {
            let archive = archives.join(format!("postgres-{number}.tar"));
            cluster.real_node().unwrap().load_image(&archive).await.unwrap();
        }
        let names = Names::serve(&cluster).await;
        let bench = Bench::on(cluster, "database", &definitions()).await;
        let volumes = tempfile::tempdir().unwrap();
        let stage = Self { bench, images, volumes, begun, _names: names };
        stage.make_volumes(12).await;
        stage.tell("a real node is up, with images, names and volumes");
        stage
    }

    /// Folders of this machine that everybody may write to, for whoever claims one.
    async fn make_volumes(&self, count: usize) {
        let open = |path: &std::path::Path| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).unwrap();
        };
        open(self.volumes.path());
        let volumes: Api<PersistentVolume> = Api::all(self.bench.client());
        for number in 0..count {
            let path = self.volumes.path().join(number.to_string());
            std::fs::create_dir(&path).unwrap();
            open(&path);
            let name = format!("volume-{number}");
            let volume = json!({
                "apiVersion": "v1", "kind": "PersistentVolume", "metadata": { "name": name },
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "capacity": { "storage": "2Gi" },
                    "hostPath": { "path": path },
                },
            });
            let params = PatchParams::apply("stage").force();
            volumes.patch(&name, &params, &Patch::Apply(volume)).await.unwrap();
        }
    }

    /// Says what has just been seen to be so.
    pub fn tell(&self, what: impl AsRef<str>) {
        println!("{:7.1}s  {}", self.begun.elapsed().as_secs_f64(), what.as_ref());
    }

    pub fn apply(&self, manifest: &Value) {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), manifest.to_string()).unwrap();
        self.bench.kubectl(&["apply", "-f", &file.path().display().to_string()]);
    }

    pub fn patch(&self, name: &str, spec: &Value) {
        let patch = json!({ "spec": spec }).to_string();
        self.bench.kubectl(&["patch", "db", name, "--type=merge", "-p", &patch]);
    }

    pub async fn get(&self, name: &str) -> Value {
        let databases: Api<Database> = self.bench.api();
        serde_json::to_value(databases.get(name).await.unwrap()).unwrap()
    }

    /// Waits until a database is as `want` wants it.
    pub async fn until<T>(&self, name: &str, what: &str, want: impl Fn(&Value) -> Option<T>) -> T {
        self.long(what, async || {
            let database = self.get(name).await;
            want(&database).ok_or_else(|| database["status"].to_string())
        })
        .await
    }

    pub async fn gone(&self, name: &str) {
        let databases: Api<Database> = self.bench.api();
        self.long("gone", async || match databases.get_opt(name).await {
            Ok(None) => Ok(()),
            Ok(Some(database)) => Err(format!("{:?}", database.status)),
            Err(error) => Err(error.to_string()),
        })
        .await;
    }

    /// As `eventually`, for what takes its time.
    pub async fn long<T>(&self, what: &str, mut look: impl AsyncFnMut() -> Result<T, String>) -> T {
        let begun = Instant::now();
        loop {
            match look().await {
                Ok(found) => return found,
                Err(instead) if begun.elapsed() > LONG => {
                    let pods = self.bench.kubectl(&["get", "pods", "-o", "wide"]);
                    panic!("not within {LONG:?}: {what}; instead: {instead}\n{pods}")
                }
                Err(_) => briefly().await,
            }
        }
    }

    /// Waits until a database is Ready, as its spec is now.
    pub async fn ready(&self, name: &str) {
        self.until(name, "Ready", |database| is_ready(database).then_some(())).await;
    }

    pub async fn password(&self, name: &str) -> String {
        let secrets: Api<Secret> = self.bench.api();
        let secret = secrets.get(&format!("{name}-credentials")).await.unwrap();
        String::from_utf8(secret.data.unwrap()["password"].0.clone()).unwrap()
    }

    /// psql at the Service, with what the Secret says.
    pub async fn ask(&self, name: &str, statement: &str) -> Result<String, String> {
        let password = self.password(name).await;
        self.ask_with(name, &password, statement).await
    }

    pub async fn ask_with(
        &self,
        name: &str,
        password: &str,
        statement: &str,
    ) -> Result<String, String> {
        let services: Api<Service> = self.bench.api();
        let service = services.get(name).await.map_err(|error| error.to_string())?;
        psql(&service.spec.unwrap().cluster_ip.unwrap(), password, statement).await
    }

    /// The same, where it has to go well.
    pub async fn sql(&self, name: &str, statement: &str) -> String {
        let what = format!("psql: {statement}");
        eventually(&what, async || self.ask(name, statement).await).await
    }

    /// psql at a pod of the database `shop`.
    pub async fn ask_pod(&self, pod: &str, statement: &str) -> Result<String, String> {
        let pods: Api<Pod> = self.bench.api();
        let pod = pods.get(pod).await.map_err(|error| error.to_string())?;
        let address = pod.status.and_then(|status| status.pod_ip).ok_or("no address yet")?;
        psql(&address, &self.password("shop").await, statement).await
    }

    /// Looks all the time at who takes writes.
    pub fn watch_primaries(&self, name: &str) -> OnePrimary {
        let (pods, secrets): (Api<Pod>, Api<Secret>) = (self.bench.api(), self.bench.api());
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, name) = (stop.clone(), name.to_owned());
        let task = tokio::spawn(async move {
            let mut looks = 0;
            while !stopped.load(Ordering::Relaxed) {
                let secret = secrets.get(&format!("{name}-credentials")).await;
                let Ok(secret) = secret else { continue };
                let password =
                    String::from_utf8(secret.data.unwrap()["password"].0.clone()).unwrap();
                let asks = (0..2).map(|number| {
                    let (pods, pod, password) =
                        (pods.clone(), format!("{name}-{number}"), &password);
                    async move {
                        let address = pods.get_opt(&pod).await.ok()??.status?.pod_ip?;
                        psql(&address, password, "SELECT pg_is_in_recovery()").await.ok()
                    }
                });
                let (first, second) = {
                    let mut asks = asks;
                    tokio::join!(asks.next().unwrap(), asks.next().unwrap())
                };
                let both = first.as_deref() == Some("f") && second.as_deref() == Some("f");
                assert!(!both, "two servers take writes");
                looks += 1;
                briefly().await;
            }
            looks
        });
        OnePrimary { stop, task }
    }

    /// The files on the volume of backups, as this machine sees them.
    pub async fn backups(&self, name: &str) -> Vec<String> {
        let claims: Api<PersistentVolumeClaim> = self.bench.api();
        let claim = claims.get(&format!("{name}-backups")).await.unwrap();
        let volume = claim.spec.unwrap().volume_name.unwrap();
        let number = volume.trim_start_matches("volume-");
        let entries = std::fs::read_dir(self.volumes.path().join(number)).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

/// Sees that never do two servers take writes.
pub struct OnePrimary {
    stop: Arc<AtomicBool>,
    task: JoinHandle<usize>,
}

impl OnePrimary {
    pub async fn ends(self) {
        self.stop.store(true, Ordering::Relaxed);
        let looks = self.task.await.unwrap();
        assert!(looks > 20, "{looks} looks were too few");
        println!("          never did two servers take writes: {looks} looks");
    }
}

async fn psql(host: &str, password: &str, statement: &str) -> Result<String, String> {
    let mut psql = tokio::process::Command::new("psql");
    psql.args([
        "--no-psqlrc",
        "-tA",
        "-q",
        "-v",
        "ON_ERROR_STOP=1",
        "-U",
        "postgres",
        "-d",
        "shop",
    ]);
    psql.args(["-h", host, "-p", "5432", "-c", statement]).env("PGPASSWORD", password);
    psql.env("PGCONNECT_TIMEOUT", "2").stdin(Stdio::null()).kill_on_drop(true);
    let limit = Duration::from_secs(20);
    let output = tokio::time::timeout(limit, psql.output()).await.map_err(|_| "no answer")?;
    let output = output.map_err(|error| format!("psql: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    Err(String::from_utf8_lossy(&output.stderr).into_owned())
}

pub fn is_ready(database: &Value) -> bool {
    let generation = database["metadata"]["generation"].as_i64();
    let conditions = database["status"]["conditions"].as_array();
    database["status"]["observedGeneration"].as_i64() == generation
        && conditions.into_iter().flatten().any(|c| c["type"] == "Ready" && c["status"] == "True")
}

/// Pace where there is no object to wait for.
pub async fn briefly() {
    tokio::time::sleep(Duration::from_millis(100)).await;
}
