//! What the manager serves: the probes, for whoever starts and ends it, and its metrics, for those who
//! may read them.

mod certificate;
mod permit;
mod scrapes;
mod server;

use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

pub(crate) use scrapes::Scrapes;
use server::Limits;

type Check = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// /healthz says that the process does its work, /readyz that it can do all of it.
pub(crate) struct Probes {
    /// Why the process should be started anew, if it should.
    pub healthy: Check,
    /// What is still missing, if anything is.
    pub ready: Check,
}

impl Probes {
    /// Serves the probes on a bound listener until `stop`.
    pub async fn serve(self, listener: TcpListener, stop: CancellationToken) {
        if let Ok(address) = listener.local_addr() {
            tracing::info!(%address, "serving health probes");
        }
        let probe = |check: Check| {
            get(move || {
                let answer = check();
                async move {
                    match answer {
                        Ok(()) => (StatusCode::OK, "ok".to_owned()),
                        Err(why) => (StatusCode::SERVICE_UNAVAILABLE, why),
                    }
                }
            })
        };
        let routes = Router::new()
            .route("/healthz", probe(self.healthy))
            .route("/readyz", probe(self.ready));
        server::serve(listener, None, routes, Limits::default(), stop).await;
    }
}

/// Binds an address in Go's form: `:8081` is every interface, `0` is none.
///
/// # Errors
/// A message for people that names the address and the flag.
pub(crate) async fn bind(address: &str, flag: &str) -> Result<Option<TcpListener>, String> {
    if address == "0" || address.is_empty() {
        return Ok(None);
    }
    let full = if address.starts_with(':') { format!("[::]{address}") } else { address.to_owned() };
    let bound = match TcpListener::bind(&full).await {
        // A machine without IPv6.
        Err(_) if address.starts_with(':') => TcpListener::bind(format!("0.0.0.0{address}")).await,
        bound => bound,
    };
    bound.map(Some).map_err(|error| format!("cannot listen on {address:?}: {error} (see {flag})"))
}
