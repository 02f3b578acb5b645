//! What a reconciler works with.

use std::collections::BTreeMap;
use std::future::Future;
use std::ops::Deref;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use catamaran_cluster::apply::Target;
use catamaran_cluster::conditions::{Condition, reasons, types};
use catamaran_cluster::watch::ObjectKey;
use kube::core::GroupVersionKind;
use kube::{Client, Resource, ResourceExt};
use serde::Serialize;
use serde_json::Value;

use super::children::Desired;
use super::controller::Shared;
use super::{Action, Error, Managed, Progress, Status, gvk};
use crate::manager::dependents::{PRIMARY_RESOURCE, PRIMARY_RESOURCE_TYPE};
use crate::manager::queue::Key;
use crate::manager::status::Draft;

/// Label by which the objects of native kinds are told from others, with the operator's name as value.
pub(super) const MANAGED_BY: &str = "app.kubernetes.io/managed-by";

/// One reconcile of one resource. Derefs to the resource.
pub struct Cx<'a, K: Managed> {
    object: K,
    key: &'a Key,
    shared: &'a Shared,
    work: Mutex<Work>,
}

#[derive(Debug)]
struct Work {
    draft: Draft,
    components: Vec<Component>,
    finished: bool,
    /// When a child wants to be looked at again.
    again: Option<Duration>,
}

#[derive(Debug)]
struct Component {
    name: &'static str,
    outcome: Result<Progress, Error>,
}

impl<K: Managed> Deref for Cx<'_, K> {
    type Target = K;

    fn deref(&self) -> &K {
        &self.object
    }
}

impl<'a, K: Managed> Cx<'a, K> {
    pub(super) fn new(object: K, key: &'a Key, shared: &'a Shared, draft: Draft) -> Self {
        Self {
            object,
            key,
            shared,
            work: Mutex::new(Work { draft, components: Vec::new(), finished: false, again: None }),
        }
    }

    /// The connection, for what the context does not cover.
    pub fn client(&self) -> &Client {
        &self.shared.client
    }

    /// Annotations that tie an object to this resource where no owner reference can: on objects of other
    /// namespaces, or on the pod template of a Deployment whose pods are [`super::Watches::related`].
    pub fn annotations(&self) -> BTreeMap<String, String> {
        let of = format!("{}.{}", K::kind(&()), K::group(&()));
        [(PRIMARY_RESOURCE, self.key.object.to_string()), (PRIMARY_RESOURCE_TYPE, of)]
            .map(|(name, value)| (name.to_owned(), value))
            .into()
    }

    /// Makes a child what it is given as, by server-side apply: owned by this resource, in its
    /// namespace, created if it is missing. No request is made if nothing differs.
    ///
    /// # Errors
    /// An object of that name that belongs to somebody else; whatever the API server refuses.
    // Not an `async fn`: the child is written as JSON at once, a future that holds it would be large.
    pub fn apply<C>(
        &self,
        child: C,
    ) -> impl Future<Output = Result<Progress, Error>> + Send + use<'_, 'a, K, C>
    where
        C: Resource<DynamicType = ()> + Serialize,
    {
        let name = child.name_any();
        let object = self.child(child);
        async move { self.apply_object(gvk::<C>(), name, object?).await }
    }

    /// A child as it is sent: ours, in our namespace, without a status.
    fn child<C>(&self, mut child: C) -> Result<Value, Error>
    where
        C: Resource<DynamicType = ()> + Serialize,
    {
        let owner = self.object.controller_owner_ref(&());
        child.meta_mut().owner_references = owner.map(|owner| vec![owner]);
        child.meta_mut().namespace.clone_from(&self.key.object.namespace);
        child.labels_mut().insert(MANAGED_BY.to_owned(), self.shared.operator.clone());
        let mut object =
            serde_json::to_value(&child).map_err(|e| Error::Permanent(e.to_string()))?;
        if let Some(fields) = object.as_object_mut() {
            let gvk = gvk::<C>();
            fields.insert("apiVersion".into(), gvk.api_version().into());
            fields.insert("kind".into(), gvk.kind.into());
            fields.remove("status");
        }
        Ok(object)
    }

