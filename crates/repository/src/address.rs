//! Addresses: which server one names, and how it is shown to people.

use url::Url;

use crate::RepositoryError;

/// How many characters of an address are shown.
const MAX_SHOWN: usize = 1000;

/// The part before `://`, in lower case. Nothing for a path and for `name:tag`.
pub(crate) fn scheme(text: &str) -> Option<String> {
    let (scheme, _) = text.split_once("://")?;
    let mut chars = scheme.chars();
    let first = chars.next()?;
    let sound = first.is_ascii_alphabetic()
        && chars.all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
    sound.then(|| scheme.to_ascii_lowercase())
}

/// Whether something is fetched from it by HTTP.
pub(crate) fn is_http(text: &str) -> bool {
    scheme(text).is_some_and(|scheme| scheme == "http" || scheme == "https")
}

/// Whether it names a chart in a registry.
pub fn is_oci(text: &str) -> bool {
    text.starts_with("oci://")
}

/// Whether an address of HTTP names no server. Go reads such a one, and tells when it is asked for;
/// [`Url`] takes the path's beginning for the server.
fn is_hostless(text: &str) -> bool {
    let rest = text.split_once("://").map(|(_, rest)| rest);
    is_http(text) && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?', '#']))
}

pub(crate) fn parse(text: &str) -> Result<Url, RepositoryError> {
    if is_hostless(text) {
        let message = "http: no Host in request URL".to_owned();
        return Err(RepositoryError::Transport { address: shown(text), message });
    }
    Url::parse(text).map_err(|_| RepositoryError::Address(shown(text)))
}

/// The same server: scheme, host and port. Credentials never go to another one.
pub(crate) fn same_server(a: &Url, b: &Url) -> bool {
    a.scheme() == b.scheme()
        && a.host_str().is_some()
        && a.host_str() == b.host_str()
        && a.port_or_known_default() == b.port_or_known_default()
}

/// An address as it may be shown and logged: without user and password, and without its query, in which
/// stores of objects put signatures.
pub fn shown(text: &str) -> String {
    let mut text = text.chars().take(MAX_SHOWN).collect::<String>();
    if let Some(at) = text.find(['?', '#']) {
        text.truncate(at);
    }
    let Some((scheme, rest)) = text.split_once("://") else { return text };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    match authority.rsplit_once('@') {
        // A user without password is a token.
        Some((_, host)) => format!("{scheme}://xxxxx@{host}{path}"),
        None => text,
    }
}

/// What an index says of a chart's address, seen from the repository's.
pub(crate) fn resolve(base: &str, reference: &str) -> Result<String, RepositoryError> {
    if scheme(reference).is_some() {
        return Ok(reference.to_owned());
    }
    if let Some((scheme, path)) = base.split_once("://").filter(|_| is_hostless(base)) {
        return Ok(format!("{scheme}://{}/{reference}", path.trim_end_matches('/')));
    }
    let mut folder = parse(base)?;
    if !folder.path().ends_with('/') {
        let path = format!("{}/", folder.path());
        folder.set_path(&path);
    }
    let query = folder.query().map(str::to_owned);
    let mut resolved =
        folder.join(reference).map_err(|_| RepositoryError::Address(shown(reference)))?;
    resolved.set_query(query.as_deref());
    Ok(resolved.into())
}

/// Whether two addresses are the same but for slashes.
pub(crate) fn same(a: &str, b: &str) -> bool {
    let clean = |text: &str| {
        let mut address = Url::parse(text).ok()?;
        let parts: Vec<&str> = address.path().split('/').filter(|part| !part.is_empty()).collect();
        let path = format!("/{}", parts.join("/"));
        address.set_path(&path);
        Some(address)
    };
    match (clean(a), clean(b)) {
        (Some(a), Some(b)) => a == b,
        _ => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_shown() {
        for (address, expected) in [
            ("https://a:b@h/x.tgz?sig=1#f", "https://xxxxx@h/x.tgz"),
            ("https://token@h:8443", "https://xxxxx@h:8443"),
            ("https://a:b@c@h/x", "https://xxxxx@h/x"),
            ("https://h/a@b", "https://h/a@b"),
            ("repo/name", "repo/name"),
        ] {
            assert_eq!(shown(address), expected);
        }
    }

    #[test]
    fn an_address_without_a_server_is_not_one_of_another() {
        for address in ["http://", "https:///charts", "http://?x", "HTTP:///x"] {
            assert!(parse(address).is_err(), "{address}");
        }
    }

    #[test]
    fn addresses_in_an_index_are_seen_from_the_repository() {
        for (base, reference, expected) in [
            ("http://h/charts", "a-1.tgz", "http://h/charts/a-1.tgz"),
            ("http://h/charts/", "a-1.tgz", "http://h/charts/a-1.tgz"),
            ("http://h/charts?k=v", "sub/a.tgz", "http://h/charts/sub/a.tgz?k=v"),
            ("http://h/charts", "/a.tgz", "http://h/a.tgz"),
            ("http://h/charts", "../a.tgz", "http://h/a.tgz"),
            ("http://h/charts", "https://o/a.tgz", "https://o/a.tgz"),
            ("http://", "index.yaml", "http:///index.yaml"),
            ("http:///charts/", "index.yaml", "http:///charts/index.yaml"),
        ] {
            assert_eq!(resolve(base, reference).unwrap(), expected, "{base} {reference}");
        }
    }

    #[test]
    fn a_server_is_scheme_host_and_port() {
        let same = |a, b| same_server(&parse(a).unwrap(), &parse(b).unwrap());
        assert!(same("https://h/a", "https://H:443/b"));
        for other in ["http://h/", "https://h:444/", "https://x.h/", "https://h.evil/"] {
            assert!(!same("https://h/", other), "{other}");
        }
    }
}
