//! A resource that depends on others: waits for each, reads what they give, goes on when all are there.

mod manifests;

use std::sync::Arc;

use catamaran_operator::native::{
    Action, ComponentProgress, Context, Error, Reconciler, Reference, SecretOnce, Watches,
};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Secret, Service};
use k8s_openapi::api::networking::v1::Ingress;
use kube::ResourceExt;

use crate::api::{AuthentikServer, Domain, PostgresDatabase, Redis, RedisConnection};
use crate::manifest::ready;

/// Reconciles [`AuthentikServer`].
#[derive(Debug)]
pub struct AuthentikServers;

/// What others give, once they do.
#[derive(Default)]
struct Inputs {
    hostname: Option<String>,
    database: Option<Arc<Secret>>,
    redis: Option<RedisAt>,
    keys: Option<Arc<Secret>>,
}

/// A Redis, whoever runs it.
#[derive(Clone)]
struct RedisAt {
    host: String,
    port: i32,
    /// With its password.
    secret: Option<Arc<Secret>>,
    /// With the authorities of its certificate, where it takes connections over TLS.
    authorities: Option<Arc<Secret>>,
}

impl Reconciler for AuthentikServers {
    type Object = AuthentikServer;

    fn watches(&self, watches: &mut Watches) {
        watches.owns::<Deployment>().owns::<Service>().owns::<Ingress>().owns::<Secret>();
        watches.requires::<Domain>().requires::<PostgresDatabase>();
        watches.requires::<RedisConnection>().requires::<Redis>();
    }

    async fn reconcile(&self, ctx: &Context<'_, AuthentikServer>) -> Result<Action, Error> {
        let mut inputs = Inputs::default();
        ctx.component("Domain", given(&mut inputs.hostname, hostname(ctx))).await;
        ctx.component("Database", given(&mut inputs.database, database(ctx))).await;
        ctx.component("Redis", given(&mut inputs.redis, redis(ctx))).await;
        ctx.component("Keys", given(&mut inputs.keys, keys(ctx))).await;
        // While something is missing what runs is left running, as it is.
        if let Inputs {
            hostname: Some(host),
            database: Some(db),
            redis: Some(redis),
            keys: Some(keys),
        } = inputs
        {
            let deployment =
                async { ctx.apply(manifests::deployment(ctx, &host, (&db, &redis, &keys))?).await };
            ctx.component("Deployment", deployment).await;
            ctx.component("Service", async { ctx.apply(manifests::service(ctx)?).await }).await;
            ctx.component("Ingress", async { ctx.apply(manifests::ingress(ctx, &host)?).await })
                .await;
            ctx.status(|status| status.url = Some(format!("https://{host}")));
        }
        ctx.finish()
    }
}

/// A component that is there to give something to others.
async fn given<T>(
    place: &mut Option<T>,
    gift: impl Future<Output = Result<T, Error>>,
) -> Result<ComponentProgress, Error> {
    *place = Some(gift.await?);
    Ok(ComponentProgress::Ready)
}

async fn hostname(ctx: &Context<'_, AuthentikServer>) -> Result<String, Error> {
    let domain = ready(ctx.reference::<Domain>(None, &ctx.spec.domain).await?)?;
    Ok(format!("authentik.{}", domain.spec.hostname))
}

/// The Secret with how to connect.
async fn database(ctx: &Context<'_, AuthentikServer>) -> Result<Arc<Secret>, Error> {
    let database = ready(ctx.reference::<PostgresDatabase>(None, &ctx.spec.database).await?)?;
    let secret = database.status.as_ref().and_then(|status| status.fields.secret.clone());
    ctx.reference::<Secret>(None, &secret.unwrap_or_default()).await?.found()
}

/// A RedisConnection of that name or, if there is none, a Redis.
async fn redis(ctx: &Context<'_, AuthentikServer>) -> Result<RedisAt, Error> {
    let name = &ctx.spec.redis;
    let connection = ctx.reference::<RedisConnection>(None, name).await?;
    if !matches!(connection, Reference::Missing { .. }) {
        let spec = ready(connection)?.spec.clone();
        let secret = match &spec.secret {
            Some(secret) => Some(ctx.reference::<Secret>(None, secret).await?.found()?),
            None => None,
        };
        let authorities = match spec.tls.and_then(|tls| tls.ca_secret) {
            Some(name) => Some(ctx.reference::<Secret>(None, &name).await?.found()?),
            None => None,
        };
        return Ok(RedisAt { host: spec.host, port: spec.port, secret, authorities });
    }
    let own = ctx.reference::<Redis>(None, name).await?;
    if matches!(own, Reference::Missing { .. }) {
        let message = format!("neither RedisConnection nor Redis \"{name}\" exists");
        return Err(Error::waiting("MissingDependency", message));
    }
    let release = ready(own)?.status.as_ref().and_then(|s| s.fields.deployed_release.clone());
    let release = release.unwrap_or_default().name;
    let secret = ctx.reference::<Secret>(None, &release).await?.found()?;
    let host = format!("{release}.{}.svc", ctx.namespace().unwrap_or_default());
    let port = manifests::REDIS_PORT;
    Ok(RedisAt { host, port, secret: Some(secret), authorities: None })
}

async fn keys(ctx: &Context<'_, AuthentikServer>) -> Result<Arc<Secret>, Error> {
    let keys = SecretOnce::new()
        .random("secretKey", 50)
        .random("bootstrapPassword", 32)
        .random("bootstrapToken", 60)
        .rotated_by(ctx.spec.rotate.as_deref());
    ctx.secret_once(&format!("{}-keys", ctx.name_any()), keys).await
}
