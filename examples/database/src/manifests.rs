//! The objects of a server.

use std::collections::BTreeMap;

use catamaran_operator::native::Error;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Service};
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
/// The script that makes a standby of a pod.
pub const STANDBY: &str = include_str!("../scripts/standby.sh");
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

fn pods_name(database: &Database) -> String {
    format!("{}-pods", database.name_any())
}

/// The pod that is written to.
pub(crate) fn primary(database: &Database) -> String {
    format!("{}-0", database.name_any())
}

/// The primary, also while the Service is closed.
pub(crate) fn server_host(database: &Database) -> String {
    format!("{}.{}", primary(database), pods_name(database))
}

fn labels(database: &Database) -> BTreeMap<&'static str, String> {
    [
        ("app.kubernetes.io/name", "database".to_owned()),
        ("app.kubernetes.io/instance", database.name_any()),
    ]
    .into()
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

/// What libpq reads.
pub(crate) fn connection(database: &Database, host: &str) -> Vec<Value> {
    let of_secret = |name: &str, key: &str| {
        let key = json!({ "name": secret_name(database), "key": key });
        json!({ "name": name, "valueFrom": { "secretKeyRef": key } })
    };
    vec![
        json!({ "name": "PGHOST", "value": host }),
        json!({ "name": "PGPORT", "value": database.spec.port.to_string() }),
        of_secret("PGUSER", "username"),
        of_secret("PGPASSWORD", "password"),
    ]
}

pub(crate) fn configuration(database: &Database) -> Result<ConfigMap, Error> {
    object(json!({
        "metadata": { "name": format!("{}-config", database.name_any()) },
        "data": { "pg_hba.conf": HOSTS },
    }))
}

/// A server's folder bears the name of its image: another one begins with an empty folder.
pub(crate) fn stateful_set(
    database: &Database,
    settled: &Settled,
    replicas: i32,
) -> Result<StatefulSet, Error> {
    let (name, labels) = (database.name_any(), labels(database));
    let data = json!({ "name": "PGDATA", "value": format!("/data/{}", digest(&settled.image)) });
    let pod =
        json!({ "name": "POD", "valueFrom": { "fieldRef": { "fieldPath": "metadata.name" } } });
    let mount = json!({ "name": "data", "mountPath": "/data" });
    let mut standby = connection(database, &server_host(database));
    standby.extend([data.clone(), pod]);
    let secret = json!({ "name": secret_name(database), "key": "password" });
    let port = database.spec.port;
    object(json!({
        "metadata": { "name": name },
        "spec": {
            "replicas": replicas,
            "serviceName": pods_name(database),
            "selector": { "matchLabels": labels },
            // With the database its volumes go; that of backups stays.
            "persistentVolumeClaimRetentionPolicy": { "whenDeleted": "Delete", "whenScaled": "Delete" },
            "template": {
                "metadata": { "labels": labels },
                "spec": {
                    "automountServiceAccountToken": false,
                    "securityContext": short(),
                    "initContainers": [{
                        "name": "standby",
                        "image": settled.image,
                        "command": ["sh", "-c", STANDBY],
                        "env": standby,
                        "volumeMounts": [mount],
                    }],
                    "containers": [{
                        "name": "postgres",
                        "image": settled.image,
                        "args": ["-c", format!("port={port}"), "-c", "hba_file=/config/pg_hba.conf"],
                        "env": [
                            data,
                            { "name": "PGPORT", "value": port.to_string() },
                            { "name": "POSTGRES_PASSWORD", "valueFrom": { "secretKeyRef": secret } },
                        ],
                        "ports": [{ "name": "postgres", "containerPort": port }],
                        "readinessProbe": {
                            "exec": { "command": ["pg_isready", "--quiet", "--host", "127.0.0.1"] },
                            "periodSeconds": 5,
                        },
                        "volumeMounts": [mount, { "name": "config", "mountPath": "/config" }],
                    }],
                    "volumes": [{ "name": "config", "configMap": { "name": format!("{name}-config") } }],
                },
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

/// Each pod by its name.
pub(crate) fn pods_service(database: &Database) -> Result<Service, Error> {
    object(json!({
        "metadata": { "name": pods_name(database) },
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": true,
            "selector": labels(database),
            "ports": [{ "name": "postgres", "port": database.spec.port, "targetPort": "postgres" }],
        },
    }))
}

/// Where applications write: the primary. Closed, it leads nowhere: what is written while a dump is
/// taken would be lost.
pub(crate) fn service(database: &Database, open: bool) -> Result<Service, Error> {
    let pod = if open { primary(database) } else { "closed".to_owned() };
    let mut selector = labels(database);
    selector.insert("statefulset.kubernetes.io/pod-name", pod);
    object(json!({
        "metadata": { "name": database.name_any() },
        "spec": {
            "selector": selector,
            "ports": [{ "name": "postgres", "port": database.spec.port, "targetPort": "postgres" }],
        },
    }))
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
