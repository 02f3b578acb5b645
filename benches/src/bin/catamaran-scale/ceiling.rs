//! The ceiling: the writes that a release of four objects takes, with nothing else to do.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use catamaran_localcluster::{LocalCluster, Namespace};
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::load::api;

/// How many write at once.
const WRITERS: usize = 16;
/// What a record of the chart weighs, in bytes.
const RECORD: usize = 9 * 1024;

/// Releases per second, eight writes each; and where they are, so that nobody is busy deleting them
/// while something else is measured.
pub async fn measure(cluster: &LocalCluster, count: usize) -> Result<(f64, Namespace)> {
    let namespace = cluster.namespace("ceiling").await?;
    let next = Arc::new(AtomicUsize::new(0));
    let begun = Instant::now();
    let writers = (0..WRITERS).map(|_| {
        let writer = Writer { client: cluster.client(), namespace: namespace.name().to_owned() };
        let next = next.clone();
        tokio::spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    return anyhow::Ok(());
                }
                writer.release(&format!("web-{number:05}")).await?;
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await??;
    }
    let took = begun.elapsed().as_secs_f64();
    // What the control plane makes of it goes on for a while, and is not to be measured with others.
    let client = cluster.client();
    let made = || api(&client, "apps", "ReplicaSet", Some(namespace.name()));
    while made().list_metadata(&ListParams::default()).await?.items.len() < count {
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    Ok((count as f64 / took, namespace))
}

struct Writer {
    client: kube::Client,
    namespace: String,
}

impl Writer {
    async fn release(&self, name: &str) -> kube::Result<()> {
        let record = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1",
            "metadata": { "name": format!("sh.helm.release.v1.{name}.v1"), "labels": { "owner": "helm" } },
            "stringData": { "release": "x".repeat(RECORD) },
        });
        let secrets = self.api("", "Secret");
        let record: DynamicObject =
            serde_json::from_value(record).map_err(kube::Error::SerdeError)?;
        let mut record = secrets.create(&PostParams::default(), &record).await?;
        for (group, kind, content) in objects() {
            self.apply(group, kind, name, content).await?;
        }
        record.metadata.labels.get_or_insert_default().insert("status".into(), "deployed".into());
        let of = record.metadata.name.clone().unwrap_or_default();
        secrets.replace(&of, &PostParams::default(), &record).await?;
        // They stand for the two writes to the resource: finalizer and status.
        for write in ["a", "b"] {
            let patch = Patch::Merge(json!({ "data": { write: "x" } }));
            self.api("", "ConfigMap").patch(name, &PatchParams::default(), &patch).await?;
        }
        Ok(())
    }

    async fn apply(&self, group: &str, kind: &str, name: &str, content: Value) -> kube::Result<()> {
        let mut object = content;
        object["apiVersion"] =
            if group.is_empty() { "v1".into() } else { format!("{group}/v1").into() };
        object["kind"] = kind.into();
        object["metadata"] = json!({ "name": name, "labels": {
            "app.kubernetes.io/managed-by": "Helm", "app.kubernetes.io/instance": name,
            "app.kubernetes.io/name": "web",
        } });
        let params = PatchParams::apply("ceiling").force();
        self.api(group, kind).patch(name, &params, &Patch::Apply(&object)).await.map(drop)
    }

    fn api(&self, group: &str, kind: &str) -> Api<DynamicObject> {
        api(&self.client, group, kind, Some(&self.namespace))
    }
}

/// Four objects as `helm create` has them, in little.
fn objects() -> [(&'static str, &'static str, Value); 4] {
    let app = json!({ "app": "web" });
    let container = json!({ "name": "web", "image": "nginx:1", "ports": [{ "name": "http", "containerPort": 80 }] });
    [
        ("", "ServiceAccount", json!({})),
        ("", "ConfigMap", json!({ "data": { "app.conf": "replicas = 1" } })),
        (
            "",
            "Service",
            json!({ "spec": { "selector": app, "ports": [{ "name": "http", "port": 80 }] } }),
        ),
        (
            "apps",
            "Deployment",
            json!({ "spec": {
            "replicas": 0, "selector": { "matchLabels": app },
            "template": { "metadata": { "labels": app }, "spec": { "containers": [container] } },
        } }),
        ),
    ]
}
