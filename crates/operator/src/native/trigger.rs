//! Waking a resource from outside of Kubernetes: a webhook, a message, a timer of one's own.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use catamaran_cluster::watch::ObjectKey;

use crate::manager::queue::{Key, KindId, Priority, Queue};

/// Wakes resources of one kind. Make one, give a clone to [`super::Watches::woken_by`], keep the other.
#[derive(Clone, Debug, Default)]
pub struct ReconcileTrigger(Arc<Mutex<Line>>);

#[derive(Debug, Default)]
struct Line {
    connected: Option<(Weak<Queue>, KindId)>,
    /// Who was to be woken before the manager was there.
    early: Vec<(ObjectKey, String)>,
}

impl ReconcileTrigger {
    /// Has a resource reconciled soon; `why` stands in the log. A resource that does not exist is
    /// nobody's trouble.
    pub fn resource(&self, namespace: &str, name: &str, why: &str) {
        let object = ObjectKey {
            namespace: Some(namespace.to_owned()).filter(|namespace| !namespace.is_empty()),
            name: name.to_owned(),
        };
        let mut line = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &line.connected {
            None => line.early.push((object, why.to_owned())),
            Some((queue, kind)) => {
                if let Some(queue) = queue.upgrade() {
                    queue.add(Key { kind: *kind, object }, Priority::Live, why);
                }
            }
        }
    }

    pub(crate) fn connect(&self, queue: &Arc<Queue>, kind: KindId) {
        let mut line = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (object, why) in line.early.drain(..) {
            queue.add(Key { kind, object }, Priority::Live, &why);
        }
        line.connected = Some((Arc::downgrade(queue), kind));
    }
}
