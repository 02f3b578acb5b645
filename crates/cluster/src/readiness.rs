//! Whether an object does what it is there for.
//!
//! The rules are those of kstatus (which Helm 4 and Flux wait by): first what all kinds have in
//! common (deletion, observedGeneration, the conditions Reconciling and Stalled), then the rules that
//! the object brings along ([`custom`]), or else its kind's own rule, and for kinds without one the condition Ready. An object without any such sign is
//! ready once it is there. Pure: no clock, so what kstatus calls failed after some seconds (an
//! unschedulable pod) is pending here, with its cause.

mod custom;

use serde_json::Value;

use crate::diagnosis::pod;

/// The answer, with the cause where it is not simply "yes".
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readiness {
    /// It is there and does its work.
    Ready,
    /// It is on its way.
    Pending {
        /// One word for machines.
        reason: String,
        /// A sentence for people.
        message: String,
    },
    /// It has given up, or cannot go on as it is.
    Failed {
        /// One word for machines.
        reason: String,
        /// A sentence for people.
        message: String,
    },
}

impl Readiness {
    /// Whether it is [`Readiness::Ready`].
    pub fn is_ready(&self) -> bool {
        *self == Self::Ready
    }
}

/// Whether an object that runs to an end has come to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Completion {
    /// Not yet.
    Running,
    /// It ended well.
    Succeeded,
    /// It ended, and not well.
    Failed {
        /// One word for machines.
        reason: String,
        /// A sentence for people.
        message: String,
    },
}

/// Whether a Job or a Pod has ended; `None` for kinds that do not run to an end.
pub fn completion(object: &Value) -> Option<Completion> {
    let api_version = text(object, "/apiVersion");
    let group = api_version.rsplit_once('/').map_or("", |(group, _)| group);
    let failure = |readiness| match readiness {
        Readiness::Failed { reason, message } => Completion::Failed { reason, message },
        Readiness::Pending { .. } | Ready => Completion::Running,
    };
    match (group, text(object, "/kind")) {
        ("batch", "Job") if condition(object, "Complete").is_some_and(|c| c.is("True")) => {
            Some(Completion::Succeeded)
        }
        ("batch", "Job") => Some(failure(job(object))),
        ("", "Pod") => Some(match text(object, "/status/phase") {
            "Succeeded" => Completion::Succeeded,
            "Failed" => failure(of_pod(object)),
            _ => Completion::Running,
        }),
        _ => None,
    }
}

use Readiness::Ready;

/// Judges a live object by the rules of its kind.
pub fn assess(object: &Value) -> Readiness {
    if !at(object, "/metadata/deletionTimestamp").is_null() {
        return pending("Terminating", "it is being deleted");
    }
    let generic = common(object);
    if generic != Ready {
        return generic;
    }
    if let Some(by_own_rules) = custom::assess(object) {
        return by_own_rules;
    }
    let api_version = text(object, "/apiVersion");
    let group = api_version.rsplit_once('/').map_or("", |(group, _)| group);
    match (group, text(object, "/kind")) {
        ("apps", "Deployment") => deployment(object),
        ("apps", "StatefulSet") => stateful_set(object),
        ("apps", "DaemonSet") => daemon_set(object),
        ("apps", "ReplicaSet") | ("", "ReplicationController") => replica_set(object),
        ("", "Pod") => of_pod(object),
        ("", "PersistentVolumeClaim") => claim(object),
        ("", "Service") => service(object),
        ("batch", "Job") => job(object),
        ("policy", "PodDisruptionBudget") => budget(object),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => definition(object),
        ("apiregistration.k8s.io", "APIService") => by_condition(object, "Available", true),
        _ => by_condition(object, "Ready", false),
    }
}

/// What holds for every kind: a controller that has not seen the latest spec, or says that it is
/// at work or stuck.
fn common(object: &Value) -> Readiness {
    let generation = at(object, "/metadata/generation").as_i64();
    let observed = at(object, "/status/observedGeneration").as_i64();
    if let (Some(generation), Some(observed)) = (generation, observed)
        && observed < generation
    {
        let message = format!("generation {generation} was not seen by its controller yet");
        return pending("LatestGenerationNotObserved", &message);
    }
    if let Some(stalled) = condition(object, "Stalled").filter(|c| c.is("True")) {
        return stalled.failed("Stalled");
    }
    match condition(object, "Reconciling").filter(|c| c.is("True")) {
        Some(reconciling) => reconciling.pending("Reconciling"),
        None => Ready,
    }
}

/// The condition that says it all; `required` where a missing one means "not yet".
fn by_condition(object: &Value, type_: &str, required: bool) -> Readiness {
    match condition(object, type_) {
        Some(found) if found.is("True") => Ready,
        Some(found) => found.pending(&format!("Not{type_}")),
        None if required => {
            pending(&format!("Not{type_}"), &format!("condition {type_} is not there yet"))
        }
        None => Ready,
    }
}

