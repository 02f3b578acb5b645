//! The work queue: which resource is reconciled next.
//!
//! Keys are de-duplicated; a key that changes while it is worked on runs once more afterwards, never
//! twice at once. Kinds take turns, each with a bound of its own below one for all, so that a kind with
//! thousands of resources delays no other. Within a kind it is first come, first served, but what the
//! first list brought waits behind live changes, in mixed order: a list is sorted by namespace, and the
//! last of them shall not wait for all others. Delays are kept beside, earliest first.
//!
//! A reconcile that hangs would hold its place until its deadline, and a few of them their whole kind.
//! So its place can be lent out ([`Queue::suspend_slot`]): it counts no more among those that work, until it
//! gets on ([`Queue::resume_slot`]).

mod state;
#[cfg(test)]
mod tests;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use catamaran_cluster::watch::ObjectKey;
use state::QueueState;
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

impl Key {
    /// An object by its name, in this resource's namespace unless one is named.
    pub fn beside(&self, namespace: Option<&str>, name: &str) -> ObjectKey {
        let namespace = namespace.or(self.object.namespace.as_deref()).map(str::to_owned);
        ObjectKey { namespace, name: name.to_owned() }
    }
}

/// How soon an item runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
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

/// A queue shared by reflectors (which add) and the dispatcher (which takes).
#[derive(Debug)]
pub struct Queue {
    lines: Mutex<QueueState>,
    changed: Notify,
}

impl Queue {
    /// A queue for as many kinds as there are bounds (each at least one), and with a bound for all of
    /// them together: however low, each kind has a place of its own.
    pub fn new(bounds: &[Bound], all: usize) -> Self {
        Self { lines: Mutex::new(QueueState::new(bounds, all)), changed: Notify::new() }
    }

    /// Adds a key now. A pending delay of the same key is dropped: it runs sooner.
    pub fn add(&self, key: Key, urgency: Priority, reason: &str) {
        self.change(|lines| {
            lines.forget_delay(&key);
            lines.add(key, urgency, reason);
        });
    }

    /// Adds a key after a delay, unless it is to run sooner already.
    pub fn add_after(&self, key: Key, delay: Duration, reason: &str) {
        self.change(|lines| lines.delay(key, Instant::now() + delay, reason));
    }

    /// Takes the next item, waiting for one; `None` once the queue is closed.
    pub async fn next(&self) -> Option<Item> {
        loop {
            let wake = {
                let mut lines = self.lock();
                if lines.closed {
                    // Whoever else waits must hear it: each passes the word on.
                    self.changed.notify_one();
                    return None;
                }
                lines.release_due(Instant::now());
                if let Some(item) = lines.take() {
                    // One notification may stand for several items.
                    self.changed.notify_one();
                    return Some(item);
                }
                lines.next_due()
            };
            match wake {
                Some(at) => {
                    let _ = tokio::time::timeout_at(at, self.changed.notified()).await;
                }
                None => self.changed.notified().await,
            }
        }
    }

    /// What comes next of a kind out of its first list, at most so many; nothing live among it.
    pub fn upcoming(&self, kind: KindId, most: usize) -> Vec<Key> {
        self.lock().upcoming(kind).take(most).cloned().collect()
    }

    /// Gives a key back; if it was added meanwhile it becomes ready now.
    pub fn done(&self, key: &Key) {
        self.change(|lines| lines.done(key));
    }

    /// Lends out the place of a key that is worked on and does not get on; false if too many hang
    /// already. It still does not run twice at once.
    pub fn suspend_slot(&self, key: &Key) -> bool {
        self.change(|lines| lines.suspend_slot(key))
    }

    /// A key whose place was lent out gets on: it counts again, even if that makes one too many for a
    /// while.
    pub fn resume_slot(&self, key: &Key) {
        self.lock().resume_slot(key);
    }

    /// Ends the queue: what is worked on is finished, and nothing new is taken.
    pub fn close(&self) {
        self.change(|lines| lines.closed = true);
    }

    /// How each kind is doing.
    pub fn stats(&self) -> Vec<Stats> {
        self.lock().stats(Instant::now())
    }

    /// For how long the queue has had work that could be taken and was not.
    pub fn untaken(&self) -> Duration {
        self.lock().untaken(Instant::now())
    }

    fn change<T>(&self, change: impl FnOnce(&mut QueueState) -> T) -> T {
        let changed = change(&mut self.lock());
        self.changed.notify_one();
        changed
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        // No code panics while holding the lock; if it did, the lines are still consistent per key.
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
