//! Why a child is not ready, where it does not say so itself: its pods and events are asked.

use std::time::{Duration, Instant};

use catamaran_cluster::apply::Applier;
use catamaran_cluster::diagnosis::{FailureCause, OFTEN, Pace, is_worth_asking, pace};

use super::ComponentProgress;
use super::children::{Applied, ChildKey, Children};
use crate::manager::queue::Key;

/// How long a child has not been ready, and what was found to be in its way.
#[derive(Clone, Default)]
pub(super) struct Cause {
    since: Option<Instant>,
    asked: Option<Instant>,
    found: Option<FailureCause>,
}

impl Cause {
    /// When to ask, given whether the child waits: `None` is never.
    fn pace(&mut self, waits: bool, now: Instant) -> Option<Pace> {
        if !waits {
            *self = Self::default();
            return None;
        }
        let lasts = now.saturating_duration_since(*self.since.get_or_insert(now));
        let pace = pace(lasts);
        let since = self.asked.map(|asked| now.saturating_duration_since(asked));
        // A child whose status moves wakes its owner more often than that.
        match since.and_then(|since| OFTEN.checked_sub(since)).filter(|rest| !rest.is_zero()) {
            Some(rest) => Some(Pace::Later(rest)),
            None => Some(pace),
        }
    }
}

impl Children {
    /// Puts the most specific cause that can be seen in the place of what a child says of itself. What
    /// may not be read is not told, and is no error.
    pub async fn diagnose(
        &self,
        applier: &Applier,
        owner: &Key,
        key: &ChildKey,
        mut applied: Applied,
    ) -> Applied {
        if !is_worth_asking(&key.0.group, &key.0.kind) {
            return applied;
        }
        let now = Instant::now();
        let waits = applied.progress != ComponentProgress::Ready;
        let asks = self
            .with(owner, key, |child| Some((child.cause.pace(waits, now)?, child.target.clone())));
        let Some((pace, target)) = asks.flatten() else { return applied };
        let again = match pace {
            Pace::Later(rest) => rest,
            Pace::Now(again) => {
                let live = applier.get(&target).await.ok().flatten();
                let found = match &live {
                    Some(live) => applier.cause(&target, live).await,
                    None => None,
                };
                self.with(owner, key, |child| {
                    child.cause.asked = Some(now);
                    child.cause.found = found;
                });
                again
            }
        };
        let found = self.with(owner, key, |child| child.cause.found.clone()).flatten();
        if let (Some(found), ComponentProgress::Pending { reason, message }) =
            (found, &mut applied.progress)
        {
            *message = format!("{target}: {found}");
            *reason = found.reason;
        }
        applied.again = Some(applied.again.map_or(again, |sooner: Duration| sooner.min(again)));
        applied
    }
}
