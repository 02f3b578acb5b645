//! Whose a release is, as its objects tell: for who acts on an operator's release by hand, and would
//! otherwise take the owner off its objects.

use catamaran_cluster::apply::{FailureKind, Target};
use catamaran_cluster::mapper::Mapping;
use kube::core::GroupVersionKind;

use super::Driver;
use crate::Error;
use crate::objects::{Claimed, Owner, claimed_owner, is_kept, ownership_problems, parse_manifest};
use crate::plan::{History, planned, resolve};

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

    /// The owner that an object claims to have, if there is such a resource.
    async fn believed(&self, claimed: Claimed) -> Result<Option<Owner>, Error> {
        let Some(mapping) = self.kind_of(&claimed).await? else { return Ok(None) };
        let target = Target {
            resource: mapping.resource.clone(),
            namespace: mapping.namespaced.then(|| claimed.namespace.clone()),
            name: claimed.name.clone(),
        };
        let live = match self.applier.get(&target).await {
            Err(error) if error.kind == FailureKind::Forbidden => return Ok(claimed.unseen()),
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
