//! The resources: a chart as `helm create` makes it and a ConfigMap, four objects a release, no pods.

use std::collections::HashSet;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use catamaran_localcluster::{LocalCluster, Namespace};
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, PostParams, WatchParams};
use kube::core::{GroupVersionKind, WatchEvent};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The API group of the kind.
pub const GROUP: &str = "load.catamaran.test";
/// How long all of it may take.
const DEADLINE: Duration = Duration::from_mins(30);
/// How many create resources at once.
const CREATORS: usize = 4;

const CONFIG_MAP: &str = "\
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ include \"web.fullname\" . }}
  labels:
    {{- include \"web.labels\" . | nindent 4 }}
data:
  app.conf: |
    replicas = {{ .Values.replicaCount }}
    name = {{ .Release.Name }}
";

/// A project, its kind in the cluster, and a namespace for its resources.
pub struct Load {
    client: kube::Client,
    folder: TempDir,
    namespace: Namespace,
}

/// How long resources took.
pub struct Installed {
    /// Until the last one was created.
    pub created: Duration,
    /// Until the last one said Deployed.
    pub deployed: Duration,
}

impl Load {
    /// A project of one kind, Web.
    pub async fn new(cluster: &LocalCluster, helm: &Path) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        chart(helm, folder.path(), "web")?;
        let watches =
            format!("- {{group: {GROUP}, version: v1, kind: Web, chart: helm-charts/web}}\n");
        std::fs::write(folder.path().join("watches.yaml"), watches)?;
        let client = cluster.client();
        define(&client, "Web").await?;
        let namespace = cluster.namespace("load").await?;
        Ok(Self { client, folder, namespace })
    }

    /// The project's folder.
    pub fn project(&self) -> &Path {
        self.folder.path()
    }

    /// Creates resources, and waits until all are deployed with their objects.
    pub async fn install(&self, count: usize) -> Result<Installed> {
        let webs = api(&self.client, GROUP, "Web", Some(self.namespace.name()));
        let begun = Instant::now();
        let creating = async {
            let all = stream::iter(0..count).map(|number| {
                let web =
                    resource("Web", &format!("web-{number:05}"), &json!({ "replicaCount": 0 }));
                let webs = webs.clone();
                async move {
                    webs.create(&PostParams::default(), &web?).await.map_err(anyhow::Error::from)
                }
            });
            all.buffer_unordered(CREATORS).try_for_each(|_| async { Ok(()) }).await?;
            anyhow::Ok(begun.elapsed())
        };
        let deployed = async {
            let at = when_deployed(&webs, count).await?;
            anyhow::Ok(at.into_values().max().unwrap_or(begun) - begun)
        };
        let (created, deployed) = futures::try_join!(creating, deployed)?;
        for (group, kind) in [("", "Service"), ("apps", "Deployment")] {
            let found =
                self.objects(group, kind).list_metadata(&kube::api::ListParams::default()).await?;
            ensure!(found.items.len() == count, "{} of {count} {kind}s", found.items.len());
        }
        Ok(Installed { created, deployed })
    }

    /// Deletes Services; how long until all are back.
    pub async fn lose_services(&self, count: usize) -> Result<Duration> {
        let services = self.objects("", "Service");
        let list = services.list_metadata(&kube::api::ListParams::default()).await?;
        let lost: Vec<(String, Option<String>)> = list
            .items
            .into_iter()
            .take(count)
            .map(|it| (it.metadata.name.unwrap_or_default(), it.metadata.uid))
            .collect();
        let begun = Instant::now();
        for (name, _) in &lost {
            services.delete(name, &DeleteParams::default()).await?;
        }
        for (name, uid) in &lost {
            while services.get_opt(name).await?.is_none_or(|it| it.metadata.uid == *uid) {
                if begun.elapsed() > DEADLINE {
                    bail!("Service {name} does not come back");
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
        Ok(begun.elapsed())
    }

    /// Brings more definitions to the cluster, which are none of ours.
    pub async fn define(&self, count: usize) -> Result<()> {
        let kinds = (0..count).map(|number| format!("Other{number:03}"));
        let all = stream::iter(kinds).map(|kind| {
            let client = self.client.clone();
            async move { define(&client, &kind).await }
        });
        all.buffer_unordered(CREATORS).try_for_each(|()| async { Ok(()) }).await
    }

    fn objects(&self, group: &str, kind: &str) -> Api<DynamicObject> {
        api(&self.client, group, kind, Some(self.namespace.name()))
    }
}

/// Makes a chart below helm-charts.
pub fn chart(helm: &Path, project: &Path, name: &str) -> Result<()> {
    let charts = project.join("helm-charts");
    std::fs::create_dir_all(&charts)?;
    let made = Command::new(helm).args(["create", name]).current_dir(&charts).output()?;
    ensure!(made.status.success(), "helm create: {}", String::from_utf8_lossy(&made.stderr));
    let text = CONFIG_MAP.replace("web.", &format!("{name}."));
    std::fs::write(charts.join(name).join("templates/configmap.yaml"), text)?;
    Ok(())
}

/// Brings a kind as operator-sdk scaffolds it, and waits until it is served.
pub async fn define(client: &kube::Client, kind: &str) -> Result<()> {
    let open = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let schema = json!({ "type": "object", "properties": { "spec": open, "status": open } });
    let singular = kind.to_lowercase();
    let (plural, name) = (format!("{singular}s"), format!("{singular}s.{GROUP}"));
    let definition: DynamicObject = serde_json::from_value(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": name },
        "spec": {
            "group": GROUP, "scope": "Namespaced",
            "names": { "kind": kind, "listKind": format!("{kind}List"), "plural": plural, "singular": singular },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": schema }, "subresources": { "status": {} },
            }],
        },
    }))?;
    let definitions = api(client, "apiextensions.k8s.io", "CustomResourceDefinition", None);
    definitions.create(&PostParams::default(), &definition).await.with_context(|| name.clone())?;
    let begun = Instant::now();
    while !says(&definitions.get(&name).await?, "Established") {
        ensure!(begun.elapsed() < DEADLINE, "{name} is never established");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

/// When each of so many resources first said Deployed, told by a watch.
pub async fn when_deployed(
    resources: &Api<DynamicObject>,
    count: usize,
) -> Result<std::collections::HashMap<String, Instant>> {
    let mut at = std::collections::HashMap::new();
    if count == 0 {
        return Ok(at);
    }
    let mut version = "0".to_owned();
    let begun = Instant::now();
    let mut known = HashSet::new();
    while begun.elapsed() < DEADLINE {
        let mut events = resources.watch(&WatchParams::default(), &version).await?.boxed();
        while let Some(event) = events.next().await {
            let (WatchEvent::Added(object) | WatchEvent::Modified(object)) = event? else {
                continue;
            };
            version = object.metadata.resource_version.clone().unwrap_or_default();
            let name = object.metadata.name.clone().unwrap_or_default();
            if says(&object, "Deployed") && known.insert(name.clone()) {
                at.insert(name, Instant::now());
                if at.len() == count {
                    return Ok(at);
                }
            }
        }
    }
    bail!("{} of {count} resources are deployed", at.len())
}

/// A resource of one of the bench's kinds.
pub fn resource(kind: &str, name: &str, spec: &Value) -> Result<DynamicObject> {
    let resource = json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": kind,
        "metadata": { "name": name }, "spec": spec,
    });
    Ok(serde_json::from_value(resource)?)
}

/// Where a kind is asked for.
pub fn api(
    client: &kube::Client,
    group: &str,
    kind: &str,
    namespace: Option<&str>,
) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind));
    match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    }
}

/// Whether a condition is true.
fn says(object: &DynamicObject, type_: &str) -> bool {
    let conditions = object.data.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().any(|it| it["type"] == type_ && it["status"] == "True")
}
