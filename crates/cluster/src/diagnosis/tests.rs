use super::pod::cause;
use super::*;
use serde_json::json;

fn pod(status: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "status": status,
        "spec": {"containers": [{"name": "c", "resources": {"limits": {"memory": "64Mi"}}}]},
    })
}

/// Statuses as kubelets write them.
#[test]
fn a_pod_tells_the_most_specific_cause() {
    let waiting = |reason: &str, message: &str| {
        json!({"containerStatuses": [{
            "name": "c", "image": "none.test/x:1", "ready": false, "restartCount": 0,
            "state": {"waiting": {"reason": reason, "message": message}},
        }]})
    };
    let crashed = |reason: &str, code: i32, message: &str| {
        json!({"phase": "Running", "containerStatuses": [
            {"name": "fine", "ready": true, "restartCount": 0, "state": {"running": {}}},
            {
                "name": "c", "ready": false, "restartCount": 4,
                "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 1m20s restarting failed container"}},
                "lastState": {"terminated": {"exitCode": code, "reason": reason, "message": message}},
            },
        ]})
    };
    let rows = [
        (
            waiting("ImagePullBackOff", "Back-off pulling image \"none.test/x:1\""),
            "ImagePullBackOff",
            "container c: image \"none.test/x:1\" cannot be pulled: Back-off pulling image \"none.test/x:1\"",
        ),
        (
            waiting("CreateContainerConfigError", "secret \"s\" not found"),
            "CreateContainerConfigError",
            "container c cannot start: secret \"s\" not found",
        ),
        (
            crashed("Error", 3, "canary: what it printed"),
            "CrashLoopBackOff",
            "container c ended with exit code 3, restarted 4 times",
        ),
        (
            crashed("OOMKilled", 137, ""),
            "OOMKilled",
            "container c was killed for using more memory than its limit of 64Mi (exit code 137), restarted 4 times",
        ),
        (
            crashed("StartError", 128, "exec: \"nope\": executable file not found in $PATH"),
            "StartError",
            "container c cannot start: exec: \"nope\": executable file not found in $PATH (exit code 128), restarted 4 times",
        ),
        (
            json!({"phase": "Pending", "conditions": [{
                "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                "message": "0/2 nodes are available: 2 Insufficient cpu.",
            }]}),
            "Unschedulable",
            "it cannot be scheduled: 0/2 nodes are available: 2 Insufficient cpu.",
        ),
        (
            json!({"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."}),
            "Evicted",
            "The node was low on resource: memory.",
        ),
        (
            json!({"phase": "Pending", "initContainerStatuses": [{
                "name": "init", "ready": false, "restartCount": 1, "state": {"running": {}},
                "lastState": {"terminated": {"exitCode": 1, "reason": "Error"}},
            }], "containerStatuses": [{"name": "c", "ready": false, "state": {"waiting": {"reason": "PodInitializing"}}}]}),
            "Error",
            "container init ended with exit code 1, restarted once",
        ),
        (
            json!({"phase": "Running", "containerStatuses": [{"name": "c", "ready": false, "restartCount": 0, "state": {"running": {}}}]}),
            "ContainerNotReady",
            "container c runs and is not ready",
        ),
    ];
    for (status, reason, message) in rows {
        let cause = cause(&pod(&status)).unwrap_or_else(|| panic!("no cause: {status}"));
        assert_eq!((cause.reason.as_str(), cause.message.as_str()), (reason, message));
    }
    for status in [json!({"phase": "Pending"}), waiting("ContainerCreating", "")] {
        assert_eq!(cause(&pod(&status)), None);
    }
}

#[test]
fn selectors_are_written_as_the_api_server_reads_them() {
    let written = |spec: Value| selector(&json!({ "spec": { "selector": spec } }));
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(written(json!({"matchLabels": {"a": "b", "c": ""}})), some("a=b,c="));
    assert_eq!(written(json!({"app": "x"})), some("app=x"));
    let expressions = json!({"matchExpressions": [
        {"key": "a", "operator": "In", "values": ["b", "c"]}, {"key": "d", "operator": "NotIn", "values": ["e"]},
        {"key": "f", "operator": "Exists"}, {"key": "g", "operator": "DoesNotExist"},
    ]});
    assert_eq!(written(expressions), some("a in (b,c),d notin (e),f,!g"));
    assert_eq!(written(json!({})), None);
    assert_eq!(written(json!({"matchExpressions": [{"key": "a", "operator": "Near"}]})), None);
}

#[test]
fn what_a_probes_command_printed_is_not_told() {
    let message = "Readiness probe failed: canary";
    let by_command =
        json!({"spec": {"containers": [{"readinessProbe": {"exec": {"command": ["x"]}}}]}});
    assert_eq!(told("Unhealthy", message, &by_command), "Readiness probe failed");
    let by_http = json!({"spec": {"containers": [{"readinessProbe": {"httpGet": {"path": "/"}}}]}});
    assert_eq!(told("Unhealthy", message, &by_http), message);
}
