//! News of CustomResourceDefinitions: when a kind that was missing may have come.
//!
//! One watch on their metadata, opened when the first kind is found missing and shared by all of them.
//! An operator without the right to it asks once a minute and goes on.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use catamaran_cluster::bounds::Limits;
use catamaran_cluster::missing_permissions::MissingPermissions;
use catamaran_cluster::watch::{self, Change, Content, Store, Target, WatchFailure};
use kube::api::ApiResource;
use kube::core::GroupVersionKind;
use tokio::sync::watch::{Receiver, Sender};

use super::reflectors::Reflectors;

/// A definition that changed is served a little later, on a busy machine much later: the pauses after
/// which is looked again.
const SOON: [Duration; 5] = [
    Duration::from_millis(50),
    Duration::from_millis(500),
    Duration::from_secs(2),
    Duration::from_secs(5),
    Duration::from_secs(10),
];

/// What is known of definitions: how often something was heard, by API group.
#[derive(Debug, Default)]
pub struct CrdInformer {
    groups: Mutex<HashMap<String, Sender<u64>>>,
    followed: AtomicBool,
}

/// Waits for news of one API group.
pub struct CrdChanges {
    heard: Receiver<u64>,
}

impl CrdChanges {
    /// Returns when a definition of the group came, changed or went.
    pub async fn next(&mut self) {
        if self.heard.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl CrdInformer {
    /// News of a group from now on.
    pub fn of_group(&self, group: &str) -> CrdChanges {
        let mut groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
        let sender = groups.entry(group.to_owned()).or_insert_with(|| Sender::new(0));
        CrdChanges { heard: sender.subscribe() }
    }

    /// Opens the watch, the first time.
    pub fn follow(self: &Arc<Self>, reflectors: &Reflectors) {
        if self.followed.swap(true, Ordering::Relaxed) {
            return;
        }
        let (this, client, stop) =
            (self.clone(), reflectors.client.clone(), reflectors.stop.clone());
        reflectors.spawn(async move {
            let gvk =
                GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
            let target = Target {
                resource: ApiResource::from_gvk_with_plural(&gvk, "customresourcedefinitions"),
                namespace: None,
                selector: None,
                fields: None,
                content: Content::Metadata,
                limits: Limits::OBJECT,
            };
            let store: Arc<Store<()>> = Arc::default();
            let hear = |change: Change<()>| {
                // What the list brings may have come just before it, and not be served yet either.
                let (Change::Seen { key, .. } | Change::Gone { key, .. }) = &change;
                // The name of a definition is `<plural>.<group>`.
                if let Some((_, group)) = key.name.split_once('.') {
                    this.on_change(group);
                }
            };
            let followed = watch::follow(client, target, store, |_| (), hear, log_error());
            stop.run_until_cancelled(Box::pin(followed)).await;
        });
    }

    fn on_change(self: &Arc<Self>, group: &str) {
        let this = self.clone();
        let group = group.to_owned();
        let groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
        // Somebody waits for a kind of this group.
        if groups.get(&group).is_some_and(|sender| sender.receiver_count() > 0) {
            tokio::spawn(async move {
                for pause in SOON {
                    tokio::time::sleep(pause).await;
                    this.notify(&group);
                }
            });
        }
    }

    fn notify(&self, group: &str) {
        let groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = groups.get(group) {
            sender.send_modify(|heard| *heard += 1);
        }
    }
}

/// Says once that the right is missing.
fn log_error() -> impl Fn(&WatchFailure) {
    let rights = MissingPermissions::default();
    move |trouble| {
        if trouble.code == Some(403) {
            let to = "list and watch customresourcedefinitions";
            rights.warn_once(to, "missing kinds are asked for once a minute");
        }
    }
}
