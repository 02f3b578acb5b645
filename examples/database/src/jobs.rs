//! What is done once, or regularly: a pod of the server's image with a script.

use std::collections::BTreeMap;

use catamaran_operator::native::{Context, Error, PodResult};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::core::Selector;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::api::{BackupSpec, Database};
use crate::manifests::{backups_name, connection, object, short};
use crate::{Settled, is_whole};

/// The pods of all of these, and those of servers.
pub(crate) const PODS: &str = "app.kubernetes.io/name in (database,database-run)";
/// The script that makes the database.
pub const SET_UP: &str = include_str!("../scripts/set-up.sh");
/// The script that writes it to a file.
pub const DUMP: &str = include_str!("../scripts/dump.sh");
/// The script that reads it from one.
pub const LOAD: &str = include_str!("../scripts/load.sh");
/// The script that finds the standby that knows the most.
pub const ELECT: &str = include_str!("../scripts/elect.sh");
/// The script that makes it the primary.
pub const PROMOTE: &str = include_str!("../scripts/promote.sh");

/// So that another text is another name.
pub(crate) fn digest(text: &str) -> String {
    let digest = Sha256::digest(text);
    let number = digest.iter().take(4).fold(0_u32, |all, byte| (all << 8) | u32::from(*byte));
    format!("{number:08x}")
}

/// Why a dump is taken before an upgrade.
pub(crate) fn upgrade_to(image: &str) -> String {
    format!("upgrade-{}", digest(image))
}

pub(crate) fn labels(database: &Database, component: &str) -> BTreeMap<String, String> {
    [
        ("app.kubernetes.io/name", "database-run".to_owned()),
        ("app.kubernetes.io/instance", database.name_any()),
        ("app.kubernetes.io/component", component.to_owned()),
    ]
    .map(|(label, value)| (label.to_owned(), value))
    .into()
}

/// How the pods of a component, or of one Job of it, have ended.
pub(crate) fn endings(
    ctx: &Context<'_, Database>,
    component: &str,
    job: Option<&str>,
) -> Result<Vec<PodResult>, Error> {
    let mut labels = labels(ctx, component);
    if let Some(job) = job {
        labels.insert("batch.kubernetes.io/job-name".to_owned(), job.to_owned());
    }
    let selector: Selector = labels.into_iter().collect();
    Ok(ctx.list::<Pod>(&selector)?.iter().filter_map(|pod| PodResult::of(pod)).collect())
}

pub(crate) fn set_up(ctx: &Context<'_, Database>, settled: &Settled) -> Result<Job, Error> {
    let what = format!("set-up-{}", settled.server);
    once(ctx, &what, &pod(ctx, settled, "set-up", SET_UP, &[]))
}

pub(crate) fn elect(
    ctx: &Context<'_, Database>,
    settled: &Settled,
    candidates: &str,
) -> Result<Job, Error> {
    let template = pod(ctx, settled, "elect", ELECT, &[("CANDIDATES", candidates)]);
    once(ctx, &format!("elect-{}", settled.term), &template)
}

pub(crate) fn promote(ctx: &Context<'_, Database>, settled: &Settled) -> Result<Job, Error> {
    let what = format!("promote-{}", settled.term);
    once(ctx, &what, &pod(ctx, settled, "promote", PROMOTE, &[]))
}

/// A dump for a reason, which is part of its name. `alone`: nobody else is connected meanwhile.
pub(crate) fn dump(
    ctx: &Context<'_, Database>,
    settled: &Settled,
    why: &str,
    alone: bool,
) -> Result<Job, Error> {
    let alone = if alone { "yes" } else { "no" };
    let environment = [("WHY", why), ("ALONE", alone)];
    once(ctx, &format!("{why}-dump"), &pod(ctx, settled, "dump", DUMP, &environment))
}

pub(crate) fn load(
    ctx: &Context<'_, Database>,
    settled: &Settled,
    what: &str,
    backup: &str,
    why: Option<&str>,
) -> Result<Job, Error> {
    let environment = [("BACKUP", backup), ("WHY", why.unwrap_or_default())];
    once(ctx, &format!("{what}-load"), &pod(ctx, settled, "load", LOAD, &environment))
}

pub(crate) fn schedule(
    ctx: &Context<'_, Database>,
    settled: &Settled,
    backup: &BackupSpec,
) -> Result<CronJob, Error> {
    let keep = backup.keep.to_string();
    let template = pod(ctx, settled, "backup", DUMP, &[("WHY", "backup"), ("KEEP", &keep)]);
    object(json!({
        "metadata": { "name": format!("{}-backup", ctx.name_any()) },
        "spec": {
            "schedule": backup.schedule,
            // What is empty until it is loaded makes no backup.
            "suspend": !is_whole(ctx, settled),
            "concurrencyPolicy": "Forbid",
            "successfulJobsHistoryLimit": 1,
            "failedJobsHistoryLimit": 1,
            "jobTemplate": { "spec": { "backoffLimit": 2, "template": template } },
        },
    }))
}

/// A Job that is ready when it is done.
fn once(database: &Database, what: &str, template: &Value) -> Result<Job, Error> {
    object(json!({
        "metadata": {
            "name": format!("{}-{what}", database.name_any()),
            "annotations": {
                "catamaran.dev/ready-when": r#"{.status.conditions[?(@.type=="Complete")].status}=True"#,
            },
        },
        "spec": { "backoffLimit": 4, "template": template },
    }))
}

fn pod(
    ctx: &Context<'_, Database>,
    settled: &Settled,
    component: &str,
    script: &str,
    environment: &[(&str, &str)],
) -> Value {
    let mut all = connection(ctx);
    let fixed = [
        ("NAME", settled.name.as_str()),
        ("FOLDER", "/backups"),
        ("REPORT", "/dev/termination-log"),
    ];
    let fixed = fixed.iter().chain(environment);
    all.extend(fixed.map(|(name, value)| json!({ "name": name, "value": value })));
    // Only what reads or writes backups waits for their volume.
    let (mounts, volumes) = if ["set-up", "elect", "promote"].contains(&component) {
        (json!([]), json!([]))
    } else {
        let claim = json!({ "claimName": backups_name(ctx) });
        (
            json!([{ "name": "backups", "mountPath": "/backups" }]),
            json!([{ "name": "backups", "persistentVolumeClaim": claim }]),
        )
    };
    json!({
        "metadata": { "labels": labels(ctx, component), "annotations": ctx.annotations() },
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": false,
            "securityContext": short(),
            "containers": [{
                "name": component,
                "image": settled.image,
                "command": ["sh", "-c", script],
                "env": all,
                "volumeMounts": mounts,
            }],
            "volumes": volumes,
        },
    })
}
