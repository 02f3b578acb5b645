//! Objects that were taken from their owner: somebody deleted it and asked to leave them.

use catamaran_cluster::apply::metadata;
use serde_json::Value;

use super::Driver;
use crate::Error;
use crate::objects::{Owner, PlannedObject, ownership_problems};
use crate::plan::{History, is_doubtful};
use crate::record::Status;

impl Driver {
    /// Whether the objects of a release have lost their owner, which is what becomes of them when it is
    /// deleted with `--cascade=orphan`. The request itself may not be seen any more by then.
    ///
    /// The first object of ours that is still there decides: mostly one read, and none for a release
    /// whose uninstall has begun.
    ///
    /// # Errors
    ///
    /// As those of any request. Where kinds are not served any more it is false.
    pub async fn is_orphaned(&self, history: &History, owner: &Owner) -> Result<bool, Error> {
        let Some(newest) = history.newest() else { return Ok(false) };
        if matches!(newest.info.status, Status::Uninstalling | Status::Uninstalled) {
            return Ok(false);
        }
        let release = (history.name(), history.namespace());
        let is_trusted = history.is_newest_trusted();
        let objects = match self.planned(release, Some(owner), &newest.manifest).await {
            Err(Error::Mapping { source, .. }) if source.is_no_match() => return Ok(false),
            // A forged manifest holds nobody up.
            Err(error) if !is_trusted && !error.is_transient() => return Ok(false),
            objects => objects?,
        };
        let is_owned =
            |object: &&PlannedObject| metadata(&object.body).contains_key("ownerReferences");
        for object in objects.iter().filter(is_owned) {
            let Some(target) = &object.target else { continue };
            let live = match self.applier.get(target).await {
                Err(error) if !is_trusted && !error.kind.is_transient() => continue,
                // What may not be read could hardly be made.
                Err(error)
                    if is_doubtful(newest) && self.is_missing_permission(&error, &object.id) =>
                {
                    continue;
                }
                live => live?,
            };
            let Some(live) = live else { continue };
            if ownership_problems(&live, release).is_some() {
                continue;
            }
            let leaves = metadata(&live).contains_key("deletionTimestamp");
            return Ok(!leaves && !belongs_to(&live, owner));
        }
        Ok(false)
    }
}

fn belongs_to(live: &Value, owner: &Owner) -> bool {
    let owners = metadata(live).get("ownerReferences").and_then(Value::as_array);
    owners.into_iter().flatten().any(|reference| reference["uid"] == owner.reference.uid.as_str())
}
