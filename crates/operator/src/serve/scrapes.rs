//! /metrics: over TLS and for those who may, unless the flags say otherwise.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use kube::Client;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::bind;
use super::certificate::Certificate;
use super::permit::Permits;
use super::tls::TlsListener;
use crate::metrics::{MEDIA_TYPE, Metrics};
use crate::options::Options;

/// Metrics that can be served: all that may fail has been tried.
pub(crate) struct Scrapes {
    listener: TcpListener,
    certificate: Option<Arc<Certificate>>,
    permits: Option<Arc<Permits>>,
    metrics: Arc<Metrics>,
}

impl Scrapes {
    /// Binds the address of the flags; `None` if metrics are not to be served.
    ///
    /// # Errors
    /// A message for people: an address in use, a certificate that cannot be read.
    pub async fn open(
        options: &Options,
        client: &Client,
        metrics: &Arc<Metrics>,
    ) -> Result<Option<Self>, String> {
        let listener = bind(options.metrics_address(), "--metrics-bind-address").await?;
        let Some(listener) = listener else { return Ok(None) };
        let certificate = options.metrics_over_tls().then(|| certificate(options)).transpose()?;
        let permits = options.metrics_authorized().then(|| Permits::new(client.clone()));
        Ok(Some(Self {
            listener,
            certificate: certificate.map(Arc::new),
            permits: permits.map(Arc::new),
            metrics: metrics.clone(),
        }))
    }

    /// Serves until `stop`.
    pub async fn serve(self, stop: CancellationToken) {
        let Self { listener, certificate, permits, metrics } = self;
        if let Ok(address) = listener.local_addr() {
            let (tls, authorized) = (certificate.is_some(), permits.is_some());
            tracing::info!(%address, tls, authorized, "serving metrics");
        }
        let read = move || {
            let text = metrics.text();
            async move { ([(header::CONTENT_TYPE, MEDIA_TYPE)], text) }
        };
        let mut routes = Router::new().route("/metrics", get(read));
        if let Some(permits) = permits {
            routes = routes.layer(from_fn_with_state(permits, only_permitted));
        }
        let ended = match certificate {
            Some(certificate) => {
                let listener = TlsListener::new(listener, certificate);
                axum::serve(listener, routes).with_graceful_shutdown(stop.cancelled_owned()).await
            }
            None => {
                axum::serve(listener, routes).with_graceful_shutdown(stop.cancelled_owned()).await
            }
        };
        if let Err(error) = ended {
            tracing::error!(%error, "metrics are no longer served");
        }
    }
}

async fn only_permitted(
    State(permits): State<Arc<Permits>>,
    headers: HeaderMap,
    request: Request,
    next: Next,
) -> Response {
    let authorization = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    match permits.ask(authorization, request.uri().path()).await {
        StatusCode::OK => next.run(request).await,
        refused => {
            let why = refused.canonical_reason().unwrap_or_default();
            (refused, [(header::WWW_AUTHENTICATE, "Bearer")], why).into_response()
        }
    }
}

fn certificate(options: &Options) -> Result<Certificate, String> {
    if let Some(folder) = &options.metrics_cert_path {
        let (certificate, key) = (&options.metrics_cert_name, &options.metrics_cert_key);
        return Certificate::of_files(folder.join(certificate), folder.join(key));
    }
    let host = std::env::var("HOSTNAME").ok().filter(|host| !host.is_empty());
    Certificate::made_up(["localhost".to_owned()].into_iter().chain(host).collect())
}
