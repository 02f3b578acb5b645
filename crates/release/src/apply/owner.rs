//! Whose a release is, as its objects tell: for who acts on an operator's release by hand, and would
//! otherwise take the owner off its objects.

use catamaran_cluster::apply::Target;
use catamaran_cluster::mapper::Mapping;
use kube::core::GroupVersionKind;

use super::Driver;
use crate::Error;
use crate::objects::{Claimed, Owner, claimed_owner, is_kept, ownership_problems, parse_manifest};
use crate::plan::{History, claimed, planned, resolve};

/// As many objects are read to find out whose a release is.
const MOST_OBJECTS_READ: usize = 20;

/// Whom the live objects of a release name as their owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamedOwner {
    /// The resource in question.
    This,
    /// Another one, or none.
    Other,
    /// There are no objects.
    NoObjects,
}

impl Driver {
    /// The resource that a release belongs to: the controller of the first object of its newest
    /// revision that is there and the release's own, or whom that names in its annotations. One read
    /// where there is none, two where there is one. `None` if that resource is not there any more.
    ///
    /// # Errors
    ///
    /// As those of any request, but for the right to read the owner: then it is believed.
    pub async fn owner(&self, history: &History) -> Result<Option<Owner>, Error> {
        let Some(release) = history.deployed().or(history.newest()) else { return Ok(None) };
        let of = (history.name(), history.namespace());
        let wanted = parse_manifest(&release.manifest)?;
        let kinds = resolve(&self.mapper, wanted.iter().map(|raw| &raw.gvk).collect()).await?;
        // What nothing serves any more is no witness, and no reason to end here.
        let served: Vec<_> = wanted
            .into_iter()
            .filter(|raw| kinds.get(&raw.gvk).is_some_and(Option::is_some))
            .collect();
        for object in planned(of, None, &served, &[], &kinds)? {
            let Some(target) = object.target.as_ref().filter(|_| !is_kept(&object.body)) else {
                continue;
            };
            let Some(live) = self.applier.get(target).await? else { continue };
            if ownership_problems(&live, of).is_none() {
                return match claimed_owner(&live) {
                    Some(claimed) => self.believed(claimed).await,
                    None => Ok(None),
                };
            }
        }
        Ok(None)
    }

    /// Whether the live objects of a release name this resource as their owner: what operators leave on
    /// objects, and no record can claim. The first object that is there and carries the release's marks
    /// decides.
    ///
    /// # Errors
    ///
    /// As those of any request, but for the right to read an object: such a one is passed over.
    pub async fn named_owner(&self, history: &History, owner: &Owner) -> Result<NamedOwner, Error> {
        let Some(release) = history.deployed().or(history.newest()) else {
            return Ok(NamedOwner::NoObjects);
        };
        let of = (history.name(), history.namespace());
        let wanted = claimed(history, release)?;
        let kinds = resolve(&self.mapper, wanted.iter().map(|raw| &raw.gvk).collect()).await?;
        let served: Vec<_> = wanted
            .into_iter()
            .filter(|raw| kinds.get(&raw.gvk).is_some_and(Option::is_some))
            .collect();
        for object in planned(of, None, &served, &[], &kinds)?.iter().take(MOST_OBJECTS_READ) {
            let Some(target) = &object.target else { continue };
            let live = match self.applier.get(target).await {
                Err(error) if self.is_missing_permission(&error, &object.id) => continue,
                Err(error) if !error.kind.is_transient() && !error.kind.is_forbidden() => continue,
                live => live?,
            };
            let Some(live) = live.filter(|live| ownership_problems(live, of).is_none()) else {
                continue;
            };
            let names = claimed_owner(&live).is_some_and(|claimed| owner.is(&claimed));
            return Ok(if names { NamedOwner::This } else { NamedOwner::Other });
        }
        Ok(NamedOwner::NoObjects)
    }

    /// The owner that an object claims to have, if there is such a resource.
    async fn believed(&self, claimed: Claimed) -> Result<Option<Owner>, Error> {
        let Some(mapping) = self.kind_of(&claimed).await? else { return Ok(None) };
        let target = Target {
            resource: mapping.resource.clone(),
            namespace: mapping.namespaced.then(|| claimed.namespace.clone()),
            name: claimed.name.clone(),
        };
        let live = match self.applier.get(&target).await {
            Err(error) if error.kind.is_forbidden() => return Ok(claimed.unseen()),
            live => live?,
        };
        Ok(live.and_then(|live| claimed.seen(&live)))
    }

    async fn kind_of(&self, claimed: &Claimed) -> Result<Option<Mapping>, Error> {
        if let Some(version) = &claimed.version {
            let gvk = GroupVersionKind::gvk(&claimed.group, version, &claimed.kind);
            let mut kinds = resolve(&self.mapper, [&gvk].into()).await?;
            return Ok(kinds.remove(&gvk).flatten());
        }
        let found = self.mapper.resolve_any_version(&claimed.group, &claimed.kind).await;
        found.map_err(|source| Error::Mapping { object: claimed.kind.clone(), source })
    }
}
