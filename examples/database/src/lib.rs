//! What a person does who looks after a database, as an operator: sets it up, writes backups, takes a
//! snapshot before it is deleted, upgrades it by a dump and a restore, refuses what would lose data.
//!
//! Everything that takes time is a Job, and what is done stands in the status: whoever dies in between,
//! the next one sees what is left to do.

pub mod api;
mod backups;
mod jobs;
mod manifests;
mod upgrade;

use std::time::Duration;

use catamaran_operator::native::{
    Action, Cx, Error, Only, Progress, Reconciler, SecretOnce, Watches,
};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Service};
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
}

impl Settled {
    /// As the status remembers it; as the spec says the first time.
    fn of(cx: &Cx<'_, Database>) -> Self {
        let (known, spec) = (cx.fields(), &cx.spec);
        let settled = Self {
            name: known.name.unwrap_or_else(|| spec.name.clone()),
            image: known.image.unwrap_or_else(|| spec.image.clone()),
            storage_size: known.storage_size.unwrap_or_else(|| spec.storage_size.clone()),
        };
        cx.status(|status| {
            status.name = Some(settled.name.clone());
            status.image = Some(settled.image.clone());
            status.storage_size = Some(settled.storage_size.clone());
            status.primary = Some(manifests::primary(cx));
        });
        settled
    }
}

impl Reconciler for Databases {
    type Object = Database;

    fn watches(&self, watches: &mut Watches) {
        watches.owns::<StatefulSet>().owns::<Service>().owns::<ConfigMap>();
        watches.owns::<Job>().owns::<CronJob>();
        // Whole pods of backups, for what they said in the end.
        watches.lists::<Pod>(Only::all().labels(jobs::RUNS));
    }

    async fn reconcile(&self, cx: &Cx<'_, Database>) -> Result<Action, Error> {
        let mut settled = Settled::of(cx);
        cx.component("Spec", async { refusals(cx, &settled) }).await;
        cx.component("Credentials", credentials(cx)).await;
        cx.component("Backups", backups::keep(cx, &settled)).await;
        cx.component("Upgrade", upgrade::prepare(cx, &mut settled)).await;
        let mut up = false;
        cx.component("StatefulSet", async {
            cx.apply(manifests::configuration(cx)?).await?;
            let replicas = replicas(cx, &settled);
            let progress = cx.apply(manifests::stateful_set(cx, &settled, replicas)?).await?;
            up = progress == Progress::Ready;
            if up && replicas != cx.spec.replicas {
                let message = "the others follow when the first one has its data";
                return Ok(Progress::pending("PrimaryFirst", message));
            }
            Ok(progress)
        })
        .await;
        cx.component("SetUp", set_up(cx, &settled, up)).await;
        cx.component("Service", async {
            cx.apply(manifests::pods_service(cx)?).await?;
            let open = settled.image == cx.spec.image && cx.fields().loads.is_none();
            cx.apply(manifests::service(cx, open)?).await
        })
        .await;
        if let Some(restore) = &cx.spec.restore {
            cx.component("Restore", backups::restore(cx, &settled, restore)).await;
        }
        cx.prune::<CronJob>().await?;
        cx.prune::<Job>().await?;
        cx.finish()
    }

    /// A database that was never set up holds nothing.
    async fn cleanup(&self, cx: &Cx<'_, Database>) -> Result<Progress, Error> {
        if !cx.spec.snapshot || cx.fields().set_up.is_none() {
            return Ok(Progress::Ready);
        }
        backups::volume(cx).await?;
        cx.apply(jobs::dump(cx, &Settled::of(cx), "snapshot", false)?).await
    }
}

/// Standbys are copies: while the primary has not its data there is nothing to copy, and those of an
/// older server would be of no use to a newer one.
fn replicas(cx: &Cx<'_, Database>, settled: &Settled) -> i32 {
    let known = cx.fields();
    let whole = known.set_up.as_ref() == Some(&settled.image) && known.loads.is_none();
    if whole { cx.spec.replicas } else { 1 }
}

async fn credentials(cx: &Cx<'_, Database>) -> Result<Progress, Error> {
    let once = SecretOnce::new().given("username", "postgres").random("password", 32);
    cx.secret_once(&manifests::secret_name(cx), once).await?;
    Ok(Progress::Ready)
}

/// The database inside of the server, and after an upgrade what the old one held.
async fn set_up(cx: &Cx<'_, Database>, settled: &Settled, up: bool) -> Result<Progress, Error> {
    let known = cx.fields();
    if known.set_up.as_ref() != Some(&settled.image) {
        // Before that the Job could meet the server of before an upgrade.
        if !up {
            return Ok(Progress::pending("WaitingForServer", "the server is not up yet"));
        }
        let progress = cx.apply_or_recreate(jobs::set_up(cx, settled)?).await?;
        if progress != Progress::Ready {
            return Ok(progress);
        }
        cx.status(|status| status.set_up = Some(settled.image.clone()));
        cx.requeue(SOON);
    }
    upgrade::load(cx, settled).await
}

/// What would lose data is not done; everything else goes on.
fn refusals(cx: &Cx<'_, Database>, settled: &Settled) -> Result<Progress, Error> {
    let spec = &cx.spec;
    let refused = |reason: &str, message: String| Ok(Progress::pending(reason, message));
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
    if cx.name_any().len() > manifests::LONGEST_NAME {
        let message = format!("a name has at most {} characters", manifests::LONGEST_NAME);
        return Err(Error::Permanent(message));
    }
    Ok(Progress::Ready)
}
