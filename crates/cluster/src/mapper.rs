//! From a kind to the resource that serves it, by real discovery.
//!
//! A plural is never guessed: `kind: Endpoints` or a CRD with an irregular plural would be sent to
//! a path that does not exist. The first question reads the whole of discovery in two requests;
//! after that everything is answered from memory. A kind that is not known is looked up again at
//! once (its CRD may have just been created), but at most once per [`RETRY_AFTER`] and kind.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResourceList;
use kube::Client;
use kube::api::ApiResource;
use kube::core::GroupVersionKind;
use kube::core::discovery::v2::{
    APIGroupDiscoveryList, APIResourceDiscovery, APISubresourceDiscovery,
};
use tokio::time::timeout;

/// How long a kind that was not found stays "not found" before the API server is asked again.
pub const RETRY_AFTER: Duration = Duration::from_secs(3);

/// For how long after all of discovery was read a kind that it lacks is not asked for by itself.
const FRESH: Duration = Duration::from_millis(500);

/// No answer of the API server is waited for longer than this.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// What went wrong while asking which resource serves a kind.
#[derive(Debug, Clone, thiserror::Error)]
pub enum MapperError {
    /// The API server serves no such kind (any more, or not yet).
    #[error("no matches for kind \"{kind}\" in version \"{api_version}\"")]
    NoMatch {
        /// The kind as it was asked for.
        kind: String,
        /// `group/version`, or the version alone for the core group.
        api_version: String,
    },
    /// Discovery itself failed: asking again later may help.
    #[error("discovery failed: {0}")]
    Discovery(#[source] Arc<kube::Error>),
    /// Discovery gave no answer in time.
    #[error("discovery gave no answer within {} s", CALL_TIMEOUT.as_secs())]
    Timeout,
}

impl MapperError {
    /// Whether this says that the kind does not exist, rather than that nobody could be asked.
    pub fn is_no_match(&self) -> bool {
        matches!(self, Self::NoMatch { .. })
    }
}

/// The resource that serves a kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// Group, version, kind and the true plural.
    pub resource: ApiResource,
    /// Whether its objects live in a namespace.
    pub namespaced: bool,
}

/// What the API server can do, as Helm's `.Capabilities` tells it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerCapabilities {
    /// `gitVersion`, such as `v1.36.3`.
    pub git_version: String,
    /// Major version as the server spells it.
    pub major: String,
    /// Minor version as the server spells it (some clouds add a `+`).
    pub minor: String,
    /// `group/version` and `group/version/Kind` (`v1`, `v1/Pod` for the core group).
    pub api_versions: BTreeSet<String>,
}

/// Answers which resource serves a kind; cheap to clone, all clones share one memory.
#[derive(Clone)]
pub struct Mapper {
    client: Client,
    state: Arc<Mutex<State>>,
    /// Held while discovery is read, so that many askers at start cost one reading.
    loading: Arc<tokio::sync::Mutex<()>>,
}

impl std::fmt::Debug for Mapper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mapper").finish_non_exhaustive()
    }
}

#[derive(Default)]
struct State {
    kinds: HashMap<GroupVersionKind, Mapping>,
    capabilities: Option<Arc<ServerCapabilities>>,
    misses: HashMap<GroupVersionKind, Instant>,
    /// When all of discovery was read last.
    read: Option<Instant>,
}

impl Mapper {
    /// A mapper that has asked nothing yet.
    pub fn new(client: Client) -> Self {
        Self { client, state: Arc::default(), loading: Arc::default() }
    }

