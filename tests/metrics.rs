//! The operator's metrics, scraped from a real run.

#![allow(clippy::unwrap_used)] // helpers of tests fail as tests do

mod support;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::json;
use support::{Bench, Operator, apply_file, becomes, condition, create, eventually, mirror, patch};

/// What curl says of an address of the operator: the status code, and the body.
fn scrape(url: &str, more: &[&str]) -> (u16, String) {
    let output = Command::new("curl")
        .args(["--silent", "--insecure", "--max-time", "10", "--write-out", "\n%{http_code}"])
        .args(more)
        .arg(url)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let (body, code) = text.rsplit_once('\n').unwrap();
    (code.parse().unwrap(), body.to_owned())
}

/// Starts the operator with its metrics on a free port; their URL.
async fn serving(bench: &Bench, kubeconfig: &Path, flags: &[&str]) -> (Operator, String) {
    let mut command = Operator::command(kubeconfig);
    command.args(["--metrics-bind-address", "127.0.0.1:0"]).args(flags);
    command.env("WATCH_NAMESPACE", bench.namespace.name());
    let operator = Operator::start(command);
    let scheme = if flags.contains(&"--metrics-secure=false") { "http" } else { "https" };
    let address = eventually("metrics are served", async || {
        let log = operator.log();
        let line = log.lines().find(|line| line.contains("serving metrics")).ok_or(log.clone())?;
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        Ok(line["address"].as_str().unwrap().to_owned())
    })
    .await;
    (operator, format!("{scheme}://{address}/metrics"))
}

/// A token of a service account of the test's namespace.
fn token(bench: &Bench, account: &str) -> String {
    bench.kubectl(&["create", "serviceaccount", account]);
    format!("Authorization: Bearer {}", bench.kubectl(&["create", "token", account]).trim())
}

/// The value of a series whose name and labels contain all of these.
fn value(text: &str, parts: &[&str]) -> Option<f64> {
    let is_it =
        |line: &&str| line.starts_with(parts[0]) && parts.iter().all(|part| line.contains(part));
    text.lines().find(is_it)?.rsplit_once(' ')?.1.parse().ok()
}

#[tokio::test]
async fn only_those_who_may_read_them_and_only_over_tls() {
    let bench = Bench::shared("scraped").await;
    let (operator, url) = serving(&bench, bench.cluster.kubeconfig(), &[]).await;
    assert_eq!(scrape(&url, &[]).0, 401, "{}", operator.log());
    assert_eq!(scrape(&url, &["--header", "Authorization: Bearer no-such-token"]).0, 401);
    let stranger = token(&bench, "stranger");
    assert_eq!(scrape(&url, &["--header", &stranger]).0, 403);
    let reader = token(&bench, "reader");
    let namespace = bench.namespace.name().to_owned();
    bench.kubectl(&[
        "create",
        "clusterrole",
        &namespace,
        "--verb=get",
        "--non-resource-url=/metrics",
    ]);
    let account = format!("--serviceaccount={namespace}:reader");
    let role = format!("--clusterrole={namespace}");
    bench.kubectl(&["create", "clusterrolebinding", &namespace, &role, &account]);
    let text = eventually("the reader may", async || match scrape(&url, &["--header", &reader]) {
        (200, text) => Ok(text),
        other => Err(format!("{other:?}")),
    })
    .await;
    assert!(text.ends_with("# EOF\n"), "{text}");
    assert_eq!(scrape(&url.replace("/metrics", "/other"), &["--header", &stranger]).0, 403);
    assert_ne!(scrape(&url.replace("https:", "http:"), &["--header", &reader]).0, 200);
    assert!(!operator.log().contains(reader.rsplit_once(' ').unwrap().1), "a token was logged");
    bench.kubectl(&["delete", "clusterrole,clusterrolebinding", &namespace]);
}

