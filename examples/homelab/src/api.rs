//! `homelab.mortenolsen.pro/v1`.

#![allow(clippy::duplicated_attributes)] // columns have the same arguments, each its own

use catamaran_operator::native::Status;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{CustomResource, CustomResourceExt, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The definitions of the kinds that are written in Rust; `make manifests-examples` writes them to
/// config/crd. That of Redis, whose spec is its chart's values, is written by hand.
pub fn definitions() -> Vec<CustomResourceDefinition> {
    vec![
        MyResource::crd(),
        Domain::crd(),
        PostgresConnection::crd(),
        RedisConnection::crd(),
        PostgresDatabase::crd(),
        AuthentikServer::crd(),
    ]
}

/// The status of a [`MyResource`].
pub type MyResourceStatus = Status<NoFields>;
/// The status of a [`Domain`].
pub type DomainStatus = Status<DomainFields>;
/// The status of a [`PostgresConnection`].
pub type PostgresConnectionStatus = Status<ServerFields>;
/// The status of a [`RedisConnection`].
pub type RedisConnectionStatus = Status<ServerFields>;
/// The status of a [`PostgresDatabase`].
pub type PostgresDatabaseStatus = Status<PostgresDatabaseFields>;
/// The status of an [`AuthentikServer`].
pub type AuthentikServerStatus = Status<AuthentikServerFields>;
/// The status of a [`Redis`].
pub type RedisStatus = Status<RedisFields>;

/// A web application.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "homelab.mortenolsen.pro",
    version = "v1",
    kind = "MyResource",
    doc = "A web application: a Deployment, a Service, and a Secret whose values are made once.",
    namespaced,
    status = "MyResourceStatus",
    printcolumn(name = "Hostname", type_ = "string", json_path = ".spec.hostname"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].status"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct MyResourceSpec {
    /// The name under which the application is reached.
    pub hostname: String,
    /// The port that its container listens on.
    #[schemars(range(min = 1, max = 65535))]
    pub port: i32,
    /// How many pods there shall be.
    #[serde(default = "one")]
    #[schemars(range(min = 1))]
    pub replicas: i32,
    /// What is spoken on the port.
    #[serde(default)]
    pub protocol: Protocol,
    /// A database that the application uses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub database: Option<DatabaseAddress>,
}

fn one() -> i32 {
    1
}

/// What an application speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// In clear.
    Http,
    /// Encrypted.
    #[default]
    Https,
}

impl Protocol {
    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }
}

/// Where an application's database is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DatabaseAddress {
    /// The server.
    pub host: String,
    /// Its port.
    #[schemars(range(min = 1, max = 65535))]
    pub port: i32,
    /// The database on it.
    pub name: String,
}

/// What the status of a kind tells that has nothing to tell besides its conditions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NoFields {}

/// A domain.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "homelab.mortenolsen.pro",
    version = "v1",
    kind = "Domain",
    doc = "A domain and its subdomains: a Certificate of cert-manager and a Gateway of Istio.",
    namespaced,
    status = "DomainStatus",
    printcolumn(name = "Hostname", type_ = "string", json_path = ".spec.hostname"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].status"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
pub struct DomainSpec {
    /// The domain; everything below it belongs to it.
    #[schemars(length(min = 1, max = 251))]
    pub hostname: String,
    /// The ClusterIssuer of cert-manager that certifies it.
    #[schemars(length(min = 1))]
    pub issuer: String,
}

/// What the status of a [`Domain`] tells besides its conditions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DomainFields {
    /// The Gateway, as `namespace/name`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gateway: Option<String>,
    /// The Secret with the certificate, in the namespace of Istio's gateway.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate_secret: Option<String>,
}

/// A PostgreSQL server that somebody else runs.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "homelab.mortenolsen.pro",
    version = "v1",
    kind = "PostgresConnection",
    doc = "Where a PostgreSQL server is, and who may make databases on it. Ready while it answers.",
    namespaced,
    status = "PostgresConnectionStatus",
    printcolumn(name = "Host", type_ = "string", json_path = ".spec.host"),
    printcolumn(name = "Version", type_ = "string", json_path = ".status.version"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].status"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
pub struct PostgresConnectionSpec {
    /// A host name or an address; no socket.
    #[schemars(regex(pattern = r"^[A-Za-z0-9_.:-]+$"))]
    pub host: String,
    /// The port.
    #[serde(default = "postgres_port")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: i32,
    /// The database in which others are made.
    #[serde(default = "maintenance")]
    #[schemars(length(min = 1, max = 63))]
    pub database: String,
    /// A Secret of this namespace with the keys `username` and `password`: somebody who may make
    /// databases and roles.
    #[schemars(length(min = 1))]
    pub secret: String,
    /// How the connection is protected. Nothing is sent to a server before this is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
}

/// How the connection to a server is protected.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[x_kube(validation = Rule::new("self.mode == 'Disable' || has(self.caSecret)")
    .message("caSecret is required unless mode is Disable"))]
