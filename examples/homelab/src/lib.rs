//! A homelab: what its applications need, each as a resource.
//!
//! [`api`] says what the kinds are. [`MyResources`] is the simplest: a Deployment, a Service, a Secret.
//! [`Domains`] make objects of kinds that others install, in another namespace. [`PostgresConnections`]
//! and [`RedisConnections`] tell whether a server answers, [`PostgresDatabases`] make something on one.
//! [`AuthentikServers`] depend on all of them. Redis itself has no code: it is a chart, and a line in
//! watches.yaml.

mod authentik;
mod connections;
mod databases;
mod domains;
mod encryption;
mod manifest;
mod myresources;

pub mod api;
pub mod cache;
pub mod foreign;
pub mod postgres;

use std::time::Duration;

use catamaran_operator::{Manager, Options};

pub use authentik::AuthentikServers;
pub use connections::{PostgresConnections, RedisConnections};
pub use databases::PostgresDatabases;
pub use domains::Domains;
pub use encryption::Encryption;
pub use myresources::MyResources;

/// How often servers are asked whether they are there: no watch tells of them.
pub const POLL: Duration = Duration::from_secs(10);

/// The operator, with all its kinds.
pub fn manager(options: Options) -> Manager {
    Manager::new("homelab", options)
        .reconciler("MyResource", MyResources)
        .reconciler("Domain", Domains)
        .reconciler("PostgresConnection", PostgresConnections)
        .reconciler("RedisConnection", RedisConnections)
        .reconciler("PostgresDatabase", PostgresDatabases)
        .reconciler("AuthentikServer", AuthentikServers)
}
