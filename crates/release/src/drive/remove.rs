//! Taking objects away: what an upgrade leaves behind, and everything at the end.

use std::collections::HashSet;

use catamaran_cluster::apply::{Deletion, Target, metadata, metadata_str};
use kube::api::PropagationPolicy;

use super::{Driver, Kept, Uninstalled, WhyKept};
use crate::Error;
use crate::objects::{ObjectId, is_kept, ownership_problems, policy};
use crate::plan::{History, OURS, Removal, all_objects, removals, resolve, target};
use crate::record::Status;

impl Driver {
    /// Deletes those objects that are still ours, each after a fresh read and by its uid. `alive`
    /// are the uids of objects that the release has now.
    pub(super) async fn remove(
        &self,
        removals: &[Removal],
        release: (&str, &str),
        alive: &HashSet<&str>,
    ) -> Result<(Vec<ObjectId>, Vec<Kept>), Error> {
        let (mut removed, mut kept) = (Vec::new(), Vec::new());
        for removal in removals {
            let id = removal.id.clone();
            match self.remove_one(removal, release, alive).await? {
                Removed::Deleted => removed.push(id),
                Removed::Kept(why) => kept.push(Kept { id, why }),
                Removed::Gone => {}
            }
        }
        Ok((removed, kept))
    }

    async fn remove_one(
        &self,
        removal: &Removal,
        release: (&str, &str),
        alive: &HashSet<&str>,
    ) -> Result<Removed, Error> {
        if removal.kept {
            return Ok(Removed::Kept(WhyKept::Policy));
        }
        let Some(target) = self.where_to(removal).await? else {
            return Ok(Removed::Kept(WhyKept::NoKind));
        };
        let Some(live) = self.applier.get(&target).await? else { return Ok(Removed::Gone) };
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
        Ok(match self.applier.delete(&target, uid, PropagationPolicy::Background).await? {
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

    pub(super) async fn uninstall_history(
        &self,
        mut history: History,
    ) -> Result<Uninstalled, Error> {
        history.check_readable()?;
        let Some(newest) = history.newest().cloned() else { return Ok(Uninstalled::default()) };
        check_hooks(&history)?;
        let objects = all_objects(&history)?;
        if newest.info.status != Status::Uninstalling {
            self.rewrite(&mut history, newest.version, |release| {
                release.info.status = Status::Uninstalling;
                release.info.deleted = jiff::Timestamp::now().into();
                release.info.description = format!("{OURS}uninstall under way");
            })
            .await?;
        }
        let kinds = resolve(&self.mapper, objects.iter().map(|raw| &raw.gvk).collect()).await?;
        let removals = removals(&history, &objects, &kinds);
        let release = (history.name(), history.namespace());
        let (deleted, kept) = self.remove(&removals, release, &HashSet::new()).await?;
        // The newest record goes last: while it is there, a call that was cut short can be repeated.
        for stored in &history.records {
            self.store.delete(stored).await?;
        }
        Ok(Uninstalled { found: true, deleted, kept })
    }
}

enum Removed {
    Deleted,
    Gone,
    Kept(WhyKept),
}

/// Releases of the helm CLI may have hooks around their deletion, which we do not run yet.
fn check_hooks(history: &History) -> Result<(), Error> {
    let hooks = history.newest().map(|release| release.hooks.as_slice()).unwrap_or_default();
    let around = |event: &String| matches!(event.as_str(), "pre-delete" | "post-delete");
    match hooks.iter().find(|hook| hook.events.iter().any(around)) {
        Some(hook) => Err(Error::Unsupported {
            what: format!(
                "release {} has a deletion hook: {} {:?}",
                history.name(),
                hook.kind,
                hook.name
            ),
        }),
        None => Ok(()),
    }
}
