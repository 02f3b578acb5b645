//! What is told of a chart resource besides its status: events, and how long the parts of its
//! reconcile took.

use catamaran_cluster::conditions::reasons;
use catamaran_release::{Done, Release};
use kube::core::{DynamicObject, GroupVersionKind};

use super::report::Stuck;
use crate::manager::events::{Recorder, Severity};
use crate::metrics::{KindMetrics, Phase};

/// Tells of the resources of one kind.
pub(super) struct Teller {
    pub gvk: GroupVersionKind,
    pub events: Recorder,
    pub metrics: KindMetrics,
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
        self.events.about(&self.gvk, resource, Severity::Warning, (reason, "Reconcile"), why);
    }

    fn normal(&self, resource: &DynamicObject, reason: &str, action: &str, note: &str) {
        self.events.about(&self.gvk, resource, Severity::Normal, (reason, action), note);
    }
}
