//! Something outside of Kubernetes: made on a server, looked after, and removed with its resource.

mod outputs;

use catamaran_operator::native::{
    Action, ComponentProgress, Context, Error, Reconciler, SecretOnce, Watches,
};
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

    async fn reconcile(&self, ctx: &Context<'_, PostgresDatabase>) -> Result<Action, Error> {
        ctx.component("Database", database(ctx)).await;
        ctx.finish()
    }

    async fn cleanup(
        &self,
        ctx: &Context<'_, PostgresDatabase>,
    ) -> Result<ComponentProgress, Error> {
        let made = ctx.fields();
        let (Some(connection), Some(name)) = (made.connection, made.database) else {
            return Ok(ComponentProgress::Ready); // nothing was begun
        };
        let (namespace, connection) = split(&connection)?;
        let found = ctx.reference::<PostgresConnection>(namespace, connection).await?.found()?;
        let server = administrator(ctx, &found).await?;
        server.remove(&wanted(ctx, name, String::new())).await?;
        Ok(ComponentProgress::Ready)
    }
}

async fn database(ctx: &Context<'_, PostgresDatabase>) -> Result<ComponentProgress, Error> {
    let name = name(ctx)?;
    refuse_another_place(ctx, &name)?;
    let (namespace, connection) = split(&ctx.spec.connection)?;
    let connection = ready(ctx.reference::<PostgresConnection>(namespace, connection).await?)?;
    let server = administrator(ctx, &connection).await?;

    let once = SecretOnce::new().random("password", 32);
    let secret = ctx.secret_once(&secret_name(ctx), once).await?;
    let wanted = wanted(ctx, name, text(&secret, "password")?);
    // Written before anything is made, so that whatever dies now is cleaned up some day.
    if ctx.fields().database.is_none() {
        let begun = json!({ "connection": ctx.spec.connection, "database": wanted.name });
        ctx.patch_status(ctx.resource(), begun).await?;
    }
    ctx.status(|status| {
        status.connection = Some(ctx.spec.connection.clone());
        status.database = Some(wanted.name.clone());
        status.secret = Some(secret_name(ctx));
    });
    if !is_there(&server, &wanted).await? {
        server.provide(&wanted).await?;
        ctx.event("Provided", &format!("database and role {:?} are in place", wanted.name));
        server.check(&wanted).await?;
    }
    ctx.apply(outputs(&secret_name(ctx), &server, &wanted)).await
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
fn refuse_another_place(ctx: &Context<'_, PostgresDatabase>, name: &str) -> Result<(), Error> {
    let made = ctx.fields();
    let (Some(connection), Some(database)) = (made.connection, made.database) else {
        return Ok(());
    };
    if connection == ctx.spec.connection && database == name {
        return Ok(());
    }
    Err(Error::waiting(
        "CannotMove",
        format!("it is database {database:?} of connection {connection}, and cannot be moved"),
    ))
}

/// The server of a connection, with the credentials that lie beside the connection.
async fn administrator(
    ctx: &Context<'_, PostgresDatabase>,
    connection: &PostgresConnection,
) -> Result<Server, Error> {
    let namespace = connection.namespace();
    connections::server(ctx, namespace.as_deref(), &connection.spec).await
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
