//! Events: what happened to a resource, for whoever asks `kubectl describe`.
//!
//! They are written by a task of their own, so that no reconcile waits for one or fails over one. What
//! happens again soon becomes a count on the event that is there; an object that has too much to tell is
//! cut short. Where the rights to events.k8s.io/v1 are missing, core/v1 is tried, as older projects
//! grant it; where both are, that is said once, and events are left out.

mod client;
mod sent;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use catamaran_cluster::redact::printable;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::core::{DynamicObject, GroupVersionKind};
use kube::{Client, ResourceExt};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::metrics::Metrics;
use client::EventClient;
use sent::{Allowance, Series, Step};

/// How many events may wait to be written; what comes then is dropped.
const WAITING: usize = 512;
/// The longest note, in bytes: the API server refuses more than 1 kB.
const NOTE: usize = 1000;
/// The longest reason and action.
const WORD: usize = 128;
/// How many objects are remembered at most.
const OBJECTS: usize = 10_000;

/// Whether an event tells of trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Severity {
    /// All is well.
    Normal,
    /// Somebody should have a look.
    Warning,
}

/// One thing that happened to one object.
#[derive(Clone, Debug)]
pub(crate) struct EventRecord {
    /// To which object.
    pub regarding: ObjectReference,
    /// Whether it is trouble.
    pub severity: Severity,
    /// Why, in one CamelCase word for machines.
    pub reason: String,
    /// What was being done, in one CamelCase word.
    pub action: String,
    /// A sentence for people. No secrets: everybody who may read events reads it.
    pub note: String,
}

/// Where events are handed in. Clones share one outbox.
#[derive(Clone, Debug)]
pub(crate) struct Recorder {
    outbox: Sender<EventRecord>,
    metrics: Arc<Metrics>,
}

impl Recorder {
    /// A recorder, and the task that writes what it is told until `stop`.
    pub fn start(
        client: Client,
        operator: &str,
        metrics: Arc<Metrics>,
        tasks: &TaskTracker,
        stop: CancellationToken,
    ) -> Self {
        let (outbox, inbox) = channel(WAITING);
        let writer = Writer {
            wire: EventClient::new(client, operator),
            series: HashMap::new(),
            allowance: HashMap::new(),
            metrics: metrics.clone(),
        };
        tasks.spawn(writer.run(inbox, stop));
        Self { outbox, metrics }
    }

    /// Takes note of an event; never waits.
    pub fn record(&self, mut happening: EventRecord) {
        happening.note = printable(&happening.note);
        cut(&mut happening.note, NOTE);
        cut(&mut happening.reason, WORD);
        cut(&mut happening.action, WORD);
        if self.outbox.try_send(happening).is_err() {
            self.metrics.event("dropped");
        }
    }

    /// The same about a resource of this kind.
    pub fn about(
        &self,
        gvk: &GroupVersionKind,
        resource: &DynamicObject,
        severity: Severity,
        (reason, action): (&str, &str),
        note: &str,
    ) {
        self.record(EventRecord {
            regarding: reference(gvk, resource),
            severity,
            reason: reason.to_owned(),
            action: action.to_owned(),
            note: note.to_owned(),
        });
    }
}

fn reference(gvk: &GroupVersionKind, resource: &DynamicObject) -> ObjectReference {
    ObjectReference {
        api_version: Some(gvk.api_version()),
        kind: Some(gvk.kind.clone()),
        name: Some(resource.name_any()),
        namespace: resource.namespace(),
        uid: resource.uid(),
        resource_version: resource.resource_version(),
        ..ObjectReference::default()
    }
}

/// Shortens to at most this many bytes, at the end of a character.
fn cut(text: &mut String, most: usize) {
    if text.len() > most {
        let end = (0..=most - '…'.len_utf8()).rev().find(|at| text.is_char_boundary(*at));
        text.truncate(end.unwrap_or_default());
        text.push('…');
    }
}

/// What makes two events the same one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Same {
    uid: Option<String>,
    severity: Severity,
    reason: String,
    action: String,
    note: String,
}

impl Same {
    fn of(happening: &EventRecord) -> Self {
        Self {
            uid: happening.regarding.uid.clone(),
            severity: happening.severity,
            reason: happening.reason.clone(),
            action: happening.action.clone(),
            note: happening.note.clone(),
        }
    }
}

struct Writer {
    wire: EventClient,
    series: HashMap<Same, Series>,
    allowance: HashMap<Option<String>, Allowance>,
    metrics: Arc<Metrics>,
}

impl Writer {
    async fn run(mut self, mut inbox: Receiver<EventRecord>, stop: CancellationToken) {
        loop {
            let next = tokio::select! {
                biased;
                next = inbox.recv() => next,
                () = stop.cancelled() => None, // after what was handed in before
            };
            let Some(happening) = next else { return };
            let result = self.write(happening).await;
            self.metrics.event(result);
        }
    }

    /// Writes, counts, or leaves out; what became of it.
    async fn write(&mut self, happening: EventRecord) -> &'static str {
        let now = Instant::now();
        self.forget(now);
        let same = Same::of(&happening);
        if self.series.get(&same).is_some_and(|series| series.is_over(now)) {
            self.series.remove(&same);
        }
        match self.series.get_mut(&same).map(|series| series.again(now)) {
            Some(Step::Count) => return "counted",
            Some(Step::Write { name, count }) => {
                if self.wire.count(&happening, &name, count).await {
                    return "sent";
                }
                // It may be gone: the next one begins anew.
                self.series.remove(&same);
                return "refused";
            }
            None => {}
        }
        let allowance = self
            .allowance
            .entry(happening.regarding.uid.clone())
            .or_insert_with(|| Allowance::new(now));
        if !allowance.take(now) {
            return "dropped";
        }
        match self.wire.create(&happening).await {
            Some(name) => {
                self.series.insert(same, Series::new(name, now));
                "sent"
            }
            None => "refused",
        }
    }

    /// Keeps memory bounded: a series that has ended begins anew.
    fn forget(&mut self, now: Instant) {
        if self.series.len() + self.allowance.len() >= OBJECTS {
            self.series.retain(|_, series| !series.is_over(now));
            self.allowance.retain(|_, allowance| !allowance.is_full(now));
        }
        if self.series.len() >= OBJECTS {
            self.series.clear();
        }
        if self.allowance.len() >= OBJECTS {
            self.allowance.clear();
        }
    }
}

/// How long a failed write of an event is not tried anew where the rights are missing.
const FORBIDDEN: Duration = Duration::from_mins(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_note_is_cut_at_a_character() {
        let mut note = "ä".repeat(600);
        cut(&mut note, NOTE);
        assert!(note.len() <= NOTE && note.ends_with("ä…"), "{}", note.len());
        let mut short = "short".to_owned();
        cut(&mut short, NOTE);
        assert_eq!(short, "short");
    }
}
