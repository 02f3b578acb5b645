//! The fence: whether this process may write now.
//!
//! A frozen process does not notice that its Lease expires; when it continues, another one leads. So the
//! right to write ends by a clock. Every renewal of the Lease extends it, and every write checks it when its
//! bytes are sent ([`crate::client`]). The clock continues while a process is stopped and while a machine
//! sleeps.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// A time of a clock that nobody can set and that never stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(Duration);

impl Moment {
    /// Now.
    pub fn now() -> Self {
        #[cfg(target_os = "linux")]
        let clock = rustix::time::ClockId::Boottime;
        #[cfg(not(target_os = "linux"))]
        let clock = rustix::time::ClockId::Monotonic;
        let time = rustix::time::clock_gettime(clock);
        let nanos = u32::try_from(time.tv_nsec).unwrap_or_default();
        Self(Duration::new(u64::try_from(time.tv_sec).unwrap_or_default(), nanos))
    }

    /// The time since then.
    pub fn elapsed(self) -> Duration {
        Self::now().0.saturating_sub(self.0)
    }
}

impl std::ops::Add<Duration> for Moment {
    type Output = Self;

    fn add(self, time: Duration) -> Self {
        Self(self.0.saturating_add(time))
    }
}

/// The fence refused a write.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("not written: this process does not hold the lease (any more)")]
pub(crate) struct Fenced;

/// The right to write, shared by the leader election and the clients.
#[derive(Clone, Debug)]
pub(crate) struct Fence(Arc<State>);

#[derive(Debug)]
struct State {
    /// The time until which writes are allowed, in nanoseconds.
    until: AtomicU64,
    /// Whether it is closed for ever.
    sealed: AtomicBool,
}

impl Fence {
    /// Without leader election: open until it is sealed.
    pub fn open() -> Self {
        Self::until(u64::MAX)
    }

    /// Closed until it is extended.
    pub fn closed() -> Self {
        Self::until(0)
    }

    fn until(nanos: u64) -> Self {
        let state = State { until: AtomicU64::new(nanos), sealed: AtomicBool::new(false) };
        Self(Arc::new(state))
    }

    /// Allows writes until this time.
    pub fn extend(&self, until: Moment) {
        let nanos = u64::try_from(until.0.as_nanos()).unwrap_or(u64::MAX);
        self.0.until.store(nanos, Ordering::Release);
    }

    /// Closes the fence for ever.
    pub fn seal(&self) {
        self.0.sealed.store(true, Ordering::Release);
    }

    /// Whether writes are allowed now.
    ///
    /// # Errors
    /// [`Fenced`] if not.
    pub fn check(&self) -> Result<(), Fenced> {
        let until = self.0.until.load(Ordering::Acquire);
        let passes = until == u64::MAX || Moment::now().0.as_nanos() < u128::from(until);
        if passes && !self.0.sealed.load(Ordering::Acquire) { Ok(()) } else { Err(Fenced) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_open_as_long_as_it_was_extended_and_never_after_it_was_sealed() {
        let fence = Fence::closed();
        assert!(fence.check().is_err());
        fence.extend(Moment::now() + Duration::from_mins(1));
        assert!(fence.check().is_ok());
        fence.extend(Moment::now());
        assert!(fence.check().is_err());
        for fence in [fence, Fence::open()] {
            fence.seal();
            fence.extend(Moment::now() + Duration::from_mins(1));
            assert!(fence.check().is_err());
        }
    }
}
