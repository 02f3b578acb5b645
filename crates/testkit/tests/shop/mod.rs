//! A chart kind of the tests: a Shop, whose objects are its values.

#![allow(dead_code)] // each test file uses its own part

use std::path::Path;
use std::sync::{Arc, Mutex};

use catamaran_operator::charts::{
    Action, ChartKind, Context, Error, Logic, Outcome, PendingAction, Values,
};
use catamaran_operator::{Manager, Options};
use catamaran_testkit::{Bench, Running, becomes};
use k8s_openapi::api::core::v1::{ConfigMap, Event, Secret};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

pub const OPERATOR: &str = "shops";
const GROUP: &str = "code.catamaran.dev";
/// Objects that the values tell.
pub const MIRROR: &str = "{{ range .Values.objects }}\n---\n{{ toYaml . }}\n{{ end }}\n";

/// A namespace, and the chart in a folder.
pub struct Stage {
    pub bench: Bench,
    pub folder: tempfile::TempDir,
    pub shops: Api<DynamicObject>,
}

impl Stage {
    pub async fn new(name: &str) -> Self {
        Self::of(name, MIRROR).await
    }

    /// With a chart of this template.
    pub async fn of(name: &str, template: &str) -> Self {
        Self::beside(name, template, &[]).await
    }

    /// Beside other kinds.
    pub async fn beside(name: &str, template: &str, others: &[CustomResourceDefinition]) -> Self {
        let bench = Bench::new(name, &[&[definition()], others].concat()).await;
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "Chart.yaml", "apiVersion: v2\nname: demo\nversion: 1.0.0\n");
        write(folder.path(), "templates/all.yaml", template);
        let gvk = GroupVersionKind::gvk(GROUP, "v1", "Shop");
        let resource = ApiResource::from_gvk(&gvk);
        let shops = Api::namespaced_with(bench.client(), &bench.namespace, &resource);
        Self { bench, folder, shops }
    }

    /// The kind, with nothing configured.
    pub fn kind(&self) -> ChartKind {
        ChartKind::load((GROUP, "v1", "Shop"), self.folder.path()).unwrap()
    }

    /// Runs an operator of this kind.
    pub fn run(&self, kind: ChartKind) -> Running {
        self.bench.run(|options: Options| Manager::native(OPERATOR, options).chart(kind))
    }

    pub async fn create(&self, name: &str, spec: Value) {
        self.create_with(name, json!({}), spec).await;
    }

    pub async fn create_with(&self, name: &str, mut metadata: Value, spec: Value) {
        metadata["name"] = name.into();
        let shop = json!({ "apiVersion": format!("{GROUP}/v1"), "kind": "Shop", "metadata": metadata, "spec": spec });
        let shop = serde_json::from_value(shop).unwrap();
        self.shops.create(&PostParams::default(), &shop).await.unwrap();
    }

    pub async fn patch(&self, name: &str, patch: Value) {
        self.shops.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    pub async fn delete(&self, name: &str) {
        self.shops.delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// Waits until a condition has this reason.
    pub async fn says(&self, name: &str, type_: &str, reason: &str) -> DynamicObject {
        let what = format!("{type_} for {reason}");
        becomes(&self.shops, name, &what, |shop| field(shop, type_, "reason") == reason).await
    }

    /// Waits until the shop is Ready as it is.
    pub async fn ready(&self, name: &str) -> DynamicObject {
        let is_ready = |shop: &DynamicObject| {
            field(shop, "Ready", "status") == "True"
                && shop.data["status"]["observedGeneration"] == json!(shop.metadata.generation)
        };
        becomes(&self.shops, name, "Ready", is_ready).await
    }

    pub async fn config_map(&self, name: &str, data: Value) {
        let map = serde_json::from_value(map(name, data)).unwrap();
        let maps: Api<ConfigMap> = self.bench.api();
        let params = PatchParams::apply("test").force();
        let map: ConfigMap = map;
        maps.patch(name, &params, &Patch::Apply(&map)).await.unwrap();
    }

    /// What a ConfigMap holds, once it is there and `want` likes that.
    pub async fn holds(&self, name: &str, want: Value) -> ConfigMap {
        let maps: Api<ConfigMap> = self.bench.api();
        let what = want.to_string();
        becomes(&maps, name, &what, |map| json!(map.data) == want).await
    }

    /// The revisions of a release, as `v2 superseded`.
    pub async fn revisions(&self, release: &str) -> Vec<String> {
        let params = ListParams::default().labels(&format!("owner=helm,name={release}"));
        let records: Api<Secret> = self.bench.api();
        let records = records.list(&params).await.unwrap();
        let mut told: Vec<String> = records
            .into_iter()
            .map(|record| format!("v{} {}", record.labels()["version"], record.labels()["status"]))
            .collect();
        told.sort();
        told
    }

    /// Runs helm 3 in the namespace; what it prints.
    pub fn helm3(&self, arguments: &[&str]) -> String {
        let output = std::process::Command::new(self.bench.cluster.tools().unwrap().helm3())
            .args(["--namespace", &*self.bench.namespace])
            .args(arguments)
            .env("KUBECONFIG", self.bench.cluster.kubeconfig())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Whether an event with this reason and note was told of a shop.
    pub async fn has_event(&self, reason: &str, note: &str) -> bool {
        let events: Api<Event> = self.bench.api();
        let events = events.list(&ListParams::default()).await.unwrap();
        events.into_iter().any(|event| {
            event.reason.as_deref() == Some(reason)
                && event.message.is_some_and(|told| told.contains(note))
        })
    }
}

fn write(folder: &Path, path: &str, text: &str) {
    let path = folder.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn definition() -> CustomResourceDefinition {
    let open = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    serde_json::from_value(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("shops.{GROUP}") },
        "spec": {
            "group": GROUP, "scope": "Namespaced",
            "names": { "kind": "Shop", "listKind": "ShopList", "plural": "shops", "singular": "shop" },
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": { "type": "object", "properties": { "spec": open, "status": open } } },
            }],
        },
    }))
    .unwrap()
}