#[tokio::test]
async fn they_tell_what_was_done_in_the_names_of_controller_runtime() {
    let bench = Bench::shared("measured").await;
    let flags = [
        "--metrics-secure=false",
        "--metrics-resource-names",
        "--leader-elect",
        "--leader-election-namespace",
        bench.namespace.name(),
    ];
    let (_operator, url) = serving(&bench, bench.cluster.kubeconfig(), &flags).await;
    apply_file(&bench, "tests/fixtures/cache_v1alpha1_memcached.yaml");
    apply_file(&bench, "tests/fixtures/cache_v1_memcachedbackup.yaml");
    let ready = |object: &_| condition(object, "Ready") == "True";
    becomes(&bench.memcacheds(), "memcached-sample", "Ready", ready).await;
    becomes(&bench.backups(), "memcachedbackup-sample", "Ready", ready).await;
    patch(&bench.memcacheds(), "memcached-sample", json!({ "spec": { "ingress": 5 } })).await;
    let (chart, native) =
        ("controller=\"memcached-controller\"", "controller=\"memcachedbackup-controller\"");
    let text = eventually("an error is counted", async || {
        let (code, text) = scrape(&url, &[]);
        assert_eq!(code, 200, "no token is asked for");
        match value(&text, &["controller_runtime_reconcile_errors_total", chart]) {
            Some(errors) if errors >= 1.0 => Ok(text),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    let at_least_one: &[&[&str]] = &[
        &["controller_runtime_reconcile_total", chart, "result=\"success\""],
        &["controller_runtime_reconcile_total", native, "result=\"success\""],
        &["controller_runtime_reconcile_total", chart, "result=\"error\""],
        &["controller_runtime_reconcile_time_seconds_count", chart],
        &["controller_runtime_reconcile_time_seconds_bucket", native, "le=\"+Inf\""],
        &["controller_runtime_max_concurrent_reconciles", chart],
        &["workqueue_adds_total", "name=\"memcached-controller\""],
        &["workqueue_queue_duration_seconds_count", chart],
        &["workqueue_work_duration_seconds_count", native],
        &["leader_election_master_status", "name=\"memcached-operator\""],
        &["rest_client_requests_total", "code=\"201\"", "method=\"PATCH\"", "host=\"127.0.0.1"],
        &["helm_operator_build_info", "version=", "commit="],
        &[
            "resource_created_at_seconds",
            "name=\"memcached-sample\"",
            "kind=\"Memcached\"",
            "group=\"cache.my.domain\"",
            "version=\"v1alpha1\"",
            bench.namespace.name(),
        ],
        &["catamaran_reconcile_phase_seconds_count", chart, "phase=\"queue\""],
        &["catamaran_reconcile_phase_seconds_count", chart, "phase=\"values\""],
        &["catamaran_reconcile_phase_seconds_count", chart, "phase=\"render\""],
        &["catamaran_reconcile_phase_seconds_count", chart, "phase=\"plan\""],
        &["catamaran_reconcile_phase_seconds_count", chart, "phase=\"apply\""],
        &["catamaran_reconcile_phase_seconds_count", chart, "phase=\"status\""],
        &["catamaran_reconcile_phase_seconds_count", native, "phase=\"queue\""],
        &["catamaran_reconcile_phase_seconds_count", native, "phase=\"reconcile\""],
        &["catamaran_reconcile_phase_seconds_count", native, "phase=\"status\""],
        &["process_resident_memory_bytes"],
    ];
    for series in at_least_one {
        assert!(value(&text, series).is_some_and(|value| value >= 1.0), "{series:?} in\n{text}");
    }
    for series in [
        ["controller_runtime_active_workers", chart],
        ["workqueue_depth", chart],
        ["workqueue_retries_total", native],
        ["workqueue_unfinished_work_seconds", chart],
        ["workqueue_longest_running_processor_seconds", chart],
        ["controller_runtime_reconcile_panics_total", native],
        ["controller_runtime_terminal_reconcile_errors_total", native],
    ] {
        assert!(value(&text, &series).is_some(), "{series:?} in\n{text}");
    }
}

#[tokio::test]
async fn without_authentication_no_names_are_told_and_idle_clients_keep_no_scraper_out() {
    let bench = Bench::shared("open").await;
    let flags = ["--metrics-secure=false"];
    let (operator, url) = serving(&bench, bench.cluster.kubeconfig(), &flags).await;
    apply_file(&bench, "tests/fixtures/cache_v1alpha1_memcached.yaml");
    let ready = |object: &_| condition(object, "Ready") == "True";
    becomes(&bench.memcacheds(), "memcached-sample", "Ready", ready).await;
    let address = url.trim_start_matches("http://").trim_end_matches("/metrics");
    let _idle: Vec<_> = (0..500).map(|_| std::net::TcpStream::connect(address).unwrap()).collect();
    let (code, text) = scrape(&url, &[]);
    assert_eq!(code, 200, "{}", operator.log());
    let series =
        ["controller_runtime_reconcile_total", "\"memcached-controller\"", "result=\"success\""];
    let reconciles = value(&text, &series);
    assert!(reconciles.is_some_and(|count| count >= 1.0), "{text}");
    for name in ["memcached-sample", bench.namespace.name()] {
        assert!(!text.contains(name), "{name} in\n{text}");
    }
}

#[tokio::test]
async fn the_network_policy_selects_the_manager() {
    let bench = Bench::shared("policy").await;
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/config");
    let place = |text: String| {
        text.replace("namespace: system", &format!("namespace: {}", bench.namespace.name()))
    };
    let policy = place(bench.kubectl(&["kustomize", &format!("{folder}/network-policy")]));
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), policy).unwrap();
    let path = file.path().display().to_string();
    let selector = "jsonpath={.spec.podSelector.matchLabels}";
    let selected = bench.kubectl(&["apply", "-f", &path, "-o", selector]);
    let manager = std::fs::read_to_string(format!("{folder}/manager/manager.yaml")).unwrap();
    let deployment = manager.split("---\n").last().unwrap();
    let deployment: serde_json::Value = serde_saphyr::from_str(deployment).unwrap();
    let selected: serde_json::Value = serde_json::from_str(&selected).unwrap();
    assert_eq!(selected, deployment["spec"]["template"]["metadata"]["labels"]);
}

#[tokio::test]
async fn a_certificate_from_files_is_read_anew_when_it_changes() {
    let bench = Bench::shared("certified").await;
    let folder = tempfile::tempdir().unwrap();
    let make = |name: &str| {
        let made = Command::new("openssl")
            .args([
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:P-256",
                "-nodes",
            ])
            .args(["-days", "1", "-keyout", "tls.key", "-out", "tls.crt", "-subj"])
            .arg(format!("/CN={name}"))
            .current_dir(&folder)
            .output()
            .unwrap();
        assert!(made.status.success());
    };
    make("first");
    let path = folder.path().to_str().unwrap();
    let flags = ["--metrics-cert-path", path, "--metrics-require-rbac=false"];
    let (_operator, url) = serving(&bench, bench.cluster.kubeconfig(), &flags).await;
    let subject = || scrape_subject(&url);
    assert!(subject().contains("CN=first"), "{}", subject());
    make("second");
    eventually("the new certificate is served", async || {
        let found = subject();
        if found.contains("CN=second") { Ok(()) } else { Err(found) }
    })
    .await;
}

fn scrape_subject(url: &str) -> String {
    let output =
        Command::new("curl").args(["--silent", "--insecure", "--verbose", url]).output().unwrap();
    String::from_utf8_lossy(&output.stderr).replace("CN = ", "CN=")
}

#[tokio::test]
async fn events_tell_what_happened_and_repetitions_are_counted() {
    let bench = Bench::shared("told").await;
    let chart = mirror("");
    let _operator = bench.operator_of(&chart);
    let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "m" } });
    create(
        &bench.memcacheds(),
        "cache.my.domain/v1alpha1",
        "Memcached",
        "a",
        json!({ "objects": [map] }),
    )
    .await;
    becomes(&bench.memcacheds(), "a", "Deployed", |o| condition(o, "Deployed") == "True").await;
    let other = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "o" } });
    upgrade(&bench, "a", &other).await;
    patch(&bench.memcacheds(), "a", json!({ "spec": { "objects": [{ "apiVersion": "v1", "kind": "NoSuchKind", "metadata": { "name": "n" } }] } })).await;
    let events = eventually("the failure is told, and counted", async || {
        let told = bench.kubectl(&["get", "events.v1.events.k8s.io", "-o", "json"]);
        let told: serde_json::Value = serde_json::from_str(&told).unwrap();
        let of = |reason: &str| {
            let items = told["items"].as_array().unwrap().iter();
            items.filter(|event| event["reason"] == reason).cloned().collect::<Vec<_>>()
        };
        let failed = [of("UpgradeError"), of("ReconcileError")].concat();
        if failed.iter().any(|event| event["series"]["count"].as_i64() >= Some(2)) {
            Ok((of("UpgradeSuccessful"), failed))
        } else {
            Err(told.to_string())
        }
    })
    .await;
    let (upgraded, failed) = events;
    assert_eq!(upgraded.len(), 1);
    assert_eq!(upgraded[0]["type"], "Normal");
    assert_eq!(upgraded[0]["regarding"]["kind"], "Memcached");
    assert_eq!(upgraded[0]["reportingController"], "memcached-operator");
    assert_eq!(failed.len(), 1, "the same trouble is one event: {failed:#?}");
    assert_eq!(failed[0]["type"], "Warning");
    assert!(failed[0]["note"].as_str().unwrap().contains("NoSuchKind"), "{failed:#?}");
}

