//! What a reconciler declares: which other objects wake a resource, and which are kept in memory.

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

/// A kind whose objects can be kept in memory: every typed Kubernetes object is one.
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

/// What wakes a resource besides its own changes.
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

/// Starts the watch behind a declared list.
type Start = Box<
    dyn FnOnce(&ManagerContext, KindId) -> (Arc<dyn Stored>, Arc<dyn std::any::Any + Send + Sync>)
        + Send,
>;

pub(super) struct Listed {
    pub type_id: TypeId,
    pub gvk: GroupVersionKind,
    /// Whether it holds every object that [`super::Context::apply`] makes of this kind.
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
    /// Objects that [`super::Context::apply`] makes: any change of one wakes its owner. Of each, some 200
    /// bytes are kept; for whole objects see [`Watches::lists`] with [`Only::owned`].
    pub fn owns<C: Resource<DynamicType = ()>>(&mut self) -> &mut Self {
        self.owned.push((gvk::<C>(), None));
        self
    }

    /// The same for objects in a namespace that the operator does not watch otherwise.
    pub fn owns_in<C: Resource<DynamicType = ()>>(&mut self, namespace: &str) -> &mut Self {
        self.owned.push((gvk::<C>(), Some(namespace.to_owned())));
        self
    }

    /// Objects that others make for us, such as the pods of an owned Deployment: those with the labels of
    /// `selector` wake the resource that their annotations name (see [`super::Context::annotations`]).
    pub fn related<C: Resource<DynamicType = ()>>(&mut self, selector: &str) -> &mut Self {
        self.related.push((gvk::<C>(), selector.to_owned()));
        self
    }

    /// Objects that every resource refers to by [`super::Context::reference`]: they are watched from the
    /// start, and not from the first reference on.
    pub fn requires<C: Resource<DynamicType = ()>>(&mut self) -> &mut Self {
        self.required.push(gvk::<C>());
        self
    }

    /// Objects that are kept in memory for [`super::Context::list`], [`super::Context::list_owned`] and
    /// [`super::Context::claim`]. A change wakes the owners of the object, and whoever lists with a selector
    /// that fits its labels now or did before.
    pub fn lists<C: Kind>(&mut self, only: Only<C>) -> &mut Self {
        self.keep(only, None)
    }

    /// The same; a change wakes also the resources that `map` names for the object.
    pub fn maps<C: Kind>(
        &mut self,
        only: Only<C>,
        map: impl Fn(&C) -> Vec<ObjectKey> + Send + Sync + 'static,
    ) -> &mut Self {
        self.keep(only, Some(Box::new(map)))
    }

    /// Looks at every resource at least this often, although nothing moved: for what no watch tells of,
    /// such as a server outside of Kubernetes.
    pub fn polls(&mut self, period: Duration) -> &mut Self {
        self.period = Some(period);
        self
    }

    /// Has what [`super::Context::apply`] and [`super::Context::secret_once`] make outlast the cleanup, however the
    /// resource is deleted: in a foreground deletion (`kubectl delete --cascade=foreground`) the garbage
    /// collector takes everything with an owner reference at once, and cleanup finds a server gone whose
    /// data it was to save. Children get no owner reference then but, as those in another namespace,
    /// annotations and a label; they are deleted once cleanup is ready. All their kinds must be declared.
    pub fn children_outlast_cleanup(&mut self) -> &mut Self {
        self.outlast = true;
        self
    }

    /// Lets a channel of one's own wake resources.
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
/// Whether a change matters: before (if it was known) and now.
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

    /// Those that the operator makes by [`super::Context::apply`]: they carry its label.
    pub fn owned() -> Self {
        Self { owned: true, ..Self::all() }
    }

    /// Those with these labels, in the form of `kubectl -l`. The API server sends no others.
    #[must_use]
    pub fn labels(mut self, selector: impl Into<String>) -> Self {
        self.labels.push(selector.into());
        self
    }

    /// Those whose labels fit.
    #[must_use]
    pub fn matching(self, selector: &Selector) -> Self {
        self.labels(selector.to_string())
    }

    /// Wakes only for changes that `when` likes, given the object before, if it was known, and now. A
    /// deletion always wakes.
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
