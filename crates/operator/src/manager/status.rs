//! The status of a resource: drafted during a reconcile, written once at its end, if it changed.

use catamaran_cluster::conditions::{self, Condition};
use catamaran_cluster::items::{self, Part};
use catamaran_cluster::redact::printable;
use jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use kube::core::DynamicObject;
use kube::{Api, ResourceExt};
use serde_json::{Map, Value, json};

/// How many characters a condition's message has at most: one less than `metav1.Condition` allows.
const MESSAGE: usize = 32_767;

/// What the status will be. Fields and conditions that nobody sets stay as they are.
#[derive(Clone, Debug)]
pub struct StatusPatch {
    before: Map<String, Value>,
    fields: Map<String, Value>,
    conditions: Vec<Value>,
    generation: Option<i64>,
}

/// How the writing of a status ended.
#[derive(Debug)]
pub enum Written {
    /// It says so already: no request was made.
    Unchanged,
    /// It was written; the resource as it is now.
    Changed(Box<DynamicObject>),
    /// Somebody else changed the resource meanwhile: reconcile again with what they wrote.
    Conflict,
    /// The resource is gone.
    Gone,
}

impl StatusPatch {
    /// A status patch that starts from what the resource says.
    pub fn of(resource: &DynamicObject) -> Self {
        let before =
            resource.data.get("status").and_then(Value::as_object).cloned().unwrap_or_default();
        let mut fields = before.clone();
        let conditions = match fields.remove("conditions") {
            Some(Value::Array(conditions)) => conditions,
            _ => Vec::new(),
        };
        let generation = resource.metadata.generation;
        if let Some(generation) = generation {
            fields.insert("observedGeneration".into(), generation.into());
        }
        Self { before, fields, conditions, generation }
    }

    /// Sets a condition about the present generation; `reason` and `message` must not be empty.
    pub fn condition(&mut self, mut condition: Condition) {
        condition.message = printable(&condition.message);
        shorten(&mut condition.message);
        conditions::set(
            &mut self.conditions,
            condition.observed(self.generation),
            Timestamp::now(),
        );
    }

    /// Takes a condition away.
    pub fn without(&mut self, type_: &str) {
        conditions::remove(&mut self.conditions, type_);
    }

    /// The condition of this type as it stands in the status patch.
    pub fn find(&self, type_: &str) -> Option<Condition> {
        conditions::find(&self.conditions, type_)
    }

    /// Sets a field; null takes it away.
    pub fn set(&mut self, field: &str, value: Value) {
        match value {
            Value::Null => self.fields.remove(field),
            value => self.fields.insert(field.to_owned(), value),
        };
    }

    /// Whether it says something else than the resource does.
    pub fn has_changes(&self) -> bool {
        self.patch().is_some()
    }

    /// The merge patch from what the resource says to what it shall say; `None` if they are equal.
    fn patch(&self) -> Option<Value> {
        let mut after = self.fields.clone();
        if !self.conditions.is_empty() {
            after.insert("conditions".into(), Value::Array(self.conditions.clone()));
        }
        if after == self.before {
            return None;
        }
        // A merge patch replaces lists whole but merges objects: what an object lost must be named.
        for (field, value) in &self.before {
            match after.get_mut(field) {
                None => _ = after.insert(field.clone(), Value::Null),
                Some(Value::Object(now)) => {
                    for lost in value.as_object().into_iter().flat_map(Map::keys) {
                        now.entry(lost.clone()).or_insert(Value::Null);
                    }
                }
                Some(_) => {}
            }
        }
        Some(Value::Object(after))
    }

    /// Writes the status patch through the status subresource, if it differs from what the resource says.
    ///
    /// The resourceVersion of `resource` is a precondition, so that nothing that others wrote is lost.
    ///
    /// # Errors
    /// What the API server answers, besides conflict and not found.
    pub async fn write(
        &self,
        api: &Api<DynamicObject>,
        resource: &DynamicObject,
    ) -> Result<Written, kube::Error> {
        let Some(status) = self.patch() else { return Ok(Written::Unchanged) };
        let patch = json!({
            "metadata": { "resourceVersion": resource.resource_version() },
            "status": status,
        });
        let (name, params) = (resource.name_any(), PatchParams::default());
        match items::patch(api, &name, Part::Status, &params, &Patch::Merge(patch)).await {
            Ok(written) => Ok(Written::Changed(Box::new(written.object))),
            Err(kube::Error::Api(status)) if status.is_conflict() => Ok(Written::Conflict),
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(Written::Gone),
            Err(error) => Err(error),
        }
    }
}

/// A message that would make the whole status unacceptable, as it quotes something large, ends earlier.
fn shorten(message: &mut String) {
    if let Some((end, _)) = message.char_indices().nth(MESSAGE) {
        message.truncate(end);
        message.push('…');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(status: &Value) -> DynamicObject {
        serde_json::from_value(json!({
            "apiVersion": "g.io/v1", "kind": "A",
            "metadata": { "name": "a", "generation": 3 },
            "status": status,
        }))
        .unwrap()
    }

    fn ready(status: bool) -> Condition {
        Condition::new("Ready", status, "Because", "said so")
    }

    #[test]
    fn nothing_is_written_if_nothing_changed() {
        let mut status_patch = StatusPatch::of(&resource(&json!({})));
        status_patch.condition(ready(true));
        let after = status_patch.patch().unwrap();
        assert_eq!(after["observedGeneration"], 3);
        let mut again = StatusPatch::of(&resource(&after));
        again.condition(ready(true));
        assert_eq!(again.patch(), None);
    }

    #[test]
    fn a_message_is_not_longer_than_a_status_bears() {
        let mut status_patch = StatusPatch::of(&resource(&json!({})));
        status_patch.condition(Condition::new("Ready", false, "Because", "ü".repeat(1_000_000)));
        let patch = status_patch.patch().unwrap();
        let message = patch["conditions"][0]["message"].as_str().unwrap();
        assert_eq!(message.chars().count(), 32_768);
        assert!(message.ends_with("ü…"));
    }

    #[test]
    fn what_others_wrote_stays() {
        let status =
            json!({ "theirs": 1, "conditions": [{ "type": "Foreign", "status": "True" }] });
        let mut status_patch = StatusPatch::of(&resource(&status));
        status_patch.condition(ready(false));
        let patch = status_patch.patch().unwrap();
        assert_eq!(patch["theirs"], 1);
        assert_eq!(patch["conditions"][0]["type"], "Foreign");
        assert_eq!(patch["conditions"][1]["type"], "Ready");
    }

    #[test]
    fn what_is_taken_away_is_named_as_null() {
        let status = json!({ "deployedRelease": { "name": "a", "manifest": "old" }, "gone": 1 });
        let mut status_patch = StatusPatch::of(&resource(&status));
        status_patch.set("deployedRelease", json!({ "name": "a" }));
        status_patch.set("gone", Value::Null);
        let patch = status_patch.patch().unwrap();
        assert_eq!(patch["deployedRelease"], json!({ "name": "a", "manifest": null }));
        assert_eq!(patch["gone"], Value::Null);
    }
}
