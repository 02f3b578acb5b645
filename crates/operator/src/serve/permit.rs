//! Who may read the metrics: whoever the API server knows by their token and lets `get` the path.
//!
//! Anybody who reaches the port can send tokens. So the API server is asked about one token once at a
//! time, however many requests bear it, and about tokens that it has never allowed at a bounded rate.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::http::StatusCode;
use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::{Api, Client};
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use crate::client::RateLimit;

/// How long an answer holds.
const ALLOWED: Duration = Duration::from_mins(1);
const REFUSED: Duration = Duration::from_secs(10);
/// How long a token that was allowed is reviewed again outside of the rate: a scraper is not kept out by
/// clients that send random tokens.
const TRUSTED: Duration = Duration::from_hours(1);
/// How many tokens are remembered at most: of those that were allowed, and of the others.
const TOKENS: usize = 256;
/// How long the API server may take.
const ANSWER: Duration = Duration::from_secs(10);
/// How many reviews of tokens that were never allowed are made a second, and at once after a pause.
const REVIEWS_PER_SECOND: f64 = 5.0;
const REVIEWS_AT_ONCE: u32 = 10;
/// The longest token that is reviewed, in bytes.
const LONGEST_TOKEN: usize = 8 * 1024;

/// A token is remembered by its digest alone.
type TokenDigest = [u8; 32];
/// A review that is in progress, for all requests that bear the token.
type Review = Shared<BoxFuture<'static, StatusCode>>;

/// Asks the API server, and remembers the answers for a while. A clone shares them.
#[derive(Clone)]
pub(super) struct Permits {
    client: Client,
    state: Arc<Mutex<State>>,
    rate: Option<Arc<RateLimit>>,
}

#[derive(Default)]
struct State {
    allowed: Answers,
    refused: Answers,
    reviews: HashMap<TokenDigest, Review>,
}

/// Answers by token, with the time of each.
#[derive(Default)]
struct Answers(HashMap<TokenDigest, (StatusCode, Instant)>);

impl Answers {
    /// The answer, if it is younger than `age`.
    fn within(&self, token: &TokenDigest, age: Duration) -> Option<StatusCode> {
        self.0.get(token).filter(|(_, at)| at.elapsed() < age).map(|(answer, _)| *answer)
    }

    /// Remembers an answer; of more than [`TOKENS`] the oldest is forgotten.
    fn put(&mut self, token: TokenDigest, answer: StatusCode) {
        self.0.insert(token, (answer, Instant::now()));
        if self.0.len() > TOKENS {
            let oldest = self.0.iter().min_by_key(|(_, (_, at))| *at).map(|(token, _)| *token);
            oldest.and_then(|oldest| self.0.remove(&oldest));
        }
    }
}

impl Permits {
    pub fn new(client: Client) -> Self {
        let rate = RateLimit::new(REVIEWS_PER_SECOND, REVIEWS_AT_ONCE).map(Arc::new);
        Self { client, state: Arc::default(), rate }
    }

    /// OK, or what to answer instead: 401 without a token that the API server knows, 403 without the
    /// right, 429 for a new token while too many are reviewed, 503 where nobody can be asked.
    pub async fn ask(&self, authorization: Option<&str>, path: &str) -> StatusCode {
        let token = authorization.and_then(|value| {
            let (scheme, token) = value.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
        });
        let usable = |token: &&str| !token.is_empty() && token.len() <= LONGEST_TOKEN;
        let Some(token) = token.filter(usable) else {
            return StatusCode::UNAUTHORIZED;
        };
        match self.known_or_review(token, path) {
            Ok(known) => known,
            Err(review) => review.await,
        }
    }

    /// What is known of a token, or the review that will tell.
    fn known_or_review(&self, token: &str, path: &str) -> Result<StatusCode, Review> {
        let digest: TokenDigest = Sha256::digest(format!("{path} {token}")).into();
        let mut state = self.state();
        let known = state.allowed.within(&digest, ALLOWED);
        if let Some(known) = known.or_else(|| state.refused.within(&digest, REFUSED)) {
            return Ok(known);
        }
        if let Some(review) = state.reviews.get(&digest) {
            return Err(review.clone());
        }
        let is_trusted = state.allowed.within(&digest, TRUSTED).is_some();
        let is_in_rate = || self.rate.as_ref().is_none_or(|rate| rate.try_take(Instant::now()));
        if !is_trusted && !is_in_rate() {
            return Ok(StatusCode::TOO_MANY_REQUESTS);
        }
        let (permits, token, path) = (self.clone(), token.to_owned(), path.to_owned());
        let review = async move {
            let answer = permits.answer(&token, &path).await;
            permits.conclude(digest, answer);
            answer
        };
        // In a task: a client that goes away leaves no review behind that nobody drives to its end.
        let review = tokio::spawn(review);
        let review = review.map(|answer| answer.unwrap_or(StatusCode::SERVICE_UNAVAILABLE));
        let review = review.boxed().shared();
        state.reviews.insert(digest, review.clone());
        Err(review)
    }

