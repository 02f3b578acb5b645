//! Our CEL finds what the API server's own finds.

use catamaran_cluster::budget::Budget;
use catamaran_cluster::cel::Program;
use http::Request;
use kube::Client;
use kube::api::{Api, DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

use crate::counted::Bench;
use crate::support::config_map;

/// Each is true, false, or has no answer.
const EXPRESSIONS: [&str; 34] = [
    "object.data.k == 'v'",
    "object.data.absent == 'v'",
    "has(object.data.absent) || has(object.data.k)",
    "object.data.absent == 'x' || true",
    "object.data.absent == 'x' && false",
    "object.data.absent == 'x' && true",
    "dyn(1) == 1.0 && dyn(1) == 1u && 1 < 1.5 && -1 < 1u",
    "-7 / 2 == -3 && -7 % 3 == -1",
    "1 / (size(object.data) - 2) == 0",
    "9223372036854775807 + size(object.data) > 0",
    "'a' + 'b' < 'b' && 'B' < 'a'",
    "'\\x41\\u00e9\\101' == 'A\\u00e9A' && r'\\n' == '\\\\n'",
    "size('h\\u00e9') == 2 && 'abc'.size() == 3",
    "object.data.all(k, k.startsWith('k'))",
    "object.data.exists(k, object.data[k] == 'v')",
    "object.data.exists_one(k, object.data[k] == 'v')",
    "[1, 2, 3].filter(i, i > 1).map(i, i * 2) == [4, 6]",
    "[1, 2, 3].map(i, i > 1, i + 1) == [3, 4]",
    "[1, 2].exists(i, 1 / (i - 2) == -1)",
    "[2, 1].all(i, 1 / (i - 2) == 1)",
    "2 in [1, 2] && 'k' in object.data && !('x' in object.data)",
    "{'a': [1]} == {'a': [1]} && {'a': 1}.a == 1",
    "object.?data[?'x'].orValue('d') == 'd'",
    "object.?metadata.?annotations[?'x'].hasValue()",
    "object.metadata.name.matches('^expr[a-z]+$') && !'b'.matches('^a')",
    "'a,b,c'.split(',').join('-') == 'a-b-c' && 'aa'.replace('a', 'b') == 'bb'",
    "' X '.trim().lowerAscii() == 'x' && 'x'.upperAscii() == 'X'",
    "int('7') + int(2.9) + int(3u) == 12 && double('1.5') == 1.5",
    "string(7) + string(true) + string(1.5) == '7true1.5'",
    "int(object.data.k) == 1",
    "true ? false : 1 / 0 == 1",
    "[1][1] == 1",
    "object.metadata.name in {'expressions': 1}",
    "1.0 / 0.0 > 1e300 && 0x1F == 31 && .5 == 5e-1",
];

#[tokio::test(flavor = "multi_thread")]
async fn expressions_mean_what_they_mean_to_the_api_server() {
    let Bench { namespace, client, cluster: _cluster, .. } = Bench::new("cel").await;
    make_policies(&client, &namespace).await;
    let mut object = config_map("expressions", "v");
    object["metadata"]["namespace"] = namespace.to_string().into();
    object["data"]["k2"] = "v".into();
    let expected: Vec<Option<bool>> = EXPRESSIONS
        .iter()
        .map(|text| {
            let budget = &mut Budget::new(50_000);
            Program::read(text).expect(text).holds(&[("object", &object)], budget).ok()
        })
        .collect();
    // Policies begin to hold some time after they were made.
    let begun = std::time::Instant::now();
    loop {
        let warned = warnings(&client, &namespace, &object).await;
        let answers: Vec<Option<bool>> =
            (0..EXPRESSIONS.len()).map(|at| answer(&warned, at)).collect();
        if answers == expected {
            break;
        }
        if begun.elapsed() > std::time::Duration::from_mins(1) {
            for ((text, theirs), ours) in EXPRESSIONS.iter().zip(&answers).zip(&expected) {
                assert_eq!(ours, theirs, "{text}: {warned:#?}");
            }
        }
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
}

/// A policy each: it warns where the expression is false, and differently where it has no answer.
async fn make_policies(client: &Client, namespace: &str) {
    let group = "admissionregistration.k8s.io";
    let api = |kind: &str| {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind));
        Api::<DynamicObject>::all_with(client.clone(), &resource)
    };
    let create = async |kind: &str, object: Value| {
        let object = serde_json::from_value(object).expect("an object");
        api(kind).create(&PostParams::default(), &object).await.expect("created");
    };
    for (at, expression) in EXPRESSIONS.iter().enumerate() {
        let name = format!("cel-{at}.{namespace}.test");
        let kinds = json!([{
            "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"],
        }]);
        create("ValidatingAdmissionPolicy", json!({
            "apiVersion": format!("{group}/v1"), "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name},
            "spec": {
                "matchConstraints": {"resourceRules": kinds},
                "validations": [{"expression": expression, "message": format!("{at} is false")}],
            },
        }))
        .await;
        let selector = json!({"matchLabels": {"kubernetes.io/metadata.name": namespace}});
        create("ValidatingAdmissionPolicyBinding", json!({
            "apiVersion": format!("{group}/v1"), "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": name},
            "spec": {
                "policyName": name, "validationActions": ["Warn"],
                "matchResources": {"namespaceSelector": selector},
            },
        }))
        .await;
    }
}

/// What the API server warns of when the object would be created.
async fn warnings(client: &Client, namespace: &str, object: &Value) -> Vec<String> {
    let path = format!("/api/v1/namespaces/{namespace}/configmaps?dryRun=All");
    let request = Request::post(path).header("content-type", "application/json");
    let request = request.body(object.to_string().into_bytes().into()).expect("a request");
    let response = client.send(request).await.expect("an answer");
    assert!(response.status().is_success(), "{}", response.status());
    let headers = response.headers().get_all("warning").into_iter();
    headers.map(|header| String::from_utf8_lossy(header.as_bytes()).into_owned()).collect()
}

fn answer(warned: &[String], at: usize) -> Option<bool> {
    let about = format!("cel-{at}.");
    match warned.iter().find(|warning| warning.contains(&about)) {
        None => Some(true),
        Some(warning) if warning.contains(&format!("{at} is false")) => Some(false),
        Some(_) => None,
    }
}
