//! A release to play with, and the ways to look at it.

use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use catamaran_chart::{Chart, Hook, Manifest, ReleaseFacts, Rendered};
use catamaran_cluster::mapper::Mapper;
use catamaran_localcluster::{LocalCluster, shared};
use catamaran_release::record::Hook as RecordedHook;
use catamaran_release::{
    Action, Applied, DesiredState, Driver, Error, ObjectId, Owner, Tested, Uninstalled,
};
use kube::Client;
use kube::api::{Api, DynamicObject};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Map, Value, json};

/// What no error, log or status may ever show.
pub const CANARY: &str = "canary-in-the-coal-mine";

pub async fn cluster() -> LocalCluster {
    shared().await.expect("a local cluster")
}

pub fn driver(client: &Client) -> Driver {
    Driver::new(client.clone(), Mapper::new(client.clone()))
}

/// A chart rendered by hand.
#[derive(Clone)]
pub struct DesiredRelease {
    pub chart: Chart,
    pub config: Map<String, Value>,
    pub name: String,
    pub namespace: String,
    pub objects: Vec<Value>,
    /// Besides a test, which is always there.
    pub hooks: Vec<Value>,
    pub owner: Option<Owner>,
}

/// The longest that a hook may take here.
const PATIENCE: Duration = Duration::from_mins(1);

impl DesiredRelease {
    pub fn new(namespace: &str, name: &str, objects: Vec<Value>) -> Self {
        let metadata =
            json!({"name": "demo", "version": "1.0.0", "appVersion": "9", "apiVersion": "v2"});
        let metadata = serde_json::from_value(metadata).expect("metadata");
        let values =
            json!({"greeting": "hello", "count": 1.0}).as_object().cloned().unwrap_or_default();
        Self {
            chart: Chart { metadata, values, ..Chart::default() },
            config: json!({"greeting": "moin"}).as_object().cloned().unwrap_or_default(),
            name: name.to_owned(),
            namespace: namespace.to_owned(),
            objects,
            hooks: Vec::new(),
            owner: None,
        }
    }

    pub fn rendered(&self) -> Rendered {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let manifest = |object: &Value| Manifest {
            source: format!("demo/templates/{}.yaml", text(&object["kind"]).to_lowercase()),
            content: object.to_string(),
            api_version: text(&object["apiVersion"]),
            kind: text(&object["kind"]),
            name: text(&object["metadata"]["name"]),
        };
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": format!("{}-test", self.name), "annotations": {"helm.sh/hook": "test"}},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox"}]},
        });
        let hook = Hook {
            name: format!("{}-test", self.name),
            kind: "Pod".into(),
            path: "demo/templates/tests/test.yaml".into(),
            manifest: pod.to_string(),
            events: vec!["test".into()],
            weight: 0,
            delete_policies: vec![],
            output_log_policies: vec![],
        };
        Rendered {
            manifests: self.objects.iter().map(manifest).collect(),
            hooks: self.hooks.iter().map(hook_of).chain([hook]).collect(),
            notes: format!("Notes of {}\n", self.name),
            ..Rendered::default()
        }
    }

    /// What the operator does at each reconcile: compare, render again if need be, apply.
    pub async fn reconcile(&self, driver: &Driver) -> Result<Applied, Error> {
        let history = driver.history(&self.namespace, &self.name).await?;
        let rendered = self.rendered();
        let mut facts = history.current_facts();
        if let Action::RenderAgain(next) = history.decide(&self.desired(&rendered, &facts))? {
            facts = next;
        }
        driver.apply(&history, &self.desired(&rendered, &facts)).await
    }

    /// The same until nothing is waited for any more.
    pub async fn settle(&self, driver: &Driver) -> Result<Applied, Error> {
        until_done(async || self.reconcile(driver).await).await
    }

    /// Rolls it back, hooks and all.
    pub async fn roll_back(&self, driver: &Driver, to: u32) -> Result<Applied, Error> {
        let owner = self.owner.as_ref();
        until_done(async || {
            let history = driver.history(&self.namespace, &self.name).await?;
            driver.rollback(&history, Some(to), owner).await
        })
        .await
    }

    /// Runs its tests, those that are asked for.
    pub async fn test(
        &self,
        driver: &Driver,
        which: impl Fn(&RecordedHook) -> bool,
    ) -> Result<Tested, Error> {
        until_done(async || {
            let mut history = driver.history(&self.namespace, &self.name).await?;
            driver.test(&mut history, &which, None).await
        })
        .await
    }

    /// Uninstalls it, hooks and all.
    pub async fn leave(&self, driver: &Driver) -> Result<Uninstalled, Error> {
        let owner = self.owner.as_ref();
        until_done(async || driver.uninstall_owned(&self.namespace, &self.name, owner).await).await
    }

    pub fn desired<'a>(
        &'a self,
        rendered: &'a Rendered,
        facts: &'a ReleaseFacts,
    ) -> DesiredState<'a> {
        let desired = DesiredState::new(&self.chart, &self.config, rendered, facts);
        match &self.owner {
            Some(owner) => desired.owned_by(owner),
            None => desired,
        }
    }
}

