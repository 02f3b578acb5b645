//! Looking at what an action would do, before it does anything.

use super::{CrdPolicy, Driver};
use crate::Error;
use crate::objects::{PlannedObject, ownership_problems};
use crate::plan::crds::definitions;
use crate::plan::{
    Action, ApplyMode, DesiredState, History, Manifests, Plan, TargetRevision, resolve,
};
use crate::record::Release;

impl Driver {
    /// The record that [`Driver::apply`] would begin with. Reads what `apply` would have to claim: by
    /// this Helm refuses before it writes anything. Writes nothing.
    ///
    /// # Errors
    ///
    /// Those of [`History::decide`]; [`Error::Mapping`] for a kind that nothing serves;
    /// [`Error::Ownership`] where an object is there and belongs to somebody else.
    pub async fn preview(
        &self,
        history: &History,
        desired: &DesiredState<'_>,
    ) -> Result<Release, Error> {
        let action = match history.decide(desired)? {
            Action::RenderAgain(facts) => {
                let (rendered, due) = (desired.release.revision, facts.revision);
                return Err(Error::WrongFacts { rendered, due });
            }
            Action::Wait { revision, status, retry_after } => {
                return Err(Error::Busy { revision, status: status.to_string(), retry_after });
            }
            action => action,
        };
        let mut goal = TargetRevision::new(history, desired, &action, self.clock.now());
        goal.adopt = self.action_options.take_ownership;
        let mut definitions_of_chart = Vec::new();
        if self.action_options.crds != CrdPolicy::Skip {
            let found = definitions(desired.chart)?;
            definitions_of_chart = found.into_iter().map(|found| found.object).collect();
        }
        let manifests =
            Manifests { definitions: definitions_of_chart, ..Manifests::read(history, &goal)? };
        let kinds = resolve(&self.mapper, manifests.kinds()).await?;
        let plan = Plan::new(history, goal, &manifests, &kinds, self.history_max)?;
        let release = (plan.record.name.as_str(), plan.record.namespace.as_str());
        for (how, object) in &plan.steps {
            if *how == ApplyMode::Claim {
                self.check_free(object, release).await?;
            }
        }
        Ok(plan.record)
    }

    /// Whether an object is not there, or this release's.
    async fn check_free(&self, object: &PlannedObject, release: (&str, &str)) -> Result<(), Error> {
        let Some(target) = &object.target else { return Ok(()) };
        let Some(live) = self.applier.get(target).await? else { return Ok(()) };
        match ownership_problems(&live, release) {
            None => Ok(()),
            Some(problems) => Err(Error::ownership(&object.id, problems)),
        }
    }
}
