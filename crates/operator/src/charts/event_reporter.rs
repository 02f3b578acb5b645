//! Publishes events about chart resources, and measures the phases of reconciles.

use std::sync::Arc;

use catamaran_cluster::conditions::reasons;
use catamaran_release::{ActionResult, Release};
use kube::core::{DynamicObject, GroupVersionKind};

use super::Event;
use super::customization::OnEvent;
use super::status::FailureCondition;
use crate::manager::events::{Recorder, Severity};
use crate::metrics::{KindMetrics, Phase};
use crate::watches::{Override, OverrideTypes};

/// Publishes the events of one kind.
pub(super) struct EventReporter {
    pub gvk: GroupVersionKind,
    pub events: Recorder,
    pub metrics: KindMetrics,
    pub on_event: Option<Arc<OnEvent>>,
    /// Whether to leave override values out.
    pub suppresses: bool,
}

impl EventReporter {
    /// Measures a phase of a reconcile until the guard is dropped.
    pub fn phase(&self, phase: &'static str) -> Phase {
        self.metrics.phase(phase)
    }

    /// Reports a completed action.
    pub fn action_completed(
        &self,
        resource: &DynamicObject,
        done: ActionResult,
        release: &Release,
    ) {
        let (reason, action, word) = match done {
            ActionResult::Upgraded => (reasons::UPGRADE_SUCCESSFUL, "Upgrade", "upgraded"),
            ActionResult::RolledBack => ("RollbackSuccessful", "Rollback", "rolled back"),
            ActionResult::Repaired => {
                ("DriftRepaired", "Repair", "repaired: objects had been changed")
            }
            // The status reports an install, which saves a write for each resource.
            ActionResult::Installed | ActionResult::Unchanged => return,
        };
        let chart = release.chart_name();
        let note = format!(
            "release {} {word} (revision {}, chart {chart} {})",
            release.name,
            release.version,
            release.chart_version()
        );
        self.normal(resource, reason, action, &note);
    }

    /// Reports an uninstall.
    pub fn uninstalled(&self, resource: &DynamicObject, release: &str) {
        let note = format!("release {release} uninstalled");
        self.normal(resource, reasons::UNINSTALL_SUCCESSFUL, "Uninstall", &note);
    }

    /// Reports a failure.
    pub fn failed(&self, resource: &DynamicObject, failure: &FailureCondition, why: &str) {
        let (FailureCondition::Irreconcilable(reason) | FailureCondition::ReleaseFailed(reason)) =
            *failure;
        self.publish(resource, Severity::Warning, (reason, "Reconcile"), why);
    }

    /// Reports override values before a new revision: strings as operator-sdk does, typed values as
    /// helm-operator-plugins does.
    pub fn overrides(&self, resource: &DynamicObject, overrides: &[Override]) {
        for Override { key, value, types } in overrides {
            let value = if self.suppresses { "****" } else { value };
            let told = format!("Chart value {key:?} overridden to {value:?} by operator");
            let (reason, note) = match types {
                OverrideTypes::Strings => ("OverrideValuesInUse", format!("{told}'s watches.yaml")),
                OverrideTypes::Typed => ("ValueOverridden", told),
            };
            self.publish(resource, Severity::Warning, (reason, "Override"), &note);
        }
    }

    fn normal(&self, resource: &DynamicObject, reason: &str, action: &str, note: &str) {
        self.publish(resource, Severity::Normal, (reason, action), note);
    }

    /// Publishes an event.
    pub fn publish(
        &self,
        resource: &DynamicObject,
        severity: Severity,
        (reason, action): (&str, &str),
        note: &str,
    ) {
        if let Some(on_event) = &self.on_event {
            on_event(&Event { resource, severity, reason, note });
        }
        self.events.about(&self.gvk, resource, severity, (reason, action), note);
    }
}
