//! What a reconcile makes and unmakes: children, applied and pruned.

use std::future::Future;

use catamaran_cluster::apply::Target;
use catamaran_cluster::watch::ObjectKey;
use kube::core::GroupVersionKind;
use kube::{Resource, ResourceExt};
use serde::Serialize;
use serde_json::{Value, json};

use super::children::Desired;
use super::context::{Context, MANAGED_BY};
use super::{ComponentProgress, Error, Managed, gvk, unowned_children};

impl<'a, K: Managed> Context<'a, K> {
    /// Makes a child what it is given as, by server-side apply: created if it is missing, owned by this
    /// resource, and in its namespace unless it names another. No request is made if nothing differs.
    ///
    /// A child in another namespace, or in none, cannot have an owner reference: it gets annotations and
    /// a label, this resource gets a finalizer first, and is kept until the child is deleted with it. Its
    /// kind must be declared by [`super::Watches::owns`], so that it is found again after a restart.
    ///
    /// # Errors
    /// An object of that name that belongs to somebody else; whatever the API server refuses.
    // Not an `async fn`: the child is written as JSON at once, a future that holds it would be large.
    #[allow(clippy::needless_pass_by_value)] // it is made for this call: `ctx.apply(deployment(ctx))`
    pub fn apply<C>(
        &self,
        child: C,
    ) -> impl Future<Output = Result<ComponentProgress, Error>> + Send + use<'_, 'a, K, C>
    where
        C: Resource<DynamicType = ()> + Serialize,
    {
        self.apply_as(&child, false)
    }

    /// The same; a child that the API server does not let become what it shall be, as most fields of a
    /// pod and of a Job are immutable, is deleted and made anew.
    ///
    /// # Errors
    /// As [`Context::apply`].
    #[allow(clippy::needless_pass_by_value)] // as above
    pub fn apply_or_recreate<C>(
        &self,
        child: C,
    ) -> impl Future<Output = Result<ComponentProgress, Error>> + Send + use<'_, 'a, K, C>
    where
        C: Resource<DynamicType = ()> + Serialize,
    {
        self.apply_as(&child, true)
    }

    fn apply_as<C>(
        &self,
        child: &C,
        recreate: bool,
    ) -> impl Future<Output = Result<ComponentProgress, Error>> + Send + use<'_, 'a, K, C>
    where
        C: Resource<DynamicType = ()> + Serialize,
    {
        let (name, namespace) = (child.name_any(), child.namespace());
        let object = self.child(child);
        async move { self.apply_object(&gvk::<C>(), (namespace, name), object?, recreate).await }
    }

    /// A child as it is sent: ours, without a status.
    fn child<C>(&self, child: &C) -> Result<Value, Error>
    where
        C: Resource<DynamicType = ()> + Serialize,
    {
        let mut object =
            serde_json::to_value(child).map_err(|e| Error::Permanent(e.to_string()))?;
        if let Some(fields) = object.as_object_mut() {
            let gvk = gvk::<C>();
            fields.insert("apiVersion".into(), gvk.api_version().into());
            fields.insert("kind".into(), gvk.kind.into());
            fields.remove("status");
        }
        object["metadata"]["labels"][MANAGED_BY] = self.shared().operator.as_str().into();
        Ok(object)
    }

    /// Ties an object to this resource where no owner reference shall be or can be.
    pub(super) async fn hold(
        &self,
        gvk: &GroupVersionKind,
        namespace: Option<&String>,
        object: &mut Value,
    ) -> Result<(), Error> {
        self.shared().is_declared(gvk, namespace)?;
        for (annotation, value) in self.annotations() {
            object["metadata"]["annotations"][annotation] = value.into();
        }
        let uid = self.resource().uid().unwrap_or_default();
        object["metadata"]["labels"][unowned_children::OWNER] = uid.into();
        self.finalize().await
    }

    async fn apply_object(
        &self,
        gvk: &GroupVersionKind,
        (namespace, name): (Option<String>, String),
        mut object: Value,
        recreate: bool,
    ) -> Result<ComponentProgress, Error> {
        let mapping = self.shared().resolve(gvk, self.key()).await?;
        let own = &self.key().object.namespace;
        let namespace = namespace.or_else(|| own.clone()).filter(|_| mapping.namespaced);
        let uid = self.resource().uid().unwrap_or_default();
        if namespace == *own && !self.shared().outlast {
            let owner = self.resource().controller_owner_ref(&());
            object["metadata"]["ownerReferences"] =
                json!(owner.map_or_else(Vec::new, |us| vec![us]));
        } else {
            self.hold(gvk, namespace.as_ref(), &mut object).await?;
        }
        object["metadata"]["namespace"] = namespace.clone().into();
        let target = Target { resource: mapping.resource, namespace, name };
        let key = ObjectKey { namespace: target.namespace.clone(), name: target.name.clone() };
        let child = (gvk.clone(), key);
        self.applied(child.clone());
        let known = self.shared().known(gvk, target.namespace.as_ref());
        let desired = Desired { owner: self.key(), owner_uid: &uid, gvk, target, object, recreate };
        let (children, applier) = (&self.shared().children, &self.shared().applier);
        let applied = children.apply(applier, &known, desired).await?;
        let applied = children.diagnose(applier, self.key(), &child, applied).await;
        if let Some(after) = applied.again {
            self.look_again_in(after);
        }
        Ok(applied.progress)
    }

    /// Deletes the objects of a kind that this resource owns and that this reconcile did not apply. To be
    /// called when all children have been: while a component has failed nothing is deleted, as what it
    /// would have applied is not known. The kind must be declared by [`super::Watches::owns`], or be
    /// listed with [`super::Only::owned`].
    ///
    /// # Errors
    /// What the API server refuses.
    pub async fn prune<C: Resource<DynamicType = ()>>(&self) -> Result<ComponentProgress, Error> {
        let (keep, failed) = self.applied_so_far();
        if failed {
            return Ok(ComponentProgress::pending(
                "NotAllApplied",
                "nothing is pruned while others fail",
            ));
        }
        let gvk = gvk::<C>();
        let mapping = match self.shared().mapper.resolve(&gvk).await {
            Err(error) if error.is_no_match() => return Ok(ComponentProgress::Ready), // there can be none
            mapping => mapping?,
        };
        let of = (&gvk, &mapping.resource);
        let (children, applier) = (&self.shared().children, &self.shared().applier);
        let mut ending = 0;
        for known in self.shared().all_known(&gvk) {
            ending += children.prune(applier, of, &*known, self.key(), &keep).await?;
        }
        Ok(match ending {
            0 => ComponentProgress::Ready,
            some => ComponentProgress::pending(
                "Pruning",
                format!("{some} of {} are being deleted", gvk.kind),
            ),
        })
    }
}
