use super::*;
use serde_json::json;

/// A live object of manager `helm`, with these fields and this tree.
fn live(mut object: Value, fields: &Value) -> Value {
    let entry = json!({
        "manager": "helm", "operation": "Apply", "apiVersion": object["apiVersion"],
        "fieldsType": "FieldsV1", "fieldsV1": fields,
    });
    object["metadata"]["managedFields"] = json!([entry]);
    object
}

fn told(desired: &Value, live: &Value) -> Vec<String> {
    let short = |kind| match kind {
        Kind::NotApplied => "!",
        Kind::NotOurs => "+",
        Kind::Surplus => "-",
        Kind::Doubtful => "?",
    };
    let found = compare(desired, live, "helm");
    found.iter().map(|found| format!("{} {}", short(found.kind), found.path)).collect()
}

fn map(data: Value) -> Value {
    let mut object = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a", "namespace": "ns" } });
    object["data"] = data;
    object
}

#[test]
fn maps_are_compared_field_by_field() {
    let tree = json!({ "f:data": { "f:a": {}, "f:b": {} } });
    let rows: [(&str, Value, Value, Value, &[&str]); 8] = [
        ("the same", json!({"a": "1", "b": "2"}), json!({"a": "1", "b": "2"}), tree.clone(), &[]),
        (
            "others added",
            json!({"a": "1", "b": "2"}),
            json!({"a": "1", "b": "2", "x": "9"}),
            tree.clone(),
            &[],
        ),
        (
            "changed by another",
            json!({"a": "1", "b": "2"}),
            json!({"a": "1", "b": "9"}),
            json!({"f:data": {"f:a": {}}}),
            &["+ data.b"],
        ),
        (
            "removed by another",
            json!({"a": "1", "b": "2"}),
            json!({"a": "1"}),
            json!({"f:data": {"f:a": {}}}),
            &["+ data.b"],
        ),
        (
            "not wanted any more",
            json!({"a": "1"}),
            json!({"a": "1", "b": "2"}),
            tree.clone(),
            &["- data.b"],
        ),
        (
            "wanted anew",
            json!({"a": "1", "b": "2", "c": "3"}),
            json!({"a": "1", "b": "2"}),
            tree.clone(),
            &["+ data.c"],
        ),
        (
            "another value of ours",
            json!({"a": "1", "b": "2"}),
            json!({"a": "1", "b": "3"}),
            tree.clone(),
            &["? data.b"],
        ),
        ("nothing wanted", json!(null), json!({"a": "1", "b": "2"}), tree.clone(), &["- data"]),
    ];
    let others = json!({"f:data": {"f:a": {}}});
    let emptied = [
        (
            "nothing in it",
            json!({"a": "1", "b": {"c": null}}),
            json!({"a": "1"}),
            others.clone(),
            &[][..],
        ),
        (
            "perhaps removed",
            json!({"a": "1", "b": ""}),
            json!({"a": "1"}),
            others.clone(),
            &["? data.b"],
        ),
        (
            "no longer empty",
            json!({"a": "1", "b": ""}),
            json!({"a": "1", "b": "9"}),
            others.clone(),
            &["+ data.b"],
        ),
        (
            "no longer false",
            json!({"a": "1", "b": false}),
            json!({"a": "1", "b": true}),
            others.clone(),
            &["+ data.b"],
        ),
        (
            "null, and others' to say",
            json!({"a": "1", "b": null}),
            json!({"a": "1", "b": 9}),
            others,
            &[],
        ),
    ];
    for (what, desired, there, tree, expected) in rows.into_iter().chain(emptied) {
        assert_eq!(told(&map(desired), &live(map(there), &tree)), expected, "{what}");
    }
}

#[test]
fn an_object_that_was_never_applied_says_so() {
    let object = map(json!({"a": "1"}));
    assert_eq!(told(&object, &object), ["! everything"]);
    let mut older = object.clone();
    older["apiVersion"] = "v1beta1".into();
    let older = live(older, &json!({ "f:data": { "f:a": {} } }));
    assert_eq!(told(&object, &older), ["! everything"]);
}

#[test]
fn what_the_api_server_takes_for_nobodys_is_not_missed() {
    let mut desired = map(json!({"a": "1"}));
    desired["metadata"]["creationTimestamp"] = json!(null);
    desired["metadata"]["labels"] = json!({"x": "y"});
    desired["metadata"]["annotations"] = json!({});
    desired["status"] = json!({"phase": "x"});
    let tree = json!({ "f:data": { "f:a": {} }, "f:metadata": { "f:labels": { "f:x": {} } } });
    assert_eq!(told(&desired, &live(desired.clone(), &tree)), [""; 0]);
    let bare = json!({ "f:data": { "f:a": {} } });
    assert_eq!(told(&desired, &live(desired.clone(), &bare)), ["+ metadata.labels"]);
}

