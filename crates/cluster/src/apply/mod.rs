//! Writing objects: claim, apply, delete.
//!
//! Objects are plain JSON on the wire: a typed struct would drop the fields it does not know.
//! Every call is under a timeout, as kube's default client waits for ever for an answer. No error
//! says more of an object than who it is (see [`crate::redact`]).
//!
//! The client handed in should not retry by itself (`Config::default_retry = false`): a POST or a
//! claim whose answer was lost would be sent again and meet its own work as a stranger's.

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

/// How long one request may take unless [`Applier::timeout`] says otherwise.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// The precondition that no existing object fulfils: an apply with it creates or fails.
const NEVER_THERE: &str = "1";

/// Which object a request is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The resource that serves its kind, as [`crate::mapper::Mapper`] found it.
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

/// What became of a deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deletion {
    /// Accepted; the object is gone, or ends when its finalizers are done.
    Started,
    /// It was gone already.
    AlreadyGone,
    /// It is not what it was: another object of that name, or somebody changed it. Left alone.
    Replaced,
}

/// Reads and writes objects in the name of one field manager; cheap to clone.
#[derive(Clone)]
pub struct Applier {
    client: Client,
    manager: String,
    /// Under which names the same program once set fields by updates.
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

    /// The same with lists of at most so many bytes for one answer; more is an error, before any of it
    /// becomes a tree.
    #[must_use]
    pub fn lists_within(mut self, bytes: usize) -> Self {
        self.lists = self.lists.with_bytes(bytes);
        self
    }

    /// The same by another client, e.g. one that acts as a service account. What the API server refused
    /// before is forgotten.
    #[must_use]
    pub fn with_client(mut self, client: Client) -> Self {
        self.client = client;
        self.refusals = Refusals::default();
        self
    }

    /// What these managers set by updates counts as applied by ours: an apply that meets such an
    /// entry in `managedFields` moves it into ours, once, and removes what is not wanted any more.
    #[must_use]
    pub fn with_former_managers(mut self, managers: &[&str]) -> Self {
        self.former = managers.iter().map(|manager| (*manager).to_owned()).collect();
        self
    }

    /// The same in the name of another field manager.
    #[must_use]
    pub fn called(&self, manager: &str) -> Self {
        Self { manager: manager.to_owned(), former: Arc::default(), ..self.clone() }
    }

    /// How the API server treats fields that it does not know.
    #[must_use]
    pub fn validation(mut self, validation: ValidationDirective) -> Self {
        self.validation = validation;
        self
    }

    /// How long one request may take.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Creates the object, or fails with [`FailureKind::AlreadyExists`] and leaves what is there
    /// untouched, in one request and without reading first.
    ///
    /// A forced server-side apply with `metadata.resourceVersion: "1"`: no object ever has that
    /// version, so the API server answers 201 where there is none and 409 where there is one.
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

    /// Server-side apply with force: our manager owns every field of `object` afterwards. Creates
    /// the object where there is none.
    ///
    /// Three requests instead of one where fields have to be taken over, see [`Applier::with_former_managers`].
    pub async fn apply(&self, target: &Target, object: &Value) -> Result<Value, ApplyError> {
        let applied = self.patch(target, object, false).await?;
        let Some(entries) = self.taken_over(&applied) else { return Ok(applied) };
        self.merge(target, &takeover_patch(&applied, &entries)).await?;
        self.patch(target, object, false).await
    }

    /// A JSON merge patch: an update of ours. Fails with [`FailureKind::Conflict`] where `patch`
    /// carries a resource version that is not the current one any more.
    pub async fn merge(&self, target: &Target, patch: &Value) -> Result<Value, ApplyError> {
        let params =
            PatchParams { field_manager: Some(self.manager.clone()), ..PatchParams::default() };
        let request = path(target, "patch")?.patch(&target.name, &params, &Patch::Merge(patch));
        self.send(target, "patch", request).await
    }

    /// As which field manager objects are applied.
    pub fn manager(&self) -> &str {
        &self.manager
    }

    /// Whether an apply will have to take fields over, see [`Applier::with_former_managers`].
    pub fn is_to_be_taken_over(&self, live: &Value) -> bool {
        self.taken_over(live).is_some()
    }

    /// A live object as it would be once its fields were taken over; `None` if there are none.
    pub(crate) fn as_taken_over(&self, live: &Value) -> Option<Value> {
        let entries = self.taken_over(live)?;
        let mut held = live.clone();
        held["metadata"]["managedFields"] = entries.into();
        Some(held)
    }

    /// The same as [`Applier::apply`], in one request: what others once set in our name stays theirs
    /// until the next apply.
    pub async fn reapply(&self, target: &Target, object: &Value) -> Result<Value, ApplyError> {
        self.patch(target, object, false).await
    }

    /// Whether this field manager, or one of [`Applier::with_former_managers`], has written fields of a live object
    /// that are still as it set them. A stranger's object that was made under the same name has none.
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

    /// What [`Applier::apply`] would make of the object, without storing it.
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

    /// POST: fails with [`FailureKind::AlreadyExists`] where there is one.
    pub async fn create(&self, target: &Target, object: &Value) -> Result<Value, ApplyError> {
        let request = path(target, "create")?.create(&self.post(), bytes(object));
        self.send(target, "create", request).await
    }

    /// PUT: fails with [`FailureKind::Conflict`] where `object` carries a resource version that is
    /// not the current one any more.
    pub async fn replace(&self, target: &Target, object: &Value) -> Result<Value, ApplyError> {
        let request = path(target, "update")?.replace(&target.name, &self.post(), bytes(object));
        self.send(target, "update", request).await
    }

    /// Deletes the object if it is still the one with this uid.
    pub async fn delete(
        &self,
        target: &Target,
        uid: &str,
        propagation: PropagationPolicy,
    ) -> Result<Deletion, ApplyError> {
        let uid = Preconditions { uid: Some(uid.to_owned()), resource_version: None };
        self.delete_if(target, uid, propagation).await
    }

    /// Deletes the object if nobody touched it since it had this uid and this resourceVersion.
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
        // What an object is answered with may be larger than what was sent: others write into it, too.
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

    /// An answer in time, or why there is none.
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

/// The path of a target's collection; names that would lead elsewhere are refused.
fn path(target: &Target, verb: &'static str) -> Result<Request, ApplyError> {
    check(target, verb, &target.name)?;
    if let Some(namespace) = &target.namespace {
        check(target, verb, namespace)?;
    }
    Ok(Request::new(DynamicObject::url_path(&target.resource, target.namespace.as_deref())))
}

/// Names come from charts: `../x` or `a?force=true` must not become another request. This is the
/// API server's own least rule for names (no `/`, no `%`, not `.` or `..`) and what URLs reserve.
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

/// An object's metadata, or an empty map.
pub fn metadata(object: &Value) -> &Map<String, Value> {
    static EMPTY: std::sync::OnceLock<Map<String, Value>> = std::sync::OnceLock::new();
    object.get("metadata").and_then(Value::as_object).unwrap_or_else(|| EMPTY.get_or_init(Map::new))
}

/// A string of an object's metadata, such as `uid`; empty where it is missing.
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
