//! A model of the API server, in memory: what a release engine sees of one, in microseconds.
//!
//! It speaks HTTP below kube's client, so that the real code runs against it: discovery, reads and
//! lists, creation, updates, merge patches, server-side apply with its field managers, versions and
//! uids as preconditions, finalizers, the three ways to delete, namespaces on their way out.
//!
//! Nothing in it moves by itself. Time stands still and no controller runs until [`Model::tick`]: a
//! second passes, Jobs end, Deployments are available, what has no owner any more is collected. So
//! whatever a test does, it does the same again; and a world costs a [`Model::fork`].
//!
//! ```
//! use catamaran_apimodel::Model;
//! # let _ = async || -> Result<(), kube::Error> {
//! let model = Model::new();
//! let driver_of_something = model.client();
//! model.tick();
//! assert_eq!(model.count("POST", "/secrets", 201), 0);
//! # Ok(()) };
//! ```
//!
//! What it does not know it refuses with status 501, rather than to make something up. That it
//! answers as the real one does is tested: `crates/release/tests/releases/model.rs` sends the same
//! requests to both.

mod answer;
mod apply;
mod changes;
mod controllers;
mod kinds;
mod request;
mod rules;
mod sets;
mod shape;
mod world;

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use jiff::Timestamp;
use kube::Client;
use kube::client::Body;
use serde_json::Value;

use world::World;

/// One cluster; clones are the same cluster.
#[derive(Clone)]
pub struct Model {
    world: Arc<Mutex<World>>,
}

/// One request that was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    /// `GET`, `POST`, `PUT`, `PATCH` or `DELETE`.
    pub method: String,
    /// Its path, without the query.
    pub path: String,
    /// Whether it was to change nothing.
    pub dry_run: bool,
    /// The answer's status.
    pub code: u16,
}

impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Model").finish_non_exhaustive()
    }
}

impl Default for Model {
    fn default() -> Self {
        Self::new()
    }
}

impl Model {
    /// A cluster with the namespace `default` and nothing in it.
    pub fn new() -> Self {
        Self { world: Arc::new(Mutex::new(World::new())) }
    }

    /// Another cluster that is what this one is now.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self { world: Arc::new(Mutex::new(self.world().clone())) }
    }

    /// A client of it.
    pub fn client(&self) -> Client {
        Client::new(self.service(), "default")
    }

    /// What answers requests, for tests that put something of their own before it.
    pub fn service(&self) -> Server {
        Server { model: self.clone() }
    }

    /// What time it is in the cluster.
    pub fn now(&self) -> Timestamp {
        self.world().now()
    }

    /// Lets a second pass, and every controller do what it has to.
    pub fn tick(&self) {
        self.world().tick();
    }

    /// Lets time pass in which nothing happens.
    pub fn pass(&self, seconds: i64) {
        self.world().pass(seconds);
    }

    /// All objects of a resource, such as `configmaps`, by namespace and name.
    pub fn objects(&self, resource: &str) -> Vec<Value> {
        self.world().all(resource)
    }

    /// One object; null if it is not there. The namespace of a cluster-scoped one is empty.
    pub fn object(&self, resource: &str, namespace: &str, name: &str) -> Value {
        self.world().find(resource, namespace, name).cloned().unwrap_or_default()
    }

    /// The requests that were answered so far.
    pub fn served(&self) -> Vec<Served> {
        self.world().served.clone()
    }

    /// How many requests of this method got this answer, at paths that end so.
    pub fn count(&self, method: &str, path_end: &str, code: u16) -> usize {
        let world = self.world();
        let counts = |served: &&Served| {
            served.method == method
                && served.code == code
                && !served.dry_run
                && served.path.ends_with(path_end)
        };
        world.served.iter().filter(counts).count()
    }

    /// Answers one request, as the API server would: its status and its body.
    pub fn answer(&self, method: &str, uri: &str, kind: &str, body: &[u8]) -> (u16, Value) {
        let request = match request::Request::read(method, uri, kind, body) {
            Ok(request) => request,
            Err(refusal) => return (refusal.code, refusal.status()),
        };
        let mut world = self.world();
        let (code, body) = match world.serve(&request) {
            Ok((code, body)) => (code, body),
            Err(refusal) => (refusal.code, refusal.status()),
        };
        world.served.push(Served {
            method: method.to_owned(),
            path: uri.split('?').next().unwrap_or_default().to_owned(),
            dry_run: request.dry_run,
            code,
        });
        (code, body)
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The model as what a client sends its requests to.
#[derive(Clone, Debug)]
pub struct Server {
    model: Model,
}

impl tower::Service<http::Request<Body>> for Server {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let model = self.model.clone();
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let body = body.collect_bytes().await.map(|bytes| bytes.to_vec()).unwrap_or_default();
            let header = |name| head.headers.get(name).and_then(|value| value.to_str().ok());
            let kind = header(http::header::CONTENT_TYPE).unwrap_or_default();
            let (code, answer) =
                model.answer(head.method.as_str(), &head.uri.to_string(), kind, &body);
            let mut response = http::Response::new(Body::from(answer.to_string().into_bytes()));
            *response.status_mut() =
                http::StatusCode::from_u16(code).unwrap_or(http::StatusCode::NOT_IMPLEMENTED);
            Ok(response)
        })
    }
}
