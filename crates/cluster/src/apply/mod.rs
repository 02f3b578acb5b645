//! Writes objects: create, apply, delete.
//!
//! Objects are plain JSON: a typed struct would drop fields that it does not know. Every call has a
//! timeout, because kube's default client waits for ever. Errors identify an object, and contain nothing
//! else of it (see [`crate::redact`]).
//!
//! The client should not retry (`Config::default_retry = false`): if the response to a POST or a claim is
//! lost, a second one would find its own object and take it for somebody else's.

mod reading;
mod refusal;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams, Preconditions,
    PropagationPolicy, ValidationDirective,
};
use kube::core::{Request, Resource};
use serde_json::{Map, Value};
use tokio::time::timeout;

use crate::bounds::Limits;
use crate::diagnosis::refusals::Refusals;
use crate::fields::takeover::{taken_over, takeover_patch};
use crate::fields::{is_main, managed_fields};
use crate::items;
use crate::redact;
use refusal::classify;
pub use refusal::{ApplyError, FailureKind};

/// The timeout of one request, unless [`Applier::timeout`] sets another.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// A precondition that no existing object fulfils: an apply with it creates the object or fails.
const NEVER_THERE: &str = "1";

/// The object of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The resource that serves its kind, from [`crate::mapper::Mapper`].
    pub resource: ApiResource,
    /// Its namespace; `None` for a cluster-scoped one.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} \"{}\"", self.resource.kind, self.name)?;
        match &self.namespace {
            Some(namespace) => write!(f, " in namespace \"{namespace}\""),
            None => Ok(()),
        }
    }
}

/// The result of a deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deletion {
    /// Accepted: the object is deleted, or will be when its finalizers are done.
    Started,
    /// It did not exist any more.
    AlreadyGone,
    /// It is another object of that name, or somebody changed it. It stays.
    Replaced,
}

/// Reads and writes objects as one field manager; cheap to clone.
#[derive(Clone)]
pub struct Applier {
    client: Client,
    manager: String,
    /// Field managers under which the same program set fields by updates.
    former: Arc<[String]>,
    pub(crate) refusals: Refusals,
    validation: ValidationDirective,
    timeout: Duration,
    lists: Limits,
}

impl fmt::Debug for Applier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Applier")
            .field("manager", &self.manager)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

impl Applier {
    /// Applies as `manager`, with strict field validation.
    pub fn new(client: Client, manager: impl Into<String>) -> Self {
        Self {
            client,
            manager: manager.into(),
            former: Arc::default(),
            refusals: Refusals::default(),
            validation: ValidationDirective::Strict,
            timeout: DEFAULT_TIMEOUT,
            lists: Limits::LIST,
        }
    }

    /// The same with a limit in bytes for the response of a list; more is an error, before it is parsed.
    #[must_use]
    pub fn lists_within(mut self, bytes: usize) -> Self {
        self.lists = self.lists.with_bytes(bytes);
        self
    }

    /// The same with another client, such as one that impersonates a service account. Forgets refusals.
    #[must_use]
    pub fn with_client(mut self, client: Client) -> Self {
        self.client = client;
        self.refusals = Refusals::default();
        self
    }

    /// Fields that these managers set by updates count as applied by this one: an apply that finds such an
    /// entry in `managedFields` moves it, once, and removes the fields that are not desired any more.
    #[must_use]
    pub fn with_former_managers(mut self, managers: &[&str]) -> Self {
        self.former = managers.iter().map(|manager| (*manager).to_owned()).collect();
        self
    }

    /// The same as another field manager.
    #[must_use]
    pub fn called(&self, manager: &str) -> Self {
        Self { manager: manager.to_owned(), former: Arc::default(), ..self.clone() }
    }

    /// How the API server treats unknown fields.
    #[must_use]
    pub fn validation(mut self, validation: ValidationDirective) -> Self {
        self.validation = validation;
        self
    }

