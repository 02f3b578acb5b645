//! What the containers of pods have printed.

use kube::api::{ListParams, LogParams};
use kube::core::Request;
use serde_json::Value;

use crate::apply::{Applier, ApplyError, FailureKind, Target, metadata_str};
use crate::diagnosis::core;

/// How much of each container's log is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Most {
    /// The last lines; `None` is all of them.
    pub lines: Option<i64>,
    /// As many bytes, from the first of those lines on.
    pub bytes: i64,
}

/// What one container has printed. May hold anything, secrets included.
#[derive(Clone, PartialEq, Eq)]
pub struct Printed {
    /// The pod's name.
    pub pod: String,
    /// The container's name.
    pub container: String,
    /// Its standard output and error.
    pub text: String,
}

/// Without the text.
impl std::fmt::Debug for Printed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Printed")
            .field("pod", &self.pod)
            .field("container", &self.container)
            .finish_non_exhaustive()
    }
}

impl Applier {
    /// What the containers of a Pod, or of the pods of a Job, have printed, the oldest pod first;
    /// nothing for objects of other kinds, as in Helm. Containers that only initialise are left out.
    ///
    /// # Errors
    ///
    /// As those of any request: pods are listed, and `pods/log` got.
    pub async fn printed(
        &self,
        kind: &str,
        (namespace, name): (&str, &str),
        most: Most,
    ) -> Result<Vec<Printed>, ApplyError> {
        let selected = match kind {
            "Job" => ListParams::default().labels(&format!("job-name={name}")),
            "Pod" => ListParams::default().fields(&format!("metadata.name={name}")),
            _ => return Ok(Vec::new()),
        };
        let mut pods = self.find(&core("Pod", "pods"), namespace, &selected).await?;
        pods.sort_by(|one, other| {
            let made = |pod| (metadata_str(pod, "creationTimestamp"), metadata_str(pod, "name"));
            made(one).cmp(&made(other))
        });
        let mut printed = Vec::new();
        for pod in &pods {
            for container in containers(pod) {
                let name = metadata_str(pod, "name");
                let text = self.log(namespace, name, container, most).await?;
                let (pod, container) = (name.to_owned(), container.to_owned());
                printed.push(Printed { pod, container, text });
            }
        }
        Ok(printed)
    }

    async fn log(
        &self,
        namespace: &str,
        pod: &str,
        container: &str,
        most: Most,
    ) -> Result<String, ApplyError> {
        let target = Target {
            resource: core("Pod", "pods"),
            namespace: Some(namespace.to_owned()),
            name: pod.to_owned(),
        };
        let verb = "read the logs of";
        let params = LogParams {
            container: Some(container.to_owned()),
            tail_lines: most.lines,
            limit_bytes: Some(most.bytes),
            ..LogParams::default()
        };
        let path = format!("/api/v1/namespaces/{namespace}/pods");
        let request = Request::new(path).logs(pod, &params).map_err(|error| ApplyError {
            kind: FailureKind::Invalid,
            verb,
            target: target.to_string(),
            message: error.to_string(),
        })?;
        self.answered(&target, verb, self.client().request_text(request)).await
    }
}

fn containers(pod: &Value) -> impl Iterator<Item = &str> {
    let containers = pod.pointer("/spec/containers").and_then(Value::as_array);
    containers.into_iter().flatten().filter_map(|container| container.get("name")?.as_str())
}