/// A ConfigMap.
pub fn map(name: &str, data: Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": data })
}

/// A spec whose one object is a ConfigMap `web` with this in it.
pub fn web(value: &str) -> Value {
    json!({ "objects": [map("web", json!({ "a": value }))] })
}

/// A field of a condition, or "".
pub fn field<'a>(shop: &'a DynamicObject, type_: &str, field: &str) -> &'a str {
    let conditions = shop.data.pointer("/status/conditions").and_then(Value::as_array);
    let found = conditions.into_iter().flatten().find(|condition| condition["type"] == type_);
    found.and_then(|condition| condition[field].as_str()).unwrap_or_default()
}

/// Logic that takes down what it sees, and is told what to refuse.
#[derive(Clone, Default)]
pub struct Notebook {
    seen: Arc<Mutex<Vec<String>>>,
    refuses: Arc<Mutex<Vec<(Action, &'static str)>>>,
    /// Whether `after` fails.
    pub deaf: Arc<std::sync::atomic::AtomicBool>,
}

impl Notebook {
    pub fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }

    /// Refuses an action from now on, in a manner.
    pub fn refuse(&self, action: Action, how: &'static str) {
        self.refuses.lock().unwrap().push((action, how));
    }

    pub fn allow(&self) {
        self.refuses.lock().unwrap().clear();
    }

    fn note(&self, line: String) {
        self.seen.lock().unwrap().push(line);
    }
}

impl Logic for Notebook {
    async fn values(&self, ctx: &Context<'_>, mut values: Values) -> Result<Values, Error> {
        ctx.status("looked", true);
        if let Some(size) = ctx.annotations().get("size") {
            values.insert("size".to_owned(), size.as_str().into());
        }
        Ok(values)
    }

    async fn before(&self, ctx: &Context<'_>, planned: &PendingAction<'_>) -> Result<(), Error> {
        let size = planned.values.get("size").map(Value::to_string).unwrap_or_default();
        let deployed = planned.deployed.map_or(0, |release| release.version);
        let objects = planned.manifest.matches("kind:").count();
        let PendingAction { action, release, .. } = planned;
        self.note(format!(
            "before {action:?} {release} after v{deployed}: {objects} objects {size}"
        ));
        let refuses = self.refuses.lock().unwrap().clone();
        match refuses.iter().find(|(refused, _)| refused == action) {
            Some((_, "waiting")) => Err(Error::waiting("NotNow", "the shop is open")),
            Some((_, "permanent")) => Err(Error::Permanent("never".to_owned())),
            Some(_) => {
                ctx.warn("Refused", "the shop is open");
                Err(Error::transient("not yet"))
            }
            None => Ok(()),
        }
    }

    async fn after(
        &self,
        ctx: &Context<'_>,
        action: Action,
        outcome: Outcome<'_>,
    ) -> Result<(), Error> {
        self.note(match outcome {
            Outcome::Deployed(release) => format!("after {action:?}: v{}", release.version),
            Outcome::Uninstalled => format!("after {action:?}: gone"),
            Outcome::Failed(_) => format!("after {action:?}: failed"),
            _ => "after something new".to_owned(),
        });
        if self.deaf.load(std::sync::atomic::Ordering::Relaxed) {
            ctx.requeue(std::time::Duration::from_millis(200));
            return Err(Error::waiting("Deaf", "tell me again"));
        }
        Ok(())
    }
}
