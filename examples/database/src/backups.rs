//! Backups: a volume that outlives the database, a schedule, what came of the last one, a restore.

use catamaran_operator::native::{ComponentProgress, Context, Error};
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::api::PostParams;
use kube::{Api, ResourceExt};
use serde::Deserialize;

use crate::api::{Database, LastBackup, RestoreSpec};
use crate::{SOON, Settled, jobs, manifests};

/// The schedule, and what the status tells of its last run.
pub(crate) async fn keep(
    ctx: &Context<'_, Database>,
    settled: &Settled,
) -> Result<ComponentProgress, Error> {
    if let Some(last) = last(ctx)? {
        ctx.status(|status| {
            let at = |backup: &LastBackup| backup.finished_at.as_ref().map(|at| at.0);
            if status.last_backup.as_ref().is_none_or(|known| at(known) <= at(&last)) {
                status.last_backup = Some(last);
            }
        });
    }
    let Some(backup) = &ctx.spec.backup else { return Ok(ComponentProgress::Ready) };
    volume(ctx).await?;
    let progress = ctx.apply(jobs::schedule(ctx, settled, backup)?).await?;
    match (progress, ctx.fields().last_backup) {
        (ComponentProgress::Ready, Some(last)) if !last.succeeded => {
            Ok(ComponentProgress::pending("BackupFailed", "the last backup failed: see its pod"))
        }
        (progress, _) => Ok(progress),
    }
}

/// Once for each request.
pub(crate) async fn restore(
    ctx: &Context<'_, Database>,
    settled: &Settled,
    restore: &RestoreSpec,
) -> Result<ComponentProgress, Error> {
    let asked = serde_json::to_string(restore).map_err(|e| Error::Permanent(e.to_string()))?;
    let key = format!("restore-{}", jobs::digest(&asked));
    let known = ctx.fields();
    if known.restored.as_ref() == Some(&key) {
        return Ok(ComponentProgress::Ready);
    }
    if known.set_up.as_ref() != Some(&settled.image) || known.loads.is_some() {
        return Ok(ComponentProgress::pending(
            "WaitingForServer",
            "the database is not set up yet",
        ));
    }
    volume(ctx).await?;
    let progress =
        ctx.apply_or_recreate(jobs::load(ctx, settled, &key, &restore.backup, None)?).await?;
    if progress == ComponentProgress::Ready {
        ctx.status(|status| status.restored = Some(key));
        ctx.event("Restored", &format!("the database is what backup {} holds", restore.backup));
    }
    Ok(progress)
}

/// The volume of backups. It has no owner: what is deleted by mistake is in there.
pub(crate) async fn volume(ctx: &Context<'_, Database>) -> Result<(), Error> {
    let name = manifests::backups_name(ctx);
    let found = ctx.reference::<PersistentVolumeClaim>(None, &name).await?.found();
    if !matches!(found, Err(Error::Waiting { .. })) {
        return found.map(drop);
    }
    let api: Api<PersistentVolumeClaim> =
        Api::namespaced(ctx.client().clone(), &ctx.namespace().unwrap_or_default());
    match api.create(&PostParams::default(), &manifests::backups_claim(ctx)?).await {
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
        created => Ok(created.map(drop)?),
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Report {
    file: String,
    bytes: i64,
}

/// What the pod of a scheduled backup said that ended last.
fn last(ctx: &Context<'_, Database>) -> Result<Option<LastBackup>, Error> {
    let ended = jobs::endings(ctx, "backup", None)?.into_iter().map(|ending| {
        let Report { file, bytes } = serde_json::from_str(&ending.message).unwrap_or_default();
        LastBackup { finished_at: ending.at, succeeded: ending.is_success, file, bytes }
    });
    Ok(ended.max_by_key(|backup| backup.finished_at.as_ref().map(|at| at.0)))
}

/// The last dump, before everything goes. That it is there is written down first: its Job goes, too, and
/// nobody could take it again.
pub(crate) async fn snapshot(
    ctx: &Context<'_, Database>,
    settled: &Settled,
) -> Result<ComponentProgress, Error> {
    let known = ctx.fields();
    // A database that was never set up holds nothing; one in the middle of an upgrade holds nothing yet,
    // and what it will hold lies on the volume of backups.
    let holds = known.set_up.is_some() && known.loads.is_none();
    if !ctx.spec.snapshot || !holds || known.snapshot.is_some() {
        return Ok(ComponentProgress::Ready);
    }
    match ctx.apply(jobs::dump(ctx, settled, "snapshot", false)?).await {
        // The volume of backups goes with its namespace.
        Err(Error::Waiting { reason, .. }) if reason == "NamespaceTerminating" => {
            return Ok(ComponentProgress::Ready);
        }
        Ok(ComponentProgress::Ready) => {}
        waits => {
            volume(ctx).await?;
            return waits;
        }
    }
    let endings = jobs::endings(ctx, "dump", Some(&format!("{}-snapshot-dump", ctx.name_any())))?;
    let said = endings.iter().rev().find(|ending| ending.is_success).map(|ending| &ending.message);
    let said: Report = said.and_then(|said| serde_json::from_str(said).ok()).unwrap_or_default();
    ctx.event("Snapshot", &format!("the database is on its volume of backups: {}", said.file));
    ctx.status(|status| status.snapshot = Some(said.file));
    ctx.requeue(SOON);
    Ok(ComponentProgress::pending("Snapshot", "the database is on its volume of backups"))
}
