//! What somebody who may edit everything in a namespace can make of the records there: nothing that the
//! operator's rights are needed for.

use std::io::{Read as _, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use kube::Api;
use kube::api::{ApiResource, DeleteParams, PostParams};
use kube::core::{DynamicObject, GroupVersionKind};
use serde_json::{Value, json};

use crate::support::{
    Bench, Operator, becomes, condition, create, delete, eventually, field, mirror,
};
use crate::support::{patch, vanishes};

const SIGNATURE: &str = "catamaran.dev/record-hmac";

/// A namespace, the operator's program for it, and a tenant who has the role `edit` there.
struct Stage {
    bench: Bench,
    folder: tempfile::TempDir,
    /// The Secrets of the namespace, by the tenant's rights.
    secrets: Api<DynamicObject>,
}

impl Stage {
    async fn new(name: &str) -> Self {
        let bench = Bench::shared(name).await;
        let tenant = format!("tenant-{}", bench.namespace.name());
        let binding = ["create", "rolebinding", "tenant", "--clusterrole=edit", "--user", &tenant];
        bench.kubectl(&binding);
        let client = bench.cluster.client_as(&tenant, &[]).unwrap();
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Secret"));
        let secrets = Api::namespaced_with(client, bench.namespace.name(), &resource);
        eventually("the tenant may read Secrets", async || {
            secrets.get_opt("a").await.map(drop).map_err(|error| error.to_string())
        })
        .await;
        Self { bench, folder: mirror(""), secrets }
    }

    /// The operator, whose keys lie where no other test changes them.
    fn operator(&self) -> Operator {
        let mut command = Operator::command(self.bench.cluster.kubeconfig());
        command.arg("--watches-file").arg(self.folder.path().join("watches.yaml"));
        command.args(["--leader-election-namespace", &format!("{}-keys", self.namespace())]);
        command.env("WATCH_NAMESPACE", self.namespace());
        Operator::start(command)
    }

    /// The namespace of the operator's keys.
    fn keys(&self) -> String {
        let name = format!("{}-keys", self.namespace());
        self.bench.kubectl(&["create", "namespace", &name]);
        name
    }

    fn namespace(&self) -> &str {
        self.bench.namespace.name()
    }

    async fn deployed(&self, name: &str, objects: Value) {
        let spec = json!({ "objects": objects });
        create(&self.bench.memcacheds(), "cache.my.domain/v1alpha1", "Memcached", name, spec).await;
        self.is_ready(name).await;
    }

    async fn is_ready(&self, name: &str) {
        becomes(&self.bench.memcacheds(), name, "Ready", |it| {
            condition(it, "Ready") == "True"
                && it.data["status"]["observedGeneration"].as_i64() == it.metadata.generation
        })
        .await;
    }

    async fn wants(&self, name: &str, objects: Value) {
        patch(&self.bench.memcacheds(), name, json!({ "spec": { "objects": objects } })).await;
    }

    /// Waits until a condition's message says so.
    async fn says(&self, name: &str, words: &str) {
        becomes(&self.bench.memcacheds(), name, words, |it| {
            ["ReleaseFailed", "Irreconcilable"]
                .iter()
                .any(|type_| field(it, type_, "message").contains(words))
        })
        .await;
    }

    async fn record(&self, name: &str, revision: u32) -> DynamicObject {
        self.secrets.get(&record_name(name, revision)).await.unwrap()
    }

    /// Rewrites a record, as the tenant.
    async fn forge(&self, name: &str, revision: u32, change: impl FnOnce(&mut Value)) {
        let mut record = self.record(name, revision).await;
        let mut payload = payload_of(&record);
        change(&mut payload);
        record.data["data"]["release"] = encoded(&payload).into();
        self.put(record).await;
    }

    /// Puts a record in the place of the one that is there, if there is one.
    async fn put(&self, mut record: DynamicObject) {
        let name = record.metadata.name.clone().unwrap();
        record.metadata.resource_version = None;
        record.metadata.uid = None;
        let there = self.secrets.get_opt(&name).await.unwrap();
        if there.is_some() {
            self.secrets.delete(&name, &DeleteParams::default()).await.unwrap();
        }
        self.secrets.create(&PostParams::default(), &record).await.unwrap();
    }

    /// Whether an object is there, anywhere in the cluster.
    fn exists(&self, kind: &str, namespace: &str, name: &str) -> bool {
        let arguments = ["-n", namespace, "get", kind, name, "--ignore-not-found", "-o", "name"];
        !self.bench.kubectl(&arguments).is_empty()
    }

    async fn records(&self) -> Vec<String> {
        let all = self.secrets.list(&kube::api::ListParams::default().labels("owner=helm")).await;
        all.unwrap().items.into_iter().filter_map(|it| it.metadata.name).collect()
    }

    /// A ClusterRoleBinding that nobody but the operator could make, under a name of its own.
    fn grant(&self, case: &str) -> String {
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": { "name": self.grant_name(case) },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view" },
            "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "tenant" }],
        });
        format!("---\n{binding}\n")
    }

    fn grant_name(&self, case: &str) -> String {
        format!("{}-{case}", self.namespace())
    }

    fn is_granted(&self, case: &str) -> bool {
        self.exists("clusterrolebinding", "default", &self.grant_name(case))
    }
}

