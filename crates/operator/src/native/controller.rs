//! From the manager's queue to a user's reconciler and back.

use std::sync::Arc;
use std::time::Duration;

use catamaran_cluster::apply::Applier;
use catamaran_cluster::conditions::{Condition, types};
use catamaran_cluster::mapper::Mapper;
use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use kube::Client;
use kube::core::{DynamicObject, GroupVersionKind};
use tokio::sync::OnceCell;

use super::children::Children;
use super::context::{Cx, MANAGED_BY};
use super::{Action, Error, Reconciler, Watches};
use crate::manager::Hub;
use crate::manager::controller::{Controller, Failure, Next, Request};
use crate::manager::dependents::{Dependent, Dependents};
use crate::manager::feeds::Cache;
use crate::manager::queue::Key;
use crate::manager::status::{Draft, Written};

/// Carries one [`Reconciler`].
pub(crate) struct NativeController<R> {
    reconciler: R,
    shared: Shared,
    /// The caches of what the reconciler declares.
    caches: Vec<Arc<Cache<Dependent>>>,
    /// Set once they have been filled.
    filled: OnceCell<()>,
}

/// How long the first reconcile waits for the caches: without them it would take what it does not see
/// for missing.
const FILLING: Duration = Duration::from_secs(10);

/// What all reconciles of a kind share.
pub(super) struct Shared {
    pub client: Client,
    pub mapper: Mapper,
    pub applier: Applier,
    /// The operator's name: field manager, and the label of what it owns.
    pub operator: String,
    pub children: Children,
    pub related: Vec<(GroupVersionKind, Arc<Cache<Dependent>>)>,
    dependents: Arc<Dependents>,
}

impl Shared {
    /// The cache of the objects of a kind that this operator owns.
    pub fn owned(&self, gvk: &GroupVersionKind) -> Arc<Cache<Dependent>> {
        self.dependents.watch(gvk, &format!("{MANAGED_BY}={}", self.operator))
    }
}

impl<R: Reconciler> NativeController<R> {
    /// Starts the watches that the reconciler declares.
    pub fn new(reconciler: R, hub: &Hub) -> Self {
        let mut watches = Watches::default();
        R::watches(&mut watches);
        let related = watches
            .related
            .into_iter()
            .map(|(gvk, selector)| (gvk.clone(), hub.dependents.watch(&gvk, &selector)))
            .collect();
        let shared = Shared {
            client: hub.client.clone(),
            mapper: hub.mapper.clone(),
            applier: Applier::new(hub.client.clone(), &hub.operator),
            operator: hub.operator.clone(),
            children: Children::default(),
            related,
            dependents: hub.dependents.clone(),
        };
        let owned = watches.owned.iter().map(|gvk| shared.owned(gvk));
        let caches = owned.chain(shared.related.iter().map(|(_, cache)| cache.clone())).collect();
        Self { reconciler, shared, caches, filled: OnceCell::new() }
    }

    async fn run(&self, request: Request) -> Result<Next, Failure> {
        let Request { key, object, api, writes } = request;
        if object.metadata.deletion_timestamp.is_some() {
            return Ok(Next::Rest); // what it owns is collected with it
        }
        let fill = || async {
            join_all(self.caches.iter().map(|cache| cache.settled(FILLING))).await;
        };
        self.filled.get_or_init(fill).await;
        let mut draft = Draft::of(&object);
        let (draft, outcome) = match decode::<R::Object>(&object) {
            Err(message) => {
                draft.condition(Condition::new(
                    types::READY,
                    false,
                    "InvalidSpec",
                    message.clone(),
                ));
                (draft, Err(Error::Permanent(message)))
            }
            Ok(decoded) => {
                let cx = Cx::new(decoded, &key, &self.shared, draft);
                let outcome = self.reconciler.reconcile(&cx).await;
                (cx.into_draft(outcome.as_ref().err()), outcome)
            }
        };
        match draft.write(&api, &object).await {
            Ok(Written::Conflict) => return Err(Failure::Conflict),
            Ok(Written::Changed(written)) => writes.note(&key, &written),
            Ok(Written::Unchanged | Written::Gone) => {}
            Err(error) => {
                return Err(Failure::Transient(format!("cannot write the status: {error}")));
            }
        }
        match outcome {
            Ok(Action::AwaitChange) | Err(Error::Waiting { .. }) => Ok(Next::Rest),
            Ok(Action::Requeue(after)) => Ok(Next::After(after)),
            Err(Error::Permanent(message)) => Err(Failure::Permanent(message)),
            Err(Error::Transient(error)) => Err(Failure::Transient(error.to_string())),
        }
    }
}

impl<R: Reconciler> Controller for NativeController<R> {
    fn reconcile(&self, request: Request) -> BoxFuture<'_, Result<Next, Failure>> {
        self.run(request).boxed()
    }

    fn gone<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, ()> {
        self.shared.children.gone(&self.shared.applier, key).boxed()
    }
}

/// Objects are decoded when their turn comes, so that one that cannot be is no one else's trouble.
fn decode<K: serde::de::DeserializeOwned>(object: &DynamicObject) -> Result<K, String> {
    let value = serde_json::to_value(object).map_err(|error| error.to_string())?;
    serde_json::from_value(value)
        .map_err(|error| format!("the resource does not fit its kind: {error}"))
}
