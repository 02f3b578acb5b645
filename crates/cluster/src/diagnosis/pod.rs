//! What a pod says of why it is not ready.

use serde_json::Value;

/// Why a pod is not ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cause {
    /// One word for machines.
    pub reason: String,
    /// A sentence for people.
    pub message: String,
    /// Whether the pod goes on as it is only to fail again.
    pub fatal: bool,
    pub rank: Rank,
}

/// How much a cause tells, the most first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    /// A container that cannot start, or ends.
    Container,
    /// The pod as a whole: it has no place, or was evicted.
    Pod,
    /// Events may tell more.
    Vague,
}

/// Why kubelets say that an image is not there.
const NO_IMAGE: [&str; 7] = [
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
    "ImageInspectError",
    "RegistryUnavailable",
    "SignatureValidationFailed",
];

/// Ends of a container whose message is the runtime's and not the container's own.
const NEVER_RAN: [&str; 2] = ["StartError", "ContainerCannotRun"];

impl Cause {
    fn new(rank: Rank, reason: &str, message: String) -> Self {
        Self { reason: reason.to_owned(), message, fatal: false, rank }
    }

    fn fatal(self) -> Self {
        Self { fatal: true, ..self }
    }

    /// Whether the pod waits for volumes, of which their claims know more.
    pub fn is_about_claims(&self) -> bool {
        self.message.contains("PersistentVolumeClaim")
    }
}

/// The most specific cause that a pod's own status shows.
pub(crate) fn cause(pod: &Value) -> Option<Cause> {
    let lists = [("initContainerStatuses", "initContainers"), ("containerStatuses", "containers")];
    let statuses = || {
        lists.iter().flat_map(|(status, spec)| {
            let statuses = pod.pointer(&format!("/status/{status}")).and_then(Value::as_array);
            statuses.into_iter().flatten().map(|status| (status, *spec))
        })
    };
    let of_container = statuses().find_map(|(status, spec)| container(pod, spec, status));
    of_container
        .or_else(|| whole(pod))
        .or_else(|| statuses().find_map(|(status, _)| unready(status)))
}

fn container(pod: &Value, spec: &str, status: &Value) -> Option<Cause> {
    let name = text(status, "/name");
    let told = |reason: &str, message: String| {
        Some(Cause::new(Rank::Container, reason, format!("container {name}{message}")))
    };
    let message = text(status, "/state/waiting/message");
    match text(status, "/state/waiting/reason") {
        "" | "PodInitializing" | "ContainerCreating" => {}
        "CrashLoopBackOff" => {
            let ended = end(pod, spec, status, "/lastState/terminated", "CrashLoopBackOff");
            let unknown = || told("CrashLoopBackOff", " ends again and again".to_owned());
            return ended.or_else(unknown).map(Cause::fatal);
        }
        reason if NO_IMAGE.contains(&reason) => {
            let image = text(status, "/image");
            let more = if message.is_empty() { reason } else { message };
            return told(reason, format!(": image {image:?} cannot be pulled: {more}"));
        }
        reason => {
            let more = if message.is_empty() { reason } else { message };
            return told(reason, format!(" cannot start: {more}"));
        }
    }
    if let Some(ended) = end(pod, spec, status, "/state/terminated", "Error") {
        return Some(ended);
    }
    let is_ready = status.get("ready").and_then(Value::as_bool) == Some(true);
    // Between two crashes, it runs.
    if is_ready { None } else { end(pod, spec, status, "/lastState/terminated", "Error") }
}

/// How a container ended, if not well.
fn end(pod: &Value, spec: &str, status: &Value, state: &str, otherwise: &str) -> Option<Cause> {
    let state = status.pointer(state)?;
    let code = state.get("exitCode").and_then(Value::as_i64).filter(|code| *code != 0)?;
    let (name, why) = (text(status, "/name"), text(state, "/reason"));
    let restarts = match status.get("restartCount").and_then(Value::as_u64) {
        None | Some(0) => String::new(),
        Some(1) => ", restarted once".to_owned(),
        Some(times) => format!(", restarted {times} times"),
    };
    let (reason, message) = if why == "OOMKilled" {
        let limit = memory_limit(pod, spec, name).map(|limit| format!(" of {limit}"));
        let limit = limit.unwrap_or_default();
        let message = format!(
            "container {name} was killed for using more memory than its limit{limit} (exit code {code}){restarts}"
        );
        ("OOMKilled", message)
    } else if NEVER_RAN.contains(&why) {
        let message = text(state, "/message");
        (why, format!("container {name} cannot start: {message} (exit code {code}){restarts}"))
    } else {
        let reason = if otherwise == "Error" && !why.is_empty() { why } else { otherwise };
        (reason, format!("container {name} ended with exit code {code}{restarts}"))
    };
    Some(Cause::new(Rank::Container, reason, message))
}

fn memory_limit<'a>(pod: &'a Value, spec: &str, name: &str) -> Option<&'a str> {
    let containers = pod.pointer(&format!("/spec/{spec}"))?.as_array()?;
    let container = containers.iter().find(|container| text(container, "/name") == name)?;
    container.pointer("/resources/limits/memory")?.as_str()
}

/// What is the matter with the pod as a whole.
fn whole(pod: &Value) -> Option<Cause> {
    let status = |field: &str| text(pod, &format!("/status/{field}"));
    if status("phase") == "Failed" {
        let reason = or(status("reason"), "PodFailed");
        let message = or(status("message"), "the pod failed").to_owned();
        return Some(Cause::new(Rank::Pod, reason, message).fatal());
    }
    let conditions = pod.pointer("/status/conditions").and_then(Value::as_array);
    let scheduled = conditions.into_iter().flatten().find(|condition| {
        text(condition, "/type") == "PodScheduled" && text(condition, "/status") == "False"
    })?;
    let reason = or(text(scheduled, "/reason"), "Unschedulable");
    let message = or(text(scheduled, "/message"), "no node takes it");
    Some(Cause::new(Rank::Pod, reason, format!("it cannot be scheduled: {message}")))
}

/// A container that does not do its work, without saying why.
fn unready(status: &Value) -> Option<Cause> {
    let name = text(status, "/name");
    let runs = status.pointer("/state/running").is_some() && status["ready"] == false;
    runs.then(|| {
        let message = format!("container {name} runs and is not ready");
        Cause::new(Rank::Vague, "ContainerNotReady", message)
    })
}

fn text<'a>(object: &'a Value, path: &str) -> &'a str {
    object.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

fn or<'a>(text: &'a str, otherwise: &'a str) -> &'a str {
    if text.is_empty() { otherwise } else { text }
}