fn record_name(name: &str, revision: u32) -> String {
    format!("sh.helm.release.v1.{name}.v{revision}")
}

fn payload_of(record: &DynamicObject) -> Value {
    let text = STANDARD.decode(record.data["data"]["release"].as_str().unwrap()).unwrap();
    let packed = STANDARD.decode(text).unwrap();
    let mut json = String::new();
    GzDecoder::new(&*packed).read_to_string(&mut json).unwrap();
    serde_json::from_str(&json).unwrap()
}

/// As old helm wrote it: without compression.
fn encoded(payload: &Value) -> String {
    STANDARD.encode(STANDARD.encode(payload.to_string()))
}

/// A record as a helm command would have written it.
fn record(name: &str, version: u32, payload: &Value) -> DynamicObject {
    let labels = json!({ "owner": "helm", "name": name, "version": version.to_string(), "status": payload["info"]["status"] });
    serde_json::from_value(json!({
        "apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1",
        "metadata": { "name": record_name(name, version), "labels": labels },
        "data": { "release": encoded(payload) },
    }))
    .unwrap()
}

fn map(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": { "k": "v" } })
}

/// Something that the API server refuses.
fn refused() -> Value {
    json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": "refused" }, "spec": { "ports": [{ "port": -1 }] } })
}

fn hook(name: &str, namespace: Option<&str>, event: &str) -> Value {
    let mut hook = map(name);
    hook["metadata"]["annotations"] = json!({ "helm.sh/hook": event });
    if let Some(namespace) = namespace {
        hook["metadata"]["namespace"] = namespace.into();
    }
    hook
}

fn forged_hook(name: &str, event: &str) -> Value {
    json!({
        "name": name, "kind": "ConfigMap", "path": "mirror/templates/objects.yaml", "events": [event],
        "manifest": hook(name, Some("kube-system"), event).to_string(),
    })
}

