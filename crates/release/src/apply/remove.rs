//! Taking objects away: what an upgrade leaves behind, and everything at the end.

use std::collections::HashSet;

use super::{Cascade, Driver, RetainedObject, Uninstalled, WhyKept};
use crate::Error;
use crate::objects::{
    ObjectId, Owner, PlannedObject, claimed_owner, is_kept, ownership_problems, parse_manifest,
    policy,
};
use crate::plan::hooks::{Event, at, give_up};
use crate::plan::{
    DESCRIPTION_PREFIX, DesiredState, History, NEVER_DEPLOYED, Removal, all_objects, all_removals,
    is_doubtful, planned, removals, resolve, target, uninstalling,
};
use crate::record::{Status, codec};
use catamaran_cluster::apply::{ApplyError, Deletion, FailureKind, Target, metadata, metadata_str};

impl Driver {
    /// Deletes those objects that are still ours, each after a fresh read and by its uid. `alive`
    /// are the uids of objects that the release has now.
    pub(super) async fn remove(
        &self,
        removals: &[Removal],
        release: (&str, &str),
        alive: &HashSet<String>,
        cascade: Cascade,
    ) -> Result<(Vec<ObjectId>, Vec<RetainedObject>), Error> {
        let (mut removed, mut kept) = (Vec::new(), Vec::new());
        for removal in removals {
            let id = removal.id.clone();
            match self.remove_one(removal, release, alive, cascade).await? {
                Removed::Deleted => removed.push(id),
                Removed::Kept(why) => kept.push(RetainedObject { id, why }),
                Removed::Gone => {}
            }
        }
        Ok((removed, kept))
    }

