//! What client-side Helm installs and server-side apply refuses, or takes for something else.
//!
//! Helm 3 sends objects as they are; the API server reads them as Go does: of two items with one key
//! both stay, a field that is null was not given. Server-side apply refuses the former, and owns the
//! latter: a null would take replicas from an autoscaler and unset what the API server chose. So what
//! is sent says the same in a way that apply understands.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::core::GroupVersionKind;
use serde_json::{Map, Value, json};

/// The groups of Kubernetes' own kinds, in whose structs a null is no value. Definitions are left out:
/// in a schema, null may be one.
const BUILT_IN: [&str; 19] = [
    "",
    "apps",
    "autoscaling",
    "batch",
    "extensions",
    "policy",
    "admissionregistration.k8s.io",
    "apiregistration.k8s.io",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "rbac.authorization.k8s.io",
    "resource.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
];

/// Fields of built-in kinds that are maps of texts: a null in them is an empty text.
const MAPS: [&str; 12] = [
    "annotations",
    "binaryData",
    "data",
    "labels",
    "matchLabels",
    "nodeSelector",
    "options",
    "parameters",
    "selector",
    "stringData",
    "volumeAttributes",
    "attributes",
];

/// Lists of pods and of their containers whose items apply tells apart by a key, and in which
/// duplicates pass the API server's own checks.
const OF_PODS: [(&str, &[&str]); 2] = [("imagePullSecrets", &["name"]), ("hostAliases", &["ip"])];
const OF_CONTAINERS: [(&str, &[&str]); 2] =
    [("env", &["name"]), ("ports", &["containerPort", "protocol"])];

/// Makes an object of a manifest one that apply takes as client-side Helm meant it. Yields what was
/// left out of it, in words for people.
pub(crate) fn make_applicable(gvk: &GroupVersionKind, object: &mut Value) -> Vec<String> {
    let mut warnings = Vec::new();
    if !is_built_in(gvk) {
        return warnings;
    }
    leave_nulls_out(object);
    if gvk.group.is_empty() && gvk.kind == "Secret" {
        fold_string_data(object);
    }
    if let Some(pod) = object.pointer_mut(pod_spec(gvk)) {
        collapse_pod(pod, &mut warnings);
    }
    warnings
}

/// Whether Kubernetes itself brings the kind; definitions are left out.
pub(crate) fn is_built_in(gvk: &GroupVersionKind) -> bool {
    BUILT_IN.contains(&gvk.group.as_str())
}

fn leave_nulls_out(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            for (name, value) in fields.iter_mut() {
                if !MAPS.contains(&name.as_str()) || is_struct(value) {
                    leave_nulls_out(value);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(leave_nulls_out),
        _ => {}
    }
}

/// Whether a field named like a map is a struct: `selector` of a Deployment, not of a Service.
fn is_struct(value: &Value) -> bool {
    let mut values = value.as_object().into_iter().flat_map(Map::values);
    values.any(|value| value.is_object() || value.is_array())
}

/// Strategies that exclude the defaults of the one before: kind, field, and the type that does.
const STRATEGIES: [(&str, &str, &str); 2] =
    [("Deployment", "strategy", "Recreate"), ("StatefulSet", "updateStrategy", "OnDelete")];

/// For an object whose apply the API server refused, the merge patch after which it may not: of the
/// strategy before, an apply leaves the defaults, which nobody owns, and both together are invalid.
/// Client-side Helm drops them.
pub(crate) fn change_of_strategy(gvk: &GroupVersionKind, object: &Value) -> Option<Value> {
    let of_kind = |(kind, ..): &&(&str, &str, &str)| gvk.group == "apps" && gvk.kind == *kind;
    let (_, field, excludes) = STRATEGIES.iter().find(of_kind)?;
    let strategy = object.get("spec")?.get(*field)?;
    let is_new = strategy.get("type")?.as_str() == Some(excludes);
    let drop = json!({"spec": {*field: {"type": excludes, "rollingUpdate": null}}});
    (is_new && strategy.get("rollingUpdate").is_none()).then_some(drop)
}

/// `stringData` is never stored: a key of it that is not wanted any more would stay for ever.
fn fold_string_data(secret: &mut Value) {
    let Some(secret) = secret.as_object_mut() else { return };
    let texts = secret.get("stringData").and_then(Value::as_object);
    let encoded: Option<Map<String, Value>> = texts.and_then(|texts| {
        let encode = |(key, value): (&String, &Value)| {
            Some((key.clone(), STANDARD.encode(value.as_str()?).into()))
        };
        texts.iter().map(encode).collect()
    });
    // Anything but texts is for the API server to refuse.
    let Some(encoded) = encoded else { return };
    match secret.entry("data").or_insert_with(|| Value::Object(Map::new())) {
        // A text must not hide that what it stands for was wrong.
        Value::Object(data) if data.values().all(is_base64) => data.extend(encoded),
        _ => return,
    }
    secret.remove("stringData");
}

fn is_base64(value: &Value) -> bool {
    let text = value.as_str().map(|text| text.replace(['\r', '\n'], ""));
    text.is_some_and(|text| STANDARD.decode(text).is_ok())
}

/// Where the pod of an object is, if it has one.
fn pod_spec(gvk: &GroupVersionKind) -> &'static str {
    match (gvk.group.as_str(), gvk.kind.as_str()) {
        ("", "Pod") => "/spec",
        ("", "PodTemplate") => "/template/spec",
        ("batch", "CronJob") => "/spec/jobTemplate/spec/template/spec",
        _ => "/spec/template/spec",
    }
}