#[tokio::test]
async fn deletion_runs_the_hooks_of_the_chart_and_deletes_only_objects_of_the_release() {
    let stage = Stage::new("forged-end").await;
    stage.keys();
    let (bench, other) = (&stage.bench, stage.bench.cluster.namespace("victim").await.unwrap());
    let mut operator = stage.operator();
    stage.deployed("rel", json!([map("ours"), hook("farewell", None, "pre-delete")])).await;
    operator.kill();

    // What belongs to others: to nobody, and to a release of another namespace.
    bench.kubectl(&["create", "configmap", "bystander"]);
    bench.kubectl(&["-n", other.name(), "create", "configmap", "victim"]);
    let marks = [
        "meta.helm.sh/release-name=rel",
        &format!("meta.helm.sh/release-namespace={}", other.name()),
    ]
    .map(str::to_owned);
    bench.kubectl(&["-n", other.name(), "annotate", "configmap", "victim", &marks[0], &marks[1]]);
    bench.kubectl(&[
        "-n",
        other.name(),
        "label",
        "configmap",
        "victim",
        "app.kubernetes.io/managed-by=Helm",
    ]);
    let mut victim = map("victim");
    victim["metadata"]["namespace"] = other.name().into();
    let mut impossible = map("../secrets/a");
    impossible["apiVersion"] = "v1".into();
    let stolen = stage.grant_name("stolen");
    stage
        .forge("rel", 1, |payload| {
            let claims = [
                map("bystander"),
                victim,
                impossible,
                json!({ "apiVersion": "no.such/v1", "kind": "Thing", "metadata": { "name": "a" } }),
            ];
            let claims = claims.map(|it| it.to_string()).join("\n---\n");
            let manifest = payload["manifest"].as_str().unwrap().to_owned();
            payload["manifest"] = format!("{manifest}\n---\n{claims}\n").into();
            payload["hooks"] =
                json!([forged_hook(&stolen, "pre-delete"), forged_hook(&stolen, "post-delete")]);
        })
        .await;
    delete(&bench.memcacheds(), "rel").await;
    let _operator = stage.operator();
    vanishes(&bench.memcacheds(), "rel").await;
    assert!(!stage.exists("configmap", "kube-system", &stolen), "a hook that only the record has");
    assert!(stage.exists("configmap", stage.namespace(), "farewell"), "the chart's hook ran");
    assert!(!stage.exists("configmap", stage.namespace(), "ours"));
    assert!(stage.exists("configmap", stage.namespace(), "bystander"));
    assert!(stage.exists("configmap", other.name(), "victim"));
    assert_eq!(stage.records().await, [""; 0]);
}

#[tokio::test]
async fn a_failed_upgrade_is_not_rolled_back_to_a_record_that_is_not_authentic() {
    let stage = Stage::new("forged-back").await;
    stage.keys();
    let mut operator = stage.operator();
    // The record of an earlier life, which was genuine then.
    stage.deployed("replayed", json!([map("earlier")])).await;
    let earlier = stage.record("replayed", 1).await;
    delete(&stage.bench.memcacheds(), "replayed").await;
    vanishes(&stage.bench.memcacheds(), "replayed").await;
    let cases = ["genuine", "rewritten", "replayed", "copied", "resigned", "deleted"];
    for case in cases {
        stage.deployed(case, json!([map(case)])).await;
    }
    operator.kill();

    stage.put(earlier).await;
    let grant = |case: &'static str| {
        let grant = stage.grant(case);
        move |payload: &mut Value| {
            payload["manifest"] =
                format!("{}{grant}", payload["manifest"].as_str().unwrap()).into();
        }
    };
    stage.forge("rewritten", 1, grant("rewritten")).await;
    let genuine = stage.record("genuine", 1).await;
    stage.forge("resigned", 1, grant("resigned")).await;
    let mut resigned = stage.record("resigned", 1).await;
    let signature = genuine.metadata.annotations.clone().unwrap()[SIGNATURE].clone();
    resigned.metadata.annotations.get_or_insert_default().insert(SIGNATURE.to_owned(), signature);
    stage.put(resigned).await;
    // Another release's genuine record under this name: its payload and its signature.
    let mut copied = genuine.clone();
    copied.metadata.name = Some(record_name("copied", 1));
    copied.metadata.labels.get_or_insert_default().insert("name".to_owned(), "copied".to_owned());
    stage.put(copied).await;
    stage.secrets.delete(&record_name("deleted", 1), &DeleteParams::default()).await.unwrap();
    for case in cases {
        stage.wants(case, json!([map(case), refused()])).await;
    }

    let _operator = stage.operator();
    for case in ["rewritten", "replayed", "resigned"] {
        stage.says(case, "not authenticated").await;
    }
    stage.says("copied", "a record of another release").await;
    becomes(&stage.bench.memcacheds(), "genuine", "rolled back", |it| {
        it.data["status"]["deployedRelease"]["version"] == 3
    })
    .await;
    for case in cases {
        assert!(!stage.is_granted(case), "{case}");
    }
    assert!(!stage.exists("configmap", stage.namespace(), "earlier"));

    // What is asked for next is done.
    for case in ["genuine", "rewritten", "replayed", "resigned", "deleted"] {
        stage.wants(case, json!([map(case)])).await;
        stage.is_ready(case).await;
        assert!(!stage.is_granted(case), "{case}");
    }
    // A record that cannot be read holds up what would overwrite it, and says what to do; not the end.
    stage.says("copied", "restore the Secret or delete it").await;
    delete(&stage.bench.memcacheds(), "copied").await;
    vanishes(&stage.bench.memcacheds(), "copied").await;
    assert!(!stage.exists("configmap", stage.namespace(), "copied"), "found by rendering");
}

