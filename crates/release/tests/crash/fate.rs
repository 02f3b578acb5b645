//! A client that dies, or loses answers.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use catamaran_apimodel::{Model, Server};
use kube::Client;
use kube::client::Body;
use tokio::sync::Notify;
use tower::{BoxError, Service};

/// What becomes of the write that is the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The process dies before it is sent.
    KilledBefore,
    /// The process dies after it was committed.
    KilledAfter,
    /// It is never sent, and everything after it works.
    NotSent,
    /// It is committed, its answer is lost, and everything after it works.
    AnswerLost,
}

impl End {
    pub const ALL: [Self; 4] =
        [Self::KilledBefore, Self::KilledAfter, Self::NotSent, Self::AnswerLost];
}

/// Counts requests, and does something at one of them.
#[derive(Clone)]
pub struct Fate {
    at: usize,
    deed: Deed,
    seen: Arc<AtomicUsize>,
    pub died: Arc<Notify>,
}

/// What is done when its time has come.
#[derive(Clone)]
pub enum Deed {
    /// The write with this number, from 1, is the last.
    End(End),
    /// Before the request with this number, from 1, reads and all, somebody else acts.
    Stranger(Arc<dyn Fn(&Model) + Send + Sync>),
}

impl Fate {
    pub fn new(at: usize, deed: Deed) -> Self {
        Self { at, deed, seen: Arc::default(), died: Arc::default() }
    }

    /// Whether the time has come.
    pub fn struck(&self) -> bool {
        self.seen.load(Ordering::SeqCst) >= self.at
    }

    pub fn client(&self, model: &Model) -> Client {
        let inner = model.service();
        Client::new(Doomed { inner, model: model.clone(), fate: self.clone() }, "default")
    }

    fn count(&self, request: &http::Request<Body>) -> usize {
        let counts = match self.deed {
            Deed::End(_) => request.method() != http::Method::GET,
            Deed::Stranger(_) => true,
        };
        if !counts {
            return if self.struck() { usize::MAX } else { 0 };
        }
        self.seen.fetch_add(1, Ordering::SeqCst) + 1
    }
}

#[derive(Clone)]
struct Doomed {
    inner: Server,
    model: Model,
    fate: Fate,
}

impl Service<http::Request<Body>> for Doomed {
    type Response = http::Response<Body>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let (number, fate) = (self.fate.count(&request), self.fate.clone());
        let now = number == fate.at;
        let after = number > fate.at;
        let mut inner = self.inner.clone();
        let model = self.model.clone();
        Box::pin(async move {
            match &fate.deed {
                Deed::Stranger(act) if now => act(&model),
                Deed::End(end @ (End::KilledBefore | End::KilledAfter)) if now || after => {
                    if now && *end == End::KilledAfter {
                        drop(inner.call(request).await);
                    }
                    fate.died.notify_one();
                    return std::future::pending().await;
                }
                Deed::End(End::NotSent) if now => return Err("the connection was refused".into()),
                Deed::End(End::AnswerLost) if now => {
                    drop(inner.call(request).await);
                    return Err("the answer was lost".into());
                }
                _ => {}
            }
            Ok(inner.call(request).await?)
        })
    }
}
