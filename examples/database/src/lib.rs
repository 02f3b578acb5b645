//! What a person does who looks after a database, as an operator: sets it up, writes backups, takes a
//! snapshot before it is deleted, upgrades it by a dump and a restore, refuses what would lose data.
//!
//! Everything that takes time is a Job, and what is done stands in the status: whoever dies in between,
//! the next one sees what is left to do.

pub mod api;
mod backups;
mod failover;
mod jobs;
mod manifests;
mod upgrade;

use std::sync::Arc;
use std::time::Duration;

use catamaran_operator::native::{
    Action, ComponentProgress, Context, Error, Only, Reconciler, SecretOnce, Watches,
};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret, Service};
use kube::ResourceExt;

use api::Database;

/// Our own status wakes nobody: what follows from it is done a moment later.
const SOON: Duration = Duration::from_millis(10);

/// Reconciles [`Database`].
#[derive(Debug)]
pub struct Databases;

/// What a database is, whatever its spec asks for now.
#[derive(Clone, Debug)]
struct Settled {
    name: String,
    image: String,
    storage_size: String,
    /// Who is written to; nobody while that is decided.
    primary: Option<String>,
    term: i64,
    server: i64,
    /// Whether the server may begin with nothing.
    is_new: bool,
}

impl Settled {
    /// As the status remembers it; as the spec says the first time.
    fn of(ctx: &Context<'_, Database>) -> Self {
        let spec = &ctx.spec;
        ctx.status(|status| {
            status.name.get_or_insert_with(|| spec.name.clone());
            status.image.get_or_insert_with(|| spec.image.clone());
            status.storage_size.get_or_insert_with(|| spec.storage_size.clone());
            status.primary.get_or_insert_with(|| manifests::pod_name(ctx, 0));
            if status.server == 0 {
                (status.server, status.term, status.promoted) = (1, 1, 1);
            }
        });
        let known = ctx.fields();
        let image = known.image.unwrap_or_default();
        Self {
            is_new: known.set_up.as_ref() != Some(&image),
            name: known.name.unwrap_or_default(),
            storage_size: known.storage_size.unwrap_or_default(),
            primary: known.primary,
            term: known.term,
            server: known.server,
            image,
        }
    }
}

impl Reconciler for Databases {
    type Object = Database;

    fn watches(&self, watches: &mut Watches) {
        watches.owns::<StatefulSet>().owns::<Service>().owns::<ConfigMap>().owns::<Secret>();
        watches.owns::<Job>().owns::<CronJob>();
        // Whole pods: of servers whether they are ready, of Jobs what they said in the end.
        watches.lists::<Pod>(Only::all().labels(jobs::PODS));
        // Or a foreground deletion would take the server before its snapshot is taken.
        watches.children_outlast_cleanup();
    }

    async fn reconcile(&self, ctx: &Context<'_, Database>) -> Result<Action, Error> {
        let is_recorded = ctx.fields().storage_size.is_some();
        let mut settled = Settled::of(ctx);
        if !is_recorded {
            // The status says what is settled before anything is made by it: the spec may change at any
            // time, and what is made cannot.
            ctx.requeue(SOON);
            let message = "the status does not say yet what cannot change later";
            ctx.component("Spec", async { Ok(ComponentProgress::pending("NotRecorded", message)) })
                .await;
            return ctx.finish();
        }
        let servers = ctx.list::<Pod>(&manifests::labels(ctx).into_iter().collect())?;
        ctx.status(|status| status.at_risk = Some(at_risk(ctx.spec.replicas).to_owned()));
        ctx.component("Spec", async { refusals(ctx, &settled) }).await;
        ctx.component("Credentials", credentials(ctx)).await;
        ctx.component("Backups", backups::keep(ctx, &settled)).await;
        ctx.component("Upgrade", upgrade::prepare(ctx, &mut settled)).await;
        ctx.component("Primary", failover::follow(ctx, &mut settled, &servers)).await;
        let mut is_up = false;
        ctx.component("StatefulSet", async {
            let progress = serve(ctx, &settled, &servers).await?;
            is_up = progress == ComponentProgress::Ready;
            if is_up && !is_whole(ctx, &settled) && ctx.spec.replicas > 1 {
                let message = "the others follow when the first one has its data";
                return Ok(ComponentProgress::pending("PrimaryFirst", message));
            }
            Ok(progress)
        })
        .await;
        ctx.component("SetUp", set_up(ctx, &settled, is_up)).await;
        ctx.component("Service", async {
            ctx.apply(manifests::pods_service(ctx)?).await?;
            ctx.apply(manifests::primary_service(ctx, &settled)?).await?;
            let known = ctx.fields();
            let has_all = settled.image == ctx.spec.image && known.loads.is_none();
            let is_open = has_all && known.promoted == settled.term;
            ctx.apply(manifests::service(ctx, &settled, is_open)?).await
        })
        .await;
        if let Some(restore) = &ctx.spec.restore {
            ctx.component("Restore", backups::restore(ctx, &settled, restore)).await;
        }
        ctx.prune::<CronJob>().await?;
        ctx.prune::<Job>().await?;
        ctx.finish()
    }

