//! Time, handed in: the system's, or one that a test holds.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;

/// What tells the time, and wakes when it has come.
pub trait Tick: Send + Sync + 'static {
    /// The time now.
    fn now(&self) -> Timestamp;

    /// Ends when `time` is over, by this clock.
    fn sleep(&self, time: Duration) -> BoxFuture<'static, ()>;
}

/// The clock of a manager: what [`super::Context::now`] reads and [`super::Action::Requeue`] waits by.
#[derive(Clone, Default)]
pub struct Clock(Option<Arc<dyn Tick>>);

impl Clock {
    /// The system's clock.
    pub fn system() -> Self {
        Self(None)
    }

    /// Another one, for tests: see `catamaran-testkit`.
    pub fn of(tick: impl Tick) -> Self {
        Self(Some(Arc::new(tick)))
    }

    /// The time now.
    pub fn now(&self) -> Timestamp {
        self.0.as_ref().map_or_else(Timestamp::now, |tick| tick.now())
    }

    /// What waits by this clock; `None` for the system's, by which the queue waits itself.
    pub(super) fn sleep(&self, time: Duration) -> Option<BoxFuture<'static, ()>> {
        self.0.as_ref().map(|tick| tick.sleep(time))
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Clock(held)" } else { "Clock(system)" })
    }
}
