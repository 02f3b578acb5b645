//! The observed state of a release (its records), and the desired state.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use catamaran_chart::{Chart, ReleaseFacts, Rendered};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::{Map, Value};

use crate::objects::Owner;
use crate::record::model::slim_chart;
use crate::record::store::{Loose, Unreadable};
use crate::record::{Authenticity, Hook, Release, Status, Stored, Time};

/// The desired state of a release.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct DesiredState<'a> {
    /// The chart.
    pub chart: &'a Chart,
    /// The user's values, as `helm get values` shows them.
    pub config: &'a Map<String, Value>,
    /// The chart rendered with these values and `release`.
    pub rendered: &'a Rendered,
    /// The facts that were `.Release` in the rendering; its name and namespace are the release's.
    pub release: &'a ReleaseFacts,
    /// The resource that owns the release.
    pub owner: Option<&'a Owner>,
    /// The description of the record after success, instead of Helm's.
    pub description: Option<&'a str>,
    /// Labels that the record gets besides those of the one before it; `None` removes one.
    pub labels: Option<&'a BTreeMap<String, Option<String>>>,
    /// Whether the release may belong to another chart so far.
    pub any_chart: bool,
}

/// Without values and manifests, which may contain secrets.
impl fmt::Debug for DesiredState<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Desired").field("release", self.release).finish_non_exhaustive()
    }
}

impl<'a> DesiredState<'a> {
    /// A release without an owner, with Helm's descriptions.
    pub fn new(
        chart: &'a Chart,
        config: &'a Map<String, Value>,
        rendered: &'a Rendered,
        release: &'a ReleaseFacts,
    ) -> Self {
        Self {
            chart,
            config,
            rendered,
            release,
            owner: None,
            description: None,
            labels: None,
            any_chart: false,
        }
    }

    /// The same, with a resource as the owner.
    #[must_use]
    pub fn owned_by(mut self, owner: &'a Owner) -> Self {
        self.owner = Some(owner);
        self
    }

    /// The same, with labels of its record; `None` removes one.
    #[must_use]
    pub fn labelled(mut self, labels: &'a BTreeMap<String, Option<String>>) -> Self {
        self.labels = Some(labels);
        self
    }

    /// The same, also if the release belongs to another chart so far.
    #[must_use]
    pub fn of_any_chart(mut self) -> Self {
        self.any_chart = true;
        self
    }

    /// A record with rendered content instead of the content that it claims.
    pub fn with_rendered_content(&self, record: &Release) -> Release {
        let mut shown = record.clone();
        shown.info.notes.clone_from(&self.rendered.notes);
        shown.chart = slim_chart(self.chart);
        shown.config.clone_from(self.config);
        shown.manifest = self.rendered.manifest_text();
        shown.hooks = self.rendered.hooks.iter().map(Hook::from).collect();
        shown
    }

    /// The release's name and namespace.
    pub(crate) fn id(&self) -> (&'a str, &'a str) {
        (&self.release.name, &self.release.namespace)
    }

    /// The same, with a description of the user's.
    #[must_use]
    pub fn described(mut self, description: &'a str) -> Self {
        self.description = Some(description);
        self
    }
}

/// The records of a release at one time, oldest first. Cheap to clone.
#[derive(Debug, Clone)]
pub struct History {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) records: Vec<Stored>,
    /// Records that cannot be read.
    pub(crate) unreadable: Vec<Unreadable>,
    /// Parts of records that belong to no record.
    pub(crate) loose: Vec<Loose>,
    /// The size in bytes of the records of unknown writers.
    pub(crate) claimed: u64,
    pub(crate) read_at: Timestamp,
}