/// Has a release another object than before; an installation alone makes no event.
async fn upgrade(bench: &Bench, name: &str, object: &serde_json::Value) {
    patch(&bench.memcacheds(), name, json!({ "spec": { "objects": [object] } })).await;
    becomes(&bench.memcacheds(), name, "upgraded", |o| {
        support::number(o, "/status/deployedRelease/version") == Some(2)
    })
    .await;
}

/// Rights to all that the operator does, but to events only through `group`.
async fn with_events_of(group: Option<&str>, name: &str) -> (Bench, Operator) {
    let bench = Bench::shared(name).await;
    let namespace = bench.namespace.name().to_owned();
    let mut rules = vec![
        json!({ "apiGroups": ["cache.my.domain", "apps", "apiextensions.k8s.io"], "resources": ["*"], "verbs": ["*"] }),
        json!({ "apiGroups": [""], "resources": ["secrets", "configmaps", "pods"], "verbs": ["*"] }),
    ];
    if let Some(group) = group {
        rules.push(
            json!({ "apiGroups": [group], "resources": ["events"], "verbs": ["create", "patch"] }),
        );
    }
    let role = json!({ "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": { "name": "narrow" }, "rules": rules });
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("role.json");
    std::fs::write(&file, role.to_string()).unwrap();
    bench.kubectl(&["apply", "-f", file.to_str().unwrap()]);
    bench.kubectl(&[
        "create",
        "rolebinding",
        "narrow",
        "--role=narrow",
        &format!("--serviceaccount={namespace}:narrow"),
    ]);
    let kubeconfig = bench.cluster.service_account(&namespace, "narrow").await.unwrap();
    let chart = mirror("");
    let mut command = Operator::command(&kubeconfig);
    command.arg("--watches-file").arg(chart.path().join("watches.yaml"));
    command.env("WATCH_NAMESPACE", &namespace);
    let operator = Operator::start(command);
    let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "m" } });
    for release in ["a", "b"] {
        let mut map = map.clone();
        map["metadata"]["name"] = release.into();
        let spec = json!({ "objects": [map] });
        create(&bench.memcacheds(), "cache.my.domain/v1alpha1", "Memcached", release, spec).await;
        becomes(&bench.memcacheds(), release, "Deployed", |o| condition(o, "Deployed") == "True")
            .await;
        map["metadata"]["name"] = format!("{release}-later").into();
        upgrade(&bench, release, &map).await;
    }
    (bench, operator)
}

#[tokio::test]
async fn older_rights_are_used_and_missing_ones_are_said_once() {
    let (bench, operator) = with_events_of(Some(""), "eventsold").await;
    eventually("an event of core/v1", async || {
        let told = bench.kubectl(&["get", "events.v1.", "-o", "json"]);
        let told: serde_json::Value = serde_json::from_str(&told).unwrap();
        let items = told["items"].as_array().unwrap();
        let old = |event: &&serde_json::Value| {
            event["reason"] == "UpgradeSuccessful"
                && event["source"]["component"] == "memcached-operator"
        };
        if items.iter().filter(old).count() == 2 { Ok(()) } else { Err(told.to_string()) }
    })
    .await;
    drop((bench, operator));

    let (_bench, operator) = with_events_of(None, "eventsnone").await;
    eventually("it is said", async || {
        if operator.log().contains("no right to create events") {
            Ok(())
        } else {
            Err(operator.log())
        }
    })
    .await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(operator.log().matches("no right to create events").count(), 1);
}
