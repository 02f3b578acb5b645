//! Servers that somebody else runs: they are there or not, which no watch tells.

use catamaran_operator::native::{
    Action, ComponentProgress, Context, Error, Managed, Reconciler, Watches,
};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;

use crate::api::{PostgresConnection, PostgresConnectionSpec, RedisConnection};
use crate::encryption::Encryption;
use crate::manifest::text;
use crate::{POLL, cache, postgres};

/// Reconciles [`PostgresConnection`].
#[derive(Debug)]
pub struct PostgresConnections;

impl Reconciler for PostgresConnections {
    type Object = PostgresConnection;

    fn watches(&self, watches: &mut Watches) {
        watches.requires::<Secret>().polls(POLL);
    }

    async fn reconcile(&self, ctx: &Context<'_, PostgresConnection>) -> Result<Action, Error> {
        ctx.component("Server", async {
            let version = server(ctx, None, &ctx.spec).await?.version().await?;
            tell_return(ctx, &version);
            ctx.status(|status| status.version = Some(version));
            Ok(ComponentProgress::Ready)
        })
        .await;
        ctx.finish()
    }
}

/// For `kubectl describe`: since when a server is there again, and in which version.
fn tell_return(ctx: &Context<'_, PostgresConnection>, version: &str) {
    let was = ctx.fields().version;
    if was.as_deref().is_some_and(|was| was != version) {
        ctx.event("VersionChanged", &format!("the server is PostgreSQL {version} now"));
    }
}

/// The server of a connection, and its administrator. The connection's Secrets lie in `namespace`.
pub(crate) async fn server<K: Managed>(
    ctx: &Context<'_, K>,
    namespace: Option<&str>,
    connection: &PostgresConnectionSpec,
) -> Result<postgres::Server, Error> {
    let secret = ctx.reference::<Secret>(namespace, &connection.secret).await?.found()?;
    Ok(postgres::Server {
        host: connection.host.clone(),
        port: u16::try_from(connection.port).map_err(|e| Error::Permanent(e.to_string()))?,
        database: connection.database.clone(),
        user: text(&secret, "username")?,
        password: text(&secret, "password")?,
        encryption: Encryption::of(ctx, namespace, connection.tls.as_ref()).await?,
    })
}

/// Reconciles [`RedisConnection`].
#[derive(Debug)]
pub struct RedisConnections;

impl Reconciler for RedisConnections {
    type Object = RedisConnection;

    fn watches(&self, watches: &mut Watches) {
        watches.requires::<Secret>().polls(POLL);
    }

    async fn reconcile(&self, ctx: &Context<'_, RedisConnection>) -> Result<Action, Error> {
        ctx.component("Server", async {
            let secret = match &ctx.spec.secret {
                Some(name) => Some(ctx.reference::<Secret>(None, name).await?.found()?),
                None => None,
            };
            let encryption = Encryption::of(ctx, None, ctx.spec.tls.as_ref()).await?;
            let version = cache_server(ctx, secret.as_deref(), encryption)?.version().await?;
            ctx.status(|status| status.version = Some(version));
            Ok(ComponentProgress::Ready)
        })
        .await;
        ctx.finish()
    }
}

fn cache_server(
    connection: &RedisConnection,
    secret: Option<&Secret>,
    encryption: Encryption,
) -> Result<cache::Server, Error> {
    let has_user =
        |secret: &&Secret| secret.data.as_ref().is_some_and(|data| data.contains_key("username"));
    let user = secret.filter(has_user);
    Ok(cache::Server {
        host: connection.spec.host.clone(),
        port: u16::try_from(connection.spec.port)
            .map_err(|error| Error::Permanent(format!("{}: {error}", connection.name_any())))?,
        user: user.map(|secret| text(secret, "username")).transpose()?,
        password: secret.map(|secret| text(secret, "password")).transpose()?,
        encryption,
    })
}
