//! Why something is not ready, as specific as it can be seen.
//!
//! A Deployment says that replicas are missing; which image cannot be pulled, its pods say, and which
//! Secret a volume lacks, only events do. [`Applier::cause`] goes down that way, with as few
//! requests as it takes: none where the object itself tells, one for the pods, one for events. What
//! may not be read is not told, and is no error.

pub(crate) mod pod;
pub(crate) mod refusals;

use std::fmt;
use std::time::Duration;

use kube::api::{ApiResource, ListParams};
use serde_json::Value;

use crate::apply::{Applier, Target, metadata, metadata_str};
use crate::readiness::{Readiness, assess};

/// The most pods of one object that are looked at.
const MOST_PODS: u32 = 50;
/// The longest text of an event that is told, in characters.
const LONGEST: usize = 400;

/// For so long nothing is asked: most objects that were just applied are ready by then.
pub const GRACE: Duration = Duration::from_secs(2);
/// How often the cause is asked for at first: what can be seen is told within 5 s.
pub const OFTEN: Duration = Duration::from_secs(4);
/// How often in the end.
const SELDOM: Duration = Duration::from_mins(1);
/// The longer it lasts, the more seldom it is asked: at this part of the time that it lasts.
const PATIENCE: u32 = 30;

/// When the cause is worth asking for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Not before this time has passed.
    Later(Duration),
    /// Now, and again after this time: no watch tells when the cause becomes another one.
    Now(Duration),
}

/// How often to ask for the cause of what has not been ready for so long.
pub fn pace(lasts: Duration) -> Pace {
    match GRACE.checked_sub(lasts).filter(|rest| !rest.is_zero()) {
        Some(rest) => Pace::Later(rest),
        None => Pace::Now((lasts / PATIENCE).clamp(OFTEN, SELDOM)),
    }
}

/// What stands in the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailureCause {
    /// The object that tells, such as `Pod web-5d9c-x2x`; empty for the object itself.
    pub object: String,
    /// One word for machines.
    pub reason: String,
    /// A sentence for people.
    pub message: String,
}

impl fmt::Display for FailureCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.object.is_empty() {
            write!(f, "{}: ", self.object)?;
        }
        f.write_str(&self.message)
    }
}

impl FailureCause {
    fn of(kind: &str, name: &str, reason: &str, message: &str) -> Self {
        Self { object: format!("{kind} {name}"), reason: reason.to_owned(), message: cut(message) }
    }
}

/// What was found, and where: a change there may be another answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnosis {
    /// The cause; `None` if nothing more specific is seen than [`crate::readiness::assess`] says.
    pub cause: Option<FailureCause>,
    /// The label selector of its pods, if they were looked at.
    pub pods: Option<String>,
    /// The field selectors of the events that were looked at.
    pub events: Vec<String>,
}

/// Whether more can be seen of an object of this kind than it says itself.
pub fn is_worth_asking(group: &str, kind: &str) -> bool {
    matches!(
        (group, kind),
        ("", "Pod" | "PersistentVolumeClaim" | "ReplicationController")
            | ("apps", "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet")
            | ("batch", "Job")
    )
}

impl Applier {
    /// The cause why a live object is not ready, or has failed; `None` if nothing more specific is
    /// seen than [`crate::readiness::assess`] says.
    pub async fn cause(&self, target: &Target, live: &Value) -> Option<FailureCause> {
        self.inquire(target, live).await.cause
    }

    /// The same, and where it was looked for.
    pub async fn inquire(&self, target: &Target, live: &Value) -> Diagnosis {
        let (group, kind) = (target.resource.group.as_str(), target.resource.kind.as_str());
        let mut found = Diagnosis::default();
        let Some(namespace) = target.namespace.as_deref() else { return found };
        let events = &mut found.events;
        found.cause = match (group, kind) {
            _ if !is_worth_asking(group, kind) => None,
            ("", "Pod") => self.of_pods(namespace, std::slice::from_ref(live), events).await,
            ("", "PersistentVolumeClaim") => self.of_event(namespace, kind, live, events).await,
            _ if replicas_fail(live) => None, // that says it all: a quota, or admission
            _ => {
                found.pods = selector(live);
                let pods = match &found.pods {
                    Some(selector) => self.pods(namespace, selector).await,
                    None => Vec::new(),
                };
                match self.of_pods(namespace, &pods, events).await {
                    None if pods.is_empty() => self.of_event(namespace, kind, live, events).await,
                    cause => cause,
                }
            }
        };
        found
    }

    /// The pods of an object that are not what they shall be, the newest first.
    async fn pods(&self, namespace: &str, selector: &str) -> Vec<Value> {
        let params = ListParams::default().labels(selector).limit(MOST_PODS);
        let pods = self.seen(&core("Pod", "pods"), namespace, &params).await;
        let mut pods: Vec<Value> = pods.unwrap_or_default();
        for pod in pods.iter_mut().filter_map(Value::as_object_mut) {
            pod.insert("apiVersion".to_owned(), "v1".into());
            pod.insert("kind".to_owned(), "Pod".into());
        }
        pods.retain(|pod| !metadata(pod).contains_key("deletionTimestamp"));
        pods.retain(|pod| assess(pod) != Readiness::Ready);
        pods.sort_by(|one, other| {
            let made = |pod| metadata_str(pod, "creationTimestamp");
            made(other).cmp(made(one))
        });
        pods
    }

