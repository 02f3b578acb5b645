//! Somebody else, between any two requests of ours: a helm command, or a person.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use catamaran_apimodel::Model;
use catamaran_release::record::codec;
use catamaran_release::{Release, Status};
use serde_json::{Value, json};

use crate::fate::{Deed, Fate};
use crate::stories::{Story, all};
use crate::support::config_map;
use crate::world::{Act, Doer, NAME, NAMESPACE, model, state};

const SECRETS: &str = "/api/v1/namespaces/shop/secrets";
const MAPS: &str = "/api/v1/namespaces/shop/configmaps";

fn send(model: &Model, method: &str, uri: &str, body: &Value) -> u16 {
    let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    model.answer(method, uri, "application/json", &bytes).0
}

/// The records as a helm command reads them, oldest first.
fn records(model: &Model) -> Vec<Release> {
    let secrets = model.objects("secrets");
    let records = secrets.iter().filter(|secret| secret["metadata"]["labels"]["owner"] == "helm");
    let mut records: Vec<Release> = records
        .map(|secret| {
            let text = secret["data"]["release"].as_str().expect("a payload");
            codec::decode(&STANDARD.decode(text).expect("base64")).expect("a record")
        })
        .collect();
    records.sort_by_key(|record| record.version);
    records
}

/// Writes a record as a helm command does: from its labels and its data alone, with no precondition.
fn write(model: &Model, method: &str, record: &Release) -> u16 {
    let name = format!("sh.helm.release.v1.{NAME}.v{}", record.version);
    let payload = codec::encode(&codec::pack(record).expect("packed"));
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1",
        "metadata": {"name": name, "labels": {
            "name": NAME, "owner": "helm", "status": record.info.status.to_string(),
            "version": record.version.to_string(), "modifiedAt": model.now().as_second().to_string(),
        }},
        "data": {"release": STANDARD.encode(payload)},
    });
    let uri = if method == "PUT" { format!("{SECRETS}/{name}") } else { SECRETS.to_owned() };
    send(model, method, &format!("{uri}?fieldManager=helm"), &secret)
}

/// Every record, as it is.
fn helm_writes_all_records(model: &Model) {
    for record in records(model) {
        assert_eq!(write(model, "PUT", &record), 200);
    }
}

/// The next revision as a helm command begins it; `None` where helm would refuse.
fn helm_begins(model: &Model) -> Option<Release> {
    let newest = records(model).pop()?;
    let info = &newest.info;
    if info.status.is_pending() || info.status == Status::Uninstalling {
        return None;
    }
    let mut next = newest.clone();
    next.version += 1;
    next.info.status = Status::PendingUpgrade;
    "Preparing upgrade".clone_into(&mut next.info.description);
    next.info.last_deployed = model.now().into();
    for value in ["1", "2"] {
        let ours = config_map("d", value).to_string();
        next.manifest = next.manifest.replace(&ours, &config_map("d", "helm").to_string());
    }
    (write(model, "POST", &next) == 201).then_some(next)
}

/// An upgrade of which `d` has another value.
fn helm_upgrades(model: &Model) {
    let before = records(model);
    let Some(mut next) = helm_begins(model) else { return };
    let mut map = config_map("d", "helm");
    map["metadata"]["labels"] = json!({"app.kubernetes.io/managed-by": "Helm"});
    map["metadata"]["annotations"] =
        json!({"meta.helm.sh/release-name": NAME, "meta.helm.sh/release-namespace": NAMESPACE});
    let uri = format!("{MAPS}/d?fieldManager=helm&force=true");
    model.answer("PATCH", &uri, "application/apply-patch+yaml", map.to_string().as_bytes());
    for mut old in before {
        if old.info.status == Status::Deployed {
            old.info.status = Status::Superseded;
            write(model, "PUT", &old);
        }
    }
    next.info.status = Status::Deployed;
    "by helm".clone_into(&mut next.info.description);
    write(model, "PUT", &next);
}

fn helm_dies_in_an_upgrade(model: &Model) {
    drop(helm_begins(model));
}

fn the_newest_record_is_deleted(model: &Model) {
    if let Some(newest) = records(model).pop() {
        let uri = format!("{SECRETS}/sh.helm.release.v1.{NAME}.v{}", newest.version);
        assert_eq!(send(model, "DELETE", &uri, &Value::Null), 200);
    }
}

fn an_object_is_deleted(model: &Model) {
    send(model, "DELETE", &format!("{MAPS}/d"), &Value::Null);
}

fn an_object_is_changed(model: &Model) {
    let mut map = model.object("configmaps", NAMESPACE, "d");
    if !map.is_null() {
        map["data"]["k"] = "edited".into();
        let uri = format!("{MAPS}/d?fieldManager=kubectl-edit");
        assert_eq!(send(model, "PUT", &uri, &map), 200);
    }
}

