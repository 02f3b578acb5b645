//! One row per rule: what the object shows, and the reason we give (`Ready` for none).

use super::*;
use serde_json::json;

fn verdict(object: &Value) -> String {
    match assess(object) {
        Readiness::Ready => "Ready".to_owned(),
        Readiness::Pending { reason, .. } => format!("pending {reason}"),
        Readiness::Failed { reason, .. } => format!("failed {reason}"),
    }
}

fn check(api_version: &str, kind: &str, rows: Vec<(&str, Value)>) {
    for (expected, mut object) in rows {
        object["apiVersion"] = api_version.into();
        object["kind"] = kind.into();
        assert_eq!(verdict(&object), expected, "{object}");
    }
}

fn status(type_: &str, status: &str, reason: &str) -> Value {
    json!({"type": type_, "status": status, "reason": reason, "message": "because"})
}

#[test]
fn any_kind() {
    check(
        "example.dev/v1",
        "Thing",
        vec![
            ("Ready", json!({})),
            ("Ready", json!({"status": "not even a map"})),
            (
                "pending Terminating",
                json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}),
            ),
            (
                "pending LatestGenerationNotObserved",
                json!({"metadata": {"generation": 2}, "status": {"observedGeneration": 1}}),
            ),
            ("Ready", json!({"metadata": {"generation": 2}, "status": {"observedGeneration": 2}})),
            (
                "pending Working",
                json!({"status": {"conditions": [status("Reconciling", "True", "Working")]}}),
            ),
            (
                "failed Broken",
                json!({"status": {"conditions": [status("Stalled", "True", "Broken")]}}),
            ),
            ("Ready", json!({"status": {"conditions": [status("Stalled", "False", "")]}})),
            (
                "pending Waiting",
                json!({"status": {"conditions": [status("Ready", "False", "Waiting")]}}),
            ),
            (
                "pending NotReady",
                json!({"status": {"conditions": [status("Ready", "Unknown", "")]}}),
            ),
            ("Ready", json!({"status": {"conditions": [status("Ready", "True", "")]}})),
        ],
    );
}

#[test]
fn deployments() {
    let available = status("Available", "True", "");
    let done = status("Progressing", "True", "NewReplicaSetAvailable");
    let full = |replicas: i64,
                updated: i64,
                available_replicas: i64,
                ready: i64,
                conditions: Value| {
        json!({
            "spec": {"replicas": 3, "progressDeadlineSeconds": 600},
            "status": {"replicas": replicas, "updatedReplicas": updated, "availableReplicas": available_replicas,
                       "readyReplicas": ready, "conditions": conditions},
        })
    };
    check(
        "apps/v1",
        "Deployment",
        vec![
            ("pending LessReplicas", json!({})),
            ("Ready", full(3, 3, 3, 3, json!([available, done]))),
            ("pending LessReplicas", full(2, 2, 2, 2, json!([available, done]))),
            ("pending LessUpdated", full(3, 1, 3, 3, json!([available, done]))),
            ("pending ExtraReplicas", full(4, 3, 3, 3, json!([available, done]))),
            ("pending LessAvailable", full(3, 3, 2, 3, json!([available, done]))),
            ("pending LessReady", full(3, 3, 3, 2, json!([available, done]))),
            ("pending ReplicaSetNotAvailable", full(3, 3, 3, 3, json!([available]))),
            ("pending NotAvailable", full(3, 3, 3, 3, json!([done]))),
            ("pending Quota", full(0, 0, 0, 0, json!([status("ReplicaFailure", "True", "Quota")]))),
            (
                "failed ProgressDeadlineExceeded",
                full(
                    3,
                    3,
                    0,
                    0,
                    json!([status("Progressing", "False", "ProgressDeadlineExceeded")]),
                ),
            ),
            ("Ready", json!({"spec": {"replicas": 0}, "status": {"conditions": [available]}})),
            ("pending LessReplicas", json!({"spec": {"replicas": i64::MAX}})),
        ],
    );
}

