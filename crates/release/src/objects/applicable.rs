//! What client-side Helm installs and server-side apply refuses, or takes for something else.
//!
//! Helm 3 sends objects as they are; the API server reads them as Go does: of two items with one key
//! both stay, a field that is null was not given. Server-side apply refuses the former, and owns the
//! latter: a null would take replicas from an autoscaler and unset what the API server chose. So what
//! is sent says the same in a way that apply understands.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::core::GroupVersionKind;
use serde_json::{Map, Value};

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
    drop_alternative(gvk, object);
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

/// A change of strategy: of the one before, apply would leave the defaults, which nobody owns, and the
/// API server refuse both together. Client-side Helm drops them; so does a null.
fn drop_alternative(gvk: &GroupVersionKind, object: &mut Value) {
    let of_kind = |(kind, ..): &&(&str, &str, &str)| gvk.group == "apps" && gvk.kind == *kind;
    let Some((_, field, excludes)) = STRATEGIES.iter().find(of_kind) else { return };
    let strategy = object.pointer_mut("/spec").and_then(|spec| spec.get_mut(*field));
    if let Some(strategy) = strategy.and_then(Value::as_object_mut)
        && strategy.get("type").and_then(Value::as_str) == Some(excludes)
    {
        strategy.entry("rollingUpdate").or_insert(Value::Null);
    }
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
    let mut kept: Vec<Value> = Vec::with_capacity(items.len());
    for item in items.drain(..) {
        let key = key_of(&item, keys);
        let before = kept.iter().position(|kept| key.is_some() && key_of(kept, keys) == key);
        let Some(before) = before else {
            kept.push(item);
            continue;
        };
        let told: Vec<String> = key.iter().flatten().map(told).collect();
        warnings
            .push(format!("{} is in {place} more than once: the last one counts", told.join("/")));
        let refers =
            item.get("value").and_then(Value::as_str).is_some_and(|text| text.contains("$("));
        if refers {
            kept.remove(before);
            kept.push(item);
        } else if let Some(slot) = kept.get_mut(before) {
            *slot = item;
        }
    }
    *items = kept;
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
    use serde_json::json;

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

    #[test]
    fn a_strategy_takes_the_defaults_of_the_other_away() {
        for (kind, field, other) in STRATEGIES {
            let with = |strategy: Value| json!({"spec": {field: strategy}});
            let (object, _) =
                made("apps", kind, with(json!({"type": other, "rollingUpdate": null})));
            assert_eq!(object, with(json!({"type": other, "rollingUpdate": null})), "{kind}");
            let rolling = with(json!({"type": "RollingUpdate"}));
            assert_eq!(made("apps", kind, rolling.clone()).0, rolling);
            // What the API server refuses is for it to refuse.
            let both = with(json!({"type": other, "rollingUpdate": {"maxSurge": 1}}));
            assert_eq!(made("apps", kind, both.clone()).0, both);
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
