//! What the API server says of an object, and of what is to become of it.

use serde_json::{Map, Value};

use crate::answer::Refusal;
use crate::kinds::{Kind, Place};

/// A string of an object's metadata.
pub(crate) fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"].get(field).and_then(Value::as_str).unwrap_or_default()
}

/// Whether nothing keeps an object that is deleted.
pub(crate) fn is_free(object: &Value) -> bool {
    let any =
        |list: Option<&Value>| list.and_then(Value::as_array).is_some_and(|all| !all.is_empty());
    let namespace = object["kind"] == "Namespace";
    let held = any(object["metadata"].get("finalizers"));
    !held && (!namespace || !any(object.pointer("/spec/finalizers")))
}

pub(crate) fn is_established(definition: &Value) -> bool {
    let conditions = definition.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().any(|it| it["type"] == "Established" && it["status"] == "True")
}

/// The finalizer that a way of deletion puts on an object.
pub(crate) fn keep_for(object: &mut Value, policy: &str) {
    let name = match policy {
        "Foreground" => "foregroundDeletion",
        "Orphan" => "orphan",
        _ => return,
    };
    let mut finalizers = object["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
    if !finalizers.contains(&name.into()) {
        finalizers.push(name.into());
    }
    object["metadata"]["finalizers"] = finalizers.into();
}

pub(crate) fn check_place(kind: &Kind, place: &Place, object: &Value) -> Result<(), Refusal> {
    if object["kind"] != kind.kind.as_str() || object["apiVersion"] != kind.api_version().as_str() {
        return Err(Refusal::bad("the kind of the object is not the one of the path"));
    }
    let namespace = text(object, "namespace");
    if kind.namespaced && !namespace.is_empty() && namespace != place.2 {
        return Err(Refusal::bad(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    Ok(())
}

/// An object that says which version, or which uid, it changes.
pub(crate) fn check_versions(kind: &Kind, live: &Value, object: &Value) -> Result<(), Refusal> {
    let (name, uid, version) =
        (text(live, "name"), text(object, "uid"), text(object, "resourceVersion"));
    if !uid.is_empty() && uid != text(live, "uid") {
        let why = format!(
            "Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
            text(live, "uid")
        );
        return Err(Refusal::conflict(kind, name, &why));
    }
    if !version.is_empty() && version != text(live, "resourceVersion") {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        return Err(Refusal::conflict(kind, name, why));
    }
    Ok(())
}

pub(crate) fn check_immutable(kind: &Kind, live: &Value, object: &Value) -> Result<(), Refusal> {
    let name = text(live, "name");
    let changed = |path: &str| live.pointer(path) != object.pointer(path);
    let fixed = live["immutable"] == true;
    let finalizers = |object: &Value| {
        object["metadata"].get("finalizers").and_then(Value::as_array).cloned().unwrap_or_default()
    };
    let held_by = finalizers(live);
    let leaves = live["metadata"].get("deletionTimestamp").is_some();
    if leaves && finalizers(object).iter().any(|name| !held_by.contains(name)) {
        let why = "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted";
        return Err(Refusal::invalid(kind, name, why));
    }
    match kind.kind.as_str() {
        "Secret" if changed("/type") => {
            Err(Refusal::invalid(kind, name, "type: field is immutable"))
        }
        "Secret" | "ConfigMap" if fixed && (changed("/data") || changed("/immutable")) => {
            Err(Refusal::invalid(
                kind,
                name,
                "data: Forbidden: field is immutable when `immutable` is set",
            ))
        }
        "Job" if changed("/spec/template") => {
            Err(Refusal::invalid(kind, name, "spec.template: Invalid value: field is immutable"))
        }
        "Deployment" if changed("/spec/selector") => {
            Err(Refusal::invalid(kind, name, "spec.selector: Invalid value: field is immutable"))
        }
        _ => Ok(()),
    }
}

/// What a write cannot change.
pub(crate) fn carried_over(kind: &Kind, live: &Value, mut object: Value) -> Value {
    object["apiVersion"] = kind.api_version().into();
    object["kind"] = kind.kind.clone().into();
    let fixed = [
        "name",
        "namespace",
        "uid",
        "creationTimestamp",
        "generation",
        "resourceVersion",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ];
    for field in fixed {
        match (live["metadata"].get(field), object["metadata"].as_object_mut()) {
            (Some(value), Some(metadata)) => drop(metadata.insert(field.to_owned(), value.clone())),
            (None, Some(metadata)) => drop(metadata.remove(field)),
            (_, None) => {}
        }
    }
    let status =
        if kind.kind == "ConfigMap" || kind.kind == "Secret" { None } else { live.get("status") };
    if let (Some(status), Some(object)) = (status, object.as_object_mut()) {
        object.insert("status".to_owned(), status.clone());
    }
    if kind.kind == "Namespace" {
        object["spec"] = live["spec"].clone();
    }
    if kind.kind == "Secret" && object.get("type").is_none() {
        object["type"] = "Opaque".into();
    }
    tidied(&mut object);
    object
}

/// Without what is empty and left out by the kinds that matter here.
pub(crate) fn tidied(object: &mut Value) {
    let is_bare = |value: &Value| match value {
        Value::Null => true,
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    };
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|_, value| !is_bare(value));
    }
    if let Some(fields) = object.as_object_mut() {
        fields.retain(|name, value| {
            !(matches!(name.as_str(), "data" | "stringData" | "binaryData") && is_bare(value))
        });
    }
}

/// A JSON merge patch (RFC 7386).
pub(crate) fn patched(value: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else { return *value = patch.clone() };
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    for (name, patch) in fields {
        if patch.is_null() {
            if let Some(fields) = value.as_object_mut() {
                fields.remove(name);
            }
        } else {
            patched(&mut value[name.as_str()], patch);
        }
    }
}

pub(crate) fn is_selected(object: &Value, selector: &str) -> bool {
    let label = |name: &str| object["metadata"]["labels"].get(name).and_then(Value::as_str);
    selector.split(',').filter(|term| !term.is_empty()).all(|term| match term.split_once('=') {
        Some((name, value)) => label(name) == Some(value.trim_start_matches('=')),
        None => label(term).is_some(),
    })
}
