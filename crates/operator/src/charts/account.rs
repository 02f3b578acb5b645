//! The service account as which the requests of a release are made.

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

/// How many namespaces have clients of their own at once.
const MOST_CLIENTS: usize = 256;

/// What the requests of a release are made with.
pub(super) struct Access {
    /// Reads and writes the release.
    pub driver: Driver,
    /// Reads what the chart looks up, and why objects are not ready.
    pub reader: Applier,
}

/// Who makes the requests of releases.
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
    /// Requests are made by the operator, or as a service account of this name in the namespace of each
    /// release.
    pub fn new(own: Access, account: Option<&str>, impersonation: &Impersonation) -> Self {
        let account = account.map(|name| Account {
            name: name.to_owned(),
            impersonation: impersonation.clone(),
            by_namespace: Mutex::default(),
        });
        Self { own: Arc::new(own), account }
    }

    /// What the operator's own requests are made with.
    pub fn own(&self) -> &Access {
        &self.own
    }

    /// Whether requests are made as a service account.
    pub fn is_impersonating(&self) -> bool {
        self.account.is_some()
    }

    /// What the requests of a release in this namespace are made with.
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
    /// Whether the account exists as which the requests of a release in this namespace are made.
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

    /// Whether a release is made as a service account, and its namespace is on its way out. The account
    /// and its rights may be gone by then, while all objects of the namespace go with it.
    pub(super) async fn goes_with_namespace(&self, namespace: &str) -> bool {
        if !self.requester.is_impersonating() {
            return false;
        }
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let found = namespaces.get_metadata_opt(namespace).await;
        // Who may not read it does not know.
        found.is_ok_and(|found| {
            found.is_none_or(|found| found.metadata.deletion_timestamp.is_some())
        })
    }
}
