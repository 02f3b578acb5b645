//! What moves by itself, a step at a time.

use serde_json::{Value, json};

use crate::kinds::Place;
use crate::rules::{is_free, text};
use crate::world::World;

/// Annotation of a Job's pod template: what its pod ends with. The simulated nodes know it, too.
const EXIT_CODE: &str = "fake.catamaran.test/exit-code";

impl World {
    /// One second, in which each controller does one round.
    pub fn tick(&mut self) {
        self.pass(1);
        let places: Vec<Place> = self.objects.keys().cloned().collect();
        for place in &places {
            let Some(object) = self.objects.get(place).cloned() else { continue };
            if object["metadata"].get("deletionTimestamp").is_some() {
                self.leave(place, object);
            } else if self.is_orphaned(&object) {
                self.collect(place, object);
            } else {
                self.work(place, object);
            }
        }
    }

    /// Jobs run and end, Deployments are available, definitions are in effect.
    fn work(&mut self, place: &Place, mut object: Value) {
        let generation = object["metadata"]["generation"].clone();
        let status = match object["kind"].as_str() {
            Some("Job") => self.job(place, &object),
            Some("Deployment") => {
                let replicas = object["spec"].get("replicas").cloned().unwrap_or_else(|| 1.into());
                Some(json!({
                    "observedGeneration": generation, "replicas": replicas, "updatedReplicas": replicas,
                    "readyReplicas": replicas, "availableReplicas": replicas,
                    "conditions": [
                        {"type": "Available", "status": "True"}, {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
                    ],
                }))
            }
            Some("CustomResourceDefinition") => Some(json!({ "conditions": [
                {"type": "NamesAccepted", "status": "True"}, {"type": "Established", "status": "True"},
            ]})),
            _ => None,
        };
        if let Some(status) = status.filter(|status| *status != object["status"]) {
            object["status"] = status;
            self.put(place.clone(), object);
        }
    }

    /// The status of a Job: its pod runs for a second. One that has ended may go by itself.
    fn job(&mut self, place: &Place, job: &Value) -> Option<Value> {
        let conditions = job.pointer("/status/conditions").and_then(Value::as_array);
        if conditions.is_some_and(|conditions| !conditions.is_empty()) {
            if job["spec"].get("ttlSecondsAfterFinished").is_some() {
                self.objects.remove(place);
            }
            return None;
        }
        if job["status"].get("active").is_none() {
            return Some(json!({ "active": 1, "startTime": self.now().to_string() }));
        }
        let annotations = &job["spec"]["template"]["metadata"]["annotations"];
        let code = annotations.get(EXIT_CODE).and_then(Value::as_str).unwrap_or("0");
        if code == "0" {
            let told = [("SuccessCriteriaMet", "CompletionsReached"), ("Complete", "CompletionsReached")]
                .map(|(kind, reason)| json!({ "type": kind, "status": "True", "reason": reason, "message": "" }));
            return Some(json!({ "succeeded": 1, "conditions": told }));
        }
        let told = ["FailureTarget", "Failed"].map(|kind| {
            let message = "Job has reached the specified backoff limit";
            json!({ "type": kind, "status": "True", "reason": "BackoffLimitExceeded", "message": message })
        });
        Some(json!({ "failed": 1, "conditions": told }))
    }

    /// Whether all owners of an object are gone.
    fn is_orphaned(&self, object: &Value) -> bool {
        let owners = object["metadata"].get("ownerReferences").and_then(Value::as_array);
        let is_there = |owner: &Value| {
            owner["uid"]
                .as_str()
                .is_some_and(|uid| self.objects.values().any(|it| text(it, "uid") == uid))
        };
        owners.is_some_and(|owners| !owners.is_empty() && !owners.iter().any(is_there))
    }

    /// Deletes an object in the background.
    fn collect(&mut self, place: &Place, mut object: Value) {
        if object["metadata"].get("deletionTimestamp").is_some() {
            return;
        }
        if is_free(&object) {
            self.objects.remove(place);
            return;
        }
        object["metadata"]["deletionTimestamp"] = self.now().to_string().into();
        self.put(place.clone(), object);
    }

    /// What an object on its way out waits for.
    fn leave(&mut self, place: &Place, mut object: Value) {
        let uid = text(&object, "uid").to_owned();
        let has = |object: &Value, name: &str| {
            let finalizers = object["metadata"]["finalizers"].as_array();
            finalizers.is_some_and(|all| all.iter().any(|finalizer| finalizer == name))
        };
        let owned = |it: &Value| {
            let owners = it["metadata"].get("ownerReferences").and_then(Value::as_array);
            owners.is_some_and(|owners| owners.iter().any(|owner| owner["uid"] == uid.as_str()))
        };
        let dependents: Vec<Place> = self
            .objects
            .iter()
            .filter(|(_, it)| owned(it))
            .map(|(place, _)| place.clone())
            .collect();
        if has(&object, "foregroundDeletion") {
            let blocking = dependents.len();
            for dependent in dependents {
                if let Some(it) = self.objects.get(&dependent).cloned() {
                    self.collect(&dependent, it);
                }
            }
            if blocking > 0 {
                return;
            }
            drop_finalizer(&mut object, "foregroundDeletion");
        } else if has(&object, "orphan") {
            for dependent in dependents {
                let Some(mut it) = self.objects.get(&dependent).cloned() else { continue };
                disown(&mut it, &uid);
                self.put(dependent, it);
            }
            drop_finalizer(&mut object, "orphan");
        }
        if object["kind"] == "Namespace" && !self.empty(&place.3) {
            return;
        }
        if object["kind"] == "Namespace" {
            object["spec"]["finalizers"] = json!([]);
        }
        if is_free(&object) {
            self.objects.remove(place);
        } else if self.objects.get(place) != Some(&object) {
            self.put(place.clone(), object);
        }
    }

    /// Deletes what is in a namespace; whether there was nothing.
    fn empty(&mut self, namespace: &str) -> bool {
        let inside: Vec<Place> =
            self.objects.keys().filter(|place| place.2 == namespace).cloned().collect();
        for place in &inside {
            if let Some(object) = self.objects.get(place).cloned() {
                self.collect(place, object);
            }
        }
        inside.is_empty()
    }
}

fn disown(object: &mut Value, uid: &str) {
    let Some(metadata) = object["metadata"].as_object_mut() else { return };
    if let Some(Value::Array(mut owners)) = metadata.remove("ownerReferences") {
        owners.retain(|owner| owner["uid"] != uid);
        if !owners.is_empty() {
            metadata.insert("ownerReferences".to_owned(), owners.into());
        }
    }
}

fn drop_finalizer(object: &mut Value, name: &str) {
    if let Some(finalizers) = object["metadata"]["finalizers"].as_array_mut() {
        finalizers.retain(|finalizer| finalizer != name);
    }
}
