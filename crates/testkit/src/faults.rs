//! Bad weather between an operator and the API server.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

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
/// apart by what [`WatchFaults::asked`] has seen.
#[derive(Debug)]
pub struct WatchFaults {
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
    storms: Mutex<Vec<RequestFaults>>,
    asked: Mutex<Vec<String>>,
}

/// What happens to some requests that are no watches.
#[derive(Debug)]
pub struct RequestFaults {
    /// Begin of the method and the path, such as `PATCH /apis/`; empty is everything.
    begins: String,
    /// What else is in the path, such as `/status`.
    contains: String,
    /// How many are left to which it happens.
    left: usize,
    effect: Effect,
}

#[derive(Clone, Copy, Debug)]
enum Effect {
    /// Answered with a code instead, and how many seconds to wait.
    Refused(u16, Option<u32>),
    /// The API server does it, and the answer is lost: the connection breaks.
    Unanswered,
    /// Passed on late.
    Late(Duration),
}

impl RequestFaults {
    /// Over requests of a method whose path contains a text.
    pub fn over(method: &str, path: &str) -> Self {
        let (begins, contains) = (method.to_owned(), path.to_owned());
        Self { begins, contains, left: usize::MAX, effect: Effect::Refused(500, None) }
    }

    /// Ends after so many requests.
    #[must_use]
    pub fn times(self, left: usize) -> Self {
        Self { left, ..self }
    }

    /// They are answered with a code instead.
    #[must_use]
    pub fn refused(self, code: u16) -> Self {
        Self { effect: Effect::Refused(code, None), ..self }
    }

    /// They are answered with 429 instead, and told to wait.
    #[must_use]
    pub fn too_many(self, wait_seconds: u32) -> Self {
        Self { effect: Effect::Refused(429, Some(wait_seconds)), ..self }
    }

    /// The API server does what they ask for, and its answer is lost.
    #[must_use]
    pub fn unanswered(self) -> Self {
        Self { effect: Effect::Unanswered, ..self }
    }

    /// They arrive later.
    #[must_use]
    pub fn late(self, by: Duration) -> Self {
        Self { effect: Effect::Late(by), ..self }
    }

    fn is_over(&mut self, method: &str, path: &str) -> bool {
        let hit =
            self.left > 0 && method.starts_with(&self.begins) && path.contains(&self.contains);
        self.left = self.left.saturating_sub(hit.into());
        hit
    }
}

impl WatchFaults {
    /// A fine day.
    pub async fn new(cluster: &LocalCluster) -> Self {
        let sky = Arc::new(Sky {
            held: Sender::new(false),
            cut: Sender::new(0),
            answers: Mutex::default(),
            storms: Mutex::default(),
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

    /// Something happens to some requests from now on, watches left out.
    pub fn storm(&self, storm: RequestFaults) {
        self.sky.storms.lock().unwrap().push(storm);
    }

    /// All storms are over.
    pub fn clear(&self) {
        self.sky.storms.lock().unwrap().clear();
    }

    /// What was asked for, as `GET /api/v1/pods?limit=100`, since it was asked last.
    pub fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.sky.asked.lock().unwrap())
    }
}

impl Sky {
    fn effect(&self, method: &str, path: &str) -> Option<Effect> {
        let mut storms = self.storms.lock().unwrap();
        storms.iter_mut().find_map(|storm| storm.is_over(method, path).then_some(storm.effect))
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
    let effect = if watches { None } else { sky.effect(request.method().as_str(), &uri) };
    match effect {
        Some(Effect::Refused(429, wait)) => return too_many(wait.unwrap_or(1)),
        Some(Effect::Refused(code, _)) => return refusal(code),
        Some(Effect::Late(by)) => tokio::time::sleep(by).await,
        Some(Effect::Unanswered) | None => {}
    }
    let (held, cut) = (sky.held.subscribe(), sky.cut.subscribe());
    let (mut parts, body) = request.into_parts();
    parts.headers.remove("host");
    let body = axum::body::to_bytes(body, usize::MAX).await.unwrap().to_vec();
    let request = http::Request::from_parts(parts, kube::client::Body::from(body));
    match client.send(request).await {
        Ok(_) if matches!(effect, Some(Effect::Unanswered)) => {
            let broken = futures::stream::iter([Err::<Bytes, _>(std::io::Error::other("lost"))]);
            Response::new(Body::from_stream(broken))
        }
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
    let reason = match code {
        403 => "Forbidden",
        409 => "Conflict",
        410 => "Expired",
        _ => "InternalError",
    };
    answer(code, reason, &json!({}))
}

/// What the API server says to whom it has no time for.
fn too_many(wait_seconds: u32) -> Response {
    let details = json!({ "retryAfterSeconds": wait_seconds });
    let mut response = answer(429, "TooManyRequests", &details);
    response.headers_mut().insert("retry-after", wait_seconds.into());
    response
}

fn answer(code: u16, reason: &str, details: &serde_json::Value) -> Response {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "bad weather", "reason": reason, "code": code, "details": details,
    });
    let code = StatusCode::from_u16(code).unwrap();
    (code, [("content-type", "application/json")], status.to_string()).into_response()
}
