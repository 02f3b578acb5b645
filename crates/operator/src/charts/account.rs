//! The service account for the requests of a release.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use catamaran_cluster::apply::Applier;
use catamaran_cluster::conditions::reasons;
use catamaran_release::Driver;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;

use super::ChartController;
use super::reconcile::Interruption;
use super::status::FailureCondition;
use crate::client::Impersonation;

/// How many namespaces have clients of their own at a time.
const MOST_CLIENTS: usize = 256;

/// The clients for the requests of a release.
pub(super) struct Access {
    /// Reads and writes the release.
    pub driver: Driver,
    /// Reads for lookups and diagnoses.
    pub reader: Applier,
}

/// Creates the clients for the requests of releases.
pub(super) struct Requester {
    /// With the rights of the operator.
    own: Arc<Access>,
    account: Option<Account>,
}

/// A service account of this name in the namespace of each release.
struct Account {
    name: String,
    impersonation: Impersonation,
    by_namespace: Mutex<HashMap<String, Arc<Access>>>,
}

impl Requester {
    /// Uses the rights of the operator, or impersonates a service account of this name in the namespace of
    /// each release.
    pub fn new(own: Access, account: Option<&str>, impersonation: &Impersonation) -> Self {
        let account = account.map(|name| Account {
            name: name.to_owned(),
            impersonation: impersonation.clone(),
            by_namespace: Mutex::default(),
        });
        Self { own: Arc::new(own), account }
    }

    /// The clients with the operator's own rights.
    pub fn own(&self) -> &Access {
        &self.own
    }

    /// Whether requests impersonate a service account.
    pub fn is_impersonating(&self) -> bool {
        self.account.is_some()
    }

    /// The clients for the requests of a release in this namespace.
    pub fn of(&self, namespace: &str) -> Arc<Access> {
        let Some(account) = &self.account else { return self.own.clone() };
        let mut known = account.by_namespace.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(access) = known.get(namespace) {
            return access.clone();
        }
        let client = account.impersonation.client(namespace, &account.name);
        let access = Arc::new(Access {
            driver: self.own.driver.clone().with_client(client.clone()),
            reader: self.own.reader.clone().with_client(client),
        });
        if known.len() >= MOST_CLIENTS {
            known.clear();
        }
        known.insert(namespace.to_owned(), access.clone());
        access
    }
}

impl ChartController {
    /// Fails if the service account for releases in this namespace does not exist.
    pub(super) async fn check_account(&self, namespace: &str) -> Result<(), Interruption> {
        let Some(account) = &self.requester.account else { return Ok(()) };
        account.impersonation.check(namespace, &account.name).await.map_err(|error| {
            Interruption::Failed {
                failure: FailureCondition::Irreconcilable(reasons::ERROR_GETTING_CLIENT),
                message: error.to_string(),
                transient: true,
            }
        })
    }

    /// Whether requests impersonate a service account, and the namespace is being deleted. The account and
    /// its rights may not exist any more, but all objects of the namespace are deleted anyway.
    pub(super) async fn goes_with_namespace(&self, namespace: &str) -> bool {
        if !self.requester.is_impersonating() {
            return false;
        }
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let found = namespaces.get_metadata_opt(namespace).await;
        // Without the right to read it, nothing is known.
        found.is_ok_and(|found| {
            found.is_none_or(|found| found.metadata.deletion_timestamp.is_some())
        })
    }
}