/// Calls again what returned because it would have to wait, as the operator does.
pub async fn until_done<T>(mut call: impl AsyncFnMut() -> Result<T, Error>) -> Result<T, Error> {
    let begun = Instant::now();
    loop {
        match call().await {
            Err(Error::Waiting(waiting)) => {
                assert!(begun.elapsed() < PATIENCE, "{waiting:?}");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            done => return done,
        }
    }
}

/// A hook as a rendering has it.
fn hook_of(object: &Value) -> Hook {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let annotation = |key: &str| text(&object["metadata"]["annotations"][format!("helm.sh/{key}")]);
    let words = |key: &str| {
        let all = annotation(key);
        all.split(',').filter(|word| !word.is_empty()).map(str::to_owned).collect()
    };
    Hook {
        name: text(&object["metadata"]["name"]),
        kind: text(&object["kind"]),
        path: "demo/templates/hooks.yaml".into(),
        manifest: object.to_string(),
        events: words("hook"),
        weight: annotation("hook-weight").parse().unwrap_or_default(),
        delete_policies: words("hook-delete-policy"),
        output_log_policies: words("hook-output-log-policy"),
    }
}

/// Makes an object a hook.
pub fn hook(mut object: Value, events: &str, weight: i32, policies: &str) -> Value {
    let annotations = &mut object["metadata"]["annotations"];
    annotations["helm.sh/hook"] = events.into();
    annotations["helm.sh/hook-weight"] = weight.to_string().into();
    if !policies.is_empty() {
        annotations["helm.sh/hook-delete-policy"] = policies.into();
    }
    object
}

/// A Job whose pod ends with this code.
pub fn job(name: &str, exit_code: i32) -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
        "spec": {"backoffLimit": 0, "template": {
            "metadata": {"annotations": {"fake.catamaran.test/exit-code": exit_code.to_string()}},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox"}]},
        }},
    })
}

/// A Job; null if it is not there.
pub async fn live_job(client: &Client, namespace: &str, name: &str) -> Value {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("batch", "v1", "Job"));
    let api = Api::<DynamicObject>::namespaced_with(client.clone(), namespace, &resource);
    let found = api.get_opt(name).await.expect("an answer");
    found.map_or(Value::Null, |object| serde_json::to_value(object).expect("json"))
}

pub fn config_map(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": value}})
}

pub fn deployment(name: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": {
            "metadata": {"labels": {"app": name}},
            "spec": {"containers": [{"name": "c", "image": "nginx"}]},
        }},
    })
}

pub fn secret(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": {"k": value}})
}

pub fn service(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
        "spec": {"ports": [{"port": 80}], "selector": {"app": name}},
    })
}

/// An API of one kind of the core group.
pub fn api(client: &Client, namespace: &str, kind: &str) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", kind));
    Api::namespaced_with(client.clone(), namespace, &resource)
}

/// An object as JSON; null if it is not there.
pub async fn live(client: &Client, namespace: &str, kind: &str, name: &str) -> Value {
    let found = api(client, namespace, kind).get_opt(name).await.expect("an answer");
    found.map_or(Value::Null, |object| serde_json::to_value(object).expect("json"))
}

pub fn config_map_id(namespace: &str, name: &str) -> ObjectId {
    ObjectId {
        group: String::new(),
        kind: "ConfigMap".into(),
        namespace: Some(namespace.into()),
        name: name.into(),
    }
}

/// The revisions and their statuses, oldest first.
pub async fn revisions(driver: &Driver, namespace: &str, name: &str) -> Vec<(u32, String)> {
    let history = driver.history(namespace, name).await.expect("a history");
    history.releases().map(|release| (release.version, release.info.status.to_string())).collect()
}

/// One of the helm CLIs in one namespace.
#[derive(Clone)]
pub struct Helm {
    pub program: Arc<std::path::Path>,
    pub kubeconfig: Arc<std::path::Path>,
    pub namespace: String,
}

impl Helm {
    pub fn both(cluster: &LocalCluster, namespace: &str) -> [Self; 2] {
        let tools = cluster.tools().expect("tools");
        [tools.helm(), tools.helm3()].map(|program| Self {
            program: program.into(),
            kubeconfig: cluster.kubeconfig().into(),
            namespace: namespace.to_owned(),
        })
    }

    /// Its output, or what it complains of.
    pub fn run(&self, args: &[&str]) -> Result<String, String> {
        let output = Command::new(&*self.program)
            .args(args)
            .args(["--namespace", &self.namespace])
            .env("KUBECONFIG", &*self.kubeconfig)
            .output()
            .expect("helm runs");
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
    }

    pub fn say(&self, args: &[&str]) -> String {
        self.run(args)
            .unwrap_or_else(|error| panic!("{} {args:?}: {error}", self.program.display()))
    }

    pub fn json(&self, args: &[&str]) -> Value {
        let text = self.say(&[args, &["-o", "json"]].concat());
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{args:?}: {error}: {text}"))
    }
}
