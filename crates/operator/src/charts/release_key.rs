//! Name and namespace of the release of a resource, and which resource a release belongs to.
//!
//! As in the Go operators, a release has the name of its resource. If the name is too long for Helm, or
//! the release of that name belongs to somebody else, the name is derived from it.
//! `status.deployedRelease.name` stores the name.

use std::collections::BTreeMap;

use catamaran_cluster::conditions::reasons;
use catamaran_cluster::watch::ObjectKey;
use catamaran_release::{Driver, Error as ReleaseError, History, NamedOwner, Owner, Status};
use kube::ResourceExt;
use kube::core::{DynamicObject, GroupVersionKind};
use sha2::{Digest, Sha256};

use super::ChartController;
use super::reconcile::Interruption;
use super::status::FailureCondition;
use crate::manager::queue::Key;

/// The longest name of a release.
const LONGEST: usize = 53;
/// Label of records with the owner, because two kinds may have resources of the same name.
const OWNER: &str = "catamaran.dev/owner";
/// Annotation of a resource: the release of this name becomes the resource's, whoever created it.
const ADOPT: &str = "catamaran.dev/adopt-release";

/// Name and namespace of the release of a resource.
#[derive(Clone, Debug)]
pub(super) struct ReleaseKey {
    /// The namespace of the release.
    pub namespace: String,
    /// The possible names of the release; the last one is unique to the resource.
    names: Vec<String>,
    /// The name from the status.
    told: Option<String>,
    /// The name from [`ADOPT`].
    adopts: Option<String>,
    /// The value of [`OWNER`].
    owner: String,
    name: String,
}

/// The release of a name.
pub(super) struct FoundHistory {
    pub history: History,
    /// Whether it belongs to the resource.
    pub is_own: bool,
}

/// Which resource a release belongs to, by its records.
#[derive(Debug, PartialEq, Eq)]
enum Ownership {
    /// This resource.
    Own,
    /// Somebody else.
    Foreign,
    /// The objects of the release decide.
    Unknown,
}

impl ReleaseKey {
    /// `home` is the namespace for releases of cluster-scoped resources. `shared`: the records of several
    /// namespaces are in one.
    pub fn of(gvk: &GroupVersionKind, resource: &DynamicObject, home: &str, shared: bool) -> Self {
        let key = ObjectKey { namespace: resource.namespace(), name: resource.name_any() };
        let told = resource.data.pointer("/status/deployedRelease/name");
        let adopts = resource.annotations().get(ADOPT).cloned();
        let told = told.and_then(|name| name.as_str());
        Self { adopts, ..Self::told(gvk, &key, told, home, shared) }
    }

    /// The same, with the name from the status, if there is one.
    fn told(
        gvk: &GroupVersionKind,
        key: &ObjectKey,
        told: Option<&str>,
        home: &str,
        shared: bool,
    ) -> Self {
        let (own, name) = (key.namespace.clone(), key.name.clone());
        let whole =
            format!("{}/{}/{}/{name}", gvk.group, gvk.kind, own.as_deref().unwrap_or_default());
        let owner = digest(&whole);
        let derived = derived(&name, &owner);
        let plain = name.len() <= LONGEST && !shared;
        let names: Vec<String> = plain.then(|| name.clone()).into_iter().chain([derived]).collect();
        let told = told.map(str::to_owned).filter(|told| names.contains(told));
        let namespace = own.unwrap_or_else(|| home.to_owned());
        Self { namespace, names, told, adopts: None, owner, name }
    }

    /// Identifies the resource.
    pub fn owner(&self) -> &str {
        &self.owner
    }

    /// The labels of records of this release.
    pub fn labels(&self) -> BTreeMap<String, Option<String>> {
        BTreeMap::from([(OWNER.to_owned(), Some(self.owner.clone()))])
    }

    /// The possible names, the preferred one first.
    fn candidates(&self) -> impl Iterator<Item = &str> {
        let told = self.told.as_deref();
        let others = self.names.iter().map(String::as_str).filter(move |name| told != Some(name));
        told.into_iter().chain(others)
    }

    /// The first name to try.
    pub fn preferred_name(&self) -> &str {
        self.candidates().next().unwrap_or(&self.name)
    }

    /// Which resource a release belongs to. It belongs to this one if the operator wrote one of its records
    /// for it, if the status or the annotation [`ADOPT`] names it, or if a Helm operator added the uid of the
    /// resource to the record.
    ///
    /// A release without objects, uninstalled with its history kept, may belong to anybody.
    fn belongs(&self, history: &History, owner: &Owner) -> Ownership {
        let Some(newest) = history.newest() else { return Ownership::Own };
        if history.has_authenticated() || self.adopts.as_deref() == Some(history.name()) {
            return Ownership::Own;
        }
        if newest.labels.get(OWNER).is_some_and(|owner| *owner != self.owner) {
            return Ownership::Foreign;
        }
        if self.told.as_deref() == Some(history.name())
            || newest.info.status == Status::Uninstalled
            || history.owners().iter().any(|other| other.uid == owner.reference.uid)
        {
            return Ownership::Own;
        }
        Ownership::Unknown
    }

    /// Whether the record names this resource. Anybody can write that: it counts only if the release has no
    /// objects.
    fn is_labelled(&self, history: &History) -> bool {
        let label = history.newest().and_then(|newest| newest.labels.get(OWNER));
        label.is_some_and(|owner| *owner == self.owner)
    }
}

/// The error if releases of others have all possible names.
pub(super) fn foreign(history: &History) -> Interruption {
    let name = history.name();
    Interruption::Failed {
        failure: FailureCondition::Irreconcilable(reasons::ERROR_GETTING_RELEASE_STATE),
        message: format!(
            "the release {name:?} belongs to somebody else: its objects do not name this resource as \
             their owner; to make it this resource's, annotate the resource with {ADOPT}={name}"
        ),
        transient: true,
    }
}