    async fn cleanup(&self, ctx: &Context<'_, Database>) -> Result<ComponentProgress, Error> {
        backups::snapshot(ctx, &Settled::of(ctx)).await
    }
}

/// The servers as they shall be; those of before an upgrade, or of another port, go.
async fn serve(
    ctx: &Context<'_, Database>,
    settled: &Settled,
    servers: &[Arc<Pod>],
) -> Result<ComponentProgress, Error> {
    ctx.apply(manifests::configuration(ctx)?).await?;
    let replicas = replicas(ctx, settled);
    let progress = ctx.apply(manifests::stateful_set(ctx, settled, replicas)?).await?;
    let server = manifests::server(ctx, settled);
    let mut ready = 0;
    for pod in servers {
        if pod.labels().get(manifests::SERVER) != Some(&server) {
            if pod.metadata.deletion_timestamp.is_none() {
                ctx.delete(&**pod).await?;
            }
            return Ok(ComponentProgress::pending(
                "Replacing",
                format!("pod {} goes", pod.name_any()),
            ));
        }
        ready += i32::from(failover::is_ready(pod));
    }
    if progress == ComponentProgress::Ready && ready != replicas {
        let (reason, why) =
            servers.iter().find_map(|pod| failover::trouble(pod)).unwrap_or_default();
        let message = format!("{ready} of {replicas} servers are ready{why}");
        let reason = Some(reason).filter(|reason| !reason.is_empty());
        return Ok(ComponentProgress::pending(reason.as_deref().unwrap_or("LessReady"), message));
    }
    Ok(progress)
}

/// Whether the primary has its data.
fn is_whole(ctx: &Context<'_, Database>, settled: &Settled) -> bool {
    let known = ctx.fields();
    known.set_up.as_ref() == Some(&settled.image) && known.loads.is_none()
}

/// Standbys are copies: while the primary has not its data there is nothing to copy, and those of an
/// older server would be of no use to a newer one. The primary stays until another one has taken over.
fn replicas(ctx: &Context<'_, Database>, settled: &Settled) -> i32 {
    let known = ctx.fields();
    let used = [known.primary, known.deposed].into_iter().flatten();
    let used = used.map(|pod| failover::ordinal(&pod) + 1).max().unwrap_or(1);
    if is_whole(ctx, settled) { ctx.spec.replicas.max(used) } else { used }
}

async fn credentials(ctx: &Context<'_, Database>) -> Result<ComponentProgress, Error> {
    let once = SecretOnce::new().given("username", "postgres").random("password", 32);
    ctx.secret_once(&manifests::secret_name(ctx), once).await?;
    Ok(ComponentProgress::Ready)
}

/// The database inside of the server, and after an upgrade what the old one held.
async fn set_up(
    ctx: &Context<'_, Database>,
    settled: &Settled,
    is_up: bool,
) -> Result<ComponentProgress, Error> {
    let known = ctx.fields();
    if known.set_up.as_ref() != Some(&settled.image) {
        // Before that the Job could meet the server of before an upgrade.
        if !is_up {
            return Ok(ComponentProgress::pending("WaitingForServer", "the server is not up yet"));
        }
        let progress = ctx.apply_or_recreate(jobs::set_up(ctx, settled)?).await?;
        if progress != ComponentProgress::Ready {
            return Ok(progress);
        }
        ctx.status(|status| status.set_up = Some(settled.image.clone()));
        ctx.requeue(SOON);
    }
    upgrade::load(ctx, settled).await
}

/// What the loss of the primary with its volume may lose. How much that is no one knows who has not
/// got the primary any more.
const fn at_risk(replicas: i32) -> &'static str {
    if replicas > 1 {
        "commits of the primary that no standby had received yet: standbys copy asynchronously, and a \
         failover does not bring them back"
    } else {
        "everything since the last backup: there is one copy"
    }
}

/// What would lose data is not done; everything else goes on.
fn refusals(ctx: &Context<'_, Database>, settled: &Settled) -> Result<ComponentProgress, Error> {
    let spec = &ctx.spec;
    let refused = |reason: &str, message: String| Ok(ComponentProgress::pending(reason, message));
    if spec.name != settled.name {
        let message = format!("the database is {:?}, and cannot be renamed", settled.name);
        return refused("NameCannotChange", message);
    }
    if spec.storage_size != settled.storage_size {
        let message = format!("the volumes have {}, and cannot be resized", settled.storage_size);
        return refused("StorageCannotChange", message);
    }
    if upgrade::is_downgrade(&settled.image, &spec.image) {
        let message = format!("{} runs, and {} could not read it", settled.image, spec.image);
        return refused("DowngradeRefused", message);
    }
    if ctx.name_any().len() > manifests::LONGEST_NAME {
        let message = format!("a name has at most {} characters", manifests::LONGEST_NAME);
        return Err(Error::Permanent(message));
    }
    Ok(ComponentProgress::Ready)
}
