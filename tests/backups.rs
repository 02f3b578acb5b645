//! What memcached holds, written and read back: by the program on a real server, and by what a
//! MemcachedBackup keeps in a cluster for it.

#![allow(clippy::unwrap_used)] // helpers of tests fail as tests do

mod support;

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Output};

use catamaran_testkit::Server;
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use support::{Bench, becomes, condition, eventually, vanishes};

fn run(server: &Server, arguments: &[&str]) -> Output {
    let (command, arguments) = arguments.split_first().unwrap();
    let mut program = Command::new(env!("CARGO_BIN_EXE_memcached-operator"));
    program.args([command, "--host", "127.0.0.1", "--port", &server.port.to_string()]);
    program.args(arguments).output().unwrap()
}

fn report(output: &Output) -> Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Says a line, with what follows it; the answer's first line.
fn say(server: &Server, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    stream.write_all(request).unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    line.trim_end().to_owned()
}

fn files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn what_a_server_holds_is_written_and_read_back() {
    let mut server = Server::memcached();
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().display().to_string();
    let large = vec![b'x'; 500_000];
    let mut set_large = b"set large 0 0 500000\r\n".to_vec();
    set_large.extend_from_slice(&large);
    set_large.extend_from_slice(b"\r\n");
    let hour = b"set hour 7 3600 5\r\nhello\r\n";
    for request in [
        &b"set plain 42 0 3\r\nabc\r\n"[..],
        hour,
        b"set empty 0 0 0\r\n\r\n",
        &set_large,
        b"set lines 0 0 6\r\na\r\nEND\r\n",
        "set schlüssel%20 0 0 1\r\nü\r\n".replace('ü', "u").as_bytes(),
        b"set soon 0 1 1\r\ns\r\n",
    ] {
        assert_eq!(say(&server, request), "STORED");
    }
    // A key of any bytes: space, zero, 255.
    assert_eq!(say(&server, b"ms IAD/ 2 b\r\nok\r\n"), "HD");

    let first = report(&run(&server, &["backup", "--to", &to]));
    assert!(first["items"].as_u64().unwrap() >= 7, "{first}");
    server.stop();
    server.start();
    assert_eq!(say(&server, b"get plain\r\n"), "END", "memcached forgets");
    assert_eq!(say(&server, b"set plain 0 0 5\r\nnewer\r\n"), "STORED");
    let restored = report(&run(&server, &["restore", "--from", &to]));
    assert!(restored["items"].as_u64().unwrap() >= 6, "{restored}");
    assert_eq!(say(&server, b"get plain\r\n"), "VALUE plain 0 5", "what is newer stays");
    assert_eq!(say(&server, b"get hour\r\n"), "VALUE hour 7 5");
    assert_eq!(say(&server, b"get large\r\n"), "VALUE large 0 500000");
    assert_eq!(say(&server, b"get empty\r\n"), "VALUE empty 0 0");
    assert_eq!(say(&server, b"get lines\r\n"), "VALUE lines 0 6");
    assert_eq!(say(&server, b"mg IAD/ b s\r\n"), "HD s2");
    let left = say(&server, b"mg hour t\r\n");
    let left: u32 = left.strip_prefix("HD t").unwrap().parse().unwrap();
    assert!((3000..=3600).contains(&left), "{left}");
    assert_eq!(say(&server, b"mg plain t\r\n"), "HD t-1");

    report(&run(&server, &["restore", "--from", &to, "--overwrite"]));
    assert_eq!(say(&server, b"get plain\r\n"), "VALUE plain 42 3");
}

#[test]
fn a_backup_that_is_not_whole_is_not_restored() {
    let server = Server::memcached();
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().display().to_string();
    say(&server, b"set a 0 0 1\r\n1\r\n");
    say(&server, b"set b 0 0 1\r\n2\r\n");
    let file = report(&run(&server, &["backup", "--to", &to]))["file"].as_str().unwrap().to_owned();
    assert_eq!(files(folder.path()), std::slice::from_ref(&file));
    let path = folder.path().join(&file);
    let text = std::fs::read_to_string(&path).unwrap();
    say(&server, b"flush_all\r\n");
    let lines: Vec<&str> = text.lines().collect();
    for wrong in [lines[..3].join("\n"), [lines[0], lines[1], lines[3]].join("\n"), String::new()] {
        std::fs::write(&path, wrong).unwrap();
        let refused = run(&server, &["restore", "--from", &to]);
        assert!(!refused.status.success());
        assert_eq!(say(&server, b"get a\r\n"), "END", "nothing of it is stored");
    }
    let elsewhere = ["restore", "--from", &to, "--backup", "../etc/passwd"];
    assert!(!run(&server, &elsewhere).status.success());

    // Old ones go; what goes wrong is in the report.
    for name in ["20200101T000000Z.jsonl", "20210101T000000Z.jsonl"] {
        std::fs::write(folder.path().join(name), &text).unwrap();
    }
    std::fs::remove_file(&path).unwrap();
    let last = report(&run(&server, &["backup", "--to", &to, "--keep", "2"]));
    assert_eq!(files(folder.path()), ["20210101T000000Z.jsonl", last["file"].as_str().unwrap()]);
    let told = folder.path().join("report");
    let mut server = server;
    server.stop();
    let report = told.display().to_string();
    assert!(!run(&server, &["backup", "--to", &to, "--report", &report]).status.success());
    let told: Value = serde_json::from_str(&std::fs::read_to_string(told).unwrap()).unwrap();
    assert!(told["error"].as_str().unwrap().contains("memcached at 127.0.0.1"), "{told}");
}

