//! Events as the API server takes them.

use std::time::Duration;

use catamaran_cluster::missing_permissions::MissingPermissions;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event as CoreEvent, EventSource};
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta, Time};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::json;
use tokio::time::Instant;

use super::{EventRecord, FORBIDDEN, Severity};
use crate::client;
use crate::names::beginning;

/// No event is worth waiting for longer.
const PATIENCE: Duration = Duration::from_secs(10);
/// The longest name of an object that still leaves room for what tells events apart.
const NAME: usize = 230;

/// Which of the two APIs the rights are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dialect {
    Events,
    Core,
    /// Neither, until then.
    None(Instant),
}

/// The right without which repetitions are not counted.
const COUNT: &str = "patch events";

pub(super) struct EventClient {
    client: Client,
    operator: String,
    instance: String,
    dialect: Dialect,
    rights: MissingPermissions,
}

/// How a write went.
enum Answer {
    Done,
    Forbidden,
    Failed,
}

impl EventClient {
    pub fn new(client: Client, operator: &str) -> Self {
        let host = std::env::var("HOSTNAME").unwrap_or_else(|_| "local".to_owned());
        let instance: String = format!("{operator}-{host}").chars().take(128).collect();
        let operator = operator.to_owned();
        Self {
            client,
            operator,
            instance,
            dialect: Dialect::Events,
            rights: MissingPermissions::default(),
        }
    }

    /// Writes a new event; its name, if that went well.
    pub async fn create(&mut self, happening: &EventRecord) -> Option<String> {
        if let Dialect::None(until) = self.dialect {
            if Instant::now() < until {
                return None;
            }
            self.dialect = Dialect::Events;
        }
        let of = happening.regarding.name.as_deref().unwrap_or_default();
        let name = format!("{}.{:016x}", beginning(of, NAME), client::fresh());
        if self.dialect == Dialect::Events {
            match self.create_event(happening, &name).await {
                Answer::Done => return Some(name),
                Answer::Failed => return None,
                Answer::Forbidden => self.dialect = Dialect::Core,
            }
        }
        match self.create_core(happening, &name).await {
            Answer::Done => Some(name),
            Answer::Failed => None,
            Answer::Forbidden => {
                self.rights.warn_once("create events", "going on without them");
                self.dialect = Dialect::None(Instant::now() + FORBIDDEN);
                None
            }
        }
    }

    /// Writes that an event happened this often.
    pub async fn count(&mut self, happening: &EventRecord, name: &str, count: i32) -> bool {
        if self.rights.has(COUNT) {
            return true; // known, and not written
        }
        let now = Timestamp::now();
        let namespace = namespace(happening);
        let answer = match self.dialect {
            Dialect::None(_) => return false,
            Dialect::Events => {
                let series = json!({ "count": count, "lastObservedTime": MicroTime(now) });
                let api: Api<Event> = Api::namespaced(self.client.clone(), namespace);
                let patch = Patch::Merge(json!({ "series": series }));
                answer(api.patch(name, &PatchParams::default(), &patch)).await
            }
            Dialect::Core => {
                let api: Api<CoreEvent> = Api::namespaced(self.client.clone(), namespace);
                let patch = Patch::Merge(json!({ "count": count, "lastTimestamp": Time(now) }));
                answer(api.patch(name, &PatchParams::default(), &patch)).await
            }
        };
        if let Answer::Forbidden = answer {
            self.rights.warn_once(COUNT, "repetitions are not counted");
        }
        matches!(answer, Answer::Done)
    }

    async fn create_event(&self, happening: &EventRecord, name: &str) -> Answer {
        let event = Event {
            metadata: metadata(happening, name),
            event_time: Some(MicroTime(Timestamp::now())),
            type_: Some(severity(happening.severity).to_owned()),
            reason: Some(happening.reason.clone()),
            action: Some(happening.action.clone()),
            note: Some(happening.note.clone()),
            regarding: Some(happening.regarding.clone()),
            reporting_controller: Some(self.operator.clone()),
            reporting_instance: Some(self.instance.clone()),
            ..Event::default()
        };
        let api: Api<Event> = Api::namespaced(self.client.clone(), namespace(happening));
        answer(api.create(&PostParams::default(), &event)).await
    }

    async fn create_core(&self, happening: &EventRecord, name: &str) -> Answer {
        let now = Time(Timestamp::now());
        let event = CoreEvent {
            metadata: metadata(happening, name),
            type_: Some(severity(happening.severity).to_owned()),
            reason: Some(happening.reason.clone()),
            action: Some(happening.action.clone()),
            message: Some(happening.note.clone()),
            involved_object: happening.regarding.clone(),
            reporting_component: Some(self.operator.clone()),
            reporting_instance: Some(self.instance.clone()),
            source: Some(EventSource { component: Some(self.operator.clone()), host: None }),
            count: Some(1),
            first_timestamp: Some(now.clone()),
            last_timestamp: Some(now),
            ..CoreEvent::default()
        };
        let api: Api<CoreEvent> = Api::namespaced(self.client.clone(), namespace(happening));
        answer(api.create(&PostParams::default(), &event)).await
    }
}

/// An event about an object without a namespace lies in `default`.
fn namespace(happening: &EventRecord) -> &str {
    happening.regarding.namespace.as_deref().unwrap_or("default")
}

fn metadata(happening: &EventRecord, name: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        namespace: Some(namespace(happening).to_owned()),
        ..ObjectMeta::default()
    }
}

fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Normal => "Normal",
        Severity::Warning => "Warning",
    }
}

async fn answer<T>(asked: impl Future<Output = Result<T, kube::Error>>) -> Answer {
    match tokio::time::timeout(PATIENCE, asked).await {
        Ok(Ok(_)) => Answer::Done,
        Ok(Err(kube::Error::Api(status))) if status.is_forbidden() && !ends(&status.message) => {
            Answer::Forbidden
        }
        Ok(Err(error)) => {
            tracing::debug!(%error, "an event was not written");
            Answer::Failed
        }
        Err(_) => Answer::Failed,
    }
}

/// Whether what is forbidden is to create something in a namespace that ends: no right is missing.
fn ends(message: &str) -> bool {
    message.contains("because it is being terminated")
}
