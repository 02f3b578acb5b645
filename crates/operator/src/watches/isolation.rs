//! Whose rights the releases of an entry have, and where their objects may be.

use catamaran_chart::lint::is_subdomain;
use catamaran_release::Scope;

/// The longest name of a service account.
const LONGEST_NAME: usize = 253;

/// `scope` and `serviceAccountName`.
pub(super) fn isolation(
    scope: Option<&str>,
    account: Option<String>,
    reconciler: Option<&str>,
) -> Result<(Scope, Option<String>), String> {
    let account = account.filter(|name| !name.is_empty());
    if reconciler.is_some() && (scope.is_some() || account.is_some()) {
        return Err(
            "scope and serviceAccountName are for charts: a reconciler acts with the operator's \
                    service account"
                .to_owned(),
        );
    }
    let scope = match scope.unwrap_or("cluster") {
        "cluster" => Scope::Cluster,
        "namespace" => Scope::Namespace,
        other => return Err(format!("invalid scope: {other:?} is none of cluster, namespace")),
    };
    if let Some(name) =
        account.as_ref().filter(|name| name.len() > LONGEST_NAME || !is_subdomain(name))
    {
        return Err(format!(
            "invalid serviceAccountName: {name:?} must be the name of a service account: lower case letters, \
             digits, '-' and '.'"
        ));
    }
    Ok((scope, account))
}