    /// The timeout of one request.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Creates the object, or fails with [`FailureKind::AlreadyExists`] and changes nothing, in one request
    /// without a read.
    ///
    /// A forced server-side apply with `metadata.resourceVersion: "1"`: no object has that version, so the API
    /// server answers 201 if there is no object, and 409 if there is one.
    pub async fn claim(&self, target: &Target, object: &Value) -> Result<Value, ApplyError> {
        let mut claim = object.clone();
        if let Some(metadata) = claim.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("resourceVersion".to_owned(), NEVER_THERE.into());
        }
        self.patch(target, &claim, false).await.map_err(|mut error| {
            if error.kind == FailureKind::Conflict {
                error.kind = FailureKind::AlreadyExists;
            }
            error
        })
    }

    /// Server-side apply with force: this manager owns every field of `object` afterwards. Creates the object
    /// if there is none.
    ///
    /// Three requests instead of one if fields have to be taken over, see [`Applier::with_former_managers`].
    pub async fn apply(&self, target: &Target, object: &Value) -> Result<Value, ApplyError> {
        let applied = self.patch(target, object, false).await?;
        let Some(entries) = self.taken_over(&applied) else { return Ok(applied) };
        self.merge(target, &takeover_patch(&applied, &entries)).await?;
        self.patch(target, object, false).await
    }

    /// A JSON merge patch, as an update. Fails with [`FailureKind::Conflict`] if `patch` has a resource version
    /// that is not the current one.
    pub async fn merge(&self, target: &Target, patch: &Value) -> Result<Value, ApplyError> {
        let params =
            PatchParams { field_manager: Some(self.manager.clone()), ..PatchParams::default() };
        let request = path(target, "patch")?.patch(&target.name, &params, &Patch::Merge(patch));
        self.send(target, "patch", request).await
    }

    /// The field manager.
    pub fn manager(&self) -> &str {
        &self.manager
    }

    /// Whether an apply has to take fields over, see [`Applier::with_former_managers`].
    pub fn is_to_be_taken_over(&self, live: &Value) -> bool {
        self.taken_over(live).is_some()
    }

    /// A live object as it is after its fields were taken over; `None` if there are none.
    pub(crate) fn as_taken_over(&self, live: &Value) -> Option<Value> {
        let entries = self.taken_over(live)?;
        let mut held = live.clone();
        held["metadata"]["managedFields"] = entries.into();
        Some(held)
    }

    /// The same as [`Applier::apply`], in one request: fields that former managers set stay theirs until the
    /// next apply.
    pub async fn reapply(&self, target: &Target, object: &Value) -> Result<Value, ApplyError> {
        self.patch(target, object, false).await
    }

    /// Whether this field manager, or one of [`Applier::with_former_managers`], has set fields of a live object
    /// that still have its values. An object of somebody else with the same name has none.
    pub fn has_written(&self, live: &Value) -> bool {
        let is_ours =
            |name: &str| name == self.manager || self.former.iter().any(|former| former == name);
        managed_fields(live).iter().any(|entry| {
            is_main(entry) && entry.get("manager").and_then(Value::as_str).is_some_and(is_ours)
        })
    }

    fn taken_over(&self, live: &Value) -> Option<Vec<Value>> {
        taken_over(live, &self.manager, &self.former)
    }

    /// The result of [`Applier::apply`], without storing it.
    pub async fn dry_run(&self, target: &Target, object: &Value) -> Result<Value, ApplyError> {
        self.patch(target, object, true).await
    }

    async fn patch(
        &self,
        target: &Target,
        object: &Value,
        dry_run: bool,
    ) -> Result<Value, ApplyError> {
        let mut params =
            PatchParams::apply(&self.manager).force().validation(self.validation.clone());
        params.dry_run = dry_run;
        let request = path(target, "apply")?.patch(&target.name, &params, &Patch::Apply(object));
        self.send(target, "apply", request).await
    }

    /// POST: fails with [`FailureKind::AlreadyExists`] if there is an object.
    pub async fn create(&self, target: &Target, object: &Value) -> Result<Value, ApplyError> {
        let request = path(target, "create")?.create(&self.post(), bytes(object));
        self.send(target, "create", request).await
    }

    /// PUT: fails with [`FailureKind::Conflict`] if `object` has a resource version that is not the current one.
    pub async fn replace(&self, target: &Target, object: &Value) -> Result<Value, ApplyError> {
        let request = path(target, "update")?.replace(&target.name, &self.post(), bytes(object));
        self.send(target, "update", request).await
    }

    /// Deletes the object if it has this uid.
    pub async fn delete(
        &self,
        target: &Target,
        uid: &str,
        propagation: PropagationPolicy,
    ) -> Result<Deletion, ApplyError> {
        let uid = Preconditions { uid: Some(uid.to_owned()), resource_version: None };
        self.delete_if(target, uid, propagation).await
    }

    /// Deletes the object if it still has this uid and this resourceVersion.
    pub async fn delete_untouched(
        &self,
        target: &Target,
        uid: &str,
        version: &str,
        propagation: PropagationPolicy,
    ) -> Result<Deletion, ApplyError> {
        let both =
            Preconditions { uid: Some(uid.to_owned()), resource_version: Some(version.to_owned()) };
        self.delete_if(target, both, propagation).await
    }

    async fn delete_if(
        &self,
        target: &Target,
        preconditions: Preconditions,
        propagation: PropagationPolicy,
    ) -> Result<Deletion, ApplyError> {
        let params = DeleteParams {
            propagation_policy: Some(propagation),
            preconditions: Some(preconditions),
            ..DeleteParams::default()
        };
        let request = path(target, "delete")?.delete(&target.name, &params);
        match self.send(target, "delete", request).await {
            Ok(_) => Ok(Deletion::Started),
            Err(error) if error.kind == FailureKind::NotFound => Ok(Deletion::AlreadyGone),
            Err(error) if error.kind == FailureKind::Conflict => Ok(Deletion::Replaced),
            Err(error) => Err(error),
        }
    }

    fn post(&self) -> PostParams {
        PostParams { dry_run: false, field_manager: Some(self.manager.clone()) }
    }

    async fn send(
        &self,
        target: &Target,
        verb: &'static str,
        request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<Value, ApplyError> {
        let request = request.map_err(|error| ApplyError {
            kind: FailureKind::Invalid,
            verb,
            target: target.to_string(),
            message: error.to_string(),
        })?;
        // The response may be larger than the request, because others write into the object, too.
        let limits = match verb {
            "list" => self.lists,
            _ => Limits::OBJECT.with_managed_fields(),
        };
        let answer = items::tree(&self.client, request, limits);
        let refused = |refusal: items::Refusal| ApplyError {
            kind: FailureKind::Invalid,
            verb,
            target: target.to_string(),
            message: refusal.to_string(),
        };
        self.answered(target, verb, answer).await?.map_err(refused)
    }

    /// The response, or why there is none in time.
    pub(crate) async fn answered<T>(
        &self,
        target: &Target,
        verb: &'static str,
        answer: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, ApplyError> {
        let failed = |kind, message| ApplyError { kind, verb, target: target.to_string(), message };
        match timeout(self.timeout, answer).await {
            Ok(Ok(object)) => Ok(object),
            Ok(Err(kube::Error::Api(status))) => {
                let message =
                    redact::server_message(&target.resource.group, &target.resource.kind, &status);
                let kind = match classify(&status) {
                    // It is not the one that something should lie in.
                    FailureKind::NamespaceNotFound if target.namespace.is_none() => {
                        FailureKind::NotFound
                    }
                    kind => kind,
                };
                Err(failed(kind, message))
            }
            // Serde's messages quote what they read.
            Ok(Err(kube::Error::SerdeError(_))) => {
                Err(failed(FailureKind::Unavailable, "the answer is not valid JSON".to_owned()))
            }
            Ok(Err(error)) => Err(failed(FailureKind::Unavailable, error.to_string())),
            Err(_) => Err(failed(
                FailureKind::Timeout,
                format!("no answer within {} s", self.timeout.as_secs_f32()),
            )),
        }
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }
}

fn bytes(object: &Value) -> Vec<u8> {
    object.to_string().into_bytes()
}

/// The path of a target's collection; refuses names that lead to another request.
fn path(target: &Target, verb: &'static str) -> Result<Request, ApplyError> {
    check(target, verb, &target.name)?;
    if let Some(namespace) = &target.namespace {
        check(target, verb, namespace)?;
    }
    Ok(Request::new(DynamicObject::url_path(&target.resource, target.namespace.as_deref())))
}

/// Names come from charts: `../x` or `a?force=true` must not become another request. The rule is the
/// weakest one of the API server (no `/`, no `%`, not `.` or `..`), and excludes what URLs reserve.
fn check(target: &Target, verb: &'static str, name: &str) -> Result<(), ApplyError> {
    let allowed = |c: char| {
        c.is_ascii_alphanumeric()
            || matches!(c, '-' | '_' | '.' | ':' | '~' | '@' | '$' | '+' | '!')
    };
    if !name.is_empty() && name != "." && name != ".." && name.chars().all(allowed) {
        return Ok(());
    }
    let message = if name.is_empty() {
        "it has no name".to_owned()
    } else {
        format!("{name:?} is not a possible name")
    };
    Err(ApplyError { kind: FailureKind::Invalid, verb, target: target.to_string(), message })
}

/// The metadata of an object, or an empty map.
pub fn metadata(object: &Value) -> &Map<String, Value> {
    static EMPTY: std::sync::OnceLock<Map<String, Value>> = std::sync::OnceLock::new();
    object.get("metadata").and_then(Value::as_object).unwrap_or_else(|| EMPTY.get_or_init(Map::new))
}

/// A string of an object's metadata, such as `uid`; empty if it is missing.
pub fn metadata_str<'a>(object: &'a Value, field: &str) -> &'a str {
    metadata(object).get(field).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_lead_to_another_request() {
        let gvk = kube::core::GroupVersionKind::gvk("", "v1", "ConfigMap");
        let resource = ApiResource::from_gvk_with_plural(&gvk, "configmaps");
        for (name, namespace) in [
            ("", "ns"),
            ("..", "ns"),
            ("a/b", "ns"),
            ("a?dryRun=All", "ns"),
            ("a", "n/s"),
            ("a%2fb", "ns"),
        ] {
            let target = Target {
                resource: resource.clone(),
                namespace: Some(namespace.to_owned()),
                name: name.to_owned(),
            };
            assert!(path(&target, "get").is_err(), "{name:?} {namespace:?}");
        }
        let target = Target { resource, namespace: None, name: "system:node-reader.v1".to_owned() };
        assert!(path(&target, "get").is_ok());
    }
}
