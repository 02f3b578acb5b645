//! What is taken away, and in which order.

use std::collections::{HashMap, HashSet};

use catamaran_chart::Profile;
use catamaran_chart::manifest::order::by_uninstall;
use catamaran_cluster::apply::Target;
use kube::core::GroupVersionKind;

use super::History;
use super::steps::{Kinds, target};
use crate::Error;
use crate::objects::{ObjectId, RawObject, id_of, is_kept, parse_manifest};

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
}

/// Everything that any revision shows as the release's, in the order of deletion.
pub fn removals(history: &History, objects: &[RawObject], kinds: &Kinds) -> Vec<Removal> {
    removals_of(objects.iter(), kinds, history.namespace(), &HashSet::new())
}

/// All objects of all revisions, newest first.
pub(crate) fn all_objects(history: &History) -> Result<Vec<RawObject>, Error> {
    let mut objects = Vec::new();
    for release in history.releases().rev() {
        objects.extend(parse_manifest(&release.manifest)?);
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
        found.entry(id.clone()).or_insert(Removal { id, gvk: gvk.clone(), target, kept });
    }
    let mut removals: Vec<Removal> = found.into_values().collect();
    removals.sort_by(|Removal { id: a, .. }, Removal { id: b, .. }| {
        by_uninstall(&a.kind, &b.kind, Profile::Helm43).then_with(|| a.cmp(b))
    });
    removals
}