    /// Deletes what a release left behind whose records are gone, as those are with their namespace: of
    /// what it would have now, those objects that say they are the release's and the owner's. What the
    /// owner owns by reference is left to the garbage collector. Returns what was deleted.
    ///
    /// It holds nobody up: a kind that nothing serves has no objects, and what may not be read or deleted
    /// is not the release's, or it could not have been made.
    ///
    /// # Errors
    ///
    /// As those of any request that may be tried again.
    pub async fn sweep(
        &self,
        desired: &DesiredState<'_>,
        owner: &Owner,
    ) -> Result<Vec<ObjectId>, Error> {
        let mut wanted = parse_manifest(&desired.rendered.manifest_text())?;
        let kinds = resolve(&self.mapper, wanted.iter().map(|raw| &raw.gvk).collect()).await?;
        wanted.retain(|raw| kinds.get(&raw.gvk).is_some_and(Option::is_some));
        let objects = planned(desired.id(), desired.owner, &wanted, &[], &kinds)?;
        let mut swept = Vec::new();
        let is_in_scope = |object: &PlannedObject| self.scope.allows(&object.id, desired.id().1);
        for object in objects.into_iter().rev().filter(is_in_scope) {
            match self.sweep_one(&object, desired.id(), owner).await {
                Ok(true) => swept.push(object.id),
                Ok(false) => {}
                Err(refused) if self.is_missing_permission(&refused, &object.id) => {
                    tracing::warn!(object = %object.id, error = %refused, "cannot tell whether the release left it behind");
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(swept)
    }

    async fn sweep_one(
        &self,
        object: &PlannedObject,
        release: (&str, &str),
        owner: &Owner,
    ) -> Result<bool, ApplyError> {
        let collected = metadata(&object.body).contains_key("ownerReferences");
        let Some(target) = object.target.as_ref().filter(|_| !collected) else { return Ok(false) };
        let Some(live) = self.applier.get(target).await? else { return Ok(false) };
        let is_its = ownership_problems(&live, release).is_none()
            && claimed_owner(&live).is_some_and(|claimed| owner.is(&claimed));
        if !is_its || policy(&live).is_some() {
            return Ok(false);
        }
        let uid = metadata_str(&live, "uid");
        self.applier.delete(target, uid, Cascade::Background.into()).await?;
        Ok(true)
    }

    /// Whether a request about an object was refused for a permission that is missing for good, and not
    /// only for a moment.
    pub(super) fn is_missing_permission(&self, refused: &ApplyError, object: &ObjectId) -> bool {
        refused.kind.is_forbidden() && self.rights.is_missing(&reading(object))
    }

    /// Says once for each kind and namespace that a right is missing.
    fn tell_unread(&self, object: &ObjectId) {
        let so = format!("whether a failed revision made some is not seen ({object})");
        self.rights.warn_once(&reading(object), &so);
    }

    async fn remove_one(
        &self,
        removal: &Removal,
        release: (&str, &str),
        alive: &HashSet<String>,
        cascade: Cascade,
    ) -> Result<Removed, Error> {
        if removal.kept {
            return Ok(Removed::Kept(WhyKept::Policy));
        }
        if removal.doubtful && !self.scope.allows(&removal.id, release.1) {
            return Ok(Removed::Kept(WhyKept::NotOurs));
        }
        let Some(target) = self.where_to(removal).await? else {
            return Ok(Removed::Kept(WhyKept::NoKind));
        };
        let live = match self.applier.get(&target).await {
            Ok(Some(live)) => live,
            Ok(None) => return Ok(Removed::Gone),
            // What may not be read could hardly be made: a revision that failed for want of rights
            // must not be stuck for want of them.
            // Nor could what has no possible name, which only a forged record has.
            Err(refused)
                if removal.doubtful
                    && (refused.kind == FailureKind::Invalid
                        || self.is_missing_permission(&refused, &removal.id)) =>
            {
                self.tell_unread(&removal.id);
                return Ok(Removed::Kept(WhyKept::Forbidden));
            }
            Err(error) => return Err(error.into()),
        };
        let uid = metadata_str(&live, "uid");
        if alive.contains(uid) {
            return Ok(Removed::Gone);
        }
        if ownership_problems(&live, release).is_some() {
            return Ok(Removed::Kept(WhyKept::NotOurs));
        }
        if is_kept(&live) {
            return Ok(Removed::Kept(WhyKept::Policy));
        }
        if let Some(unknown) = policy(&live) {
            return Ok(Removed::Kept(WhyKept::UnknownPolicy(unknown.to_owned())));
        }
        if metadata(&live).contains_key("deletionTimestamp") {
            return Ok(Removed::Deleted);
        }
        Ok(match self.applier.delete(&target, uid, cascade.into()).await? {
            Deletion::Started => Removed::Deleted,
            Deletion::AlreadyGone => Removed::Gone,
            Deletion::Replaced => Removed::Kept(WhyKept::Replaced),
        })
    }

    /// Where an old object is found. If its version is not served any more, another version of
    /// the same kind shows the same object.
    async fn where_to(&self, removal: &Removal) -> Result<Option<Target>, Error> {
        if removal.target.is_some() {
            return Ok(removal.target.clone());
        }
        let found = self.mapper.resolve_any_version(&removal.gvk.group, &removal.gvk.kind).await;
        let mapping =
            found.map_err(|source| Error::Mapping { object: removal.id.to_string(), source })?;
        Ok(mapping.map(|mapping| {
            let mut id = removal.id.clone();
            id.namespace = id.namespace.filter(|_| mapping.namespaced);
            target(&mapping, &id)
        }))
    }

    /// [`Driver::uninstall`] by a history that was just read.
    ///
    /// # Errors
    ///
    /// The same.
    pub async fn uninstall_from(
        &self,
        history: History,
        owner: Option<&Owner>,
    ) -> Result<Uninstalled, Error> {
        let newest = history.newest().cloned();
        let uninstalled = self.uninstall_by(history, owner).await;
        uninstalled.map_err(|error| match newest {
            Some(newest) => error.redacted(&newest.sensitive()),
            None => error,
        })
    }

    async fn uninstall_by(
        &self,
        mut history: History,
        owner: Option<&Owner>,
    ) -> Result<Uninstalled, Error> {
        history.check_readable()?;
        let Some(newest) = history.newest().cloned() else {
            // An uninstall may have been cut short between a record and its pieces.
            self.forget(&mut history).await?;
            return Ok(Uninstalled::default());
        };
        let revision = newest.version;
        if !history.is_newest_trusted() {
            return Err(history.unauthenticated(revision, "no hook is run from it"));
        }
        if newest.info.status == Status::Uninstalled {
            if !self.action_options.keep_history {
                self.forget(&mut history).await?;
            }
            return Ok(Uninstalled { found: true, ..Uninstalled::default() });
        }
        let objects = all_objects(&history)?;
        let told = if is_doubtful(&newest) { NEVER_DEPLOYED } else { "" };
        if newest.info.status != Status::Uninstalling {
            self.rewrite(&mut history, revision, |release| {
                release.info.status = Status::Uninstalling;
                release.info.deleted = self.clock.now().into();
                release.info.description = format!("{DESCRIPTION_PREFIX}uninstall under way{told}");
            })
            .await?;
        }
        let begun = at(&newest) == Some(Event::PostDelete);
        let mut done = Uninstalled { found: true, ..Uninstalled::default() };
        if !begun {
            let ran = self.hooks(&mut history, revision, Event::PreDelete, owner).await;
            match ran {
                Ok(skipped) => done.skipped_hooks = skipped,
                Err(error) => return Err(self.stay(&mut history, revision, error).await),
            }
            let kinds = resolve(&self.mapper, objects.iter().map(|raw| &raw.gvk).collect()).await?;
            let removals = all_removals(&history, &objects, &kinds)?;
            let release = (history.name(), history.namespace());
            let (nothing, cascade) = (HashSet::new(), self.action_options.cascade);
            (done.deleted, done.kept) = self.remove(&removals, release, &nothing, cascade).await?;
            self.wait_for_end(&removals, &done.deleted).await?;
        }
        match self.hooks(&mut history, revision, Event::PostDelete, owner).await {
            Ok(skipped) => done.skipped_hooks.extend(skipped),
            Err(error @ Error::Hook { .. }) => {
                let error = self.stay(&mut history, revision, error).await;
                done.failed_hooks.push(error.to_string());
            }
            Err(error) => return Err(error),
        }
        if self.action_options.keep_history {
            self.retire(&mut history, revision).await?;
        } else {
            self.forget(&mut history).await?;
        }
        Ok(done)
    }

    /// Begins to uninstall a release whose newest record is not to be acted on, or cannot be read: by a
    /// record of a revision of its own, which has the hooks of what is desired. [`Driver::uninstall_from`]
    /// goes on with it. The other records tell which objects are to be deleted; they must carry the marks
    /// of the release.
    ///
    /// # Errors
    ///
    /// As any request; [`Error::Raced`] if somebody else wrote that revision.
    pub async fn begin_uninstall(
        &self,
        mut history: History,
        desired: Option<&DesiredState<'_>>,
    ) -> Result<History, Error> {
        let record = uninstalling(&history, desired, self.clock.now());
        let packed = codec::pack(&record).map_err(Error::Encode)?;
        let stored = self.store.create(record, &packed).await?;
        history.put(stored);
        Ok(history)
    }

    /// Deletes all records. The newest goes last: while it is there, a call that was cut short can be
    /// repeated.
    async fn forget(&self, history: &mut History) -> Result<(), Error> {
        if self.store.authenticates() {
            self.store.drop_unreadable(history).await?;
        }
        for stored in &history.records {
            self.store.delete(stored).await?;
        }
        Ok(self.store.sweep(history, true).await?)
    }

    /// Says in the records that the release is uninstalled.
    async fn retire(&self, history: &mut History, revision: u32) -> Result<(), Error> {
        let deployed: Vec<u32> = history
            .releases()
            .filter(|old| old.version != revision && old.info.status == Status::Deployed)
            .map(|old| old.version)
            .collect();
        for old in deployed {
            self.rewrite(history, old, |release| release.info.status = Status::Superseded).await?;
        }
        let description =
            self.action_options.description.as_deref().unwrap_or("Uninstallation complete");
        self.rewrite(history, revision, |release| {
            release.info.status = Status::Uninstalled;
            description.clone_into(&mut release.info.description);
        })
        .await?;
        Ok(())
    }

    /// Deletes what a revision that failed has created: those of its objects that the deployed
    /// revision has not, if they are ours.
    ///
    /// # Errors
    ///
    /// As those of any request.
    pub async fn clean_up(&self, history: &History, revision: u32) -> Result<Vec<ObjectId>, Error> {
        let Some(failed) = history.revision(revision) else { return Ok(Vec::new()) };
        let mut objects = parse_manifest(&failed.manifest)?;
        let created = objects.len();
        if let Some(deployed) = history.deployed() {
            objects.extend(parse_manifest(&deployed.manifest)?);
        }
        let kinds = resolve(&self.mapper, objects.iter().map(|raw| &raw.gvk).collect()).await?;
        let (created, deployed) = objects.split_at(created);
        let deployed = removals(history, deployed, &kinds);
        let deployed: HashSet<&ObjectId> = deployed.iter().map(|removal| &removal.id).collect();
        let mut created = removals(history, created, &kinds);
        created.retain(|removal| !deployed.contains(&removal.id));
        for removal in &mut created {
            removal.doubtful = true;
        }
        let release = (history.name(), history.namespace());
        let nothing = HashSet::new();
        Ok(self.remove(&created, release, &nothing, Cascade::Background).await?.0)
    }

    /// Says in the record that a deletion hook failed; the release stays as it is, for another try.
    async fn stay(&self, history: &mut History, revision: u32, error: Error) -> Error {
        let Error::Hook { event, .. } = error else { return error };
        let error = match history.revision(revision) {
            Some(record) => error.redacted(&record.sensitive()),
            None => error,
        };
        let written = self
            .rewrite(history, revision, |release| {
                give_up(release, self.clock.now());
                release.info.description = format!("{DESCRIPTION_PREFIX}{error}");
            })
            .await;
        match written {
            Ok(record) => {
                self.clear_failed(&record, event).await;
                error
            }
            Err(unwritten) => unwritten,
        }
    }
}

/// The permission to read an object, for people.
fn reading(object: &ObjectId) -> String {
    let kind = format!("{}.{}", object.kind, object.group);
    let place = object.namespace.as_ref().map(|name| format!(" in namespace {name}"));
    format!("get objects of {}{}", kind.trim_end_matches('.'), place.unwrap_or_default())
}

enum Removed {
    Deleted,
    Gone,
    Kept(WhyKept),
}
