//! What is taken away, and in which order.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use catamaran_chart::Profile;
use catamaran_chart::manifest::order::by_uninstall;
use catamaran_cluster::apply::Target;
use jiff::Timestamp;
use kube::core::GroupVersionKind;

use super::steps::{Kinds, claimed, target};
use super::target_revision::begun;
use super::{DESCRIPTION_PREFIX, DesiredState, History};
use crate::Error;
use crate::objects::{ObjectId, RawObject, id_of, is_kept, parse_manifest};
use crate::plan::hooks::{Event, at};
use crate::record::{Release, Status};

/// An object to be taken away, if it is still ours.
#[derive(Debug, Clone, PartialEq)]
pub struct Removal {
    /// Who it is.
    pub id: ObjectId,
    /// Its kind as the record has it.
    pub gvk: GroupVersionKind,
    /// Where requests go; `None` if nothing serves its kind any more.
    pub target: Option<Target>,
    /// Whether the manifest asks to keep it. The live object may ask for that, too.
    pub kept: bool,
    /// Whether only revisions have it that were never deployed, or whose records are not trusted: it may
    /// never have been made.
    pub doubtful: bool,
}

/// The end of a record's description while a revision is taken away that was never deployed.
pub(crate) const NEVER_DEPLOYED: &str = " (never deployed)";

/// Whether a revision was never deployed, as far as its record tells.
pub(crate) fn is_doubtful(release: &Release) -> bool {
    match release.info.status {
        Status::Failed => !matches!(at(release), Some(Event::PreDelete | Event::PostDelete)),
        Status::PendingInstall | Status::PendingUpgrade | Status::PendingRollback => true,
        Status::Uninstalling => release.info.description.ends_with(NEVER_DEPLOYED),
        _ => false,
    }
}

/// The record by which a release is uninstalled whose newest record is not trusted: a revision of its own,
/// with the hooks and objects of what is desired. Without, it has none.
pub(crate) fn uninstalling(
    history: &History,
    desired: Option<&DesiredState<'_>>,
    now: Timestamp,
) -> Release {
    let facts = history.next_facts();
    let mut record = match desired {
        Some(desired) => begun(history, desired, now),
        None => Release::default(),
    };
    (record.name, record.namespace) = (facts.name, facts.namespace);
    record.version = facts.revision;
    record.info.status = Status::Uninstalling;
    record.info.deleted = now.into();
    record.info.description = format!("{DESCRIPTION_PREFIX}uninstall under way{NEVER_DEPLOYED}");
    record
}

/// [`removals`], with what only revisions have that were never deployed, or are not trusted, marked.
pub(crate) fn all_removals(
    history: &History,
    objects: &[RawObject],
    kinds: &Kinds,
) -> Result<Vec<Removal>, Error> {
    let mut certain = Vec::new();
    let is_certain =
        |release: &&Arc<Release>| !is_doubtful(release) && history.is_trusted(release.version);
    for release in history.releases().filter(is_certain) {
        certain.extend(parse_manifest(&release.manifest)?);
    }
    let certain = removals(history, &certain, kinds);
    let certain: HashSet<&ObjectId> = certain.iter().map(|removal| &removal.id).collect();
    let mut removals = removals(history, objects, kinds);
    for removal in &mut removals {
        removal.doubtful = !certain.contains(&removal.id);
    }
    Ok(removals)
}

/// Everything that any revision shows as the release's, in the order of deletion.
pub fn removals(history: &History, objects: &[RawObject], kinds: &Kinds) -> Vec<Removal> {
    removals_of(objects.iter(), kinds, history.namespace(), &HashSet::new())
}

/// All objects of all revisions, newest first.
pub(crate) fn all_objects(history: &History) -> Result<Vec<RawObject>, Error> {
    let mut objects = Vec::new();
    for release in history.releases().rev() {
        objects.extend(claimed(history, release)?);
    }
    Ok(objects)
}

/// The objects that are not wanted any more, each once, in the order of deletion.
pub(crate) fn removals_of<'a>(
    old: impl Iterator<Item = &'a RawObject>,
    kinds: &Kinds,
    namespace: &str,
    wanted: &HashSet<ObjectId>,
) -> Vec<Removal> {
    let mut found: HashMap<ObjectId, Removal> = HashMap::new();
    for RawObject { gvk, object } in old {
        let mapping = kinds.get(gvk).and_then(Option::as_ref);
        let id = id_of(object, gvk, mapping.is_none_or(|mapping| mapping.namespaced), namespace);
        if wanted.contains(&id) {
            continue;
        }
        let target = mapping.map(|mapping| target(mapping, &id));
        let kept = is_kept(object);
        let doubtful = false;
        found.entry(id.clone()).or_insert(Removal { id, gvk: gvk.clone(), target, kept, doubtful });
    }
    let mut removals: Vec<Removal> = found.into_values().collect();
    removals.sort_by(|Removal { id: a, .. }, Removal { id: b, .. }| {
        by_uninstall(&a.kind, &b.kind, Profile::Helm43).then_with(|| a.cmp(b))
    });
    removals
}
