//! The status of a chart resource.

use catamaran_cluster::conditions::{Condition, ConditionStatus, reasons, types};
use catamaran_cluster::readiness::Readiness;
use catamaran_cluster::redact::Sensitive;
use catamaran_release::{ActionResult, History, Release};
use serde_json::{Value, json};

use super::annotations::{Period, ReconcileOptions};
use super::release_cache::NotReady;
use crate::manager::status::StatusPatch;

/// The longest message. NOTES.txt may be long, and a resource is read often.
const MESSAGE_LIMIT: usize = 16 * 1024;

/// The message for a release whose record does not fit into one Secret of Helm.
const HIDDEN: &str =
    "in several Secrets, as it is too large for one: helm commands do not see this release";

/// The condition for a failure.
#[derive(Clone, Debug)]
pub(super) enum FailureCondition {
    /// There are no values, no manifests or no history: [`types::IRRECONCILABLE`], with this reason.
    Irreconcilable(&'static str),
    /// An action of the release failed: [`types::RELEASE_FAILED`], with this reason.
    ReleaseFailed(&'static str),
}

impl FailureCondition {
    /// The condition for an error of the kind's logic, by its reason.
    pub fn of(reason: &'static str) -> Self {
        if reason == reasons::UNINSTALL_ERROR {
            Self::ReleaseFailed(reason)
        } else {
            Self::Irreconcilable(reason)
        }
    }
}

/// The status for a deployed revision. The operator caches it for every release, so it is small.
#[derive(Clone, Debug)]
pub(super) struct Deployed {
    /// The revision.
    pub version: u32,
    /// The content of its NOTES.txt.
    message: Box<str>,
    /// `deployedRelease` and `history` as JSON.
    fields: Box<str>,
    /// The secret values that no message may contain.
    sensitive: Sensitive,
}

impl Deployed {
    /// The newest revision is deployed. The manifest is part of the status only on request.
    pub fn new(history: &History, release: &Release, manifest: bool) -> Self {
        // Like the Go operators, without the manifest by default: it shows the content of Secrets.
        let mut shown = json!({ "name": release.name, "version": release.version });
        if history.is_hidden_from_helm() {
            shown["record"] = HIDDEN.into();
        }
        if manifest {
            shown["manifest"] = release.manifest.as_str().into();
        }
        let past: Value = history.releases().rev().map(|release| entry(release)).collect();
        // Readers of a resource need not have the right to read Secrets.
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

    /// Removes secret values of the release from the messages of an object or its pods.
    pub fn hide(&self, readiness: &mut Readiness) {
        if let Readiness::Pending { message, .. } | Readiness::Failed { message, .. } = readiness {
            *message = self.sensitive.hide(message);
        }
    }

    /// Writes it into a status.
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

    /// The revision was restored after a failure: the message about the failure stays.
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

    /// The deployed revision, without conditions.
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

/// A revision, as in `status.history`.
fn entry(release: &Release) -> Value {
    json!({
        "version": release.version,
        "status": release.info.status.to_string(),
        "chart": format!("{}-{}", release.chart_name(), release.chart_version()),
        "deployed": release.info.last_deployed,
    })
}

/// The condition does not apply. operator-sdk's operator removes it, helm-operator-plugins sets it to
/// False: the operator continues as the resource has it.
fn set_ok(status_patch: &mut StatusPatch, type_: &str, reason: &str) {
    if has_false_conditions(status_patch) {
        status_patch.condition(Condition::new(type_, false, reason, "nothing is wrong"));
    } else {
        status_patch.without(type_);
    }
}

/// Whether the resource has conditions as helm-operator-plugins writes them: False ones, or two for the
/// same failure.
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

/// Sets the condition Paused as helm-operator-plugins does. A resource that was never paused does not
/// get it.
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

/// Reports a reconcile period outside of the limits.
pub(super) fn set_period_accepted(status_patch: &mut StatusPatch, period: Option<Period>) {
    match period.and_then(|period| period.refusal()) {
        Some(told) => {
            let type_ = types::ANNOTATION_OUT_OF_RANGE;
            status_patch.condition(Condition::new(type_, true, "ReconcilePeriod", told));
        }
        None => status_patch.without(types::ANNOTATION_OUT_OF_RANGE),
    }
}

/// The message while the objects of a release are being deleted.
pub(super) const UNTIL_GONE: &str = "Waiting until all resources are deleted.";

/// The release is uninstalled.
pub(super) fn set_uninstalled(status_patch: &mut StatusPatch, message: &str) {
    let message = if message.is_empty() { "release was successfully uninstalled" } else { message };
    let reason = reasons::UNINSTALL_SUCCESSFUL;
    status_patch.condition(Condition::new(types::DEPLOYED, false, reason, message));
    set_ok(status_patch, types::RELEASE_FAILED, reason);
    status_patch.set("deployedRelease", Value::Null);
}

/// Reports the readiness of the objects.
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

/// Reports a failure: the condition, and that the resource is not ready.
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

/// Reports a wait.
pub(super) fn set_waiting(status_patch: &mut StatusPatch, reason: &str, message: &str) {
    status_patch.condition(Condition::new(types::READY, false, reason, cut(message)));
}

/// Logs the lines that users of the Helm operator look for.
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
