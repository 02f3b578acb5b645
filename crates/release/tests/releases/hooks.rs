//! Hooks: their order beside the real helm's, what becomes of their objects, failures, and ends in
//! the midst of it all.

use std::time::Duration;

use catamaran_localcluster::{AuditLog, LocalCluster, Mark, Request};
use catamaran_release::{ActionResult, Error, HookReason};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::cli::Folder;
use crate::kill::{End, cut_short};
use crate::support::{
    DesiredRelease, Helm, api, cluster, config_map, driver, hook, job, live, live_job, revisions,
};

/// A release with hooks at all events, of several weights and policies.
fn ceremonious(namespace: &str, name: &str, value: &str) -> DesiredRelease {
    let named = |suffix: &str| format!("{name}-{suffix}");
    let mut wish = DesiredRelease::new(
        namespace,
        name,
        vec![config_map(&named("one"), value), config_map(&named("two"), value)],
    );
    let both = "before-hook-creation,hook-succeeded";
    wish.hooks = vec![
        hook(config_map(&named("helper"), "v"), "pre-install,pre-upgrade", -5, both),
        hook(config_map(&named("last"), "v"), "post-delete", 0, ""),
        hook(job(&named("c"), 0), "pre-install,pre-upgrade", 0, both),
        hook(job(&named("b"), 0), "pre-install,post-install", 0, ""),
        hook(job(&named("after"), 0), "post-upgrade,post-install", -1, ""),
        hook(job(&named("back"), 0), "pre-rollback", 0, ""),
        hook(config_map(&named("again"), "v"), "post-rollback,pre-rollback", 1, "hook-succeeded"),
        hook(job(&named("farewell"), 0), "pre-delete", 0, "hook-succeeded"),
    ];
    wish
}

/// What was written to a release's own objects and hooks since a mark, in order, without what was
/// refused.
fn written(log: &AuditLog, mark: Mark, namespace: &str) -> Vec<String> {
    let by_release = |r: &&Request| {
        let agent = r.user_agent.starts_with("Helm") || r.user_agent.starts_with("hooks-test");
        agent && r.namespace == namespace && r.name.starts_with("rel-") && r.code < 300
    };
    let mut writes: Vec<String> = Vec::new();
    for request in log.since(mark).expect("requests").iter().filter(by_release) {
        let verb = match request.verb.as_str() {
            "patch" | "create" | "update" => "write",
            "delete" => "delete",
            _ => continue,
        };
        let write = format!("{verb} {}", request.name.trim_start_matches("rel-"));
        // Helm writes and deletes the objects of one kind at once, in no order; and once the last hooks are
        // done we apply the objects again, to know how they are then, which changes nothing.
        let object = write.ends_with(" one") || write.ends_with(" two");
        if object && writes.contains(&write) {
            continue;
        }
        match writes.last() {
            Some(last) if *last == format!("{verb} two") && write == format!("{verb} one") => {
                writes.insert(writes.len() - 1, write);
            }
            _ => writes.push(write),
        }
    }
    writes
}

#[tokio::test(flavor = "multi_thread")]
async fn the_order_of_writes_is_the_real_helms() {
    let cluster = cluster().await;
    for generation in [0, 1] {
        compare_order(&cluster, generation).await;
    }
}

