//! The current context of kubectl, or the pod that this process runs in.

use std::{env, fs};

use kube::config::Kubeconfig;

use crate::charts::flags::ClusterArgs;

/// Where a pod finds the namespace of its service account.
const OF_POD: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// The context's namespace, or the pod's own where there is no kubeconfig: `default` if none is named.
pub(crate) fn namespace(args: &ClusterArgs) -> String {
    let named = of_context(args).or_else(|| of_pod(args)).filter(|name| !name.is_empty());
    named.unwrap_or_else(|| "default".to_owned())
}

/// Whether this process runs in a pod: then its service account serves where no kubeconfig is found.
pub(crate) fn is_in_pod() -> bool {
    env::var_os("KUBERNETES_SERVICE_HOST").is_some_and(|host| !host.is_empty())
}

fn of_pod(args: &ClusterArgs) -> Option<String> {
    let alone = args.kubeconfig().is_none() && is_in_pod() && Kubeconfig::read().is_err();
    alone.then(|| fs::read_to_string(OF_POD).ok())?.map(|name| name.trim().to_owned())
}

fn of_context(args: &ClusterArgs) -> Option<String> {
    let config = match args.kubeconfig() {
        Some(path) => Kubeconfig::read_from(path).ok()?,
        None => Kubeconfig::read().ok()?,
    };
    let name = args.kube_context.clone().filter(|name| !name.is_empty());
    let name = name.or(config.current_context)?;
    config.contexts.into_iter().find(|context| context.name == name)?.context?.namespace
}
