//! Something outside of Kubernetes: made on a server, looked after, and removed with its resource.

mod outputs;

use catamaran_operator::native::{Action, Cx, Error, Progress, Reconciler, SecretOnce, Watches};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use serde_json::json;

use crate::api::{PostgresConnection, PostgresDatabase};
use crate::connections;
use crate::manifest::{ready, text};
use crate::postgres::{Server, Wanted};
use outputs::{name, outputs};

/// Reconciles [`PostgresDatabase`].
#[derive(Debug)]
pub struct PostgresDatabases;

impl Reconciler for PostgresDatabases {
    type Object = PostgresDatabase;

    fn watches(&self, watches: &mut Watches) {
        watches.owns::<Secret>().requires::<PostgresConnection>().polls(crate::POLL);
    }

    async fn reconcile(&self, cx: &Cx<'_, PostgresDatabase>) -> Result<Action, Error> {
        cx.component("Database", database(cx)).await;
        cx.finish()
    }

    async fn cleanup(&self, cx: &Cx<'_, PostgresDatabase>) -> Result<Progress, Error> {
        let made = cx.fields();
        let (Some(connection), Some(name)) = (made.connection, made.database) else {
            return Ok(Progress::Ready); // nothing was begun
        };
        let (namespace, connection) = split(&connection)?;
        let found = cx.reference::<PostgresConnection>(namespace, connection).await?.found()?;
        let server = administrator(cx, &found).await?;
        server.remove(&wanted(cx, name, String::new())).await?;
        Ok(Progress::Ready)
    }
}

async fn database(cx: &Cx<'_, PostgresDatabase>) -> Result<Progress, Error> {
    let name = name(cx)?;
    refuse_another_place(cx, &name)?;
    let (namespace, connection) = split(&cx.spec.connection)?;
    let connection = ready(cx.reference::<PostgresConnection>(namespace, connection).await?)?;
    let server = administrator(cx, &connection).await?;

    let once = SecretOnce::new().random("password", 32);
    let secret = cx.secret_once(&secret_name(cx), once).await?;
    let wanted = wanted(cx, name, text(&secret, "password")?);
    // Written before anything is made, so that whatever dies now is cleaned up some day.
    if cx.fields().database.is_none() {
        let begun = json!({ "connection": cx.spec.connection, "database": wanted.name });
        cx.patch_status(cx.resource(), begun).await?;
    }
    cx.status(|status| {
        status.connection = Some(cx.spec.connection.clone());
        status.database = Some(wanted.name.clone());
        status.secret = Some(secret_name(cx));
    });
    if !is_there(&server, &wanted).await? {
        server.provide(&wanted).await?;
        cx.event("Provided", &format!("database and role {:?} are in place", wanted.name));
        server.check(&wanted).await?;
    }
    cx.apply(outputs(&secret_name(cx), &server, &wanted)).await
}

/// Whether the role gets in by its password and may work: who does has the right database.
async fn is_there(server: &Server, wanted: &Wanted) -> Result<bool, Error> {
    match server.check(wanted).await {
        Err(Error::Waiting { reason, message }) if reason == "Unreachable" => {
            Err(Error::Waiting { reason, message })
        }
        Err(_) => Ok(false),
        there => there,
    }
}

/// Elsewhere would be another database, and this one would be nobody's.
fn refuse_another_place(cx: &Cx<'_, PostgresDatabase>, name: &str) -> Result<(), Error> {
    let made = cx.fields();
    let (Some(connection), Some(database)) = (made.connection, made.database) else {
        return Ok(());
    };
    if connection == cx.spec.connection && database == name {
        return Ok(());
    }
    Err(Error::waiting(
        "CannotMove",
        format!("it is database {database:?} of connection {connection}, and cannot be moved"),
    ))
}

/// The server of a connection, with the credentials that lie beside the connection.
async fn administrator(
    cx: &Cx<'_, PostgresDatabase>,
    connection: &PostgresConnection,
) -> Result<Server, Error> {
    let namespace = connection.namespace();
    connections::server(cx, namespace.as_deref(), &connection.spec).await
}

fn wanted(database: &PostgresDatabase, name: String, password: String) -> Wanted {
    let uid = database.uid().unwrap_or_default();
    let mark = format!(
        "homelab.mortenolsen.pro PostgresDatabase {}/{} {uid}",
        database.namespace().unwrap_or_default(),
        database.name_any()
    );
    Wanted { name, password, draft: format!("homelab-{uid}"), mark }
}

fn split(connection: &str) -> Result<(&str, &str), Error> {
    connection.split_once('/').ok_or_else(|| {
        Error::Permanent(format!("spec.connection: {connection:?} is not namespace/name"))
    })
}

fn secret_name(database: &PostgresDatabase) -> String {
    format!("{}-connection", database.name_any())
}
