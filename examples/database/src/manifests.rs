//! The objects of a server.

use std::collections::BTreeMap;

use catamaran_operator::native::Error;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Pod, Service};
use kube::ResourceExt;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::Settled;
use crate::api::Database;
use crate::jobs::digest;

/// With what is added to it a name has to fit a label.
pub(crate) const LONGEST_NAME: usize = 40;
/// The user of PostgreSQL's images.
const USER: i64 = 999;
/// The script that gives a server its data.
pub const START: &str = include_str!("../scripts/start.sh");
/// The script that keeps its password what the Secret says.
pub const PASSWORD: &str = include_str!("../scripts/password.sh");
/// Annotation of a pod: of which term it is, see [`crate::failover`].
pub(crate) const TERM: &str = "stable.imaginedata.com/term";
/// Label of a pod: which server it is. One of another has to go.
pub(crate) const SERVER: &str = "stable.imaginedata.com/server";
/// Who may connect: everybody by password, also to follow.
const HOSTS: &str = "local all all trust\nhost all all all scram-sha-256\n\
                     host replication all all scram-sha-256\n";

pub(crate) fn object<C: DeserializeOwned>(manifest: Value) -> Result<C, Error> {
    serde_json::from_value(manifest).map_err(|error| Error::Permanent(error.to_string()))
}

pub(crate) fn secret_name(database: &Database) -> String {
    format!("{}-credentials", database.name_any())
}

pub(crate) fn backups_name(database: &Database) -> String {
    format!("{}-backups", database.name_any())
}

fn config_name(database: &Database) -> String {
    format!("{}-config", database.name_any())
}

fn pods_name(database: &Database) -> String {
    format!("{}-pods", database.name_any())
}

/// A server's pod.
pub(crate) fn pod_name(database: &Database, ordinal: i32) -> String {
    format!("{}-{ordinal}", database.name_any())
}

/// The primary, also while the Service is closed.
pub(crate) fn primary_host(database: &Database) -> String {
    format!("{}-primary", database.name_any())
}

pub(crate) fn labels(database: &Database) -> BTreeMap<String, String> {
    [
        ("app.kubernetes.io/name", "database".to_owned()),
        ("app.kubernetes.io/instance", database.name_any()),
    ]
    .map(|(label, value)| (label.to_owned(), value))
    .into()
}

/// What only a new pod can have.
pub(crate) fn server(database: &Database, settled: &Settled) -> String {
    digest(&format!("{} {} {}", settled.image, settled.server, database.spec.port))
}

/// Of which term a pod is.
pub(crate) fn term(pod: &Pod) -> Option<i64> {
    pod.annotations().get(TERM)?.parse().ok()
}

/// Nobody is root.
pub(crate) fn short() -> Value {
    json!({
        "runAsNonRoot": true,
        "runAsUser": USER,
        "runAsGroup": USER,
        "fsGroup": USER,
        "seccompProfile": { "type": "RuntimeDefault" },
    })
}

/// What libpq reads, for who connects to the primary.
pub(crate) fn connection(database: &Database) -> Vec<Value> {
    let of_secret = |name: &str, key: &str| {
        let key = json!({ "name": secret_name(database), "key": key });
        json!({ "name": name, "valueFrom": { "secretKeyRef": key } })
    };
    vec![
        json!({ "name": "PGHOST", "value": primary_host(database) }),
        json!({ "name": "PGPORT", "value": database.spec.port.to_string() }),
        of_secret("PGUSER", "username"),
        of_secret("PGPASSWORD", "password"),
    ]
}

pub(crate) fn configuration(database: &Database) -> Result<ConfigMap, Error> {
    object(json!({
        "metadata": { "name": config_name(database) },
        "data": { "pg_hba.conf": HOSTS },
    }))
}

/// The servers. A pod is never changed in place, only replaced: who becomes the primary keeps its pod.
pub(crate) fn stateful_set(
    database: &Database,
    settled: &Settled,
    replicas: i32,
) -> Result<StatefulSet, Error> {
    let (name, labels) = (database.name_any(), labels(database));
    let mut pod_labels = labels.clone();
    pod_labels.insert(SERVER.to_owned(), server(database, settled));
    object(json!({
        "metadata": { "name": name },
        "spec": {
            "replicas": replicas,
            "serviceName": pods_name(database),
            "selector": { "matchLabels": labels },
            "updateStrategy": { "type": "OnDelete" },
            // A standby must not wait for the first pod, which may be the one that is gone.
            "podManagementPolicy": "Parallel",
            // With the database its volumes go; that of backups stays.
            "persistentVolumeClaimRetentionPolicy": { "whenDeleted": "Delete", "whenScaled": "Delete" },
            "template": {
                "metadata": { "labels": pod_labels, "annotations": { TERM: settled.term.to_string() } },
                "spec": pod(database, settled),
            },
            "volumeClaimTemplates": [{
                "metadata": { "name": "data" },
                "spec": {
                    "accessModes": ["ReadWriteOnce"],
                    "resources": { "requests": { "storage": settled.storage_size } },
                },
            }],
        },
    }))
}