fn collapse_pod(pod: &mut Value, warnings: &mut Vec<String>) {
    for (list, keys) in OF_PODS {
        collapse(pod.get_mut(list), keys, list, warnings);
    }
    for containers in ["initContainers", "containers"] {
        let Some(containers) = pod.get_mut(containers).and_then(Value::as_array_mut) else {
            continue;
        };
        for container in containers {
            let name = container.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
            for (list, keys) in OF_CONTAINERS {
                let place = format!("{list} of container {name}");
                collapse(container.get_mut(list), keys, &place, warnings);
            }
        }
    }
}

/// Of several items with one key the last stays, as the kubelet reads them: in the place of the first,
/// for those that refer to it, unless it refers to others itself.
fn collapse(list: Option<&mut Value>, keys: &[&str], place: &str, warnings: &mut Vec<String>) {
    let Some(items) = list.and_then(Value::as_array_mut) else { return };
    let mut kept: Vec<Option<Value>> = Vec::with_capacity(items.len());
    let mut known: HashMap<Vec<Value>, usize> = HashMap::with_capacity(items.len());
    for item in items.drain(..) {
        let Some(key) = key_of(&item, keys) else {
            kept.push(Some(item));
            continue;
        };
        let told = |key: &[Value]| key.iter().map(told).collect::<Vec<_>>().join("/");
        let refers =
            item.get("value").and_then(Value::as_str).is_some_and(|text| text.contains("$("));
        let next = kept.len();
        match known.entry(key) {
            Entry::Vacant(new) => {
                new.insert(next);
                kept.push(Some(item));
            }
            Entry::Occupied(mut before) => {
                let key = told(before.key());
                warnings.push(format!("{key} is in {place} more than once: the last one counts"));
                let slot = kept.get_mut(*before.get());
                if refers {
                    slot.map(Option::take);
                    before.insert(next);
                    kept.push(Some(item));
                } else if let Some(slot) = slot {
                    *slot = Some(item);
                }
            }
        }
    }
    items.extend(kept.into_iter().flatten());
}

/// What tells an item from others, with the default that the API server would fill in.
fn key_of(item: &Value, keys: &[&str]) -> Option<Vec<Value>> {
    let value = |name: &&str| match item.get(*name) {
        Some(value) => Some(value.clone()),
        None if *name == "protocol" => Some("TCP".into()),
        None => None,
    };
    keys.iter().map(value).collect()
}

