//! The probes: /healthz says that the process lives, /readyz that it can do its work.

use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Serves the probes on a bound listener until `stop`.
pub(crate) async fn probes(
    listener: TcpListener,
    ready: Arc<dyn Fn() -> bool + Send + Sync>,
    stop: CancellationToken,
) {
    let readyz = move || {
        let ready = ready.clone();
        async move {
            if ready() {
                (StatusCode::OK, "ok")
            } else {
                (StatusCode::SERVICE_UNAVAILABLE, "the first lists have not been read yet")
            }
        }
    };
    let routes = Router::new().route("/healthz", get(async || "ok")).route("/readyz", get(readyz));
    if let Err(error) =
        axum::serve(listener, routes).with_graceful_shutdown(stop.cancelled_owned()).await
    {
        tracing::error!(%error, "the probes are no longer served");
    }
}

/// Binds an address in Go's form: `:8081` is every interface, `0` is none.
///
/// # Errors
/// A message for people that names the address.
pub(crate) async fn bind(address: &str) -> Result<Option<TcpListener>, String> {
    if address == "0" || address.is_empty() {
        return Ok(None);
    }
    let full = if address.starts_with(':') { format!("[::]{address}") } else { address.to_owned() };
    let bound = match TcpListener::bind(&full).await {
        // A machine without IPv6.
        Err(_) if address.starts_with(':') => TcpListener::bind(format!("0.0.0.0{address}")).await,
        bound => bound,
    };
    bound.map(Some).map_err(|error| {
        format!("cannot listen on {address:?} for the health probes: {error} (see --health-probe-bind-address)")
    })
}
