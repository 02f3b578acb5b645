//! What a chart kind's logic works with.

use std::fmt;
use std::ops::Deref;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kube::Client;
use kube::core::DynamicObject;
use serde_json::Value;

use super::super::ChartController;
use super::{Action, Error, Reference};
use crate::manager::events::Severity;
use crate::manager::queue::Key;
use crate::manager::status::StatusPatch;
use crate::native::Kind;

/// One reconcile of one resource. Derefs to the resource.
pub struct Context<'a> {
    resource: &'a DynamicObject,
    key: &'a Key,
    controller: &'a ChartController,
    /// The number of this reconcile, by which older references are told from those of today.
    epoch: u64,
    said: Mutex<PendingUpdates>,
}

/// What was asked for on the way.
#[derive(Debug, Default)]
struct PendingUpdates {
    fields: Vec<(String, Value)>,
    requeue: Option<Duration>,
    /// The action that is under way.
    begun: Option<Action>,
}

impl Deref for Context<'_> {
    type Target = DynamicObject;

    fn deref(&self) -> &DynamicObject {
        self.resource
    }
}

impl fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("key", &self.key).finish_non_exhaustive()
    }
}

impl<'a> Context<'a> {
    pub(in super::super) fn new(
        controller: &'a ChartController,
        key: &'a Key,
        resource: &'a DynamicObject,
        epoch: u64,
    ) -> Self {
        Self { resource, key, controller, epoch, said: Mutex::default() }
    }

    /// The connection, for what the context does not cover.
    pub fn client(&self) -> &Client {
        &self.controller.client
    }

    /// An object that this resource refers to, in any namespace (`None` for its own, or for none where
    /// the kind has none). For as long as the resource refers to it in every reconcile, each change of it
    /// wakes the resource. No request is made unless it changed since.
    ///
    /// # Errors
    /// What the API server refuses; an object that does not fit its kind.
    pub async fn reference<C: Kind>(
        &self,
        namespace: impl Into<Option<&str>>,
        name: &str,
    ) -> Result<Reference<C>, Error> {
        let key = self.key.beside(namespace.into(), name);
        let by = (&self.controller.mapper, &self.controller.requester.own().reader);
        self.controller.references.find(by, key, (self.key, self.epoch)).await
    }

    /// Tells what happened in an event, for `kubectl describe`: a CamelCase word and a sentence. It is
    /// written by and by, and must not hold a secret.
    pub fn event(&self, reason: &str, note: &str) {
        self.controller.recorder.publish(
            self.resource,
            Severity::Normal,
            (reason, "Reconcile"),
            note,
        );
    }

    /// The same for what somebody should have a look at.
    pub fn warn(&self, reason: &str, note: &str) {
        self.controller.recorder.publish(
            self.resource,
            Severity::Warning,
            (reason, "Reconcile"),
            note,
        );
    }

    /// Sets a field of the resource's status, besides those of every chart kind; null takes it away. It is
    /// written once, at the end, if it differs.
    pub fn status(&self, field: &str, value: impl Into<Value>) {
        self.pending().fields.push((field.to_owned(), value.into()));
    }

    /// Has the resource looked at again after this time, at the latest.
    pub fn requeue(&self, after: Duration) {
        let mut said = self.pending();
        said.requeue = Some(said.requeue.map_or(after, |sooner| sooner.min(after)));
    }

    pub(in super::super) fn begin(&self, action: Action) {
        self.pending().begun = Some(action);
    }

    /// The action that was begun in this reconcile.
    pub(in super::super) fn begun(&self) -> Option<Action> {
        self.pending().begun
    }

    /// Writes the fields that were set into a status patch; when to look again.
    pub(in super::super) fn flush_status(
        &self,
        status_patch: &mut StatusPatch,
    ) -> Option<Duration> {
        let mut said = self.pending();
        for (field, value) in said.fields.drain(..) {
            status_patch.set(&field, value);
        }
        said.requeue
    }

    fn pending(&self) -> MutexGuard<'_, PendingUpdates> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
