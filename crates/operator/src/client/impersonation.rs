//! Clients that act as service accounts.
//!
//! The API server decides by the rights of the account: the operator needs the right to impersonate it,
//! and none of its own to what the account does.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use http::header::HeaderName;
use http::{HeaderValue, Request};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::client::Body;
use kube::{Api, Client, Config};

const USER: HeaderName = HeaderName::from_static("impersonate-user");

/// How long an account that was found is taken to exist. The API server does not check it: the rights of
/// an account that is deleted stay those of its name.
const FOUND_FOR: Duration = Duration::from_mins(1);
/// More accounts than these are not remembered.
const MOST_REMEMBERED: usize = 4096;

/// Why there is no client for a service account.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServiceAccountError {
    /// There is no such account.
    #[error(
        "service account {name:?} does not exist in namespace {namespace:?}: requests of the release are \
         made as this account; create it, with a role that allows what the chart needs"
    )]
    NotFound { namespace: String, name: String },
    /// The operator is somebody else's account already. A request can name one only.
    #[error(
        "cannot act as service account {name:?} in namespace {namespace:?}: the operator's kubeconfig \
         impersonates a user itself (`as`)"
    )]
    Impersonating { namespace: String, name: String },
    /// The API server did not say.
    #[error("cannot get service account {name:?} in namespace {namespace:?}: {source}")]
    Request { namespace: String, name: String, source: kube::Error },
}

/// Makes clients that act as service accounts; clones share what is known.
#[derive(Clone)]
pub(crate) struct Impersonation {
    own: Client,
    /// Whether the requests of `own` impersonate a user already.
    is_impersonating: bool,
    /// When an account was found.
    found: Arc<Mutex<HashMap<(String, String), Instant>>>,
}

impl Impersonation {
    /// All requests go through `own`, with its fence, limits and connections.
    pub fn new(own: Client, config: &Config) -> Self {
        let is_impersonating = config.auth_info.impersonate.is_some();
        Self { own, is_impersonating, found: Arc::default() }
    }

    /// A client that acts as a service account, whether it exists or not.
    pub fn client(&self, namespace: &str, name: &str) -> Client {
        let user = HeaderValue::try_from(format!("system:serviceaccount:{namespace}:{name}"));
        // No account has such a name. The requests must not be made with the rights of the operator.
        let user = user.unwrap_or(HeaderValue::from_static("system:anonymous"));
        let own = self.own.clone();
        let service = tower::service_fn(move |mut request: Request<Body>| {
            request.headers_mut().insert(USER, user.clone());
            let own = own.clone();
            async move { own.send(request).await }
        });
        Client::new(service, namespace)
    }

    /// Checks that a service account exists: one GET, unless it was found within the last minute.
    ///
    /// # Errors
    /// [`ServiceAccountError`].
    pub async fn check(&self, namespace: &str, name: &str) -> Result<(), ServiceAccountError> {
        let key = (namespace.to_owned(), name.to_owned());
        if self.found().get(&key).is_some_and(|found| found.elapsed() < FOUND_FOR) {
            return Ok(());
        }
        let accounts: Api<ServiceAccount> = Api::namespaced(self.own.clone(), namespace);
        let (namespace, name) = key.clone();
        if self.is_impersonating {
            return Err(ServiceAccountError::Impersonating { namespace, name });
        }
        match accounts.get_metadata_opt(&name).await {
            Ok(Some(account)) if account.metadata.deletion_timestamp.is_none() => {
                let mut found = self.found();
                if found.len() >= MOST_REMEMBERED {
                    found.retain(|_, found| found.elapsed() < FOUND_FOR);
                }
                if found.len() < MOST_REMEMBERED {
                    found.insert(key, Instant::now());
                }
                Ok(())
            }
            Ok(_) => Err(ServiceAccountError::NotFound { namespace, name }),
            Err(source) => Err(ServiceAccountError::Request { namespace, name, source }),
        }
    }

    fn found(&self) -> MutexGuard<'_, HashMap<(String, String), Instant>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