/// Of the same actions by us and by one of the two helms.
async fn compare_order(cluster: &LocalCluster, generation: usize) {
    let client = cluster.client_called("hooks-test").expect("a client");
    let driver = driver(&client);
    let ours = cluster.namespace("hooks-ours").await.expect("a namespace");
    let theirs = cluster.namespace("hooks-theirs").await.expect("a namespace");
    let helm = &Helm::both(cluster, &theirs)[generation];
    let folder = Folder::new("order");
    let log = cluster.audit();
    let compare = |action: &str, mark| {
        let pair = (written(&log, mark, &ours), written(&log, mark, &theirs));
        assert_eq!(pair.0, pair.1, "{action}, {}: ours, theirs", helm.program.display());
        assert!(pair.0.len() > 4, "{action}: {pair:?}");
    };
    for (action, value, done) in
        [("install", "1", ActionResult::Installed), ("upgrade", "2", ActionResult::Upgraded)]
    {
        let mark = log.mark().expect("a mark");
        let wish = ceremonious(&ours, "rel", value);
        folder.write_all(&wish.objects, &wish.hooks);
        helm.say(&[action, "rel", folder.path(), "--timeout", "60s"]);
        assert_eq!(wish.settle(&driver).await.expect(action).done, done);
        compare(action, mark);
    }
    assert_eq!(revisions(&driver, &ours, "rel").await.len(), 2);
    let mark = log.mark().expect("a mark");
    helm.say(&["rollback", "rel", "1", "--timeout", "60s"]);
    let wish = ceremonious(&ours, "rel", "1");
    assert_eq!(
        wish.roll_back(&driver, 1).await.expect("rolled back").done,
        ActionResult::RolledBack
    );
    compare("rollback", mark);
    let mark = log.mark().expect("a mark");
    helm.say(&["uninstall", "rel", "--timeout", "60s"]);
    assert!(ceremonious(&ours, "rel", "2").leave(&driver).await.expect("uninstalled").found);
    compare("uninstall", mark);
}

