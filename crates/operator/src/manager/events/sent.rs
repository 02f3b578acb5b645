//! What was written of an event, and how much an object may tell.

use std::time::Duration;

use tokio::time::Instant;

/// An event that did not happen again for this long is over: the next one is a new one. As client-go.
const OVER: Duration = Duration::from_mins(6);
/// A count is written at most this often, but the first repetition at once.
const WRITTEN: Duration = Duration::from_secs(30);
/// How many different events an object may have at once, and how long until it may have one more.
const BURST: u32 = 25;
const ONE_MORE: Duration = Duration::from_mins(1);

/// An event that may happen again.
#[derive(Debug)]
pub(super) struct Series {
    name: String,
    count: i32,
    last: Instant,
    written: Option<Instant>,
}

/// What is to be done about a repetition.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Remember it.
    Count,
    /// Write the count to the event of this name.
    Write { name: String, count: i32 },
}

impl Series {
    /// An event that was written under this name.
    pub fn new(name: String, now: Instant) -> Self {
        Self { name, count: 1, last: now, written: None }
    }

    /// It happened again.
    pub fn again(&mut self, now: Instant) -> Step {
        self.count = self.count.saturating_add(1);
        self.last = now;
        if self.written.is_some_and(|written| now.saturating_duration_since(written) < WRITTEN) {
            return Step::Count;
        }
        self.written = Some(now);
        Step::Write { name: self.name.clone(), count: self.count }
    }

    /// Whether it has not happened for so long that it would be another one.
    pub fn is_over(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.last) >= OVER
    }
}

/// How many more events an object may have.
#[derive(Debug)]
pub(super) struct Allowance {
    left: u32,
    since: Instant,
}

impl Allowance {
    /// A full one.
    pub fn new(now: Instant) -> Self {
        Self { left: BURST, since: now }
    }

    /// Takes one, if there is one.
    pub fn take(&mut self, now: Instant) -> bool {
        self.refill(now);
        let some = self.left > 0;
        self.left = self.left.saturating_sub(1);
        some
    }

    /// Whether nothing is missing.
    pub fn is_full(&mut self, now: Instant) -> bool {
        self.refill(now);
        self.left == BURST
    }

    fn refill(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.since);
        let more = u32::try_from(passed.as_secs() / ONE_MORE.as_secs()).unwrap_or(BURST);
        if more > 0 {
            self.left = self.left.saturating_add(more).min(BURST);
            self.since = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_happens_again_is_counted_and_written_now_and_then() {
        let start = Instant::now();
        let mut series = Series::new("e".to_owned(), start);
        let at = |seconds| start + Duration::from_secs(seconds);
        let write = |count| Step::Write { name: "e".to_owned(), count };
        assert_eq!(series.again(at(1)), write(2));
        assert_eq!(series.again(at(2)), Step::Count);
        assert_eq!(series.again(at(40)), write(4));
        assert!(!series.is_over(at(100)));
        assert!(series.is_over(at(400)));
    }

    #[tokio::test(start_paused = true)]
    async fn an_object_has_its_say_and_no_more() {
        let start = Instant::now();
        let mut allowance = Allowance::new(start);
        assert_eq!((0..100).filter(|_| allowance.take(start)).count(), 25);
        let later = start + Duration::from_secs(125);
        assert_eq!((0..100).filter(|_| allowance.take(later)).count(), 2);
        assert!(allowance.is_full(start + Duration::from_hours(1)));
    }
}