fn pod(containers: &Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "a" }, "spec": { "containers": containers } })
}

/// As an API server of 1.36 answers to such an apply.
#[test]
fn items_are_found_by_their_keys_wherever_they_are() {
    let desired = pod(&json!([{
        "name": "c", "image": "x", "args": [], "env": [{"name": "A", "value": ""}, {"name": "B"}],
        "resources": {"limits": {"cpu": "1000m", "memory": "1024Mi"}, "requests": {"cpu": 0.5}},
        "ports": [{"containerPort": 53}, {"containerPort": 53, "protocol": "UDP"}], "securityContext": {},
    }]));
    let there = pod(&json!([
        {"name": "injected", "image": "proxy"},
        {
            "name": "c", "image": "x", "imagePullPolicy": "Always", "env": [{"name": "B"}, {"name": "A"}],
            "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}},
            "ports": [{"containerPort": 53, "protocol": "TCP"}, {"containerPort": 53, "protocol": "UDP"}],
            "securityContext": {},
        },
    ]));
    let env = json!({
        r#"k:{"name":"A"}"#: {".": {}, "f:name": {}, "f:value": {}}, r#"k:{"name":"B"}"#: {".": {}, "f:name": {}},
    });
    let ports = json!({
        r#"k:{"containerPort":53,"protocol":"UDP"}"#: {".": {}, "f:containerPort": {}, "f:protocol": {}},
        r#"k:{"containerPort":53,"protocol":"TCP"}"#: {".": {}, "f:containerPort": {}},
    });
    let tree = json!({"f:spec": {"f:containers": {r#"k:{"name":"c"}"#: {
        ".": {}, "f:name": {}, "f:image": {}, "f:args": {}, "f:env": env, "f:ports": ports,
        "f:resources": {"f:limits": {"f:cpu": {}, "f:memory": {}}, "f:requests": {"f:cpu": {}}},
        "f:securityContext": {},
    }}}});
    let there = live(there, &tree);
    assert_eq!(told(&desired, &there), [""; 0]);

    let mut other = desired.clone();
    other["spec"]["containers"][0]["env"] = json!([{"name": "A"}, {"name": "C"}]);
    other["spec"]["containers"][0]["ports"] = json!([{"containerPort": 53, "protocol": "UDP"}]);
    other["spec"]["containers"][0]["resources"]["limits"]["cpu"] = json!("1100m");
    let c = "spec.containers[name=c]";
    let expected = [
        format!("- {c}.env[name=A].value"),
        format!("- {c}.env[name=B]"),
        format!("+ {c}.env[name=C]"),
        format!("- {c}.ports[containerPort=53,protocol=TCP]"),
        format!("? {c}.resources.limits.cpu"),
    ];
    assert_eq!(told(&other, &there), expected);
}

#[test]
fn sets_and_atomic_lists_are_compared_as_such() {
    let mut desired = pod(&json!([]));
    desired["metadata"]["finalizers"] = json!(["a.io/x", "a.io/y"]);
    desired["spec"]["tolerations"] = json!([{"key": "k"}]);
    let mut there = desired.clone();
    there["metadata"]["finalizers"] = json!(["b.io/z", "a.io/y", "a.io/x"]);
    there["spec"]["tolerations"] = json!([{"key": "k", "operator": "Equal"}]);
    let tree = json!({
        "f:metadata": {"f:finalizers": {".": {}, r#"v:"a.io/x""#: {}, r#"v:"a.io/y""#: {}}},
        "f:spec": {"f:tolerations": {}},
    });
    assert_eq!(told(&desired, &live(there.clone(), &tree)), [""; 0]);
    desired["metadata"]["finalizers"] = json!(["a.io/x", "a.io/w"]);
    desired["spec"]["tolerations"] = json!([{"key": "k"}, {"key": "l"}]);
    let expected =
        ["- metadata.finalizers[a.io/y]", "+ metadata.finalizers[a.io/w]", "? spec.tolerations"];
    assert_eq!(told(&desired, &live(there, &tree)), expected);
}

#[test]
fn a_place_is_a_json_pointer_into_what_is_wanted() {
    let mut desired = pod(&json!([{"name": "b"}, {"name": "c", "image": "x"}]));
    desired["metadata"]["annotations"] = json!({"a.io/b~c": "d"});
    let tree = json!({"f:metadata": {"f:labels": {}}, "f:spec": {"f:containers": {
        r#"k:{"name":"c"}"#: {".": {}, "f:name": {}}, r#"k:{"name":"z"}"#: {".": {}, "f:name": {}},
    }}});
    let mut there = live(desired.clone(), &tree);
    there["spec"]["containers"][1]["image"] = "y".into();
    let found = compare(&desired, &there, "helm");
    let pointers: Vec<_> = found.iter().map(|found| found.path.pointer()).collect();
    let some = |pointer: &str| Some(pointer.to_owned());
    let expected = [
        some("/metadata/labels"),
        some("/metadata/annotations"),
        some("/spec/containers/1/image"),
        None,
        some("/spec/containers/0"),
    ];
    assert_eq!(pointers, expected);
    assert_eq!(found[1].path.to_string(), "metadata.annotations");
}

#[test]
fn the_autoscaler_is_known_by_how_it_writes() {
    let by = |manager: &str, subresource: &str| {
        is_autoscaled(&json!({"metadata": {"managedFields": [{
            "manager": manager, "operation": "Update", "subresource": subresource,
            "fieldsV1": {"f:spec": {"f:replicas": {}}},
        }]}}))
    };
    assert!(by("kube-controller-manager", "scale"));
    assert!(!by("kubectl", "scale"));
    assert!(!by("kube-controller-manager", ""));
}

/// A pod with so many `imagePullSecrets`, and the same as the API server has it, in reverse order.
fn pull_secrets(count: usize) -> (Value, Value) {
    let items = |numbers: &mut dyn Iterator<Item = usize>| -> Value {
        numbers.map(|number| json!({"name": format!("s{number}")})).collect()
    };
    let pod = |secrets| json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"imagePullSecrets": secrets}});
    let members: Map<String, Value> = (0..count)
        .map(|number| (format!("k:{{\"name\":\"s{number}\"}}"), json!({".": {}, "f:name": {}})))
        .collect();
    let tree = json!({"f:spec": {"f:imagePullSecrets": members}});
    (pod(items(&mut (0..count))), live(pod(items(&mut (0..count).rev())), &tree))
}

