//! The work queue: which resource is reconciled next.
//!
//! Keys are de-duplicated; a key that changes while it is worked on runs once more afterwards, never
//! twice at once. Kinds take turns, each with a bound of its own below one for all, so that a kind with
//! thousands of resources delays no other. Within a kind it is first come, first served, but what the
//! first list brought waits behind live changes. Delays are kept beside, earliest first.
//!
//! A reconcile that hangs would hold its place until its deadline, and a few of them their whole kind.
//! So its place can be lent out ([`Queue::lend`]): it counts no more among those that work.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use catamaran_cluster::watch::ObjectKey;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Which of the manager's kinds, in the order of registration.
pub type KindId = usize;

/// One resource of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// The kind.
    pub kind: KindId,
    /// Namespace and name.
    pub object: ObjectKey,
}

/// How soon an item runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// Something changed.
    Live,
    /// Read in a list: after all live changes of its kind.
    Listed,
}

/// How many resources of a kind may be worked on at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// That work.
    pub running: usize,
    /// That hang, besides.
    pub lent: usize,
}

/// An item that is worked on; give it back with [`Queue::done`].
#[derive(Debug)]
pub struct Item {
    /// The resource.
    pub key: Key,
    /// Why it runs, for logs: every reason since it last ran, without repetition.
    pub reasons: String,
    /// How long it waited.
    pub waited: Duration,
}

/// How a kind's part of the queue is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Keys that wait.
    pub depth: usize,
    /// Keys that were ever added.
    pub adds: u64,
    /// Keys that are worked on, those that hang included.
    pub running: usize,
    /// How many may work at once.
    pub bound: usize,
    /// How long each of them has been worked on.
    pub working: Vec<Duration>,
}

/// A queue shared by feeds (which add) and the dispatcher (which takes).
#[derive(Debug)]
pub struct Queue {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug)]
struct State {
    kinds: Vec<Kind>,
    /// How many may work at once of all kinds.
    bound: usize,
    /// The kind whose turn it is.
    turn: KindId,
    waiting: HashMap<Key, Waiting>,
    running: HashMap<Key, Running>,
    /// Keys to be added later, earliest first; a key stands here at most once.
    delayed: BTreeSet<(Instant, Key)>,
    delayed_until: HashMap<Key, (Instant, String)>,
    closed: bool,
}

#[derive(Debug)]
struct Kind {
    live: VecDeque<Key>,
    listed: VecDeque<Key>,
    waiting: usize,
    running: usize,
    lent: usize,
    bound: Bound,
    adds: u64,
}

#[derive(Debug)]
struct Waiting {
    reasons: Vec<String>,
    urgency: Urgency,
    since: Instant,
}

#[derive(Debug)]
struct Running {
    since: Instant,
    lent: bool,
}

impl Queue {
    /// A queue for as many kinds as there are bounds (each at least one), and with a bound for all of
    /// them together: however low, each kind has a place of its own.
    pub fn new(bounds: &[Bound], all: usize) -> Self {
        let kind = |bound: &Bound| Kind {
            live: VecDeque::new(),
            listed: VecDeque::new(),
            waiting: 0,
            running: 0,
            lent: 0,
            bound: Bound { running: bound.running.max(1), ..*bound },
            adds: 0,
        };
        Self {
            state: Mutex::new(State {
                kinds: bounds.iter().map(kind).collect(),
                bound: all.max(bounds.len()),
                turn: 0,
                waiting: HashMap::new(),
                running: HashMap::new(),
                delayed: BTreeSet::new(),
                delayed_until: HashMap::new(),
                closed: false,
            }),
            changed: Notify::new(),
        }
    }

    /// Adds a key now. A pending delay of the same key is dropped: it runs sooner.
    pub fn add(&self, key: Key, urgency: Urgency, reason: &str) {
        let mut state = self.lock();
        state.forget_delay(&key);
        state.add(key, urgency, reason);
        drop(state);
        self.changed.notify_one();
    }

    /// Adds a key after a delay, unless it is to run sooner already.
    pub fn add_after(&self, key: Key, delay: Duration, reason: &str) {
        let mut state = self.lock();
        let at = Instant::now() + delay;
        if state.delayed_until.get(&key).is_some_and(|(earlier, _)| *earlier <= at) {
            return;
        }
        state.forget_delay(&key);
        state.delayed.insert((at, key.clone()));
        state.delayed_until.insert(key, (at, reason.to_owned()));
        drop(state);
        self.changed.notify_one();
    }

