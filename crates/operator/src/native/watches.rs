//! What a reconciler declares: which objects trigger a reconcile, and which are cached.

use std::any::TypeId;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use catamaran_cluster::watch::ObjectKey;
use kube::core::{GroupVersionKind, Selector};
use kube::{Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::context::MANAGED_BY;
use super::gvk;
use super::objects::{Objects, Stored};
use super::trigger::ReconcileTrigger;
use crate::manager::ManagerContext;
use crate::manager::queue::KindId;

/// A kind whose objects can be cached: every typed Kubernetes object is one.
pub trait Kind:
    Resource<DynamicType = ()>
    + ResourceExt
    + Clone
    + fmt::Debug
    + DeserializeOwned
    + Serialize
    + Send
    + Sync
    + 'static
{
}

impl<C> Kind for C where
    C: Resource<DynamicType = ()>
        + ResourceExt
        + Clone
        + fmt::Debug
        + DeserializeOwned
        + Serialize
        + Send
        + Sync
        + 'static
{
}

/// What triggers a reconcile besides changes of the resource.
#[derive(Default)]
pub struct Watches {
    pub(super) owned: Vec<(GroupVersionKind, Option<String>)>,
    pub(super) related: Vec<(GroupVersionKind, String)>,
    pub(super) required: Vec<GroupVersionKind>,
    pub(super) listed: Vec<Listed>,
    pub(super) period: Option<Duration>,
    pub(super) wakes: Vec<ReconcileTrigger>,
    pub(super) outlast: bool,
}

/// Starts the watch of a declared list.
type Start = Box<
    dyn FnOnce(&ManagerContext, KindId) -> (Arc<dyn Stored>, Arc<dyn std::any::Any + Send + Sync>)
        + Send,
>;

pub(super) struct Listed {
    pub type_id: TypeId,
    pub gvk: GroupVersionKind,
    /// Whether it contains every object of this kind that [`super::Context::apply`] creates.
    pub owned: bool,
    pub start: Start,
}

impl fmt::Debug for Watches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let listed: Vec<_> = self.listed.iter().map(|listed| &listed.gvk).collect();
        f.debug_struct("Watches")
            .field("owned", &self.owned)
            .field("related", &self.related)
            .field("required", &self.required)
            .field("listed", &listed)
            .field("period", &self.period)
            .field("outlast", &self.outlast)
            .finish_non_exhaustive()
    }
}

impl Watches {
    /// Objects that [`super::Context::apply`] creates: a change reconciles the owner. About 200 bytes of each
    /// are cached; for whole objects see [`Watches::lists`] with [`Only::owned`].
    pub fn owns<C: Resource<DynamicType = ()>>(&mut self) -> &mut Self {
        self.owned.push((gvk::<C>(), None));
        self
    }

    /// The same for objects in a namespace that the operator does not watch otherwise.
    pub fn owns_in<C: Resource<DynamicType = ()>>(&mut self, namespace: &str) -> &mut Self {
        self.owned.push((gvk::<C>(), Some(namespace.to_owned())));
        self
    }

    /// Objects that others create, such as the pods of an owned Deployment: a change of one with the labels of
    /// `selector` reconciles the resource that its annotations name (see [`super::Context::annotations`]).
    pub fn related<C: Resource<DynamicType = ()>>(&mut self, selector: &str) -> &mut Self {
        self.related.push((gvk::<C>(), selector.to_owned()));
        self
    }

    /// Objects that every resource refers to with [`super::Context::reference`]: the watch begins at the
    /// start, and not with the first reference.
    pub fn requires<C: Resource<DynamicType = ()>>(&mut self) -> &mut Self {
        self.required.push(gvk::<C>());
        self
    }

    /// Objects that are cached for [`super::Context::list`], [`super::Context::list_owned`] and
    /// [`super::Context::claim`]. A change reconciles the owners of the object, and the resources that list
    /// with a selector that matches its labels now, or matched them before.
    pub fn lists<C: Kind>(&mut self, only: Only<C>) -> &mut Self {
        self.keep(only, None)
    }

    /// The same; a change also reconciles the resources that `map` returns for the object.
    pub fn maps<C: Kind>(
        &mut self,
        only: Only<C>,
        map: impl Fn(&C) -> Vec<ObjectKey> + Send + Sync + 'static,
    ) -> &mut Self {
        self.keep(only, Some(Box::new(map)))
    }

    /// Reconciles every resource at least this often, even without a change: for what no watch reports,
    /// such as a server outside of Kubernetes.
    pub fn polls(&mut self, period: Duration) -> &mut Self {
        self.period = Some(period);
        self
    }

    /// Keeps what [`super::Context::apply`] and [`super::Context::secret_once`] create until after the cleanup.
    /// In a foreground deletion (`kubectl delete --cascade=foreground`) the garbage collector deletes all
    /// objects with an owner reference at once, and the cleanup would miss a server whose data it should save.
    /// Children then have annotations and a label instead of an owner reference, as those in other namespaces,
    /// and the operator deletes them once the cleanup is ready. All their kinds must be declared.
    pub fn children_outlast_cleanup(&mut self) -> &mut Self {
        self.outlast = true;
        self
    }

    /// Adds a trigger from anywhere in the program.
    pub fn triggered_by(&mut self, wake: &ReconcileTrigger) -> &mut Self {
        self.wakes.push(wake.clone());
        self
    }

    fn keep<C: Kind>(&mut self, only: Only<C>, map: Option<Map<C>>) -> &mut Self {
        let owned = only.owned;
        self.listed.push(Listed {
            type_id: TypeId::of::<C>(),
            gvk: gvk::<C>(),
            owned,
            start: Box::new(move |manager, kind| {
                let mut selector = only.labels;
                if owned {
                    selector.push(format!("{MANAGED_BY}={}", manager.operator));
                }
                let objects =
                    Objects::<C>::start(manager, kind, selector.join(","), only.when, map);
                (objects.clone(), objects)
            }),
        });
        self
    }
}

/// The resources that an object concerns.
pub(super) type Map<C> = Box<dyn Fn(&C) -> Vec<ObjectKey> + Send + Sync>;
/// Whether a change matters: the object before (if it was known) and now.
pub(super) type When<C> = Box<dyn Fn(Option<&C>, &C) -> bool + Send + Sync>;

/// Which objects of a kind, and which of their changes.
pub struct Only<C> {
    labels: Vec<String>,
    owned: bool,
    when: Option<When<C>>,
}

impl<C> Only<C> {
    /// All of them.
    pub fn all() -> Self {
        Self { labels: Vec::new(), owned: false, when: None }
    }

    /// Those that the operator creates with [`super::Context::apply`]: they have its label.
    pub fn owned() -> Self {
        Self { owned: true, ..Self::all() }
    }

    /// Those with these labels, in the form of `kubectl -l`. The API server sends no others.
    #[must_use]
    pub fn labels(mut self, selector: impl Into<String>) -> Self {
        self.labels.push(selector.into());
        self
    }

    /// Those whose labels match.
    #[must_use]
    pub fn matching(self, selector: &Selector) -> Self {
        self.labels(selector.to_string())
    }

    /// Only changes for which `when` returns true, given the object before, if it was known, and now. A
    /// deletion always counts.
    #[must_use]
    pub fn when(mut self, when: impl Fn(Option<&C>, &C) -> bool + Send + Sync + 'static) -> Self {
        self.when = Some(Box::new(when));
        self
    }
}

impl<C> fmt::Debug for Only<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Only")
            .field("labels", &self.labels)
            .field("owned", &self.owned)
            .finish_non_exhaustive()
    }
}