fn backup(backup: &Value) -> Value {
    json!({ "apiVersion": "cache.my.domain/v1", "kind": "MemcachedBackup",
        "metadata": { "name": "kept" }, "spec": { "size": 1, "backup": backup } })
}

async fn apply(bench: &Bench, object: Value) {
    let patch = Patch::Apply(serde_json::from_value::<kube::core::DynamicObject>(object).unwrap());
    bench.backups().patch("kept", &PatchParams::apply("test").force(), &patch).await.unwrap();
}

#[tokio::test]
async fn a_schedule_writes_backups_to_a_volume_and_tells_of_the_last_one() {
    let bench = Bench::shared("backups").await;
    let _operator = bench.operator();
    let namespace = bench.namespace.name();
    // Simulated nodes run pods whose claims are bound, and nobody makes volumes here.
    let volume = json!({ "apiVersion": "v1", "kind": "PersistentVolume",
        "metadata": { "name": format!("{namespace}-backups") },
        "spec": { "accessModes": ["ReadWriteOnce"], "capacity": { "storage": "100Gi" },
            "hostPath": { "path": "/nowhere" } } });
    let volumes: Api<PersistentVolume> = Api::all(bench.cluster.client());
    let volume = serde_json::from_value(volume).unwrap();
    volumes.create(&PostParams::default(), &volume).await.unwrap();
    let cron_jobs: Api<CronJob> = Api::namespaced(bench.cluster.client(), namespace);
    let jobs: Api<Job> = Api::namespaced(bench.cluster.client(), namespace);
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(bench.cluster.client(), namespace);
    let spec = json!({ "host": "memcached-sample", "schedule": "0 3 * * *" });
    apply(&bench, backup(&spec)).await;
    // Nobody told the operator what image it is in.
    becomes(&bench.backups(), "kept", "told", |kept| message(kept, "Backup").contains("image"))
        .await;
    let mut spec = spec;
    spec["image"] = "example.com/operator:1".into();
    apply(&bench, backup(&spec)).await;
    let cron_job = becomes(&cron_jobs, "kept-backup", "there", |_| true).await;
    let text = serde_json::to_string(&cron_job.spec).unwrap();
    for part in ["memcached-sample", "0 3 * * *", "example.com/operator:1", "kept-backup", "Forbid"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    becomes(&claims, "kept-backup", "there", |_| true).await;
    becomes(&bench.backups(), "kept", "Ready", |kept| condition(kept, "Ready") == "True").await;

    // It is due: here because somebody asks for it.
    bench.kubectl(&["create", "job", "now", "--from=cronjob/kept-backup"]);
    let told = becomes(&bench.backups(), "kept", "a run", |kept| {
        kept.data.pointer("/status/lastBackup/succeeded") == Some(&json!(true))
    })
    .await;
    assert_eq!(told.data.pointer("/status/lastBackup/job"), Some(&json!("now")));

    // A restore is done once; when it is asked for again, again.
    for request in ["1", "2"] {
        spec["restore"] = json!({ "request": request });
        apply(&bench, backup(&spec)).await;
        becomes(&bench.backups(), "kept", "restored", |kept| {
            condition(kept, "Restore") == "True" && condition(kept, "Ready") == "True"
        })
        .await;
        eventually("the Job is gone when it is done", async || {
            let label = "app.kubernetes.io/component=restore";
            match jobs.list(&ListParams::default().labels(label)).await.unwrap().items {
                left if left.is_empty() => Ok(()),
                left => Err(format!("{left:?}")),
            }
        })
        .await;
    }

    // Without it as before, but for the volume: it holds what was written.
    apply(
        &bench,
        json!({ "apiVersion": "cache.my.domain/v1", "kind": "MemcachedBackup",
        "metadata": { "name": "kept" }, "spec": { "size": 1 } }),
    )
    .await;
    vanishes(&cron_jobs, "kept-backup").await;
    becomes(&claims, "kept-backup", "still there", |_| true).await;
    bench.kubectl(&["delete", "memcachedbackup", "kept"]);
}

fn message(object: &kube::core::DynamicObject, type_: &str) -> String {
    let conditions = object.data.pointer("/status/conditions").and_then(Value::as_array);
    let mut found = conditions.into_iter().flatten().filter(|c| c["type"] == type_);
    found.next().and_then(|c| c["message"].as_str()).unwrap_or_default().to_owned()
}
