//! A cluster that one may use, and all that it hands out.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::{Api, PostParams};
use serde_json::json;
use tokio::time::timeout;

use crate::access::{self, Access, Credential, file_name};
use crate::audit::AuditLog;
use crate::builder::Builder;
use crate::control_plane::MASTERS;
use crate::error::{Error, Result};
use crate::lease::Lease;
use crate::namespace::Namespace;
use crate::pki::Authority;
use crate::protocol::{Command, Info};
use crate::readiness;
use crate::real::{self, RealNode};
use crate::tools::{Tools, tools_in};

/// How long a token of a service account is good for, in seconds.
const TOKEN_SECONDS: i64 = 24 * 3600;

/// How long a thing may take that the control plane does within milliseconds.
const PROMPTLY: Duration = Duration::from_secs(30);

/// A lease on a running control plane.
///
/// Clones share the lease. When the last one is gone (dropped, unwound, or its process killed), a
/// cluster of one's own ends, and a shared one does without us.
#[derive(Clone)]
pub struct LocalCluster {
    inner: Arc<Inner>,
}

struct Inner {
    lease: Lease,
    info: Info,
    authority: Authority,
    kubeconfig: PathBuf,
    client: kube::Client,
}

impl LocalCluster {
    /// For a cluster of one's own; [`shared`](crate::shared) for a share in the checkout's.
    pub fn builder() -> Builder {
        Builder::new()
    }

    pub(crate) fn new(lease: Lease, info: Info) -> Result<Self> {
        let authority = Authority::load(&info.folder.join("pki"))?;
        let kubeconfig = info.folder.join("kubeconfig");
        let config = config(&info, &authority, "admin", &[MASTERS])?;
        let client = access::client(config, "localcluster-user")?;
        Ok(Self { inner: Arc::new(Inner { lease, info, authority, kubeconfig, client }) })
    }

    /// A client that may do everything. Belongs to the runtime that the cluster was asked for on.
    pub fn client(&self) -> kube::Client {
        self.inner.client.clone()
    }

    /// A client that may do everything and calls itself `user_agent`, to be found in the audit log.
    pub fn client_called(&self, user_agent: &str) -> Result<kube::Client> {
        access::client(self.config()?, user_agent)
    }

    /// Settings for a client that may do everything.
    pub fn config(&self) -> Result<kube::Config> {
        config(&self.inner.info, &self.inner.authority, "admin", &[MASTERS])
    }

    /// A kubeconfig of one who may do everything.
    pub fn kubeconfig(&self) -> &Path {
        &self.inner.kubeconfig
    }

    /// A client of `user`, a member of `groups` (at most two) and of `system:authenticated`. It has
    /// no rights but those that are bound to them.
    pub fn client_as(&self, user: &str, groups: &[&str]) -> Result<kube::Client> {
        access::client(self.config_as(user, groups)?, user)
    }

    /// Settings for a client as [`LocalCluster::client_as`] makes it.
    pub fn config_as(&self, user: &str, groups: &[&str]) -> Result<kube::Config> {
        config(&self.inner.info, &self.inner.authority, user, groups)
    }

    /// A kubeconfig of `user`, a member of `groups` (at most two).
    pub fn kubeconfig_for(&self, user: &str, groups: &[&str]) -> Result<PathBuf> {
        let credential = Credential::Certificate(self.inner.authority.client(user, groups)?);
        self.access(user, credential).write(file_name(&self.users(), user, groups))
    }

