//! Why a request was refused.

use kube::core::Status;

use crate::redact;

/// Why a request did not do what it should, in classes that a caller can act upon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailureKind {
    /// A claim or creation met an object that is there already.
    AlreadyExists,
    /// Somebody else changed or owns it: a field manager, a version or uid that is not the expected one.
    Conflict,
    /// No rule of authorization allows us this request. Rules come and go, and an API server that has
    /// just started knows none yet: this tells nothing about the object.
    MissingPermission,
    /// Admission, a policy or a quota refuses the object.
    Forbidden,
    /// The object is not there.
    NotFound,
    /// The API server refuses the object as it is.
    Invalid,
    /// Nothing can be created in its namespace any more.
    NamespaceTerminating,
    /// The namespace does not exist.
    NamespaceNotFound,
    /// No answer in time: it may have been done or not.
    Timeout,
    /// The API server or the way to it is out of order (5xx, 429, connection), or it does not know who we
    /// are at the moment (401): it may have been done or not.
    Unavailable,
    /// Anything else.
    Other,
}

impl FailureKind {
    /// Whether the same request may well succeed later without anybody changing anything.
    pub fn is_transient(self) -> bool {
        matches!(self, Self::Conflict | Self::Timeout | Self::Unavailable)
    }

    /// Whether the answer was 403, for whatever reason.
    pub fn is_forbidden(self) -> bool {
        matches!(self, Self::MissingPermission | Self::Forbidden)
    }
}

/// A request about one object that failed.
#[derive(Debug, Clone, thiserror::Error)]
#[error("cannot {verb} {target}: {message}")]
pub struct ApplyError {
    /// The class of failure.
    pub kind: FailureKind,
    /// What was tried: `apply`, `get`, `delete`, `create`, `update`, `patch`, `list`, `read the logs of`.
    pub verb: &'static str,
    /// Which object, as people write it.
    pub target: String,
    /// The API server's words, without any content of a Secret.
    pub message: String,
}

/// The class of the API server's answer.
pub(super) fn classify(status: &Status) -> FailureKind {
    let about_namespace =
        status.details.as_ref().is_some_and(|details| details.kind == "namespaces");
    let terminating = status
        .details
        .iter()
        .flat_map(|details| &details.causes)
        .any(|cause| cause.reason == "NamespaceTerminating");
    match (status.code, status.reason.as_str()) {
        _ if terminating => FailureKind::NamespaceTerminating,
        (409, "AlreadyExists") => FailureKind::AlreadyExists,
        (409, _) => FailureKind::Conflict,
        // Admission (OwnerReferencesPermissionEnforcement) learns of a new kind of owners up to 30 s later.
        (403, _) if status.message.contains("cannot find RESTMapping") => FailureKind::Unavailable,
        (403, _) if redact::lacks_permission(&status.message) => FailureKind::MissingPermission,
        (403, _) => FailureKind::Forbidden,
        (404, _) if about_namespace => FailureKind::NamespaceNotFound,
        (404 | 410, _) => FailureKind::NotFound,
        (400 | 413 | 415 | 422, _) => FailureKind::Invalid,
        // Server-side apply answers 500 to what does not fit the kind's schema.
        (500, _) if redact::is_schema_mismatch(status) => FailureKind::Invalid,
        (401 | 429 | 500..=599, _) => FailureKind::Unavailable,
        _ => FailureKind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn status(value: Value) -> Status {
        serde_json::from_value(value).expect("a Status")
    }

    #[test]
    fn refusals_are_told_apart() {
        for (expected, value) in [
            (FailureKind::AlreadyExists, json!({"code": 409, "reason": "AlreadyExists"})),
            (FailureKind::Conflict, json!({"code": 409, "reason": "Conflict"})),
            (FailureKind::Forbidden, json!({"code": 403, "reason": "Forbidden"})),
            (
                FailureKind::MissingPermission,
                json!({"code": 403, "reason": "Forbidden", "message": "services \"a\" is forbidden: User \"system:serviceaccount:n:o\" cannot patch resource \"services\" in API group \"\" in the namespace \"n\""}),
            ),
            (
                FailureKind::MissingPermission,
                json!({"code": 403, "reason": "Forbidden", "message": "jobs.batch is forbidden: User \"o\" cannot create resource \"jobs\" in API group \"batch\" in the namespace \"n\": RBAC: clusterrole.rbac.authorization.k8s.io \"manager\" not found"}),
            ),
            (
                FailureKind::MissingPermission,
                json!({"code": 403, "reason": "Forbidden", "message": "roles.rbac.authorization.k8s.io \"a\" is forbidden: user \"o\" (groups=[\"g\"]) is attempting to grant RBAC permissions not currently held:\n{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"get\"]}"}),
            ),
            (
                FailureKind::Forbidden,
                json!({"code": 403, "reason": "Forbidden", "message": "pods \"a\" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1"}),
            ),
            (
                FailureKind::Forbidden,
                json!({"code": 403, "reason": "Forbidden", "message": "pods \"a\" is forbidden: violates PodSecurity \"restricted:latest\": allowPrivilegeEscalation != false"}),
            ),
            (
                FailureKind::Forbidden,
                json!({"code": 403, "reason": "Forbidden", "message": "admission webhook \"w\" denied the request: services \"a\" is forbidden: User \"o\" cannot patch resource \"services\""}),
            ),
            (
                FailureKind::Forbidden,
                json!({"code": 403, "reason": "Forbidden", "message": "services \"a\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: forbidden: User \"o\" cannot patch resource \"services\""}),
            ),
            (
                FailureKind::Unavailable,
                json!({"code": 401, "reason": "Unauthorized", "message": "Unauthorized"}),
            ),
            (
                FailureKind::Unavailable,
                json!({"code": 403, "reason": "Forbidden", "message": "configmaps \"a\" is forbidden: cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion a/v1 Kind B"}),
            ),
            (
                FailureKind::NamespaceTerminating,
                json!({"code": 403, "reason": "Forbidden", "details": {"causes": [{"reason": "NamespaceTerminating"}]}}),
            ),
            (
                FailureKind::NotFound,
                json!({"code": 404, "reason": "NotFound", "details": {"kind": "secrets"}}),
            ),
            (
                FailureKind::NamespaceNotFound,
                json!({"code": 404, "reason": "NotFound", "details": {"kind": "namespaces"}}),
            ),
            (FailureKind::Invalid, json!({"code": 422, "reason": "Invalid"})),
            (FailureKind::Invalid, json!({"code": 400, "reason": "BadRequest"})),
            (
                FailureKind::Invalid,
                json!({"code": 500, "message": "failed to create typed patch object (ns/a; /v1, Kind=Secret): .x: field not declared in schema"}),
            ),
            (
                FailureKind::Invalid,
                json!({"code": 500, "message": "failed to convert new object (ns/a; /v1, Kind=Secret) to proper version: x"}),
            ),
            (
                FailureKind::Unavailable,
                json!({"code": 500, "reason": "InternalError", "message": "etcdserver: request timed out"}),
            ),
            (FailureKind::Unavailable, json!({"code": 503})),
            (FailureKind::Unavailable, json!({"code": 429, "reason": "TooManyRequests"})),
            (FailureKind::Other, json!({"code": 405, "reason": "MethodNotAllowed"})),
        ] {
            assert_eq!(classify(&status(value.clone())), expected, "{value}");
        }
    }
}
