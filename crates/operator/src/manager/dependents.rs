//! Watches on the objects that resources own: one per kind, shared by all resources of both kinds of controllers.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use catamaran_cluster::items::Item;
use catamaran_cluster::observed::{self, Observed};
use catamaran_cluster::watch::{Change, Content, ObjectKey};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::GroupVersionKind;

use super::initial_snapshot::{InitialSnapshot, SnapshotBudget};
use super::queue::{Key, KindId, Priority, Queue};
use super::reflectors::{Cache, Reflectors, Role, WatchSubject};
use crate::charts::records::ReleaseSecretInformer;

/// Annotation of an object that cannot have an owner reference: `namespace/name` of its resource, as
/// operator-lib writes it.
pub const PRIMARY_RESOURCE: &str = "operator-sdk/primary-resource";
/// The kind beside [`PRIMARY_RESOURCE`], in the form `Kind.group`.
pub const PRIMARY_RESOURCE_TYPE: &str = "operator-sdk/primary-resource-type";

/// What is kept of a dependent object.
#[derive(Debug)]
pub struct Dependent {
    /// Its fingerprint and readiness.
    pub observed: Observed,
    /// The resources it belongs to.
    pub owners: Vec<Key>,
    /// Whether it has several owners, ours or not: it outlives each of them.
    pub is_shared: bool,
    /// The object as the first list had it.
    pub sight: InitialSnapshot,
}

/// The manager's kinds by group and kind, to tell whose an object is.
#[derive(Debug, Default)]
pub struct KindIndex {
    ids: HashMap<(String, String), Vec<KindId>>,
    /// Which of them were found to have no namespaces, by their ids.
    cluster_scoped: Vec<AtomicBool>,
}

impl KindIndex {
    /// An index of kinds in the order of their ids.
    pub fn new<'a>(kinds: impl IntoIterator<Item = &'a GroupVersionKind>) -> Self {
        let mut index = Self::default();
        for (id, gvk) in kinds.into_iter().enumerate() {
            let kind = (gvk.group.clone(), gvk.kind.clone());
            index.ids.entry(kind).or_default().push(id);
            index.cluster_scoped.push(AtomicBool::new(false));
        }
        index
    }

    /// Notes that resources of a kind have no namespace.
    pub fn is_cluster_scoped(&self, kind: KindId) {
        if let Some(noted) = self.cluster_scoped.get(kind) {
            noted.store(true, Ordering::Relaxed);
        }
    }

    /// The keys of a resource: one for each entry of its kind.
    fn keys<'a>(
        &'a self,
        group: &str,
        kind: &str,
        object: ObjectKey,
    ) -> impl Iterator<Item = Key> + use<'a> {
        let ids = self.ids.get(&(group.to_owned(), kind.to_owned()));
        ids.into_iter().flatten().map(move |kind| {
            let scope = self.cluster_scoped.get(*kind);
            let mut object = object.clone();
            if scope.is_some_and(|noted| noted.load(Ordering::Relaxed)) {
                object.namespace = None;
            }
            Key { kind: *kind, object }
        })
    }

    /// The id of a kind.
    pub fn id(&self, gvk: &GroupVersionKind) -> Option<KindId> {
        self.ids.get(&(gvk.group.clone(), gvk.kind.clone()))?.first().copied()
    }

    /// The resources of ours to which an object belongs: by owner reference, or by annotation.
    pub fn owners(&self, meta: &ObjectMeta) -> Vec<Key> {
        let referenced = meta.owner_references.iter().flatten().flat_map(|owner| {
            let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
            let object = ObjectKey { namespace: meta.namespace.clone(), name: owner.name.clone() };
            self.keys(group, &owner.kind, object)
        });
        referenced.chain(self.annotated(meta).into_iter().flatten()).collect()
    }

    fn annotated(&self, meta: &ObjectMeta) -> Option<impl Iterator<Item = Key>> {
        let annotations = meta.annotations.as_ref()?;
        let (kind, group) = annotations
            .get(PRIMARY_RESOURCE_TYPE)
            .map(|of| of.split_once('.').unwrap_or((of, "")))?;
        let named = annotations.get(PRIMARY_RESOURCE)?;
        let (namespace, name) = named.split_once('/').unwrap_or(("", named));
        let namespace = Some(namespace.to_owned()).filter(|name| !name.is_empty());
        Some(self.keys(group, kind, ObjectKey { namespace, name: name.to_owned() }))
    }
}

/// A kind, a label selector, and a namespace that is not watched otherwise.
type Watched = (GroupVersionKind, String, Option<String>);

/// Starts watches on demand and wakes owners.
pub struct Dependents {
    reflectors: Reflectors,
    queue: Arc<Queue>,
    kinds: Arc<KindIndex>,
    watched: Mutex<HashMap<Watched, Arc<Cache<Dependent>>>>,
    records: ReleaseSecretInformer,
    room: SnapshotBudget,
}

impl Dependents {
    /// Nothing is watched until somebody asks.
    pub fn new(reflectors: Reflectors, queue: Arc<Queue>, kinds: Arc<KindIndex>) -> Self {
        let records = ReleaseSecretInformer::new(queue.clone());
        let (watched, room) = (Mutex::default(), SnapshotBudget::default());
        Self { reflectors, queue, kinds, watched, records, room }
    }

