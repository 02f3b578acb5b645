//! What the status of a chart resource says.

use catamaran_cluster::conditions::{Condition, ConditionStatus, reasons, types};
use catamaran_cluster::readiness::Readiness;
use catamaran_cluster::redact::Sensitive;
use catamaran_release::{ActionResult, History, Release};
use serde_json::{Value, json};

use super::annotations::{Period, ReconcileOptions};
use super::release_cache::NotReady;
use crate::manager::status::StatusPatch;

/// The longest message: NOTES.txt may be long, and a resource is read often.
const MESSAGE_LIMIT: usize = 16 * 1024;

/// Said of a release whose record does not fit into Helm's one Secret.
const HIDDEN: &str =
    "in several Secrets, as it is too large for one: helm commands do not see this release";

/// What a resource cannot get past.
#[derive(Clone, Debug)]
pub(super) enum FailureCondition {
    /// No values, no manifests, no history: [`types::IRRECONCILABLE`], with this reason.
    Irreconcilable(&'static str),
    /// The release's own action failed: [`types::RELEASE_FAILED`], with this reason.
    ReleaseFailed(&'static str),
}

impl FailureCondition {
    /// By the reason of what the operator's own code refused.
    pub fn of(reason: &'static str) -> Self {
        if reason == reasons::UNINSTALL_ERROR {
            Self::ReleaseFailed(reason)
        } else {
            Self::Irreconcilable(reason)
        }
    }
}

/// What the status says of a revision that is deployed. It is remembered of every release, and so as
/// small as can be.
#[derive(Clone, Debug)]
pub(super) struct Deployed {
    /// The revision.
    pub version: u32,
    /// What its NOTES.txt says.
    message: Box<str>,
    /// `deployedRelease` and `history` as JSON.
    fields: Box<str>,
    /// What nothing that is told of it may quote.
    sensitive: Sensitive,
}

impl Deployed {
    /// The newest revision is deployed; its manifest is shown only if that is asked for.
    pub fn new(history: &History, release: &Release, manifest: bool) -> Self {
        // No manifest in it, as Go operators have it, unless it is wished: it shows the content of Secrets.
        let mut shown = json!({ "name": release.name, "version": release.version });
        if history.is_hidden_from_helm() {
            shown["record"] = HIDDEN.into();
        }
        if manifest {
            shown["manifest"] = release.manifest.as_str().into();
        }
        let past: Value = history.releases().rev().map(|release| entry(release)).collect();
        // Who may read a resource need not be allowed to read Secrets.
        let sensitive = release.sensitive();
        let notes = sensitive.hide(&release.info.notes);
        let fallback = match release.version {
            1 => "release was successfully installed",
            _ => "release was successfully upgraded",
        };
        let message = if notes.trim().is_empty() { fallback.to_owned() } else { cut(&notes) };
        Self {
            version: release.version,
            message: message.into(),
            fields: json!([shown, past]).to_string().into(),
            sensitive,
        }
    }

    /// Leaves what the release's Secrets hold out of what an object says of itself, or its pods do.
    pub fn hide(&self, readiness: &mut Readiness) {
        if let Readiness::Pending { message, .. } | Readiness::Failed { message, .. } = readiness {
            *message = self.sensitive.hide(message);
        }
    }

    /// Says so in the status.
    pub fn write_to(&self, status_patch: &mut StatusPatch) {
        let reason = match self.version {
            1 => reasons::INSTALL_SUCCESSFUL,
            _ => reasons::UPGRADE_SUCCESSFUL,
        };
        let loaded = "the chart is loaded";
        status_patch.condition(Condition::new(types::INITIALIZED, true, "Initialized", loaded));
        status_patch.condition(Condition::new(types::DEPLOYED, true, reason, &*self.message));
        set_ok(status_patch, types::RELEASE_FAILED, reason);
        set_ok(status_patch, types::IRRECONCILABLE, reason);
        self.show(status_patch);
    }

    /// The revision was brought back after a failure: what is said of that stays.
    pub fn set_rolled_back(&self, status_patch: &mut StatusPatch) {
        if status_patch
            .find(types::DEPLOYED)
            .is_none_or(|found| found.status != ConditionStatus::True)
        {
            let message = "release was successfully rolled back";
            let reason = reasons::UPGRADE_SUCCESSFUL;
            status_patch.condition(Condition::new(types::DEPLOYED, true, reason, message));
        }
        self.show(status_patch);
    }

    /// What is deployed, besides the conditions.
    fn show(&self, status_patch: &mut StatusPatch) {
        if let Ok((shown, past)) = serde_json::from_str(&self.fields) {
            status_patch.set("deployedRelease", shown);
            status_patch.set("history", past);
        }
    }
}

/// The failed install was uninstalled.
pub(super) fn set_removed(status_patch: &mut StatusPatch) {
    let (reason, message) = (reasons::INSTALL_ERROR, "the chart is not installed");
    status_patch.condition(Condition::new(types::DEPLOYED, false, reason, message));
    status_patch.set("deployedRelease", Value::Null);
    status_patch.set("history", Value::Null);
}

/// A revision as `status.history` tells it.
fn entry(release: &Release) -> Value {
    json!({
        "version": release.version,
        "status": release.info.status.to_string(),
        "chart": format!("{}-{}", release.chart_name(), release.chart_version()),
        "deployed": release.info.last_deployed,
    })
}

/// Nothing is wrong in this respect. operator-sdk's operator takes such a condition away, where
/// helm-operator-plugins says that it is false: each resource keeps the manner that it has.
fn set_ok(status_patch: &mut StatusPatch, type_: &str, reason: &str) {
    if has_false_conditions(status_patch) {
        status_patch.condition(Condition::new(type_, false, reason, "nothing is wrong"));
    } else {
        status_patch.without(type_);
    }
}

/// Whether the resource has the manner of helm-operator-plugins: conditions that are false, or two that
/// say the same of a failure.
fn has_false_conditions(status_patch: &StatusPatch) -> bool {
    let (failed, failure) =
        (status_patch.find(types::RELEASE_FAILED), status_patch.find(types::IRRECONCILABLE));
    let is_false = |condition: &Option<Condition>| {
        condition.as_ref().is_some_and(|found| found.status != ConditionStatus::True)
    };
    let same = |(one, other): (&Condition, &Condition)| one.message == other.message;
    is_false(&failed)
        || is_false(&failure)
        || failed.as_ref().zip(failure.as_ref()).is_some_and(same)
        || status_patch.find(types::PAUSED).is_some()
}

/// Whether nothing is done for the resource, in the manner of helm-operator-plugins. Who never asked
/// for a pause hears nothing of it.
pub(super) fn set_paused(status_patch: &mut StatusPatch, reconcile_options: &ReconcileOptions) {
    if reconcile_options.paused {
        let (reason, told) =
            (reasons::PAUSE_RECONCILE_ANNOTATION_TRUE, "an annotation asks for it");
        status_patch.condition(Condition::new(types::PAUSED, true, reason, told));
        for type_ in [
            types::INITIALIZED,
            types::DEPLOYED,
            types::RELEASE_FAILED,
            types::IRRECONCILABLE,
            types::READY,
        ] {
            let unknown = ConditionStatus::Unknown;
            status_patch.condition(Condition::new(type_, unknown, reason, "nobody looks"));
        }
        status_patch.set("deployedRelease", Value::Null);
    } else if reconcile_options.pausable || status_patch.find(types::PAUSED).is_some() {
        let told = "nothing asks for a pause";
        status_patch.condition(Condition::new(types::PAUSED, false, "NotPaused", told));
    }
}

/// Says if a resource asks for a period that nobody may ask for.
pub(super) fn set_period_accepted(status_patch: &mut StatusPatch, period: Option<Period>) {
    match period.and_then(|period| period.refusal()) {
        Some(told) => {
            let type_ = types::ANNOTATION_OUT_OF_RANGE;
            status_patch.condition(Condition::new(type_, true, "ReconcilePeriod", told));
        }
        None => status_patch.without(types::ANNOTATION_OUT_OF_RANGE),
    }
}

/// Said while everything of a release has to be gone before its resource is.
pub(super) const UNTIL_GONE: &str = "Waiting until all resources are deleted.";

/// The release is uninstalled.
pub(super) fn set_uninstalled(status_patch: &mut StatusPatch, message: &str) {
    let message = if message.is_empty() { "release was successfully uninstalled" } else { message };
    let reason = reasons::UNINSTALL_SUCCESSFUL;
    status_patch.condition(Condition::new(types::DEPLOYED, false, reason, message));
    set_ok(status_patch, types::RELEASE_FAILED, reason);
    status_patch.set("deployedRelease", Value::Null);
}

/// The release's objects as the watches tell them.
pub(super) fn set_readiness(status_patch: &mut StatusPatch, not_ready: &[NotReady]) {
    let Some((worst, delay)) = not_ready.split_first() else {
        let all = "all objects of the release are ready";
        status_patch.condition(Condition::new(types::READY, true, "Ready", all));
        return;
    };
    let more =
        if delay.is_empty() { String::new() } else { format!(" (and {} more)", delay.len()) };
    let (reason, told) = match &worst.readiness {
        Readiness::Pending { reason, message } | Readiness::Failed { reason, message } => {
            (reason.as_str(), message.as_str())
        }
        Readiness::Ready => ("Pending", ""),
    };
    let message = format!("{} {}: {told}{more}", worst.id.kind, worst.id.name);
    status_patch.condition(Condition::new(types::READY, false, reason, cut(&message)));
}

/// The resource cannot get on: why, and that it is not ready.
pub(super) fn set_failed(
    status_patch: &mut StatusPatch,
    failure: &FailureCondition,
    message: &str,
) {
    let (type_, reason) = match failure {
        FailureCondition::Irreconcilable(reason) => (types::IRRECONCILABLE, *reason),
        FailureCondition::ReleaseFailed(reason) => (types::RELEASE_FAILED, *reason),
    };
    status_patch.condition(Condition::new(
        types::INITIALIZED,
        true,
        "Initialized",
        "the chart is loaded",
    ));
    if type_ == types::RELEASE_FAILED && has_false_conditions(status_patch) {
        let reason = reasons::RECONCILE_ERROR;
        status_patch.condition(Condition::new(types::IRRECONCILABLE, true, reason, cut(message)));
    }
    status_patch.condition(Condition::new(type_, true, reason, cut(message)));
    status_patch.condition(Condition::new(types::READY, false, reason, cut(message)));
    if status_patch.find(types::DEPLOYED).is_none() {
        status_patch.condition(Condition::new(
            types::DEPLOYED,
            false,
            reason,
            "the chart is not installed",
        ));
    }
}

/// Something else has to happen first.
pub(super) fn set_waiting(status_patch: &mut StatusPatch, reason: &str, message: &str) {
    status_patch.condition(Condition::new(types::READY, false, reason, cut(message)));
}

/// The lines that people of the Helm operator look for in the log.
pub(super) fn log(done: ActionResult, release: &Release) {
    let (name, version) = (release.name.as_str(), release.version);
    match done {
        ActionResult::Installed => tracing::info!(release = name, version, "Installed release"),
        ActionResult::Upgraded => tracing::info!(release = name, version, "Upgraded release"),
        ActionResult::RolledBack => tracing::info!(release = name, version, "Rolled back release"),
        ActionResult::Repaired => tracing::info!(release = name, version, "Reconciled release"),
        ActionResult::Unchanged => tracing::debug!(release = name, version, "Release is unchanged"),
    }
}

fn cut(message: &str) -> String {
    match message.char_indices().nth(MESSAGE_LIMIT) {
        Some((end, _)) => format!("{}…", message.get(..end).unwrap_or_default()),
        None => message.trim_end().to_owned(),
    }
}
