//! A clock that stands still until the test moves it.

use std::time::Duration;

use catamaran_operator::native::{Clock, Tick};
use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::Timestamp;
use tokio::sync::watch;

/// A clock in the hand of a test: what waits by it waits until [`HeldClock::advance`].
#[derive(Clone, Debug)]
pub struct HeldClock(watch::Sender<Hands>);

#[derive(Clone, Copy, Debug)]
struct Hands {
    /// What it shows.
    shown: Timestamp,
    /// How long it has run, whatever it was set to.
    run: Duration,
}

impl Default for HeldClock {
    /// Stands at noon of the first day of 2030.
    fn default() -> Self {
        Self::at(Timestamp::from_second(1_893_499_200).unwrap())
    }
}

impl HeldClock {
    /// Stands at this time.
    pub fn at(now: Timestamp) -> Self {
        Self(watch::Sender::new(Hands { shown: now, run: Duration::ZERO }))
    }

    /// The same clock for a manager.
    pub fn clock(&self) -> Clock {
        Clock::of(self.clone())
    }

    /// Moves on, and wakes who waited for that.
    pub fn advance(&self, by: Duration) {
        self.0.send_modify(|hands| {
            hands.shown += by;
            hands.run += by;
        });
    }

    /// Is set to another time, as an administrator or a time server does, back perhaps: who waits does
    /// not notice.
    pub fn set(&self, now: Timestamp) {
        self.0.send_modify(|hands| hands.shown = now);
    }
}

impl Tick for HeldClock {
    fn now(&self) -> Timestamp {
        self.0.borrow().shown
    }

    fn sleep(&self, time: Duration) -> BoxFuture<'static, ()> {
        let (until, mut told) = (self.0.borrow().run + time, self.0.subscribe());
        async move {
            // The sender is gone with the test: then nothing moves any more.
            if told.wait_for(|hands| hands.run >= until).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
        .boxed()
    }
}
