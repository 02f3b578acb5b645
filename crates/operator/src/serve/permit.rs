//! Who may read the metrics: whoever the API server knows by their token and lets `get` the path.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::{Api, Client};
use sha2::{Digest, Sha256};

/// How long an answer holds.
const ALLOWED: Duration = Duration::from_mins(1);
const REFUSED: Duration = Duration::from_secs(10);
/// How many tokens are remembered at most.
const TOKENS: usize = 256;
/// How long the API server may take.
const ANSWER: Duration = Duration::from_secs(10);

/// A token is remembered by its digest alone.
type TokenDigest = [u8; 32];

/// Asks the API server, and remembers for a while.
pub(super) struct Permits {
    client: Client,
    known: Mutex<HashMap<TokenDigest, (StatusCode, Instant)>>,
}

impl Permits {
    pub fn new(client: Client) -> Self {
        Self { client, known: Mutex::default() }
    }

    /// OK, or what to answer instead: 401 without a token that the API server knows, 403 without the
    /// right, 503 where nobody can be asked.
    pub async fn ask(&self, authorization: Option<&str>, path: &str) -> StatusCode {
        let token = authorization.and_then(|value| {
            let (scheme, token) = value.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
        });
        let Some(token) = token.filter(|token| !token.is_empty()) else {
            return StatusCode::UNAUTHORIZED;
        };
        let digest: TokenDigest = Sha256::digest(token).into();
        if let Some(known) = self.known(&digest) {
            return known;
        }
        let asked = tokio::time::timeout(ANSWER, self.review(token, path)).await;
        let answer = match asked {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => {
                tracing::warn!(%error, "cannot ask who may read metrics: it takes the right to create tokenreviews and subjectaccessreviews");
                return StatusCode::SERVICE_UNAVAILABLE;
            }
            Err(_) => return StatusCode::SERVICE_UNAVAILABLE,
        };
        self.remember(digest, answer);
        answer
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

    fn known(&self, digest: &TokenDigest) -> Option<StatusCode> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (answer, until) = known.get(digest)?;
        (Instant::now() < *until).then_some(*answer)
    }

    fn remember(&self, digest: TokenDigest, answer: StatusCode) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if known.len() >= TOKENS {
            known.retain(|_, (_, until)| *until > now);
        }
        if known.len() < TOKENS {
            let holds = if answer == StatusCode::OK { ALLOWED } else { REFUSED };
            known.insert(digest, (answer, now + holds));
        }
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
