//! The objects of an AuthentikServer.

use catamaran_operator::native::Error;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Secret, Service};
use k8s_openapi::api::networking::v1::Ingress;
use kube::ResourceExt;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::RedisAt;
use crate::api::AuthentikServer;
use crate::encryption::CA_KEY;
use crate::manifest::{hex, labels, object, text};

/// Where Redis listens, ours as all others.
pub(super) const REDIS_PORT: i32 = 6379;
/// Where Authentik listens.
const PORT: i32 = 9000;

/// The database's Secret, Redis, and the keys.
type Parts<'a> = (&'a Secret, &'a RedisAt, &'a Secret);

pub(super) fn deployment(
    server: &AuthentikServer,
    host: &str,
    parts: Parts<'_>,
) -> Result<Deployment, Error> {
    let (name, environment) = (server.name_any(), environment(host, parts));
    let (volumes, mounts) = authorities(parts);
    let probe = |path: &str, period: u32| json!({ "httpGet": { "path": path, "port": "http" }, "periodSeconds": period });
    object(json!({
        "metadata": { "name": name },
        "spec": {
            "replicas": server.spec.replicas,
            "selector": { "matchLabels": labels(&name) },
            "template": {
                "metadata": {
                    "labels": labels(&name),
                    // Environment is read once: other values are other pods.
                    "annotations": { "homelab.mortenolsen.pro/secrets": digest(parts)? },
                },
                "spec": {
                    "automountServiceAccountToken": false,
                    "volumes": volumes,
                    "containers": [
                        {
                            "name": "server",
                            "image": server.spec.image,
                            "args": ["server"],
                            "env": environment,
                            "volumeMounts": mounts,
                            "ports": [{ "name": "http", "containerPort": PORT }],
                            "startupProbe": { "httpGet": { "path": "/-/health/live/", "port": "http" },
                                "periodSeconds": 5, "failureThreshold": 60 },
                            "livenessProbe": probe("/-/health/live/", 30),
                            // Authentik is ready while it has its database and its Redis.
                            "readinessProbe": probe("/-/health/ready/", 10),
                        },
                        {
                            "name": "worker",
                            "image": server.spec.image,
                            "args": ["worker"],
                            "env": environment,
                            "volumeMounts": mounts,
                        },
                    ],
                },
            },
        },
    }))
}

fn environment(host: &str, (database, redis, keys): Parts<'_>) -> Vec<Value> {
    let of = |name: &str, secret: &Secret, key: &str| {
        let reference = json!({ "name": secret.name_any(), "key": key });
        json!({ "name": format!("AUTHENTIK_{name}"), "valueFrom": { "secretKeyRef": reference } })
    };
    let plain =
        |name: &str, value: &str| json!({ "name": format!("AUTHENTIK_{name}"), "value": value });
    let mut environment = vec![
        plain("HOST", &format!("https://{host}")),
        of("SECRET_KEY", keys, "secretKey"),
        of("BOOTSTRAP_PASSWORD", keys, "bootstrapPassword"),
        of("BOOTSTRAP_TOKEN", keys, "bootstrapToken"),
        of("POSTGRESQL__HOST", database, "host"),
        of("POSTGRESQL__PORT", database, "port"),
        of("POSTGRESQL__NAME", database, "database"),
        of("POSTGRESQL__USER", database, "username"),
        of("POSTGRESQL__PASSWORD", database, "password"),
        of("POSTGRESQL__SSLMODE", database, "sslmode"),
        plain("REDIS__HOST", &redis.host),
        plain("REDIS__PORT", &redis.port.to_string()),
    ];
    if let Some(secret) = &redis.secret {
        environment.push(of("REDIS__PASSWORD", secret, "password"));
        if secret.data.as_ref().is_some_and(|data| data.contains_key("username")) {
            environment.push(of("REDIS__USERNAME", secret, "username"));
        }
    }
    if has_authorities(database) {
        environment.push(plain("POSTGRESQL__SSLROOTCERT", &ca_file("database")));
    }
    if redis.authorities.is_some() {
        environment.push(plain("REDIS__TLS", "true"));
        environment.push(plain("REDIS__TLS_REQS", "required"));
        environment.push(plain("REDIS__TLS_CA_CERT", &ca_file("redis")));
    }
    environment
}

/// The authorities of the servers' certificates, as volumes of the pod and mounts of its containers.
fn authorities((database, redis, _): Parts<'_>) -> (Vec<Value>, Vec<Value>) {
    let database = Some(database).filter(|secret| has_authorities(secret));
    let mounted = [("database", database), ("redis", redis.authorities.as_deref())];
    let mounted = mounted.into_iter().filter_map(|(name, secret)| Some((name, secret?)));
    mounted
        .map(|(name, secret)| {
            let items = json!([{ "key": CA_KEY, "path": CA_KEY }]);
            let source = json!({ "secretName": secret.name_any(), "items": items });
            (
                json!({ "name": format!("{name}-ca"), "secret": source }),
                json!({ "name": format!("{name}-ca"), "mountPath": ca_folder(name), "readOnly": true }),
            )
        })
        .unzip()
}

fn has_authorities(secret: &Secret) -> bool {
    secret.data.as_ref().is_some_and(|data| data.contains_key(CA_KEY))
}

fn ca_folder(server: &str) -> String {
    format!("/etc/homelab/{server}")
}

fn ca_file(server: &str) -> String {
    format!("{}/{CA_KEY}", ca_folder(server))
}

/// Another one when a Secret holds something else. The keys are random and part of it, so nobody can
/// try passwords against it.
fn digest((database, redis, keys): Parts<'_>) -> Result<String, Error> {
    let mut digest = Sha256::new();
    digest.update(text(keys, "secretKey")?);
    let secrets =
        [Some(database), redis.secret.as_deref(), redis.authorities.as_deref(), Some(keys)];
    for secret in secrets.into_iter().flatten() {
        for (key, value) in secret.data.iter().flatten() {
            digest.update(format!("{key} {} ", value.0.len()));
            digest.update(&value.0);
        }
    }
    Ok(hex(&digest.finalize(), 16))
}

pub(super) fn service(server: &AuthentikServer) -> Result<Service, Error> {
    let name = server.name_any();
    object(json!({
        "metadata": { "name": name },
        "spec": {
            "selector": labels(&name),
            "ports": [{ "name": "http", "port": 80, "targetPort": "http" }],
        },
    }))
}

pub(super) fn ingress(server: &AuthentikServer, host: &str) -> Result<Ingress, Error> {
    let backend = json!({ "service": { "name": server.name_any(), "port": { "name": "http" } } });
    object(json!({
        "metadata": { "name": server.name_any() },
        "spec": {
            "ingressClassName": "istio",
            "rules": [{
                "host": host,
                "http": { "paths": [{ "path": "/", "pathType": "Prefix", "backend": backend }] },
            }],
        },
    }))
}
