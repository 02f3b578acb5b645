//! Detects reconciles that hang: when one was last polled, and how long those of its kind usually wait.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::sync::Notify;
use tokio::time::Instant;

/// A reconcile that waits for this long always counts as hanging.
const MOST: Duration = Duration::from_secs(5);
/// What holds before any reconcile has gone well; half of it after each that hung, and so on.
const UNKNOWN: Duration = Duration::from_secs(2);
/// How many times longer than is usual for its kind a reconcile may rest. Where each takes another
/// time up to some limit, this is about the limit.
const TIMES: u32 = 2;
/// How many reconciles make up what is usual.
const LATELY: u32 = 8;

/// When a future was last polled.
#[derive(Debug)]
pub(super) struct ProgressProbe {
    begun: Instant,
    /// Milliseconds after `begun`.
    last: AtomicU64,
    /// The longest time between two polls, in milliseconds.
    longest: AtomicU64,
    polling: AtomicBool,
    moves: Notify,
}

impl ProgressProbe {
    pub fn new() -> Arc<Self> {
        let (last, longest) = (AtomicU64::new(0), AtomicU64::new(0));
        let (polling, moves) = (AtomicBool::new(false), Notify::new());
        Arc::new(Self { begun: Instant::now(), last, longest, polling, moves })
    }

    /// Wraps a future, so that its progress can be observed.
    pub fn of<T>(self: &Arc<Self>, future: BoxFuture<'static, T>) -> Watched<T> {
        Watched { future, pulse: self.clone() }
    }

    /// For how long nothing has woken the future; zero while it computes.
    pub fn idle(&self) -> Duration {
        if self.polling.load(Ordering::Acquire) {
            return Duration::ZERO;
        }
        let last = Duration::from_millis(self.last.load(Ordering::Acquire));
        self.begun.elapsed().saturating_sub(last)
    }

    /// The longest wait between two polls.
    pub fn longest_idle(&self) -> Duration {
        Duration::from_millis(self.longest.load(Ordering::Acquire))
    }

    /// Returns when something wakes the future, or has woken it lately.
    pub async fn moves(&self) {
        self.moves.notified().await;
    }

    fn now(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// See [`ProgressProbe::of`].
pub(super) struct Watched<T> {
    future: BoxFuture<'static, T>,
    pulse: Arc<ProgressProbe>,
}

impl<T> Future for Watched<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, ctx: &mut Context<'_>) -> Poll<T> {
        let pulse = self.pulse.clone();
        pulse.polling.store(true, Ordering::Release);
        let rested = pulse.now().saturating_sub(pulse.last.load(Ordering::Acquire));
        pulse.longest.fetch_max(rested, Ordering::AcqRel);
        pulse.moves.notify_one();
        let polled = self.future.as_mut().poll(ctx);
        pulse.last.store(pulse.now(), Ordering::Release);
        pulse.polling.store(false, Ordering::Release);
        polled
    }
}

/// How long the reconciles of a kind wait between two polls: a moving average of the maximum.
#[derive(Debug)]
pub(super) struct StallDetector {
    least: Duration,
    known: Mutex<Known>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Known {
    usual: Option<Duration>,
    /// How many reconciles hung.
    hung: u32,
}

impl StallDetector {
    /// Without figures: no reconcile counts as hanging before it has waited for `least`.
    pub fn new(least: Duration) -> Self {
        Self { least, known: Mutex::default() }
    }

    /// Records a successful reconcile and its longest wait.
    pub fn record_idle(&self, rest: Duration) {
        let mut known = self.lock();
        let blend = |usual: Duration| (usual * (LATELY - 1) + rest) / LATELY;
        known.usual = Some(known.usual.map_or(rest, blend));
    }

    /// Records a reconcile that hung.
    pub fn record_stall(&self) {
        let mut known = self.lock();
        known.hung = known.hung.saturating_add(1);
    }

    /// How long a reconcile may wait before it counts as hanging.
    pub fn stall_threshold(&self) -> Duration {
        let known = *self.lock();
        let patience = match known.usual {
            Some(usual) => usual.saturating_mul(TIMES),
            None => UNKNOWN / (1 << known.hung.min(6)),
        };
        patience.clamp(self.least, MOST)
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[tokio::test(start_paused = true)]
    async fn who_is_never_woken_rests_ever_longer() {
        let pulse = ProgressProbe::new();
        let hangs = tokio::spawn(pulse.of(std::future::pending::<()>().boxed()));
        tokio::time::sleep(Duration::from_secs(3)).await;
        assert_eq!(pulse.idle(), Duration::from_secs(3));
        hangs.abort();
        let pulse = ProgressProbe::new();
        let steps = async {
            for _ in 0..30 {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        let _works = tokio::spawn(pulse.of(steps.boxed()));
        tokio::time::sleep(Duration::from_millis(2950)).await;
        assert!(pulse.idle() <= Duration::from_millis(100), "{:?}", pulse.idle());
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_woken_is_heard_and_its_longest_rest_is_known() {
        let pulse = ProgressProbe::new();
        let steps = async {
            for rest in [10, 700, 30] {
                tokio::time::sleep(Duration::from_millis(rest)).await;
            }
        };
        let works = tokio::spawn(pulse.of(steps.boxed()));
        tokio::time::sleep(Duration::from_millis(300)).await;
        pulse.moves().await;
        assert_eq!(pulse.idle(), Duration::from_millis(290), "the first step was heard of later");
        pulse.moves().await;
        assert_eq!(pulse.idle(), Duration::ZERO);
        works.await.unwrap();
        let rest = pulse.longest_idle().as_millis();
        assert!((700..=702).contains(&rest), "{rest}");
    }

    #[test]
    fn patience_follows_what_is_usual_for_the_kind() {
        let least = Duration::from_millis(20);
        let pace = StallDetector::new(least);
        assert_eq!(pace.stall_threshold(), Duration::from_secs(2));
        pace.record_stall();
        assert_eq!(pace.stall_threshold(), Duration::from_secs(1));
        pace.record_idle(Duration::from_millis(2));
        assert_eq!(pace.stall_threshold(), least);
        pace.record_idle(Duration::from_millis(802));
        assert_eq!(pace.stall_threshold(), Duration::from_millis(204));
        pace.record_idle(Duration::from_millis(2));
        assert_eq!(pace.stall_threshold(), Duration::from_millis(179));
        pace.record_idle(Duration::from_mins(1));
        assert_eq!(pace.stall_threshold(), MOST);
    }
}
