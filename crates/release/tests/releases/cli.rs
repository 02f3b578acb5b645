//! What the helm CLIs make of our releases, and we of theirs.

use catamaran_release::record::Hook;
use catamaran_release::{Action, ActionResult};
use serde_json::{Value, json};

use crate::support::{
    DesiredRelease, Helm, cluster, config_map, driver, hook, job, live, live_job, revisions,
    secret, service,
};

#[tokio::test(flavor = "multi_thread")]
async fn both_helms_show_roll_back_and_uninstall_our_release() {
    let cluster = cluster().await;
    let namespace = cluster.namespace("helm-cli").await.expect("a namespace");
    let client = cluster.client();
    let driver = driver(&client);
    for (number, helm) in Helm::both(&cluster, &namespace).into_iter().enumerate() {
        let name = format!("rel-{number}");
        let object = |suffix: &str| format!("{name}-{suffix}");
        let mut wish = DesiredRelease::new(
            &namespace,
            &name,
            vec![
                secret(&object("secret"), "s"),
                config_map(&object("map"), "one"),
                service(&object("svc")),
            ],
        );
        let applied = wish.reconcile(&driver).await.expect("installed");
        assert_eq!((applied.done, applied.objects.len()), (ActionResult::Installed, 3));
        shows(&helm, &wish);

        wish.objects.remove(0);
        wish.objects[0] = config_map(&object("map"), "two");
        let applied = wish.reconcile(&driver).await.expect("upgraded");
        assert_eq!((applied.done, applied.removed.len()), (ActionResult::Upgraded, 1));
        assert_eq!(live(&client, &namespace, "Secret", &object("secret")).await, Value::Null);
        shows(&helm, &wish);

        helm.say(&["rollback", &name, "1"]);
        let expected = [(1, "superseded"), (2, "superseded"), (3, "deployed")];
        assert_eq!(
            revisions(&driver, &namespace, &name).await,
            expected.map(|(n, s)| (n, s.to_owned()))
        );
        let map = live(&client, &namespace, "ConfigMap", &object("map")).await;
        assert_eq!(map["data"]["k"], "one");

        // What the person rolled back is brought forward again, and then left alone.
        assert_eq!(wish.reconcile(&driver).await.expect("upgraded").done, ActionResult::Upgraded);
        assert_eq!(wish.reconcile(&driver).await.expect("unchanged").done, ActionResult::Unchanged);
        let map = live(&client, &namespace, "ConfigMap", &object("map")).await;
        assert_eq!(map["data"]["k"], "two");

        // A rollback of ours is helm's too.
        let applied = wish.roll_back(&driver, 1).await.expect("rolled back");
        assert_eq!((applied.done, applied.release.version), (ActionResult::RolledBack, 5));
        let history = helm.json(&["history", &name]);
        let newest = history.as_array().and_then(|all| all.last()).expect("a revision");
        assert_eq!(
            (&newest["status"], &newest["description"]),
            (&json!("deployed"), &json!("Rollback to 1"))
        );
        let there = live(&client, &namespace, "Secret", &object("secret")).await;
        assert_ne!(there, Value::Null, "what only revision 1 had is back");

        helm.say(&["uninstall", &name]);
        assert_eq!(revisions(&driver, &namespace, &name).await, []);
        assert_eq!(live(&client, &namespace, "ConfigMap", &object("map")).await, Value::Null);
        assert_eq!(live(&client, &namespace, "Service", &object("svc")).await, Value::Null);
    }
}

