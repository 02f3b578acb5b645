//! A resource that is too large or nested too deep is the trouble of that resource alone.

#![allow(clippy::unwrap_used)] // helpers of tests fail as tests do

mod support;

use kube::api::PostParams;
use kube::core::Request;
use serde_json::{Value, json};
use support::{
    Bench, Operator, becomes, condition, create, delete, eventually, mirror, patch, vanishes,
};

/// What the memory of a debug build may be at most, in MiB: much less than all resources of the test take,
/// and more than an optimised build has (docs/manager.md).
const MEMORY: usize = 256;

/// Creates a resource whose text no client decodes.
async fn create_raw(bench: &Bench, name: &str, spec: &str) {
    let text = format!(
        r#"{{"apiVersion":"cache.my.domain/v1alpha1","kind":"Memcached","metadata":{{"name":"{name}"}},"spec":{spec}}}"#
    );
    let memcacheds = bench.memcacheds();
    let request = Request::new(memcacheds.resource_url());
    let request = request.create(&PostParams::default(), text.into_bytes()).unwrap();
    memcacheds.into_client().request_text(request).await.unwrap();
}

fn nested(depth: usize) -> String {
    format!("{}1{}", r#"{"a":"#.repeat(depth), "}".repeat(depth))
}

/// The condition Ready of a resource that no client decodes: reason and message.
fn ready(bench: &Bench, name: &str) -> String {
    let path = "{.status.conditions[?(@.type==\"Ready\")]['reason','message']}";
    bench.kubectl(&["get", "memcached", name, "-o", &format!("jsonpath={path}")])
}

async fn says(bench: &Bench, name: &str, what: &str) {
    eventually(name, async || match ready(bench, name) {
        told if told.contains(what) => Ok(()),
        told => Err(told),
    })
    .await;
}

/// The most memory that the operator has had, in MiB.
fn peak(operator: &Operator) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", operator.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    peak.trim().trim_end_matches(" kB").trim().parse::<usize>().unwrap() / 1024
}

fn map(name: &str) -> Value {
    json!({ "objects": [{ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name } }] })
}

async fn honest(bench: &Bench, name: &str) {
    create(&bench.memcacheds(), "cache.my.domain/v1alpha1", "Memcached", name, map(name)).await;
    // Others' resources cannot be decoded by this client, but this one can.
    becomes(&bench.memcacheds(), name, "Ready", |it| condition(it, "Ready") == "True").await;
}

#[tokio::test]
async fn a_resource_over_a_bound_gets_a_condition_and_stops_no_other() {
    let bench = Bench::shared("bounds").await;
    let chart = mirror("");
    let operator = bench.operator_of(&chart);
    honest(&bench, "before").await;
    let maps = format!("{{\"a\":[{}]}}", vec![r#"{"a":1}"#; 175_000].join(","));
    let chains = format!("{{\"a\":[{}]}}", vec![nested(90); 2_500].join(","));
    let over = [
        (
            "deep",
            nested(140),
            "SpecTooLarge the object is too large: it has 141 levels of nesting, the bound is 100",
        ),
        ("deeper", nested(5_000), "5001 levels of nesting, the bound is 100"),
        ("maps", maps.clone(), "values (objects, lists, strings, numbers), the bound is 25000"),
        ("chains", chains, "values (objects, lists, strings, numbers), the bound is 25000"),
    ];
    for (name, spec, told) in &over {
        create_raw(&bench, name, spec).await;
        says(&bench, name, told).await;
    }
    honest(&bench, "beside").await;
    // What is deployed stays deployed while its resource cannot be decoded.
    let grown: Value = serde_json::from_str(&maps).unwrap();
    honest(&bench, "grown").await;
    patch(&bench.memcacheds(), "grown", json!({ "spec": grown })).await;
    says(&bench, "grown", "SpecTooLarge").await;
    let maps = bench.api("v1", "ConfigMap");
    assert!(maps.get("grown").await.is_ok());
    let before = peak(&operator);
    drop(operator);

    let operator = bench.operator_of(&chart);
    honest(&bench, "after").await;
    patch(&bench.memcacheds(), "before", json!({ "spec": map("another") })).await;
    becomes(&maps, "another", "made", |_| true).await;
    // Made smaller it is a resource like any other; deleted it is gone, and so is its release.
    patch(&bench.memcacheds(), "grown", json!({ "spec": { "a": null } })).await;
    becomes(&bench.memcacheds(), "grown", "Ready", |it| {
        condition(it, "Ready") == "True" && condition(it, "Irreconcilable") != "True"
    })
    .await;
    patch(
        &bench.memcacheds(),
        "grown",
        json!({ "spec": { "a": { "b": serde_json::from_str::<Value>(&nested(110)).unwrap() } } }),
    )
    .await;
    says(&bench, "grown", "SpecTooLarge").await;
    for name in ["grown", "deep", "maps"] {
        bench.kubectl(&["delete", "memcached", name, "--wait=false"]);
        vanishes(&bench.memcacheds(), name).await;
    }
    vanishes(&maps, "grown").await;
    println!("peak: {before} MiB, after a restart {} MiB", peak(&operator));
    assert!(before < MEMORY && peak(&operator) < MEMORY, "{before} {}", peak(&operator));
    delete(&bench.memcacheds(), "after").await;
    vanishes(&bench.memcacheds(), "after").await;
}

#[tokio::test]
async fn a_namespace_full_of_the_largest_resources_does_not_fill_the_memory() {
    const COUNT: usize = 40;
    let bench = Bench::shared("full").await;
    let chart = mirror("");
    for number in 0..COUNT {
        let spec = format!(r#"{{"objects":[],"note":"{}"}}"#, "n".repeat(1_400_000));
        create_raw(&bench, &format!("large{number}"), &spec).await;
    }
    // As many values as the bound lets through, in maps of one field each.
    let values = format!("{{\"objects\":[],\"a\":[{}]}}", vec![r#"{"a":1}"#; 12_400].join(","));
    let operator = bench.operator_of(&chart);
    honest(&bench, "honest").await;
    println!("peak when the honest one is ready: {} MiB", peak(&operator));
    for number in 0..COUNT {
        says(&bench, &format!("large{number}"), "Ready all").await;
    }
    let strings = peak(&operator);
    for number in 0..4 {
        let name = format!("values{number}");
        create_raw(&bench, &name, &values).await;
        says(&bench, &name, "Ready all").await;
    }
    println!("peak: {strings} MiB of long strings, {} MiB in all", peak(&operator));
    assert!(peak(&operator) < MEMORY, "{} MiB", peak(&operator));
}