fn deployment(object: &Value) -> Readiness {
    let progressing = condition(object, "Progressing");
    if let Some(stuck) =
        progressing.as_ref().filter(|c| c.is("False") && c.reason == "ProgressDeadlineExceeded")
    {
        return stuck.failed("ProgressDeadlineExceeded");
    }
    let wanted = count(object, "/spec/replicas", 1);
    let replicas = count(object, "/status/replicas", 0);
    let updated = count(object, "/status/updatedReplicas", 0);
    let available = count(object, "/status/availableReplicas", 0);
    let checks = [
        (wanted > replicas, "LessReplicas", format!("{replicas} of {wanted} replicas are there")),
        (wanted > updated, "LessUpdated", format!("{updated} of {wanted} replicas are updated")),
        (
            replicas > wanted,
            "ExtraReplicas",
            format!("{} old replicas are ending", replicas - wanted),
        ),
        (
            updated > available,
            "LessAvailable",
            format!("{available} of {updated} replicas are available"),
        ),
        ready_check(object, wanted),
    ];
    if let Some(unfinished) = first(checks) {
        return with_cause(object, unfinished);
    }
    let has_deadline = !at(object, "/spec/progressDeadlineSeconds").is_null();
    let rolled_out =
        progressing.is_some_and(|c| c.is("True") && c.reason == "NewReplicaSetAvailable");
    if has_deadline && !rolled_out {
        return pending("ReplicaSetNotAvailable", "the new ReplicaSet is not available yet");
    }
    by_condition(object, "Available", true)
}

fn stateful_set(object: &Value) -> Readiness {
    if text(object, "/spec/updateStrategy/type") == "OnDelete" {
        return Ready;
    }
    let wanted = count(object, "/spec/replicas", 1);
    let replicas = count(object, "/status/replicas", 0);
    let updated = count(object, "/status/updatedReplicas", 0);
    let current = count(object, "/status/currentReplicas", 0);
    let partition = count(object, "/spec/updateStrategy/rollingUpdate/partition", 0);
    let checks = [
        (wanted > replicas, "LessReplicas", format!("{replicas} of {wanted} replicas are there")),
        ready_check(object, wanted),
        (replicas > wanted, "ExtraReplicas", format!("{} replicas are ending", replicas - wanted)),
        (
            partition > 0 && updated < wanted - partition,
            "PartitionRollout",
            format!("{updated} of {} replicas are updated", wanted - partition),
        ),
        (
            partition <= 0 && wanted > current,
            "LessCurrent",
            format!("{current} of {wanted} replicas are current"),
        ),
        (
            partition <= 0
                && text(object, "/status/currentRevision")
                    != text(object, "/status/updateRevision"),
            "RevisionMismatch",
            "replicas of the former revision are left".to_owned(),
        ),
    ];
    first(checks).map_or(Ready, |unfinished| with_cause(object, unfinished))
}

fn daemon_set(object: &Value) -> Readiness {
    // Without it a DaemonSet that no controller has seen looks like one that no node wants.
    if at(object, "/status/observedGeneration").is_null() {
        return pending("NotObserved", "it was not seen by its controller yet");
    }
    let wanted = count(object, "/status/desiredNumberScheduled", 0);
    let scheduled = count(object, "/status/currentNumberScheduled", 0);
    let updated = count(object, "/status/updatedNumberScheduled", 0);
    let available = count(object, "/status/numberAvailable", 0);
    let ready = count(object, "/status/numberReady", 0);
    let on_delete = text(object, "/spec/updateStrategy/type") == "OnDelete";
    first([
        (wanted > scheduled, "LessNodes", format!("{scheduled} of {wanted} pods are scheduled")),
        (
            !on_delete && wanted > updated,
            "LessUpdated",
            format!("{updated} of {wanted} pods are updated"),
        ),
        (
            wanted > available,
            "LessAvailable",
            format!("{available} of {wanted} pods are available"),
        ),
        (wanted > ready, "LessReady", format!("{ready} of {wanted} pods are ready")),
    ])
    .map_or(Ready, |unfinished| unfinished)
}

fn replica_set(object: &Value) -> Readiness {
    if let Some(failure) = condition(object, "ReplicaFailure").filter(|c| c.is("True")) {
        return failure.pending("ReplicaFailure");
    }
    let wanted = count(object, "/spec/replicas", 1);
    let replicas = count(object, "/status/replicas", 0);
    let labelled = count(object, "/status/fullyLabeledReplicas", 0);
    let available = count(object, "/status/availableReplicas", 0);
    first([
        (wanted > labelled, "LessLabelled", format!("{labelled} of {wanted} replicas are there")),
        (
            wanted > available,
            "LessAvailable",
            format!("{available} of {wanted} replicas are available"),
        ),
        ready_check(object, wanted),
        (replicas > wanted, "ExtraReplicas", format!("{} replicas are ending", replicas - wanted)),
    ])
    .map_or(Ready, |unfinished| unfinished)
}

