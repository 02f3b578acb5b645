//! The current context of kubectl.

use kube::config::Kubeconfig;

/// Its namespace: `default` if it names none, or if there is no context.
pub(crate) fn namespace() -> String {
    of_current_context().filter(|name| !name.is_empty()).unwrap_or_else(|| "default".to_owned())
}

fn of_current_context() -> Option<String> {
    let config = Kubeconfig::read().ok()?;
    let current = config.current_context?;
    config.contexts.into_iter().find(|context| context.name == current)?.context?.namespace
}