    /// A kubeconfig of a service account, which is created if it is not there, with a token of the
    /// kind that pods get.
    ///
    /// # Errors
    /// If the namespace is not there.
    pub async fn service_account(&self, namespace: &str, name: &str) -> Result<PathBuf> {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client(), namespace);
        let account = readiness::object(json!({"metadata": {"name": name}}))?;
        match accounts.create(&PostParams::default(), &account).await {
            Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
            result => result.map(drop),
        }
        .map_err(Error::api(format!("create service account {namespace}/{name}")))?;
        let request = TokenRequest {
            spec: Some(TokenRequestSpec {
                expiration_seconds: Some(TOKEN_SECONDS),
                ..TokenRequestSpec::default()
            }),
            ..TokenRequest::default()
        };
        let token = accounts
            .create_token_request(name, &PostParams::default(), &request)
            .await
            .map_err(Error::api(format!("get a token of service account {namespace}/{name}")))?
            .status
            .and_then(|status| status.token)
            .ok_or_else(|| Error::Invalid("a token request was answered without a token".into()))?;
        let user = format!("system:serviceaccount:{namespace}:{name}");
        self.access(&user, Credential::Token(token)).write(file_name(&self.users(), &user, &[]))
    }

    /// A new namespace whose name begins with `prefix` and is unique, ready for pods.
    ///
    /// It is deleted some time after the value is dropped.
    pub async fn namespace(&self, prefix: &str) -> Result<Namespace> {
        let name = Namespace::create(&self.client(), prefix).await?;
        let pods_can_run = readiness::service_account(&self.inner.client, &name);
        let waiting_for = format!("the default service account of namespace {name}");
        promptly(&waiting_for, pods_can_run).await??;
        Ok(Namespace::new(name, self.clone()))
    }

    /// The log of all requests, if the cluster was started with it.
    pub fn audit(&self) -> AuditLog {
        let path = self.inner.info.folder.join("audit.log");
        AuditLog::new(self.inner.info.audit.then_some(path))
    }

    /// The real node, if the cluster was started with one.
    pub fn real_node(&self) -> Option<&RealNode> {
        self.inner.info.real_node.as_ref()
    }

    /// Whether this machine can have a real node. It needs root and some of Debian's packages.
    ///
    /// # Errors
    /// With one sentence that names what is missing, for a test that says why it is skipped.
    pub fn real_node_available() -> Result<(), String> {
        real::check()
    }

    /// The tools that the cluster was started with, and their peers.
    pub fn tools(&self) -> Result<Tools> {
        tools_in(&self.inner.info.tools)
    }

    /// As `https://127.0.0.1:34567`.
    pub fn server(&self) -> &str {
        &self.inner.info.server
    }

    /// The API server's version, as `v1.36.3`.
    pub fn version(&self) -> &str {
        &self.inner.info.version
    }

    /// The folder in which the cluster lives, with the logs of all components in `logs`. It goes with
    /// the cluster.
    pub fn folder(&self) -> &Path {
        &self.inner.info.folder
    }

    /// The process id of the supervisor.
    pub fn supervisor(&self) -> u32 {
        self.inner.info.supervisor
    }

    /// Gives the lease back, and waits until a cluster of one's own is gone, to the last process and
    /// file. Dropping does the same without waiting.
    ///
    /// With clones about, nothing happens until they are gone, and nothing is waited for.
    pub async fn stop(self) {
        if let Some(inner) = Arc::into_inner(self.inner) {
            inner.lease.end().await;
        }
    }

    /// Waits until the cluster ends by itself, which it does only when it breaks or is told to.
    /// `None`: it was told to.
    ///
    /// With clones about, returns at once.
    pub async fn ended(&mut self) -> Option<Error> {
        Arc::get_mut(&mut self.inner)?.lease.ended().await
    }

    /// Kills the API server where it stands, and returns when nobody listens in its place. All else goes
    /// on, etcd with the data included. For a cluster of one's own.
    ///
    /// # Errors
    /// [`Error::Deadline`] where the cluster is shared: nothing happens to it.
    pub async fn kill_api_server(&self) -> Result<()> {
        self.inner.lease.say(&Command::KillApiServer);
        let address = self.server().trim_start_matches("https://").to_owned();
        let refused = readiness::until(async || {
            tokio::net::TcpStream::connect(&address).await.is_err().then_some(())
        });
        promptly("nobody to listen in the API server's place", refused).await
    }

    /// Starts the API server again after [`LocalCluster::kill_api_server`], at its old address, and
    /// returns when it is ready.
    ///
    /// # Errors
    /// [`Error::Deadline`] if it does not get ready.
    pub async fn start_api_server(&self) -> Result<()> {
        self.inner.lease.say(&Command::StartApiServer);
        // Its own patience with a server that is not there would be added to ours.
        let mut config = self.config()?;
        config.default_retry = false;
        let client = access::client(config, "localcluster-user")?;
        promptly("the API server to be ready again", readiness::api_server(&client)).await.map(drop)
    }

    pub(crate) fn delete_namespace(&self, name: &str) {
        self.inner.lease.say(&Command::DeleteNamespace(name.to_owned()));
    }

    fn users(&self) -> PathBuf {
        self.folder().join("users")
    }

    fn access<'a>(&'a self, user: &'a str, credential: Credential) -> Access<'a> {
        let (server, authority) = (self.server(), &self.inner.authority.certificate);
        Access { server, authority, user, credential }
    }
}

impl fmt::Debug for LocalCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalCluster")
            .field("server", &self.server())
            .field("folder", &self.folder())
            .finish_non_exhaustive()
    }
}

/// Waits for what happens soon, or never.
async fn promptly<T>(waiting_for: &str, wait: impl Future<Output = T>) -> Result<T> {
    let late = |_| Error::Deadline { waiting_for: waiting_for.to_owned(), after: PROMPTLY };
    timeout(PROMPTLY, wait).await.map_err(late)
}

fn config(info: &Info, authority: &Authority, user: &str, groups: &[&str]) -> Result<kube::Config> {
    let credential = Credential::Certificate(authority.client(user, groups)?);
    let (server, authority) = (info.server.as_str(), authority.certificate.as_str());
    Access { server, authority, user, credential }.config()
}
