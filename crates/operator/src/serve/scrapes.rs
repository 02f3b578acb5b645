//! /metrics: over TLS and for those who may, unless the flags say otherwise.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bytes::Bytes;
use kube::Client;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::bind;
use super::certificate::Certificate;
use super::permit::Permits;
use super::server::{self, Limits};
use crate::metrics::{MEDIA_TYPE, Metrics};
use crate::options::Options;

/// How long a page is used again: with many resources it takes milliseconds to write, and whoever may
/// connect may ask without a pause.
const SHARED: Duration = Duration::from_millis(100);

/// Metrics that can be served: all that may fail has been tried.
pub(crate) struct Scrapes {
    listener: TcpListener,
    certificate: Option<Arc<Certificate>>,
    permits: Option<Permits>,
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
            permits,
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
        let page = Arc::new(Page::default());
        let read = move || {
            let text = page.text(|| metrics.text());
            async move { ([(header::CONTENT_TYPE, MEDIA_TYPE)], text) }
        };
        let mut routes = Router::new().route("/metrics", get(read));
        if let Some(permits) = permits {
            routes = routes.layer(from_fn_with_state(permits, only_permitted));
        }
        server::serve(listener, certificate, routes, Limits::default(), stop).await;
    }
}

/// The text that was written last, for all who ask within [`SHARED`].
#[derive(Default)]
struct Page(Mutex<Option<(Instant, Bytes)>>);

impl Page {
    fn text(&self, write: impl FnOnce() -> String) -> Bytes {
        let mut page = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match page.as_ref() {
            Some((written, text)) if written.elapsed() < SHARED => text.clone(),
            _ => {
                let text = Bytes::from(write());
                *page = Some((Instant::now(), text.clone()));
                text
            }
        }
    }
}

async fn only_permitted(
    State(permits): State<Permits>,
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
    Certificate::self_signed(["localhost".to_owned()].into_iter().chain(host).collect())
}