#[test]
fn other_workloads() {
    let set = |replicas: i64, ready: i64, current: i64, revision: &str| {
        json!({
            "spec": {"replicas": 2},
            "status": {"replicas": replicas, "readyReplicas": ready, "currentReplicas": current, "updatedReplicas": current,
                       "currentRevision": revision, "updateRevision": "b"},
        })
    };
    check(
        "apps/v1",
        "StatefulSet",
        vec![
            ("Ready", set(2, 2, 2, "b")),
            ("pending LessReplicas", set(1, 1, 1, "b")),
            ("pending LessReady", set(2, 1, 2, "b")),
            ("pending ExtraReplicas", set(3, 2, 2, "b")),
            ("pending LessCurrent", set(2, 2, 1, "b")),
            ("pending RevisionMismatch", set(2, 2, 2, "a")),
            ("Ready", json!({"spec": {"updateStrategy": {"type": "OnDelete"}}})),
            (
                "pending PartitionRollout",
                json!({"spec": {"replicas": 3, "updateStrategy": {"rollingUpdate": {"partition": 1}}},
                       "status": {"replicas": 3, "readyReplicas": 3, "updatedReplicas": 1}}),
            ),
            (
                "Ready",
                json!({"spec": {"replicas": 3, "updateStrategy": {"rollingUpdate": {"partition": 1}}},
                       "status": {"replicas": 3, "readyReplicas": 3, "updatedReplicas": 2}}),
            ),
        ],
    );
    let nodes = |scheduled: i64, updated: i64, available: i64, ready: i64| {
        json!({"status": {"observedGeneration": 1, "desiredNumberScheduled": 2, "currentNumberScheduled": scheduled,
                          "updatedNumberScheduled": updated, "numberAvailable": available, "numberReady": ready}})
    };
    check(
        "apps/v1",
        "DaemonSet",
        vec![
            ("pending NotObserved", json!({})),
            ("Ready", nodes(2, 2, 2, 2)),
            ("pending LessNodes", nodes(1, 1, 1, 1)),
            ("pending LessUpdated", nodes(2, 1, 2, 2)),
            ("pending LessAvailable", nodes(2, 2, 1, 2)),
            ("pending LessReady", nodes(2, 2, 2, 1)),
        ],
    );
    check(
        "apps/v1",
        "ReplicaSet",
        vec![
            ("pending LessLabelled", json!({})),
            (
                "Ready",
                json!({"status": {"replicas": 1, "fullyLabeledReplicas": 1, "availableReplicas": 1, "readyReplicas": 1}}),
            ),
            (
                "pending FailedCreate",
                json!({"status": {"conditions": [status("ReplicaFailure", "True", "FailedCreate")]}}),
            ),
        ],
    );
}

#[test]
fn pods_and_jobs() {
    let waiting = |reason: &str| json!({"status": {"phase": "Pending", "containerStatuses": [{"name": "c", "state": {"waiting": {"reason": reason}}}]}});
    check(
        "v1",
        "Pod",
        vec![
            ("pending PodNotReady", json!({})),
            ("Ready", json!({"status": {"phase": "Succeeded"}})),
            ("failed Evicted", json!({"status": {"phase": "Failed", "reason": "Evicted"}})),
            (
                "Ready",
                json!({"status": {"phase": "Running", "conditions": [status("Ready", "True", "")]}}),
            ),
            (
                "pending PodNotReady",
                json!({"status": {"phase": "Running", "conditions": [status("Ready", "False", "")]}}),
            ),
            (
                "pending Unschedulable",
                json!({"status": {"phase": "Pending", "conditions": [status("PodScheduled", "False", "Unschedulable")]}}),
            ),
            ("pending PodNotReady", waiting("ContainerCreating")),
            ("pending ImagePullBackOff", waiting("ImagePullBackOff")),
            ("failed CrashLoopBackOff", waiting("CrashLoopBackOff")),
        ],
    );
    check(
        "batch/v1",
        "Job",
        vec![
            ("pending JobNotStarted", json!({})),
            ("Ready", json!({"status": {"startTime": "2026-01-01T00:00:00Z"}})),
            ("Ready", json!({"spec": {"suspend": true}})),
            ("Ready", json!({"status": {"conditions": [status("Complete", "True", "")]}})),
            (
                "failed BackoffLimitExceeded",
                json!({"status": {"conditions": [status("Failed", "True", "BackoffLimitExceeded")]}}),
            ),
        ],
    );
}

