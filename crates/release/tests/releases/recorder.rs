//! A client's way to the API server with somebody who writes down what passes.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use kube::Client;
use kube::client::Body;

use crate::model::essence;

/// Hands requests on, and keeps what was asked for and answered.
#[derive(Clone)]
pub(crate) struct Recorder {
    pub to: Client,
    pub log: Arc<Mutex<Vec<String>>>,
}

impl tower::Service<http::Request<Body>> for Recorder {
    type Response = http::Response<Body>;
    type Error = kube::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, kube::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), kube::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let Self { to, log } = self.clone();
        Box::pin(async move {
            let asked = format!("{} {}", request.method(), request.uri().path());
            let response = to.send(request).await?;
            let (head, body) = response.into_parts();
            let bytes = body.collect_bytes().await?;
            let is_discovery = !asked.contains("/namespaces/");
            if !is_discovery {
                let answer = serde_json::from_slice(&bytes).unwrap_or_default();
                let told = essence(head.status.as_u16(), answer);
                log.lock().expect("a log").push(format!("{asked} {told}"));
            }
            Ok(http::Response::from_parts(head, Body::from(bytes)))
        })
    }
}