#[tokio::test(flavor = "multi_thread")]
async fn either_hand_goes_on_with_the_hooks_of_the_other() {
    let cluster = cluster().await;
    let namespace = cluster.namespace("hooks-hands").await.expect("a namespace");
    let client = cluster.client();
    let driver = driver(&client);
    let folder = Folder::new("hands");
    for (number, helm) in Helm::both(&cluster, &namespace).into_iter().enumerate() {
        let name = format!("rel{number}");
        let (first, second) =
            (ceremonious(&namespace, &name, "1"), ceremonious(&namespace, &name, "2"));
        folder.write_all(&first.objects, &first.hooks);
        let say = |arguments: &[&str]| {
            helm.say(&[arguments, &["--timeout", "60s"]].concat());
        };
        let job = async |suffix: &str| {
            live_job(&client, &namespace, &format!("{name}-{suffix}")).await["metadata"]["uid"]
                .clone()
        };
        say(&["install", &name, folder.path()]);
        let theirs = job("after").await;
        assert_eq!(second.settle(&driver).await.expect("upgraded").done, ActionResult::Upgraded);
        let ours = job("after").await;
        assert_ne!(ours, theirs, "replaced");
        say(&["upgrade", &name, folder.path()]);
        assert_ne!(job("after").await, ours, "replaced");
        assert!(second.leave(&driver).await.expect("uninstalled").found);
        assert_eq!(job("farewell").await, Value::Null, "done, and deleted by its policy");

        let again = ceremonious(&namespace, &name, "3");
        assert_eq!(again.settle(&driver).await.expect("installed").done, ActionResult::Installed);
        say(&["uninstall", &name]);
        assert_eq!(revisions(&driver, &namespace, &name).await, []);
        let map = live(&client, &namespace, "ConfigMap", &format!("{name}-one")).await;
        assert_eq!(map, Value::Null);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_hook_fails_the_revision_and_is_run_again() {
    let cluster = cluster().await;
    let namespace = cluster.namespace("hooks-failed").await.expect("a namespace");
    let client = cluster.client();
    let driver = driver(&client);
    let mut wish = DesiredRelease::new(&namespace, "rel", vec![config_map("object", "v")]);
    wish.hooks = vec![
        hook(job("good", 0), "pre-install", 0, ""),
        hook(job("bad", 3), "pre-install", 1, "before-hook-creation,hook-failed"),
    ];
    let error = wish.settle(&driver).await.expect_err("it fails");
    assert!(!error.is_transient());
    let Error::Hook { reason, message, .. } = &error else { panic!("{error}") };
    assert_eq!(reason, "BackoffLimitExceeded");
    assert!(message.contains("container c ended with exit code 3"), "{message}");
    let history = driver.history(&namespace, "rel").await.expect("a history");
    let newest = history.newest().expect("a record");
    assert_eq!(newest.info.description, format!("Release \"rel\" failed: {error}"));
    assert!(error.to_string().starts_with("failed pre-install: Job \"bad\""), "{error}");
    let phases: Vec<_> = newest.hooks.iter().map(|hook| hook.last_run.phase.as_str()).collect();
    assert_eq!(phases, ["Succeeded", "Failed", ""]);
    assert_eq!(live_job(&client, &namespace, "bad").await, Value::Null, "hook-failed");
    assert_eq!(live(&client, &namespace, "ConfigMap", "object").await, Value::Null);
    for helm in Helm::both(&cluster, &namespace) {
        assert_eq!(helm.json(&["status", "rel"])["info"]["status"], "failed");
    }

    // The next try runs it once more, after a pause, and the one before it not.
    let Err(Error::Waiting(waiting)) = wish.reconcile(&driver).await else { panic!("no pause") };
    assert_eq!((waiting.why, waiting.reason.as_str()), (HookReason::Pause, "HookFailed"));
    let good = live_job(&client, &namespace, "good").await["metadata"]["uid"].clone();
    wish.settle(&driver).await.expect_err("it fails again");
    assert_eq!(live_job(&client, &namespace, "good").await["metadata"]["uid"], good);

    // Repaired, it is another revision, whose hooks all run.
    wish.hooks[1] = hook(job("bad", 0), "pre-install", 1, "");
    assert_eq!(wish.settle(&driver).await.expect("installed").done, ActionResult::Installed);
    assert_ne!(live_job(&client, &namespace, "good").await["metadata"]["uid"], good);
    assert_eq!(
        revisions(&driver, &namespace, "rel").await,
        [(1, "failed".to_owned()), (2, "deployed".to_owned())]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_that_does_not_end_fails_with_the_cause() {
    let cluster = cluster().await;
    let namespace = cluster.namespace("hooks-late").await.expect("a namespace");
    let driver = driver(&cluster.client()).hook_timeout(Duration::from_secs(2));
    let mut wish = DesiredRelease::new(&namespace, "rel", vec![]);
    let mut endless = job("endless", 0);
    let pod = &mut endless["spec"]["template"]["metadata"]["annotations"];
    pod["fake.catamaran.test/run-for"] = "1h".into();
    wish.hooks = vec![hook(endless, "pre-install", 0, "")];
    let error = wish.settle(&driver).await.expect_err("it takes too long");
    let Error::Hook { reason, message, object, .. } = &error else { panic!("{error}") };
    assert_eq!(reason, "TimedOut");
    assert!(object.contains("endless") && message.starts_with("not done within 2 s"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_in_a_hooks_place_is_replaced_only_if_it_was_a_hook() {
    let cluster = cluster().await;
    let namespace = cluster.namespace("hooks-foreign").await.expect("a namespace");
    let client = cluster.client();
    let driver = driver(&client);
    let maps = api(&client, &namespace, "ConfigMap");
    let theirs = serde_json::from_value(config_map("taken", "theirs")).expect("an object");
    maps.create(&PostParams::default(), &theirs).await.expect("created");
    let mut wish = DesiredRelease::new(&namespace, "rel", vec![]);
    wish.hooks = vec![hook(config_map("taken", "ours"), "pre-install", 0, "")];
    let error = wish.settle(&driver).await.expect_err("refused");
    assert!(error.to_string().contains("cannot be imported"), "{error}");
    assert_eq!(live(&client, &namespace, "ConfigMap", "taken").await["data"]["k"], "theirs");

    // As helm leaves a hook's object; a finalizer holds it for a while.
    let marks = json!({"metadata": {"annotations": {"helm.sh/hook": "pre-install"}, "finalizers": ["a.test/b"]}});
    let merge = |value: &Value| Patch::Merge(value.clone());
    let old = maps.patch("taken", &PatchParams::default(), &merge(&marks)).await.expect("marked");
    for _ in 0..3 {
        // After the pause that follows the refusal.
        let waiting = loop {
            match wish.reconcile(&driver).await.expect_err("the old one is in the way") {
                Error::Waiting(waiting) if waiting.why == HookReason::Pause => {
                    tokio::time::sleep(waiting.at_most.unwrap_or_default()).await;
                }
                Error::Waiting(waiting) => break waiting,
                error => panic!("{error}"),
            }
        };
        assert_eq!(
            (waiting.reason.as_str(), waiting.object.name.as_str()),
            ("Terminating", "taken")
        );
    }
    let free = json!({"metadata": {"finalizers": null}});
    maps.patch("taken", &PatchParams::default(), &merge(&free)).await.expect("let go");
    wish.settle(&driver).await.expect("installed");
    let new = live(&client, &namespace, "ConfigMap", "taken").await;
    assert_eq!(new["data"]["k"], "ours");
    assert_ne!(new["metadata"]["uid"].as_str(), old.metadata.uid.as_deref());
    assert_eq!(new["metadata"]["labels"]["app.kubernetes.io/managed-by"], "Helm");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_goes_as_soon_as_it_is_done_counts_as_done() {
    let cluster = cluster().await;
    let namespace = cluster.namespace("hooks-ttl").await.expect("a namespace");
    let driver = driver(&cluster.client());
    let mut wish = DesiredRelease::new(&namespace, "rel", vec![config_map("object", "v")]);
    let mut short = job("short", 0);
    short["spec"]["ttlSecondsAfterFinished"] = 0.into();
    wish.hooks = vec![hook(short, "pre-install", 0, "")];
    wish.settle(&driver).await.expect("installed");
    assert_eq!(created(&cluster, &namespace, "short"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_pre_delete_hook_keeps_everything_a_failing_post_delete_hook_nothing() {
    let cluster = cluster().await;
    let namespace = cluster.namespace("hooks-delete").await.expect("a namespace");
    let client = cluster.client();
    let driver = driver(&client);
    let mut wish = DesiredRelease::new(&namespace, "rel", vec![config_map("object", "v")]);
    wish.hooks = vec![
        hook(job("before", 1), "pre-delete", 0, ""),
        hook(job("after", 1), "post-delete", 0, ""),
    ];
    wish.settle(&driver).await.expect("installed");
    for _ in 0..2 {
        let error = wish.leave(&driver).await.expect_err("it fails");
        assert!(error.to_string().starts_with("pre-delete hooks failed: Job"), "{error}");
        assert_eq!(live(&client, &namespace, "ConfigMap", "object").await["data"]["k"], "v");
    }
    assert_eq!(created(&cluster, &namespace, "before"), 2);
    wish.name = "kind".to_owned();
    wish.objects = vec![config_map("another", "v")];
    wish.hooks.remove(0);
    wish.settle(&driver).await.expect("installed");
    let gone = wish.leave(&driver).await.expect("uninstalled");
    assert_eq!((gone.deleted.len(), gone.failed_hooks.len()), (0, 1), "{:?}", gone.failed_hooks);
    assert_eq!(live(&client, &namespace, "ConfigMap", "another").await, Value::Null);
    assert_eq!(revisions(&driver, &namespace, "kind").await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_namespace_on_its_way_out_hooks_are_skipped_and_that_is_said() {
    let cluster = cluster().await;
    let namespace = cluster.namespace("hooks-leaving").await.expect("a namespace");
    let other = cluster.namespace("hooks-left").await.expect("a namespace");
    let client = cluster.client();
    let driver = driver(&client);
    let mut wish = DesiredRelease::new(&namespace, "rel", vec![config_map("object", "v")]);
    let mut elsewhere = job("elsewhere", 0);
    elsewhere["metadata"]["namespace"] = (*other).into();
    wish.hooks = vec![hook(elsewhere, "pre-delete", 0, "")];
    wish.settle(&driver).await.expect("installed");

    // A namespace ends only when everything in it has.
    let mut anchor = config_map("anchor", "v");
    anchor["metadata"]["finalizers"] = json!(["a.test/b"]);
    let anchor = serde_json::from_value(anchor).expect("an object");
    let maps = api(&client, &other, "ConfigMap");
    maps.create(&PostParams::default(), &anchor).await.expect("created");
    let namespaces = Api::<k8s_openapi::api::core::v1::Namespace>::all(client.clone());
    namespaces.delete(&other, &DeleteParams::default()).await.expect("deleted");
    let gone = wish.leave(&driver).await.expect("uninstalled");
    let skipped: Vec<_> = gone.skipped_hooks.iter().map(|id| id.name.as_str()).collect();
    assert_eq!((skipped, gone.deleted.len()), (vec!["elsewhere"], 1));
    let free = json!({"metadata": {"finalizers": null}});
    maps.patch("anchor", &PatchParams::default(), &Patch::Merge(free)).await.expect("let go");
}

/// How often an object was created.
fn created(cluster: &LocalCluster, namespace: &str, name: &str) -> usize {
    let requests = cluster.audit().requests().expect("requests");
    let of =
        |r: &&Request| (r.namespace.as_str(), r.name.as_str(), r.code) == (namespace, name, 201);
    requests.iter().filter(of).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn after_an_end_at_any_write_every_hook_has_run_exactly_once() {
    let cluster = cluster().await;
    let namespace = cluster.namespace("hooks-kill").await.expect("a namespace");
    let lives = [End::Killed, End::AnswerLost]
        .into_iter()
        .flat_map(|end| (1..=14).map(move |writes| (writes, end)));
    // All at once, as each of them waits for Jobs most of the time.
    let here = tokio::task::LocalSet::new();
    let _entered = here.enter();
    let mut running = tokio::task::JoinSet::new();
    for (writes, end) in lives {
        let (cluster, namespace) = (cluster.clone(), namespace.to_string());
        running.spawn_local(async move { one_life(&cluster, &namespace, writes, end).await });
    }
    here.run_until(running.join_all()).await;
}

/// Install and uninstall, each cut short and then done again.
async fn one_life(cluster: &LocalCluster, namespace: &str, writes: i64, end: End) {
    let name = format!("{}-{writes}", if end == End::Killed { "killed" } else { "lost" });
    let named = |suffix: &str| format!("{name}-{suffix}");
    let sound = driver(&cluster.client());
    let mut wish = DesiredRelease::new(namespace, &name, vec![config_map(&named("object"), "v")]);
    wish.hooks = vec![
        hook(config_map(&named("helper"), "v"), "pre-install", -1, "hook-succeeded"),
        hook(job(&named("before"), 0), "pre-install", 0, ""),
        hook(config_map(&named("after"), "v"), "post-install", 0, "hook-succeeded"),
        hook(job(&named("farewell"), 0), "pre-delete", 0, "hook-succeeded"),
        hook(config_map(&named("last"), "v"), "post-delete", 0, ""),
    ];
    let whole = cut_short(cluster, writes, end, async |driver| wish.settle(&driver).await).await;
    assert!(!whole || writes > 12, "{name}: an install takes thirteen writes");
    wish.settle(&sound).await.expect("installed");
    assert_eq!(revisions(&sound, namespace, &name).await, [(1, "deployed".to_owned())], "{name}");
    let whole = cut_short(cluster, writes, end, async |driver| wish.leave(&driver).await).await;
    assert!(!whole || writes > 9, "{name}: an uninstall takes ten writes");
    wish.leave(&sound).await.expect("uninstalled");
    assert_eq!(revisions(&sound, namespace, &name).await, [], "{name}");
    for suffix in ["helper", "before", "after", "farewell", "last"] {
        let runs = created(cluster, namespace, &named(suffix));
        assert_eq!(runs, 1, "{name} {suffix}: write {writes}, {end:?}");
    }
    for suffix in ["object", "helper", "after"] {
        let found = live(&cluster.client(), namespace, "ConfigMap", &named(suffix)).await;
        assert_eq!(found, Value::Null, "{name} {suffix}");
    }
}
