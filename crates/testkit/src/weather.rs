//! Bad weather between an operator and the API server.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use catamaran_localcluster::LocalCluster;
use futures::{Stream, StreamExt};
use kube::Client;
use serde_json::json;
use tokio::sync::watch::{Receiver, Sender};
use tokio_util::sync::{CancellationToken, DropGuard};

/// A way to the API server on which a test can hold, cut and refuse.
///
/// Whoever uses its kubeconfig has the rights and the user agent of the test itself: requests are told
/// apart by what [`Weather::asked`] has seen.
#[derive(Debug)]
pub struct Weather {
    sky: Arc<Sky>,
    kubeconfig: PathBuf,
    _folder: tempfile::TempDir,
    _ends: DropGuard,
}

#[derive(Debug)]
struct Sky {
    /// Watches tell nothing while this is true; what they would have told comes later.
    held: Sender<bool>,
    /// Watches that are older than this end.
    cut: Sender<u64>,
    /// What the next watches are answered with instead.
    answers: Mutex<VecDeque<u16>>,
    asked: Mutex<Vec<String>>,
}

impl Weather {
    /// A fine day.
    pub async fn new(cluster: &LocalCluster) -> Self {
        let sky = Arc::new(Sky {
            held: Sender::new(false),
            cut: Sender::new(0),
            answers: Mutex::default(),
            asked: Mutex::default(),
        });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = format!("http://{}", listener.local_addr().unwrap());
        let folder = tempfile::tempdir().unwrap();
        let kubeconfig = folder.path().join("kubeconfig");
        let text = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "it",
            "clusters": [{ "name": "it", "cluster": { "server": server } }],
            "contexts": [{ "name": "it", "context": { "cluster": "it", "user": "it" } }],
            "users": [{ "name": "it", "user": {} }],
        });
        std::fs::write(&kubeconfig, text.to_string()).unwrap();
        let router = Router::new().fallback(pass).with_state((cluster.client(), sky.clone()));
        let end = CancellationToken::new();
        let ended = end.clone().cancelled_owned();
        tokio::spawn(
            async move { axum::serve(listener, router).with_graceful_shutdown(ended).await },
        );
        Self { sky, kubeconfig, _folder: folder, _ends: end.drop_guard() }
    }

    /// The kubeconfig that leads through it.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// From now on no watch tells anything: caches grow stale.
    pub fn hold(&self) {
        self.sky.held.send_replace(true);
    }

    /// Watches tell what they did not.
    pub fn release(&self) {
        self.sky.held.send_replace(false);
    }

    /// Breaks all watches that are open. Those that follow are answered with these codes first, one
    /// each (410: what is asked for is too old).
    pub fn cut(&self, answers: &[u16]) {
        self.sky.answers.lock().unwrap().extend(answers);
        self.sky.cut.send_modify(|cut| *cut += 1);
    }

    /// What was asked for, as `GET /api/v1/pods?limit=500`, since it was asked last.
    pub fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.sky.asked.lock().unwrap())
    }
}

async fn pass(State((client, sky)): State<(Client, Arc<Sky>)>, request: Request) -> Response {
    let uri = request.uri().to_string();
    sky.asked.lock().unwrap().push(format!("{} {uri}", request.method()));
    let watches = uri.contains("watch=true");
    let answer = if watches { sky.answers.lock().unwrap().pop_front() } else { None };
    if let Some(code) = answer {
        return refusal(code);
    }
    let (held, cut) = (sky.held.subscribe(), sky.cut.subscribe());
    let (mut parts, body) = request.into_parts();
    parts.headers.remove("host");
    let body = axum::body::to_bytes(body, usize::MAX).await.unwrap().to_vec();
    let request = http::Request::from_parts(parts, kube::client::Body::from(body));
    match client.send(request).await {
        Ok(answer) if watches => {
            let (parts, body) = answer.into_parts();
            Response::from_parts(parts, Body::from_stream(told(Body::new(body), held, cut)))
        }
        Ok(answer) => answer.map(Body::new),
        Err(error) => (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
    }
}

/// What a watch tells: nothing while it is held, and no more once it is cut.
fn told(
    body: Body,
    held: Receiver<bool>,
    cut: Receiver<u64>,
) -> impl Stream<Item = Result<Bytes, axum::Error>> {
    let begun = (body.into_data_stream(), held, cut);
    futures::stream::unfold(begun, async |(mut body, mut held, mut cut)| {
        let next = async {
            let part = body.next().await;
            let _ = held.wait_for(|held| !held).await;
            part
        };
        let part = tokio::select! {
            part = next => part,
            _ = cut.changed() => None,
        };
        Some((part?, (body, held, cut)))
    })
}

/// What the API server would say.
fn refusal(code: u16) -> Response {
    let reason = if code == 410 { "Expired" } else { "InternalError" };
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "bad weather", "reason": reason, "code": code,
    });
    let code = StatusCode::from_u16(code).unwrap();
    (code, [("content-type", "application/json")], status.to_string()).into_response()
}