#[tokio::test]
async fn records_that_a_tenant_makes_up_are_history_and_nothing_else() {
    let stage = Stage::new("forged-new").await;
    stage.keys();
    let payload = |name: &str, version: u32, status: &str| {
        json!({
            "name": name, "namespace": stage.namespace(), "version": version, "apply_method": "ssa",
            "chart": { "metadata": { "name": "mirror", "version": "1.0.0" } },
            "info": { "status": status, "description": "catamaran: at work", "last_deployed": "2026-01-01T00:00:00Z" },
            "manifest": stage.grant(name), "hooks": [forged_hook(&stage.grant_name(name), "pre-install")],
        })
    };
    for (name, version, status) in [
        ("pending", 1, "pending-install"),
        ("back", 3, "pending-rollback"),
        ("ending", 2, "uninstalling"),
        ("huge", u32::MAX, "deployed"),
        ("large", 1 << 30, "deployed"),
        ("gone", 1, "uninstalled"),
    ] {
        let record = record(name, version, &payload(name, version, status));
        stage.put(record).await;
        let resource = json!({
            "apiVersion": "cache.my.domain/v1alpha1", "kind": "Memcached",
            "metadata": { "name": name, "annotations": { "catamaran.dev/adopt-release": name } },
            "spec": { "objects": [map(name)] },
        });
        let resource = serde_json::from_value(resource).unwrap();
        stage.bench.memcacheds().create(&PostParams::default(), &resource).await.unwrap();
    }
    let _operator = stage.operator();
    let expected = [
        ("pending", 2),
        ("back", 4),
        ("ending", 3),
        ("huge", 1),
        ("large", (1 << 30) + 1),
        ("gone", 2),
    ];
    for (name, version) in expected {
        becomes(&stage.bench.memcacheds(), name, &format!("revision {version}"), |it| {
            let release = &it.data["status"]["deployedRelease"];
            release["version"] == version
                && release["name"] == name
                && condition(it, "Ready") == "True"
        })
        .await;
    }
    for (name, _) in expected {
        delete(&stage.bench.memcacheds(), name).await;
        vanishes(&stage.bench.memcacheds(), name).await;
        assert!(!stage.is_granted(name), "{name}");
        assert!(!stage.exists("configmap", "kube-system", &stage.grant_name(name)), "{name}");
    }
    assert_eq!(stage.records().await, [""; 0]);
}

