//! Clients for the API server.
//!
//! They use kube's layers over an HTTP client of this crate, so that the fence is checked twice: before a
//! request is made, and when its body is sent ([`fenced`]).

mod driven;
mod fenced;
mod impersonation;
#[cfg(test)]
mod stalls;
mod throttle;

use std::path::Path;
use std::sync::Arc;

use catamaran_cluster::timeouts::Timeouts;
use http::Request;
use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::{Body, ClientBuilder, ConfigExt};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tower::{BoxError, Layer, ServiceExt};

use crate::leader_election::Fence;
use crate::metrics::Metrics;
use driven::Driven;
use fenced::FencedBody;
pub(crate) use impersonation::Impersonation;
use throttle::GateLayer;
pub(crate) use throttle::{RateLimit, advised};

/// The clients of a manager.
#[derive(Clone)]
pub(crate) struct Connections {
    /// For all work: allows writes only while the fence is open.
    pub work: Client,
    /// For the Lease itself, and for reviews that are requested by POST, such as who this is and what they
    /// may do.
    pub plain: Client,
    /// For work as a service account.
    pub impersonation: Impersonation,
}

/// Connects as the kubeconfig or the environment configures ($KUBECONFIG, ~/.kube/config, the service
/// account of a pod).
///
/// # Errors
/// A message.
pub(crate) async fn connect(
    kubeconfig: Option<&Path>,
    operator: &str,
    fence: &Fence,
    limit: Option<RateLimit>,
    metrics: &Arc<Metrics>,
) -> Result<Connections, String> {
    let mut config = match kubeconfig {
        Some(path) => {
            let kubeconfig = Kubeconfig::read_from(path).map_err(|error| error.to_string())?;
            Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
                .await
                .map_err(|error| error.to_string())?
        }
        None => Config::infer().await.map_err(|error| error.to_string())?,
    };
    let agent = format!("{operator}/{}", env!("CARGO_PKG_VERSION"));
    if let Ok(agent) = agent.parse() {
        config.headers.push((http::header::USER_AGENT, agent));
    }
    let limit = limit.map(Arc::new);
    let (open, timeouts) = (Fence::open(), Timeouts::default());
    let plain = GateLayer::new(&open, None, metrics, &config, timeouts);
    let plain = client(&config, &open, &plain, timeouts);
    let work = GateLayer::new(fence, limit, metrics, &config, timeouts);
    let work = client(&config, fence, &work, timeouts);
    let work = work.map_err(|error| error.to_string())?;
    Ok(Connections {
        impersonation: Impersonation::new(work.clone(), &config),
        work,
        plain: plain.map_err(|error| error.to_string())?,
    })
}

/// A client that does not retry. The queue does, which knows what else there is to do. A retry of the
/// client would block a worker for minutes, and repeat a POST whose response was lost.
fn client(
    config: &Config,
    fence: &Fence,
    gate: &GateLayer,
    timeouts: Timeouts,
) -> Result<Client, kube::Error> {
    let tls = config.rustls_https_connector_with_connector(tcp(timeouts))?;
    let mut connector = TimeoutConnector::new(tls);
    connector.set_connect_timeout(Some(timeouts.connect));
    connector.set_write_timeout(Some(timeouts.body));
    let mut pool = HttpClient::builder(TokioExecutor::new());
    pool.pool_timer(TokioTimer::new()).pool_idle_timeout(timeouts.follow);
    let http = Driven::here(pool.build(connector));
    let fence = fence.clone();
    let http = http.map_request(move |request: Request<Body>| FencedBody::wrap(request, &fence));
    let http = config.extra_headers_layer()?.layer(http);
    let http = tower::util::option_layer(config.auth_layer()?).layer(http);
    let http = config.base_uri_layer().layer(http.map_err(BoxError::from));
    let builder = ClientBuilder::new(http, config.default_namespace.clone());
    Ok(builder.with_layer(gate).build())
}

/// Opens connections that end when the other end does not answer any more.
fn tcp(timeouts: Timeouts) -> HttpConnector {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    // Sent bytes are acknowledged within this time, and so are probes of an idle connection.
    tcp.set_tcp_user_timeout(Some(timeouts.body));
    tcp.set_keepalive(Some(timeouts.body));
    tcp.set_keepalive_interval(Some(timeouts.body / 3));
    tcp.set_keepalive_retries(Some(3));
    tcp
}

/// Whether this process runs in a pod.
pub(crate) fn in_cluster() -> bool {
    std::env::var_os("KUBERNETES_SERVICE_HOST").is_some()
}

/// An unpredictable number, different in every call.
pub(crate) fn fresh() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::time::SystemTime::now())
}
