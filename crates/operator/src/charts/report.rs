//! What the status of a chart resource says.

use catamaran_cluster::conditions::{Condition, reasons, types};
use catamaran_cluster::readiness::Readiness;
use catamaran_release::{Done, History, Release};
use serde_json::json;

use super::memory::NotReady;
use crate::manager::status::Draft;

/// The longest message: NOTES.txt may be long, and a resource is read often.
const MESSAGE_LIMIT: usize = 16 * 1024;

/// Said of a release whose record does not fit into Helm's one Secret.
const HIDDEN: &str =
    "in several Secrets, as it is too large for one: helm commands do not see this release";

/// What a resource cannot get past.
pub(super) enum Stuck {
    /// No values, no manifests, no history: [`types::IRRECONCILABLE`], with this reason.
    Irreconcilable(&'static str),
    /// The release's own action failed: [`types::RELEASE_FAILED`], with this reason.
    ReleaseFailed(&'static str),
}

/// The newest revision is deployed; `notes` is what its NOTES.txt says.
pub(super) fn deployed(draft: &mut Draft, history: &History, release: &Release, notes: &str) {
    let (reason, fallback) = if release.version == 1 {
        (reasons::INSTALL_SUCCESSFUL, "release was successfully installed")
    } else {
        (reasons::UPGRADE_SUCCESSFUL, "release was successfully upgraded")
    };
    let message = if notes.trim().is_empty() { fallback } else { notes };
    draft.condition(Condition::new(types::INITIALIZED, true, "Initialized", "the chart is loaded"));
    draft.condition(Condition::new(types::DEPLOYED, true, reason, cut(message)));
    draft.without(types::RELEASE_FAILED);
    draft.without(types::IRRECONCILABLE);
    // No manifest in it, as Go operators have it: it would show the content of Secrets.
    let mut told = json!({ "name": release.name, "version": release.version });
    if history.is_hidden_from_helm() {
        told["record"] = HIDDEN.into();
    }
    draft.set("deployedRelease", told);
}

/// The release's objects as the watches tell them.
pub(super) fn readiness(draft: &mut Draft, not_ready: &[NotReady]) {
    let Some((worst, rest)) = not_ready.split_first() else {
        let all = "all objects of the release are ready";
        draft.condition(Condition::new(types::READY, true, "Ready", all));
        return;
    };
    let more = if rest.is_empty() { String::new() } else { format!(" (and {} more)", rest.len()) };
    let (reason, told) = match &worst.readiness {
        Readiness::Pending { reason, message } | Readiness::Failed { reason, message } => {
            (reason.as_str(), message.as_str())
        }
        Readiness::Ready => ("Pending", ""),
    };
    let message = format!("{} {}: {told}{more}", worst.id.kind, worst.id.name);
    draft.condition(Condition::new(types::READY, false, reason, cut(&message)));
}

/// The resource cannot get on: why, and that it is not ready.
pub(super) fn stuck(draft: &mut Draft, stuck: &Stuck, message: &str) {
    let (type_, reason) = match stuck {
        Stuck::Irreconcilable(reason) => (types::IRRECONCILABLE, *reason),
        Stuck::ReleaseFailed(reason) => (types::RELEASE_FAILED, *reason),
    };
    draft.condition(Condition::new(types::INITIALIZED, true, "Initialized", "the chart is loaded"));
    draft.condition(Condition::new(type_, true, reason, cut(message)));
    draft.condition(Condition::new(types::READY, false, reason, cut(message)));
    if draft.find(types::DEPLOYED).is_none() {
        draft.condition(Condition::new(
            types::DEPLOYED,
            false,
            reason,
            "the chart is not installed",
        ));
    }
}

/// Something else has to happen first.
pub(super) fn waiting(draft: &mut Draft, reason: &str, message: &str) {
    draft.condition(Condition::new(types::READY, false, reason, cut(message)));
}

/// The lines that people of the Helm operator look for in the log.
pub(super) fn log(done: Done, release: &Release) {
    let (name, version) = (release.name.as_str(), release.version);
    match done {
        Done::Installed => tracing::info!(release = name, version, "Installed release"),
        Done::Upgraded => tracing::info!(release = name, version, "Upgraded release"),
        Done::RolledBack => tracing::info!(release = name, version, "Rolled back release"),
        Done::Repaired => tracing::info!(release = name, version, "Reconciled release"),
        Done::Unchanged => tracing::debug!(release = name, version, "Release is unchanged"),
    }
}

fn cut(message: &str) -> String {
    match message.char_indices().nth(MESSAGE_LIMIT) {
        Some((end, _)) => format!("{}…", message.get(..end).unwrap_or_default()),
        None => message.trim_end().to_owned(),
    }
}
