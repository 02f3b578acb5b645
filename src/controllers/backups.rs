//! The backups of a MemcachedBackup: a CronJob that runs this program, a volume, the Job of a restore,
//! and what the pods of both said when they ended.

use std::collections::BTreeMap;

use catamaran_operator::native::{ComponentProgress, Context, Error, Only, PodResult, Watches};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::ResourceExt;
use kube::core::Selector;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::memcachedbackup::instance;
use crate::api::v1::{BackupRun, BackupSpec, MemcachedBackup, RestoreSpec};
use crate::memcached::Report;

const NAME: &str = "app.kubernetes.io/name";
const INSTANCE: &str = "app.kubernetes.io/instance";
/// Backup or restore.
const COMPONENT: &str = "app.kubernetes.io/component";
/// The name that the pods of both have.
const RUN: &str = "memcachedbackup-run";
/// The user of the operator's image.
const USER: i64 = 65532;

pub(super) fn watches(watches: &mut Watches) {
    watches.owns::<CronJob>().owns::<Job>().owns::<PersistentVolumeClaim>();
    // Whole pods, for what they said in the end.
    watches.lists::<Pod>(Only::all().labels(format!("{NAME}={RUN}")));
}

/// Keeps what `spec.backup` asks for, and nothing else. The volume stays until the resource goes.
pub(super) async fn keep(
    ctx: &Context<'_, MemcachedBackup>,
    image: Option<&str>,
) -> Result<(), Error> {
    if let Some(backup) = &ctx.spec.backup {
        let last = ended(ctx, "backup")?;
        ctx.status(|status| newer(&mut status.last_backup, last));
        ctx.component("Backup", schedule(ctx, backup, image)).await;
        if let Some(restore) = &backup.restore {
            let last = ended(ctx, "restore")?;
            ctx.status(|status| newer(&mut status.last_restore, last));
            ctx.component("Restore", restored(ctx, backup, restore, image)).await;
        }
    }
    ctx.prune::<CronJob>().await?;
    ctx.prune::<Job>().await?;
    Ok(())
}

async fn schedule(
    ctx: &Context<'_, MemcachedBackup>,
    backup: &BackupSpec,
    image: Option<&str>,
) -> Result<ComponentProgress, Error> {
    volume(ctx, backup).await?;
    let keep = backup.keep.to_string();
    let arguments = ["--to", "/backups", "--keep", &keep];
    let template = pod(ctx, backup, "backup", own_or(backup, image)?, &arguments);
    let cron_job: CronJob = object(json!({
        "metadata": { "name": format!("{}-backup", ctx.name_any()), "labels": labels(ctx, "backup") },
        "spec": {
            "schedule": backup.schedule,
            "concurrencyPolicy": "Forbid",
            "successfulJobsHistoryLimit": 1,
            "failedJobsHistoryLimit": 1,
            "jobTemplate": { "spec": { "backoffLimit": 2, "template": template } },
        },
    }))?;
    match (ctx.apply(cron_job).await?, ctx.fields().last_backup) {
        (ComponentProgress::Ready, Some(last)) if !last.succeeded => {
            Ok(ComponentProgress::pending("BackupFailed", last.message))
        }
        (progress, _) => Ok(progress),
    }
}

/// Its own, unless another one is named. Of somebody else's that has its name nothing is taken.
async fn volume(ctx: &Context<'_, MemcachedBackup>, backup: &BackupSpec) -> Result<(), Error> {
    if backup.storage.claim.is_none() {
        // Where volumes are bound to the first pod it waits for one: that is no trouble.
        ctx.apply(claim(ctx, backup)?).await?;
    }
    Ok(())
}

async fn restored(
    ctx: &Context<'_, MemcachedBackup>,
    backup: &BackupSpec,
    restore: &RestoreSpec,
    image: Option<&str>,
) -> Result<ComponentProgress, Error> {
    let name = format!("{}-restore-{:08x}", ctx.name_any(), digest(restore)?);
    let last = ctx.fields().last_restore.filter(|last| last.job == name);
    if last.as_ref().is_some_and(|last| last.succeeded) {
        return Ok(ComponentProgress::Ready); // done once; the Job is not needed any more
    }
    volume(ctx, backup).await?;
    let mut arguments = vec!["--from", "/backups", "--backup", &restore.backup];
    if restore.overwrite {
        arguments.push("--overwrite");
    }
    let template = pod(ctx, backup, "restore", own_or(backup, image)?, &arguments);
    let job: Job = object(json!({
        "metadata": { "name": name, "labels": labels(ctx, "restore") },
        "spec": { "backoffLimit": 2, "template": template },
    }))?;
    ctx.apply_or_recreate(job).await?;
    Ok(match last {
        Some(last) => ComponentProgress::pending("RestoreFailed", last.message),
        None => ComponentProgress::pending("Restoring", format!("Job {name} has not ended")),
    })
}

