//! The connection to the API server.

use std::path::Path;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

/// Connects as a kubeconfig says, or as the environment does ($KUBECONFIG, ~/.kube/config, the service
/// account of a pod).
///
/// # Errors
/// A message for people.
pub(crate) async fn connect(kubeconfig: Option<&Path>, operator: &str) -> Result<Client, String> {
    let mut config = match kubeconfig {
        Some(path) => {
            let kubeconfig = Kubeconfig::read_from(path).map_err(|error| error.to_string())?;
            Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
                .await
                .map_err(|error| error.to_string())?
        }
        None => Config::infer().await.map_err(|error| error.to_string())?,
    };
    // A request is tried again by the queue, which knows what else is to do; the client's own retry
    // would hold a worker for minutes, and send a POST again whose answer was lost.
    config.default_retry = false;
    let agent = format!("{operator}/{}", env!("CARGO_PKG_VERSION"));
    if let Ok(agent) = agent.parse() {
        config.headers.push((http::header::USER_AGENT, agent));
    }
    Client::try_from(config).map_err(|error| error.to_string())
}

/// Whether this process runs in a pod.
pub(crate) fn in_cluster() -> bool {
    std::env::var_os("KUBERNETES_SERVICE_HOST").is_some()
}

/// A number that nobody can guess, another one at every call.
pub(crate) fn fresh() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::time::SystemTime::now())
}