    /// The resource that serves `gvk`.
    ///
    /// Known kinds cost no request. An unknown one costs one (`GET /apis/<group>/<version>`), at
    /// most once per [`RETRY_AFTER`], and none just after all of discovery was read.
    pub async fn resolve(&self, gvk: &GroupVersionKind) -> Result<Mapping, MapperError> {
        if let Some(known) = self.known(gvk) {
            return Ok(known);
        }
        let _loading = self.loading.lock().await;
        if self.state().capabilities.is_none() && self.state().misses.is_empty() {
            self.load().await?;
        }
        if let Some(known) = self.known(gvk) {
            return Ok(known);
        }
        let (asked, read) = {
            let state = self.state();
            (state.misses.get(gvk).copied(), state.read)
        };
        let answered = match asked {
            Some(asked) => asked.elapsed() < RETRY_AFTER,
            // What many missing kinds cost at the start: nothing but the first reading.
            None => read.is_some_and(|read| read.elapsed() < FRESH),
        };
        if answered {
            return Err(no_match(gvk));
        }
        self.rediscover(gvk).await
    }

    /// The resource that serves a kind in whatever version, or `None`: for an object whose own
    /// version is not served any more.
    pub async fn resolve_any_version(
        &self,
        group: &str,
        kind: &str,
    ) -> Result<Option<Mapping>, MapperError> {
        self.capabilities().await?;
        let state = self.state();
        let same = |gvk: &&GroupVersionKind| gvk.group == group && gvk.kind == kind;
        let newest = state.kinds.keys().filter(same).max_by(|a, b| a.version.cmp(&b.version));
        Ok(newest.and_then(|gvk| state.kinds.get(gvk)).cloned())
    }

    /// Server version and API versions, for `.Capabilities`. Cached until [`Mapper::invalidate`],
    /// or until a kind appeared that was not known before.
    pub async fn capabilities(&self) -> Result<Arc<ServerCapabilities>, MapperError> {
        if let Some(known) = self.state().capabilities.clone() {
            return Ok(known);
        }
        let _loading = self.loading.lock().await;
        if let Some(known) = self.state().capabilities.clone() {
            return Ok(known);
        }
        self.load().await
    }

    /// [`Mapper::capabilities`], read again if that was longer ago than `age`: nobody tells of an API
    /// that appeared. What was known stays if the server does not answer.
    ///
    /// # Errors
    ///
    /// The server does not answer, and nothing is known.
    pub async fn capabilities_within(
        &self,
        age: Duration,
    ) -> Result<Arc<ServerCapabilities>, MapperError> {
        let fresh = || {
            let state = self.state();
            let is_fresh = state.read.is_some_and(|read| read.elapsed() <= age);
            state.capabilities.clone().filter(|_| is_fresh)
        };
        if let Some(known) = fresh() {
            return Ok(known);
        }
        let _loading = self.loading.lock().await;
        if let Some(known) = fresh() {
            return Ok(known);
        }
        let before = self.state().capabilities.clone();
        match self.load().await {
            Err(error) => before.ok_or(error),
            read => read,
        }
    }

    /// Forgets everything, e.g. because a CRD appeared, changed or vanished; the next question
    /// reads discovery again.
    pub fn invalidate(&self) {
        *self.state() = State::default();
    }

    /// Forgets one kind, and that it was not found: because a request to its resource said that the
    /// path does not exist, or because its CRD was created just now. The next question asks at once.
    pub fn forget(&self, gvk: &GroupVersionKind) {
        let mut state = self.state();
        state.kinds.remove(gvk);
        state.capabilities = None;
        // Keeps `resolve` from reading all of discovery again for this one kind.
        let now = Instant::now();
        state.misses.insert(gvk.clone(), now.checked_sub(RETRY_AFTER).unwrap_or(now));
    }