fn of_pod(object: &Value) -> Readiness {
    let phase = text(object, "/status/phase");
    if phase == "Succeeded" || condition(object, "Ready").is_some_and(|c| c.is("True")) {
        return Ready;
    }
    match pod::cause(object) {
        Some(cause) if cause.fatal || phase == "Failed" => failed(&cause.reason, &cause.message),
        Some(cause) => pending(&cause.reason, &cause.message),
        None => pending("PodNotReady", &format!("the pod is {}", or(phase, "Pending"))),
    }
}

fn claim(object: &Value) -> Readiness {
    match text(object, "/status/phase") {
        "Bound" => Ready,
        "Lost" => failed("Lost", "its volume is lost"),
        _ => pending("NotBound", "it is not bound to a volume yet"),
    }
}

fn service(object: &Value) -> Readiness {
    // As in kstatus, the external address is not waited for.
    if text(object, "/spec/type") == "LoadBalancer" && text(object, "/spec/clusterIP").is_empty() {
        return pending("NoIPAssigned", "it has no cluster IP yet");
    }
    Ready
}

fn job(object: &Value) -> Readiness {
    if let Some(failure) = condition(object, "Failed").filter(|c| c.is("True")) {
        return failure.failed("JobFailed");
    }
    let complete = condition(object, "Complete").is_some_and(|c| c.is("True"));
    let suspended = at(object, "/spec/suspend").as_bool() == Some(true);
    if complete || suspended || !at(object, "/status/startTime").is_null() {
        return Ready;
    }
    pending("JobNotStarted", "it has not started yet")
}

fn budget(object: &Value) -> Readiness {
    let Some(wanted) = at(object, "/status/desiredHealthy").as_i64() else {
        return pending("NotObserved", "it was not seen by its controller yet");
    };
    let healthy = count(object, "/status/currentHealthy", 0);
    if wanted > healthy {
        return pending("BudgetNotMet", &format!("{healthy} of {wanted} pods are healthy"));
    }
    Ready
}

fn definition(object: &Value) -> Readiness {
    if let Some(names) = condition(object, "NamesAccepted").filter(|c| c.is("False")) {
        return names.failed("NamesNotAccepted");
    }
    match condition(object, "Established") {
        Some(established) if established.is("True") => Ready,
        Some(established) if established.is("False") && established.reason != "Installing" => {
            established.failed("NotEstablished")
        }
        _ => pending("Installing", "it is not established yet"),
    }
}

/// A condition as far as judging goes.
struct Found<'a> {
    status: &'a str,
    reason: &'a str,
    message: &'a str,
}

impl Found<'_> {
    fn is(&self, status: &str) -> bool {
        self.status == status
    }

    fn pending(&self, otherwise: &str) -> Readiness {
        let reason = or(self.reason, otherwise);
        pending(reason, or(self.message, reason))
    }

    fn failed(&self, otherwise: &str) -> Readiness {
        let reason = or(self.reason, otherwise);
        failed(reason, or(self.message, reason))
    }
}

fn condition<'a>(object: &'a Value, type_: &str) -> Option<Found<'a>> {
    let conditions = at(object, "/status/conditions").as_array()?;
    let found = conditions.iter().find(|condition| text(condition, "/type") == type_)?;
    Some(Found {
        status: text(found, "/status"),
        reason: text(found, "/reason"),
        message: text(found, "/message"),
    })
}

fn ready_check(object: &Value, wanted: i64) -> (bool, &'static str, String) {
    let ready = count(object, "/status/readyReplicas", 0);
    (wanted > ready, "LessReady", format!("{ready} of {wanted} replicas are ready"))
}

/// The first check that is true.
fn first<const N: usize>(checks: [(bool, &str, String); N]) -> Option<Readiness> {
    checks
        .into_iter()
        .find(|(unfinished, ..)| *unfinished)
        .map(|(_, reason, message)| pending(reason, &message))
}

/// Quotas and admission speak through ReplicaFailure: more telling than a count.
fn with_cause(object: &Value, unfinished: Readiness) -> Readiness {
    match condition(object, "ReplicaFailure").filter(|c| c.is("True")) {
        Some(failure) => failure.pending("ReplicaFailure"),
        None => unfinished,
    }
}

fn pending(reason: &str, message: &str) -> Readiness {
    Readiness::Pending { reason: reason.to_owned(), message: message.to_owned() }
}

fn failed(reason: &str, message: &str) -> Readiness {
    Readiness::Failed { reason: reason.to_owned(), message: message.to_owned() }
}

fn at<'a>(object: &'a Value, path: &str) -> &'a Value {
    object.pointer(path).unwrap_or(&Value::Null)
}

fn text<'a>(object: &'a Value, path: &str) -> &'a str {
    at(object, path).as_str().unwrap_or_default()
}

fn count(object: &Value, path: &str, otherwise: i64) -> i64 {
    // Kubernetes' counts are int32; anything beyond is no count, and must not overflow below.
    at(object, path).as_i64().filter(|n| i32::try_from(*n).is_ok()).unwrap_or(otherwise)
}

fn or<'a>(text: &'a str, otherwise: &'a str) -> &'a str {
    if text.is_empty() { otherwise } else { text }
}

#[cfg(test)]
mod tests;