    /// The manager's kinds.
    pub fn kinds(&self) -> &Arc<KindIndex> {
        &self.kinds
    }

    /// The one watch on the records of all releases.
    pub fn records(&self) -> &ReleaseSecretInformer {
        &self.records
    }

    /// What starts watches.
    pub fn reflectors(&self) -> &Reflectors {
        &self.reflectors
    }

    /// What watches of another form are started with.
    pub fn parts(&self) -> (&Reflectors, &Arc<Queue>, &Arc<KindIndex>) {
        (&self.reflectors, &self.queue, &self.kinds)
    }

    /// The cache of a kind's objects with these labels, where the manager watches at all or in a
    /// namespace beyond; the first call starts the watch.
    pub fn watch(
        &self,
        gvk: &GroupVersionKind,
        selector: &str,
        beyond: Option<&String>,
    ) -> Arc<Cache<Dependent>> {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        watched
            .entry((gvk.clone(), selector.to_owned(), beyond.cloned()))
            .or_insert_with(|| self.start(gvk, selector, beyond))
            .clone()
    }

    fn start(
        &self,
        gvk: &GroupVersionKind,
        selector: &str,
        beyond: Option<&String>,
    ) -> Arc<Cache<Dependent>> {
        let (group, kind) = (gvk.group.clone(), gvk.kind.clone());
        let subject = WatchSubject {
            gvk: gvk.clone(),
            selector: Some(selector.to_owned()).filter(|selector| !selector.is_empty()),
            content: match observed::content_of(&group, &kind) {
                Content::Full => Content::Owned,
                // Without labels it would be every Secret of the cluster.
                Content::Metadata if !selector.is_empty() => Content::OwnedThenMetadata,
                content => content,
            },
            role: Role::Secondary,
        };
        let kinds = self.kinds.clone();
        let queue = self.queue.clone();
        let told_as = kind.clone();
        let room = self.room.clone();
        let reflectors = match beyond {
            None => self.reflectors.clone(),
            Some(namespace) => Reflectors {
                namespaces: [Some(namespace.clone())].into(),
                ..self.reflectors.clone()
            },
        };
        reflectors.follow(
            subject,
            move |Item { object, .. }| {
                let owners = kinds.owners(&object.metadata);
                let is_ours = object.metadata.managed_fields.is_some() && !owners.is_empty();
                let sight = if is_ours { room.keep(&object) } else { InitialSnapshot::default() };
                let observed = Observed::of(&group, &kind, &object);
                Dependent { observed, owners, is_shared: is_shared(&object.metadata), sight }
            },
            move |change| wake(&queue, &told_as, &change),
        )
    }
}

/// Whether an object has several owners.
pub fn is_shared(meta: &ObjectMeta) -> bool {
    meta.owner_references.as_ref().is_some_and(|owners| owners.len() > 1)
}

fn wake(queue: &Queue, kind: &str, change: &Change<Dependent>) {
    let (key, owners, word) = match change {
        Change::Seen { before: Some(before), now, .. } if same(&before.observed, &now.observed) => {
            return;
        }
        Change::Seen { key, now, .. } => (key, &now.owners, "changed"),
        Change::Gone { key, last } => (key, &last.owners, "deleted"),
    };
    for owner in owners {
        queue.add(owner.clone(), Priority::Live, &format!("{kind}/{} {word}", key.name));
    }
}

fn same(before: &Observed, now: &Observed) -> bool {
    before.mark == now.mark
        && before.readiness == now.readiness
        && (before.ended, before.deleting) == (now.ended, now.deleting)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn owners(meta: serde_json::Value) -> Vec<String> {
        let kinds =
            [GroupVersionKind::gvk("g.io", "v1", "A"), GroupVersionKind::gvk("g.io", "v1", "B")];
        let meta = serde_json::from_value(meta).unwrap();
        let describe = |key: Key| format!("{} {}", key.kind, key.object);
        KindIndex::new(&kinds).owners(&meta).into_iter().map(describe).collect()
    }

    #[test]
    fn an_object_belongs_to_the_resource_of_its_owner_reference() {
        let reference = |api: &str, kind: &str| json!({ "apiVersion": api, "kind": kind, "name": "x", "uid": "u" });
        let meta = json!({ "namespace": "ns", "ownerReferences": [
            reference("g.io/v2", "B"), reference("other.io/v1", "A"), reference("v1", "A"),
        ]});
        assert_eq!(owners(meta), ["1 ns/x"]);
    }

    #[test]
    fn an_object_elsewhere_belongs_to_the_resource_of_its_annotation() {
        let annotations = json!({ PRIMARY_RESOURCE: "team/x", PRIMARY_RESOURCE_TYPE: "A.g.io" });
        assert_eq!(owners(json!({ "annotations": annotations })), ["0 team/x"]);
        let foreign = json!({ PRIMARY_RESOURCE: "team/x", PRIMARY_RESOURCE_TYPE: "A.other.io" });
        assert_eq!(owners(json!({ "annotations": foreign })), [""; 0]);
    }
}
