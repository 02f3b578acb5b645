//! What every request passes first: the fence, the optional rate limit, the timeout for the response, and the
//! count of responses.

use std::cell::Cell;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use catamaran_cluster::timeouts::Timeouts;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::header::RETRY_AFTER;
use http::{Request, Response};
use kube::Config;
use kube::client::Body;
use tokio::time::Instant;
use tower::{BoxError, Layer, Service};
use tower_http::timeout::TimeoutBody;

use super::fenced::is_write;
use crate::leader_election::Fence;
use crate::metrics::Metrics;

/// A rate limit: requests per second, and a burst.
#[derive(Debug)]
pub(crate) struct RateLimit {
    every: Duration,
    burst: u32,
    /// When the next request is due at a steady rate.
    next: Mutex<Option<Instant>>,
}

impl RateLimit {
    /// `None` if `per_second` is no limit (zero or less).
    pub fn new(per_second: f64, burst: u32) -> Option<Self> {
        let every = Duration::try_from_secs_f64(1.0 / per_second).ok()?;
        (per_second > 0.0).then(|| Self { every, burst: burst.max(1), next: Mutex::default() })
    }

    /// Whether a request may be made now; counts it if so.
    pub fn try_take(&self, now: Instant) -> bool {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let due = self.due(*next, now);
        let is_due = due <= now;
        if is_due {
            *next = Some(due + self.every);
        }
        is_due
    }

    /// When a request may be made; counts it.
    fn reserve(&self, now: Instant) -> Instant {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let due = self.due(*next, now);
        *next = Some(due + self.every);
        due.max(now)
    }

    /// When the next request is due at a steady rate, with the burst after a pause.
    fn due(&self, next: Option<Instant>, now: Instant) -> Instant {
        let credit = self.every.saturating_mul(self.burst - 1);
        let full = now.checked_sub(credit).unwrap_or(now);
        next.map_or(full, |next| next.max(full))
    }
}

tokio::task_local! {
    /// The longest time that the API server has asked the current task to wait.
    static ADVICE: Cell<Duration>;
}

/// Runs a future, and returns for how long the API server asked it to wait (`Retry-After`); zero if it did
/// not. A retry must not come sooner.
pub(crate) async fn advised<T>(work: impl Future<Output = T>) -> (T, Duration) {
    let heard = async {
        let done = work.await;
        (done, ADVICE.with(Cell::get))
    };
    ADVICE.scope(Cell::default(), heard).await
}

fn heed<B>(answer: &Response<B>) {
    let seconds =
        answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
    if let Some(seconds) = seconds.filter(|_| !answer.status().is_success()) {
        // Tasks without a queue have a rate of their own.
        let _ = ADVICE.try_with(|wait| wait.set(wait.get().max(Duration::from_secs(seconds))));
    }
}

/// Creates a [`RequestService`].
#[derive(Clone)]
pub(super) struct GateLayer {
    fence: Fence,
    limit: Option<Arc<RateLimit>>,
    metrics: Arc<Metrics>,
    host: Arc<str>,
    timeouts: Timeouts,
}

impl GateLayer {
    pub fn new(
        fence: &Fence,
        limit: Option<Arc<RateLimit>>,
        metrics: &Arc<Metrics>,
        config: &Config,
        timeouts: Timeouts,
    ) -> Self {
        let host = config.cluster_url.authority().map_or("", |authority| authority.as_str());
        Self { fence: fence.clone(), limit, metrics: metrics.clone(), host: host.into(), timeouts }
    }
}

impl<S> Layer<S> for GateLayer {
    type Service = RequestService<S>;

    fn layer(&self, inner: S) -> RequestService<S> {
        RequestService { inner, gate: self.clone() }
    }
}

/// A client behind these checks.
#[derive(Clone)]
pub(super) struct RequestService<S> {
    inner: S,
    gate: GateLayer,
}

impl<S, B> Service<Request<Body>> for RequestService<S>
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send,
    B: 'static,
{
    type Response = Response<TimeoutBody<B>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<TimeoutBody<B>>, BoxError>>;

    fn poll_ready(&mut self, ctx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(ctx).map_err(Into::into)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        // The clone takes over the readiness that was polled.
        let waiting = self.inner.clone();
        let inner = std::mem::replace(&mut self.inner, waiting);
        self.gate.clone().pass(inner, request).boxed()
    }
}

impl GateLayer {
    async fn pass<S, B>(
        self,
        mut inner: S,
        request: Request<Body>,
    ) -> Result<Response<TimeoutBody<B>>, BoxError>
    where
        S: Service<Request<Body>, Response = Response<B>>,
        S::Error: Into<BoxError>,
    {
        if let Some(limit) = &self.limit {
            tokio::time::sleep_until(limit.reserve(Instant::now())).await;
        }
        let method = request.method().clone();
        if is_write(&method) {
            self.fence.check()?;
        }
        let Timeouts { head, .. } = self.timeouts;
        let silence = self.timeouts.silence(request.uri().query());
        let answer = match tokio::time::timeout(head, inner.call(request)).await {
            Ok(answer) => answer.map_err(Into::into),
            Err(_) => Err(format!("no answer within {head:?}").into()),
        };
        if let Ok(answer) = &answer {
            heed(answer);
        }
        let code = answer.as_ref().ok().map(|answer| answer.status().as_u16());
        self.metrics.request(&method, &self.host, code);
        answer.map(|answer| answer.map(|body| TimeoutBody::new(silence, body)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_is_asked_to_wait_hears_of_the_longest_time_of_all_answers() {
        let answer = |code: u16, seconds: &'static str| {
            Response::builder().status(code).header(RETRY_AFTER, seconds).body(()).unwrap()
        };
        let work = async {
            for answer in
                [answer(429, "2"), answer(503, "7"), answer(429, "soon"), answer(200, "9")]
            {
                heed(&answer);
            }
        };
        assert_eq!(advised(work).await, ((), Duration::from_secs(7)));
        heed(&answer(429, "1")); // nobody listens
    }

    #[tokio::test(start_paused = true)]
    async fn a_cap_lets_a_burst_pass_and_then_keeps_the_pace() {
        let limit = RateLimit::new(10.0, 3).unwrap();
        let start = Instant::now();
        let due = |now| (limit.reserve(now) - start).as_millis();
        assert_eq!(
            [due(start), due(start), due(start), due(start), due(start)],
            [0, 0, 0, 100, 200]
        );
        let later = start + Duration::from_mins(1);
        assert_eq!(
            [due(later), due(later), due(later), due(later)],
            [60_000, 60_000, 60_000, 60_100]
        );
        assert!(RateLimit::new(0.0, 3).is_none());
    }
}