    fn known(&self, gvk: &GroupVersionKind) -> Option<Mapping> {
        self.state().kinds.get(gvk).cloned()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // The guarded sections cannot panic half-way through a change, so a poisoned lock is sound.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads all of discovery: two requests, and one for the version.
    async fn load(&self) -> Result<Arc<ServerCapabilities>, MapperError> {
        let begun = Instant::now();
        let version = call(self.client.apiserver_version()).await?;
        let core = call(self.client.list_core_api_versions_aggregated()).await?;
        let groups = call(self.client.list_api_groups_aggregated()).await?;
        let mut found = Found::default();
        found.add_all(core);
        found.add_all(groups);
        if found.kinds.is_empty() {
            // A server that does not aggregate answers with other types, which read as empty.
            found = self.load_one_by_one().await?;
        }
        let capabilities = Arc::new(ServerCapabilities {
            git_version: version.git_version,
            major: version.major,
            minor: version.minor,
            api_versions: found.api_versions,
        });
        let mut state = self.state();
        state.kinds = found.kinds;
        state.capabilities = Some(Arc::clone(&capabilities));
        state.read = Some(begun);
        Ok(capabilities)
    }

    /// Discovery before Kubernetes 1.26: one request per group version. A group whose server is
    /// down is left out, as it must not take the others with it.
    async fn load_one_by_one(&self) -> Result<Found, MapperError> {
        let mut found = Found::default();
        for version in call(self.client.list_core_api_versions()).await?.versions {
            let list = call(self.client.list_core_api_resources(&version)).await?;
            found.add_list("", &version, list);
        }
        for group in call(self.client.list_api_groups()).await?.groups {
            for version in &group.versions {
                match call(self.client.list_api_group_resources(&version.group_version)).await {
                    Ok(list) => found.add_list(&group.name, &version.version, list),
                    Err(error) => {
                        tracing::warn!(group_version = version.group_version, %error, "group left out of discovery");
                    }
                }
            }
        }
        Ok(found)
    }

    /// Asks for the one group version of a kind that is not known.
    async fn rediscover(&self, gvk: &GroupVersionKind) -> Result<Mapping, MapperError> {
        let api_version = gvk.api_version();
        let list = if gvk.group.is_empty() {
            call(self.client.list_core_api_resources(&gvk.version)).await
        } else {
            call(self.client.list_api_group_resources(&api_version)).await
        };
        let list = match list {
            Ok(list) => list,
            Err(MapperError::Discovery(error)) if is_not_found(&error) => {
                APIResourceList::default()
            }
            Err(error) => return Err(error),
        };
        let mut found = Found::default();
        found.add_list(&gvk.group, &gvk.version, list);
        let mapping = found.kinds.get(gvk).cloned();
        let mut state = self.state();
        state.kinds.extend(found.kinds);
        if let Some(mapping) = mapping {
            state.misses.remove(gvk);
            state.capabilities = None;
            Ok(mapping)
        } else {
            // Kinds that came and went must not fill the memory of a long-lived operator.
            state.misses.retain(|_, at| at.elapsed() < RETRY_AFTER);
            state.misses.insert(gvk.clone(), Instant::now());
            Err(no_match(gvk))
        }
    }
}

/// One reading of discovery.
#[derive(Default)]
struct Found {
    kinds: HashMap<GroupVersionKind, Mapping>,
    api_versions: BTreeSet<String>,
}

impl Found {
    fn add_all(&mut self, list: APIGroupDiscoveryList) {
        for group in list.items {
            let name = group.metadata.and_then(|meta| meta.name).unwrap_or_default();
            for version in group.versions {
                let Some(number) = version.version else { continue };
                self.api_versions.insert(api_version(&name, &number));
                for resource in version.resources {
                    self.add(&name, &number, resource);
                }
            }
        }
    }

    fn add(&mut self, group: &str, version: &str, resource: APIResourceDiscovery) {
        let Some(kind) = resource.response_kind.and_then(|gvk| gvk.kind) else { return };
        let Some(plural) = resource.resource else { return };
        for APISubresourceDiscovery { response_kind, .. } in resource.subresources {
            if let Some(kind) = response_kind.and_then(|gvk| gvk.kind) {
                self.add_capability(group, version, &kind);
            }
        }
        self.add_kind(
            group,
            version,
            &kind,
            &plural,
            resource.scope.as_deref() == Some("Namespaced"),
        );
    }

