//! Sets of objects that are alike, as a ReplicaSet has pods: listed, claimed by a selector, filled up.

use std::collections::BTreeMap;
use std::sync::Arc;

use catamaran_cluster::apply::FailureKind;
use catamaran_cluster::watch::ObjectKey;
use kube::core::{DynamicObject, Selector};
use serde_json::{Value, json};

use super::context::Context;
use super::index::fits;
use super::objects::{Found, Objects};
use super::watches::Kind;
use super::{Error, Managed, gvk, names};

/// How many names are tried before something must be wrong.
const MOST_NAMES: u64 = 100_000;

impl<K: Managed> Context<'_, K> {
    /// The objects of a kind in this resource's namespace whose labels fit, by name, from memory. The
    /// kind must be declared by [`super::Watches::lists`]. From now on the resource is woken when one of
    /// them changes, or when an object comes to fit or ceases to.
    ///
    /// # Errors
    /// An object that does not fit its kind; a kind that is not declared.
    pub fn list<C: Kind>(&self, selector: &Selector) -> Result<Vec<Arc<C>>, Error> {
        let (objects, holder) = (self.objects::<C>()?, self.key());
        let namespace = holder.object.namespace.as_ref();
        self.objects_of(&objects.select(namespace, selector, holder, self.epoch()))
    }

    /// The objects of a kind that have this resource as their owner, by name, from memory. The kind must
    /// be declared by [`super::Watches::lists`].
    ///
    /// # Errors
    /// An object that does not fit its kind; a kind that is not declared.
    pub fn list_owned<C: Kind>(&self) -> Result<Vec<Arc<C>>, Error> {
        self.objects_of(&self.objects::<C>()?.owned(self.key()))
    }

    /// The objects of a kind that are this resource's by their labels, and by that alone: those that fit
    /// and have no controller get this resource as their owner, those that it owns and that do not fit
    /// (any more) are let go, those of another controller are left alone. Objects in deletion do not
    /// count. By name; without a request if all is as it should be.
    ///
    /// # Errors
    /// As [`Context::list`]; what the API server refuses.
    pub async fn claim<C: Kind>(&self, selector: &Selector) -> Result<Vec<Arc<C>>, Error> {
        let uid = self.uid();
        for owned in self.list_owned::<C>()? {
            if !fits(selector, owned.meta()) && controller(&*owned) == uid {
                self.set_owners(&*owned, |owners| {
                    owners.retain(|owner| owner["uid"] != json!(uid));
                })
                .await?;
            }
        }
        let mut claimed = Vec::new();
        for found in self.list::<C>(selector)? {
            if found.meta().deletion_timestamp.is_some() {
                continue;
            }
            match controller(&*found) {
                owner if owner == uid => claimed.push(found),
                Some(_) => {}
                None => {
                    let us = serde_json::to_value(self.controller_owner_ref(&()))
                        .map_err(Error::transient)?;
                    claimed
                        .push(Arc::new(self.set_owners(&*found, |owners| owners.push(us)).await?));
                }
            }
        }
        Ok(claimed)
    }

    /// Creates `missing` more objects, owned by this resource, from what `make` gives; their names are
    /// `prefix` and five characters that follow from this resource and a running number. So the same one
    /// is never made twice, neither by a reconcile that does not see yet what the last one made, nor by
    /// another process that takes over. Names that are in use are passed over.
    ///
    /// # Errors
    /// As [`Context::list`]; what the API server refuses.
    pub async fn create_missing<C: Kind>(
        &self,
        prefix: &str,
        missing: usize,
        make: impl Fn() -> C,
    ) -> Result<Vec<Arc<C>>, Error> {
        let objects = self.objects::<C>()?;
        let namespace = self.key().object.namespace.clone();
        let uid = self.uid().unwrap_or_default();
        let mut created: Vec<Arc<C>> = Vec::new();
        for slot in 0..MOST_NAMES {
            if created.len() >= missing {
                return Ok(created);
            }
            let name = names::numbered(prefix, &uid, slot);
            let key = ObjectKey { namespace: namespace.clone(), name };
            if objects.get(&key).is_none()
                && let Some(new) = self.create(&key, make()).await?
            {
                created.push(Arc::new(new));
            }
        }
        Err(Error::Permanent(format!("the first {MOST_NAMES} names for {prefix}… are in use")))
    }

    /// Creates an object of ours, or finds that we have created it before; `None` if the name is taken.
    async fn create<C: Kind>(&self, key: &ObjectKey, mut child: C) -> Result<Option<C>, Error> {
        child.meta_mut().name = Some(key.name.clone());
        child.meta_mut().namespace.clone_from(&key.namespace);
        child.meta_mut().owner_references = self.controller_owner_ref(&()).map(|us| vec![us]);
        let wanted = child.labels().clone();
        let mut object = serde_json::to_value(&child).map_err(Error::transient)?;
        if let Some(fields) = object.as_object_mut() {
            fields.insert("apiVersion".into(), gvk::<C>().api_version().into());
            fields.insert("kind".into(), gvk::<C>().kind.into());
            fields.remove("status");
        }
        let target = self.target::<C>(key.namespace.clone(), key.name.clone()).await?;
        let applier = &self.shared().applier;
        let (live, fresh) = match applier.create(&target, &object).await {
            Ok(created) => (created, true),
            Err(error) if error.kind == FailureKind::AlreadyExists => {
                match applier.get(&target).await? {
                    Some(live) => (live, false),
                    None => return Err(Error::Conflict), // it went away under our eyes
                }
            }
            Err(error) => return Err(error.into()),
        };
        let live: DynamicObject = serde_json::from_value(live).map_err(Error::transient)?;
        if let Some(stored) = self.shared().stored::<C>() {
            stored.wrote(&live);
        }
        let live: C = serde_json::to_value(live)
            .and_then(serde_json::from_value)
            .map_err(Error::transient)?;
        Ok(Some(live).filter(|live| fresh || self.is_one_of_ours(live, &wanted)))
    }

    fn is_one_of_ours<C: Kind>(&self, live: &C, labels: &BTreeMap<String, String>) -> bool {
        controller(live) == self.uid()
            && live.meta().deletion_timestamp.is_none()
            && labels.iter().all(|(label, value)| live.labels().get(label) == Some(value))
    }

    async fn set_owners<C: Kind>(
        &self,
        object: &C,
        change: impl FnOnce(&mut Vec<Value>),
    ) -> Result<C, Error> {
        let owners = serde_json::to_value(object.owner_references()).map_err(Error::transient)?;
        let Value::Array(mut owners) = owners else { return Ok(object.clone()) };
        change(&mut owners);
        self.patch(object, json!({ "metadata": { "ownerReferences": owners } })).await
    }

    fn objects<C: Kind>(&self) -> Result<Arc<Objects<C>>, Error> {
        self.shared().objects::<C>().ok_or_else(|| {
            let kind = C::kind(&());
            Error::Permanent(format!(
                "{kind} objects are not in memory: declare `watches.lists::<{kind}>(…)`"
            ))
        })
    }

    fn objects_of<C: Kind>(&self, found: &Found<C>) -> Result<Vec<Arc<C>>, Error> {
        if found.unconfirmed {
            self.look_again();
        }
        let decoded = found.entries.iter().map(|entry| match &entry.object {
            Ok(object) => Ok(object.clone()),
            Err(why) => Err(Error::Waiting {
                reason: "InvalidObject".to_owned(),
                message: format!(
                    "{} \"{}\" does not fit its kind: {why}",
                    C::kind(&()),
                    entry.meta.name.as_deref().unwrap_or_default()
                ),
            }),
        });
        decoded.collect()
    }
}

/// The uid of an object's controller.
fn controller<C: Kind>(object: &C) -> Option<String> {
    let owners = object.owner_references().iter();
    owners.clone().find(|owner| owner.controller == Some(true)).map(|owner| owner.uid.clone())
}