    async fn apply_object(
        &self,
        gvk: GroupVersionKind,
        name: String,
        object: Value,
    ) -> Result<Progress, Error> {
        let mapping = self.shared.mapper.resolve(&gvk).await?;
        let namespace = self.key.object.namespace.clone().filter(|_| mapping.namespaced);
        let target = Target { resource: mapping.resource, namespace, name };
        let owner_uid = self.object.uid().unwrap_or_default();
        let desired = Desired { owner: self.key, owner_uid: &owner_uid, gvk: &gvk, target, object };
        let cache = self.shared.owned(&gvk);
        let applied = self.shared.children.apply(&self.shared.applier, &cache, desired).await?;
        if let Some(again) = applied.again {
            let mut work = self.work();
            work.again = Some(work.again.map_or(again, |sooner| sooner.min(again)));
        }
        Ok(applied.progress)
    }

    /// The names of the [`super::Watches::related`] objects of this resource, sorted, from memory.
    pub fn related<C: Resource<DynamicType = ()>>(&self) -> Vec<String> {
        let gvk = gvk::<C>();
        let related = self.shared.related.iter().filter(|(of, _)| *of == gvk);
        let mine =
            related.flat_map(|(_, cache)| cache.filter(|object| object.owners.contains(self.key)));
        let mut names: Vec<String> = mine.map(|(ObjectKey { name, .. }, _)| name).collect();
        names.sort();
        names
    }

    /// Runs a part of the reconcile whose outcome is a condition of its own, named `name`; an error does
    /// not keep other components from running.
    pub async fn component<F>(&self, name: &'static str, part: F)
    where
        F: Future<Output = Result<Progress, Error>>,
    {
        let outcome = part.await;
        let mut work = self.work();
        work.draft.condition(condition(name, &outcome));
        work.components.push(Component { name, outcome });
    }

    /// Changes the kind's own status fields; they are written at the end, if they differ.
    ///
    /// # Errors
    /// Fields that cannot be written as JSON.
    pub fn status(&self, change: impl FnOnce(&mut K::Fields)) -> Result<(), Error> {
        let mut fields = self
            .object
            .status()
            .map_or_else(Default::default, |status: &Status<K::Fields>| status.fields.clone());
        change(&mut fields);
        let fields = serde_json::to_value(fields).map_err(|e| Error::Permanent(e.to_string()))?;
        let mut work = self.work();
        if let Value::Object(fields) = fields {
            for (name, value) in fields {
                work.draft.set(&name, value);
            }
        }
        Ok(())
    }

    /// Sums up: the resource is Ready if all components are.
    ///
    /// # Errors
    /// The first component's error that asks for another try or for a change of the resource.
    pub fn finish(&self) -> Result<Action, Error> {
        let mut work = self.work();
        let components = std::mem::take(&mut work.components);
        work.draft.condition(summary(&components));
        work.finished = true;
        let failed = components.into_iter().filter_map(|component| component.outcome.err());
        match failed.into_iter().find(|error| !matches!(error, Error::Waiting { .. })) {
            Some(error) => Err(error),
            None => Ok(work.again.map_or(Action::AwaitChange, Action::Requeue)),
        }
    }

    /// The draft of the status; a reconcile that failed before [`Cx::finish`] is not Ready.
    pub(super) fn into_draft(self, failed: Option<&Error>) -> Draft {
        let work = self.work.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut draft = work.draft;
        if let Some(error) = failed.filter(|_| !work.finished) {
            let (reason, message) = cause(error);
            draft.condition(Condition::new(types::READY, false, reason, message));
        }
        draft
    }

    fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn condition(name: &str, outcome: &Result<Progress, Error>) -> Condition {
    match outcome {
        Ok(Progress::Ready) => Condition::new(name, true, "Ready", format!("{name} is ready")),
        Ok(Progress::Pending { reason, message }) => {
            Condition::new(name, false, reason.clone(), message.clone())
        }
        Err(error) => {
            let (reason, message) = cause(error);
            Condition::new(name, false, reason, message)
        }
    }
}

/// Reason and message of the condition that an error becomes.
fn cause(error: &Error) -> (String, String) {
    match error {
        Error::Waiting { reason, message } => (reason.clone(), message.clone()),
        Error::Permanent(_) | Error::Transient(_) => {
            (reasons::RECONCILE_ERROR.to_owned(), error.to_string())
        }
    }
}

/// Ready: all components are, or else why the first one is not.
fn summary(components: &[Component]) -> Condition {
    let not_ready =
        |component: &&Component| component.outcome.as_ref().ok() != Some(&Progress::Ready);
    match components.iter().find(not_ready) {
        None => Condition::new(types::READY, true, "Ready", "all components are ready"),
        Some(Component { name, outcome }) => {
            let cause = condition(name, outcome);
            Condition::new(types::READY, false, cause.reason, format!("{name}: {}", cause.message))
        }
    }
}
