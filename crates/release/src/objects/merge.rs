//! Merging on the client's side, as Helm 3 does it, and Helm 4 with `--server-side=false`.
//!
//! What an earlier revision wanted and this one does not is taken away, what this one wants is set, and
//! what neither speaks of stays as it is. In lists of Kubernetes' own kinds this goes item by item
//! where the API tells its items apart by a key; other lists are one value. For custom resources Helm
//! looks at the two manifests alone: what they have the same is left as it is.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value, json};

/// Lists whose items are told apart by a key: the field that they are in (or the list whose item that
/// is), their own name, and the keys. From the types of `k8s.io/api`, `patchMergeKey`; ports are told
/// apart by their protocol, too, as by server-side apply: without that, the API's own merge loses one of
/// two ports of one number.
const LISTS: [(&str, &str, &[&str]); 25] = [
    ("", "secrets", &["name"]),
    ("", "webhooks", &["name"]),
    ("metadata", "ownerReferences", &["uid"]),
    ("spec", "containers", &["name"]),
    ("spec", "ephemeralContainers", &["name"]),
    ("spec", "hostAliases", &["ip"]),
    ("spec", "imagePullSecrets", &["name"]),
    ("spec", "initContainers", &["name"]),
    ("spec", "matchConditions", &["name"]),
    ("spec", "ports", &["port", "protocol"]),
    ("spec", "resourceClaims", &["name"]),
    ("spec", "schedulingGates", &["name"]),
    ("spec", "topologySpreadConstraints", &["topologyKey", "whenUnsatisfiable"]),
    ("spec", "variables", &["name"]),
    ("spec", "volumes", &["name"]),
    ("webhooks", "matchConditions", &["name"]),
    ("containers", "env", &["name"]),
    ("containers", "ports", &["containerPort", "protocol"]),
    ("containers", "volumeDevices", &["devicePath"]),
    ("containers", "volumeMounts", &["mountPath"]),
    ("initContainers", "env", &["name"]),
    ("initContainers", "ports", &["containerPort", "protocol"]),
    ("initContainers", "volumeDevices", &["devicePath"]),
    ("initContainers", "volumeMounts", &["mountPath"]),
    ("ephemeralContainers", "env", &["name"]),
];
/// Lists of texts that are sets.
const SETS: [(&str, &str); 1] = [("metadata", "finalizers")];
/// Fields of which only what is wanted stays: their fields exclude one another.
const ALTERNATIVES: [(&str, &str); 2] = [("spec", "strategy"), ("spec", "volumes")];

/// The live object of one of Kubernetes' own kinds with what `new` wants, and without what any of `old`
/// wanted and `new` does not.
pub(crate) fn merged(live: &Value, old: &[&Value], new: &Value) -> Value {
    match (live.as_object(), new.as_object()) {
        (Some(live), Some(new)) => {
            let old: Vec<&Map<String, Value>> =
                old.iter().filter_map(|old| old.as_object()).collect();
            Value::Object(maps(live, &old, new, ""))
        }
        _ => new.clone(),
    }
}

type Fields<'a> = &'a Map<String, Value>;

fn maps(live: Fields<'_>, old: &[Fields<'_>], new: Fields<'_>, at: &str) -> Map<String, Value> {
    let mut all = live.clone();
    for key in old.iter().flat_map(|old| old.keys()).filter(|key| !new.contains_key(*key)) {
        all.remove(key);
    }
    for (key, value) in new {
        if value.is_null() {
            all.remove(key);
            continue;
        }
        let before: Vec<&Value> = old.iter().filter_map(|old| old.get(key)).collect();
        let merged = match live.get(key) {
            Some(live) => field(live, &before, value, (at, key)),
            None => value.clone(),
        };
        all.insert(key.clone(), merged);
    }
    all
}

fn field(live: &Value, old: &[&Value], new: &Value, (at, key): (&str, &str)) -> Value {
    match (live, new) {
        (Value::Object(live), Value::Object(new)) => {
            let old: Vec<Fields<'_>> = old.iter().filter_map(|old| old.as_object()).collect();
            let mut all = maps(live, &old, new, key);
            if ALTERNATIVES.contains(&(at, key)) {
                all.retain(|key, _| new.contains_key(key));
            }
            Value::Object(all)
        }
        (Value::Array(live), Value::Array(new)) => {
            let old: Vec<&Vec<Value>> = old.iter().filter_map(|old| old.as_array()).collect();
            if SETS.contains(&(at, key)) {
                return Value::Array(set(live, &old, new));
            }
            let keys = LISTS.iter().find(|(parent, list, _)| (*parent, *list) == (at, key));
            match keys {
                Some((_, _, keys)) => Value::Array(items(live, &old, new, keys, (at, key))),
                None => Value::Array(new.clone()),
            }
        }
        _ => new.clone(),
    }
}

