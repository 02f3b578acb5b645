//! The current context of kubectl.

use kube::config::Kubeconfig;

use crate::charts::flags::ClusterArgs;

/// Its namespace: `default` if it names none, or if there is no context.
pub(crate) fn namespace(args: &ClusterArgs) -> String {
    of_context(args).filter(|name| !name.is_empty()).unwrap_or_else(|| "default".to_owned())
}

fn of_context(args: &ClusterArgs) -> Option<String> {
    let config = match &args.kubeconfig {
        Some(path) => Kubeconfig::read_from(path).ok()?,
        None => Kubeconfig::read().ok()?,
    };
    let name = args.kube_context.clone().filter(|name| !name.is_empty());
    let name = name.or(config.current_context)?;
    config.contexts.into_iter().find(|context| context.name == name)?.context?.namespace
}
