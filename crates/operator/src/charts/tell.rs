//! What is told of a chart resource besides its status: events, and how long the parts of its
//! reconcile took.

use std::sync::Arc;

use catamaran_cluster::conditions::reasons;
use catamaran_release::{Done, Release};
use kube::core::{DynamicObject, GroupVersionKind};

use super::Event;
use super::code::OnEvent;
use super::report::Stuck;
use crate::manager::events::{Recorder, Severity};
use crate::metrics::{KindMetrics, Phase};
use crate::watches::{Override, OverrideTypes};

/// Tells of the resources of one kind.
pub(super) struct Teller {
    pub gvk: GroupVersionKind,
    pub events: Recorder,
    pub metrics: KindMetrics,
    pub on_event: Option<Arc<OnEvent>>,
    /// Whether override values are kept back.
    pub suppresses: bool,
}

impl Teller {
    /// Measures a part of a reconcile until the guard is dropped.
    pub fn phase(&self, phase: &'static str) -> Phase {
        self.metrics.phase(phase)
    }

    /// Something was done to the release.
    pub fn done(&self, resource: &DynamicObject, done: Done, release: &Release) {
        let (reason, action, word) = match done {
            Done::Upgraded => (reasons::UPGRADE_SUCCESSFUL, "Upgrade", "upgraded"),
            Done::RolledBack => ("RollbackSuccessful", "Rollback", "rolled back"),
            Done::Repaired => ("DriftRepaired", "Repair", "repaired: objects had been changed"),
            // That it was installed, the status tells: a thousand resources make a thousand writes less.
            Done::Installed | Done::Unchanged => return,
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

    /// The release is gone.
    pub fn uninstalled(&self, resource: &DynamicObject, release: &str) {
        let note = format!("release {release} uninstalled");
        self.normal(resource, reasons::UNINSTALL_SUCCESSFUL, "Uninstall", &note);
    }

    /// The resource cannot get on.
    pub fn stuck(&self, resource: &DynamicObject, stuck: &Stuck, why: &str) {
        let (Stuck::Irreconcilable(reason) | Stuck::ReleaseFailed(reason)) = *stuck;
        self.tell(resource, Severity::Warning, (reason, "Reconcile"), why);
    }

    /// A revision is about to be made with these values over the spec. Those that reach charts as strings
    /// are told as operator-sdk does, those with types as helm-operator-plugins.
    pub fn overrides(&self, resource: &DynamicObject, overrides: &[Override]) {
        for Override { key, value, types } in overrides {
            let value = if self.suppresses { "****" } else { value };
            let told = format!("Chart value {key:?} overridden to {value:?} by operator");
            let (reason, note) = match types {
                OverrideTypes::Strings => ("OverrideValuesInUse", format!("{told}'s watches.yaml")),
                OverrideTypes::Typed => ("ValueOverridden", told),
            };
            self.tell(resource, Severity::Warning, (reason, "Override"), &note);
        }
    }

    fn normal(&self, resource: &DynamicObject, reason: &str, action: &str, note: &str) {
        self.tell(resource, Severity::Normal, (reason, action), note);
    }

    /// Tells of anything.
    pub fn tell(
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