#[tokio::test]
async fn heaps_of_large_records_are_read_in_bounded_memory_and_hold_up_no_deletion() {
    let stage = Stage::new("forged-heap").await;
    stage.keys();
    let mut operator = stage.operator();
    let names = ["one", "two", "three", "four", "five", "six"];
    for name in names {
        stage.deployed(name, json!([map(name)])).await;
    }
    operator.kill();
    // Each unpacks to 15 MiB, or fills its Secret.
    for name in names {
        let payload = json!({
            "name": name, "namespace": stage.namespace(), "version": 1, "info": { "status": "superseded" },
            "manifest": " ".repeat(15 * 1024 * 1024),
        });
        let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
        packed.write_all(payload.to_string().as_bytes()).unwrap();
        let bomb = STANDARD.encode(STANDARD.encode(packed.finish().unwrap()));
        let full = STANDARD.encode("x".repeat(1000 * 1000));
        for version in 2..16 {
            let mut heavy = record(name, version, &json!({ "info": { "status": "superseded" } }));
            let data = if version % 2 == 0 { &bomb } else { &full };
            heavy.data["data"]["release"] = data.clone().into();
            stage.put(heavy).await;
        }
        stage.wants(name, json!([map(name), map("more")])).await;
    }
    let operator = stage.operator();
    for name in names {
        stage.says(name, "restore the Secret or delete it").await;
    }
    for name in names {
        delete(&stage.bench.memcacheds(), name).await;
        vanishes(&stage.bench.memcacheds(), name).await;
    }
    assert_eq!(stage.records().await, [""; 0]);
    let status = std::fs::read_to_string(format!("/proc/{}/status", operator.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kib: usize = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(kib < 128 * 1024, "{kib} KiB");
}

#[tokio::test]
async fn a_rotated_key_still_verifies_and_a_lost_one_breaks_nothing() {
    let stage = Stage::new("forged-keys").await;
    let (keys, secret) = (stage.keys(), "memcached-operator-record-key");
    let mut operator = stage.operator();
    stage.deployed("rotated", json!([map("rotated")])).await;
    stage.deployed("lost", json!([map("lost")])).await;
    let current = || {
        let path = "jsonpath={.data.current}";
        stage.bench.kubectl(&["-n", &keys, "get", "secret", secret, "-o", path])
    };
    let first = current();
    operator.kill();

    let rotate = r#"[{"op":"move","from":"/data/current","path":"/data/previous"}]"#;
    stage.bench.kubectl(&["-n", &keys, "patch", "secret", secret, "--type=json", "-p", rotate]);
    stage.wants("rotated", json!([map("rotated"), refused()])).await;
    let mut operator = stage.operator();
    becomes(&stage.bench.memcacheds(), "rotated", "rolled back", |it| {
        it.data["status"]["deployedRelease"]["version"] == 3
    })
    .await;
    assert!(!current().is_empty() && current() != first, "a new one signs");
    operator.kill();

    stage.bench.kubectl(&["-n", &keys, "delete", "secret", secret]);
    stage.wants("lost", json!([map("lost"), refused()])).await;
    let _operator = stage.operator();
    stage.says("lost", "not authenticated").await;
    stage.wants("lost", json!([map("lost"), map("more")])).await;
    stage.is_ready("lost").await;
}

#[tokio::test]
async fn a_release_that_somebody_installed_is_adopted_only_when_the_resource_says_so() {
    let stage = Stage::new("adopted").await;
    stage.keys();
    let (bench, chart) = (&stage.bench, stage.folder.path().join("mirror").display().to_string());
    for name in ["adm", "bob"] {
        let objects = format!("objects=[{}]", map(&format!("theirs-{name}")));
        bench.helm(&["install", name, &chart, "--set-json", &objects]);
    }
    let _operator = stage.operator();
    stage.deployed("adm", json!([map("ours-adm")])).await;
    let release = |it: &DynamicObject| it.data["status"]["deployedRelease"]["name"].clone();
    let adm = bench.memcacheds().get("adm").await.unwrap();
    let own = release(&adm).as_str().unwrap().to_owned();
    assert!(own.starts_with("adm-"), "{own}");
    delete(&bench.memcacheds(), "adm").await;
    vanishes(&bench.memcacheds(), "adm").await;
    assert!(
        stage.exists("configmap", stage.namespace(), "theirs-adm"),
        "the person's release stays"
    );
    assert!(bench.helm(&["list", "--short"]).lines().any(|name| name == "adm"));

    let resource = json!({
        "apiVersion": "cache.my.domain/v1alpha1", "kind": "Memcached",
        "metadata": { "name": "bob", "annotations": { "catamaran.dev/adopt-release": "bob" } },
        "spec": { "objects": [map("theirs-bob")] },
    });
    let resource = serde_json::from_value(resource).unwrap();
    bench.memcacheds().create(&PostParams::default(), &resource).await.unwrap();
    becomes(&bench.memcacheds(), "bob", "adopted without a new revision", |it| {
        release(it) == "bob" && it.data["status"]["deployedRelease"]["version"] == 1
    })
    .await;
}