/// A list whose items have keys: those that are wanted in their order, each followed by those of others
/// that came after it.
fn items(
    live: &[Value],
    old: &[&Vec<Value>],
    new: &[Value],
    keys: &[&str],
    (at, list): (&str, &str),
) -> Vec<Value> {
    let live_by_key = by_key(live, keys);
    let old: Vec<ByKey<'_>> = old.iter().map(|old| by_key(old, keys)).collect();
    let merge = |item: &Value| {
        let key = key_of(item, keys);
        let before: Vec<&Value> = old.iter().filter_map(|old| old.get(&key).copied()).collect();
        let Some(live) = live_by_key.get(&key) else { return item.clone() };
        let mut merged = field(live, &before, item, ("", list));
        if let (true, Some(fields), Some(item)) =
            (ALTERNATIVES.contains(&(at, list)), merged.as_object_mut(), item.as_object())
        {
            fields.retain(|key, _| item.contains_key(key));
        }
        merged
    };
    // For each wanted item, and first for the beginning: those of others that follow it.
    let mut others: Vec<Vec<Value>> = vec![Vec::new(); new.len() + 1];
    let mut places: HashMap<Vec<Value>, usize> = HashMap::new();
    for (place, item) in new.iter().enumerate() {
        places.entry(key_of(item, keys)).or_insert(place + 1);
    }
    let mut after = 0;
    for item in live {
        let key = key_of(item, keys);
        if let Some(place) = places.get(&key) {
            after = *place;
        } else if !old.iter().any(|old| old.contains_key(&key)) {
            places.insert(key, after);
            others.get_mut(after).into_iter().for_each(|others| others.push(item.clone()));
        }
    }
    let mut others = others.into_iter();
    let mut all = others.next().unwrap_or_default();
    for (item, others) in new.iter().zip(others) {
        all.push(merge(item));
        all.extend(others);
    }
    all
}

type ByKey<'a> = HashMap<Vec<Value>, &'a Value>;

/// The first item of each key.
fn by_key<'a>(items: &'a [Value], keys: &[&str]) -> ByKey<'a> {
    let mut found = ByKey::with_capacity(items.len());
    for item in items {
        found.entry(key_of(item, keys)).or_insert(item);
    }
    found
}

fn key_of(item: &Value, keys: &[&str]) -> Vec<Value> {
    let value = |key: &&str| match item.get(*key) {
        Some(value) => value.clone(),
        None if *key == "protocol" => "TCP".into(),
        None => Value::Null,
    };
    keys.iter().map(value).collect()
}

fn set(live: &[Value], old: &[&Vec<Value>], new: &[Value]) -> Vec<Value> {
    let dropped: HashSet<&Value> = old.iter().flat_map(|old| old.iter()).collect();
    let kept: Vec<&Value> = live.iter().filter(|text| !dropped.contains(text)).collect();
    let mut known: HashSet<&Value> = kept.iter().copied().collect();
    let added: Vec<&Value> = new.iter().filter(|text| known.insert(text)).collect();
    kept.into_iter().chain(added).cloned().collect()
}

