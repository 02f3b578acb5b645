//! Where the objects of a release may be.

use super::Driver;
use super::hooks::raw_of;
use crate::Error;
use crate::objects::{ObjectId, id_of};
use crate::plan::{Plan, resolve};

/// Where the objects of a release may be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Scope {
    /// Anywhere, as Helm has it.
    #[default]
    Cluster,
    /// In the namespace of the release. What has no namespace, such as a `ClusterRole`, is outside.
    Namespace,
}

impl Scope {
    /// Whether a release of this namespace may have the object.
    pub fn allows(self, object: &ObjectId, release_namespace: &str) -> bool {
        self == Self::Cluster || object.namespace.as_deref() == Some(release_namespace)
    }

    /// The same as a result.
    ///
    /// # Errors
    /// [`Error::OutOfScope`], with the object's name.
    pub(super) fn check(self, object: &ObjectId, release_namespace: &str) -> Result<(), Error> {
        if self.allows(object, release_namespace) {
            return Ok(());
        }
        let namespace = release_namespace.to_owned();
        Err(Error::OutOfScope { object: Box::new(object.clone()), namespace })
    }
}

impl Driver {
    /// Checks every object and every hook of a plan, so that nothing of a release is written if one of
    /// them is out of scope.
    ///
    /// # Errors
    /// [`Error::OutOfScope`] for the first one. [`Error::Mapping`] if the kinds of hooks cannot be found.
    pub(super) async fn check_scope(&self, plan: &Plan) -> Result<(), Error> {
        if self.scope == Scope::Cluster {
            return Ok(());
        }
        let namespace = plan.record.namespace.as_str();
        for (_, object) in &plan.steps {
            self.scope.check(&object.id, namespace)?;
        }
        let hooks = plan.record.hooks.iter().map(raw_of).collect::<Result<Vec<_>, _>>()?;
        let kinds = resolve(&self.mapper, hooks.iter().map(|raw| &raw.gvk).collect()).await?;
        for raw in &hooks {
            let mapping = kinds.get(&raw.gvk).and_then(Option::as_ref);
            // A kind that is not served yet is checked again when the hook is run.
            let namespaced = mapping.is_none_or(|mapping| mapping.namespaced);
            self.scope.check(&id_of(&raw.object, &raw.gvk, namespaced, namespace), namespace)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(namespace: Option<&str>) -> ObjectId {
        let (group, kind, name) = (String::new(), "Thing".to_owned(), "it".to_owned());
        ObjectId { group, kind, name, namespace: namespace.map(str::to_owned) }
    }

    #[test]
    fn scope_namespace_allows_objects_of_the_release_namespace_only() {
        for (namespace, allowed) in
            [(Some("team"), true), (Some("kube-system"), false), (Some(""), false), (None, false)]
        {
            let object = object(namespace);
            assert_eq!(Scope::Namespace.allows(&object, "team"), allowed, "{object}");
            assert!(Scope::Cluster.allows(&object, "team"));
        }
    }

    #[test]
    fn error_names_the_object_and_the_field_of_watches_yaml() {
        let error = Scope::Namespace.check(&object(Some("kube-system")), "team").unwrap_err();
        let text = error.to_string();
        for part in ["Thing \"it\" in namespace \"kube-system\"", "\"team\"", "scope: namespace"] {
            assert!(text.contains(part), "{text}");
        }
    }
}
