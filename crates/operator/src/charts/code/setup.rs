//! What is configured of a chart kind besides what watches.yaml can say.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use catamaran_release::Ways;
use catamaran_release::drive::DEFAULT_HISTORY;
use kube::ResourceExt;
use kube::core::DynamicObject;
use tracing::Span;

use super::calls::DynLogic;
use super::{Action, Event, Wake};

/// How an annotation's value, or nobody's wish, changes an action.
type Change = dyn Fn(&str, &mut Ways) + Send + Sync;

/// Who hears of events besides the cluster.
pub(crate) type OnEvent = dyn Fn(&Event<'_>) + Send + Sync;
/// What a resource's log lines carry.
type OfResource = dyn Fn(&DynamicObject) -> Span + Send + Sync;

/// A wish about an action.
#[derive(Clone)]
pub(crate) struct Wish {
    pub action: Action,
    /// The annotation that asks for it; without one it is always asked for.
    pub annotation: Option<String>,
    pub change: Arc<Change>,
}

/// What is configured in code.
#[derive(Clone)]
pub(crate) struct Setup {
    pub logic: Option<Arc<dyn DynLogic>>,
    pub wishes: Vec<Wish>,
    /// How many revisions are kept; 0 is all.
    pub history: usize,
    /// How long a hook, and all that an action waits for, may take.
    pub timeout: Option<Duration>,
    /// Whether what failed is taken back.
    pub failure_rollbacks: bool,
    pub wakes: Vec<Wake>,
    pub on_event: Option<Arc<OnEvent>>,
    pub span: Option<Arc<OfResource>>,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            logic: None,
            wishes: Vec::new(),
            history: DEFAULT_HISTORY,
            timeout: None,
            failure_rollbacks: true,
            wakes: Vec::new(),
            on_event: None,
            span: None,
        }
    }
}

impl fmt::Debug for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Setup")
            .field("logic", &self.logic.is_some())
            .field("history", &self.history)
            .field("failure_rollbacks", &self.failure_rollbacks)
            .finish_non_exhaustive()
    }
}

impl Setup {
    /// How an action is carried out for a resource.
    pub fn ways(&self, action: Action, resource: &DynamicObject, mut ways: Ways) -> Ways {
        let annotations = resource.annotations();
        for wish in self.wishes.iter().filter(|wish| wish.action == action) {
            match &wish.annotation {
                None => (wish.change)("", &mut ways),
                Some(name) => {
                    if let Some(value) = annotations.get(name) {
                        (wish.change)(value, &mut ways);
                    }
                }
            }
        }
        ways
    }

    /// An annotation that is asked for twice, if there is one: which action it is for must be clear.
    pub fn doubled(&self) -> Option<&str> {
        let mut names: Vec<&str> =
            self.wishes.iter().filter_map(|wish| wish.annotation.as_deref()).collect();
        names.sort_unstable();
        names.array_windows().find(|[one, other]| one == other).map(|[one, _]| *one)
    }
}
