//! The state of the queue: waiting, delayed and running keys.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use tokio::time::Instant;

use super::{Bound, Item, Key, KindId, Priority, Stats};

/// The number of reasons that a key keeps: each object of a release may be one, and there may be
/// thousands.
const MOST_REASONS: usize = 8;
/// Represents the reasons that are not kept.
const MORE: &str = "more";

#[derive(Debug)]
pub(super) struct QueueState {
    kinds: Vec<Kind>,
    /// The limit of all kinds together.
    bound: usize,
    /// The kind that is next.
    turn: KindId,
    waiting: HashMap<Key, Waiting>,
    running: HashMap<Key, Running>,
    /// Delayed keys, the earliest first; each key at most once.
    delayed: BTreeSet<(Instant, Key)>,
    delayed_until: HashMap<Key, (Instant, String)>,
    pub closed: bool,
}

#[derive(Debug)]
struct Kind {
    live: VecDeque<Key>,
    /// In the order of a hash, which is random enough.
    listed: BTreeSet<(u64, Key)>,
    waiting: usize,
    running: usize,
    lent: usize,
    bound: Bound,
    adds: u64,
}

#[derive(Debug)]
struct Waiting {
    reasons: Vec<String>,
    urgency: Priority,
    since: Instant,
}

impl Waiting {
    fn because(&mut self, reason: &str) {
        if self.reasons.iter().any(|known| known == reason) {
            return;
        }
        match self.reasons.len() {
            0..MOST_REASONS => self.reasons.push(reason.to_owned()),
            MOST_REASONS => self.reasons.push(MORE.to_owned()),
            _ => {}
        }
    }
}

#[derive(Debug)]
struct Running {
    since: Instant,
    lent: bool,
}

impl QueueState {
    pub fn new(bounds: &[Bound], all: usize) -> Self {
        Self {
            kinds: bounds.iter().map(Kind::new).collect(),
            bound: all.max(bounds.len()),
            turn: 0,
            waiting: HashMap::new(),
            running: HashMap::new(),
            delayed: BTreeSet::new(),
            delayed_until: HashMap::new(),
            closed: false,
        }
    }

    pub fn add(&mut self, key: Key, urgency: Priority, reason: &str) {
        let Some(kind) = self.kinds.get_mut(key.kind) else { return };
        kind.adds += 1;
        if let Some(waiting) = self.waiting.get_mut(&key) {
            waiting.because(reason);
            if urgency == Priority::Live && waiting.urgency == Priority::Listed {
                waiting.urgency = Priority::Live;
                // The old entry stays and is skipped later.
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
            kind.line_up(key, urgency);
        }
    }

    /// Delays a key, unless it runs sooner already.
    pub fn delay(&mut self, key: Key, at: Instant, reason: &str) {
        if self.delayed_until.get(&key).is_some_and(|(earlier, _)| *earlier <= at) {
            return;
        }
        self.forget_delay(&key);
        self.delayed.insert((at, key.clone()));
        self.delayed_until.insert(key, (at, reason.to_owned()));
    }

    pub fn forget_delay(&mut self, key: &Key) {
        if let Some((at, _)) = self.delayed_until.remove(key) {
            self.delayed.remove(&(at, key.clone()));
        }
    }

    /// Adds the keys whose delay is over.
    pub fn release_due(&mut self, now: Instant) {
        while let Some((at, _)) = self.delayed.first() {
            if *at > now {
                return;
            }
            if let Some((_, key)) = self.delayed.pop_first() {
                let reason = self.delayed_until.remove(&key).map(|(_, reason)| reason);
                self.add(key, Priority::Live, reason.as_deref().unwrap_or("delay is over"));
            }
        }
    }

    pub fn next_due(&self) -> Option<Instant> {
        self.delayed.first().map(|(at, _)| *at)
    }

    /// Takes the next key, of the kind that is next.
    pub fn take(&mut self) -> Option<Item> {
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

    /// The next keys of the first list of a kind, in their order.
    pub fn upcoming(&self, kind: KindId) -> impl Iterator<Item = &Key> {
        let listed = self.kinds.get(kind).into_iter().flat_map(|kind| &kind.listed);
        let waits =
            |key: &&Key| self.waiting.contains_key(*key) && !self.running.contains_key(*key);
        listed.map(|(_, key)| key).filter(waits)
    }

    /// Whether another key of a kind may run. The last slots are reserved for kinds that have none.
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
        while let Some(key) = kind.next() {
            // A key with a raised priority has two entries: at the second one it no longer waits, or runs.
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

    pub fn done(&mut self, key: &Key) {
        let (Some(run), Some(kind)) = (self.running.remove(key), self.kinds.get_mut(key.kind))
        else {
            return;
        };
        if run.lent {
            kind.lent -= 1;
        } else {
            kind.running -= 1;
        }
        if let Some(waiting) = self.waiting.get(key) {
            kind.line_up(key.clone(), waiting.urgency);
        }
    }

    pub fn suspend_slot(&mut self, key: &Key) -> bool {
        let (Some(run), Some(kind)) = (self.running.get_mut(key), self.kinds.get_mut(key.kind))
        else {
            return false;
        };
        if run.lent || kind.lent >= kind.bound.lent {
            return false;
        }
        run.lent = true;
        kind.running -= 1;
        kind.lent += 1;
        true
    }

    pub fn resume_slot(&mut self, key: &Key) {
        if let (Some(run), Some(kind)) = (self.running.get_mut(key), self.kinds.get_mut(key.kind))
            && run.lent
        {
            run.lent = false;
            kind.running += 1;
            kind.lent -= 1;
        }
    }

    pub fn stats(&self, now: Instant) -> Vec<Stats> {
        let mut stats: Vec<Stats> = self.kinds.iter().map(Kind::stats).collect();
        for (key, run) in &self.running {
            if let Some(stats) = stats.get_mut(key.kind) {
                stats.working.push(now.saturating_duration_since(run.since));
            }
        }
        stats
    }

    pub fn untaken(&self, now: Instant) -> Duration {
        if self.closed {
            return Duration::ZERO;
        }
        let takeable = |key: &Key| !self.running.contains_key(key) && self.has_room(key.kind);
        let ready = self.waiting.iter().filter(|(key, _)| takeable(key));
        let since = ready.map(|(_, waiting)| waiting.since).min();
        since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since))
    }
}

impl Kind {
    fn new(bound: &Bound) -> Self {
        Self {
            live: VecDeque::new(),
            listed: BTreeSet::new(),
            waiting: 0,
            running: 0,
            lent: 0,
            bound: Bound { running: bound.running.max(1), ..*bound },
            adds: 0,
        }
    }

    fn line_up(&mut self, key: Key, urgency: Priority) {
        match urgency {
            Priority::Live => self.live.push_back(key),
            Priority::Listed => {
                let mut hasher = DefaultHasher::new();
                key.object.hash(&mut hasher);
                self.listed.insert((hasher.finish(), key));
            }
        }
    }

    fn next(&mut self) -> Option<Key> {
        self.live.pop_front().or_else(|| Some(self.listed.pop_first()?.1))
    }

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
