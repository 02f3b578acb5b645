//! Whether a reconcile gets on: when it was last polled, and how long its kind takes usually.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::time::Instant;

/// No reconcile is said to hang sooner: any answer may take this long once.
const LEAST: Duration = Duration::from_millis(250);
/// Nothing that is not polled for this long is just slow.
const MOST: Duration = Duration::from_secs(5);
/// What holds before any reconcile has gone well; half of it after each that hung, and so on.
const UNKNOWN: Duration = Duration::from_secs(2);
/// How many times longer than its kind takes a reconcile may rest.
const TIMES: u32 = 4;

/// When a future was last polled.
#[derive(Debug)]
pub(super) struct Pulse {
    begun: Instant,
    /// Milliseconds after `begun`.
    last: AtomicU64,
    polling: AtomicBool,
}

impl Pulse {
    pub fn new() -> Arc<Self> {
        let (last, polling) = (AtomicU64::new(0), AtomicBool::new(false));
        Arc::new(Self { begun: Instant::now(), last, polling })
    }

    /// The future, with its pulse taken.
    pub fn of<T>(self: &Arc<Self>, future: BoxFuture<'static, T>) -> Watched<T> {
        Watched { future, pulse: self.clone() }
    }

    /// For how long nothing has woken it; zero while it computes.
    pub fn rests(&self) -> Duration {
        if self.polling.load(Ordering::Acquire) {
            return Duration::ZERO;
        }
        let last = Duration::from_millis(self.last.load(Ordering::Acquire));
        self.begun.elapsed().saturating_sub(last)
    }
}

/// See [`Pulse::of`].
pub(super) struct Watched<T> {
    future: BoxFuture<'static, T>,
    pulse: Arc<Pulse>,
}

impl<T> Future for Watched<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        self.pulse.polling.store(true, Ordering::Release);
        let polled = self.future.as_mut().poll(cx);
        let now = u64::try_from(self.pulse.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.pulse.last.store(now, Ordering::Release);
        self.pulse.polling.store(false, Ordering::Release);
        polled
    }
}

/// How long the reconciles of a kind take: the longest of late, slowly forgotten.
#[derive(Debug, Default)]
pub(super) struct Pace(Mutex<Known>);

#[derive(Clone, Copy, Debug, Default)]
struct Known {
    longest: Option<Duration>,
    /// How many hung.
    hung: u32,
}

impl Pace {
    /// A reconcile that went well took this long.
    pub fn took(&self, time: Duration) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.longest = Some(known.longest.map_or(time, |longest| (longest / 20 * 19).max(time)));
    }

    /// A reconcile was taken to hang.
    pub fn hung(&self) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.hung = known.hung.saturating_add(1);
    }

    /// How long a reconcile may rest before it is taken to hang.
    pub fn patience(&self) -> Duration {
        let known = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let patience = match known.longest {
            Some(longest) => longest.saturating_mul(TIMES),
            None => UNKNOWN / (1 << known.hung.min(3)),
        };
        patience.clamp(LEAST, MOST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[tokio::test(start_paused = true)]
    async fn who_is_never_woken_rests_ever_longer() {
        let pulse = Pulse::new();
        let hangs = tokio::spawn(pulse.of(std::future::pending::<()>().boxed()));
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert_eq!(pulse.rests(), Duration::from_secs(3));
        hangs.abort();
        let pulse = Pulse::new();
        let steps = async {
            for _ in 0..30 {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        let _works = tokio::spawn(pulse.of(steps.boxed()));
        tokio::time::sleep(Duration::from_millis(2950)).await;
        assert!(pulse.rests() <= Duration::from_millis(100), "{:?}", pulse.rests());
    }

    #[test]
    fn patience_follows_what_the_kind_takes() {
        let pace = Pace::default();
        assert_eq!(pace.patience(), Duration::from_secs(2));
        pace.hung();
        assert_eq!(pace.patience(), Duration::from_secs(1));
        pace.took(Duration::from_millis(10));
        assert_eq!(pace.patience(), LEAST);
        pace.took(Duration::from_millis(500));
        pace.took(Duration::from_millis(1));
        assert_eq!(pace.patience(), Duration::from_millis(1900));
        pace.took(Duration::from_mins(1));
        assert_eq!(pace.patience(), MOST);
    }
}
