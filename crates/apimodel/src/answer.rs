//! Refusals, as the API server words them: what callers act upon is code, reason, details and causes.

use serde_json::{Value, json};

use crate::kinds::Kind;

/// A request that is refused.
#[derive(Debug, Clone)]
pub(crate) struct Refusal {
    pub code: u16,
    reason: &'static str,
    message: String,
    details: Value,
}

impl Refusal {
    fn new(code: u16, reason: &'static str, message: String, details: Value) -> Self {
        Self { code, reason, message, details }
    }

    fn of(kind: &Kind, name: &str) -> Value {
        json!({ "name": name, "group": kind.group, "kind": kind.plural })
    }

    pub fn not_found(kind: &Kind, name: &str) -> Self {
        let message = format!("{} \"{name}\" not found", kind.qualified());
        Self::new(404, "NotFound", message, Self::of(kind, name))
    }

    pub fn no_path() -> Self {
        let message = "the server could not find the requested resource".to_owned();
        Self::new(404, "NotFound", message, json!({}))
    }

    pub fn no_namespace(name: &str) -> Self {
        let message = format!("namespaces \"{name}\" not found");
        Self::new(404, "NotFound", message, json!({ "name": name, "kind": "namespaces" }))
    }

    pub fn terminating(kind: &Kind, name: &str, namespace: &str) -> Self {
        let message = format!(
            "{} \"{name}\" is forbidden: unable to create new content in namespace {namespace} \
             because it is being terminated",
            kind.qualified()
        );
        let mut details = Self::of(kind, name);
        let told = format!("namespace {namespace} is being terminated");
        details["causes"] = json!([
            { "reason": "NamespaceTerminating", "message": told, "field": "metadata.namespace" }
        ]);
        Self::new(403, "Forbidden", message, details)
    }

    pub fn exists(kind: &Kind, name: &str) -> Self {
        let message = format!("{} \"{name}\" already exists", kind.qualified());
        Self::new(409, "AlreadyExists", message, Self::of(kind, name))
    }

    pub fn conflict(kind: &Kind, name: &str, why: &str) -> Self {
        let message =
            format!("Operation cannot be fulfilled on {} \"{name}\": {why}", kind.qualified());
        Self::new(409, "Conflict", message, Self::of(kind, name))
    }

    pub fn managers(fields: &[(String, String)]) -> Self {
        let causes: Vec<Value> = fields
            .iter()
            .map(|(manager, field)| {
                let message = format!("conflict with \"{manager}\"");
                json!({ "reason": "FieldManagerConflict", "message": message, "field": field })
            })
            .collect();
        let message = format!("Apply failed with {} conflicts", fields.len());
        Self::new(409, "Conflict", message, json!({ "causes": causes }))
    }

    pub fn invalid(kind: &Kind, name: &str, message: &str) -> Self {
        let message = format!("{} \"{name}\" is invalid: {message}", kind.kind);
        let details = json!({ "name": name, "group": kind.group, "kind": kind.kind });
        Self::new(422, "Invalid", message, details)
    }

    pub fn bad(message: &str) -> Self {
        Self::new(400, "BadRequest", message.to_owned(), Value::Null)
    }

    /// What this model does not know.
    pub fn unknown(what: &str) -> Self {
        let message = format!("the model of the API server does not know {what}");
        Self::new(501, "NotImplemented", message, Value::Null)
    }

    /// The body of the answer.
    pub fn status(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "reason": self.reason, "code": self.code,
        });
        if !self.details.is_null() {
            status["details"] = self.details.clone();
        }
        status
    }
}