/// Of what is asked for: each has a Job of its own.
fn digest(restore: &RestoreSpec) -> Result<u32, Error> {
    let asked = serde_json::to_vec(restore).map_err(|e| Error::Permanent(e.to_string()))?;
    let digest = Sha256::digest(&asked);
    Ok(digest.iter().take(4).fold(0, |all, byte| (all << 8) | u32::from(*byte)))
}

fn own_or<'a>(backup: &'a BackupSpec, image: Option<&'a str>) -> Result<&'a str, Error> {
    backup.image.as_deref().or(image).ok_or_else(|| {
        let message = "the operator does not know its own image: set spec.backup.image, \
                       or OPERATOR_IMAGE in its environment";
        Error::waiting("ImageUnknown", message)
    })
}

fn claim_name(backup: &MemcachedBackup) -> String {
    format!("{}-backup", backup.name_any())
}

fn claim(ctx: &MemcachedBackup, backup: &BackupSpec) -> Result<PersistentVolumeClaim, Error> {
    let storage = &backup.storage;
    object(json!({
        "metadata": { "name": claim_name(ctx), "labels": labels(ctx, "backup") },
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage.storage_class_name,
            "resources": { "requests": { "storage": storage.size } },
        },
    }))
}

fn labels(backup: &MemcachedBackup, component: &str) -> BTreeMap<&'static str, String> {
    [(NAME, RUN.to_owned()), (INSTANCE, instance(backup)), (COMPONENT, component.to_owned())].into()
}

/// The template of a pod that runs this program, and tells what came of it when it ends.
fn pod(
    ctx: &Context<'_, MemcachedBackup>,
    backup: &BackupSpec,
    component: &str,
    image: &str,
    arguments: &[&str],
) -> Value {
    let port = backup.port.to_string();
    let server = [component, "--host", &backup.host, "--port", &port];
    let report = ["--report", "/dev/termination-log"];
    let args: Vec<&str> = server.iter().chain(arguments).chain(&report).copied().collect();
    let own = claim_name(ctx);
    let claim = backup.storage.claim.as_deref().unwrap_or(&own);
    json!({
        "metadata": { "labels": labels(ctx, component), "annotations": ctx.annotations() },
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": false,
            "securityContext": {
                "runAsNonRoot": true,
                "runAsUser": USER,
                "fsGroup": USER,
                "seccompProfile": { "type": "RuntimeDefault" },
            },
            "containers": [{
                "name": component,
                "image": image,
                "args": args,
                "volumeMounts": [{ "name": "backups", "mountPath": "/backups" }],
                "securityContext": {
                    "allowPrivilegeEscalation": false,
                    "readOnlyRootFilesystem": true,
                    "capabilities": { "drop": ["ALL"] },
                },
            }],
            "volumes": [{ "name": "backups", "persistentVolumeClaim": { "claimName": claim } }],
        },
    })
}

/// What the pod of a component said that ended last.
fn ended(ctx: &Context<'_, MemcachedBackup>, component: &str) -> Result<Option<BackupRun>, Error> {
    let selector: Selector = labels(ctx, component)
        .into_iter()
        .map(|(label, value)| (label.to_owned(), value))
        .collect::<BTreeMap<_, _>>()
        .into_iter()
        .collect();
    let pods = ctx.list::<Pod>(&selector)?;
    let runs = pods.iter().filter_map(|pod| run(pod));
    Ok(runs.max_by_key(|run| run.finished_at.as_ref().map(|at| at.0)))
}

/// What came of a pod, if it has ended.
fn run(pod: &Pod) -> Option<BackupRun> {
    let ending = PodResult::of(pod)?;
    let report: Report = serde_json::from_str(&ending.message).unwrap_or_default();
    let signed = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    let message = match (ending.is_success, report.error.as_str()) {
        (false, "") => {
            let code = ending.exit_code.unwrap_or(-1);
            format!("pod {} ended with exit code {code}", pod.name_any())
        }
        (_, error) => error.to_owned(),
    };
    Some(BackupRun {
        job: pod.labels().get("batch.kubernetes.io/job-name").cloned().unwrap_or_default(),
        finished_at: ending.at,
        succeeded: ending.is_success,
        file: report.file,
        items: signed(report.items),
        bytes: signed(report.bytes),
        skipped: signed(report.skipped),
        message,
    })
}

/// What is told stays when its pod is gone.
fn newer(known: &mut Option<BackupRun>, last: Option<BackupRun>) {
    let at = |run: &BackupRun| run.finished_at.as_ref().map(|at| at.0);
    if let Some(last) = last
        && known.as_ref().is_none_or(|known| at(known) <= at(&last))
    {
        *known = Some(last);
    }
}

fn object<C: DeserializeOwned>(manifest: Value) -> Result<C, Error> {
    serde_json::from_value(manifest).map_err(|error| Error::Permanent(error.to_string()))
}
