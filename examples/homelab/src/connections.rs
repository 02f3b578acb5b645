//! Servers that somebody else runs: they are there or not, which no watch tells.

use catamaran_operator::native::{Action, Cx, Error, Managed, Progress, Reconciler, Watches};
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

    async fn reconcile(&self, cx: &Cx<'_, PostgresConnection>) -> Result<Action, Error> {
        cx.component("Server", async {
            let version = server(cx, None, &cx.spec).await?.version().await?;
            tell_return(cx, &version);
            cx.status(|status| status.version = Some(version));
            Ok(Progress::Ready)
        })
        .await;
        cx.finish()
    }
}

/// For `kubectl describe`: since when a server is there again, and in which version.
fn tell_return(cx: &Cx<'_, PostgresConnection>, version: &str) {
    let was = cx.fields().version;
    if was.as_deref().is_some_and(|was| was != version) {
        cx.event("VersionChanged", &format!("the server is PostgreSQL {version} now"));
    }
}

/// The server of a connection, and its administrator. The connection's Secrets lie in `namespace`.
pub(crate) async fn server<K: Managed>(
    cx: &Cx<'_, K>,
    namespace: Option<&str>,
    connection: &PostgresConnectionSpec,
) -> Result<postgres::Server, Error> {
    let secret = cx.reference::<Secret>(namespace, &connection.secret).await?.found()?;
    Ok(postgres::Server {
        host: connection.host.clone(),
        port: u16::try_from(connection.port).map_err(|e| Error::Permanent(e.to_string()))?,
        database: connection.database.clone(),
        user: text(&secret, "username")?,
        password: text(&secret, "password")?,
        encryption: Encryption::of(cx, namespace, connection.tls.as_ref()).await?,
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

    async fn reconcile(&self, cx: &Cx<'_, RedisConnection>) -> Result<Action, Error> {
        cx.component("Server", async {
            let secret = match &cx.spec.secret {
                Some(name) => Some(cx.reference::<Secret>(None, name).await?.found()?),
                None => None,
            };
            let encryption = Encryption::of(cx, None, cx.spec.tls.as_ref()).await?;
            let version = cache_server(cx, secret.as_deref(), encryption)?.version().await?;
            cx.status(|status| status.version = Some(version));
            Ok(Progress::Ready)
        })
        .await;
        cx.finish()
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
