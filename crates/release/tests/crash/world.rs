//! Actions on a model, and what is left after them.

use std::collections::BTreeMap;

use catamaran_apimodel::Model;
use catamaran_cluster::mapper::Mapper;
use catamaran_release::{ActionOptions, Clock, Driver, Error, Status};
use kube::Client;
use serde_json::{Value, json};

use crate::support::DesiredRelease;

/// One thing that somebody wants done.
#[derive(Clone)]
pub enum Act {
    /// The release shall be this: install, upgrade, repair.
    Reconcile(Box<DesiredRelease>),
    /// The same; a revision that fails is taken back: rolled back to the newest that was deployed, or
    /// uninstalled if there is none.
    OrBack(Box<DesiredRelease>),
    /// The release shall be what this revision was.
    RollBack(u32),
    /// The release shall go.
    Leave,
    /// Its tests of these names shall run.
    Test(&'static str),
}

/// Somebody who wants it done, in whatever way.
#[derive(Clone)]
pub struct Doer {
    pub act: Act,
    pub action_options: ActionOptions,
    pub history_max: usize,
}

impl From<Act> for Doer {
    fn from(act: Act) -> Self {
        Self { act, action_options: ActionOptions::default(), history_max: 10 }
    }
}

/// More rounds than anything takes.
const ROUNDS: usize = 400;

pub const NAMESPACE: &str = "shop";
pub const NAME: &str = "rel";

pub fn model() -> Model {
    let model = Model::new();
    create(
        &model,
        "namespaces",
        &json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE},
        }),
    );
    model
}

/// Creates an object as somebody else.
pub fn create(model: &Model, path: &str, object: &Value) {
    let uri = format!("/api/v1/{path}?fieldManager=somebody");
    let (code, answer) =
        model.answer("POST", &uri, "application/json", object.to_string().as_bytes());
    assert_eq!(code, 201, "{path}: {answer}");
}

impl Doer {
    pub fn driver(&self, client: Client, model: &Model) -> Driver {
        let clock = model.clone();
        Driver::new(client.clone(), Mapper::new(client))
            .clock(Clock::new(move || clock.now()))
            .options(self.action_options.clone())
            .history_max(self.history_max)
    }

    /// Does it, as the operator does: calls again whatever may do better in a while.
    pub async fn run(&self, model: &Model, client: Client) -> Result<(), Error> {
        let driver = self.driver(client, model);
        for _ in 0..ROUNDS {
            match self.call(&driver).await {
                Err(Error::Busy { retry_after, .. }) => {
                    model.pass(retry_after.as_secs().cast_signed() + 1);
                }
                // An answer that was lost ends this run: another one follows.
                Err(error) if error.is_transient() && !matches!(error, Error::Request(_)) => {
                    model.tick();
                }
                done => return done,
            }
        }
        panic!("it never ends: {:?}", self.call(&driver).await);
    }

    async fn call(&self, driver: &Driver) -> Result<(), Error> {
        match &self.act {
            Act::Reconcile(wish) => wish.reconcile(driver).await.map(drop),
            Act::OrBack(wish) => self.or_back(driver, wish).await,
            Act::RollBack(to) => {
                let history = driver.history(NAMESPACE, NAME).await?;
                let is_done = history
                    .deployed()
                    .is_some_and(|deployed| deployed.info.rollback_revision == *to);
                // Somebody who asks again asks for another rollback, as with helm.
                if is_done {
                    Ok(())
                } else {
                    driver.rollback(&history, Some(*to), None).await.map(drop)
                }
            }
            Act::Leave => driver.uninstall(NAMESPACE, NAME).await.map(drop),
            Act::Test(prefix) => {
                let mut history = driver.history(NAMESPACE, NAME).await?;
                driver
                    .test(&mut history, |hook| hook.name.starts_with(prefix), None)
                    .await
                    .map(drop)
            }
        }
    }

