//! What is done once, or regularly: a pod of the server's image with a script.

use std::collections::BTreeMap;

use catamaran_operator::native::{Cx, Error};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use kube::ResourceExt;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::Settled;
use crate::api::{BackupSpec, Database};
use crate::manifests::{backups_name, connection, object, server_host, short};

/// The pods of all of these.
pub(crate) const RUNS: &str = "app.kubernetes.io/name=database-run";
/// The script that makes the database.
pub const SET_UP: &str = include_str!("../scripts/set-up.sh");
/// The script that writes it to a file.
pub const DUMP: &str = include_str!("../scripts/dump.sh");
/// The script that reads it from one.
pub const LOAD: &str = include_str!("../scripts/load.sh");

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

pub(crate) fn set_up(cx: &Cx<'_, Database>, settled: &Settled) -> Result<Job, Error> {
    let what = format!("set-up-{}", digest(&settled.image));
    once(cx, &what, &pod(cx, settled, "set-up", SET_UP, &[]))
}

/// A dump for a reason, which is part of its name. `alone`: nobody else is connected meanwhile.
pub(crate) fn dump(
    cx: &Cx<'_, Database>,
    settled: &Settled,
    why: &str,
    alone: bool,
) -> Result<Job, Error> {
    let alone = if alone { "yes" } else { "no" };
    let environment = [("WHY", why), ("ALONE", alone)];
    once(cx, &format!("{why}-dump"), &pod(cx, settled, "dump", DUMP, &environment))
}

pub(crate) fn load(
    cx: &Cx<'_, Database>,
    settled: &Settled,
    what: &str,
    backup: &str,
    why: Option<&str>,
) -> Result<Job, Error> {
    let environment = [("BACKUP", backup), ("WHY", why.unwrap_or_default())];
    once(cx, &format!("{what}-load"), &pod(cx, settled, "load", LOAD, &environment))
}

pub(crate) fn schedule(
    cx: &Cx<'_, Database>,
    settled: &Settled,
    backup: &BackupSpec,
) -> Result<CronJob, Error> {
    let keep = backup.keep.to_string();
    let template = pod(cx, settled, "backup", DUMP, &[("WHY", "backup"), ("KEEP", &keep)]);
    object(json!({
        "metadata": { "name": format!("{}-backup", cx.name_any()) },
        "spec": {
            "schedule": backup.schedule,
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
    cx: &Cx<'_, Database>,
    settled: &Settled,
    component: &str,
    script: &str,
    environment: &[(&str, &str)],
) -> Value {
    let mut all = connection(cx, &server_host(cx));
    let fixed = [
        ("NAME", settled.name.as_str()),
        ("FOLDER", "/backups"),
        ("REPORT", "/dev/termination-log"),
    ];
    let fixed = fixed.iter().chain(environment);
    all.extend(fixed.map(|(name, value)| json!({ "name": name, "value": value })));
    // Only what reads or writes backups waits for their volume.
    let (mounts, volumes) = if component == "set-up" {
        (json!([]), json!([]))
    } else {
        let claim = json!({ "claimName": backups_name(cx) });
        (
            json!([{ "name": "backups", "mountPath": "/backups" }]),
            json!([{ "name": "backups", "persistentVolumeClaim": claim }]),
        )
    };
    json!({
        "metadata": { "labels": labels(cx, component), "annotations": cx.annotations() },
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