    async fn of_pods(
        &self,
        namespace: &str,
        pods: &[Value],
        asked: &mut Vec<String>,
    ) -> Option<FailureCause> {
        let told = pods.iter().filter_map(|pod| Some((pod, pod::cause(pod)?)));
        // Of equal ones, the newest.
        let worst = told.min_by_key(|(_, cause)| cause.rank);
        match worst {
            Some((pod, cause)) if cause.rank < pod::Rank::Vague => {
                let by_claim = if cause.is_about_claims() { claims(pod) } else { Vec::new() };
                for claim in by_claim {
                    let claim = serde_json::json!({ "metadata": { "name": claim } });
                    let kind = "PersistentVolumeClaim";
                    let found = self.of_event(namespace, kind, &claim, asked).await;
                    if found.is_some() {
                        return found;
                    }
                }
                Some(FailureCause::of(
                    "Pod",
                    metadata_str(pod, "name"),
                    &cause.reason,
                    &cause.message,
                ))
            }
            vague => {
                let pod = vague.as_ref().map_or_else(|| pods.first(), |(pod, _)| Some(*pod))?;
                let by_event = self.of_event(namespace, "Pod", pod, asked).await;
                let by_event = by_event.map(|mut cause| {
                    cause.object = format!("Pod {}", metadata_str(pod, "name"));
                    cause
                });
                let name = metadata_str(pod, "name");
                by_event.or_else(|| {
                    vague.map(|(_, cause)| {
                        FailureCause::of("Pod", name, &cause.reason, &cause.message)
                    })
                })
            }
        }
    }

    /// What these select, if it may be read.
    async fn seen(
        &self,
        resource: &ApiResource,
        namespace: &str,
        params: &ListParams,
    ) -> Option<Vec<Value>> {
        if self.refusals.tells(namespace, &resource.plural) {
            return None;
        }
        let found = self.find(resource, namespace, params).await;
        if found.as_ref().is_err_and(|error| error.kind.is_forbidden()) {
            self.refusals.note(namespace, &resource.plural);
        }
        found.ok()
    }

    /// The latest warning about an object.
    async fn of_event(
        &self,
        namespace: &str,
        kind: &str,
        object: &Value,
        asked: &mut Vec<String>,
    ) -> Option<FailureCause> {
        let name = metadata_str(object, "name");
        let about = match metadata_str(object, "uid") {
            "" => format!("involvedObject.kind={kind},involvedObject.name={name}"),
            uid => format!("involvedObject.uid={uid}"),
        };
        let about = format!("{about},type=Warning");
        let params = ListParams::default().fields(&about);
        asked.push(about);
        let events = self.seen(&core("Event", "events"), namespace, &params).await?;
        let latest = events.iter().max_by_key(|event| when(event))?;
        let text = |field: &str| latest.get(field).and_then(Value::as_str).unwrap_or_default();
        let reason = text("reason");
        let message = told(reason, text("message"), object);
        let mut cause = FailureCause::of(kind, name, reason, &message);
        if kind != "Pod" && kind != "PersistentVolumeClaim" {
            cause.object.clear();
        }
        Some(cause)
    }
}

/// An event's text. What a probe's command printed is left out: nobody knows what is in it.
fn told(reason: &str, message: &str, pod: &Value) -> String {
    let runs_command = || pod.to_string().contains("\"exec\":");
    match message.split_once(": ") {
        Some((before, _)) if reason == "Unhealthy" && runs_command() => before.to_owned(),
        _ => message.to_owned(),
    }
}

fn when(event: &Value) -> String {
    let paths =
        ["/series/lastObservedTime", "/lastTimestamp", "/eventTime", "/metadata/creationTimestamp"];
    let times = paths.iter().filter_map(|path| event.pointer(path)?.as_str());
    times.max().unwrap_or_default().to_owned()
}

/// Whether the controller says itself that it cannot make pods.
fn replicas_fail(live: &Value) -> bool {
    let conditions = live.pointer("/status/conditions").and_then(Value::as_array);
    conditions
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == "ReplicaFailure" && condition["status"] == "True")
}

/// A kind of the core group.
pub fn core(kind: &str, plural: &str) -> ApiResource {
    ApiResource {
        group: String::new(),
        version: "v1".to_owned(),
        api_version: "v1".to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    }
}

/// The claims that a pod mounts.
fn claims(pod: &Value) -> Vec<&str> {
    let volumes = pod.pointer("/spec/volumes").and_then(Value::as_array);
    let claims = volumes.into_iter().flatten();
    claims
        .filter_map(|volume| volume.pointer("/persistentVolumeClaim/claimName")?.as_str())
        .collect()
}

/// The label selector of an object's pods; `None` if it has none, or one that cannot be written so.
fn selector(owner: &Value) -> Option<String> {
    let selector = owner.pointer("/spec/selector")?.as_object()?;
    let is_plain =
        !selector.contains_key("matchLabels") && !selector.contains_key("matchExpressions");
    let labels = if is_plain {
        Some(selector)
    } else {
        selector.get("matchLabels").and_then(Value::as_object)
    };
    let mut terms: Vec<String> = Vec::new();
    for (key, value) in labels.into_iter().flatten() {
        terms.push(format!("{key}={}", value.as_str()?));
    }
    for expression in
        selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten()
    {
        let key = expression.get("key")?.as_str()?;
        let values = expression.get("values").and_then(Value::as_array).into_iter().flatten();
        let values: Vec<&str> = values.filter_map(Value::as_str).collect();
        terms.push(match expression.get("operator")?.as_str()? {
            "In" => format!("{key} in ({})", values.join(",")),
            "NotIn" => format!("{key} notin ({})", values.join(",")),
            "Exists" => key.to_owned(),
            "DoesNotExist" => format!("!{key}"),
            _ => return None,
        });
    }
    // An empty selector would be every pod of the namespace.
    (!terms.is_empty()).then(|| terms.join(","))
}

fn cut(message: &str) -> String {
    match message.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", message.get(..end).unwrap_or_default()),
        None => message.trim_end().to_owned(),
    }
}

#[cfg(test)]
mod tests;