fn a_foreign_object_appears(model: &Model) {
    send(model, "POST", &format!("{MAPS}?fieldManager=x"), &config_map("d", "foreign"));
}

fn an_object_is_replaced_by_a_foreign_one(model: &Model) {
    if send(model, "DELETE", &format!("{MAPS}/d"), &Value::Null) == 200 {
        a_foreign_object_appears(model);
    }
}

/// Runs a story's last action with a stranger at this request, and again until it is done; what it said,
/// or `None` if the stranger never came.
async fn meet(begin: &Model, story: &Story, at: usize, act: fn(&Model)) -> Option<(Model, String)> {
    let model = begin.fork();
    let fate = Fate::new(at, Deed::Stranger(Arc::new(act)));
    let first = story.last.run(&model, fate.client(&model)).await;
    if !fate.struck() {
        return None;
    }
    let said = match first {
        Ok(()) | Err(_) if matches!(story.last.act, Act::Reconcile(_) | Act::Leave) => {
            // What the stranger did after our last look, a watch would tell.
            story.last.settle(&model).await
        }
        Ok(()) => "done".to_owned(),
        Err(_) => story.last.settle(&model).await,
    };
    if let Act::Reconcile(_) = story.last.act {
        let driver = story.last.driver(model.client(), &model);
        let history = driver.history(NAMESPACE, NAME).await.expect("a history");
        if history.deployed().is_some() {
            driver.repair(&history, None, &[]).await.ok();
        }
    }
    Some((model, said))
}

async fn begun(story: &Story) -> Model {
    let model = model();
    for doer in &story.before {
        doer.settle(&model).await;
        model.pass(60);
    }
    model
}

fn story(name: &str) -> Story {
    all().into_iter().find(|story| story.name == name).expect("a story")
}

/// Lets a stranger come before every request of these actions.
async fn on_each(
    stories: &[&str],
    act: fn(&Model),
    mut check: impl AsyncFnMut(&Story, &Model, &Model, String) -> Vec<String>,
) {
    let (mut wrong, mut met) = (Vec::new(), 0);
    for story in stories.iter().map(|name| story(name)) {
        let begin = begun(&story).await;
        let sound = begin.fork();
        story.last.settle(&sound).await;
        let mut at = 1;
        while let Some((model, said)) = meet(&begin, &story, at, act).await {
            let found = check(&story, &sound, &model, said).await;
            wrong.extend(
                found.into_iter().map(|it| format!("{}, before request {at}: {it}", story.name)),
            );
            (met, at) = (met + 1, at + 1);
        }
    }
    assert!(wrong.is_empty() && met > 10, "{} things, {met} met:\n{wrong:#?}", wrong.len());
}

/// What differs of the objects by content, whoever owns which field, but for some.
async fn other_objects(sound: &Model, model: &Model, but: &[&str]) -> Vec<String> {
    let content = |mut object: Value| {
        object["metadata"]["managedFields"] = Value::Null;
        object["metadata"]["generation"] = Value::Null;
        object["status"] = Value::Null;
        if let Some(run) = object["metadata"]["annotations"].get_mut("catamaran/hook-run") {
            *run = Value::Null; // another revision's
        }
        object
    };
    let (shall, is) = (state(sound).await.objects, state(model).await.objects);
    let names = is.keys().chain(shall.keys().filter(|name| !is.contains_key(*name)));
    names
        .filter(|name| !but.iter().any(|but| name.ends_with(but)))
        .filter(|name| {
            is.get(*name).cloned().map(content) != shall.get(*name).cloned().map(content)
        })
        .map(|name| format!("{name}: {:?}, and not {:?}", is.get(name), shall.get(name)))
        .collect()
}

const CHANGES: [&str; 4] = ["install", "upgrade", "upgrade, no hooks", "rollback"];

/// The revisions in short, such as `1 superseded, 2 deployed`.
async fn revisions(model: &Model) -> String {
    let history = state(model).await.history;
    let told: Vec<String> =
        history.iter().map(|(version, status, ..)| format!("{version} {status}")).collect();
    told.join(", ")
}

#[tokio::test]
async fn records_that_helm_writes_again_change_nothing() {
    let all = [&CHANGES[..], &["uninstall", "tests"]].concat();
    on_each(&all, helm_writes_all_records, async |_, sound, model, said| {
        let mut wrong = other_objects(sound, model, &[]).await;
        let (is, shall) = (state(model).await.history, state(sound).await.history);
        if is != shall || said != "done" {
            wrong.push(format!("{said}: {is:?}, and not {shall:?}"));
        }
        wrong
    })
    .await;
}

