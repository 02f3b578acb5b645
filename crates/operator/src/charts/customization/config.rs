//! What is configured of a chart kind besides what watches.yaml can say.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use catamaran_release::ActionOptions;
use catamaran_release::apply::DEFAULT_HISTORY;
use kube::ResourceExt;
use kube::core::DynamicObject;
use tracing::Span;

use super::calls::DynChartHooks;
use super::{Action, Event, ReconcileTrigger};

/// How an annotation's value, or nobody's wish, changes an action.
type Change = dyn Fn(&str, &mut ActionOptions) + Send + Sync;

/// Who hears of events besides the cluster.
pub(crate) type OnEvent = dyn Fn(&Event<'_>) + Send + Sync;
/// What a resource's log lines carry.
type OfResource = dyn Fn(&DynamicObject) -> Span + Send + Sync;

/// A wish about an action.
#[derive(Clone)]
pub(crate) struct ActionOverride {
    pub action: Action,
    /// The annotation that asks for it; without one it is always asked for.
    pub annotation: Option<String>,
    pub change: Arc<Change>,
}

/// What is configured in code.
#[derive(Clone)]
pub(crate) struct ChartKindConfig {
    pub logic: Option<Arc<dyn DynChartHooks>>,
    pub reconcile_options: Vec<ActionOverride>,
    /// How many revisions are kept; 0 is all.
    pub history: usize,
    /// How long a hook, and all that an action waits for, may take.
    pub timeout: Option<Duration>,
    /// Whether what failed is remediated.
    pub failure_rollbacks: bool,
    pub wakes: Vec<ReconcileTrigger>,
    pub on_event: Option<Arc<OnEvent>>,
    pub span: Option<Arc<OfResource>>,
}

impl Default for ChartKindConfig {
    fn default() -> Self {
        Self {
            logic: None,
            reconcile_options: Vec::new(),
            history: DEFAULT_HISTORY,
            timeout: None,
            failure_rollbacks: true,
            wakes: Vec::new(),
            on_event: None,
            span: None,
        }
    }
}

impl fmt::Debug for ChartKindConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Setup")
            .field("logic", &self.logic.is_some())
            .field("history", &self.history)
            .field("failure_rollbacks", &self.failure_rollbacks)
            .finish_non_exhaustive()
    }
}

impl ChartKindConfig {
    /// How an action is carried out for a resource.
    pub fn apply_overrides(
        &self,
        action: Action,
        resource: &DynamicObject,
        mut action_options: ActionOptions,
    ) -> ActionOptions {
        let annotations = resource.annotations();
        for wish in self.reconcile_options.iter().filter(|wish| wish.action == action) {
            match &wish.annotation {
                None => (wish.change)("", &mut action_options),
                Some(name) => {
                    if let Some(value) = annotations.get(name) {
                        (wish.change)(value, &mut action_options);
                    }
                }
            }
        }
        action_options
    }

    /// An annotation that is asked for twice, if there is one: which action it is for must be clear.
    pub fn duplicate_annotation(&self) -> Option<&str> {
        let mut names: Vec<&str> =
            self.reconcile_options.iter().filter_map(|wish| wish.annotation.as_deref()).collect();
        names.sort_unstable();
        names.array_windows().find(|[one, other]| one == other).map(|[one, _]| *one)
    }
}
