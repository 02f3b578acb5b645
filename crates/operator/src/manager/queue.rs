//! The work queue: which resource is reconciled next.
//!
//! Keys are de-duplicated; a key that changes while a worker has it runs once more afterwards, never
//! twice at once. Kinds take turns, each with a bound of its own, so that a kind with thousands of
//! resources delays no other. Within a kind it is first come, first served, but what the first list
//! brought waits behind live changes. Delays are kept beside, earliest first.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
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

/// An item that a worker has taken; give it back with [`Queue::done`].
#[derive(Debug)]
pub struct Item {
    /// The resource.
    pub key: Key,
    /// Why it runs, for logs: every reason since it last ran, without repetition.
    pub reasons: String,
}

/// A queue shared by feeds (which add) and workers (which take).
#[derive(Debug)]
pub struct Queue {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug)]
struct State {
    kinds: Vec<Kind>,
    /// The kind whose turn it is.
    turn: KindId,
    /// Waiting keys with their reasons.
    waiting: HashMap<Key, Vec<String>>,
    running: HashSet<Key>,
    /// Keys to be added later, earliest first; a key stands here at most once.
    delayed: BTreeSet<(Instant, Key)>,
    delayed_until: HashMap<Key, (Instant, String)>,
    closed: bool,
}

#[derive(Debug)]
struct Kind {
    live: VecDeque<Key>,
    listed: VecDeque<Key>,
    running: usize,
    bound: usize,
}

impl Queue {
    /// A queue for as many kinds as there are bounds; a bound is the number of resources of that kind
    /// that may be worked on at once (at least one).
    pub fn new(bounds: &[usize]) -> Self {
        let kind = |bound: &usize| Kind {
            live: VecDeque::new(),
            listed: VecDeque::new(),
            running: 0,
            bound: (*bound).max(1),
        };
        Self {
            state: Mutex::new(State {
                kinds: bounds.iter().map(kind).collect(),
                turn: 0,
                waiting: HashMap::new(),
                running: HashSet::new(),
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
                    // Every worker must hear it: each passes the word on.
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
        if state.running.remove(key) {
            if let Some(kind) = state.kinds.get_mut(key.kind) {
                kind.running -= 1;
            }
            if state.waiting.contains_key(key) {
                state.line_up(key.clone(), Urgency::Live);
            }
        }
        drop(state);
        self.changed.notify_one();
    }

    /// Ends the queue: workers finish what they have and take nothing new.
    pub fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No code panics while holding the lock; if it did, the state is still consistent per key.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn add(&mut self, key: Key, urgency: Urgency, reason: &str) {
        if key.kind >= self.kinds.len() {
            return;
        }
        if let Some(reasons) = self.waiting.get_mut(&key) {
            if !reasons.iter().any(|known| known == reason) {
                reasons.push(reason.to_owned());
            }
            if urgency == Urgency::Live {
                self.promote(&key);
            }
            return;
        }
        self.waiting.insert(key.clone(), vec![reason.to_owned()]);
        if !self.running.contains(&key) {
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

    /// A listed key that changes is live from now on. The old place is left and skipped later.
    fn promote(&mut self, key: &Key) {
        let Some(kind) = self.kinds.get_mut(key.kind) else { return };
        if !self.running.contains(key) && !kind.live.contains(key) {
            kind.live.push_back(key.clone());
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

    fn take_of(&mut self, turn: KindId) -> Option<Item> {
        let kind = self.kinds.get_mut(turn)?;
        if kind.running >= kind.bound {
            return None;
        }
        while let Some(key) = kind.live.pop_front().or_else(|| kind.listed.pop_front()) {
            // A promoted key stands in both lines: the second time it no longer waits, or it runs.
            if self.running.contains(&key) {
                continue;
            }
            if let Some(reasons) = self.waiting.remove(&key) {
                kind.running += 1;
                self.running.insert(key.clone());
                return Some(Item { key, reasons: reasons.join(", ") });
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
        let queue = Queue::new(&[4]);
        queue.add(key(0, "a"), Urgency::Live, "spec");
        queue.add(key(0, "a"), Urgency::Live, "Deployment/a");
        queue.add(key(0, "a"), Urgency::Live, "spec");
        let item = queue.next().await.unwrap();
        assert_eq!(item.reasons, "spec, Deployment/a");
        assert!(queue.lock().waiting.is_empty());
    }

    #[tokio::test]
    async fn a_key_never_runs_twice_at_once_and_runs_again_if_it_changed_meanwhile() {
        let queue = Queue::new(&[4]);
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
        let queue = Queue::new(&[9]);
        for name in ["l1", "l2", "l3"] {
            queue.add(key(0, name), Urgency::Listed, "list");
        }
        queue.add(key(0, "live"), Urgency::Live, "change");
        queue.add(key(0, "l3"), Urgency::Live, "change");
        assert_eq!(names(&queue, 4).await, ["live", "l3", "l1", "l2"]);
    }

    #[tokio::test]
    async fn kinds_take_turns_and_keep_their_bounds() {
        let queue = Queue::new(&[2, 1]);
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
        let queue = Queue::new(&[9]);
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
        let queue = std::sync::Arc::new(Queue::new(&[1]));
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
}