impl History {
    /// The history of a release without records, for example if a watch of its Secrets shows that.
    pub fn empty(namespace: &str, name: &str, read_at: Timestamp) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            records: Vec::new(),
            unreadable: Vec::new(),
            loose: Vec::new(),
            claimed: 0,
            read_at,
        }
    }

    /// The release's namespace.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The release's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether there is no record.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty() && self.unreadable.is_empty()
    }

    /// Whether the newest record is stored in several Secrets, where the helm CLI does not find it.
    pub fn is_hidden_from_helm(&self) -> bool {
        self.records.last().is_some_and(Stored::is_cut)
    }

    /// The owners of the newest record, by the owner references of its Secret. Only Helm operators add one.
    pub fn owners(&self) -> &[OwnerReference] {
        self.records.last().map_or(&[], |stored| &stored.owners)
    }

    /// The resourceVersion of each revision's record, as it was read or written.
    pub fn versions(&self) -> impl Iterator<Item = (u32, &str)> {
        self.records.iter().map(|it| (it.release.version, it.resource_version.as_str()))
    }

    /// Whether the record of a revision is trusted, see [`crate::RecordPolicy`].
    pub fn is_trusted(&self, revision: u32) -> bool {
        self.stored(revision).is_some_and(Stored::is_trusted)
    }

    /// The same for the newest revision, if there is one.
    pub fn is_newest_trusted(&self) -> bool {
        self.records.last().is_some_and(|newest| {
            newest.is_trusted() && newest.release.version == self.newest_revision()
        })
    }

    /// Whether this operator wrote any record for the resource, or for an earlier one of its name.
    pub fn has_authenticated(&self) -> bool {
        self.records.iter().any(|it| it.authenticity != Authenticity::Unauthenticated)
    }

    fn stored(&self, revision: u32) -> Option<&Stored> {
        self.records.iter().find(|stored| stored.release.version == revision)
    }

    /// All readable revisions, oldest first.
    pub fn releases(&self) -> impl DoubleEndedIterator<Item = &Arc<Release>> {
        self.records.iter().map(|stored| &stored.release)
    }

    /// The newest revision.
    pub fn newest(&self) -> Option<&Arc<Release>> {
        self.records.last().map(|stored| &stored.release)
    }

    /// The newest revision that is deployed.
    pub fn deployed(&self) -> Option<&Arc<Release>> {
        self.releases().rev().find(|release| release.info.status == Status::Deployed)
    }

    /// The revision that is deployed, or was until an action superseded it that was interrupted: an action
    /// supersedes the old revision before it marks the new one as deployed. `None` if no revision but failed and
    /// pending ones is installed.
    pub fn last_deployed(&self) -> Option<&Arc<Release>> {
        let is_open = |status: &Status| status.is_pending() || *status == Status::Failed;
        let last = self.releases().rev().find(|release| !is_open(&release.info.status));
        let was_deployed = |release: &&Arc<Release>| release.info.status == Status::Superseded;
        self.deployed().or_else(|| last.filter(was_deployed))
    }

    /// The facts to render with for a comparison: those of the newest revision. If there is nothing to compare
    /// with, the same as [`History::next_facts`].
    pub fn current_facts(&self) -> ReleaseFacts {
        match self.newest() {
            Some(newest) if is_comparable(&newest.info.status) => {
                self.facts(newest.version, was_install(newest))
            }
            _ => self.next_facts(),
        }
    }

    /// The facts to render with for the next revision.
    ///
    /// It is an install as long as no revision was deployed: after a failed first install, charts that generate
    /// passwords at an install must do so again.
    pub fn next_facts(&self) -> ReleaseFacts {
        let ever = |release: &Arc<Release>| {
            matches!(release.info.status, Status::Deployed | Status::Superseded)
        };
        let gone = |release: &Arc<Release>| {
            matches!(release.info.status, Status::Uninstalled | Status::Uninstalling)
        };
        let is_install = self.newest().is_some_and(gone) || !self.releases().any(ever);
        self.facts(self.newest_revision().saturating_add(1), is_install)
    }

    pub(crate) fn newest_revision(&self) -> u32 {
        let readable = self.records.last().map_or(0, |stored| stored.release.version);
        self.unreadable.iter().map(|unreadable| unreadable.revision).fold(readable, u32::max)
    }

    /// How long before the read something happened, by the clock of its writer; `None` without a time, or with
    /// one in the future.
    pub(crate) fn time_since(&self, then: Time) -> Option<Duration> {
        Duration::try_from(self.read_at.duration_since(then.0?)).ok()
    }

    /// The record of a revision.
    pub fn revision(&self, version: u32) -> Option<&Arc<Release>> {
        self.releases().find(|release| release.version == version)
    }

    /// The history after a record was written.
    pub(crate) fn put(&mut self, stored: Stored) {
        let version = stored.release.version;
        match self.records.binary_search_by_key(&version, |old| old.release.version) {
            Ok(at) => {
                if let Some(old) = self.records.get_mut(at) {
                    *old = stored;
                }
            }
            Err(at) => self.records.insert(at, stored),
        }
    }

    fn facts(&self, revision: u32, is_install: bool) -> ReleaseFacts {
        ReleaseFacts {
            name: self.name.clone(),
            namespace: self.namespace.clone(),
            revision,
            is_install,
        }
    }
}

/// Whether a revision in this status may be the desired one.
fn is_comparable(status: &Status) -> bool {
    *status == Status::Deployed || *status == Status::Failed || status.is_pending()
}

/// Whether this revision was rendered as an install: then Helm writes two equal times.
fn was_install(release: &Release) -> bool {
    release.version == 1
        || release.info.status == Status::PendingInstall
        || (release.info.first_deployed.0.is_some()
            && release.info.first_deployed == release.info.last_deployed)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::fixtures::{history, record};
    use crate::record::Status::{
        Deployed, Failed, PendingRollback, PendingUpgrade, Superseded, Uninstalled,
    };

    #[test]
    fn last_deployed_survives_an_end_between_superseding_and_deploying() {
        for (statuses, expected) in [
            (vec![Deployed], Some(1)),
            (vec![Deployed, Failed], Some(1)),
            // Interrupted after the old revision was superseded.
            (vec![Superseded, PendingUpgrade], Some(1)),
            (vec![Superseded, Failed, PendingRollback], Some(1)),
            (vec![Superseded, Superseded, Failed], Some(2)),
            // Nothing is installed.
            (vec![Failed], None),
            (vec![PendingUpgrade], None),
            (vec![Superseded, Uninstalled, Failed], None),
            (vec![], None),
        ] {
            let records = statuses.iter().zip(1..);
            let records =
                records.map(|(status, n)| record(n, status.clone(), &[], Duration::ZERO, ""));
            let found = history(records).last_deployed().map(|release| release.version);
            assert_eq!(found, expected, "{statuses:?}");
        }
    }
}