fn told(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(group: &str, kind: &str, mut object: Value) -> (Value, Vec<String>) {
        let warnings = make_applicable(&GroupVersionKind::gvk(group, "v1", kind), &mut object);
        (object, warnings)
    }

    #[test]
    fn the_last_of_several_counts() {
        let container = json!({
            "name": "c",
            "env": [
                {"name": "A", "value": "1"}, {"name": "B", "value": "$(A)"}, {"name": "A", "value": "2"},
                {"name": "C", "value": "1"}, {"name": "D", "value": "1"}, {"name": "C", "value": "$(D)"},
            ],
            "ports": [
                {"containerPort": 80, "name": "x"}, {"containerPort": 80, "protocol": "TCP", "name": "y"},
                {"containerPort": 80, "protocol": "UDP"},
            ],
        });
        let spec =
            json!({"containers": [container], "imagePullSecrets": [{"name": "s"}, {"name": "s"}]});
        let collapsed = json!({"imagePullSecrets": [{"name": "s"}], "containers": [{
            "name": "c",
            "env": [
                {"name": "A", "value": "2"}, {"name": "B", "value": "$(A)"},
                {"name": "D", "value": "1"}, {"name": "C", "value": "$(D)"},
            ],
            "ports": [
                {"containerPort": 80, "protocol": "TCP", "name": "y"}, {"containerPort": 80, "protocol": "UDP"},
            ],
        }]});
        let warnings = [
            "s is in imagePullSecrets more than once: the last one counts",
            "A is in env of container c more than once: the last one counts",
            "C is in env of container c more than once: the last one counts",
            "80/TCP is in ports of container c more than once: the last one counts",
        ];
        let (object, told) = made("", "Pod", json!({"spec": spec}));
        assert_eq!(
            (object, told),
            (json!({"spec": collapsed}), warnings.map(str::to_owned).to_vec())
        );
        let within = |spec: &Value| json!({"spec": {"template": {"spec": spec}}});
        assert_eq!(made("apps", "Deployment", within(&spec)).0, within(&collapsed));
        let job = json!({"spec": {"jobTemplate": within(&spec)}});
        assert_eq!(
            made("batch", "CronJob", job).0,
            json!({"spec": {"jobTemplate": within(&collapsed)}})
        );
    }

    /// With work that grew with the square of the list this took many minutes.
    #[test]
    fn a_hundred_thousand_items_of_few_keys_collapse() {
        let item = |number: usize| json!({"name": format!("s{}", number % 50_000)});
        let items: Vec<Value> = (0..100_000).map(item).collect();
        let spec = json!({"containers": [{"name": "c", "env": items}], "imagePullSecrets": items});
        let (object, told) = made("", "Pod", json!({"spec": spec}));
        assert_eq!(told.len(), 100_000);
        let expected: Vec<Value> = (0..50_000).map(item).collect();
        assert_eq!(object["spec"]["imagePullSecrets"], Value::from(expected.clone()));
        assert_eq!(object["spec"]["containers"][0]["env"], Value::from(expected));
    }

    #[test]
    fn a_strategy_takes_the_defaults_of_the_other_away() {
        for (kind, field, other) in STRATEGIES {
            let gvk = GroupVersionKind::gvk("apps", "v1", kind);
            let patch =
                |strategy: Value| change_of_strategy(&gvk, &json!({"spec": {field: strategy}}));
            let drop = json!({"spec": {field: {"type": other, "rollingUpdate": null}}});
            assert_eq!(patch(json!({"type": other})), Some(drop), "{kind}");
            assert_eq!(patch(json!({"type": "RollingUpdate"})), None);
            // What is wrong in the chart stays wrong.
            assert_eq!(patch(json!({"type": other, "rollingUpdate": {"maxSurge": 1}})), None);
        }
    }

    #[test]
    fn texts_of_a_secret_become_its_data() {
        let secret = json!({"stringData": {"a": "1"}, "data": {"a": "eA==", "b": "eQ=="}});
        assert_eq!(made("", "Secret", secret).0, json!({"data": {"a": "MQ==", "b": "eQ=="}}));
        assert_eq!(made("", "Secret", json!({"stringData": {}})).0, json!({"data": {}}));
        for refused in [
            json!({"stringData": "x"}),
            json!({"stringData": {"a": 1}}),
            json!({"data": 1, "stringData": {}}),
            json!({"data": {"a": "?"}, "stringData": {"a": "x"}}),
        ] {
            assert_eq!(made("", "Secret", refused.clone()).0, refused);
        }
    }

    #[test]
    fn a_null_is_no_value_where_it_is_a_field_and_stays_where_it_is_content() {
        let object = json!({
            "metadata": {"labels": {"a": null}, "annotations": null},
            "spec": {"replicas": null, "selector": {"matchLabels": {"a": "b"}, "matchExpressions": null}},
        });
        let left = json!({
            "metadata": {"labels": {"a": null}},
            "spec": {"selector": {"matchLabels": {"a": "b"}}},
        });
        assert_eq!(made("apps", "Deployment", object.clone()).0, left);
        assert_eq!(made("example.dev", "Thing", object.clone()).0, object);
        assert_eq!(
            made("apiextensions.k8s.io", "CustomResourceDefinition", object.clone()).0,
            object
        );
    }
}
