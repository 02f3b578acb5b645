//! Whose rights the releases of an entry have, and where their objects may be.

use catamaran_release::Scope;

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
    if let Some(name) = account.as_ref().filter(|name| !is_subdomain(name)) {
        return Err(format!(
            "invalid serviceAccountName: {name:?} must be the name of a service account: lower case letters, \
             digits, '-' and '.'"
        ));
    }
    Ok((scope, account))
}

/// Whether a text is a DNS-1123 subdomain, as names of service accounts are.
fn is_subdomain(text: &str) -> bool {
    let is_label = |label: &str| {
        let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        !label.is_empty()
            && label.chars().all(is_allowed)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    text.len() <= 253 && text.split('.').all(is_label)
}
