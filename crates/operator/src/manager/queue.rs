//! The work queue: decides which resource is reconciled next.
//!
//! Keys are unique. A key that is added while its reconcile runs, runs once more afterwards, and never
//! concurrently. Kinds take turns. Each kind has a limit below the limit of all kinds, so a kind with
//! thousands of resources delays no other. Within a kind the queue is first in, first out, but the
//! resources of the first list come after live changes, in random order: a list is sorted by namespace,
//! and the last one should not wait for all others. Delayed keys are kept apart, the earliest first.
//!
//! A reconcile that hangs would occupy its slot until its deadline, and a few of them the whole kind.
//! So a slot can be suspended ([`Queue::suspend_slot`]): it does not count until the reconcile
//! continues ([`Queue::resume_slot`]).

mod state;
#[cfg(test)]
mod tests;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use catamaran_cluster::watch::ObjectKey;
use state::QueueState;
use tokio::sync::Notify;
use tokio::time::Instant;

/// The index of a kind, in the order of registration.
pub type KindId = usize;

/// A resource of a kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// The kind.
    pub kind: KindId,
    /// Namespace and name.
    pub object: ObjectKey,
}

impl Key {
    /// An object by its name, in the namespace of this resource unless the name has one.
    pub fn beside(&self, namespace: Option<&str>, name: &str) -> ObjectKey {
        let namespace = namespace.or(self.object.namespace.as_deref()).map(str::to_owned);
        ObjectKey { namespace, name: name.to_owned() }
    }
}

/// The priority of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// A change.
    Live,
    /// A resource of the first list: after all live changes of its kind.
    Listed,
}

/// The limits of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Running reconciles.
    pub running: usize,
    /// Suspended reconciles, in addition.
    pub lent: usize,
}

/// An item that is being reconciled. Return it with [`Queue::done`].
#[derive(Debug)]
pub struct Item {
    /// The resource.
    pub key: Key,
    /// The reasons for the reconcile, for logs: all since the last one, each once.
    pub reasons: String,
    /// How long it was in the queue.
    pub waited: Duration,
}

/// Figures of a kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Keys in the queue.
    pub depth: usize,
    /// Keys added so far.
    pub adds: u64,
    /// Running reconciles, including suspended ones.
    pub running: usize,
    /// The limit of running reconciles.
    pub bound: usize,
    /// How long each of them has been running.
    pub working: Vec<Duration>,
}

/// A queue between reflectors, which add keys, and workers, which take them.
#[derive(Debug)]
pub struct Queue {
    lines: Mutex<QueueState>,
    changed: Notify,
}

impl Queue {
    /// A queue for as many kinds as there are limits (each at least one), with a limit for all of them
    /// together. However low that is, each kind has a slot.
    pub fn new(bounds: &[Bound], all: usize) -> Self {
        Self { lines: Mutex::new(QueueState::new(bounds, all)), changed: Notify::new() }
    }

    /// Adds a key. Drops a pending delay of the key, because it runs sooner.
    pub fn add(&self, key: Key, urgency: Priority, reason: &str) {
        self.change(|lines| {
            lines.forget_delay(&key);
            lines.add(key, urgency, reason);
        });
    }

    /// Adds a key after a delay, unless it runs sooner already.
    pub fn add_after(&self, key: Key, delay: Duration, reason: &str) {
        self.change(|lines| lines.delay(key, Instant::now() + delay, reason));
    }

    /// Takes the next item, or waits for one; `None` once the queue is closed.
    pub async fn next(&self) -> Option<Item> {
        loop {
            let wake = {
                let mut lines = self.lock();
                if lines.closed {
                    // Other waiters must be notified, too: each one notifies the next.
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

    /// The next keys of the first list of a kind, at most this many, without live changes.
    pub fn upcoming(&self, kind: KindId, most: usize) -> Vec<Key> {
        self.lock().upcoming(kind).take(most).cloned().collect()
    }

    /// Returns a key. If it was added meanwhile, it is ready now.
    pub fn done(&self, key: &Key) {
        self.change(|lines| lines.done(key));
    }

    /// Suspends the slot of a key whose reconcile makes no progress; false if too many are suspended
    /// already. The key still does not run concurrently.
    pub fn suspend_slot(&self, key: &Key) -> bool {
        self.change(|lines| lines.suspend_slot(key))
    }

    /// Resumes the slot of a key whose reconcile continues, even if the limit is exceeded for a while.
    pub fn resume_slot(&self, key: &Key) {
        self.lock().resume_slot(key);
    }

    /// Closes the queue: running reconciles finish, and no new ones start.
    pub fn close(&self) {
        self.change(|lines| lines.closed = true);
    }

    /// The figures of each kind.
    pub fn stats(&self) -> Vec<Stats> {
        self.lock().stats(Instant::now())
    }

    /// For how long there has been work that a free slot could have taken.
    pub fn untaken(&self) -> Duration {
        self.lock().untaken(Instant::now())
    }

    fn change<T>(&self, change: impl FnOnce(&mut QueueState) -> T) -> T {
        let changed = change(&mut self.lock());
        self.changed.notify_one();
        changed
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        // No code panics while it holds the lock. If it did, the state would still be consistent per key.
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
