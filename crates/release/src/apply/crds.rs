//! The definitions of `crds/`: created where there are none, and otherwise left alone, or brought to
//! what the chart has where that is asked for ([`CrdPolicy`]).

use catamaran_chart::Chart;
use catamaran_cluster::apply::{FailureKind, Target};
use catamaran_cluster::drift::Inspection;
use catamaran_cluster::readiness::{self, Readiness};
use kube::core::GroupVersionKind;
use serde_json::Value;

use super::{CrdPolicy, Driver};
use crate::error::{Error, Waiting};
use crate::objects::{RawObject, release_of};
use crate::plan::crds::{Definition, definitions, dropped, kinds};
use crate::plan::hooks::HookReason;
use crate::plan::{resolve, target};

impl Driver {
    /// Sees to it that the kinds of a chart's `crds/` are served. To be called before the chart is
    /// rendered, as what the cluster serves is one of its inputs; [`Driver::apply`] does it, too.
    ///
    /// A definition that exists is left as it is, whoever made it, unless [`CrdPolicy::CreateReplace`]
    /// asks for more. None is ever deleted. Costs no request for kinds that are known to be served; one
    /// read for each definition that may be replaced.
    ///
    /// # Errors
    ///
    /// [`Error::Waiting`] until a definition is in effect; [`Error::Definition`] if it cannot be
    /// created or replaced, e.g. because the right is missing; [`Error::StoredVersions`] and
    /// [`Error::Ownership`] if it must not be replaced.
    pub async fn crds(&self, chart: &Chart) -> Result<(), Error> {
        self.definitions(chart).await.map(drop)
    }

    /// What [`Driver::crds`] would meet, without a write: refusals, and what the API server says of the
    /// definitions that would be created or replaced.
    ///
    /// # Errors
    ///
    /// As those of [`Driver::crds`]; nothing is waited for.
    pub async fn preview_crds(&self, chart: &Chart) -> Result<(), Error> {
        for definition in definitions(chart)? {
            let may_replace = match self.action_options.crds {
                CrdPolicy::Skip => return Ok(()),
                CrdPolicy::Create => false,
                CrdPolicy::CreateReplace => true,
            };
            let target = self.target_of_definition(&definition).await?;
            let failed =
                |source| Error::Definition { source_file: definition.source.clone(), source };
            let live = self.applier.get(&target).await.map_err(failed)?;
            if live.is_some() && !may_replace {
                continue;
            }
            live.map_or(Ok(()), |live| check_replaceable(&live, &definition))?;
            self.applier.dry_run(&target, &definition.object.object).await.map_err(failed)?;
        }
        Ok(())
    }

    pub(super) async fn definitions(&self, chart: &Chart) -> Result<Vec<RawObject>, Error> {
        let mut objects = Vec::new();
        if self.action_options.crds == CrdPolicy::Skip {
            return Ok(objects);
        }
        // All are created before one is waited for: each takes the API server about a second.
        let mut waiting = None;
        for definition in definitions(chart)? {
            let created = if self.action_options.crds == CrdPolicy::CreateReplace {
                self.bring_definition(&definition).await?
            } else if !self.is_served(&definition).await? {
                self.define(&definition).await?
            } else {
                None
            };
            waiting = waiting.or(created);
            objects.push(definition.object);
        }
        waiting.map_or(Ok(objects), |wait| Err(Error::Waiting(wait)))
    }

    /// Creates a definition, as [`Driver::define`] does, or brings the one that is there to what the
    /// chart has.
    async fn bring_definition(
        &self,
        definition: &Definition,
    ) -> Result<Option<Box<Waiting>>, Error> {
        let target = self.target_of_definition(definition).await?;
        let failed = |source| Error::Definition { source_file: definition.source.clone(), source };
        let Some(live) = self.applier.get(&target).await.map_err(failed)? else {
            return self.define(definition).await;
        };
        check_replaceable(&live, definition)?;
        let wanted = &definition.object.object;
        let live = match self.applier.inspect(&target, wanted, &live, &[]).await.map_err(failed)? {
            Inspection::Same => live,
            Inspection::Changed(drift) => {
                let applied = self.applier.apply(&target, &drift.body).await.map_err(failed)?;
                tracing::info!(definition = target.name, "brought a CRD to what the chart has");
                applied
            }
        };
        self.in_effect(&live, definition, &definition.kinds).await.map(|()| None)
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

    /// Creates a definition if it is not there, and says what is to be waited for if it was not.
    async fn define(&self, definition: &Definition) -> Result<Option<Box<Waiting>>, Error> {
        let target = self.target_of_definition(definition).await?;
        let failed = |source| Error::Definition { source_file: definition.source.clone(), source };
        let (live, is_new) = match self.applier.claim(&target, &definition.object.object).await {
            Ok(live) => {
                tracing::info!(definition = target.name, "created a CRD of the chart");
                (live, true)
            }
            Err(error) if error.kind == FailureKind::AlreadyExists => {
                let live = self.applier.get(&target).await.map_err(failed)?;
                let live = live.ok_or_else(|| {
                    let mut gone = error.clone();
                    gone.kind = FailureKind::Conflict;
                    failed(gone)
                })?;
                (live, false)
            }
            Err(error) => return Err(failed(error)),
        };
        let kinds = kinds(&live);
        match self.in_effect(&live, definition, kinds.get(..1).unwrap_or_default()).await {
            Ok(()) => Ok(None),
            Err(Error::Waiting(waiting)) if is_new => Ok(Some(waiting)),
            Err(error) => Err(error),
        }
    }

    /// Ends well if a definition is in effect, and these of its kinds are served.
    async fn in_effect(
        &self,
        live: &Value,
        definition: &Definition,
        kinds: &[GroupVersionKind],
    ) -> Result<(), Error> {
        let (reason, message) = match readiness::assess(live) {
            Readiness::Ready if self.are_known(kinds).await? => return Ok(()),
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
            why: HookReason::End,
            reason,
            message,
            at_most: None,
            seen: None,
        })))
    }

    /// Whether discovery shows what a definition in effect has served: it comes a moment later.
    async fn are_known(&self, kinds: &[GroupVersionKind]) -> Result<bool, Error> {
        for gvk in kinds {
            if self.mapper.resolve(gvk).await.is_ok() {
                continue;
            }
            self.mapper.forget(gvk);
            if !resolve(&self.mapper, [gvk].into()).await?.get(gvk).is_some_and(Option::is_some) {
                return Ok(false);
            }
        }
        Ok(true)
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

/// Refuses to replace what belongs to a release, as one of its objects, and what would lose objects.
fn check_replaceable(live: &Value, definition: &Definition) -> Result<(), Error> {
    if let Some(owner) = release_of(live) {
        let problems = format!("it is an object of release {owner}, not of a folder crds/");
        return Err(Error::ownership(&definition.id(), problems));
    }
    match dropped(live, &definition.object.object) {
        versions if versions.is_empty() => Ok(()),
        versions => Err(Error::StoredVersions {
            source_file: definition.source.clone(),
            name: definition.id().name,
            versions: versions.join(", "),
        }),
    }
}
