//! A clock that stands still until the test moves it.

use std::time::Duration;

use catamaran_operator::native::{Clock, Tick};
use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::Timestamp;
use tokio::sync::watch;

/// A clock in the hand of a test: what waits by it waits until [`HeldClock::advance`].
#[derive(Clone, Debug)]
pub struct HeldClock(watch::Sender<Timestamp>);

impl Default for HeldClock {
    /// Stands at noon of the first day of 2030.
    fn default() -> Self {
        Self::at(Timestamp::from_second(1_893_499_200).unwrap())
    }
}

impl HeldClock {
    /// Stands at this time.
    pub fn at(now: Timestamp) -> Self {
        Self(watch::Sender::new(now))
    }

    /// The same clock for a manager.
    pub fn clock(&self) -> Clock {
        Clock::of(self.clone())
    }

    /// Moves on, and wakes who waited for that.
    pub fn advance(&self, by: Duration) {
        self.0.send_modify(|now| *now += by);
    }
}

impl Tick for HeldClock {
    fn now(&self) -> Timestamp {
        *self.0.borrow()
    }

    fn sleep(&self, time: Duration) -> BoxFuture<'static, ()> {
        let (until, mut told) = (self.now() + time, self.0.subscribe());
        async move {
            // The sender is gone with the test: then nothing moves any more.
            if told.wait_for(|now| *now >= until).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
        .boxed()
    }
}