impl ChartController {
    /// The release of a resource.
    pub(super) fn release_key(&self, resource: &DynamicObject) -> ReleaseKey {
        let shared = self.is_shared(resource.metadata.namespace.as_ref());
        ReleaseKey::of(&self.gvk, resource, &self.home, shared)
    }

    /// The same, when only the name of the resource is known.
    pub(super) fn release_key_of(&self, key: &ObjectKey) -> ReleaseKey {
        let shared = self.is_shared(key.namespace.as_ref());
        ReleaseKey::told(&self.gvk, key, None, &self.home, shared)
    }

    /// Whether the records of a namespace are stored together with those of others.
    fn is_shared(&self, namespace: Option<&String>) -> bool {
        self.storage.is_some() && namespace.is_some() && self.storage.as_ref() != namespace
    }

    /// Loads the release of a resource: one LIST, or a part of one; a second one if the first release belongs
    /// to somebody else; none if the watch shows that there is no record yet.
    ///
    /// If no release belongs to the resource, returns the last one.
    pub(super) async fn load_history(
        &self,
        driver: &Driver,
        key: &Key,
        site: &ReleaseKey,
        owner: &Owner,
    ) -> Result<FoundHistory, ReleaseError> {
        let mut found = None;
        for name in site.candidates() {
            let history = self.history_of(driver, key, site, name).await?;
            let is_own = match site.belongs(&history, owner) {
                Ownership::Own => true,
                Ownership::Foreign => false,
                Ownership::Unknown => match driver.named_owner(&history, owner).await? {
                    NamedOwner::This => true,
                    NamedOwner::Other => false,
                    NamedOwner::NoObjects => site.is_labelled(&history),
                },
            };
            if is_own {
                return Ok(FoundHistory { history, is_own });
            }
            tracing::info!(release = name, "the release of this name is somebody else's");
            found = Some(history);
        }
        match found {
            Some(history) => Ok(FoundHistory { history, is_own: false }),
            None => Err(ReleaseError::InvalidName { name: site.name.clone() }),
        }
    }

    async fn history_of(
        &self,
        driver: &Driver,
        key: &Key,
        site: &ReleaseKey,
        name: &str,
    ) -> Result<History, ReleaseError> {
        self.records.follow(&self.reflectors, key, &site.namespace, name);
        if name == site.preferred_name()
            && let Some(history) = self.prefetched(driver, key, site, name).await
        {
            return Ok(history);
        }
        self.records.reading(&site.namespace, name);
        // Records in another namespace are not listed under the release's namespace.
        let none = self.storage.is_none() && self.records.has_no_record(&site.namespace, name);
        let history = if none {
            History::empty(&site.namespace, name, jiff::Timestamp::now())
        } else {
            driver.history(&site.namespace, name).await?
        };
        self.records.read(&history);
        Ok(history)
    }
}

/// A name that is short enough, has no dots (some objects are named after it), and is unique to the
/// resource.
fn derived(name: &str, owner: &str) -> String {
    let room = LONGEST - owner.len() - 1;
    let cut = name.get(..room.min(name.len())).unwrap_or_default();
    format!("{}-{owner}", cut.replace('.', "-").trim_end_matches('-'))
}

/// Ten digits that identify a text.
pub(super) fn digest(text: &str) -> String {
    let bytes = Sha256::digest(text.as_bytes());
    let number = bytes.iter().take(5).fold(0, |number: u64, byte| number << 8 | u64::from(*byte));
    format!("{number:010x}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn site(kind: &str, name: &str, told: &str, shared: bool) -> ReleaseKey {
        let resource = json!({
            "apiVersion": "g.io/v1", "kind": kind,
            "metadata": { "name": name, "namespace": "ns" },
            "status": { "deployedRelease": { "name": told } },
        });
        let gvk = GroupVersionKind::gvk("g.io", "v1", kind);
        ReleaseKey::of(&gvk, &serde_json::from_value(resource).unwrap(), "home", shared)
    }

    fn candidates(site: &ReleaseKey) -> Vec<&str> {
        site.candidates().collect()
    }

    #[test]
    fn a_release_is_called_like_its_resource_where_that_can_be() {
        let one = site("A", "shop", "", false);
        let [first, second] = candidates(&one)[..] else { panic!("two names") };
        assert_eq!(first, "shop");
        assert!(second.starts_with("shop-") && second.len() == "shop-".len() + 10, "{second}");
        assert_eq!(candidates(&site("A", "shop", second, false)), [second, "shop"], "it was told");
        assert_eq!(candidates(&site("A", "shop", "else", false)), [first, second], "somebody lies");
        assert_eq!(candidates(&site("A", "shop", "", true)).len(), 1, "others share the place");
    }

    #[test]
    fn a_name_that_is_too_long_is_cut_and_stays_its_own() {
        let long = format!("{}-{}", "a".repeat(42), "b".repeat(200));
        let derived = |kind: &str, name: &str| {
            let site = site(kind, name, "", false);
            assert_eq!(site.names.len(), 1);
            site.names[0].clone()
        };
        let name = derived("A", &long);
        assert!(name.len() <= LONGEST && name.starts_with(&"a".repeat(42)), "{name}");
        assert!(!name.contains("--"), "{name}");
        assert_ne!(name, derived("A", &format!("{long}c")));
        assert_ne!(name, derived("B", &long));
        assert_eq!(site("A", &"a".repeat(53), "", false).names.len(), 2);
    }
}
