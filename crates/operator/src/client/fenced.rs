//! A request body that checks the fence again when it is sent.
//!
//! A token may be renewed, a connection opened, or a request queued between making and sending it, and a
//! process may be frozen meanwhile. A refused body ends the connection before the API server has the whole
//! request, so nothing is written.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Method, Request};
use http_body::{Body as HttpBody, Frame, SizeHint};
use kube::client::Body;
use tower::BoxError;

use crate::leader_election::Fence;

/// Whether a request may change something: anything but GET and the like.
pub(super) fn is_write(method: &Method) -> bool {
    !matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

/// A body that is sent only while the fence is open.
pub(super) struct FencedBody {
    body: Body,
    /// `None` for requests that change nothing.
    fence: Option<Fence>,
}

impl FencedBody {
    /// The request with such a body.
    pub fn wrap(request: Request<Body>, fence: &Fence) -> Request<Self> {
        let fence = is_write(request.method()).then(|| fence.clone());
        request.map(|body| Self { body, fence })
    }
}

impl HttpBody for FencedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        ctx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Some(Err(refused)) = self.fence.as_ref().map(Fence::check) {
            return Poll::Ready(Some(Err(refused.into())));
        }
        Pin::new(&mut self.body).poll_frame(ctx).map_err(Into::into)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Waker;

    fn sent(method: Method, fence: &Fence) -> bool {
        let request = Request::builder().method(method).body(Body::from(b"{}".to_vec())).unwrap();
        let mut body = FencedBody::wrap(request, fence).into_body();
        let polled = Pin::new(&mut body).poll_frame(&mut Context::from_waker(Waker::noop()));
        matches!(polled, Poll::Ready(Some(Ok(_))))
    }

    #[test]
    fn a_write_that_is_under_way_when_the_fence_closes_is_not_sent() {
        let fence = Fence::open();
        for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            assert!(sent(method, &fence));
        }
        fence.seal();
        for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            assert!(!sent(method.clone(), &fence), "{method}");
        }
        assert!(sent(Method::GET, &fence));
    }
}