    /// Takes the next item, waiting for one; `None` once the queue is closed.
    pub async fn next(&self) -> Option<Item> {
        loop {
            let wake = {
                let mut state = self.lock();
                if state.closed {
                    // Whoever else waits must hear it: each passes the word on.
                    self.changed.notify_one();
                    return None;
                }
                state.release_due(Instant::now());
                if let Some(item) = state.take() {
                    // One notification may stand for several items.
                    self.changed.notify_one();
                    return Some(item);
                }
                state.delayed.first().map(|(at, _)| *at)
            };
            match wake {
                Some(at) => {
                    let _ = tokio::time::timeout_at(at, self.changed.notified()).await;
                }
                None => self.changed.notified().await,
            }
        }
    }

    /// Gives a key back; if it was added meanwhile it becomes ready now.
    pub fn done(&self, key: &Key) {
        let mut state = self.lock();
        if let Some(run) = state.running.remove(key) {
            if let Some(kind) = state.kinds.get_mut(key.kind) {
                if run.lent { kind.lent -= 1 } else { kind.running -= 1 }
            }
            if let Some(waiting) = state.waiting.get(key) {
                let urgency = waiting.urgency;
                state.line_up(key.clone(), urgency);
            }
        }
        drop(state);
        self.changed.notify_one();
    }

    /// Lends out the place of a key that is worked on and does not get on; false if too many hang
    /// already. It still does not run twice at once.
    pub fn lend(&self, key: &Key) -> bool {
        let mut state = self.lock();
        let state = &mut *state;
        let (Some(run), Some(kind)) = (state.running.get_mut(key), state.kinds.get_mut(key.kind))
        else {
            return false;
        };
        if run.lent || kind.lent >= kind.bound.lent {
            return false;
        }
        run.lent = true;
        kind.running -= 1;
        kind.lent += 1;
        self.changed.notify_one();
        true
    }

