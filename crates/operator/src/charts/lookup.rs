//! What charts look up: fetched between two renderings, never from inside one.

use std::sync::Arc;

use catamaran_chart::LookupKey;
use catamaran_cluster::apply::{Applier, ApplyError, Target};
use catamaran_cluster::mapper::{Mapper, MapperError};
use kube::api::{ApiResource, ListParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};

/// How many objects the first page of a list has.
const FIRST_PAGE: u32 = 20;
/// How many bytes of JSON the other pages aim at, and how many objects they have at most.
const PAGE: usize = 1 << 20;
const LARGEST_PAGE: usize = 500;
/// How many bytes of JSON a list may have. Whoever may create objects decides how large lists are, and a
/// rendering holds them as a tree.
const LARGEST_LIST: usize = 8 << 20;

/// What lookups are answered by.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    /// Reads objects.
    pub applier: &'a Applier,
    /// Finds the resources of kinds.
    pub mapper: &'a Mapper,
    /// The only namespace in which may be looked; `None` is the whole cluster.
    pub within: Option<&'a str>,
}

/// Fetches one lookup: an object, a list where no name is given, `{}` where there is none.
///
/// # Errors
/// A message for people; as with Helm a kind that is not served, or a missing right, fails the rendering.
/// So does a lookup outside of [`Reader::within`].
pub async fn fetch(reader: &Reader<'_>, key: &LookupKey) -> Result<Value, LookupError> {
    let Reader { applier: reader, mapper, within } = *reader;
    let (group, version) = key.api_version.split_once('/').unwrap_or(("", &key.api_version));
    let gvk = GroupVersionKind::gvk(group, version, &key.kind);
    let mapping = mapper.resolve(&gvk).await.map_err(|source| failed(key, &source))?;
    let namespace =
        Some(key.namespace.clone()).filter(|name| mapping.namespaced && !name.is_empty());
    if let Some(only) = within.filter(|only| namespace.as_deref() != Some(only)) {
        return Err(out_of_scope(key, only));
    }
    if key.name.is_empty() {
        let items = list(reader, &mapping.resource, namespace.as_deref(), key).await?;
        return Ok(
            json!({ "apiVersion": key.api_version, "kind": format!("{}List", key.kind), "items": items }),
        );
    }
    let target = Target { resource: mapping.resource, namespace, name: key.name.clone() };
    match reader.get(&target).await {
        Ok(found) => Ok(found.unwrap_or_else(|| json!({}))),
        Err(error) => Err(LookupError {
            key: key.clone(),
            transient: may_pass(&error),
            message: error.to_string().into(),
        }),
    }
}

/// All objects of a resource, of one namespace or of all, page by page. Each names its kind, which the API
/// server leaves out of lists and Helm's client adds.
async fn list(
    reader: &Applier,
    resource: &ApiResource,
    namespace: Option<&str>,
    key: &LookupKey,
) -> Result<Vec<Value>, LookupError> {
    let failure = |error: ApplyError| LookupError {
        key: key.clone(),
        transient: may_pass(&error),
        message: error.to_string().into(),
    };
    let mut params = ListParams::default().limit(FIRST_PAGE);
    let (mut all, mut bytes) = (Vec::new(), 0);
    loop {
        let (items, token) = reader.page(resource, namespace, &params).await.map_err(failure)?;
        let page: usize = items.iter().map(|item| item.to_string().len()).sum();
        bytes += page;
        if bytes > LARGEST_LIST {
            let most = LARGEST_LIST >> 20;
            let message =
                format!("the list has more than {most} MiB: name a namespace or an object");
            return Err(LookupError {
                key: key.clone(),
                transient: false,
                message: message.into(),
            });
        }
        let count = items.len();
        all.extend(items.into_iter().map(|item| with_kind(item, key)));
        let Some(token) = token else { return Ok(all) };
        let average = (page / count.max(1)).max(1);
        let limit = (PAGE / average).clamp(1, LARGEST_PAGE);
        params = ListParams::default().limit(u32::try_from(limit).unwrap_or(FIRST_PAGE));
        params = params.continue_token(&token);
    }
}

fn with_kind(mut item: Value, key: &LookupKey) -> Value {
    if let Some(object) = item.as_object_mut() {
        object.entry("apiVersion").or_insert_with(|| key.api_version.as_str().into());
        object.entry("kind").or_insert_with(|| key.kind.as_str().into());
    }
    item
}

fn out_of_scope(key: &LookupKey, only: &str) -> LookupError {
    let message = format!(
        "it is outside of the release's namespace {only:?}, and `scope: namespace` in watches.yaml allows no \
         such lookup"
    );
    LookupError { key: key.clone(), transient: false, message: message.into() }
}

fn failed(key: &LookupKey, error: &MapperError) -> LookupError {
    LookupError {
        key: key.clone(),
        transient: true, // a kind may come to be served
        message: error.to_string().into(),
    }
}

/// A right may be given, too, and nothing tells of it.
fn may_pass(error: &ApplyError) -> bool {
    error.kind.is_transient() || error.kind.is_forbidden()
}

/// A lookup that could not be answered.
#[derive(Clone, Debug, thiserror::Error)]
#[error("lookup {key}: {message}")]
pub struct LookupError {
    key: LookupKey,
    message: Arc<str>,
    /// Whether trying again may help.
    pub transient: bool,
}