    fn add_list(&mut self, group: &str, version: &str, list: APIResourceList) {
        self.api_versions.insert(api_version(group, version));
        for resource in list.resources {
            if resource.name.contains('/') {
                self.add_capability(group, version, &resource.kind);
            } else {
                self.add_kind(group, version, &resource.kind, &resource.name, resource.namespaced);
            }
        }
    }

    fn add_capability(&mut self, group: &str, version: &str, kind: &str) {
        self.api_versions.insert(format!("{}/{kind}", api_version(group, version)));
    }

    fn add_kind(&mut self, group: &str, version: &str, kind: &str, plural: &str, namespaced: bool) {
        self.add_capability(group, version, kind);
        let gvk = GroupVersionKind::gvk(group, version, kind);
        let resource = ApiResource::from_gvk_with_plural(&gvk, plural);
        self.kinds.entry(gvk).or_insert(Mapping { resource, namespaced });
    }
}

fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

fn no_match(gvk: &GroupVersionKind) -> MapperError {
    MapperError::NoMatch { kind: gvk.kind.clone(), api_version: gvk.api_version() }
}

fn is_not_found(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

/// One call of discovery under its timeout: kube's default client has none for reading.
async fn call<T>(future: impl Future<Output = Result<T, kube::Error>>) -> Result<T, MapperError> {
    match timeout(CALL_TIMEOUT, future).await {
        Ok(result) => result.map_err(|error| MapperError::Discovery(Arc::new(error))),
        Err(_) => Err(MapperError::Timeout),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read<T: serde::de::DeserializeOwned>(value: Value) -> T {
        serde_json::from_value(value).expect("discovery")
    }

    /// Both forms of discovery tell the same.
    #[test]
    fn kinds_and_capabilities_are_read_from_either_form() {
        let mut aggregated = Found::default();
        aggregated.add_all(read(json!({"items": [{"metadata": {"name": "apps"}, "versions": [{"version": "v1", "resources": [{
            "resource": "deployments", "scope": "Namespaced",
            "responseKind": {"group": "apps", "version": "v1", "kind": "Deployment"},
            "subresources": [{"subresource": "scale", "responseKind": {"group": "autoscaling", "version": "v1", "kind": "Scale"}}],
        }]}]}]})));
        let mut listed = Found::default();
        let list = json!({"groupVersion": "apps/v1", "resources": [
            {"name": "deployments", "singularName": "deployment", "namespaced": true, "kind": "Deployment", "verbs": []},
            {"name": "deployments/scale", "singularName": "", "namespaced": true, "group": "autoscaling", "version": "v1", "kind": "Scale", "verbs": []},
        ]});
        listed.add_list("apps", "v1", read(list));
        for found in [aggregated, listed] {
            let mapping = found
                .kinds
                .get(&GroupVersionKind::gvk("apps", "v1", "Deployment"))
                .expect("a kind");
            assert_eq!(
                (mapping.resource.plural.as_str(), mapping.namespaced),
                ("deployments", true)
            );
            assert_eq!(found.kinds.len(), 1, "a subresource is no kind to apply");
            let expected = ["apps/v1", "apps/v1/Deployment", "apps/v1/Scale"].map(str::to_owned);
            assert_eq!(found.api_versions, BTreeSet::from(expected));
        }
    }

    #[test]
    fn a_core_kind_has_no_group() {
        let mut found = Found::default();
        found.add_list("", "v1", read(json!({"groupVersion": "v1", "resources": [
            {"name": "nodes", "singularName": "node", "namespaced": false, "kind": "Node", "verbs": []},
        ]})));
        let gvk = GroupVersionKind::gvk("", "v1", "Node");
        assert_eq!(found.kinds.get(&gvk).map(|mapping| mapping.namespaced), Some(false));
        assert_eq!(found.api_versions, BTreeSet::from(["v1".to_owned(), "v1/Node".to_owned()]));
        let gone = GroupVersionKind::gvk("example.dev", "v1", "Thing");
        let text = "no matches for kind \"Thing\" in version \"example.dev/v1\"";
        assert_eq!(no_match(&gone).to_string(), text);
    }
}