/// With work that grew with the square of the list this took hours.
#[test]
fn a_hundred_thousand_items_with_keys_are_compared() {
    let (mut desired, live) = pull_secrets(100_000);
    assert_eq!(compare(&desired, &live, "helm"), []);
    desired["spec"]["imagePullSecrets"][77_777]["name"] = "other".into();
    assert_eq!(
        told(&desired, &live),
        ["- spec.imagePullSecrets[name=s77777]", "+ spec.imagePullSecrets[name=other]"]
    );
}

#[test]
fn a_hundred_thousand_members_of_a_set_are_compared() {
    let names: Vec<String> = (0..100_000).map(|number| format!("f{number}")).collect();
    let members: Map<String, Value> =
        names.iter().map(|name| (format!("v:\"{name}\""), json!({}))).collect();
    let object = |finalizers: &[String]| json!({"apiVersion": "v1", "kind": "A", "metadata": {"name": "a", "finalizers": finalizers}});
    let live = live(object(&names), &json!({"f:metadata": {"f:finalizers": members}}));
    assert_eq!(compare(&object(&names), &live, "helm"), []);
    let kept = names.split_last().unwrap().1;
    assert_eq!(told(&object(kept), &live), ["- metadata.finalizers[f99999]"]);
}

#[test]
fn differences_below_a_long_name_are_told_as_one_once_their_text_is_too_long() {
    let long = "n".repeat(1 << 20);
    let fields = |value: &str| -> Value {
        (0..1000)
            .map(|number| (format!("f{number}"), Value::from(value)))
            .collect::<Map<_, _>>()
            .into()
    };
    let object = |value: &str| json!({"apiVersion": "g.io/v1", "kind": "A", "metadata": {"name": "a"}, "spec": {long.as_str(): fields(value)}});
    let live = live(object("theirs"), &json!({}));
    let found = compare(&object("ours"), &live, "helm");
    assert!(found.len() < 10, "{}", found.len());
    let last = found.last().unwrap();
    assert_eq!((last.path.to_string().as_str(), last.kind), ("everything", Kind::NotOurs));
}

#[test]
fn items_without_the_whole_key_take_what_is_left_in_order() {
    let port = |port: u16, protocol: Option<&str>| match protocol {
        Some(protocol) => json!({"port": port, "protocol": protocol}),
        None => json!({"port": port}),
    };
    let keys: Vec<ItemKey> = [(53, "TCP"), (53, "UDP"), (80, "TCP")]
        .map(|(number, protocol)| port(number, Some(protocol)).as_object().unwrap().clone())
        .into();
    for (desired, expected) in [
        (
            vec![port(53, None), port(53, Some("TCP")), port(80, None)],
            vec![Some(1), Some(0), Some(2)],
        ),
        (vec![port(53, None), port(53, None), port(53, None)], vec![Some(0), Some(1), None]),
        (vec![json!({"protocol": "TCP"}), json!({})], vec![Some(0), Some(1)]),
        (vec![json!({"port": 80, "protocol": null}), json!("text")], vec![Some(2), Some(0)]),
        (vec![port(81, None), port(80, Some("UDP"))], vec![None, None]),
    ] {
        assert_eq!(Keys::new(&keys).unwrap().assign(&desired), expected, "{desired:?}");
    }
}