    /// What is to be taken back is told by the history alone, so that another life goes on with it.
    async fn or_back(&self, driver: &Driver, wish: &DesiredRelease) -> Result<(), Error> {
        let history = driver.history(NAMESPACE, NAME).await?;
        let is_good = |status: &Status| matches!(status, Status::Deployed | Status::Superseded);
        let good = history.releases().rev().find(|release| is_good(&release.info.status));
        let good = good.map(|release| release.version);
        let newest = history.newest().map(|newest| (&newest.info.status, &newest.info));
        match (newest, good) {
            (Some((Status::Failed, _)), Some(to)) => {
                driver.rollback(&history, Some(to), None).await.map(drop)
            }
            (Some((Status::PendingRollback, info)), _) => {
                driver.rollback(&history, Some(info.rollback_revision), None).await.map(drop)
            }
            (Some((Status::Failed | Status::Uninstalling, _)), None) => {
                driver.uninstall(NAMESPACE, NAME).await.map(drop)
            }
            (Some((Status::Deployed, info)), _) if info.rollback_revision > 0 => Ok(()),
            _ => match wish.reconcile(driver).await {
                Err(error) if !error.is_transient() && !matches!(error, Error::Busy { .. }) => {
                    Box::pin(self.or_back(driver, wish)).await
                }
                done => done.map(drop),
            },
        }
    }

    /// Does it with nothing in its way, to its end.
    pub async fn settle(&self, model: &Model) -> String {
        for _ in 0..ROUNDS {
            match self.run(model, model.client()).await {
                Ok(()) => return "done".to_owned(),
                Err(error) if error.is_transient() => model.tick(),
                Err(error) => return error.to_string(),
            }
        }
        panic!("it is never settled");
    }
}

/// A revision's number, status and description, and how its hooks ended.
pub type Revision = (u32, String, String, Vec<(String, String)>);

/// What there is, by content: nothing that tells one run from another.
#[derive(Debug, PartialEq)]
pub struct State {
    /// Everything but records.
    pub objects: BTreeMap<String, Value>,
    /// The revisions: what `helm history` shows, and how their hooks ended.
    pub history: Vec<Revision>,
}

pub const RESOURCES: [&str; 10] = [
    "namespaces",
    "configmaps",
    "secrets",
    "services",
    "deployments",
    "jobs",
    "roles",
    "clusterroles",
    "customresourcedefinitions",
    "things",
];

pub async fn state(model: &Model) -> State {
    let driver = Doer::from(Act::Leave).driver(model.client(), model);
    let history = driver.history(NAMESPACE, NAME).await.expect("a history");
    let mut objects = BTreeMap::new();
    for resource in RESOURCES {
        for object in model.objects(resource) {
            let kind = object["type"].as_str().unwrap_or_default();
            // A piece that no record names is swept with the next revision, or with the last one.
            let is_piece = kind.starts_with("catamaran/release-") && history.newest().is_some();
            if kind == "helm.sh/release.v1" || is_piece {
                continue;
            }
            let name =
                format!("{resource}/{}", object["metadata"]["name"].as_str().unwrap_or_default());
            objects.insert(name, by_content(object));
        }
    }
    let told = |release: &std::sync::Arc<catamaran_release::Release>| {
        let hooks = release.hooks.iter();
        let hooks = hooks.map(|hook| (hook.name.clone(), hook.last_run.phase.clone())).collect();
        let info = &release.info;
        (release.version, info.status.to_string(), info.description.clone(), hooks)
    };
    State { objects, history: history.releases().map(told).collect() }
}

/// An object without what the API server counts, and without times.
pub fn by_content(mut object: Value) -> Value {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for field in ["uid", "resourceVersion", "creationTimestamp", "deletionTimestamp"] {
            metadata.remove(field);
        }
    }
    if let Some(entries) = object["metadata"]["managedFields"].as_array_mut() {
        for entry in entries.iter_mut().filter_map(Value::as_object_mut) {
            entry.remove("time");
        }
    }
    if let Some(status) = object["status"].as_object_mut() {
        status.remove("startTime");
    }
    if let Some(run) = object["metadata"]["annotations"].get_mut("catamaran/hook-run") {
        let text = run.as_str().unwrap_or_default();
        let told: Vec<&str> = text.splitn(3, '.').take(2).collect();
        *run = told.join(".").into();
    }
    object
}

/// How often each object was created and deleted.
pub fn writes(model: &Model, skip: usize) -> BTreeMap<String, (usize, usize)> {
    let mut counted: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for served in model.served().into_iter().skip(skip).filter(|served| !served.dry_run) {
        match (served.method.as_str(), served.code) {
            // The record's name is not in the path of its creation.
            ("POST" | "PATCH", 201) => counted.entry(served.path).or_default().0 += 1,
            ("DELETE", 200) => counted.entry(served.path).or_default().1 += 1,
            _ => {}
        }
    }
    counted
}
