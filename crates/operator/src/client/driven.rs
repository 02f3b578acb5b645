//! Requests that run on one runtime, whoever makes them.
//!
//! A connection belongs to the runtime that opened it. If a reconcile opened it, a watch or a Lease on the same
//! connection would stop while that reconcile computes.

use std::task::{Context, Poll};

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::runtime::Handle;
use tokio_util::task::AbortOnDropHandle;
use tower::{BoxError, Service};

/// A client with its requests and connections on one runtime.
#[derive(Clone)]
pub(super) struct Driven<S> {
    inner: S,
    runtime: Handle,
}

impl<S> Driven<S> {
    /// On the runtime of the caller.
    pub fn here(inner: S) -> Self {
        Self { inner, runtime: Handle::current() }
    }
}

impl<S, R> Service<R> for Driven<S>
where
    S: Service<R>,
    S::Future: Send + 'static,
    S::Response: Send + 'static,
    S::Error: Into<BoxError> + Send + 'static,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<S::Response, BoxError>>;

    fn poll_ready(&mut self, ctx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(ctx).map_err(Into::into)
    }

    fn call(&mut self, request: R) -> Self::Future {
        let sent = AbortOnDropHandle::new(self.runtime.spawn(self.inner.call(request)));
        async move { sent.await?.map_err(Into::into) }.boxed()
    }
}