#[tokio::test]
async fn an_upgrade_by_helm_is_kept_in_the_history_and_ours_comes_after_it() {
    on_each(
        &["install", "upgrade", "upgrade, no hooks"],
        helm_upgrades,
        async |_, sound, model, said| {
            let mut wrong = other_objects(sound, model, &["/c"]).await;
            let history = state(model).await.history;
            let newest = history.last().map(|(_, status, ..)| status.as_str());
            let deployed = history.iter().filter(|(_, status, ..)| status == "deployed").count();
            if said != "done" || newest != Some("deployed") || deployed != 1 {
                wrong.push(format!("{said}: {}", revisions(model).await));
            }
            wrong
        },
    )
    .await;
}

#[tokio::test]
async fn a_helm_that_died_is_waited_for_and_then_taken_over() {
    on_each(&["upgrade, no hooks"], helm_dies_in_an_upgrade, async |_, sound, model, said| {
        let mut wrong = other_objects(sound, model, &[]).await;
        let revisions = revisions(model).await;
        if said != "done" || revisions.contains("pending") || !revisions.ends_with("deployed") {
            wrong.push(format!("{said}: {revisions}"));
        }
        wrong
    })
    .await;
}

#[tokio::test]
async fn an_uninstall_leaves_nothing_whatever_helm_does_meanwhile() {
    for act in [helm_upgrades, helm_dies_in_an_upgrade] {
        on_each(&["uninstall", "uninstall, no hooks"], act, async |_, sound, model, said| {
            let mut wrong = other_objects(sound, model, &[]).await;
            if said != "done" || !revisions(model).await.is_empty() {
                wrong.push(format!("{said}: {}", revisions(model).await));
            }
            wrong
        })
        .await;
    }
}

/// But for an object that no other record shows: `b`, where the one that showed it is gone.
#[tokio::test]
async fn a_record_that_somebody_deletes_costs_a_revision_and_nothing_else() {
    on_each(
        &["install", "upgrade"],
        the_newest_record_is_deleted,
        async |_, sound, model, said| {
            let mut wrong = other_objects(sound, model, &["/b"]).await;
            let revisions = revisions(model).await;
            if said != "done" || !revisions.ends_with("deployed") || revisions.contains("pending") {
                wrong.push(format!("{said}: {revisions}"));
            }
            wrong
        },
    )
    .await;
}

#[tokio::test]
async fn objects_that_somebody_changes_or_deletes_are_brought_back() {
    for act in [an_object_is_deleted, an_object_is_changed] {
        on_each(
            &["install", "upgrade", "upgrade, no hooks"],
            act,
            async |_, sound, model, said| {
                let mut wrong = other_objects(sound, model, &[]).await;
                if said != "done" || revisions(model).await != revisions(sound).await {
                    wrong.push(format!("{said}: {}", revisions(model).await));
                }
                wrong
            },
        )
        .await;
    }
}

#[tokio::test]
async fn what_belongs_to_somebody_else_stays_his() {
    on_each(
        &["install", "install, no hooks"],
        a_foreign_object_appears,
        async |_, _, model, said| {
            let map = model.object("configmaps", NAMESPACE, "d");
            let is_foreign = map["data"]["k"] == "foreign";
            let refused = said.contains("cannot be imported into the current release");
            if is_foreign == refused { vec![] } else { vec![format!("{said}: {map}")] }
        },
    )
    .await;
    on_each(
        &["uninstall", "uninstall, no hooks"],
        an_object_is_replaced_by_a_foreign_one,
        async |_, sound, model, said| {
            let mut wrong = other_objects(sound, model, &["/d"]).await;
            let map = model.object("configmaps", NAMESPACE, "d");
            if said != "done" || !(map.is_null() || map["data"]["k"] == "foreign") {
                wrong.push(format!("{said}: {map}"));
            }
            wrong
        },
    )
    .await;
}

#[tokio::test]
async fn a_namespace_on_its_way_out_ends_every_action() {
    for name in ["install", "upgrade", "rollback", "uninstall", "install with a definition"] {
        let story = story(name);
        let begin = begun(&story).await;
        for at in 1.. {
            let leaves = |model: &Model| {
                send(model, "DELETE", "/api/v1/namespaces/shop", &Value::Null);
            };
            let model = begin.fork();
            let fate = Fate::new(at, Deed::Stranger(Arc::new(leaves)));
            story.last.run(&model, fate.client(&model)).await.ok();
            if !fate.struck() {
                break;
            }
            let gone = Doer::from(Act::Leave);
            assert_eq!(gone.settle(&model).await, "done", "{name}, before request {at}");
            for _ in 0..5 {
                model.tick();
            }
            assert_eq!(model.object("namespaces", "", NAMESPACE), Value::Null, "{name}, {at}");
        }
    }
}