    /// Ends the queue: what is worked on is finished, and nothing new is taken.
    pub fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_one();
    }

    /// How each kind is doing.
    pub fn stats(&self) -> Vec<Stats> {
        let state = self.lock();
        let now = Instant::now();
        let mut stats: Vec<Stats> = state.kinds.iter().map(Kind::stats).collect();
        for (key, run) in &state.running {
            if let Some(stats) = stats.get_mut(key.kind) {
                stats.working.push(now.saturating_duration_since(run.since));
            }
        }
        stats
    }

    /// For how long the queue has had work that could be taken and was not.
    pub fn untaken(&self) -> Duration {
        let state = self.lock();
        if state.closed {
            return Duration::ZERO;
        }
        let takeable = |key: &Key| !state.running.contains_key(key) && state.has_room(key.kind);
        let ready = state.waiting.iter().filter(|(key, _)| takeable(key));
        let since = ready.map(|(_, waiting)| waiting.since).min();
        since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No code panics while holding the lock; if it did, the state is still consistent per key.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kind {
    fn stats(&self) -> Stats {
        Stats {
            depth: self.waiting,
            adds: self.adds,
            running: self.running + self.lent,
            bound: self.bound.running,
            working: Vec::new(),
        }
    }
}

impl State {
    fn add(&mut self, key: Key, urgency: Urgency, reason: &str) {
        let Some(kind) = self.kinds.get_mut(key.kind) else { return };
        kind.adds += 1;
        if let Some(waiting) = self.waiting.get_mut(&key) {
            if !waiting.reasons.iter().any(|known| known == reason) {
                waiting.reasons.push(reason.to_owned());
            }
            if urgency == Urgency::Live && waiting.urgency == Urgency::Listed {
                waiting.urgency = Urgency::Live;
                // The old place is left and skipped later.
                if !self.running.contains_key(&key) {
                    kind.live.push_back(key);
                }
            }
            return;
        }
        kind.waiting += 1;
        let waiting = Waiting { reasons: vec![reason.to_owned()], urgency, since: Instant::now() };
        self.waiting.insert(key.clone(), waiting);
        if !self.running.contains_key(&key) {
            self.line_up(key, urgency);
        }
    }

    fn line_up(&mut self, key: Key, urgency: Urgency) {
        if let Some(kind) = self.kinds.get_mut(key.kind) {
            match urgency {
                Urgency::Live => kind.live.push_back(key),
                Urgency::Listed => kind.listed.push_back(key),
            }
        }
    }

    fn take(&mut self) -> Option<Item> {
        let count = self.kinds.len();
        for step in 0..count {
            let turn = (self.turn + step) % count;
            if let Some(item) = self.take_of(turn) {
                self.turn = (turn + 1) % count;
                return Some(item);
            }
        }
        None
    }

    /// Whether one more of a kind may be worked on. The last places are kept for kinds that have none.
    fn has_room(&self, kind: KindId) -> bool {
        let Some(Kind { running, bound, .. }) = self.kinds.get(kind) else { return false };
        let taken: usize = self.kinds.iter().map(|kind| kind.running).sum();
        let kept = self.kinds.iter().filter(|kind| kind.running == 0).count();
        *running == 0 || (*running < bound.running && taken + kept < self.bound)
    }

    fn take_of(&mut self, turn: KindId) -> Option<Item> {
        if !self.has_room(turn) {
            return None;
        }
        let kind = self.kinds.get_mut(turn)?;
        while let Some(key) = kind.live.pop_front().or_else(|| kind.listed.pop_front()) {
            // A promoted key stands in both lines: the second time it no longer waits, or it runs.
            if self.running.contains_key(&key) {
                continue;
            }
            if let Some(waiting) = self.waiting.remove(&key) {
                kind.waiting -= 1;
                kind.running += 1;
                let now = Instant::now();
                self.running.insert(key.clone(), Running { since: now, lent: false });
                let waited = now.saturating_duration_since(waiting.since);
                return Some(Item { key, reasons: waiting.reasons.join(", "), waited });
            }
        }
        None
    }

    fn release_due(&mut self, now: Instant) {
        while let Some((at, _)) = self.delayed.first() {
            if *at > now {
                return;
            }
            if let Some((_, key)) = self.delayed.pop_first() {
                let reason = self.delayed_until.remove(&key).map(|(_, reason)| reason);
                self.add(key, Urgency::Live, reason.as_deref().unwrap_or("delay is over"));
            }
        }
    }

    fn forget_delay(&mut self, key: &Key) {
        if let Some((at, _)) = self.delayed_until.remove(key) {
            self.delayed.remove(&(at, key.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(bounds: &[usize]) -> Queue {
        let bound = |running: &usize| Bound { running: *running, lent: 2 };
        Queue::new(&bounds.iter().map(bound).collect::<Vec<_>>(), 100)
    }

    fn key(kind: KindId, name: &str) -> Key {
        Key { kind, object: ObjectKey { namespace: Some("ns".into()), name: name.into() } }
    }

    async fn names(queue: &Queue, count: usize) -> Vec<String> {
        let mut names = Vec::new();
        for _ in 0..count {
            names.push(queue.next().await.unwrap().key.object.name);
        }
        names
    }

    #[tokio::test]
    async fn a_key_that_is_added_twice_runs_once_and_tells_both_reasons() {
        let queue = queue(&[4]);
        queue.add(key(0, "a"), Urgency::Live, "spec");
        queue.add(key(0, "a"), Urgency::Live, "Deployment/a");
        queue.add(key(0, "a"), Urgency::Live, "spec");
        let item = queue.next().await.unwrap();
        assert_eq!(item.reasons, "spec, Deployment/a");
        assert!(queue.lock().waiting.is_empty());
    }

    #[tokio::test]
    async fn a_key_never_runs_twice_at_once_and_runs_again_if_it_changed_meanwhile() {
        let queue = queue(&[4]);
        queue.add(key(0, "a"), Urgency::Live, "one");
        let first = queue.next().await.unwrap();
        queue.add(key(0, "a"), Urgency::Live, "two");
        queue.add(key(0, "b"), Urgency::Live, "other");
        assert_eq!(queue.next().await.unwrap().key.object.name, "b");
        queue.done(&first.key);
        assert_eq!(queue.next().await.unwrap().reasons, "two");
    }

    #[tokio::test]
    async fn live_changes_overtake_what_the_list_brought() {
        let queue = queue(&[9]);
        for name in ["l1", "l2", "l3"] {
            queue.add(key(0, name), Urgency::Listed, "list");
        }
        queue.add(key(0, "live"), Urgency::Live, "change");
        queue.add(key(0, "l3"), Urgency::Live, "change");
        assert_eq!(names(&queue, 4).await, ["live", "l3", "l1", "l2"]);
    }

    #[tokio::test]
    async fn kinds_take_turns_and_keep_their_bounds() {
        let queue = queue(&[2, 1]);
        for name in ["a1", "a2", "a3"] {
            queue.add(key(0, name), Urgency::Live, "");
        }
        queue.add(key(1, "b1"), Urgency::Live, "");
        queue.add(key(1, "b2"), Urgency::Live, "");
        assert_eq!(names(&queue, 3).await, ["a1", "b1", "a2"]);
        let none = tokio::time::timeout(Duration::from_millis(20), queue.next()).await;
        assert!(none.is_err(), "both kinds are at their bound");
        queue.done(&key(1, "b1"));
        assert_eq!(names(&queue, 1).await, ["b2"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_delayed_key_comes_in_time_and_sooner_if_something_changes() {
        let queue = queue(&[9]);
        queue.add_after(key(0, "late"), Duration::from_mins(1), "period");
        queue.add_after(key(0, "soon"), Duration::from_secs(5), "period");
        queue.add_after(key(0, "soon"), Duration::from_secs(50), "period");
        let start = Instant::now();
        assert_eq!(names(&queue, 1).await, ["soon"]);
        assert_eq!(start.elapsed(), Duration::from_secs(5));
        queue.add(key(0, "late"), Urgency::Live, "change");
        assert_eq!(names(&queue, 1).await, ["late"]);
        let none = tokio::time::timeout(Duration::from_mins(2), queue.next()).await;
        assert!(none.is_err(), "the delay was dropped");
    }

    #[tokio::test]
    async fn closing_wakes_every_worker() {
        let queue = std::sync::Arc::new(queue(&[1]));
        let workers: Vec<_> = (0..3)
            .map(|_| {
                let queue = queue.clone();
                tokio::spawn(async move { queue.next().await.is_none() })
            })
            .collect();
        tokio::task::yield_now().await;
        queue.close();
        for worker in workers {
            assert!(worker.await.unwrap());
        }
    }

    async fn nothing_more(queue: &Queue, why: &str) {
        let none = tokio::time::timeout(Duration::from_millis(20), queue.next()).await;
        assert!(none.is_err(), "{why}: {none:?}");
    }

    #[tokio::test]
    async fn the_bound_for_all_leaves_a_place_for_every_kind() {
        let bound = Bound { running: 9, lent: 0 };
        let queue = Queue::new(&[bound, bound, bound], 4);
        for name in ["a1", "a2", "a3", "a4"] {
            queue.add(key(0, name), Urgency::Live, "");
        }
        assert_eq!(names(&queue, 2).await, ["a1", "a2"]);
        nothing_more(&queue, "two of four places are the others'").await;
        queue.add(key(1, "b1"), Urgency::Live, "");
        queue.add(key(2, "c1"), Urgency::Live, "");
        queue.add(key(2, "c2"), Urgency::Live, "");
        assert_eq!(names(&queue, 2).await, ["b1", "c1"]);
        nothing_more(&queue, "all places are taken").await;
        queue.done(&key(0, "a1"));
        assert_eq!(names(&queue, 1).await, ["a3"]);
    }

    #[tokio::test]
    async fn who_hangs_lends_its_place_and_still_runs_once_at_a_time() {
        let queue = queue(&[1]);
        for name in ["hangs", "b", "c", "d", "e"] {
            queue.add(key(0, name), Urgency::Live, "");
        }
        assert_eq!(names(&queue, 1).await, ["hangs"]);
        assert!(queue.lend(&key(0, "hangs")));
        assert!(!queue.lend(&key(0, "hangs")), "only once");
        queue.add(key(0, "hangs"), Urgency::Live, "");
        assert_eq!(names(&queue, 1).await, ["b"]);
        assert!(queue.lend(&key(0, "b")));
        assert_eq!(names(&queue, 1).await, ["c"]);
        assert!(!queue.lend(&key(0, "c")), "two hang already");
        assert_eq!(queue.stats()[0].running, 3);
        queue.done(&key(0, "c"));
        assert_eq!(names(&queue, 1).await, ["d"]);
        queue.done(&key(0, "hangs"));
        queue.done(&key(0, "d"));
        assert_eq!(names(&queue, 1).await, ["e"]);
        queue.done(&key(0, "e"));
        assert_eq!(names(&queue, 1).await, ["hangs"]);
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_nobody_takes_is_noticed_and_work_that_has_no_room_is_not() {
        let queue = queue(&[1]);
        queue.add(key(0, "a"), Urgency::Live, "");
        tokio::time::advance(Duration::from_secs(40)).await;
        assert_eq!(queue.untaken(), Duration::from_secs(40));
        assert_eq!(queue.next().await.unwrap().waited, Duration::from_secs(40));
        queue.add(key(0, "b"), Urgency::Live, "");
        tokio::time::advance(Duration::from_secs(40)).await;
        assert_eq!(queue.untaken(), Duration::ZERO);
        assert_eq!(queue.stats()[0].working, [Duration::from_secs(40)]);
    }
}