#[serde(rename_all = "camelCase")]
pub struct Tls {
    /// Whether TLS is used.
    #[serde(default)]
    pub mode: TlsMode,
    /// A Secret of this namespace whose key `ca.crt` holds the certificates, in PEM, of the authorities
    /// that may have signed the server's certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub ca_secret: Option<String>,
}

/// Whether TLS is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TlsMode {
    /// The connection is encrypted, and the server proves by its certificate that it is `host`.
    #[default]
    Verify,
    /// The connection is not encrypted: passwords and data are readable on the network.
    Disable,
}

fn postgres_port() -> i32 {
    5432
}

fn maintenance() -> String {
    "postgres".to_owned()
}

/// A Redis server that somebody else runs.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "homelab.mortenolsen.pro",
    version = "v1",
    kind = "RedisConnection",
    plural = "redisconnections",
    doc = "Where a Redis server is, and its password. Ready while it answers.",
    namespaced,
    status = "RedisConnectionStatus",
    printcolumn(name = "Host", type_ = "string", json_path = ".spec.host"),
    printcolumn(name = "Version", type_ = "string", json_path = ".status.version"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].status"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
pub struct RedisConnectionSpec {
    /// A host name or an address.
    #[schemars(regex(pattern = r"^[A-Za-z0-9_.:-]+$"))]
    pub host: String,
    /// The port.
    #[serde(default = "redis_port")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: i32,
    /// A Secret of this namespace with the key `password` and, for a user other than the default one,
    /// `username`. Without it nobody is logged in.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub secret: Option<String>,
    /// How the connection is protected. Nothing is sent to a server before this is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
}

fn redis_port() -> i32 {
    6379
}

/// What the status of a connection tells besides its conditions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ServerFields {
    /// The server's version, as it told when it last answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// A database on a server.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "homelab.mortenolsen.pro",
    version = "v1",
    kind = "PostgresDatabase",
    doc = "A database on a PostgreSQL server, a role for it alone, and a Secret with how to connect.",
    namespaced,
    status = "PostgresDatabaseStatus",
    printcolumn(name = "Database", type_ = "string", json_path = ".status.database"),
    printcolumn(name = "Secret", type_ = "string", json_path = ".status.secret"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].status"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
pub struct PostgresDatabaseSpec {
    /// The PostgresConnection, as `namespace/name`.
    #[schemars(regex(pattern = "^[^/]+/[^/]+$"))]
    pub connection: String,
    /// What the database and its role are called on the server, at most 63 bytes; by default
    /// `<namespace>_<name>`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub database: Option<String>,
}

/// What the status of a [`PostgresDatabase`] tells besides its conditions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PostgresDatabaseFields {
    /// The connection that it was made by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection: Option<String>,
    /// What the database and its role are called on the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
    /// The Secret with the keys host, port, database, username, password, url and sslmode; ca.crt as well
    /// where the connection is verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
}

/// The identity provider.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "homelab.mortenolsen.pro",
    version = "v1",
    kind = "AuthentikServer",
    doc = "Authentik, an identity provider, with its database and its Redis, below a domain.",
    namespaced,
    status = "AuthentikServerStatus",
    printcolumn(name = "URL", type_ = "string", json_path = ".status.url"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].status"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Ready')].reason"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
pub struct AuthentikServerSpec {
    /// The Domain below which it is reached, as `authentik.<hostname>`.
    pub domain: String,
    /// The PostgresDatabase that it keeps everything in.
    pub database: String,
    /// The RedisConnection that it uses or, if there is none of that name, the Redis.
    pub redis: String,
    /// What runs.
    #[serde(default = "authentik")]
    pub image: String,
    /// How many pods there shall be.
    #[serde(default = "one")]
    #[schemars(range(min = 1))]
    pub replicas: i32,
    /// Another text than before has all keys drawn anew, a date for instance. Sessions end with them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rotate: Option<String>,
}

fn authentik() -> String {
    "ghcr.io/goauthentik/server:2025.8".to_owned()
}

/// What the status of an [`AuthentikServer`] tells besides its conditions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AuthentikServerFields {
    /// Where it is reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// A Redis of our own: a release of the chart helm-charts/redis, whose values are the spec. Here is only
/// what others read of it.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "homelab.mortenolsen.pro",
    version = "v1",
    kind = "Redis",
    plural = "redises",
    namespaced,
    schema = "disabled",
    status = "RedisStatus"
)]
pub struct RedisSpec {}

/// What a [`Redis`] tells besides its conditions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RedisFields {
    /// The release of the chart.
    pub deployed_release: Option<DeployedRelease>,
}

/// A release of a chart.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeployedRelease {
    /// Its objects are called so, too.
    pub name: String,
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    #[test]
    fn the_crds_are_up_to_date() {
        let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/config/crd"));
        catamaran_testkit::check_crds(folder, &super::definitions());
    }
}
