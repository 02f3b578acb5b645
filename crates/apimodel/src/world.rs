//! The objects, and what requests do to them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::Served;
use crate::answer::Refusal;
use crate::changes::Writer;
use crate::kinds::{self, Kind, Place};
use crate::request::{Request, Verb};
use crate::rules::{
    carried_over, check_immutable, check_place, check_versions, is_established, is_free,
    is_selected, keep_for, patched, text, tidied,
};

/// When the world begins.
const BEGIN: i64 = 1_800_000_000;

/// A cluster's state.
#[derive(Clone)]
pub(crate) struct World {
    pub objects: BTreeMap<Place, Value>,
    pub served: Vec<Served>,
    kinds: Vec<Kind>,
    version: u64,
    uids: u64,
    now: i64,
}

type Answer = Result<(u16, Value), Refusal>;

impl World {
    pub fn new() -> Self {
        let mut world = Self {
            objects: BTreeMap::new(),
            served: Vec::new(),
            kinds: kinds::built_in(),
            version: 1000,
            uids: 0,
            now: BEGIN,
        };
        let default =
            json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "default" } });
        let uri = "/api/v1/namespaces";
        if let Ok(request) =
            Request::read("POST", uri, "application/json", default.to_string().as_bytes())
        {
            drop(world.serve(&request));
        }
        world
    }

    pub fn now(&self) -> Timestamp {
        Timestamp::from_second(self.now).unwrap_or(Timestamp::UNIX_EPOCH)
    }

    pub fn pass(&mut self, seconds: i64) {
        self.now += seconds;
    }

    pub fn all(&self, resource: &str) -> Vec<Value> {
        let of = |(place, _): &(&Place, &Value)| place.1 == resource;
        self.objects.iter().filter(of).map(|(_, object)| object.clone()).collect()
    }

    pub fn find(&self, resource: &str, namespace: &str, name: &str) -> Option<&Value> {
        let is = |place: &Place| (&*place.1, &*place.2, &*place.3) == (resource, namespace, name);
        self.objects.iter().find(|(place, _)| is(place)).map(|(_, object)| object)
    }

    /// All kinds that are served now.
    pub fn served_kinds(&self) -> Vec<Kind> {
        let mut all = self.kinds.clone();
        for (place, definition) in &self.objects {
            if place.1 == "customresourcedefinitions" && is_established(definition) {
                all.extend(kinds::defined(definition));
            }
        }
        all
    }

    pub fn serve(&mut self, request: &Request) -> Answer {
        let kinds = self.served_kinds();
        if request.verb == Verb::Discover {
            let found = kinds::discovery(&request.path, &kinds);
            return found.map(|body| (200, body)).ok_or_else(Refusal::no_path);
        }
        let served = kinds.iter().find(|kind| {
            (&kind.group, &kind.version, &kind.plural)
                == (&request.group, &request.version, &request.resource)
        });
        let Some(kind) = served.filter(|kind| {
            kind.namespaced == request.namespace.is_some() || request.verb == Verb::List
        }) else {
            return Err(Refusal::no_path());
        };
        if !request.subresource.is_empty() {
            return Err(Refusal::unknown(&format!("the subresource {}", request.subresource)));
        }
        let place = (
            kind.group.clone(),
            kind.plural.clone(),
            request.namespace.clone().unwrap_or_default(),
            request.name.clone(),
        );
        match request.verb {
            Verb::Get => {
                let found = self.objects.get(&place).cloned();
                found
                    .map(|object| (200, object))
                    .ok_or_else(|| Refusal::not_found(kind, &request.name))
            }
            Verb::List => Ok((200, self.list(kind, request))),
            Verb::Create => self.create(kind, request, place),
            Verb::Update => self.update(kind, request, &place),
            Verb::MergePatch => self.merge_patch(kind, request, &place),
            Verb::Apply => self.apply(kind, request, place),
            Verb::Delete => self.delete(kind, request, &place),
            Verb::Discover => Err(Refusal::no_path()),
        }
    }

    fn list(&self, kind: &Kind, request: &Request) -> Value {
        let within = |place: &Place| {
            (&place.0, &place.1) == (&kind.group, &kind.plural)
                && request.namespace.as_ref().is_none_or(|namespace| *namespace == place.2)
        };
        let empty = String::new();
        let labels = request.query.get("labelSelector").unwrap_or(&empty);
        let found = self.objects.iter();
        let found = found.filter(|(place, object)| within(place) && is_selected(object, labels));
        let mut items: Vec<Value> = found.map(|(_, object)| object.clone()).collect();
        // Items of the server's own kinds do not say what they are.
        for item in items.iter_mut().filter(|_| !kind.custom).filter_map(Value::as_object_mut) {
            item.remove("kind");
            item.remove("apiVersion");
        }
        json!({
            "kind": format!("{}List", kind.kind), "apiVersion": kind.api_version(),
            "metadata": { "resourceVersion": self.version.to_string() }, "items": items,
        })
    }

    fn create(&mut self, kind: &Kind, request: &Request, mut place: Place) -> Answer {
        let object = request.body.clone();
        text(&object, "name").clone_into(&mut place.3);
        check_place(kind, &place, &object)?;
        if place.3.is_empty() {
            return Err(Refusal::invalid(
                kind,
                "",
                "metadata.name: Required value: name or generateName is required",
            ));
        }
        self.check_namespace(kind, &place)?;
        if self.objects.contains_key(&place) {
            return Err(Refusal::exists(kind, &place.3));
        }
        if !text(&object, "resourceVersion").is_empty() {
            return Err(Refusal::bad("resourceVersion should not be set on objects to be created"));
        }
        let object = self.born(kind, &place, object);
        let object = self.writer(kind, request).update(&Value::Null, object);
        Ok((201, self.store(request, place, object)))
    }

    fn update(&mut self, kind: &Kind, request: &Request, place: &Place) -> Answer {
        let object = request.body.clone();
        check_place(kind, place, &object)?;
        if text(&object, "name") != place.3 {
            return Err(Refusal::bad("the name of the object does not match the name on the URL"));
        }
        let live = self.live(kind, place)?;
        check_versions(kind, &live, &object)?;
        let object = carried_over(kind, &live, object);
        self.change(kind, request, place, &live, object)
    }

    fn merge_patch(&mut self, kind: &Kind, request: &Request, place: &Place) -> Answer {
        let live = self.live(kind, place)?;
        let mut object = live.clone();
        check_versions(kind, &live, &request.body)?;
        patched(&mut object, &request.body);
        let object = carried_over(kind, &live, object);
        self.change(kind, request, place, &live, object)
    }

    fn change(
        &mut self,
        kind: &Kind,
        request: &Request,
        place: &Place,
        live: &Value,
        object: Value,
    ) -> Answer {
        check_immutable(kind, live, &object)?;
        let object = self.writer(kind, request).update(live, object);
        Ok((200, self.settle(kind, request, place, live, object)))
    }

    fn apply(&mut self, kind: &Kind, request: &Request, place: Place) -> Answer {
        check_place(kind, &place, &request.body)?;
        let Some(live) = self.objects.get(&place).cloned() else {
            self.check_namespace(kind, &place)?;
            if !text(&request.body, "uid").is_empty() {
                let why = "uid mismatch: no existing object was found";
                return Err(Refusal::conflict(kind, &place.3, why));
            }
            let writer = self.writer(kind, request);
            let object = writer.apply(&Value::Null, &request.body, request.is_forced())?;
            let object = self.born(kind, &place, object);
            return Ok((201, self.store(request, place, object)));
        };
        let writer = self.writer(kind, request);
        let object = writer.apply(&live, &request.body, request.is_forced())?;
        check_versions(kind, &live, &request.body)?;
        let object = carried_over(kind, &live, object);
        check_immutable(kind, &live, &object)?;
        Ok((200, self.settle(kind, request, &place, &live, object)))
    }

    /// Stores a changed object: not at all if nothing changed, and it is gone if only its last
    /// finalizer kept it.
    fn settle(
        &mut self,
        kind: &Kind,
        request: &Request,
        place: &Place,
        live: &Value,
        mut object: Value,
    ) -> Value {
        if object == *live {
            return object;
        }
        if kind.has_generation() && object.get("spec") != live.get("spec") {
            let generation = live.pointer("/metadata/generation").and_then(Value::as_u64);
            object["metadata"]["generation"] = (generation.unwrap_or(1) + 1).into();
        }
        let leaving = object["metadata"].get("deletionTimestamp").is_some();
        if leaving && is_free(&object) && !request.dry_run {
            self.version += 1;
            object["metadata"]["resourceVersion"] = self.version.to_string().into();
            self.objects.remove(place);
            return object;
        }
        self.store(request, place.clone(), object)
    }

    fn delete(&mut self, kind: &Kind, request: &Request, place: &Place) -> Answer {
        let mut object = self.live(kind, place)?;
        let wanted = |field: &str| request.body["preconditions"].get(field).and_then(Value::as_str);
        for (field, told) in [("uid", "UID"), ("resourceVersion", "ResourceVersion")] {
            let is = text(&object, field);
            if let Some(shall) = wanted(field).filter(|shall| *shall != is) {
                let why = format!(
                    "Precondition failed: {told} in precondition: {shall}, {told} in object meta: {is}"
                );
                return Err(Refusal::conflict(kind, &place.3, &why));
            }
        }
        let asked = request.body["propagationPolicy"].as_str().unwrap_or("Background");
        let before = object.clone();
        keep_for(&mut object, asked);
        if kind.kind == "Namespace" {
            object["spec"]["finalizers"] = json!(["kubernetes"]);
            object["status"] = json!({ "phase": "Terminating" });
        }
        let told = json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
            "details": { "name": place.3, "group": kind.group, "kind": kind.plural, "uid": text(&object, "uid") } });
        if is_free(&object) {
            if !request.dry_run {
                self.version += 1;
                self.objects.remove(place);
            }
            return Ok((200, told));
        }
        if object["metadata"].get("deletionTimestamp").is_none() {
            object["metadata"]["deletionTimestamp"] = self.now().to_string().into();
            object["metadata"]["deletionGracePeriodSeconds"] = 0.into();
            if let Some(generation) = object.pointer("/metadata/generation").and_then(Value::as_u64)
            {
                object["metadata"]["generation"] = (generation + 1).into();
            }
        }
        if object == before {
            return Ok((200, object));
        }
        Ok((200, self.store(request, place.clone(), object)))
    }

    fn live(&self, kind: &Kind, place: &Place) -> Result<Value, Refusal> {
        self.objects.get(place).cloned().ok_or_else(|| Refusal::not_found(kind, &place.3))
    }

    fn writer(&self, kind: &Kind, request: &Request) -> Writer {
        let (manager, api_version) = (request.manager(), kind.api_version());
        Writer { manager, api_version, time: self.now().to_string() }
    }

    /// Nothing new comes into a namespace that is not there or leaves.
    fn check_namespace(&self, kind: &Kind, place: &Place) -> Result<(), Refusal> {
        if !kind.namespaced {
            return Ok(());
        }
        let namespace = self.find("namespaces", "", &place.2);
        let Some(namespace) = namespace else { return Err(Refusal::no_namespace(&place.2)) };
        match namespace["metadata"].get("deletionTimestamp") {
            Some(_) => Err(Refusal::terminating(kind, &place.3, &place.2)),
            None => Ok(()),
        }
    }

    /// What the API server gives a new object.
    fn born(&mut self, kind: &Kind, place: &Place, mut object: Value) -> Value {
        self.uids += 1;
        object["apiVersion"] = kind.api_version().into();
        object["kind"] = kind.kind.clone().into();
        let metadata = &mut object["metadata"];
        metadata["name"] = place.3.clone().into();
        if kind.namespaced {
            metadata["namespace"] = place.2.clone().into();
        }
        metadata["uid"] = format!("00000000-0000-4000-8000-{:012}", self.uids).into();
        metadata["creationTimestamp"] = self.now().to_string().into();
        if kind.has_generation() {
            metadata["generation"] = 1.into();
        }
        if kind.kind == "Namespace" {
            object["spec"] = json!({ "finalizers": ["kubernetes"] });
            object["status"] = json!({ "phase": "Active" });
        }
        if kind.kind == "Secret" && object.get("type").is_none() {
            object["type"] = "Opaque".into();
        }
        tidied(&mut object);
        object
    }

    fn store(&mut self, request: &Request, place: Place, object: Value) -> Value {
        if request.dry_run { object } else { self.put(place, object) }
    }

    /// Puts an object in its place, with a new version.
    pub fn put(&mut self, place: Place, mut object: Value) -> Value {
        self.version += 1;
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        self.objects.insert(place, object.clone());
        object
    }
}
