//! The definitions of `crds/`: created where there are none, and otherwise left alone.

use catamaran_chart::Chart;
use catamaran_cluster::apply::{FailureKind, Target};
use catamaran_cluster::readiness::{self, Readiness};
use kube::core::GroupVersionKind;
use serde_json::Value;

use super::Driver;
use crate::error::{Error, Waiting};
use crate::objects::RawObject;
use crate::plan::crds::{Definition, definitions, kinds};
use crate::plan::hooks::Why;
use crate::plan::{resolve, target};

impl Driver {
    /// Sees to it that the kinds of a chart's `crds/` are served. To be called before the chart is
    /// rendered, as what the cluster serves is one of its inputs; [`Driver::apply`] does it, too.
    ///
    /// A definition that exists is left as it is, whoever made it. None is ever deleted, or changed.
    /// Costs no request for kinds that are known to be served.
    ///
    /// # Errors
    ///
    /// [`Error::Waiting`] until a definition is in effect; [`Error::Definition`] if it cannot be
    /// created, e.g. because the right is missing.
    pub async fn crds(&self, chart: &Chart) -> Result<(), Error> {
        self.definitions(chart).await.map(drop)
    }

    pub(super) async fn definitions(&self, chart: &Chart) -> Result<Vec<RawObject>, Error> {
        let mut objects = Vec::new();
        for definition in definitions(chart)? {
            if !self.is_served(&definition).await? {
                self.define(&definition).await?;
            }
            objects.push(definition.object);
        }
        Ok(objects)
    }

    async fn is_served(&self, definition: &Definition) -> Result<bool, Error> {
        let Some(GroupVersionKind { group, kind, .. }) = definition.kinds.first() else {
            return Ok(false);
        };
        let found = self.mapper.resolve_any_version(group, kind).await;
        found
            .map(|mapping| mapping.is_some())
            .map_err(|source| Error::Mapping { object: definition.id().to_string(), source })
    }

    async fn define(&self, definition: &Definition) -> Result<(), Error> {
        let target = self.target_of_definition(definition).await?;
        let failed = |source| Error::Definition { source_file: definition.source.clone(), source };
        let live = match self.applier.claim(&target, &definition.object.object).await {
            Ok(live) => {
                tracing::info!(definition = target.name, "created a CRD of the chart");
                live
            }
            Err(error) if error.kind == FailureKind::AlreadyExists => {
                let live = self.applier.get(&target).await.map_err(failed)?;
                live.ok_or_else(|| {
                    let mut gone = error.clone();
                    gone.kind = FailureKind::Conflict;
                    failed(gone)
                })?
            }
            Err(error) => return Err(failed(error)),
        };
        let (reason, message) = match readiness::assess(&live) {
            Readiness::Ready if self.is_known(&live).await? => return Ok(()),
            Readiness::Ready => {
                ("NotServedYet".to_owned(), "its kind is not served yet".to_owned())
            }
            Readiness::Pending { reason, message } | Readiness::Failed { reason, message } => {
                (reason, message)
            }
        };
        Err(Error::Waiting(Box::new(Waiting {
            role: "definition".to_owned(),
            object: definition.id(),
            gvk: definition.object.gvk.clone(),
            why: Why::End,
            reason,
            message,
            at_most: None,
            seen: None,
        })))
    }

    /// Whether discovery shows what a definition in effect has served: it comes a moment later.
    async fn is_known(&self, live: &Value) -> Result<bool, Error> {
        let Some(gvk) = kinds(live).into_iter().next() else { return Ok(true) };
        self.mapper.forget(&gvk);
        let kinds = resolve(&self.mapper, [&gvk].into()).await?;
        Ok(kinds.get(&gvk).is_some_and(Option::is_some))
    }

    async fn target_of_definition(&self, definition: &Definition) -> Result<Target, Error> {
        let gvk = &definition.object.gvk;
        let kinds = resolve(&self.mapper, [gvk].into()).await?;
        match kinds.get(gvk) {
            Some(Some(mapping)) => Ok(target(mapping, &definition.id())),
            _ => Err(Error::NotServedYet { object: definition.id() }),
        }
    }
}