/// Every command that reads shows the wish.
fn shows(helm: &Helm, wish: &DesiredRelease) {
    let name = wish.name.as_str();
    let rendered = wish.rendered();
    let list = helm.json(&["list", "--filter", &format!("^{name}$")]);
    assert_eq!((&list[0]["status"], &list[0]["chart"]), (&json!("deployed"), &json!("demo-1.0.0")));
    let history = helm.json(&["history", name]);
    let newest = history.as_array().and_then(|all| all.last()).expect("a revision");
    assert_eq!((&newest["status"], &newest["app_version"]), (&json!("deployed"), &json!("9")));
    assert_eq!(
        helm.say(&["get", "manifest", name]).trim_end(),
        rendered.manifest_text().trim_end()
    );
    assert_eq!(helm.json(&["get", "values", name]), json!({"greeting": "moin"}));
    assert_eq!(
        helm.json(&["get", "values", "--all", name]),
        json!({"greeting": "moin", "count": 1})
    );
    assert!(helm.say(&["get", "notes", name]).contains(&format!("Notes of {name}")));
    assert!(helm.say(&["get", "hooks", name]).contains(&format!("{name}-test")));
    assert_eq!(helm.json(&["get", "metadata", name])["chart"], "demo");
    assert!(helm.say(&["get", "all", name]).contains("demo"));
    assert!(helm.say(&["status", name]).contains("STATUS: deployed"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_of_either_helm_is_ours_to_upgrade_and_uninstall() {
    let cluster = cluster().await;
    let namespace = cluster.namespace("helm-theirs").await.expect("a namespace");
    let client = cluster.client();
    let driver = driver(&client);
    let chart = Folder::new("theirs");
    for (number, helm) in Helm::both(&cluster, &namespace).into_iter().enumerate() {
        let name = format!("theirs-{number}");
        let map = format!("{name}-map");
        chart.write(&config_map(&map, "one"));
        helm.say(&["install", &name, chart.path()]);
        let mut wish = DesiredRelease::new(&namespace, &name, vec![config_map(&map, "one")]);

        // The same chart, rendered by us: no revision, whoever made the first.
        let history = driver.history(&namespace, &name).await.expect("a history");
        let rendered = catamaran_chart::Rendered { hooks: vec![], ..wish.rendered() };
        let facts = history.current_facts();
        let action = history.decide(&wish.desired(&rendered, &facts)).expect("an action");
        assert_eq!(action, Action::Unchanged);

        wish.objects[0] = config_map(&map, "two");
        assert_eq!(wish.reconcile(&driver).await.expect("upgraded").done, ActionResult::Upgraded);
        assert_eq!(live(&client, &namespace, "ConfigMap", &map).await["data"]["k"], "two");
        shows(&helm, &wish);

        // And they go on with ours.
        helm.say(&["upgrade", &name, chart.path()]);
        assert_eq!(live(&client, &namespace, "ConfigMap", &map).await["data"]["k"], "one");
        let [.., (revision, status)] = &*revisions(&driver, &namespace, &name).await else {
            panic!("no revision");
        };
        assert_eq!((*revision, status.as_str()), (3, "deployed"));

        let gone = driver.uninstall(&namespace, &name).await.expect("uninstalled");
        assert_eq!((gone.found, gone.deleted.len(), gone.kept.len()), (true, 1, 0));
        assert_eq!(live(&client, &namespace, "ConfigMap", &map).await, Value::Null);
        assert_eq!(helm.json(&["list"]), json!([]));
        let history = helm.run(&["history", &name]).expect_err("no release");
        assert!(history.contains("release: not found"), "{history}");
        assert!(!driver.uninstall(&namespace, &name).await.expect("nothing to do").found);
    }
}

/// A chart `demo`, in a folder that goes with it.
pub struct Folder(std::path::PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        let folder = format!("catamaran-release-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(folder);
        std::fs::create_dir_all(path.join("templates")).expect("a folder");
        let metadata = "apiVersion: v2\nname: demo\nversion: 1.0.0\nappVersion: \"9\"\n";
        std::fs::write(path.join("Chart.yaml"), metadata).expect("Chart.yaml");
        std::fs::write(path.join("values.yaml"), "greeting: hello\ncount: 1\n")
            .expect("values.yaml");
        Self(path)
    }

    pub fn path(&self) -> &str {
        self.0.to_str().expect("a path")
    }

    pub fn write(&self, object: &Value) {
        self.write_all(std::slice::from_ref(object), &[]);
    }

    /// Objects and hooks, a template for each.
    pub fn write_all(&self, objects: &[Value], hooks: &[Value]) {
        for (number, object) in objects.iter().chain(hooks).enumerate() {
            let file = self.0.join(format!("templates/{number}.yaml"));
            std::fs::write(file, object.to_string()).expect("a template");
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Nothing hangs on it in the system's folder for temporary files.
        drop(std::fs::remove_dir_all(&self.0));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tests_run_one_after_the_other_and_the_revision_stays_what_it_is() {
    let cluster = cluster().await;
    let namespace = cluster.namespace("tests").await.expect("a namespace");
    let client = cluster.client();
    let driver = driver(&client);
    for (number, helm) in Helm::both(&cluster, &namespace).into_iter().enumerate() {
        let name = format!("rel-{number}");
        let named = |suffix: &str| format!("{name}-{suffix}");
        let mut wish =
            DesiredRelease::new(&namespace, &name, vec![config_map(&named("map"), "one")]);
        wish.hooks = vec![
            hook(job(&named("passes"), 0), "test", -2, "before-hook-creation,hook-succeeded"),
            hook(job(&named("fails"), 1), "test", -1, ""),
        ];
        wish.settle(&driver).await.expect("installed");

        let passes = |test: &Hook| test.name.ends_with("-passes");
        let tested = wish.test(&driver, passes).await.expect("passed");
        assert_eq!(tested.ran, 1);
        let gone = live_job(&client, &namespace, &named("passes")).await;
        assert_eq!(gone, Value::Null, "deleted by its policy");

        let error = wish.test(&driver, |_| true).await.expect_err("fails").to_string();
        assert!(error.starts_with(&format!("test hooks failed: Job \"{name}-fails\"")), "{error}");
        let phases = || async {
            let history = driver.history(&namespace, &name).await.expect("a history");
            let newest = history.newest().cloned().expect("a revision");
            assert_eq!((newest.version, newest.info.status.as_str()), (1, "deployed"));
            let mut phases: Vec<_> =
                newest.hooks.iter().map(|test| test.last_run.phase.clone()).collect();
            phases.sort();
            phases
        };
        assert_eq!(phases().await, ["", "Failed", "Succeeded"], "the one after it did not run");

        // Helm runs the same tests, and we go on with the record that it leaves.
        helm.run(&["test", &name, "--timeout", "60s"]).expect_err("one fails");
        assert_eq!(phases().await, ["", "Failed", "Succeeded"]);
        assert_eq!(wish.reconcile(&driver).await.expect("unchanged").done, ActionResult::Unchanged);
        let error = wish.test(&driver, |test| test.name == "nobody").await;
        assert_eq!(error.expect("nothing to do").ran, 0);
        wish.leave(&driver).await.expect("uninstalled");
    }
}