/// One server: its data is made before it starts; beside it its password is kept.
fn pod(database: &Database, settled: &Settled) -> Value {
    let port = database.spec.port;
    let mount = |name: &str| json!({ "name": name, "mountPath": format!("/{name}") });
    let is_new = if settled.is_new { "yes" } else { "no" };
    let mut environment = connection(database);
    environment.extend([
        json!({ "name": "POD", "valueFrom": { "fieldRef": { "fieldPath": "metadata.name" } } }),
        // A folder for each server: another one begins with an empty folder.
        json!({ "name": "PGDATA", "value": format!("/data/{}", settled.server) }),
        json!({ "name": "PRIMARY", "value": settled.primary.clone().unwrap_or_default() }),
        json!({ "name": "NEW", "value": is_new }),
        json!({ "name": "REPORT", "value": "/dev/termination-log" }),
    ]);
    // A standby finds its primary by this, and by PGPASSWORD.
    let primary = "host=$(PGHOST) port=$(PGPORT) user=$(PGUSER) application_name=$(POD)";
    let settings = [
        format!("port={port}"),
        "listen_addresses=*".to_owned(),
        "unix_socket_directories=/socket".to_owned(),
        "hba_file=/config/pg_hba.conf".to_owned(),
        "wal_keep_size=128MB".to_owned(),
        format!("primary_conninfo={primary}"),
    ];
    let settings: Vec<_> = settings.iter().flat_map(|setting| ["-c", setting]).collect();
    let by_socket = json!([
        { "name": "PGHOST", "value": "/socket" },
        { "name": "PGPORT", "value": port.to_string() },
        { "name": "PGUSER", "value": "postgres" },
    ]);
    json!({
        "automountServiceAccountToken": false,
        "securityContext": short(),
        "initContainers": [{
            "name": "start",
            "image": settled.image,
            "command": ["sh", "-c", START],
            "env": environment,
            "volumeMounts": [mount("data"), mount("credentials")],
        }],
        "containers": [
            {
                "name": "postgres",
                "image": settled.image,
                "command": ["postgres"],
                "args": settings,
                "env": environment,
                "ports": [{ "name": "postgres", "containerPort": port }],
                "readinessProbe": {
                    "exec": { "command": ["pg_isready", "--quiet", "--host", "/socket"] },
                    "periodSeconds": 2,
                },
                "volumeMounts": [mount("data"), mount("config"), mount("socket")],
            },
            {
                "name": "password",
                "image": settled.image,
                "command": ["sh", "-c", PASSWORD],
                "env": by_socket,
                "volumeMounts": [mount("socket"), mount("credentials")],
            },
        ],
        "volumes": [
            { "name": "config", "configMap": { "name": config_name(database) } },
            { "name": "credentials", "secret": { "secretName": secret_name(database) } },
            { "name": "socket", "emptyDir": {} },
        ],
    })
}

/// Each pod by its name.
pub(crate) fn pods_service(database: &Database) -> Result<Service, Error> {
    object(json!({
        "metadata": { "name": pods_name(database) },
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": true,
            "selector": labels(database),
            "ports": ports(database),
        },
    }))
}

/// Where applications write: the primary. Closed, it leads nowhere: what is written while a dump is
/// taken would be lost.
pub(crate) fn service(
    database: &Database,
    settled: &Settled,
    is_open: bool,
) -> Result<Service, Error> {
    let selector = selector(database, settled.primary.as_ref().filter(|_| is_open));
    object(json!({
        "metadata": { "name": database.name_any() },
        "spec": { "selector": selector, "ports": ports(database) },
    }))
}

/// Where Jobs and standbys find the primary, ready or not, also while the Service is closed.
pub(crate) fn primary_service(database: &Database, settled: &Settled) -> Result<Service, Error> {
    object(json!({
        "metadata": { "name": primary_host(database) },
        "spec": {
            "publishNotReadyAddresses": true,
            "selector": selector(database, settled.primary.as_ref()),
            "ports": ports(database),
        },
    }))
}

fn selector(database: &Database, pod: Option<&String>) -> BTreeMap<String, String> {
    let mut selector = labels(database);
    let pod = pod.map_or("closed", String::as_str);
    selector.insert("statefulset.kubernetes.io/pod-name".to_owned(), pod.to_owned());
    selector
}

fn ports(database: &Database) -> Value {
    json!([{ "name": "postgres", "port": database.spec.port, "targetPort": "postgres" }])
}

pub(crate) fn backups_claim(database: &Database) -> Result<PersistentVolumeClaim, Error> {
    object(json!({
        "metadata": { "name": backups_name(database) },
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": { "requests": { "storage": database.spec.storage_size } },
        },
    }))
}
