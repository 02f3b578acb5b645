//! Many resources of several charts, some of them broken for good: the others do not notice.

use serde_json::json;

use crate::support::{MIRROR, Stage, config_map, field, is, until};

const KINDS: [&str; 5] = ["Alpha", "Beta", "Gamma", "Delta", "Epsilon"];
const EACH: usize = 12;

#[tokio::test]
async fn broken_ones_say_why_and_hold_up_nobody() {
    let mut stage = Stage::new("crowd").await;
    let mut watches = Vec::new();
    for kind in KINDS {
        let chart = kind.to_lowercase();
        stage.define(kind, "Namespaced", &["v1"]);
        stage.chart(&chart, &[("templates/all.yaml", MIRROR)]);
        watches.push(format!(
            "- {{group: GROUP, version: v1, kind: {kind}, chart: helm-charts/{chart}}}\n"
        ));
    }
    stage.watches(&watches.concat());
    // One place for each kind: what hangs or fails has to give it back.
    let _operator = stage.operator_with(&["--max-concurrent-reconciles=1"]);
    let is_broken = |number: usize| number % 10 == 3;
    let refused = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": "refused" },
        "spec": { "ports": [{ "port": 99_999_999 }] },
    });
    let nowhere =
        json!({ "apiVersion": "none.test/v1", "kind": "None", "metadata": { "name": "a" } });
    let all = (0..EACH).flat_map(|number| KINDS.iter().map(move |kind| (number, *kind)));
    let list: Vec<_> = all
        .enumerate()
        .map(|(at, (number, kind))| {
            let name = format!("it-{number}");
            let object = match (is_broken(at), number % 3) {
                (false, _) => config_map(&format!("{}-{number}", kind.to_lowercase()), &json!({})),
                (true, 0) => refused.clone(),
                (true, 1) => nowhere.clone(),
                (true, _) => json!("no object"),
            };
            stage.resource(kind, &name, &json!({ "objects": [object] }))
        })
        .collect();
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": list });
    stage.apply(&list);
    until("all but the broken are ready, and those say why", || {
        let mut waits = Vec::new();
        for (at, kind) in KINDS.iter().enumerate() {
            let told = stage.kubectl(&[
                "get",
                &stage.kind(&format!("{}s", kind.to_lowercase())),
                "-o",
                "json",
            ]);
            let told: serde_json::Value = serde_json::from_str(&told).unwrap();
            for object in told["items"].as_array().unwrap() {
                let name = object["metadata"]["name"].as_str().unwrap();
                let number: usize = name.trim_start_matches("it-").parse().unwrap();
                let fine = if is_broken(number * KINDS.len() + at) {
                    is(object, "Ready", "False") && !field(object, "Ready", "message").is_empty()
                } else {
                    is(object, "Ready", "True")
                };
                if !fine {
                    waits.push(format!("{kind} {name}: {}", object["status"]["conditions"]));
                }
            }
        }
        if waits.is_empty() { Ok(()) } else { Err(waits.join("\n")) }
    });
}
