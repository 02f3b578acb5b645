//! What a rendering asks of a cluster: what it can do, and what is there.

use std::collections::HashSet;
use std::net::ToSocketAddrs as _;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Result, anyhow, bail};
use catamaran_chart::{
    Capabilities, CompiledChart, KubeVersion, LookupKey, RenderError, RenderInput, Rendered,
};
use catamaran_cluster::apply::Applier;
use catamaran_cluster::mapper::{Mapper, MapperError};
use catamaran_cluster::timeouts::Timeouts;
use catamaran_operator::lookup;
use catamaran_release::Driver;
use kube::client::ClientBuilder;
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig};
use kube::core::GroupVersionKind;
use kube::{Client, Config};
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};
use tower::util::MapResponseLayer;

use super::flags::ClusterArgs;
use crate::context;

/// A chart asks for what it looks up one after the other; more rounds than this are a loop.
const LOOKUP_ROUNDS: usize = 32;

/// The cluster that the flags name.
pub(crate) struct Cluster {
    /// What the client's connections live on.
    runtime: Runtime,
    client: Client,
    mapper: Mapper,
    reader: Applier,
}

impl Cluster {
    pub(crate) fn connect(args: &ClusterArgs) -> Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let client = runtime.block_on(client(args))?;
        let mapper = Mapper::new(client.clone());
        let reader = Applier::new(client.clone(), "helm");
        Ok(Self { runtime, client, mapper, reader })
    }

    /// What reads and writes releases there.
    pub(crate) fn driver(&self) -> Driver {
        Driver::new(self.client.clone(), self.mapper.clone())
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    pub(crate) fn mapper(&self) -> &Mapper {
        &self.mapper
    }

    /// Waits for an answer of the cluster.
    pub(crate) fn wait<T>(&self, answer: impl Future<Output = T>) -> T {
        self.runtime.block_on(answer)
    }

    /// What the cluster can do.
    pub(crate) fn capabilities(&self) -> Result<Capabilities> {
        let server = self.wait(self.mapper.capabilities()).map_err(|error| unreachable(&error))?;
        let version = KubeVersion::of_cluster(&server.git_version, &server.major, &server.minor);
        Ok(Capabilities::of_cluster(version, server.api_versions.iter().cloned()))
    }

    /// Whether the cluster serves the kinds of all manifests.
    pub(crate) fn check_kinds(&self, rendered: &Rendered) -> Result<()> {
        for manifest in rendered.manifests.iter().filter(|manifest| !manifest.kind.is_empty()) {
            let (group, version) =
                manifest.api_version.split_once('/').unwrap_or(("", manifest.api_version.as_str()));
            let gvk = GroupVersionKind::gvk(group, version, &manifest.kind);
            match self.wait(self.mapper.resolve(&gvk)) {
                Ok(_) => {}
                Err(error @ MapperError::NoMatch { .. }) => {
                    let namespace = namespace_of(manifest.object().ok().as_ref());
                    bail!(
                        "unable to build kubernetes objects from release manifest: resource mapping not found for name: {:?} namespace: {namespace:?} from \"\": {error}\nensure CRDs are installed first",
                        manifest.name
                    )
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn fetch(&self, key: &LookupKey) -> Result<Value> {
        let reader = lookup::Reader { applier: &self.reader, mapper: &self.mapper, within: None };
        Ok(self.wait(lookup::fetch(&reader, key))?)
    }
}

fn namespace_of(object: Option<&Value>) -> String {
    let namespace = object.and_then(|object| object.pointer("/metadata/namespace"));
    namespace.and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Renders, and fetches what the chart looks up. The outer error is that of fetching.
pub(crate) fn render(
    chart: &CompiledChart,
    input: &RenderInput<'_>,
    cluster: Option<&Cluster>,
) -> Result<Result<Rendered, RenderError>> {
    let mut lookups = input.lookups.clone();
    for _ in 0..LOOKUP_ROUNDS {
        match chart.render(&RenderInput { lookups: &lookups, ..*input }) {
            Err(RenderError::Needs(keys)) => {
                for key in keys {
                    let found = match (key.as_host(), cluster) {
                        (Some(host), _) => address(host).into(),
                        (None, Some(cluster)) => cluster.fetch(&key)?,
                        (None, None) => Value::Null,
                    };
                    lookups.insert(key, found);
                }
            }
            rendered => return Ok(rendered),
        }
    }
    bail!("the chart still looks up new objects after {LOOKUP_ROUNDS} rounds")
}

/// One of a host's addresses; empty if it has none.
fn address(host: &str) -> String {
    let found = (host, 0).to_socket_addrs().ok().and_then(|mut found| found.next());
    found.map_or_else(String::new, |address| address.ip().to_string())
}

/// That nobody answers, and why.
#[derive(Debug, thiserror::Error)]
#[error("kubernetes cluster unreachable: {0}")]
pub(crate) struct Unreachable(pub String);

fn unreachable(error: &dyn std::error::Error) -> anyhow::Error {
    Unreachable(error.to_string()).into()
}

/// An error of a command that looks first whether there is a cluster.
pub(crate) fn checked(error: anyhow::Error) -> anyhow::Error {
    match error.downcast::<Unreachable>() {
        Ok(error) => anyhow!("cluster reachability check failed: {error}"),
        Err(error) => error,
    }
}

async fn client(args: &ClusterArgs) -> Result<Client> {
    let mut config = match kubeconfig(args)? {
        Some(kubeconfig) => {
            let options = KubeConfigOptions {
                context: args.kube_context.clone().filter(|name| !name.is_empty()),
                ..KubeConfigOptions::default()
            };
            let kubeconfig = with_flags(kubeconfig, args);
            let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
            config.map_err(|error| unreachable(&error))?
        }
        None => in_pod(args)?,
    };
    if let Some(server) = &args.kube_apiserver {
        config.cluster_url = server.parse().map_err(|error| unreachable(&error))?;
    }
    // What a request was to do is tried again by who knows whether it was done.
    config.default_retry = false;
    Timeouts::default().configure(&mut config);
    if args.kube_insecure_skip_tls_verify {
        config.accept_invalid_certs = true;
    }
    if let Some(name) = &args.kube_tls_server_name {
        config.tls_server_name = Some(name.clone());
    }
    let told = Arc::new(Mutex::default());
    let tell = MapResponseLayer::new(move |response: http::Response<_>| {
        warn(response.headers(), &told);
        response
    });
    let builder = ClientBuilder::try_from(config).map_err(|error| unreachable(&error))?;
    Ok(builder.with_layer(&tell).build())
}

/// Says what the API server warns of, such as a field that it does not know, once.
fn warn(headers: &http::HeaderMap, told: &Mutex<HashSet<String>>) {
    for header in headers.get_all(http::header::WARNING) {
        let Some(text) = warning(&String::from_utf8_lossy(header.as_bytes())) else { continue };
        let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.insert(text.clone()) {
            eprintln!("warning: {text}");
        }
    }
}

/// The text of a header such as `299 - "unknown field \"x\""`.
fn warning(header: &str) -> Option<String> {
    let quoted = header.splitn(3, ' ').nth(2)?.strip_prefix('"')?.strip_suffix('"')?;
    let mut escaped = false;
    let kept = quoted.chars().filter(|c| {
        escaped = *c == '\\' && !escaped;
        !escaped && !c.is_control()
    });
    Some(kept.collect())
}

/// The kubeconfig that is meant; `None` where there is none and a pod's own account may do.
fn kubeconfig(args: &ClusterArgs) -> Result<Option<Kubeconfig>> {
    let read = match args.kubeconfig() {
        Some(path) => Kubeconfig::read_from(path),
        None => Kubeconfig::read(),
    };
    match read {
        Ok(kubeconfig) => Ok(Some(kubeconfig)),
        Err(_) if args.kubeconfig().is_none() && context::is_in_pod() => Ok(None),
        Err(error) => Err(unreachable(&error)),
    }
}

/// As the pod's service account.
fn in_pod(args: &ClusterArgs) -> Result<Config> {
    let mut config = Config::incluster().map_err(|error| unreachable(&error))?;
    if let Some(token) = &args.kube_token {
        config.auth_info = AuthInfo { token: Some(token.clone().into()), ..AuthInfo::default() };
    }
    if let Some(name) = &args.kube_as_user {
        config.auth_info.impersonate = Some(name.clone());
    }
    if !args.kube_as_group.is_empty() {
        config.auth_info.impersonate_groups = Some(args.kube_as_group.clone());
    }
    Ok(config)
}

/// What the flags say of users and clusters stands over what the kubeconfig says.
fn with_flags(mut kubeconfig: Kubeconfig, args: &ClusterArgs) -> Kubeconfig {
    for user in &mut kubeconfig.auth_infos {
        let info = user.auth_info.get_or_insert_with(AuthInfo::default);
        if let Some(token) = &args.kube_token {
            info.token = Some(token.clone().into());
        }
        if let Some(name) = &args.kube_as_user {
            info.impersonate = Some(name.clone());
        }
        if !args.kube_as_group.is_empty() {
            info.impersonate_groups = Some(args.kube_as_group.clone());
        }
    }
    for cluster in &mut kubeconfig.clusters {
        if let (Some(cluster), Some(file)) = (&mut cluster.cluster, args.kube_ca_file()) {
            cluster.certificate_authority = Some(file.display().to_string());
            cluster.certificate_authority_data = None;
        }
    }
    kubeconfig
}

#[cfg(test)]
mod tests {
    use super::warning;

    #[test]
    fn the_text_of_a_warning_is_read_out_of_its_header() {
        let told = |header: &str| warning(header).unwrap_or_default();
        assert_eq!(told(r#"299 - "unknown field \"spec.x\"""#), r#"unknown field "spec.x""#);
        assert_eq!(told(r#"299 - "a \\ b""#), r"a \ b");
        assert_eq!(told("299 - plain"), "");
        assert_eq!(told(""), "");
    }
}