    async fn answer(&self, token: &str, path: &str) -> StatusCode {
        match tokio::time::timeout(ANSWER, self.review(token, path)).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => {
                tracing::warn!(%error, "cannot ask who may read metrics: it takes the right to create tokenreviews and subjectaccessreviews");
                StatusCode::SERVICE_UNAVAILABLE
            }
            Err(_) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    fn conclude(&self, digest: TokenDigest, answer: StatusCode) {
        let mut state = self.state();
        state.reviews.remove(&digest);
        match answer {
            StatusCode::OK => state.allowed.put(digest, answer),
            // Nobody has answered: the next request asks again.
            StatusCode::SERVICE_UNAVAILABLE => {}
            refused => {
                state.allowed.0.remove(&digest);
                state.refused.put(digest, refused);
            }
        }
    }

    async fn review(&self, token: &str, path: &str) -> Result<StatusCode, kube::Error> {
        let spec = TokenReviewSpec { token: token.to_owned(), audiences: None };
        let review = TokenReview { spec, ..TokenReview::default() };
        let api: Api<TokenReview> = Api::all(self.client.clone());
        let status = api.create(&PostParams::default(), &review).await?.status.unwrap_or_default();
        let Some(user) = status.user.filter(|_| status.authenticated == Some(true)) else {
            return Ok(StatusCode::UNAUTHORIZED);
        };
        let api: Api<SubjectAccessReview> = Api::all(self.client.clone());
        let review = SubjectAccessReview { spec: may_get(user, path), ..Default::default() };
        let status = api.create(&PostParams::default(), &review).await?.status;
        let allowed = status.is_some_and(|status| status.allowed && status.denied != Some(true));
        Ok(if allowed { StatusCode::OK } else { StatusCode::FORBIDDEN })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn may_get(user: UserInfo, path: &str) -> SubjectAccessReviewSpec {
    SubjectAccessReviewSpec {
        user: user.username,
        groups: user.groups,
        uid: user.uid,
        extra: user.extra,
        non_resource_attributes: Some(NonResourceAttributes {
            path: Some(path.to_owned()),
            verb: Some("get".to_owned()),
        }),
        resource_attributes: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::json;
    use std::convert::Infallible;
    use std::sync::atomic::{AtomicUsize, Ordering};

    const SECOND: Duration = Duration::from_secs(1);
    const BEFORE_IT_ENDS: Duration = Duration::from_secs(59);

    /// Permits that ask an API server which knows the token `good` alone, and the count of its reviews.
    fn permits() -> (Permits, Arc<AtomicUsize>) {
        let reviews = Arc::new(AtomicUsize::new(0));
        let counted = reviews.clone();
        let server = tower::service_fn(move |request: Request<Body>| {
            let counted = counted.clone();
            async move {
                let path = request.uri().path().to_owned();
                let body = request.into_body().collect_bytes().await.unwrap();
                let answer = if path.ends_with("tokenreviews") {
                    counted.fetch_add(1, Ordering::Relaxed);
                    let asked: TokenReview = serde_json::from_slice(&body).unwrap();
                    let known = asked.spec.token == "good";
                    json!({ "spec": asked.spec,
                        "status": { "authenticated": known, "user": { "username": "a" } } })
                } else {
                    json!({ "spec": {}, "status": { "allowed": true } })
                };
                tokio::time::sleep(SECOND / 10).await;
                Ok::<_, Infallible>(Response::new(Body::from(answer.to_string().into_bytes())))
            }
        });
        (Permits::new(Client::new(server, "default")), reviews)
    }

    async fn ask(permits: &Permits, token: &str) -> u16 {
        permits.ask(Some(&format!("Bearer {token}")), "/metrics").await.as_u16()
    }

    #[tokio::test(start_paused = true)]
    async fn requests_with_one_token_share_one_review_and_its_answer() {
        let (permits, reviews) = permits();
        let all = futures::future::join_all((0..50).map(|_| ask(&permits, "good"))).await;
        assert_eq!((all, reviews.load(Ordering::Relaxed)), (vec![200; 50], 1));
        tokio::time::advance(BEFORE_IT_ENDS).await;
        assert_eq!((ask(&permits, "good").await, reviews.load(Ordering::Relaxed)), (200, 1));
        tokio::time::advance(SECOND).await;
        assert_eq!((ask(&permits, "good").await, reviews.load(Ordering::Relaxed)), (200, 2));
    }

    #[tokio::test(start_paused = true)]
    async fn random_tokens_are_reviewed_at_a_bounded_rate_and_keep_no_scraper_out() {
        let (permits, reviews) = permits();
        assert_eq!(ask(&permits, "good").await, 200);
        let begun = Instant::now();
        for at in 0..3000 {
            let refused = ask(&permits, &format!("random-{at}")).await;
            assert!([401, 429].contains(&refused), "{refused}");
            tokio::time::advance(SECOND / 100).await;
        }
        let most = begun.elapsed().as_secs_f64() * REVIEWS_PER_SECOND + f64::from(REVIEWS_AT_ONCE);
        let made = reviews.load(Ordering::Relaxed) - 1;
        assert!(f64::from(u32::try_from(made).unwrap()) <= most + 1.0, "{made} of {most}");
        tokio::time::advance(ALLOWED).await;
        assert_eq!(ask(&permits, "good").await, 200);
        let state = permits.state();
        assert!(state.allowed.0.len() + state.refused.0.len() <= 2 * TOKENS);
        assert!(state.reviews.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_that_is_too_long_is_refused_without_a_review() {
        let (permits, reviews) = permits();
        assert_eq!(ask(&permits, &"x".repeat(LONGEST_TOKEN + 1)).await, 401);
        assert_eq!(reviews.load(Ordering::Relaxed), 0);
    }
}
