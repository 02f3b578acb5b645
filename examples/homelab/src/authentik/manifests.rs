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
                    "containers": [
                        {
                            "name": "server",
                            "image": server.spec.image,
                            "args": ["server"],
                            "env": environment,
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
        plain("REDIS__HOST", &redis.host),
        plain("REDIS__PORT", &redis.port.to_string()),
    ];
    if let Some(secret) = &redis.secret {
        environment.push(of("REDIS__PASSWORD", secret, "password"));
        if secret.data.as_ref().is_some_and(|data| data.contains_key("username")) {
            environment.push(of("REDIS__USERNAME", secret, "username"));
        }
    }
    environment
}

/// Another one when a Secret holds something else. The keys are random and part of it, so nobody can
/// try passwords against it.
fn digest((database, redis, keys): Parts<'_>) -> Result<String, Error> {
    let mut digest = Sha256::new();
    digest.update(text(keys, "secretKey")?);
    for secret in [Some(database), redis.secret.as_deref(), Some(keys)].into_iter().flatten() {
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