#[test]
fn the_rest() {
    check(
        "v1",
        "PersistentVolumeClaim",
        vec![
            ("Ready", json!({"status": {"phase": "Bound"}})),
            ("pending NotBound", json!({"status": {"phase": "Pending"}})),
            ("failed Lost", json!({"status": {"phase": "Lost"}})),
        ],
    );
    check(
        "v1",
        "Service",
        vec![
            ("Ready", json!({"spec": {"type": "ClusterIP"}})),
            ("pending NoIPAssigned", json!({"spec": {"type": "LoadBalancer"}})),
            ("Ready", json!({"spec": {"type": "LoadBalancer", "clusterIP": "10.96.0.9"}})),
        ],
    );
    check(
        "policy/v1",
        "PodDisruptionBudget",
        vec![
            ("pending NotObserved", json!({})),
            ("pending BudgetNotMet", json!({"status": {"desiredHealthy": 2, "currentHealthy": 1}})),
            ("Ready", json!({"status": {"desiredHealthy": 2, "currentHealthy": 2}})),
        ],
    );
    check(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        vec![
            ("pending Installing", json!({})),
            (
                "pending Installing",
                json!({"status": {"conditions": [status("Established", "False", "Installing")]}}),
            ),
            ("Ready", json!({"status": {"conditions": [status("Established", "True", "")]}})),
            (
                "failed Clash",
                json!({"status": {"conditions": [status("NamesAccepted", "False", "Clash")]}}),
            ),
        ],
    );
    check(
        "apiregistration.k8s.io/v1",
        "APIService",
        vec![
            ("pending NotAvailable", json!({})),
            (
                "pending MissingEndpoints",
                json!({"status": {"conditions": [status("Available", "False", "MissingEndpoints")]}}),
            ),
            ("Ready", json!({"status": {"conditions": [status("Available", "True", "")]}})),
        ],
    );
}

#[test]
fn only_jobs_and_pods_come_to_an_end() {
    let of = |api_version: &str, kind: &str, status: Value| {
        let object = json!({"apiVersion": api_version, "kind": kind, "status": status});
        match completion(&object) {
            None => "never".to_owned(),
            Some(Completion::Running) => "running".to_owned(),
            Some(Completion::Succeeded) => "succeeded".to_owned(),
            Some(Completion::Failed { reason, message }) => format!("{reason}: {message}"),
        }
    };
    let job = |type_: &str, verdict: &str| {
        let condition = status(type_, verdict, "BackoffLimitExceeded");
        of("batch/v1", "Job", json!({"startTime": "now", "conditions": [condition]}))
    };
    assert_eq!(job("Complete", "True"), "succeeded");
    assert_eq!(job("Failed", "True"), "BackoffLimitExceeded: because");
    assert_eq!(job("FailureTarget", "True"), "running", "its pods have not ended yet");
    assert_eq!(job("Complete", "False"), "running");
    assert_eq!(of("v1", "Pod", json!({"phase": "Succeeded"})), "succeeded");
    assert_eq!(of("v1", "Pod", json!({"phase": "Running"})), "running");
    assert_eq!(
        of("v1", "Pod", json!({"phase": "Failed", "reason": "Evicted"})),
        "Evicted: the pod failed"
    );
    let container =
        json!({"name": "c", "state": {"terminated": {"exitCode": 3, "reason": "OOMKilled"}}});
    assert_eq!(
        of("v1", "Pod", json!({"phase": "Failed", "containerStatuses": [container]})),
        "OOMKilled: container c was killed for using more memory than its limit (exit code 3)"
    );
    assert_eq!(of("v1", "ConfigMap", json!({})), "never");
    assert_eq!(of("other.dev/v1", "Job", json!({})), "never");
}