/// The JSON merge patch from one object to another; an empty one if they are the same.
pub(crate) fn changed(one: &Value, other: &Value) -> Value {
    let (Some(before), Some(after)) = (one.as_object(), other.as_object()) else {
        return other.clone();
    };
    let mut patch = Map::new();
    for key in before.keys().filter(|key| !after.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    for (key, value) in after {
        let change = match before.get(key) {
            Some(same) if same == value => continue,
            Some(fields) if fields.is_object() && value.is_object() => changed(fields, value),
            _ => value.clone(),
        };
        patch.insert(key.clone(), change);
    }
    Value::Object(patch)
}

/// The JSON merge patch for a custom resource: from what earlier revisions wanted to what this one does;
/// if none did, from what is there.
pub(crate) fn patched(live: &Value, old: &[&Value], new: &Value) -> Value {
    if old.is_empty() {
        let mut all = live.clone();
        lay_over(&mut all, new);
        return changed(live, &all);
    }
    let mut all = json!({});
    for old in old {
        lay_over(&mut all, &changed(old, new));
    }
    all
}

fn lay_over(all: &mut Value, patch: &Value) {
    match (all.as_object_mut(), patch.as_object()) {
        (Some(all), Some(patch)) => {
            for (key, value) in patch {
                lay_over(all.entry(key.clone()).or_insert_with(|| json!({})), value);
            }
        }
        _ => *all = patch.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn container(more: &Value) -> Value {
        let mut container = json!({"name": "c", "image": "one"});
        for (key, value) in more.as_object().into_iter().flatten() {
            container[key] = value.clone();
        }
        container
    }

    fn deployment(spec: &Value, containers: &[Value]) -> Value {
        let mut object = json!({"spec": {"template": {"spec": {"containers": containers}}}});
        for (key, value) in spec.as_object().into_iter().flatten() {
            object["spec"][key] = value.clone();
        }
        object
    }

    #[test]
    fn what_is_not_wanted_any_more_goes_and_what_others_set_stays() {
        let old = json!({"data": {"a": "1", "gone": "1"}, "metadata": {"labels": {"l": "1"}}});
        let new = json!({"data": {"a": "2", "b": "1"}, "metadata": {}});
        let live = json!({"data": {"a": "x", "gone": "x", "theirs": "x"}, "metadata": {"labels": {"l": "1", "m": "1"}, "uid": "u"}});
        // As Kubernetes' own merge does: the whole map went from the manifest.
        let whole = json!({"data": {"a": "2", "b": "1", "theirs": "x"}, "metadata": {"uid": "u"}});
        assert_eq!(merged(&live, &[&old], &new), whole);
        assert_eq!(
            changed(&live, &whole),
            json!({"data": {"a": "2", "b": "1", "gone": null}, "metadata": {"labels": null}})
        );
        assert_eq!(changed(&whole, &whole), json!({}));
    }

    #[test]
    fn items_with_keys_are_merged_one_by_one() {
        let env = |names: &[&str]| -> Value {
            let items = names.iter().map(|name| json!({"name": name, "value": "v"}));
            json!({ "env": items.collect::<Vec<_>>() })
        };
        let live = deployment(
            &json!({}),
            &[json!({"name": "sidecar"}), container(&env(&["A", "THEIRS", "GONE"]))],
        );
        let old = deployment(&json!({}), &[container(&env(&["A", "GONE"]))]);
        let new = deployment(&json!({}), &[container(&env(&["NEW", "A"]))]);
        let expected = deployment(
            &json!({}),
            &[json!({"name": "sidecar"}), container(&env(&["NEW", "A", "THEIRS"]))],
        );
        assert_eq!(merged(&live, &[&old], &new), expected);
    }

    /// With work that grew with the square of the list this took many minutes.
    #[test]
    fn a_hundred_thousand_items_are_merged() {
        let pod = |prefixes: &[&str]| -> Value {
            let names = (0..50_000).flat_map(|n| prefixes.iter().map(move |p| format!("{p}{n}")));
            let items: Vec<Value> = names.map(|name| json!({ "name": name })).collect();
            json!({"spec": {"imagePullSecrets": items}, "metadata": {"finalizers": items}})
        };
        let (live, old, new) = (pod(&["ours", "theirs"]), pod(&["gone"]), pod(&["ours"]));
        assert_eq!(merged(&live, &[&old], &new)["spec"], live["spec"]);
        let finalizers = &merged(&live, &[&new], &new)["metadata"]["finalizers"];
        assert_eq!(finalizers.as_array().map(Vec::len), Some(100_000));
    }

    #[test]
    fn of_alternatives_only_what_is_wanted_stays() {
        let live = deployment(
            &json!({"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}),
            &[],
        );
        let new = deployment(&json!({"strategy": {"type": "Recreate"}}), &[]);
        assert_eq!(merged(&live, &[&live], &new), new);
        let pod = |volume: Value| json!({"spec": {"volumes": [volume]}});
        let live = pod(json!({"name": "v", "configMap": {"name": "m", "defaultMode": 420}}));
        let new = pod(json!({"name": "v", "emptyDir": {}}));
        assert_eq!(merged(&live, &[], &new), new);
    }

    #[test]
    fn ports_of_one_number_and_two_protocols_are_two() {
        let service = |ports: Value| json!({"spec": {"ports": ports}});
        let live = service(
            json!([{"port": 53, "protocol": "TCP", "nodePort": 30_001}, {"port": 53, "protocol": "UDP", "nodePort": 30_002}]),
        );
        let new = service(
            json!([{"port": 53, "name": "a"}, {"port": 53, "protocol": "UDP", "name": "b"}]),
        );
        let all = service(json!([
            {"port": 53, "protocol": "TCP", "nodePort": 30_001, "name": "a"}, {"port": 53, "protocol": "UDP", "nodePort": 30_002, "name": "b"},
        ]));
        assert_eq!(merged(&live, &[&new], &new), all);
    }

    #[test]
    fn a_custom_resource_gets_the_difference_of_two_manifests() {
        let (first, second) =
            (json!({"spec": {"a": 1, "b": 1}}), json!({"spec": {"a": 1, "c": 1}}));
        let new = json!({"spec": {"a": 1, "b": 2}});
        let live = json!({"spec": {"a": 7, "theirs": 1}});
        assert_eq!(patched(&live, &[&first], &new), json!({"spec": {"b": 2}}));
        assert_eq!(patched(&live, &[&first, &second], &new), json!({"spec": {"b": 2, "c": null}}));
        assert_eq!(patched(&live, &[&new], &new), json!({}));
        assert_eq!(patched(&live, &[], &new), json!({"spec": {"a": 1, "b": 2}}));
    }
}
