//! Is it of use yet? Asked by doing what users will do, not by believing that a process that runs
//! is ready.

use std::fmt::Debug;
use std::time::Duration;

use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::{Api, ListParams};
use kube::{Client, Discovery};
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};

/// How often things are asked that cannot be watched.
pub(crate) const POLL: Duration = Duration::from_millis(50);

// The waits here have no deadline of their own: the whole start has one, and names the step.

/// Asks again and again until there is an answer.
pub(crate) async fn until<T, F: Future<Output = Option<T>>>(mut ask: impl FnMut() -> F) -> T {
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        tokio::time::sleep(POLL).await;
    }
}

/// Until the API server is ready. Says its version.
pub(crate) async fn api_server(client: &Client) -> String {
    until(async || get(client, "/readyz").await.ok()).await;
    until(async || client.apiserver_version().await.ok()).await.git_version
}

/// Until pods can be created in a namespace: they need its default service account.
pub(crate) async fn service_account(client: &Client, namespace: &str) -> Result<()> {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), namespace);
    exists(&accounts, "default").await
}

/// Until every API is discovered, as clients that map kinds to resources need it.
pub(crate) async fn discovery(client: &Client) {
    until(async || {
        let found = Discovery::new(client.clone()).run_aggregated().await.ok()?;
        ["apps", "batch", "rbac.authorization.k8s.io", "apiextensions.k8s.io"]
            .iter()
            .all(|group| found.has_group(group))
            .then_some(())
    })
    .await;
}

/// Until an object is there.
pub(crate) async fn exists<K>(api: &Api<K>, name: &str) -> Result<()>
where
    K: Clone + Debug + DeserializeOwned,
{
    loop {
        let found =
            api.get_metadata_opt(name).await.map_err(Error::api(format!("look for {name}")))?;
        if found.is_some() {
            return Ok(());
        }
        tokio::time::sleep(POLL).await;
    }
}

async fn get(client: &Client, path: &str) -> kube::Result<String> {
    // `list` because it is a GET of the bare path; `get` would want an object's name.
    let request = kube::core::Request::new(path).list(&ListParams::default());
    client.request_text(request.map_err(kube::Error::BuildRequest)?).await
}

/// An object from what one would write in YAML.
pub(crate) fn object<K: DeserializeOwned>(value: serde_json::Value) -> Result<K> {
    serde_json::from_value(value).map_err(|error| Error::Invalid(format!("not an object: {error}")))
}
